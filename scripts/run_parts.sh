# Sourced by bench.sh, bench_network.sh and compare_modes.sh when `run`, the run folder, is set: runs
# their commands one after another, with the output in bench.log, and ends with the charts, the tables,
# the page (make bench) and one screen.
# Defined by the script: resume_command, and clean_up, which runs at the end however it comes.
# shellcheck shell=bash disable=SC2034,SC2154

resume_text() { # TARGET VARIABLE…: the make command that resumes this run
  local text="make $1" name
  for name in "${@:2}"; do
    [[ -z ${!name:-} ]] || text+=" $name=$(printf %q "${!name}")"
  done
  [[ ${BUILD:-build} == build ]] || text+=" BUILD=$(printf %q "$BUILD")"
  say "$text OUT=$(printf %q "$run") RESUME=1"
}

interrupted=
child=
part_log=$(mktemp)
trap 'interrupted=1' INT # the terminal sends Ctrl-C to the child as well
trap 'interrupted=1; [[ -z $child ]] || kill -TERM "$child" 2>/dev/null || true' TERM
trap 'clean_up; rm -f "$part_log"' EXIT

stopped() { # REASON
  say
  say "$1 The finished rows are in $run. To resume:"
  say "  $(resume_command)"
}

# Runs a command to its end, even if a signal interrupts the wait. Sets `status`. Its output goes to
# bench.log; on a terminal, stderr stays there because it shows the progress.
run_to_end() {
  # A background command ignores Ctrl-C unless its trap is reset.
  (
    trap - INT TERM
    [[ -t 2 ]] || exec 2>&1
    exec "$@"
  ) >"$part_log" </dev/null &
  child=$!
  while
    status=0
    wait "$child" || status=$?
    ((status > 128)) && kill -0 "$child" 2>/dev/null
  do :; done
  child=
  [[ ! -d $run ]] || { printf '+ %s\n' "$*" && cat "$part_log"; } >>"$run/bench.log"
  if [[ -n $interrupted ]] || ((status == 130 || status == 143)); then
    stopped "Stopped."
    exit 130
  fi
}

show_end_of_log() { tail -n 12 "$part_log" | sed 's/^/  | /' >&2; }

failures=()
fail() { # TITLE
  show_end_of_log
  failures+=("$1 (exit status $status)")
}

elapsed() { say "$((SECONDS / 60)) min $((SECONDS % 60)) s"; }

held_a_run=
[[ ! -e $run/environment.json && ! -e $run/summary.csv ]] || held_a_run=1
resume=()
[[ ${RESUME:-} != 1 ]] || resume=(--resume)

# Nothing was measured: a wrong name, a folder in use, a host that cannot be reached.
nothing_measured() {
  show_end_of_log
  [[ -z $held_a_run ]] || say "To resume that run: $(resume_command)" >&2
  exit "$status"
}

finish() { # SCREEN [OPTION…]: the command of plots that prints the last screen; with options, which
  # it keeps in the run folder, it runs before the charts too
  say "Measured in $(elapsed)"
  if .venv/bin/python -c 'import matplotlib, numpy' 2>/dev/null; then
    local output outputs=(charts tables)
    if [[ $1 != table ]]; then # the last screen of make bench alone names the page
      :
    elif .venv/bin/python -c 'import jinja2, pygments' 2>/dev/null; then
      outputs+=(page)
    else
      say "Report page: SKIPPED, no Python environment with Jinja2 and Pygments (see make setup)"
    fi
    if (($# > 1)); then
      run_to_end .venv/bin/python -m plots "$@" "$run"
      ((status == 0)) || fail "$1"
    fi
    for output in "${outputs[@]}"; do
      run_to_end .venv/bin/python -m plots "$output" "$run"
      ((status == 0)) || fail "$output"
    done
    say
    .venv/bin/python -m plots "$1" "$run" || failures+=("$1 (exit status $?)")
  else
    say "Charts and tables: SKIPPED, no Python environment with numpy and matplotlib (see make setup)"
    say "Written:"
    printf '  %s\n' "$run"/*
  fi
  ((${#failures[@]} == 0)) || {
    {
      say
      say "FAILED (all output: $run/bench.log):"
      printf '  %s\n' "${failures[@]}"
    } >&2
    exit 1
  }
}
