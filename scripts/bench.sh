#!/usr/bin/env bash
# Measures everything into one run folder, draws the charts, writes the tables and prints the main
# results. Each part is one line on the screen; its output goes to bench.log in the run folder.
# Variables: PRIMITIVE VARIANT SUITE THREADS RANKS BUDGET OUT RESUME OVERSUBSCRIBE BUILD
# (see make help). SUITE=quick leaves out the steps of the large networks and most trainings.
set -euo pipefail
source "$(dirname "$0")/common.sh"
allow_mpi_as_root

program=${BUILD:-build}/stepladder
suite=${SUITE:-layers}
run=${OUT:-results/local/$(date -u +%Y-%m-%dT%H-%M-%SZ)}
cores=$(core_count)
physical_cores=$(lscpu -p=CORE,SOCKET 2>/dev/null | grep -v '^#' | sort -u | wc -l) ||
  physical_cores=$cores
threads=${THREADS:-1}
[[ -n ${THREADS:-} ]] || ((cores == 1)) || threads=1,$cores
ranks=${RANKS:-}
if [[ -z $ranks ]]; then
  ranks=$((cores < 2 ? cores : 2))
  ((cores <= 2)) || ranks+=,$cores
fi
IFS=', ' read -ra primitives <<<"${PRIMITIVE:-matmul convolution max_pool average_pool sgd_update all_reduce reorder}"
# The primitives that have one of the suites, if any has.
if [[ -z ${PRIMITIVE:-} ]]; then
  having=()
  for primitive in "${primitives[@]}"; do
    ! grep -sqE "^(${suite//,/|})," "bench/suites/$primitive.csv" || having+=("$primitive")
  done
  ((${#having[@]} == 0)) || primitives=("${having[@]}")
fi
IFS=', ' read -ra rank_counts <<<"$ranks"

for count in "${rank_counts[@]}"; do
  [[ $count =~ ^[1-9][0-9]*$ ]] || die "RANKS=$ranks: expected whole numbers such as 2 or 2,4"
  if ((count > cores)) && [[ -z ${OVERSUBSCRIBE:-} ]]; then
    die "RANKS=$ranks: this machine has $cores cores. Ranks that share a core wait for each other" \
      "most of the time; OVERSUBSCRIBE=1 allows it."
  fi
done

# --- the parts -----------------------------------------------------------------------------------

titles=()
commands=()
add_part() {
  titles+=("$1")
  commands+=("$(printf '%q ' "${@:2}")")
}

select_rows=(--suite "$suite")
[[ -z ${VARIANT:-} ]] || select_rows+=(--variant "$VARIANT")
[[ -z ${BUDGET:-} ]] || select_rows+=(--budget "$BUDGET")

# Sets `launcher` to the mpirun of COUNT ranks.
set_launcher() {
  launcher=(mpirun -np "$1")
  # By default Open MPI counts cores, not hardware threads.
  if (($1 > cores)); then
    # Ranks that share a core must not wait busily for each other.
    launcher+=(--oversubscribe --mca mpi_yield_when_idle 1)
  elif (($1 > physical_cores)); then
    launcher+=(--use-hwthread-cpus --bind-to hwthread)
  else
    launcher+=(--bind-to core)
  fi
}

single=()
all_reduce=
for primitive in "${primitives[@]}"; do
  if [[ $primitive == all_reduce ]]; then
    all_reduce=1
  else
    single+=("$primitive")
  fi
done
if ((${#single[@]})); then
  add_part "${single[*]}" "$program" bench "${single[@]}" "${select_rows[@]}" --threads "$threads"
fi

# add_parts_over_ranks PRIMITIVE VARIANTS, which run over several ranks only.
add_parts_over_ranks() {
  [[ " ${single[*]} " == *" $1 "* && -z ${VARIANT:-} ]] && command -v mpirun >/dev/null || return 0
  for count in "${rank_counts[@]}"; do
    ((count > 1)) || continue
    set_launcher "$count"
    add_part "$1, $count ranks" "${launcher[@]}" "$program" bench "$1" "${select_rows[@]}" \
      --variant "$2"
  done
}
add_parts_over_ranks matmul 'mpi_rows,summa,summa_overlap'
add_parts_over_ranks sgd_update 'all_reduce_update*,sharded_update*,mpi_reduce_scatter*'

if [[ -n $all_reduce ]] && ! command -v mpirun >/dev/null; then
  say "all_reduce: SKIPPED, mpirun is not on this machine (Open MPI)"
elif [[ -n $all_reduce ]]; then
  for count in "${rank_counts[@]}"; do
    set_launcher "$count"
    add_part "all_reduce, $count ranks" \
      "${launcher[@]}" "$program" bench all_reduce "${select_rows[@]}"
  done
fi

if [[ -z ${PRIMITIVE:-} ]]; then
  networks=(mlp mnist_cnn cifar_cnn)
  modes=(synchronous local_sgd token_ring) # of trainings over ranks
  short=
  if [[ $suite == quick ]]; then
    networks=(mlp) modes=(synchronous) short=1
  fi
  rungs=(serial simd openmp best vendor)
  uses=()
  for rung in "${rungs[@]}"; do uses+=(--use "$rung"); done
  for network in "${networks[@]}"; do
    add_part "training steps of $network: ${rungs[*]}" \
      "$program" step --network "$network" "${uses[@]}" --threads "$threads"
  done
  rank_counts_of_steps=()
  if command -v mpirun >/dev/null; then
    for count in "${rank_counts[@]}"; do ((count == 1)) || rank_counts_of_steps+=("$count"); done
  fi
  if [[ -z $short ]]; then
    if ((cores > 1)); then
      sweep=1
      for ((count = 2; count <= cores; count *= 2)); do sweep+=,$count; done
      add_part "thread sweep of mnist_cnn: $sweep threads per operation, 1 and 2 operations at once" \
        "$program" step --network mnist_cnn --use openmp --threads "$sweep" --inter 1,2
    fi
    # Data parallel: every rank takes its own samples, and the gradients are averaged.
    for count in "${rank_counts_of_steps[@]}"; do
      set_launcher "$count"
      add_part "training steps of mnist_cnn, $count ranks: three ways to average the gradients" \
        "${launcher[@]}" "$program" step --network mnist_cnn --threads 1 --use best \
        --use best,all_reduce=mpi_allreduce --use best,all_reduce=gather_broadcast
    done
  fi
  # `make compare-modes` in short: one process, threads, and ranks with and without waiting.
  train=(train --network mlp --epochs 2)
  add_part "training of mlp, 2 epochs" "$program" "${train[@]}"
  if [[ -z $short ]] && ((cores > 1)); then
    add_part "training of mlp, 2 epochs: hogwild, $cores threads" \
      "$program" "${train[@]}" --mode hogwild --replicas "$cores" --threads 1
  fi
  for count in "${rank_counts_of_steps[@]}"; do
    set_launcher "$count"
    for mode in "${modes[@]}"; do
      add_part "training of mlp, 2 epochs: $mode, $count ranks" \
        "${launcher[@]}" "$program" "${train[@]}" --mode "$mode" --threads 1
    done
  done
fi
((${#commands[@]})) || die "Nothing to measure."

# --- running them --------------------------------------------------------------------------------

resume_command() {
  resume_text bench PRIMITIVE VARIANT SUITE THREADS RANKS BUDGET OVERSUBSCRIBE
}
clean_up() { :; }
source scripts/run_parts.sh

say "Run folder: $run"
for ((i = 0; i < ${#commands[@]}; ++i)); do
  say "[$((i + 1))/${#commands[@]}] ${titles[i]} (after $(elapsed))"
  declare -a command=()
  eval "command=(${commands[i]})"
  run_to_end "${command[@]}" --out "$run" "${resume[@]}"
  # A rank that crashes ends them all. The variant gets a failed row, and the others go on.
  for ((restarts = 0; restarts < 20; ++restarts)); do
    [[ -e $run/.work ]] || break
    show_end_of_log
    run_to_end "${command[@]}" --out "$run" --resume --after-crash
  done
  if ((status == 0)); then
    :
  elif ((${#resume[@]} == 0)) && { ((status == 2)) || [[ -n $held_a_run || ! -d $run ]]; }; then
    nothing_measured
  elif ((status == 2)) && [[ -n ${VARIANT:-} && -z ${PRIMITIVE:-} ]] &&
    [[ ${titles[i]} == all_reduce* ]]; then
    say "all_reduce: SKIPPED, it has no variant $VARIANT"
  else
    fail "${titles[i]}"
  fi
  resume=(--resume)
done

finish table
