#!/usr/bin/env bash
# Builds, verifies and measures the CUDA rungs on the GPU of this machine, beside PyTorch, and
# writes one run folder, in at most LIMIT seconds (480). It installs nothing: libraries and headers
# come from build/gpu-bundle, packed elsewhere by `make gpu-bundle`, or from the system. A stage
# that fails or exceeds its time does not stop the others.
# Variables: PRIMITIVE VARIANT SUITE BUDGET OUT RESUME BUILD LIMIT (see make help).
#
# OUT receives summary.csv, summary.json, step.csv, step.json, columns.json, verified.json,
# environment.json, ceilings.json, peers/ (step.csv, environment.json, columns.json), and raw.tar.gz
# with logs, samples and the records of Google Benchmark. Unpack raw.tar.gz before you publish the
# folder as results/<machine>.
set -euo pipefail
source "$(dirname "$0")/common.sh"

limit=${LIMIT:-480}
to_finish=25 # seconds reserved for packing and the table
build=${BUILD:-build}/gpu
program=$build/stepladder
bundle=${BUILD:-build}/gpu-bundle
run=${OUT:-results/local/$(date -u +%Y-%m-%dT%H-%M-%SZ)-gpu}
[[ $limit =~ ^[1-9][0-9]*$ ]] || die "make gpu: LIMIT=$limit: expected seconds, for example 480"

# --- the machine ---------------------------------------------------------------------------------

PATH=$PATH:/usr/local/nvidia/bin # tools of the driver in containers
gpus=$(nvidia-smi --query-gpu=name,compute_cap --format=csv,noheader 2>/dev/null) || gpus=
[[ $gpus == *,* ]] ||
  die "make gpu: this machine has no NVIDIA GPU: nvidia-smi is absent or lists none." \
    "Nothing was built or measured. \`make test\` verifies the CUDA rungs on the CPU (tests/simt)."
command -v nvcc >/dev/null || PATH=$PATH:/usr/local/cuda/bin
command -v nvcc >/dev/null ||
  die "make gpu: nvcc, which builds the CUDA rungs, is neither on PATH nor in /usr/local/cuda/bin."
cuda=$(nvcc --version | sed -n 's/.*release \([0-9.]*\).*/\1/p')
((${cuda%%.*} >= 13)) 2>/dev/null ||
  die "make gpu: $(command -v nvcc) is from CUDA ${cuda:-unknown}; expected 13.0 or newer."
command -v cmake >/dev/null || die "make gpu: CMake was not found (3.25 or newer)."

architectures=
while IFS= read -r capability; do
  ((capability >= 75)) ||
    die "make gpu: the GPU has compute capability ${capability:0:-1}.${capability: -1};" \
      "expected 7.5 or newer."
  [[ $capability != 90 ]] || capability=90a # with the instructions of Hopper only
  architectures+=${architectures:+;}$capability
done < <(sed 's/.*, *//; s/\.//' <<<"$gpus" | sort -u)

again=()
if [[ -e $run/environment.json || -e $run/raw.tar.gz ]]; then
  if [[ -n ${PRIMITIVE:-} && ${RESUME:-} != 1 ]]; then
    again=(--again)
  elif [[ ${RESUME:-} != 1 ]]; then
    die "make gpu: $run holds a run already. Name a primitive to measure it again" \
      "(PRIMITIVE=matmul), resume with RESUME=1, or choose another folder with OUT."
  fi
fi
mkdir -p "$run"
if [[ -e $run/raw.tar.gz ]]; then
  tar -xzf "$run/raw.tar.gz" -C "$run" ||
    die "make gpu: $run/raw.tar.gz cannot be unpacked; choose another folder with OUT."
fi
mkdir -p "$run/logs"

# --- stages --------------------------------------------------------------------------------------

not_ok=()
failures=0
child=
interrupted=
trap 'interrupted=1; [[ -z $child ]] || kill -TERM "$child" 2>/dev/null || true' INT TERM

report() { # OUTCOME TITLE REASON
  local line
  line=$(printf '%-9s %s: %s' "$1" "$2" "$3")
  say "  $line"
  [[ $1 == ok ]] || not_ok+=("$line")
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
    report FAILED "$title" "exit status $status; the last lines:"
    tail -n 12 "$log" | cut -c1-300 | sed 's/^/    | /'
    failures=$((failures + 1))
  fi
}

# Packs the large files, prints the stages that did not succeed and the table, and exits.
finish() {
  local raw=() file
  for file in logs samples.csv benchmark.json peers/samples.csv; do
    [[ ! -e $run/$file ]] || raw+=("$file")
  done
  if tar -czf "$run/raw.tar.gz.part" -C "$run" "${raw[@]}"; then
    mv "$run/raw.tar.gz.part" "$run/raw.tar.gz"
    (cd "$run" && rm -rf "${raw[@]}")
  else
    rm -f "$run/raw.tar.gz.part"
    report FAILED "raw.tar.gz" "samples and logs stay unpacked in $run"
    failures=$((failures + 1))
  fi
  say
  say "$((SECONDS / 60)) min $((SECONDS % 60)) s in total; $run: $(du -sh "$run" | cut -f1)"
  if ((${#not_ok[@]})); then
    say "Not ok (the logs are in raw.tar.gz):"
    printf '  %s\n' "${not_ok[@]}"
  fi
  if [[ -e $run/summary.csv || -e $run/step.csv || -e $run/verified.json ]]; then
    python3 scripts/gpu_table.py "$run" || failures=$((failures + 1))
  fi
  [[ -z $interrupted ]] || exit 130
  ((failures == 0)) || exit 1
  exit 0
}

say "$(head -n 1 <<<"$gpus"); build for ${architectures//;/, }; at most $limit s; run folder $run"

# --- build ---------------------------------------------------------------------------------------

if [[ -d $bundle ]]; then
  have=$(getconf GNU_LIBC_VERSION 2>/dev/null | cut -d' ' -f2) || have=
  needed=$(cat "$bundle/glibc")
  [[ -z $have || $(printf '%s\n' "$needed" "$have" | sort -V | head -n 1) == "$needed" ]] ||
    die "make gpu: $bundle is for glibc $needed or newer; this machine has $have." \
      "Pack it on an older Debian."
  CMAKE_PREFIX_PATH=$(realpath "$bundle")${CMAKE_PREFIX_PATH:+:$CMAKE_PREFIX_PATH}
  # DT_RPATH, unlike the newer DT_RUNPATH, also applies to libraries that a library needs.
  export LDFLAGS="-Wl,--disable-new-dtags ${LDFLAGS:-}"
fi
# cuBLAS and cuDNN may exist only in the Python packages that PyTorch installs.
while read -r what folder; do
  case $what in
    prefix) CMAKE_PREFIX_PATH=${CMAKE_PREFIX_PATH:+$CMAKE_PREFIX_PATH:}$folder ;;
    libraries) LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$folder ;;
  esac
done < <(python3 scripts/nvidia_packages.py "$(dirname "$(command -v nvcc)")/../include" \
  2>/dev/null || true)
export CMAKE_PREFIX_PATH=${CMAKE_PREFIX_PATH:-} LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-} PATH
stage build 240 env CUDA=ON CUDA_ARCHITECTURES="$architectures" \
  scripts/build.sh release "$build" stepladder
((status == 0)) || finish

# --- verification --------------------------------------------------------------------------------

if [[ -n ${PRIMITIVE:-} ]]; then
  IFS=', ' read -ra primitives <<<"$PRIMITIVE"
else
  mapfile -t primitives < <("$program" list --place cuda | grep -v '^ ' || true)
fi
budget=()
[[ -z ${BUDGET:-} ]] || budget=(--budget "$BUDGET")

IFS=', ' read -ra suites <<<"${SUITE:-layers gpu alexnet nhwc}"

# PRIMITIVE/RUNG of the rungs that left the device unusable or did not terminate
broken=" "

ladder() { # PRIMITIVE: technique and name of each rung
  "$program" list "$1" --place cuda | sed -n 's/^  \([^ ][^ ]*\)  *\([^ ]*\) .*/\2 \1/p'
}

# Status 3: a kernel made the device unusable for this process. 124 and 137: it did not terminate.
broke_the_device() { ((status == 3 || status == 124 || status == 137)); }

verify() { # PRIMITIVE TITLE SECONDS VARIANTS…
  local suite=() # a primitive without suites is verified on random problems alone
  [[ ! -e bench/suites/$1.csv ]] || suite=(--suite layers)
  stage "verify $2" "$3" "$program" verify "$1" --place cuda "${@:4}" "${suite[@]}" --random 200 \
    --record "$run/verified.json"
}

for primitive in "${primitives[@]}"; do
  if [[ $primitive == all_reduce ]]; then
    report SKIPPED "verify all_reduce" "needs several GPUs"
    continue
  fi
  verify "$primitive" "$primitive" 45 ${VARIANT:+--variant "$VARIANT"}
  if broke_the_device && [[ -z ${VARIANT:-} && -z $interrupted ]]; then
    # One by one, each in a process of its own.
    while read -r _ rung; do
      verify "$primitive" "$primitive $rung" 20 --variant "$rung"
      ! broke_the_device || broken+="$primitive/$rung "
    done < <(ladder "$primitive")
  fi
done

# --- times ---------------------------------------------------------------------------------------

bench_suite() {
  local primitive variants
  for primitive in "${primitives[@]}"; do
    # The 61 million weights of AlexNet take a minute to verify.
    [[ $primitive != all_reduce && $primitive/$1 != sgd_update/alexnet ]] || continue
    grep -q "^$1," "bench/suites/$primitive.csv" 2>/dev/null || continue
    variants=${VARIANT:-}
    if [[ $broken == *" $primitive/"* ]]; then
      variants=$(ladder "$primitive" | while read -r _ rung; do
        [[ $broken == *" $primitive/$rung "* ]] || say "$rung"
      done | paste -sd,)
      if [[ -z $variants ]]; then
        report SKIPPED "bench $primitive $1" "every rung broke the device or did not terminate"
        continue
      fi
    fi
    stage "bench $primitive $1" 50 "$program" bench "$primitive" --place cuda \
      ${variants:+--variant "$variants"} "${budget[@]}" --suite "$1" --threads 1 \
      --out "$run" --resume "${again[@]}"
  done
}

steps() {
  local network
  for network in mlp mnist_cnn cifar_cnn; do
    stage "step $network" 25 "$program" step --network "$network" --use cuda --threads 1 \
      --out "$run" --resume
  done
}

peers() {
  if [[ -e $run/peers/step.csv ]]; then
    report SKIPPED PyTorch "already measured, in $run/peers"
  elif python3 -c 'import torch; assert torch.cuda.is_available()' >/dev/null 2>&1; then
    stage PyTorch 120 python3 bench/peers/run.py --device cuda --program "$program" --rounds 1 \
      --seconds 0.5 --out "$run/peers"
  else
    report SKIPPED PyTorch "python3 has no PyTorch with access to the GPU"
  fi
}

# The most important stages come first, because the time may run out.
bench_suite "${suites[0]}"
[[ -n ${PRIMITIVE:-} ]] || steps
((${#suites[@]} < 2)) || bench_suite "${suites[1]}"
[[ -n ${PRIMITIVE:-} ]] || peers
((${#suites[@]} < 3)) || bench_suite "${suites[2]}"

# --- NVIDIA's sanitizer --------------------------------------------------------------------------

if command -v compute-sanitizer >/dev/null; then
  for tool in memcheck racecheck; do
    for primitive in "${primitives[@]}"; do
      own=$(ladder "$primitive" | sed -n 's/^cuda //p' | paste -sd,) # without NVIDIA's libraries
      [[ $primitive != all_reduce && -n $own ]] || continue
      stage "$tool $primitive" 40 compute-sanitizer --tool "$tool" --error-exitcode 9 \
        "$program" verify "$primitive" --variant "${VARIANT:-$own}" --place cuda --random 3
    done
  done
else
  report SKIPPED "memcheck, racecheck" "compute-sanitizer was not found"
fi

for suite in "${suites[@]:3}"; do bench_suite "$suite"; done

finish
