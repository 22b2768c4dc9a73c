#!/bin/sh
# network_agent.sh HOST COMMAND…: what mpirun starts in place of ssh. Runs the command in the
# namespaces of that host; hosts.py left the process that holds them in /dev/shm/HOST.
# If mpirun dies, so does the command with all that it has started: it is the first process of a
# PID namespace.
holder=$(cat "/dev/shm/$1") || exit 1
shift
exec nsenter --target "$holder" --net --uts --mount --wd -- setpriv --pdeathsig KILL \
  unshare --pid --fork --kill-child --mount-proc sh -c "$*"
