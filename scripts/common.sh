# Sourced by the other scripts: goes to the project's root and says how scripts speak.
# shellcheck shell=bash
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root" || exit

say() { printf '%s\n' "$*"; }

die() {
  printf '%s\n' "$*" >&2
  exit 1
}

# The processors that this process may use. nproc alone would answer OMP_NUM_THREADS where that is set.
core_count() { env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc; }

# Open MPI refuses root unless told twice; containers run as root.
allow_mpi_as_root() {
  if [[ $(id -u) == 0 ]]; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  fi
}
