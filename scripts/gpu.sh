#!/usr/bin/env bash
# Verifies and measures the CUDA rungs on the GPU of this machine, beside NVIDIA's libraries and
# PyTorch.
#   gpu.sh [RUN]          RUN: the run folder (results/local/<time>-gpu)
# It installs nothing: the program comes from build/gpu-bundle (make gpu-bundle), or is built with
# the headers and libraries of the bundle. A stage that fails or exceeds its time does not stop the
# others. After every stage the run folder is packed into ARCHIVE ($OUT/gpu-run.tar.gz where OUT is
# set, else RUN.tar.gz), and the table is written beside it, as .txt.
# Variables: PART (check: correctness, measure: times; both), LIMIT (seconds in total), PRIMITIVE
# VARIANT SUITE BUDGET RESUME BUILD ARCHIVE (see make help).
set -euo pipefail
source "$(dirname "$0")/common.sh"

part=${PART:-all}
case $part in
  check) limit=240 ;;
  measure) limit=420 ;;
  all) limit=660 ;;
  *) die "make gpu: PART=$part: expected check or measure" ;;
esac
limit=${LIMIT:-$limit}
to_finish=8 # seconds reserved for the table and the archive
build=${BUILD:-build}/gpu
bundle=${BUILD:-build}/gpu-bundle
run=${1:-results/local/$(date -u +%Y-%m-%dT%H-%M-%SZ)-gpu}
run=${run%/}
archive=${ARCHIVE:-}
if [[ -z $archive && -n ${OUT:-} && ${OUT%/} != "$run" ]]; then archive=$OUT/gpu-run.tar.gz; fi
archive=${archive:-$run.tar.gz}
[[ $limit =~ ^[1-9][0-9]*$ ]] || die "make gpu: LIMIT=$limit: expected seconds, for example 480"
[[ $archive == *.tar.gz ]] || die "make gpu: ARCHIVE=$archive: expected a name that ends in .tar.gz"

# --- the machine ---------------------------------------------------------------------------------

PATH=$PATH:/usr/local/nvidia/bin # tools of the driver in containers
gpus=$(nvidia-smi --query-gpu=name,compute_cap --format=csv,noheader 2>/dev/null) || gpus=
[[ $gpus == *,* ]] ||
  die "make gpu: this machine has no NVIDIA GPU: nvidia-smi is absent or lists none." \
    "Nothing was built or measured. \`make test\` verifies the CUDA rungs on the CPU (tests/simt)."
command -v nvcc >/dev/null || PATH=$PATH:/usr/local/cuda/bin

architectures=
while IFS= read -r capability; do
  ((capability >= 75)) ||
    die "make gpu: the GPU has compute capability ${capability:0:-1}.${capability: -1};" \
      "expected 7.5 or newer."
  [[ $capability != 90 ]] || capability=90a # with the instructions of Hopper only
  architectures+=${architectures:+;}$capability
done < <(sed 's/.*, *//; s/\.//' <<<"$gpus" | sort -u)

again=()
if [[ -e $run/environment.json || ($part != measure && -e $run/verified.json) ]]; then
  if [[ -n ${PRIMITIVE:-} && ${RESUME:-} != 1 ]]; then
    again=(--again)
  elif [[ ${RESUME:-} != 1 ]]; then
    die "make gpu: $run holds a run already. Name a primitive to measure it again" \
      "(PRIMITIVE=matmul), resume with RESUME=1, or choose another folder with OUT."
  fi
fi
mkdir -p "$run/logs" "$(dirname "$archive")"

# --- stages --------------------------------------------------------------------------------------

not_ok=()
failures=0
child=
interrupted=
trap 'interrupted=1; [[ -z $child ]] || kill -TERM "$child" 2>/dev/null || true' INT TERM

report() { # OUTCOME TITLE REASON
  local line
  line=$(printf '%-9s %s: %s' "$1" "$2" "$3")
  say "  $line" | tee -a "$run/logs/stages.txt"
  [[ $1 == ok ]] || not_ok+=("$line")
}

# Writes the archive: a call that is cut later loses only the stage that it cuts.
pack() {
  if tar -czf "$archive.part" -C "$(dirname "$run")" "$(basename "$run")" 2>/dev/null; then
    mv "$archive.part" "$archive"
  else
    rm -f "$archive.part"
    return 1
  fi
}

# stage TITLE SECONDS COMMAND…: runs the command for at most these seconds and the remaining time.
# Sets `status`.
stage() {
  local title=$1 seconds=$2 log=$run/logs/${1//[^A-Za-z0-9_]/-}.log begun=$SECONDS
  local left=$((limit - to_finish - SECONDS))
  shift 2
  status=1
  ((seconds <= left)) || seconds=$left
  if [[ -n $interrupted ]]; then
    report SKIPPED "$title" "interrupted"
    return
  elif ((seconds < 3)); then
    report SKIPPED "$title" "the limit of $limit s is reached"
    return
  fi
  printf '+ %s\n' "$*" >>"$log"
  # On SIGINT the program writes its finished rows. timeout signals its whole process group.
  (
    trap - INT TERM # a background command would ignore them
    exec timeout --signal=INT --kill-after=12 "$seconds" "$@"
  ) >>"$log" 2>&1 </dev/null &
  child=$!
  while
    status=0
    wait "$child" 2>/dev/null || status=$? # bash reports a killed child on stderr
    ((status > 128)) && kill -0 "$child" 2>/dev/null
  do :; done
  child=
  if ((status == 0)); then
    report ok "$title" "$((SECONDS - begun)) s"
  elif [[ -n $interrupted ]]; then
    report CUT "$title" "interrupted"
  elif ((status == 124 || status == 137)); then
    report CUT "$title" "not finished after $seconds s; finished rows are kept"
    failures=$((failures + 1))
  elif ((status == 2)) && [[ -n ${VARIANT:-} && -z ${PRIMITIVE:-} ]]; then
    report SKIPPED "$title" "it has no such variant, or no such problems"
  else
    report FAILED "$title" "exit status $status${by_rung:-; the last lines:}"
    [[ -n ${by_rung:-} ]] || tail -n 12 "$log" | cut -c1-300 | sed 's/^/    | /'
    failures=$((failures + 1))
  fi
  pack || true
}

# rungs TITLE SECONDS EACH OPTION…: verifies the project's own rungs, see gpu_rungs.py
rungs() {
  local title=$1 seconds=$2 each=$3 by_rung=", by rung:"
  shift 3
  stage "$title" "$seconds" python3 scripts/gpu_rungs.py "$program" --logs "$run/logs/$title" \
    --each "$each" --primitive "${PRIMITIVE:-}" --variant "${VARIANT:-}" "$@"
  [[ -e $run/logs/$title.txt ]] || return 0 # skipped
  grep -hE '^[0-9]+ of' "$run/logs/$title.log" | tail -n 1 | sed 's/^/    | /' || true
  grep -hE '^(FAILED|BROKEN|CUT) ' "$run/logs/$title.txt" | cut -c1-200 | sed 's/^/    | /' || true
}

# Prints the stages that did not succeed and the table, writes the archive, and exits.
finish() {
  {
    say
    say "$((SECONDS / 60)) min $((SECONDS % 60)) s in total; $run: $(du -sh "$run" | cut -f1)"
    if ((${#not_ok[@]})); then
      say "Not ok (the logs are in $run/logs):"
      printf '  %s\n' "${not_ok[@]}"
    fi
    if [[ -e $run/summary.csv || -e $run/step.csv || -e $run/verified.json ]]; then
      python3 scripts/gpu_table.py "$run" || failures=$((failures + 1))
    fi
  } >"$run/table.txt"
  cat "$run/table.txt"
  cp "$run/table.txt" "${archive%.tar.gz}.txt" || failures=$((failures + 1))
  pack || {
    say "make gpu: $archive could not be written; the results are in $run" >&2
    failures=$((failures + 1))
  }
  [[ -z $interrupted ]] || exit 130
  ((failures == 0)) || exit 1
  exit 0
}

say "$(head -n 1 <<<"$gpus"); at most $limit s; run folder $run; archive $archive"
nvidia-smi >"$run/logs/nvidia-smi.txt" 2>&1 || true

# --- the program ---------------------------------------------------------------------------------

# cuBLAS and cuDNN may exist only in the Python packages that PyTorch installs.
toolkit=
if command -v nvcc >/dev/null; then toolkit=$(dirname "$(dirname "$(command -v nvcc)")"); fi
while read -r what folder; do
  case $what in
    prefix) CMAKE_PREFIX_PATH=${CMAKE_PREFIX_PATH:+$CMAKE_PREFIX_PATH:}$folder ;;
    libraries) LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$folder ;;
  esac
done < <(python3 scripts/nvidia_packages.py "$toolkit/include" 2>/dev/null || true)
LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$toolkit/lib64
export CMAKE_PREFIX_PATH=${CMAKE_PREFIX_PATH:-} LD_LIBRARY_PATH PATH

cannot_build() { # REASON
  report FAILED build "$*"
  failures=$((failures + 1))
  finish
}

build_program() {
  command -v nvcc >/dev/null ||
    cannot_build "nvcc, which builds the CUDA rungs, is neither on PATH nor in /usr/local/cuda/bin"
  local cuda
  cuda=$(nvcc --version | sed -n 's/.*release \([0-9.]*\).*/\1/p')
  ((${cuda%%.*} >= 13)) 2>/dev/null ||
    cannot_build "$(command -v nvcc) is from CUDA ${cuda:-unknown}; expected 13.0 or newer"
  command -v cmake >/dev/null || cannot_build "CMake was not found (3.25 or newer)"
  if [[ -d $bundle ]]; then
    local have needed
    have=$(getconf GNU_LIBC_VERSION 2>/dev/null | cut -d' ' -f2) || have=
    needed=$(cat "$bundle/glibc")
    [[ -z $have || $(printf '%s\n' "$needed" "$have" | sort -V | head -n 1) == "$needed" ]] ||
      cannot_build "$bundle is for glibc $needed or newer; this machine has $have." \
        "Pack it on an older Debian"
    CMAKE_PREFIX_PATH=$(realpath "$bundle"):$CMAKE_PREFIX_PATH
    # DT_RPATH, unlike the newer DT_RUNPATH, also applies to libraries that a library needs.
    export LDFLAGS="-Wl,--disable-new-dtags ${LDFLAGS:-}"
  fi
  stage build 240 env CUDA=ON CUDA_ARCHITECTURES="$architectures" \
    scripts/build.sh release "$build" stepladder
  program=$build/stepladder
  ((status == 0)) || finish
}

program=$bundle/bin/stepladder
if [[ $architectures == "$(cat "$bundle/architectures" 2>/dev/null)" ]] &&
  [[ $(STEPLADDER_SOURCE_DIR=$root timeout 20 "$program" --version \
    2>"$run/logs/program.log") == stepladder* ]]; then
  export STEPLADDER_SOURCE_DIR=$root
  if [[ -e $bundle/commit ]]; then
    STEPLADDER_COMMIT_FILE=$(realpath "$bundle/commit")
    export STEPLADDER_COMMIT_FILE
  fi
  report ok program "the prebuilt one of $bundle"
else
  build_program
fi

# --- verification --------------------------------------------------------------------------------

if [[ -n ${PRIMITIVE:-} ]]; then
  IFS=', ' read -ra primitives <<<"$PRIMITIVE"
else
  mapfile -t primitives < <(
    timeout 20 "$program" list --place cuda --full | grep -v '^ ' | grep -v '^all_reduce$' || true
  )
fi
budget=()
[[ -z ${BUDGET:-} ]] || budget=(--budget "$BUDGET")
IFS=', ' read -ra suites <<<"${SUITE:-layers gpu alexnet nhwc}"

sanitizer() { # TOOL SECONDS
  if command -v compute-sanitizer >/dev/null; then
    rungs "$1" "$2" 30 --random 3 --tool "compute-sanitizer --tool $1 --error-exitcode 9"
  else
    report SKIPPED "$1" "compute-sanitizer was not found"
  fi
}

if [[ $part != measure ]]; then
  stage probe 20 "$program" machine --probe
  sed -n '2,60{s/^/    | /p}' "$run/logs/probe.log" 2>/dev/null || true
  rungs verify 100 20 --suite layers --random 40 --record "$run/verified.json"
  sanitizer memcheck 70
else # what has changed since it passed
  rungs verify 60 20 --suite layers --random 40 --record "$run/verified.json" --new
fi
if [[ $part == check ]]; then finish; fi

# --- times ---------------------------------------------------------------------------------------

# Every rung of the primitive but those that have just broken the device or did not terminate.
timed() { # PRIMITIVE
  timeout 20 "$program" list "$1" --place cuda --full |
    sed -n 's/^  \([^ ][^ ]*\) .*/\1/p' |
    while read -r rung; do
      grep -qsE "^(BROKEN|CUT) +$1 $rung( |\$)" "$run/logs/verify.txt" || say "$rung"
    done | paste -sd,
}

bench_suite() { # SUITE PRIMITIVE…
  local primitive variants
  for primitive in "${@:2}"; do
    # The 61 million weights of AlexNet take a minute to verify.
    [[ $primitive/$1 != sgd_update/alexnet ]] || continue
    grep -q "^$1," "bench/suites/$primitive.csv" 2>/dev/null || continue
    variants=${VARIANT:-$(timed "$primitive" || true)}
    if [[ -z $variants ]]; then
      report SKIPPED "bench $primitive $1" "every rung broke the device or did not terminate"
      continue
    fi
    stage "bench $primitive $1" 80 "$program" bench "$primitive" --place cuda \
      --variant "$variants" "${budget[@]}" --suite "$1" --threads 1 \
      --out "$run" --resume "${again[@]}"
  done
}

steps() {
  local network use
  for use in cuda cuda_tf32; do
    for network in mlp mnist_cnn cifar_cnn; do
      stage "step $network $use" 25 "$program" step --network "$network" --use "$use" --threads 1 \
        --out "$run" --resume
    done
  done
}

peers() {
  if [[ -e $run/peers/step.csv ]]; then
    report SKIPPED PyTorch "already measured, in $run/peers"
  elif timeout 60 python3 -c 'import torch; assert torch.cuda.is_available()' >/dev/null 2>&1; then
    stage PyTorch 115 python3 bench/peers/run.py --device cuda --program "$program" --rounds 1 \
      --seconds 0.5 --out "$run/peers"
  else
    report SKIPPED PyTorch "python3 has no PyTorch with access to the GPU"
  fi
}

# The first rung and those for the widest vectors of this CPU, on up to all cores.
cpu_ladder() {
  local primitive first isa=avx2 threads=1 count seconds
  grep -qw avx512dq /proc/cpuinfo && isa=avx512
  for ((count = 2; count <= $(core_count); count *= 2)); do threads+=,$count; done
  while read -r primitive seconds; do
    first=$(timeout 20 "$program" list "$primitive" --place cpu --full |
      sed -n '2s/^  \([^ ]*\) .*/\1/p') || continue
    stage "cpu $primitive" "$seconds" "$program" bench "$primitive" --place cpu --suite layers \
      --variant "$first,*_$isa" --threads "$threads" --budget 0.02 --repetitions 5 \
      --out "$run/cpu" --resume
  done <<<$'matmul 40\nconvolution 40\nmax_pool 15\nsgd_update 15'
}

# The most important stages come first, because the time may run out. Expected results of large
# poolings and updates take the CPU a minute.
fast=() slow=()
for primitive in "${primitives[@]}"; do
  if [[ $primitive == matmul || $primitive == convolution ]]; then
    fast+=("$primitive")
  else
    slow+=("$primitive")
  fi
done
bench_suite "${suites[0]}" "${primitives[@]}"
((${#suites[@]} < 2)) || bench_suite "${suites[1]}" "${fast[@]}"
if [[ -z ${PRIMITIVE:-} ]]; then
  steps
  peers
  cpu_ladder
fi
((${#suites[@]} < 2)) || bench_suite "${suites[1]}" "${slow[@]}"
for suite in "${suites[@]:2}"; do bench_suite "$suite" "${primitives[@]}"; done
sanitizer racecheck 60
finish
