"""What the tools that simulate clusters share: networks, one program under SimGrid's SMPI with a
limit, and run folders to which whole rows are appended."""

import contextlib
import csv
import itertools
import json
import math
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DEFAULT_RUN = ROOT / "results/intel-xeon-2core/layers"


class UsageError(Exception):
    """A sentence for the user."""


# --- networks ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Platform:
    """A cluster of equal nodes. A message of n bytes takes alpha + n beta seconds on idle links."""

    name: str
    alpha: float
    beta: float
    leaf: int = 0  # fat tree: nodes of a leaf switch, half as many links upwards; 0: one switch
    arithmetic: dict = field(default_factory=dict, hash=False)  # add, copy: points [bytes, seconds]

    @property
    def near_alpha(self):
        """alpha between the nodes of a leaf switch: two links in place of four."""
        return self.alpha / 2 if self.leaf else self.alpha

    def node_ranks(self, nodes):
        """The group size of two-level rungs: a leaf switch, or the divisor nearest to the square
        root."""
        if self.leaf and nodes > self.leaf:
            return self.leaf
        root = math.sqrt(nodes)
        divisors = [g for g in range(2, nodes) if nodes % g == 0]
        nearest = min(divisors, key=lambda g: abs(math.log(g / root)), default=round(root))
        return nearest if nodes > 3 else 0

    def xml(self, nodes):
        links = 4 if self.leaf else 2  # on the way from one node to another
        tree = ""
        if self.leaf:
            leaves = -(-nodes // self.leaf)
            nodes = leaves * self.leaf  # the next larger tree; nodes that are left over are idle
            tree = (' topology="FAT_TREE" '
                    f'topo_parameters="2;{self.leaf},{leaves};1,{self.leaf // 2};1,1"')
        return ('<?xml version="1.0"?>\n'
                '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n'
                '<platform version="4.1">\n'
                f'<cluster id="cluster" prefix="node-" suffix="" radical="0-{nodes - 1}" '
                f'speed="1Gf" bw="{1 / self.beta:.9g}Bps" lat="{self.alpha / links:.9g}s" '
                f'sharing_policy="SPLITDUPLEX"{tree}/>\n</platform>\n')


PLATFORMS = {p.name: p for p in (
    Platform("flat-1g", 50e-6, 8e-9),
    Platform("flat-10g", 50e-6, 0.8e-9),
    Platform("fattree-100g", 4e-6, 0.08e-9, leaf=32))}


def memory_arithmetic(run):
    """The time of additions and copies on one core, in memory, from the measured ceilings of a run:
    an addition of n bytes is three streams of n bytes, a copy two."""
    try:
        rates = {c["name"]: 1e9 * c["value"]
                 for c in json.loads((run / "ceilings.json").read_text())["ceilings"]
                 if c["threads"] == 1 and c["level"] == "DRAM"}
        return {"add": [[0, 0], [1e9, 3e9 / rates["stream_triad"]]],
                "copy": [[0, 0], [1e9, 2e9 / rates["stream_copy"]]]}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"STEP_RUN={run}: ceilings.json cannot be used ({error})") from None


def arithmetic_text(arithmetic):
    """The variable SIMULATED_ARITHMETIC (simulation/arithmetic.hpp)."""
    return arithmetic and " ".join(
        f"{name} " + " ".join(f"{size:.9g}:{seconds:.9g}" for size, seconds in arithmetic[name])
        for name in ("add", "copy"))


def measured_steps(run):
    """Network, seconds of a step and of its update, and their origin, of each step that the run
    measured in one process on the CPU."""
    path = run / "step.csv"
    steps = {}
    try:
        for row in read_csv(path):
            if (row["mode"], row["ranks"], row["device"]) == ("single", "1", "cpu"):
                step = steps.setdefault((row["network"], row["use"], row["threads"]), [0.0, 0.0])
                if row["median_s"] and (row["layer"] == "total" or row["phase"] == "update"):
                    step[row["layer"] != "total"] += float(row["median_s"])
    except (OSError, ValueError, KeyError) as error:
        raise UsageError(f"STEP_RUN={run}: step.csv cannot be used ({error})") from None
    return [(network, total, update, f"{run.name}/step.csv, {use}, {threads} threads")
            for (network, use, threads), (total, update) in steps.items() if total]


# --- one simulation ------------------------------------------------------------------------------

# SimGrid: a message takes the time of its links alone, and computing none.
OPTIONS = ("smpi/bw-factor:0:1", "smpi/lat-factor:0:1", "network/crosstraffic:no",
           "smpi/host-speed:1Gf", "smpi/simulate-computation:no")
LOG = ("--log=root.thres:critical",)


def crash(text, status):
    lines = [line for line in text.splitlines() if line.strip()]
    return f"SimGrid ended with status {status}: {lines[0][:200] if lines else ''}"


class Simulator:
    """Runs the program. Each run has a process group of its own, so that stop() ends it."""

    def __init__(self, program, folder, limit):
        self.program, self.folder, self.limit = program, Path(folder), limit
        self.lock = threading.Lock()
        self.running = set()
        self.stopped = False

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
                names = "".join(f"node-{i}\n" for i in range(nodes))
                stem.with_suffix(".hosts").write_text(names)
                stem.with_suffix(".xml").write_text(platform.xml(nodes))
        return stem.with_suffix(".xml"), stem.with_suffix(".hosts")

    def execute(self, command, arithmetic, limit, memory=resource.RLIM_INFINITY):
        """Output, exit status, wall time, CPU time. The status is None if the CPU time ran out.
        memory: in bytes."""
        def set_limits():
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))

        environment = {name: value for name, value in os.environ.items()
                       if name != "SIMULATED_ARITHMETIC"}
        if arithmetic:
            environment["SIMULATED_ARITHMETIC"] = arithmetic
        started = time.monotonic()
        with tempfile.TemporaryFile("w+") as output:
            with self.lock:
                if self.stopped:
                    raise KeyboardInterrupt
                process = subprocess.Popen(
                    [*map(str, command)], stdin=subprocess.DEVNULL, stdout=output,
                    stderr=subprocess.STDOUT, env=environment, start_new_session=True,
                    cwd=self.folder, preexec_fn=set_limits)
                self.running.add(process)
            _, status, usage = os.wait4(process.pid, 0)
            with self.lock:
                self.running.discard(process)
                process.returncode = status = os.waitstatus_to_exitcode(status)
                if self.stopped:
                    raise KeyboardInterrupt
            output.seek(0)
            text = output.read()
        cpu = usage.ru_utime + usage.ru_stime
        out_of_time = status in (-signal.SIGXCPU, 128 + signal.SIGXCPU) or (
            status != 0 and cpu >= limit - 1)
        return text, None if out_of_time else status, time.monotonic() - started, cpu


# --- all of them ---------------------------------------------------------------------------------


def read_csv(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


class Table:
    """A CSV file to which whole rows are appended."""

    def __init__(self, path, columns):
        self.columns, self.rows = columns, []
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
        self.writer = csv.DictWriter(self.file, columns, restval="", lineterminator="\n")
        if self.file.tell() == 0:
            self.writer.writeheader()

    def append(self, row):
        self.rows.append({name: format_value(row.get(name)) for name in self.columns})
        self.writer.writerow({**row, **self.rows[-1]})

    def replace(self, rows):
        self.file.truncate(0)
        self.writer.writeheader()
        self.rows = []
        for row in rows:
            self.append(row)


def format_value(value):
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def open_run(out, columns):
    """The tables of a run folder by name; the first has a row for each simulation."""
    first = out / f"{next(iter(columns))}.csv"
    if first.exists() and os.environ.get("RESUME") != "1":
        raise UsageError(f"{out}: holds a run already; name another folder with OUT, or resume it "
                         "with RESUME=1")
    try:
        out.mkdir(parents=True, exist_ok=True)
        return {name: Table(out / f"{name}.csv", [column[0] for column in described])
                for name, described in columns.items()}
    except OSError as error:
        raise UsageError(f"{out}: cannot be written ({error.strerror})") from None


def describe_run(out, columns, **content):
    """columns.json and simulation.json of a run folder."""
    keys = ("name", "type", "unit", "meaning")
    tables = {name: [dict(zip(keys, column)) for column in described]
              for name, described in columns.items()}
    version = subprocess.run(["smpirun", "-version"], capture_output=True, text=True, check=False)
    content = {"simulator": (version.stdout.strip().splitlines() or [""])[0], "commit": commit(),
               **content}
    for name, value in (("columns", {"tables": tables}), ("simulation", content)):
        text = json.dumps({"schema_version": 1, **value}, indent=1)
        (out / f"{name}.json").write_text(text + "\n")


def commit():
    """That of the sources, with "(modified)" if the working tree has changes; empty without git."""
    def git(*arguments):
        return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True,
                              check=False).stdout.strip()
    with contextlib.suppress(OSError):
        changes = git("status", "--porcelain", "--untracked-files=no")
        return git("rev-parse", "--short=12", "HEAD") + (" (modified)" if changes else "")
    return ""


class Run:
    """The simulations of a run folder, two at a time. A job has a key, a series and `nodes`."""

    def __init__(self, simulator, tables, say):
        self.simulator, self.tables, self.say = simulator, tables, say
        self.table = next(iter(tables.values()))
        self.lock = threading.Lock()
        self.verified = {}
        self.cost = {}  # of a series: {nodes: (messages or CPU seconds, CPU seconds)}
        self.failed = False

    def keep_cost(self, job, *cost):
        with self.lock:
            self.cost.setdefault(job.series, {})[job.nodes] = cost

    def expected_cpu(self, job):
        """(messages, CPU seconds) from the two next smaller numbers of nodes, or None."""
        with self.lock:
            known = sorted((n, *cost) for n, cost in self.cost.get(job.series, {}).items()
                           if n < job.nodes and cost[0])
        if len(known) < 2:
            return None
        (n1, m1, _), (n2, m2, cpu2) = known[-2:]
        messages = m2 * (job.nodes / n2) ** (math.log(m2 / m1) / math.log(n2 / n1))
        return messages, messages * cpu2 / m2

    def work(self, jobs, action):
        """In order; an error or an interruption ends all."""
        with ThreadPoolExecutor(2) as pool:
            waiting = [pool.submit(action, job) for job in jobs]
            try:
                for future in as_completed(waiting):
                    future.result()
            except BaseException:
                self.simulator.stop()
                pool.shutdown(cancel_futures=True)
                raise

    def simulate_all(self, jobs):
        """simulate(job) gives the row, lines of other tables, and what the screen says of it."""
        done = itertools.count(1)

        def one(job):
            row, others, what = self.simulate(job)
            with self.lock:
                for name, line in others:
                    self.tables[name].append(line)
                self.table.append(row)
                self.failed = self.failed or row["status"] == "failed"
                if row["status"] != "ok":
                    what = f"{row['status']}: {row['reason']}"
                self.say(f"[{next(done)}/{len(jobs)}] {job}: {what}")

        self.work(jobs, one)

    def finish(self, out, action):
        """Whether the action ended without an interruption."""
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            action()
            return True
        except KeyboardInterrupt:
            self.simulator.stop()
            self.say(f"Stopped. The finished rows are in {out}; resume with OUT={out} RESUME=1.")
            return False


def print_lines(lines, most, where, say):
    for line in lines[:most]:
        say(line)
    if len(lines) > most:
        say(f"… {len(lines) - most} more{where}")


# --- the command ---------------------------------------------------------------------------------


def words_of(name, default):
    return os.environ.get(name, "").replace(",", " ").split() or default.split(",")


def whole_numbers(name, default, least):
    words = words_of(name, default)
    if not all(word.isdigit() and least <= int(word) <= 65536 for word in words):
        raise UsageError(f"{name}={os.environ[name]}: expected whole numbers from {least} to 65536,"
                         f" such as {default}")
    return sorted(set(map(int, words)))


def problem_counts(problems):
    """The lengths of all problems of the suite, which must have these."""
    suite = read_csv(ROOT / "bench/suites/all_reduce.csv")
    counts = {row["name"]: int(row["count"]) for row in suite}
    for problem in problems:
        if problem not in counts:
            raise UsageError(
                f"PROBLEM={problem}: no such problem in bench/suites/all_reduce.csv")
    return counts


def step_run():
    return Path(os.environ.get("STEP_RUN") or DEFAULT_RUN)


def run_folder(kind):
    name = time.strftime(f"{kind}-%Y-%m-%dT%H-%M-%SZ", time.gmtime())
    return Path(os.environ.get("OUT") or ROOT / "results/local" / name)


def program(name):
    """The program that a variable of its name in capitals names, or else a build of it."""
    prefixes = [p for p in os.environ.get("CMAKE_PREFIX_PATH", "").split(":") if p]
    if not shutil.which("smpirun") or not any(
            (Path(folder) / "include/smpi/smpi_helpers.h").exists()
            for folder in ("/usr", "/usr/local", *prefixes)):
        raise UsageError("simulate: unavailable, SimGrid is not on this machine "
                         "(Debian: libsimgrid-dev)")
    if given := os.environ.get(name.upper()):
        return Path(given).resolve()
    folder = os.environ.get("BUILD") or "build"
    built = subprocess.run(["scripts/build.sh", "release", folder, name], cwd=ROOT, text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if built.returncode != 0:
        print(*built.stdout.splitlines()[-20:], sep="\n", file=sys.stderr)
        raise UsageError(f"simulate: building {name} failed")
    return (ROOT / folder / name).resolve()


def main(tool):
    try:
        return tool(lambda text: print(text, flush=True))
    except UsageError as error:
        print(error, file=sys.stderr)
        return 2
