"""The hosts on which mpirun of Open MPI starts ranks, for make bench-network and compare-modes.

Without HOSTFILE they are network namespaces of this machine, joined by a bridge, and tc limits the
rate of each link both ways. With HOSTFILE they are the machines of that file, reached by ssh.
Variables: HOSTS RATE LATENCY HOSTFILE.
"""

import os
import re
import shutil
import socket
import subprocess
from pathlib import Path

import runner
from runner import Refused, variable

SUBNET = "10.77.0"
UNITS = {"k": 1000, "m": 1000_000, "g": 1000_000_000}
TOOLS = {"ip": "iproute2", "tc": "iproute2", "unshare": "util-linux", "nsenter": "util-linux",
         "setpriv": "util-linux"}
SMALLEST_BUFFER = 131072
# A namespace without a name lasts as long as a process in it. Those that hold ours end with the
# runner, however it ends: nothing can be left over.
TO_HOLD = ("mount -t tmpfs tmpfs /dev/shm && echo ready && "
           "exec setpriv --pdeathsig KILL sleep infinity")
# Every start of a rank looks up names. Without this file, or with a name server that cannot be
# reached, it waits for seconds.
NAMES = """
{ echo 127.0.0.1 localhost
  echo "$1.254 $2"
  for i in $(seq "$3"); do echo "$1.$i h$i"; done
} >/dev/shm/hosts
mount --bind /dev/shm/hosts /etc/hosts
[ ! -e /etc/resolv.conf ] || mount --bind /dev/null /etc/resolv.conf"""


def need_mpirun():
    if not shutil.which("mpirun"):
        raise Refused("mpirun is not on this machine (Open MPI; package openmpi-bin)")
    version = subprocess.run(["mpirun", "--version"], text=True, capture_output=True, check=False)
    if "Open MPI" not in version.stdout:
        raise Refused(f"{shutil.which('mpirun')} is not Open MPI's, whose options this script uses")


def mca(name, value):
    """A setting of Open MPI. One that is set already, such as OMPI_MCA_btl, stays."""
    os.environ[f"OMPI_MCA_{name}"] = variable(f"OMPI_MCA_{name}", str(value))


class Hosts:
    """`launcher` is the mpirun, `count` the number of hosts, `network` the same in words."""

    def __init__(self):
        """Checks the variables."""
        self.file = variable("HOSTFILE")
        hosts, self.rate = variable("HOSTS", "4"), variable("RATE", "1gbit")
        self.latency = variable("LATENCY", "0ms")
        if not re.fullmatch("[2-9]|[1-5][0-9]|6[0-4]", hosts):
            raise Refused(f"HOSTS={hosts}: expected a whole number from 2 to 64")
        rate = re.fullmatch("([1-9][0-9]{0,4})([kmg])bit", self.rate)
        if not rate:
            raise Refused(f"RATE={self.rate}: expected a rate such as 1gbit or 100mbit")
        latency = re.fullmatch("(0|[1-9][0-9]{0,5})(us|ms)", self.latency)
        if not latency:
            raise Refused(f"LATENCY={self.latency}: expected a time such as 1ms or 50us")
        self.count = int(hosts)
        self.bytes_per_ms = int(rate[1]) * UNITS[rate[2]] // 8000
        self.latency_us = int(latency[1]) * (1000 if latency[2] == "ms" else 1)
        self.holders, self.new_user, self.enter = [], [], []

    def choose(self):
        self.set_message_buffers()
        if self.file:
            self.launcher = ["setpriv", "--pdeathsig", "TERM", "mpirun", "--hostfile", self.file]
            if not os.access(self.file, os.R_OK):
                raise Refused(f"HOSTFILE={self.file}: no such file")
            lines = [line.split() for line in Path(self.file).read_text().splitlines()]
            self.count = sum(1 for line in lines if line and not line[0].startswith("#"))
            if not self.count:
                raise Refused(f"HOSTFILE={self.file} lists no host")
            self.network = f"{self.count} hosts, host file {Path(self.file).name}"
            return
        for tool, package in TOOLS.items():
            if not shutil.which(tool):
                raise Refused(f"{tool} is not on this machine (package {package})")
        self.network = (f"{self.count} hosts, {self.rate}, latency {self.latency}, "
                        "network namespaces")
        mca("mpi_yield_when_idle", 1)  # the ranks share the cores
        mca("plm_rsh_agent", runner.ROOT / "scripts/network_agent.sh")
        mca("orte_tmpdir_base", "/dev/shm")
        mca("btl", "vader,tcp,self")
        mca("oob_tcp_if_include", f"{SUBNET}.0/24")
        mca("btl_tcp_if_include", f"{SUBNET}.0/24")
        self.launcher = ["setpriv", "--pdeathsig", "KILL", "mpirun", "--bind-to", "none"]

    def set_message_buffers(self):
        # By default the receiver of a long message asks for it (put), on the connection that
        # carries its own data. If two ranks exchange vectors, the request of one waits behind the
        # whole vector of the other, and the link works one way at a time. Fragments of 128 KiB let
        # it through ...
        mca("btl_tcp_flags", "send")
        # ... if the socket does not take the whole vector either, as the kernel's own choice, up to
        # 4 MiB, does. The buffer needs what is on its way: a millisecond and the latency both ways.
        if not self.file or variable("RATE"):
            buffer = self.bytes_per_ms * (1000 + 2 * self.latency_us) // 1000
            mca("btl_tcp_sndbuf", max(buffer, SMALLEST_BUFFER))

    def start(self, ranks_per_host, program):
        """The command that starts this many ranks of the program on each host."""
        placed = ["--map-by", f"ppr:{ranks_per_host}:node"]
        if not self.file:
            slots = "".join(f"h{i}:{ranks_per_host}," for i in range(1, self.count + 1))
            placed += ["--host", slots]
        return self.with_network(placed, program)

    def start_one(self, program):
        """The command that starts one rank on one of the hosts."""
        return self.with_network(["-np", "1", *([] if self.file else ["--host", "h1:1"])], program)

    def with_network(self, placed, program):
        return [*self.launcher, *placed, "-x", f"STEPLADDER_NETWORK={self.network}", program]

    # --- network namespaces ----------------------------------------------------------------------

    def hold(self, command):
        """Starts the command and waits until it prints "ready"; returns its process."""
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True)
        self.holders.append(process)
        answer = process.stdout.readline().rstrip("\n") or f"{command[0]} ended"
        process.stdout.close()
        if answer != "ready":
            raise Refused("network namespaces need root, or a system that lets users make them "
                          f"({answer})")
        return str(process.pid)

    def remove(self):
        for holder in self.holders:
            holder.kill()
        for holder in self.holders:
            holder.wait()
        self.holders = []

    def inside(self, holder, *namespaces):
        return ["nsenter", "--target", holder, *self.enter, *namespaces, "--"]

    def on(self, holder, line):
        """Runs a line of words in the network of that host."""
        if subprocess.run([*self.inside(holder, "--net"), *line.split()], check=False).returncode:
            raise Refused(f"the network cannot be made: `{line}` failed; it needs a kernel with "
                          "veth, bridge, sch_tbf and, for LATENCY, sch_netem")

    def limit_rate(self, holder, device):
        # tbf lets this many bytes pass at once: 2 ms. With 64 KiB, the largest packet before
        # segmentation, a link reaches half its rate.
        burst = max(2 * self.bytes_per_ms, SMALLEST_BUFFER)
        self.on(holder, f"tc qdisc add dev {device} root handle 1: "
                        f"tbf rate {self.rate} burst {burst} latency 50ms")

    def make(self):
        """Makes the namespaces; `remove` ends them."""
        if self.file:
            return
        if os.getuid() != 0:
            self.new_user = ["--user", "--map-root-user"]
            self.enter = ["--user", "--preserve-credentials"]
            os.environ |= {"OMPI_ALLOW_RUN_AS_ROOT": "1",  # root of that namespace only
                           "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        switch = self.hold(["unshare", *self.new_user, "--net", "--mount", "sh", "-c", TO_HOLD])
        enter = self.inside(switch, "--net", "--mount", "--wd")
        self.launcher = [*enter, *self.launcher]
        subprocess.run([*self.inside(switch, "--mount"), "sh", "-c", NAMES, "sh", SUBNET,
                        socket.gethostname(), str(self.count)], check=True)
        for line in ("ip link set lo up", "ip link add br0 type bridge",
                     f"ip addr add {SUBNET}.254/24 dev br0", "ip link set br0 up"):
            self.on(switch, line)
        for i in range(1, self.count + 1):
            host = self.hold([*enter, "unshare", "--net", "--uts", "--mount", "sh", "-c",
                              f"echo $$ >/dev/shm/h{i} && hostname h{i} && {TO_HOLD}"])
            self.on(switch, f"ip link add p{i} type veth peer name eth0 netns {host}")
            self.on(switch, f"ip link set p{i} master br0 up")
            for line in (f"ip addr add {SUBNET}.{i}/24 dev eth0", "ip link set lo up",
                         "ip link set eth0 up"):
                self.on(host, line)
            self.limit_rate(host, "eth0")
            self.limit_rate(switch, f"p{i}")
            if self.latency_us:
                self.on(host, "tc qdisc add dev eth0 parent 1:1 handle 2: "
                              f"netem delay {self.latency} limit 100000")
