#!/usr/bin/env bash
# Builds the tests and runs ctest and pytest; pytest runs even if ctest fails. With SANITIZE=thread,
# only the tests of threads that synchronize without OpenMP, whose library the sanitizer cannot look
# into.
set -euo pipefail
source "$(dirname "$0")/common.sh"

export ISAS=all # for the build
preset=release
folder=${BUILD:-build}
if [[ -n ${SANITIZE:-} ]]; then
  preset=sanitize
  folder+=/sanitize
fi

# Set before the build, which runs the test program to list its tests.
allow_mpi_as_root
export ASAN_OPTIONS="fast_unwind_on_malloc=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}" # see tests/lsan.supp
lsan="suppressions=$root/tests/lsan.supp:print_suppressions=0:use_tls=0"
export LSAN_OPTIONS="$lsan${LSAN_OPTIONS:+:$LSAN_OPTIONS}"
export UBSAN_OPTIONS="print_stacktrace=1:halt_on_error=1${UBSAN_OPTIONS:+:$UBSAN_OPTIONS}"

if [[ ${SANITIZE:-} == thread ]]; then
  folder+=-thread
  scripts/build.sh "$preset" "$folder" stepladder_tests
  tsan="suppressions=$root/tests/tsan.supp"
  export OMP_NUM_THREADS=1 TSAN_OPTIONS="$tsan${TSAN_OPTIONS:+:$TSAN_OPTIONS}"
  "$folder/stepladder_tests" --gtest_filter='ThreadPool.*:SharedWindow.*:TrainingModes.*' ||
    die "make test: FAILED"
  exit
fi
scripts/build.sh "$preset" "$folder"
if grep -q '^STEPLADDER_HAVE_SIMGRID:INTERNAL=ON' "$folder/CMakeCache.txt"; then
  scripts/build.sh "$preset" "$folder" stepladder_smpi stepladder_smpi_train
fi

failed=()
log=$(realpath "$folder")/ctest.log
# Several tests run at once: a waiting OpenMP thread sleeps, it does not spin on the core of another
# test.
GOMP_SPINCOUNT=0 ctest --test-dir "$folder" --parallel "$(core_count)" --output-on-failure \
  --no-tests=error --output-log "$log" || failed+=(ctest)

if .venv/bin/python -c 'import pytest' 2>/dev/null; then
  export STEPLADDER=$root/$folder/stepladder STEPLADDER_SMPI=$root/$folder/stepladder_smpi
  export STEPLADDER_SMPI_TRAIN=$root/$folder/stepladder_smpi_train
  workers=()
  ! .venv/bin/python -c 'import xdist' 2>/dev/null || workers=(-n "$(core_count)" --dist worksteal)
  # One call for each folder, because folders have files of the same name.
  for tests in tests/plots tests/scripts tests/peers tests/simulation tests/cli; do
    .venv/bin/python -m pytest -q -rs "${workers[@]}" "$tests" || failed+=("pytest $tests")
  done
else
  say "pytest: skipped, no Python environment with pytest (see make setup)"
fi

say
grep -E 'tests passed|No tests were found' "$log" | sed 's/^/ctest: /' || true
((${#failed[@]} == 0)) || die "make test: FAILED (${failed[*]})"
say "make test: passed"
