#!/usr/bin/env bash
# Configures a CMake preset in a folder and builds it.
#   build.sh PRESET FOLDER [TARGET…]          everything, or these targets
#   build.sh PRESET FOLDER --configure-only
# The variables WERROR, ISAS (native, all, or names as "sse42;avx2"), UNITY (ON, OFF), CUDA (AUTO,
# ON, OFF), CUDA_ARCHITECTURES (90a), LIBRARIES (newest, system) and, for the preset sanitize,
# SANITIZE set the CMake options of those names. Without WERROR, ISAS and UNITY a folder keeps those
# it has: other ones compile much anew. ONLY=matmul builds the rungs of one primitive, if the folder
# has not those of all. The whole output is in FOLDER/build.log.
set -euo pipefail
source "$(dirname "$0")/common.sh"

preset=$1
folder=$2
shift 2

# A folder keeps its CMake generator. A folder that was configured for another checkout is
# configured anew.
generator=Ninja
command -v ninja >/dev/null || generator="Unix Makefiles"
fresh=()
cache=$folder/CMakeCache.txt
if [[ -f $cache ]]; then
  generator=$(sed -n 's/^CMAKE_GENERATOR:INTERNAL=//p' "$cache")
  if [[ $(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$cache") != "$root" ]]; then
    fresh=(--fresh)
  fi
fi

options=(${WERROR:+"-DSTEPLADDER_WERROR=$WERROR"} ${ISAS:+"-DSTEPLADDER_ISAS=$ISAS"}
  ${UNITY:+"-DSTEPLADDER_UNITY=$UNITY"}
  "-DSTEPLADDER_CUDA=${CUDA:-AUTO}" "-DSTEPLADDER_LIBRARIES=${LIBRARIES:-newest}"
  "-DSTEPLADDER_CUDA_ARCHITECTURES=${CUDA_ARCHITECTURES:-}")
# A folder without the rungs of all primitives gets those of ONLY too; without ONLY, those of all.
primitives=${ONLY:-}
if [[ -n $primitives && -f $cache ]]; then
  before=$(sed -n 's/^STEPLADDER_PRIMITIVES:STRING=//p' "$cache")
  if [[ ";$before;" == *";$primitives;"* ]]; then
    primitives=$before
  else
    primitives=${before:+$before;$primitives}
  fi
fi
options+=("-DSTEPLADDER_PRIMITIVES=$primitives")
if [[ $preset == sanitize ]]; then
  options+=("-DSTEPLADDER_SANITIZE=${SANITIZE:-address,undefined}")
fi

mkdir -p "$folder"
log=$folder/configure.log
if ! cmake --preset "$preset" -B "$folder" -G "$generator" "${fresh[@]}" "${options[@]}" \
  >"$log" 2>&1; then
  tail -n 40 "$log" >&2
  die "Configuring $folder failed; the whole output is in $log"
fi
grep -A 4 '^CMake .*Warning' "$log" >&2 || true

[[ ${1:-} != --configure-only ]] || exit 0

targets=()
(($# == 0)) || targets=(--target "$@")
# The build must not use the job server of the calling make.
unset MAKEFLAGS MFLAGS MAKELEVEL

# On a terminal one line that counts, elsewhere every hundredth; what is no count is always shown.
show_progress() {
  local line columns=0 seen=0 open=
  [[ ! -t 1 ]] || columns=$(tput cols 2>/dev/null || say 80)
  while IFS= read -r line; do
    if [[ ! $line =~ ^\[[\ 0-9]+(%|/[0-9]+)\] ]]; then
      [[ -z $open ]] || say
      open=
      say "$line"
    elif ((columns)); then
      printf '\r\e[K%s' "${line:0:columns-1}"
      open=1
    elif ((++seen % 100 == 0)); then
      say "$line"
    fi
  done
  [[ -z $open ]] || say
}

cmake --build "$folder" --parallel "$(core_count)" "${targets[@]}" 2>&1 |
  tee "$folder/build.log" | show_progress
