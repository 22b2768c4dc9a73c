#!/usr/bin/env bash
# Builds the fuzz targets of tests/fuzz with clang and runs them on random inputs, beginning with
# the files of tests/fuzz/corpus. Exit status 1 on a finding.
#   fuzz.sh SECONDS [TARGET,…]    in total, for all targets or these
set -euo pipefail
source "$(dirname "$0")/common.sh"

total=$1
[[ $total =~ ^[1-9][0-9]*$ ]] || die "make fuzz: SECONDS=$total: expected a whole number from 1"
folder=${BUILD:-build}/fuzz

all=(tests/fuzz/*_fuzz.cpp)
all=("${all[@]##*/}")
all=("${all[@]%_fuzz.cpp}")
IFS=, read -ra targets <<<"${2:-}"
((${#targets[@]})) || targets=("${all[@]}")
for target in "${targets[@]}"; do
  [[ -f tests/fuzz/${target}_fuzz.cpp ]] ||
    die "make fuzz: unknown TARGET '$target'; expected some of $(IFS=, && say "${all[*]}")"
done

command -v clang++ >/dev/null ||
  die "make fuzz: clang++ is not on this machine (Debian: clang libclang-rt-dev)."
probe=$(mktemp)
trap 'rm -f "$probe"' EXIT
say 'extern "C" int LLVMFuzzerTestOneInput(const char*, unsigned long) { return 0; }' |
  clang++ -fsanitize=fuzzer,address,undefined -x c++ - -o "$probe" 2>/dev/null ||
  die "make fuzz: clang++ has no libFuzzer on this machine (Debian: libclang-rt-dev)."

# The warnings of clang differ from one version to the next: make test has those of GCC.
WERROR=OFF scripts/build.sh fuzz "$folder" "${targets[@]/#/fuzz_}"

findings=$folder/findings
mkdir -p "$findings" "$folder/logs"
cores=$(core_count)
((cores <= ${#targets[@]})) || cores=${#targets[@]}
export share=$((total * cores / ${#targets[@]})) folder findings
((share > 0)) || share=1
export ASAN_OPTIONS=quarantine_size_mb=8:malloc_context_size=8 UBSAN_OPTIONS=print_stacktrace=1

fuzz_one() {
  local target=$1 options=()
  case $target in
    mode | selection | use) options=(-max_len=256) ;; # a line of a command
  esac
  mkdir -p "$folder/corpus/$target"
  "$folder/fuzz/$target" -max_total_time="$share" -rss_limit_mb=1024 -timeout=5 "${options[@]}" \
    -print_final_stats=1 -artifact_prefix="$findings/$target-" "$folder/corpus/$target" \
    "tests/fuzz/corpus/$target" >"$folder/logs/$target" 2>&1 ||
    say "it ended with status $?" >>"$folder/logs/$target"
}
export -f fuzz_one say

say "fuzz: ${#targets[@]} targets, $share s each, $cores at a time"
# shellcheck disable=SC2016 # $1 is for the inner bash to expand
printf '%s\0' "${targets[@]}" | xargs -0 -n 1 -P "$cores" bash -c 'fuzz_one "$1"' fuzz_one

executions=0
failed=()
for target in "${targets[@]}"; do
  log=$folder/logs/$target
  count=$(grep -a -m 1 '^stat::number_of_executed_units:' "$log" | grep -o '[0-9]*$' || say 0)
  ((executions += count)) || true
  printf 'fuzz: %-12s %10d executions\n' "$target" "$count"
  if grep -aq '^it ended with status' "$log"; then
    failed+=("$target")
    input=$(sed -n 's/.*Test unit written to //p' "$log" | tail -n 1)
    grep -a -m 3 -E 'not one line|ERROR: |runtime error: ' "$log" | cut -c 1-300 |
      sed 's/^/  | /' || true
    say "  finding: ${input:-no input was kept}; the whole output is in $log"
  fi
done
printf 'fuzz: %-12s %10d executions\n' total "$executions"
((${#failed[@]} == 0)) || die "make fuzz: FAILED (${failed[*]})"
say "make fuzz: passed"
