# Sourced by bench_network.sh and compare_modes.sh: the hosts on which mpirun of Open MPI starts ranks.
# Without HOSTFILE they are network namespaces of this machine, joined by a bridge, and tc limits
# the rate of each link both ways. With HOSTFILE they are the machines of that file, reached by ssh.
# Variables: HOSTS RATE LATENCY HOSTFILE. Defined by the script: usage, which ends it.
#   read_network   checks the variables
#   need_mpirun    checks mpirun
#   choose_hosts   sets `launcher`, the mpirun; `hosts`, their number; `network`, the same in words
#   make_hosts     makes the namespaces; remove_hosts ends them
#   place_ranks N  sets `where`, the options of mpirun that place N ranks on each host
# shellcheck shell=bash disable=SC2034,SC2154

read_network() {
  hosts=${HOSTS:-4}
  rate=${RATE:-1gbit}
  latency=${LATENCY:-0ms}
  [[ $hosts =~ ^([2-9]|[1-5][0-9]|6[0-4])$ ]] ||
    usage "HOSTS=$hosts: expected a whole number from 2 to 64"
  [[ $rate =~ ^([1-9][0-9]{0,4})([kmg])bit$ ]] ||
    usage "RATE=$rate: expected a rate such as 1gbit or 100mbit"
  local unit
  case ${BASH_REMATCH[2]} in k) unit=1000 ;; m) unit=1000000 ;; g) unit=1000000000 ;; esac
  bytes_per_ms=$((BASH_REMATCH[1] * unit / 8000))
  [[ $latency =~ ^(0|[1-9][0-9]{0,5})(us|ms)$ ]] ||
    usage "LATENCY=$latency: expected a time such as 1ms or 50us"
  latency_us=${BASH_REMATCH[1]}
  [[ $latency != *ms ]] || latency_us=$((latency_us * 1000))
}

need_mpirun() {
  command -v mpirun >/dev/null ||
    usage "mpirun is not on this machine (Open MPI; package openmpi-bin)"
  [[ $(mpirun --version 2>/dev/null) == *"Open MPI"* ]] ||
    usage "$(command -v mpirun) is not Open MPI's, whose options this script uses"
}

# --- settings of Open MPI ------------------------------------------------------------------------

# A value that is set already, such as OMPI_MCA_btl_tcp_flags=send,put, stays.
mca() { # NAME VALUE
  local name=OMPI_MCA_$1
  export "$name=${!name:-$2}"
}

set_message_buffers() {
  # By default the receiver of a long message asks for it (put), on the connection that carries its
  # own data. If two ranks exchange vectors, the request of one waits behind the whole vector of the
  # other, and the link works one way at a time. Fragments of 128 KiB let it through ...
  mca btl_tcp_flags send
  # ... if the socket does not take the whole vector either, as the kernel's own choice, up to 4 MiB,
  # does. The buffer needs what is on its way: a millisecond and the latency both ways.
  if [[ -z ${HOSTFILE:-} || -n ${RATE:-} ]]; then
    local buffer=$((bytes_per_ms * (1000 + 2 * latency_us) / 1000))
    mca btl_tcp_sndbuf $((buffer < 131072 ? 131072 : buffer))
  fi
}

choose_hosts() {
  set_message_buffers
  if [[ -n ${HOSTFILE:-} ]]; then
    launcher=(setpriv --pdeathsig TERM mpirun --hostfile "$HOSTFILE")
    [[ -r $HOSTFILE ]] || usage "HOSTFILE=$HOSTFILE: no such file"
    hosts=$(grep -cvE '^[[:space:]]*(#|$)' "$HOSTFILE") || usage "HOSTFILE=$HOSTFILE lists no host"
    network="$hosts hosts, host file $(basename "$HOSTFILE")"
    return
  fi
  local tool
  for tool in ip tc; do
    command -v $tool >/dev/null || usage "$tool is not on this machine (package iproute2)"
  done
  for tool in unshare nsenter setpriv; do
    command -v $tool >/dev/null || usage "$tool is not on this machine (package util-linux)"
  done
  network="$hosts hosts, $rate, latency $latency, network namespaces"
  mca mpi_yield_when_idle 1 # the ranks share the cores
  mca plm_rsh_agent "$root/scripts/network_agent.sh"
  mca orte_tmpdir_base /dev/shm
  mca btl vader,tcp,self
  mca oob_tcp_if_include "$subnet.0/24"
  mca btl_tcp_if_include "$subnet.0/24"
  launcher=(setpriv --pdeathsig KILL mpirun --bind-to none)
}

place_ranks() { # COUNT
  where=(--map-by "ppr:$1:node")
  if [[ -z ${HOSTFILE:-} ]]; then
    local i
    where+=(--host "$(for ((i = 1; i <= hosts; ++i)); do printf 'h%d:%d,' "$i" "$1"; done)")
  fi
}

# --- network namespaces --------------------------------------------------------------------------

subnet=10.77.0
holders=()
new_user=()
enter=()

# A namespace without a name lasts as long as a process in it. Those that hold ours end with this
# script, however it ends: nothing can be left over.
to_hold='mount -t tmpfs tmpfs /dev/shm && echo ready &&
  exec setpriv --pdeathsig KILL sleep infinity'
hold() { # COMMAND…: starts it and waits until it prints "ready"; sets `holder`
  local answer
  exec 3< <(exec "$@" 2>&1)
  holder=$!
  holders+=("$holder")
  read -r answer <&3 || answer="$1 ended"
  exec 3<&-
  [[ $answer == ready ]] ||
    usage "network namespaces need root, or a system that lets users make them ($answer)"
}

remove_hosts() {
  ((${#holders[@]} == 0)) || kill -KILL "${holders[@]}" 2>/dev/null || true
}

on() { # HOLDER COMMAND…: in the network of that host
  local holder=$1
  shift
  nsenter --target "$holder" "${enter[@]}" --net -- "$@" ||
    usage "the network cannot be made: \`$*\` failed; it needs a kernel with veth, bridge," \
      "sch_tbf and, for LATENCY, sch_netem"
}

limit_rate() { # HOLDER DEVICE
  # tbf lets this many bytes pass at once: 2 ms. With 64 KiB, the largest packet before segmentation,
  # a link reaches half its rate.
  local burst=$((2 * bytes_per_ms < 131072 ? 131072 : 2 * bytes_per_ms))
  on "$1" tc qdisc add dev "$2" root handle 1: tbf rate "$rate" burst "$burst" latency 50ms
}

make_hosts() {
  [[ -z ${HOSTFILE:-} ]] || return 0
  local i host switch
  if (($(id -u) != 0)); then
    new_user=(--user --map-root-user)
    enter=(--user --preserve-credentials)
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 # root of that namespace only
  fi
  hold unshare "${new_user[@]}" --net --mount sh -c "$to_hold"
  switch=$holder
  launcher=(nsenter --target "$switch" "${enter[@]}" --net --mount --wd -- "${launcher[@]}")
  # Every start of a rank looks up names. Without this file, or with a name server that cannot be
  # reached, it waits for seconds.
  # shellcheck disable=SC2016
  nsenter --target "$switch" "${enter[@]}" --mount -- sh -c '
    { echo 127.0.0.1 localhost
      echo "$1.254 $(hostname)"
      for i in $(seq "$2"); do echo "$1.$i h$i"; done
    } >/dev/shm/hosts
    mount --bind /dev/shm/hosts /etc/hosts
    [ ! -e /etc/resolv.conf ] || mount --bind /dev/null /etc/resolv.conf' sh "$subnet" "$hosts"
  on "$switch" ip link set lo up
  on "$switch" ip link add br0 type bridge
  on "$switch" ip addr add "$subnet.254/24" dev br0
  on "$switch" ip link set br0 up
  for ((i = 1; i <= hosts; ++i)); do
    hold nsenter --target "$switch" "${enter[@]}" --net --mount --wd -- \
      unshare --net --uts --mount sh -c "echo \$\$ >/dev/shm/h$i && hostname h$i && $to_hold"
    host=$holder
    on "$switch" ip link add "p$i" type veth peer name eth0 netns "$host"
    on "$switch" ip link set "p$i" master br0 up
    on "$host" ip addr add "$subnet.$i/24" dev eth0
    on "$host" ip link set lo up
    on "$host" ip link set eth0 up
    limit_rate "$host" eth0
    limit_rate "$switch" "p$i"
    ((latency_us == 0)) ||
      on "$host" tc qdisc add dev eth0 parent 1:1 handle 2: netem delay "$latency" limit 100000
  done
}
