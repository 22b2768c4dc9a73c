"""Simulates all-reduce on clusters with SimGrid's SMPI, and predicts data-parallel training steps from it.

Environment variables, all optional:
    NODES     64,256,1024          numbers of nodes; one rank on each
    NETWORK   flat-10g,fattree-100g, also flat-1g, or measured:RUN: a flat network with the measured
              links of the run in that folder, whose all_reduce rows are then simulated and compared
    VARIANT   *                    rungs; patterns, separated by commas
    PROBLEM   mnist_cnn,alexnet    names in bench/suites/all_reduce.csv
    STEP_RUN  results/<machine>    the run whose step.csv has the compute time of a training step, and whose
                                   ceilings.json has the rates of additions and copies
    LIMIT     120                  CPU seconds of one simulation; longer ones are skipped
    OUT       results/local/simulation-<time>;  RESUME=1 resumes the run in that folder
    BUILD     build                the build folder
Writes simulation.csv, scaling.csv, columns.json and simulation.json. Exit status: 2 for wrong arguments, or without
SimGrid; 1 if a simulation failed; 130 if interrupted.
"""

import contextlib
import csv
import json
import math
import os
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from plots.data.names import is_rung  # noqa: E402

# Name, type, unit and meaning, as in columns.json; docs/results-format.md has the same tables.
SIMULATION = (
    ("platform", "text", "", "name of the simulated network"),
    ("nodes", "integer", "", "number of nodes, with one rank on each"),
    ("node_ranks", "integer", "", "consecutive ranks that two-level rungs treat as a node"),
    ("variant", "text", "", "name of the implementation"),
    ("technique", "text", "", "mpi; vendor: of the MPI library"),
    ("direction", "text", "", "sum or mean"),
    ("problem", "text", "", "name of the problem; empty: the variant cannot be simulated"),
    ("bytes", "integer", "B", "size of the vector"),
    ("verified", "text", "", "yes: exact results on all of 4, 7, 16 and 64 simulated ranks"),
    ("status", "text", "", "ok, failed, unavailable or skipped"),
    ("reason", "text", "", "why there is no time"),
    ("seconds", "number", "s", "simulated time, until the last rank has the result"),
    ("model_s", "number", "s", "time by the cost model on alpha and beta of the platform"),
    ("messages", "integer", "", "messages of all ranks; empty: the MPI library sends them"),
    ("wall_s", "number", "s", "time that the simulation took"))
SCALING = (
    ("platform", "text", "", "as in simulation.csv"),
    ("nodes", "integer", "", "as in simulation.csv"),
    ("variant", "text", "", "as in simulation.csv"),
    ("technique", "text", "", "as in simulation.csv"),
    ("network", "text", "", "name of the neural network"),
    ("scaling", "text", "", "weak: constant batch on each node; strong: constant global batch"),
    ("global_batch", "integer", "", "samples of a step on all nodes together"),
    ("compute_s", "number", "s", "time of a step on one node, without the all-reduce"),
    ("all_reduce_s", "number", "s", "simulated time of the all-reduce of all gradients"),
    ("step_s", "number", "s", "compute_s + all_reduce_s: nothing overlaps"),
    ("efficiency", "number", "", "compute_s / step_s"))
SIMULATION_COLUMNS = [column[0] for column in SIMULATION]
SCALING_COLUMNS = [column[0] for column in SCALING]

DEFAULT_RUN = ROOT / "results/amd-epyc-zen4-2core"
TYPICAL_STEPS = ROOT / "simulation/steps.csv"  # of networks that the run has no steps of
STRONG_NODES = 64  # strong scaling: the global batch is that of so many nodes
VERIFIED_RANKS = (4, 7, 16, 64)
LIBRARY = "mpi_allreduce"


class UsageError(Exception):
    """A sentence for the user."""


# --- platforms -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Platform:
    """A cluster of equal nodes. A message of n bytes takes alpha + n beta seconds on idle links."""

    name: str
    alpha: float
    beta: float
    leaf: int = 0  # fat tree: nodes of a leaf switch, with half as many links upwards (2:1); 0: one switch
    arithmetic: dict = field(default_factory=dict, hash=False)  # add, copy: points [bytes, seconds]

    @property
    def near_alpha(self):
        """alpha between the nodes of a leaf switch: two links in place of four."""
        return self.alpha / 2 if self.leaf else self.alpha

    def node_ranks(self, nodes):
        """The group size of two-level rungs: a leaf switch, or the divisor nearest to the square root."""
        if self.leaf and nodes > self.leaf:
            return self.leaf
        root = math.sqrt(nodes)
        divisors = [g for g in range(2, nodes) if nodes % g == 0]
        return min(divisors, key=lambda g: abs(math.log(g / root))) if divisors else round(root) if nodes > 3 else 0

    def xml(self, nodes):
        links = 4 if self.leaf else 2  # on the way from one node to another
        topology = ""
        if self.leaf:
            leaves = -(-nodes // self.leaf)
            nodes = leaves * self.leaf  # the nodes of the next larger tree; those that are left over are idle
            topology = f' topology="FAT_TREE" topo_parameters="2;{self.leaf},{leaves};1,{self.leaf // 2};1,1"'
        return ('<?xml version="1.0"?>\n<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n'
                '<platform version="4.1">\n'
                f'<cluster id="cluster" prefix="node-" suffix="" radical="0-{nodes - 1}" speed="1Gf" '
                f'bw="{1 / self.beta:.9g}Bps" lat="{self.alpha / links:.9g}s" sharing_policy="SPLITDUPLEX"{topology}/>\n'
                '</platform>\n')


PLATFORMS = {p.name: p for p in (
    Platform("flat-1g", 50e-6, 8e-9),
    Platform("flat-10g", 50e-6, 0.8e-9),
    Platform("fattree-100g", 4e-6, 0.08e-9, leaf=32))}


def memory_arithmetic(run):
    """The time of additions and copies on one core, in memory, from the measured ceilings of a run: an addition of
    n bytes is three streams of n bytes, a copy two."""
    path = run / "ceilings.json"
    try:
        rates = {c["name"]: 1e9 * c["value"] for c in json.loads(path.read_text())["ceilings"]
                 if c["threads"] == 1 and c["level"] == "DRAM"}
        return {"add": [[0, 0], [1e9, 3e9 / rates["stream_triad"]]], "copy": [[0, 0], [1e9, 2e9 / rates["stream_copy"]]]}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"STEP_RUN={run}: ceilings.json cannot be used ({error})") from None


def alpha_and_beta(points):
    """alpha from the shortest message, beta from the two longest: a link that limits its rate lets a burst pass, so
    that messages between these are faster than the line."""
    if len(points) < 2 or points[-1][0] <= points[-2][0]:
        raise UsageError("links.json: the links are measured at fewer than two lengths")
    (size, seconds), (longer_size, longer_seconds) = points[-2:]
    beta = (longer_seconds - seconds) / (longer_size - size)
    return max(points[0][1] - points[0][0] * beta, 1e-9), beta


def measured_platform(run):
    """The platform of a measured run, and its number of hosts."""
    try:
        content = json.loads((run / "links.json").read_text())
        every = content.get("links", [content])
        links = max((one for one in every if one.get("between")), key=lambda one: one.get("hosts", 0), default=None)
        if links is None:
            raise UsageError(f"{run / 'links.json'}: no links between hosts were measured")
        between = links["between"]
        alpha, beta = alpha_and_beta(between.get("shift") or between["send"])
        hosts = links.get("hosts") or 4
        arithmetic = {name: links[name] for name in ("add", "copy")}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"NETWORK=measured:{run}: links.json cannot be used ({error})") from None
    return Platform("measured", alpha, beta, arithmetic=arithmetic), hosts


# --- one simulation ------------------------------------------------------------------------------


@dataclass
class Job:
    platform: Platform
    nodes: int
    variant: str
    direction: str = "mean"
    problem: str = ""  # empty: verification
    count: int = 0

    @property
    def key(self):
        return self.platform.name, str(self.nodes), self.variant, self.direction, self.problem


# Of SimGrid. A message takes the time of its links alone, and computing none.
OPTIONS = ("smpi/bw-factor:0:1", "smpi/lat-factor:0:1", "network/crosstraffic:no", "smpi/host-speed:1Gf",
           "smpi/simulate-computation:no")
LOG = ("--log=root.thres:critical",)


def arithmetic_text(arithmetic):
    """The variable SIMULATED_ARITHMETIC (simulation/arithmetic.hpp)."""
    return arithmetic and " ".join(
        f"{name} " + " ".join(f"{size:.9g}:{seconds:.9g}" for size, seconds in arithmetic[name])
        for name in ("add", "copy"))


def crash(text, status):
    lines = [line for line in text.splitlines() if line.strip()]
    return f"SimGrid ended with status {status}: {lines[0][:200] if lines else ''}"


class Simulator:
    """Runs stepladder_smpi. Each run has a process group of its own, so that stop() ends it."""

    def __init__(self, program, folder, limit):
        self.program, self.folder, self.limit = program, Path(folder), limit
        self.lock = threading.Lock()
        self.libraries = set()  # variants of technique vendor
        self.running = set()
        self.stopped = False

    def technique(self, variant):
        return "vendor" if variant in self.libraries else "mpi"

    def stop(self):
        with self.lock:
            self.stopped = True
            for process in self.running:
                with contextlib.suppress(ProcessLookupError):  # it has just ended
                    os.killpg(process.pid, signal.SIGKILL)

    def files(self, platform, nodes):
        stem = self.folder / f"{platform.name}-{nodes}"
        with self.lock:
            if not stem.with_suffix(".xml").exists():
                stem.with_suffix(".hosts").write_text("".join(f"node-{i}\n" for i in range(nodes)))
                stem.with_suffix(".xml").write_text(platform.xml(nodes))
        return stem.with_suffix(".xml"), stem.with_suffix(".hosts")

    def execute(self, command, arithmetic, limit, memory=resource.RLIM_INFINITY):
        """Output, exit status, wall time, CPU time. The status is None if the CPU time ran out. memory: in bytes."""
        def set_limits():
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))

        environment = dict(os.environ)
        environment.pop("SIMULATED_ARITHMETIC", None)
        if arithmetic:
            environment["SIMULATED_ARITHMETIC"] = arithmetic
        started = time.monotonic()
        with tempfile.TemporaryFile("w+") as output:
            with self.lock:
                if self.stopped:
                    raise KeyboardInterrupt
                process = subprocess.Popen(
                    [*map(str, command)], stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                    env=environment, start_new_session=True, cwd=self.folder, preexec_fn=set_limits)
                self.running.add(process)
            _, status, usage = os.wait4(process.pid, 0)
            with self.lock:
                self.running.discard(process)
                process.returncode = os.waitstatus_to_exitcode(status)
                if self.stopped:
                    raise KeyboardInterrupt
            output.seek(0)
            text = output.read()
        cpu = usage.ru_utime + usage.ru_stime
        status = process.returncode
        out_of_time = status in (-signal.SIGXCPU, 128 + signal.SIGXCPU) or (status != 0 and cpu >= limit - 1)
        return text, None if out_of_time else status, time.monotonic() - started, cpu

    def run(self, platform, nodes, *arguments, arithmetic=None, options=(), limit=None):
        """Last line of the output, wall time, CPU time. The line is "" if the CPU time ran out."""
        xml, hosts = self.files(platform, nodes)
        # Rungs: a send ends with its transfer, as in the cost model. Libraries: Open MPI's choice of algorithm, and
        # SMPI's default for sends, which end at once up to 64 KiB (SimGrid 3.32 sums wrongly without, in place).
        library = any(argument in self.libraries for argument in arguments)
        options = options or (("smpi/coll-selector:ompi",) if library else ("smpi/send-is-detached-thresh:0",))
        command = ["smpirun", "-np", str(nodes), "-no-privatize", "-hostfile", hosts, "-platform", xml,
                   *LOG, *(f"--cfg={option}" for option in (
                       *OPTIONS, "contexts/guard-size:0", "contexts/stack-size:256", *options)),
                   self.program, *arguments]
        text, status, wall, cpu = self.execute(command, arithmetic_text(arithmetic), limit or self.limit)
        if status is None:
            return "", wall, cpu
        answers = [line for line in text.splitlines() if line.split(":")[0].split(" ")[0] in ("ok", "unavailable", "failed")
                   or "\t" in line]
        if arguments[0] == "list":
            return "\n".join(answers), 0, cpu
        if not answers or (status != 0 and not answers[-1].startswith("failed")):
            answers = [f"failed: {crash(text, status)}"]
        return answers[-1], wall, cpu


# --- all of them ---------------------------------------------------------------------------------


class Table:
    """A CSV file to which whole rows are appended."""

    def __init__(self, path, columns):
        self.columns = columns
        self.rows = []
        if path.exists():
            text = path.read_text()
            whole = text[:text.rfind("\n") + 1]
            reader = csv.DictReader(whole.splitlines())
            if whole and list(reader.fieldnames or ()) != list(columns):
                raise UsageError(f"{path}: its columns are not this version's")
            self.rows = list(reader)
            if whole != text:
                path.write_text(whole)
        self.file = path.open("a", newline="", buffering=1)
        if self.file.tell() == 0:
            self.file.write(",".join(columns) + "\n")

    def append(self, row):
        line = [format_value(row.get(name)) for name in self.columns]
        self.rows.append(dict(zip(self.columns, line)))
        quoted = ['"' + v.replace('"', '""') + '"' if any(c in v for c in ',"\n') else v for v in line]
        self.file.write(",".join(quoted) + "\n")


def format_value(value):
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


class Run:
    def __init__(self, simulator, table, say):
        self.simulator, self.table, self.say = simulator, table, say
        self.lock = threading.Lock()
        self.verified = {}  # variant: (yes or "", status, reason)
        self.cost = {}  # (platform, variant, direction, problem): {nodes: (messages, CPU seconds)}
        self.failed = False
        self.error = None

    def verify(self, variant):
        """Exact sums on all ranks, once for each rung; they do not depend on the network."""
        platform = PLATFORMS["flat-10g"]
        tried = []
        for ranks in VERIFIED_RANKS:
            answer, _, _ = self.simulator.run(platform, ranks, "verify", variant, platform.node_ranks(ranks),
                                             limit=120)
            if answer.startswith("unavailable"):
                tried.append(answer)
            elif answer != "ok":
                reason = answer.partition(": ")[2] or "the verification took too long"
                return "no", "failed", f"{ranks} ranks: {reason}"
        if len(tried) == len(VERIFIED_RANKS):
            return "", "unavailable", tried[0].partition(": ")[2]
        return "yes", "ok", ""

    def expected_cpu(self, job):
        """(messages, CPU seconds) from the two next smaller numbers of nodes, or None."""
        known = sorted((n, *cost) for n, cost in self.cost.get(self.series(job), {}).items() if n < job.nodes and cost[0])
        if len(known) < 2:
            return None
        (n1, m1, _), (n2, m2, cpu2) = known[-2:]
        messages = m2 * (job.nodes / n2) ** (math.log(m2 / m1) / math.log(n2 / n1))
        return messages, messages * cpu2 / m2

    @staticmethod
    def series(job):
        return job.platform.name, job.variant, job.direction, job.problem

    def simulate(self, job):
        verified, status, reason = self.verified[job.variant]
        p = job.platform
        node_ranks = p.node_ranks(job.nodes)
        row = {"platform": p.name, "nodes": job.nodes, "node_ranks": node_ranks, "variant": job.variant,
               "technique": self.simulator.technique(job.variant),
               "direction": job.direction, "problem": job.problem, "bytes": 4 * job.count, "verified": verified,
               "status": status, "reason": reason}
        with self.lock:
            expected = self.expected_cpu(job) if status == "ok" else None
        limit = self.simulator.limit
        if expected and expected[1] > 1.5 * limit:
            row |= {"status": "skipped", "reason": f"about {expected[0] / 1e6:.1f} million messages: the simulation would "
                                                   f"take {expected[1]:.0f} s (limit: {limit} s)"}
        elif status == "ok":
            answer, wall, cpu = self.simulator.run(
                p, job.nodes, "time", job.variant, job.direction, job.count, node_ranks, p.alpha, p.beta, p.near_alpha,
                p.beta, arithmetic=p.arithmetic)
            words = answer.split()
            row["wall_s"] = wall
            if not words:
                row |= {"status": "skipped", "reason": f"the simulation took more than {limit} s of CPU time"}
            elif words[0] == "ok":
                row |= {"seconds": float(words[1]), "model_s": None if words[2] == "-" else float(words[2]),
                        "messages": int(words[3]) or None}
                with self.lock:
                    self.cost.setdefault(self.series(job), {})[job.nodes] = int(words[3]), cpu
            else:
                row |= {"status": words[0].rstrip(":"), "reason": answer.partition(": ")[2]}
        return row

    def work(self, jobs, action):
        """Two at a time, in order."""
        waiting = deque(jobs)

        def worker():
            try:
                while True:
                    with self.lock:
                        if not waiting or self.error:
                            return
                        job = waiting.popleft()
                    action(job)
            except BaseException as error:  # pylint: disable=broad-except
                with self.lock:
                    self.error = self.error or error
                self.simulator.stop()

        workers = [threading.Thread(target=worker, daemon=True) for _ in range(2)]
        for thread in workers:
            thread.start()
        for thread in workers:
            while thread.is_alive():
                thread.join(0.2)
        if self.error:
            raise self.error

    def verify_all(self, variants, why_not):
        def one(variant):
            result = ("", "unavailable", why_not[variant]) if why_not[variant] else self.verify(variant)
            with self.lock:
                self.verified[variant] = result

        self.work(variants, one)
        present = {row["variant"] for row in self.table.rows}
        for variant in variants:
            verified, status, reason = self.verified[variant]
            if status == "unavailable" and variant not in present:
                self.table.append({"variant": variant, "technique": self.simulator.technique(variant),
                                   "status": status, "reason": reason})
                self.say(f"{variant}: unavailable, {reason}")
        bad = [f"{v}: {self.verified[v][2]}" for v in variants if self.verified[v][1] == "failed"]
        good = sum(self.verified[v][0] == "yes" for v in variants)
        self.say(f"{good} of {len(variants)} rungs give exact sums on {', '.join(map(str, VERIFIED_RANKS))} ranks")
        for text in bad:
            self.say(f"FAILED {text}")

    def simulate_all(self, jobs):
        total, done = len(jobs), 0

        def one(job):
            nonlocal done
            row = self.simulate(job)
            with self.lock:
                done += 1
                self.table.append(row)
                self.failed = self.failed or row["status"] == "failed"
                what = f"{row['seconds']:.6f} s" if row["status"] == "ok" else f"{row['status']}: {row['reason']}"
                self.say(f"[{done}/{total}] {row['platform']} {row['nodes']} {row['variant']} {row['problem']}: {what}")

        self.work(jobs, one)


# --- training steps ------------------------------------------------------------------------------


def network_batches():
    networks = json.loads((ROOT / "bench/networks.json").read_text())
    return {name: network["batch"] for name, network in networks.items()}


def read_csv(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def compute_times(run):
    """{network: (seconds of a step of the network's own batch, where they come from)}: the fastest measured
    step of one process on the CPU."""
    path = run / "step.csv"
    try:
        rows = read_csv(path)
        totals = [row for row in rows if (row["layer"], row["mode"], row["ranks"], row["device"]) ==
                  ("total", "single", "1", "cpu") and row["median_s"]]
        found = {}
        for row in totals:
            seconds = float(row["median_s"])
            if row["network"] not in found or seconds < found[row["network"]][0]:
                found[row["network"]] = seconds, f"{path.parent.name}/step.csv, {row['use']}, {row['threads']} threads"
    except (OSError, ValueError, KeyError) as error:
        raise UsageError(f"STEP_RUN={run}: step.csv cannot be used ({error})") from None
    batches = network_batches()
    for row in read_csv(TYPICAL_STEPS):
        name, batch = row["network"], int(row["batch"])
        found.setdefault(name, (float(row["seconds"]) * batches[name] / batch,
                                f"simulation/steps.csv, batch {batch}, multiplied by {batches[name] / batch:g}"))
    return found


def scaling_rows(rows, compute):
    """Steps of which the all-reduce begins when the last gradient is there: no overlap."""
    batches = network_batches()
    for row in rows:
        if row["status"] != "ok" or row["problem"] not in compute or row["direction"] != "mean":
            continue
        nodes, reduce, network = int(row["nodes"]), float(row["seconds"]), row["problem"]
        for scaling, factor, batch in (("weak", 1, nodes * batches[network]),
                                       ("strong", STRONG_NODES / nodes, STRONG_NODES * batches[network])):
            seconds = compute[network][0] * factor
            yield {"platform": row["platform"], "nodes": nodes, "variant": row["variant"],
                   "technique": row["technique"], "network": network,
                   "scaling": scaling, "global_batch": batch, "compute_s": seconds, "all_reduce_s": reduce,
                   "step_s": seconds + reduce, "efficiency": seconds / (seconds + reduce)}


def print_scaling(rows, say):
    weak = [row for row in rows if row["scaling"] == "weak"]
    if not weak:
        return
    say(f"\n{'platform':13}{'nodes':>6} {'network':10} {'fastest rung':22}{'all-reduce':>11}{'step':>10}{'efficiency':>11}"
        f"{LIBRARY:>15}{'strong':>8}")
    groups = {}
    for row in weak:
        groups.setdefault((row["platform"], row["network"], int(row["nodes"])), []).append(row)
    strong = {(r["platform"], r["network"], int(r["nodes"]), r["variant"]): r for r in rows if r["scaling"] == "strong"}
    lines = []
    for key in sorted(groups, key=lambda k: (k[0], k[1], k[2])):
        best = min(filter(is_rung, groups[key]), key=lambda r: float(r["step_s"]), default=None)
        if best is None:
            continue
        library = [f"{100 * float(r['efficiency']):.1f} %" for r in groups[key] if r["variant"] == LIBRARY]
        lines.append(f"{key[0]:13}{key[2]:>6} {key[1]:10} {best['variant']:22}{1e3 * float(best['all_reduce_s']):>8.2f} ms"
                     f"{float(best['step_s']):>8.3f} s{100 * float(best['efficiency']):>9.1f} %"
                     f"{library[0] if library else '-':>15}"
                     f"{100 * float(strong[(*key, best['variant'])]['efficiency']):>6.1f} %")
    for line in lines[:24]:
        say(line)
    if len(lines) > 24:
        say(f"… {len(lines) - 24} more in scaling.csv")
    say(f"Efficiency: compute / step, weak scaling; last column: strong scaling, global batch of {STRONG_NODES} nodes.")


# --- comparison with a measured run --------------------------------------------------------------


def measured_jobs(run, platform, hosts, patterns):
    try:
        rows = [row for row in read_csv(run / "summary.csv") if row["primitive"] == "all_reduce"
                and row["status"] == "ok" and row["ranks"] == str(hosts) and row.get("hosts", str(hosts)) == str(hosts)
                and matches(row["variant"], patterns)]
        jobs = {}
        for row in rows:
            job = Job(platform, hosts, row["variant"], row["direction"], row["problem"], int(row["shape"]))
            jobs[job.key] = job, float(row["median_s"])
    except (OSError, ValueError, KeyError) as error:
        raise UsageError(f"NETWORK=measured:{run}: summary.csv cannot be used ({error})") from None
    if not jobs:
        raise UsageError(f"NETWORK=measured:{run}: summary.csv has no all_reduce rows with one rank on each of {hosts} hosts")
    return jobs


def print_comparison(rows, jobs, say):
    differences, by_size = [], {}
    say(f"\n{'rung':24}{'direction':10}{'problem':16}{'simulated':>12}{'measured':>12}{'difference':>12}")
    lines = []
    for row in rows:
        key = tuple(row[name] for name in ("platform", "nodes", "variant", "direction", "problem"))
        if row["status"] != "ok" or key not in jobs:
            continue
        simulated, measured = float(row["seconds"]), jobs[key][1]
        difference = simulated / measured - 1
        differences.append(abs(difference))
        by_size.setdefault(int(row["bytes"]), []).append(abs(difference))
        lines.append(f"{row['variant']:24}{row['direction']:10}{row['problem']:16}{1e3 * simulated:>9.3f} ms"
                     f"{1e3 * measured:>9.3f} ms{100 * difference:>10.1f} %")
    for line in lines[:26]:
        say(line)
    if len(lines) > 26:
        say(f"… {len(lines) - 26} more")
    if differences:
        say(f"Median difference: {100 * statistics.median(differences):.1f} % ({len(differences)} rows)")
        say("By bytes: " + ", ".join(f"{size}: {100 * statistics.median(by_size[size]):.1f} %" for size in sorted(by_size)))


# --- the command ---------------------------------------------------------------------------------


def words_of(name, default):
    return [word for word in os.environ.get(name, "").replace(",", " ").split()] or default.split(",")


def matches(variant, patterns):
    return any(fnmatchcase(variant, pattern) for pattern in patterns)


def whole_numbers(name, default, least):
    numbers = []
    for word in words_of(name, default):
        if not word.isdigit() or int(word) < least or int(word) > 65536:
            raise UsageError(f"{name}={os.environ[name]}: expected whole numbers from {least} to 65536, such as {default}")
        numbers.append(int(word))
    return sorted(set(numbers))


def require_simgrid():
    if not shutil.which("smpirun") or not any(
            (Path(folder) / "smpi/smpi_helpers.h").exists()
            for folder in ("/usr/include", "/usr/local/include",
                           *(f"{p}/include" for p in os.environ.get("CMAKE_PREFIX_PATH", "").split(":") if p))):
        raise UsageError("simulate: unavailable, SimGrid is not on this machine (Debian: libsimgrid-dev)")


def build(folder, program="stepladder_smpi"):
    built = subprocess.run(["scripts/build.sh", "release", folder, program], cwd=ROOT, text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if built.returncode != 0:
        print(*built.stdout.splitlines()[-20:], sep="\n", file=sys.stderr)
        raise UsageError(f"simulate: building {program} failed")
    return ROOT / folder / program


def simgrid_version():
    text = subprocess.run(["smpirun", "-version"], capture_output=True, text=True, check=False).stdout
    return text.strip().splitlines()[0] if text.strip() else ""


def commit():
    """Of the sources, with "(modified)" if the working tree has changes; empty without git."""
    def git(*arguments):
        return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
    try:
        return git("rev-parse", "--short=12", "HEAD") + (
            " (modified)" if git("status", "--porcelain", "--untracked-files=no") else "")
    except OSError:
        return ""


def draw_charts(out, say):
    """With the Python environment of make setup; the tables are complete without it."""
    python = ROOT / ".venv/bin/python"
    if python.exists():
        done = subprocess.run([python, "-m", "plots", "charts", out], cwd=ROOT, capture_output=True, text=True, check=False)
        say(f"\nCharts: {out}/charts" if done.returncode == 0 else f"\nNo charts: {done.stderr.strip()}")
    else:
        say("\nCharts: SKIPPED, no Python environment with numpy and matplotlib (see make setup)")


def problems_of_suite():
    return {row["name"]: int(row["count"]) for row in read_csv(ROOT / "bench/suites/all_reduce.csv")}


def open_run(out):
    resume = os.environ.get("RESUME") == "1"
    if (out / "simulation.csv").exists() and not resume:
        raise UsageError(f"{out}: holds a run already; name another folder with OUT, or resume it with RESUME=1")
    try:
        out.mkdir(parents=True, exist_ok=True)
        return Table(out / "simulation.csv", SIMULATION_COLUMNS)
    except OSError as error:
        raise UsageError(f"{out}: cannot be written ({error.strerror})") from None


def simulate(say):
    patterns = words_of("VARIANT", "*")
    nodes = whole_numbers("NODES", "64,256,1024", 1)
    limit = whole_numbers("LIMIT", "120", 1)[0]
    counts = problems_of_suite()
    problems = words_of("PROBLEM", "mnist_cnn,alexnet")
    for problem in problems:
        if problem not in counts:
            raise UsageError(f"PROBLEM={problem}: no such problem in bench/suites/all_reduce.csv")
    step_run = Path(os.environ.get("STEP_RUN") or DEFAULT_RUN)
    compute = compute_times(step_run)
    arithmetic = memory_arithmetic(step_run)
    platforms, measured = [], None
    for word in words_of("NETWORK", "flat-10g,fattree-100g"):
        if word.startswith("measured:"):
            folder = Path(word.partition(":")[2])
            platform, hosts = measured_platform(folder)
            measured = measured_jobs(folder, platform, hosts, patterns)
        elif word in PLATFORMS:
            platforms.append(replace(PLATFORMS[word], arithmetic=arithmetic))
        else:
            raise UsageError(f"NETWORK={word}: expected {', '.join(PLATFORMS)} or measured:RUN")
    require_simgrid()
    program = os.environ.get("STEPLADDER_SMPI") or build(os.environ.get("BUILD") or "build")

    out = Path(os.environ.get("OUT") or ROOT / "results/local" / time.strftime("simulation-%Y-%m-%dT%H-%M-%SZ", time.gmtime()))
    with tempfile.TemporaryDirectory(prefix="stepladder-simulation-") as folder:
        simulator = Simulator(Path(program).resolve(), folder, limit)
        signal.signal(signal.SIGTERM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
        listed, _, _ = simulator.run(PLATFORMS["flat-10g"], 1, "list")
        listed = [line.split("\t") for line in listed.splitlines()]
        why_not = {name: why for name, _, why in listed}
        simulator.libraries = {name for name, technique, _ in listed if technique == "vendor"}
        if not why_not:
            raise UsageError("simulate: stepladder_smpi lists no rungs")
        variants = [name for name in why_not if matches(name, patterns)]
        if not variants:
            raise UsageError(f"VARIANT={','.join(patterns)}: no rung of all_reduce has this name")

        table = open_run(out)
        say(f"Run folder: {out}")
        jobs = [Job(platform, count, variant, "mean", problem, counts[problem])
                for count in nodes for platform in platforms for problem in problems for variant in variants]
        if measured:
            jobs += [job for job, _ in measured.values() if job.variant in why_not]
            variants = list(dict.fromkeys([*(variants if platforms else ()), *(job.variant for job in jobs)]))
        before = {tuple(row[name] for name in ("platform", "nodes", "variant", "direction", "problem")) for row in table.rows}
        jobs = [job for job in jobs if job.key not in before]
        known = json.loads((out / "simulation.json").read_text()) if (out / "simulation.json").exists() else {}
        (out / "simulation.json").write_text(json.dumps({
            "schema_version": 1, "simulator": simgrid_version(), "commit": commit(),
            "platforms": known.get("platforms", {}) | {p.name: {"alpha_s": p.alpha, "beta_s_per_byte": p.beta, "nodes_of_a_leaf_switch": p.leaf or None,
                                   "arithmetic": p.arithmetic} for p in dict.fromkeys(job.platform for job in jobs)},
            "compute": {name: {"seconds": value[0], "source": value[1]} for name, value in compute.items()},
        }, indent=1) + "\n")
        (out / "columns.json").write_text(json.dumps({"schema_version": 1, "tables": {
            name: [dict(zip(("name", "type", "unit", "meaning"), column)) for column in columns]
            for name, columns in (("simulation", SIMULATION), ("scaling", SCALING))}}, indent=1) + "\n")
        run = Run(simulator, table, say)
        try:
            run.verify_all(variants, why_not)
            run.simulate_all([job for job in jobs if run.verified[job.variant][1] != "unavailable"])
        except KeyboardInterrupt:
            simulator.stop()
            say(f"Stopped. The finished rows are in {out}; resume with OUT={out} RESUME=1.")
            return 130

    (out / "scaling.csv").unlink(missing_ok=True)
    scaling = Table(out / "scaling.csv", SCALING_COLUMNS)
    for row in scaling_rows(table.rows, compute):
        scaling.append(row)
    print_scaling(scaling.rows, say)
    for name in dict.fromkeys(row["problem"] for row in table.rows if row["status"] == "ok"):
        if name in network_batches() and name not in compute:
            say(f"No training steps of {name}: neither {step_run / 'step.csv'} nor simulation/steps.csv has its compute time")
    for name in dict.fromkeys(row["network"] for row in scaling.rows):
        say(f"Compute of {name}: {compute[name][0]:.4g} s ({compute[name][1]})")
    if measured:
        print_comparison(table.rows, measured, say)
    if scaling.rows:
        draw_charts(out.resolve(), say)
    return 1 if run.failed else 0


def main():
    try:
        return simulate(lambda text: print(text, flush=True))
    except UsageError as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
