#!/usr/bin/env bash
# Measures all_reduce between hosts: mpirun of Open MPI starts the ranks, TCP carries the messages.
# Without HOSTFILE the hosts are network namespaces of this machine; with HOSTFILE they are the
# machines of that host file (scripts/hosts.sh). Writes an ordinary run folder and ends with a table
# of the fastest rungs.
# Variables: HOSTS RATE LATENCY RANKS_PER_HOST HOSTFILE SUITE VARIANT BUDGET OUT RESUME BUILD
# (see make help and docs/cluster.md).
set -euo pipefail
source "$(dirname "$0")/common.sh"
allow_mpi_as_root

usage() {
  printf 'make bench-network: %s\n' "$*" >&2
  exit 2
}
source scripts/hosts.sh

program=$(realpath -m "${BUILD:-build}")/stepladder
run=${OUT:-results/local/network-$(date -u +%Y-%m-%dT%H-%M-%SZ)}
ranks_per_host=${RANKS_PER_HOST:-1}
IFS=', ' read -ra rank_counts <<<"$ranks_per_host"

read_network
((${#rank_counts[@]})) || usage "RANKS_PER_HOST is empty: expected whole numbers such as 1,2"
for count in "${rank_counts[@]}"; do
  [[ $count =~ ^[1-9][0-9]{0,2}$ ]] ||
    usage "RANKS_PER_HOST=$ranks_per_host: expected whole numbers such as 1,2"
done
need_mpirun
[[ -x $program ]] || usage "$program is missing; make build"

select_rows=(--suite "${SUITE:-network}" --direction sum) # the mean sends the same messages
[[ -z ${VARIANT:-} ]] || select_rows+=(--variant "$VARIANT")
[[ -z ${BUDGET:-} ]] || select_rows+=(--budget "$BUDGET")
choose_hosts

resume_command() {
  resume_text bench-network HOSTS RATE LATENCY RANKS_PER_HOST HOSTFILE SUITE VARIANT BUDGET
}
clean_up() { remove_hosts; }
source scripts/run_parts.sh

make_hosts
say "Network: $network"
say "Run folder: $run"
part=0
for count in "${rank_counts[@]}"; do
  say "[$((++part))/${#rank_counts[@]}] all_reduce, ranks per host: $count (after $(elapsed))"
  place_ranks "$count"
  run_to_end "${launcher[@]}" "${where[@]}" -x "STEPLADDER_NETWORK=$network" \
    "$program" bench all_reduce "${select_rows[@]}" --out "$run" "${resume[@]}"
  if ((status != 0)); then
    if [[ ! -e $run/summary.csv ]] || [[ -n $held_a_run && ${#resume[@]} == 0 ]]; then
      nothing_measured
    fi
    ((status == 1)) || { # a rank or mpirun was killed
      show_end_of_log
      stopped "mpirun ended with status $status." >&2
      exit 1
    }
    fail "ranks per host: $count"
  fi
  resume=(--resume)
done

remove_hosts
finish network
