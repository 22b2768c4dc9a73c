# Sourced by the other scripts: changes to the root of the project and defines common functions.
# shellcheck shell=bash
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P) # one folder, by whatever link
cd "$root" || exit

say() { printf '%s\n' "$*"; }

die() {
  printf '%s\n' "$*" >&2
  exit 1
}

# Prints the number of processors that this process may use. nproc alone would print
# OMP_NUM_THREADS if that is set.
core_count() { env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc; }

# Open MPI refuses to run as root, as containers do, unless both variables are set.
allow_mpi_as_root() {
  if [[ $(id -u) == 0 ]]; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  fi
}
