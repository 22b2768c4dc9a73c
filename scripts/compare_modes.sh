#!/usr/bin/env bash
# Trains a network in several modes, once per seed, into one run folder, and compares them: time to a
# held-out accuracy, samples/s, shares of computing, communication and waiting. All modes train with
# one seed before the next seed begins, so that a drift of the machine affects all of them. `single`,
# one process, is always among them. With HOSTS or HOSTFILE the ranks are on several hosts
# (scripts/hosts.sh). finished.txt in the run folder lists the trainings that RESUME=1 leaves out.
# Variables: NETWORK RANKS MODES SEEDS EPOCHS TARGET BATCH BATCH_PER_RANK OPTIMIZER LEARNING_RATE
# EVALUATE_EVERY THREADS USE DATA HOSTS RATE LATENCY HOSTFILE OUT RESUME BUILD (see make help).
set -euo pipefail
source "$(dirname "$0")/common.sh"
allow_mpi_as_root

usage() {
  printf 'make compare-modes: %s\n' "$*" >&2
  exit 2
}
source scripts/hosts.sh

default_modes='synchronous; synchronous,overlap=yes; synchronous,compressed=one_bit; synchronous,compressed=top_k; sharded
  parameter_server; token_ring; downpour; ssp,bound=2; local_sgd,every=8; hogwild
  threads_over_samples; actors_learner; model_parallel; pipeline; token_ring/parameter_server'
on_hosts=${HOSTS:-}${HOSTFILE:-}

program=$(realpath -m "${BUILD:-build}")/stepladder
run=${OUT:-results/local/modes-$(date -u +%Y-%m-%dT%H-%M-%SZ)}
network_name=${NETWORK:-mnist_cnn}
seeds=${SEEDS:-1,2,3,4,5}
epochs=${EPOCHS:-10}
target=${TARGET:-0.97}
evaluate_every=${EVALUATE_EVERY:-1000}
threads=${THREADS:-1}
IFS=', ' read -ra seed_list <<<"$seeds"

whole_number() { # NAME VALUE
  [[ $2 =~ ^[1-9][0-9]{0,8}$ ]] || usage "$1=$2: expected a whole number from 1"
}
whole_number EPOCHS "$epochs"
whole_number EVALUATE_EVERY "$evaluate_every"
whole_number THREADS "$threads"
[[ -z ${BATCH:-} ]] || whole_number BATCH "$BATCH"
[[ $target =~ ^0?\.[0-9]*[1-9][0-9]*$ ]] ||
  usage "TARGET=$target: expected an accuracy between 0 and 1, such as 0.97"
((${#seed_list[@]})) || usage "SEEDS is empty: expected whole numbers such as 1,2,3"
for seed in "${seed_list[@]}"; do
  [[ $seed =~ ^[0-9]{1,18}$ ]] || usage "SEEDS=$seeds: expected whole numbers such as 1,2,3"
done
[[ -x $program ]] || usage "$program is missing; make build"

# --- modes ---------------------------------------------------------------------------------------

of_one_process() { # MODE: its replicas are threads
  [[ ${1%%,*} =~ ^(hogwild|threads_over_samples|actors_learner)$ ]]
}

divides_batches() { # MODE: the others take whole batches anyway
  [[ ${1%%,*} =~ ^(synchronous|sharded|parameter_server|ssp|local_sgd|threads_over_samples)$ ]]
}

modes=(single)
left_out=()
over_ranks=
IFS=';' read -ra wanted <<<"$(tr -d ' ' <<<"${MODES:-$default_modes}" | tr '\n' ';')"
for mode in "${wanted[@]}"; do
  [[ -n $mode && " ${modes[*]} " != *" $mode "* ]] || continue
  if of_one_process "$mode"; then
    [[ -z $on_hosts ]] || {
      left_out+=("$mode")
      continue
    }
  else
    over_ranks=1
  fi
  modes+=("$mode")
done

# --- ranks and hosts -----------------------------------------------------------------------------

hosts=
if [[ -n $on_hosts ]]; then
  read_network
  need_mpirun
  choose_hosts
elif [[ -n $over_ranks ]]; then
  need_mpirun
fi
cores=$(core_count)
ranks=${RANKS:-${hosts:-4}}
most=0
IFS=', ' read -ra rank_counts <<<"$ranks"
((${#rank_counts[@]})) || usage "RANKS is empty: expected whole numbers such as 4 or 2,4"
for count in "${rank_counts[@]}"; do
  [[ $count =~ ^[1-9][0-9]{0,3}$ ]] || usage "RANKS=$ranks: expected whole numbers such as 4 or 2,4"
  ((count == 1 || count % ${hosts:-1} == 0)) ||
    usage "RANKS=$ranks: expected multiples of the $hosts hosts"
  ((count <= most)) || most=$count
done

# Sets `start`, the command that starts the program on that many ranks.
start_ranks() { # COUNT
  if [[ -n $on_hosts ]]; then
    if (($1 == 1)); then
      where=(-np 1)
      [[ -n ${HOSTFILE:-} ]] || where+=(--host h1:1)
    else
      place_ranks $(($1 / hosts))
    fi
    start=("${launcher[@]}" "${where[@]}" -x "STEPLADDER_NETWORK=$network" "$program")
  elif (($1 == 1)); then
    start=("$program")
  else
    start=(mpirun -np "$1" --bind-to none --oversubscribe)
    # Ranks that share a core must not wait busily for each other.
    (($1 * threads <= cores)) || start+=(--mca mpi_yield_when_idle 1)
    start+=("$program")
  fi
}

options=(--network "$network_name" --epochs "$epochs" --evaluate-every "$evaluate_every"
  --threads "$threads")
[[ -z ${BATCH:-} ]] || options+=(--batch "$BATCH")
[[ -z ${OPTIMIZER:-} ]] || options+=(--optimizer "$OPTIMIZER")
[[ -z ${LEARNING_RATE:-} ]] || options+=(--learning-rate "$LEARNING_RATE")
[[ -z ${USE:-} ]] || options+=(--use "$USE")
[[ -z ${DATA:-} ]] || options+=(--data "$DATA")

# --- the trainings -------------------------------------------------------------------------------

# Each is a mode, a number of ranks and a seed. One rank is `single`.
trainings=()
for seed in "${seed_list[@]}"; do
  for mode in "${modes[@]}"; do
    for count in "${rank_counts[@]}"; do
      if [[ $mode == single ]]; then
        trainings+=("$mode 1 $seed")
        break
      fi
      ((count == 1)) || trainings+=("$mode $count $seed")
    done
  done
done

resume_command() {
  resume_text compare-modes NETWORK RANKS MODES SEEDS EPOCHS TARGET BATCH BATCH_PER_RANK \
    OPTIMIZER LEARNING_RATE EVALUATE_EVERY THREADS USE DATA HOSTS RATE LATENCY HOSTFILE
}
clean_up() { remove_hosts; }
source scripts/run_parts.sh

if [[ -n $on_hosts ]]; then
  make_hosts
  say "Network: $network"
fi
((${#left_out[@]} == 0)) || say "Left out, modes of one process: ${left_out[*]}"
((most * threads <= cores)) || [[ -n ${HOSTFILE:-} ]] ||
  say "$most ranks of $threads thread(s) share $cores cores: mpirun --oversubscribe"
say "Run folder: $run"

finished=0
declare -A refused # modes that the program does not take on that many ranks
for ((i = 0; i < ${#trainings[@]}; ++i)); do
  read -r mode count seed <<<"${trainings[i]}"
  arguments=(train --mode "$mode" --seed "$seed" "${options[@]}")
  if of_one_process "$mode"; then
    arguments+=(--replicas "$count")
    start_ranks 1
  else
    start_ranks "$count"
  fi
  [[ -z ${BATCH_PER_RANK:-} ]] || ! divides_batches "$mode" || arguments+=(--batch-per-rank)
  line="$count ranks on ${hosts:-1} hosts: ${arguments[*]}"
  if [[ -n ${resume[*]} ]] && grep -qxF -- "$line" "$run/finished.txt" 2>/dev/null; then
    finished=$((finished + 1))
    continue
  fi
  [[ -z ${refused["$mode $count"]:-} ]] || continue
  title="seed $seed: $mode"
  [[ $mode == single ]] || title+=", $count ranks"
  say "[$((i + 1))/${#trainings[@]}] $title (after $(elapsed))"
  run_to_end "${start[@]}" "${arguments[@]}" --out "$run" "${resume[@]}"
  if ((status == 0)); then
    say "$line" >>"$run/finished.txt"
  elif ((${#resume[@]} == 0)) && { ((status == 2)) || [[ -n $held_a_run || ! -d $run ]]; }; then
    nothing_measured
  else
    ((status != 2)) || refused["$mode $count"]=1
    fail "$title"
  fi
  resume=(--resume)
done
((finished == 0)) || say "$finished of ${#trainings[@]} trainings were finished before."

remove_hosts
finish modes --target "$target"
