"""Trains a small network on simulated clusters in several modes, with a slow rank (SimGrid's SMPI).

The arithmetic is real, its time is injected: a step of a rank takes the time of a step of PROBLEM, and a message that
of the gradients of PROBLEM, of which the small network has a fraction.

Environment variables, all optional:
    MODES     'synchronous;sharded;parameter_server;downpour;ssp,bound=2;local_sgd;token_ring': modes of stepladder
              train, separated by ;
    NODES     8,16,64,256          numbers of nodes; one rank on each
    NETWORK   fattree-100g         also flat-1g, flat-10g
    SLOW      none,permanent,passing: rank 1 computes 3 times slower, or 10 times in a sixteenth of its steps;
              or RANK:FACTOR, RANK:FACTOR:FROM:TO in steps of that rank
    SAMPLES   40000                of a training, all ranks together
    BATCH     8                    samples of a step of one rank; fewer if there are too few images for all ranks
    USE       serial,matmul=simd,all_reduce=rabenseifner: rungs, one for each primitive
    PROBLEM   mnist_cnn            the network whose times are injected; in bench/suites/all_reduce.csv
    STEP_RUN  results/<machine>    the run whose step.csv and ceilings.json have these times
    TARGET    0.85                 accuracy on the held-out images whose time is shown
    LIMIT     120                  CPU seconds of one simulation; longer ones are skipped
    OUT       results/local/simulated-training-<time>;  RESUME=1 resumes the run in that folder
    BUILD     build                the build folder
Writes train.csv, staleness.csv, simulations.csv, columns.json and simulation.json. Exit status: 2 for wrong arguments,
or without SimGrid; 1 if a simulation failed; 130 if interrupted.
"""

import csv
import json
import os
import re
import signal
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import simulate  # noqa: E402  (needs the path above)
from simulate import ROOT, UsageError  # noqa: E402

# Name, type, unit and meaning, as in columns.json; simulation/README.md has the same table.
IDENTITY = (
    ("platform", "text", "", "name of the simulated network"),
    ("slow", "text", "", "none, or the slow rank: permanent, passing or rank:factor[:from:to]"))
SIMULATIONS = (
    IDENTITY[0],
    ("nodes", "integer", "", "number of nodes, with one rank on each"),
    ("mode", "text", "", "as in train.csv"),
    IDENTITY[1],
    ("status", "text", "", "ok, failed, diverged (the loss grew beyond all numbers) or skipped"),
    ("reason", "text", "", "why there are no figures"),
    ("seconds", "number", "s", "simulated time of the training"),
    ("step", "integer", "", "number of updates of the weights"),
    ("samples", "integer", "", "samples of all ranks together"),
    ("loss", "number", "", "loss of the last batch"),
    ("weights", "text", "", "hash of the weights at the end: equal for equal bits"),
    ("messages", "integer", "", "messages of all ranks, without those inside collective operations of MPI"),
    ("wall_s", "number", "s", "time that the simulation took"))
KEY = ("platform", "nodes", "mode", "slow")

NETWORK = ROOT / "simulation/small_mlp.json"
MODES = "synchronous;sharded;parameter_server;downpour;ssp,bound=2;local_sgd;token_ring"
USE = "serial,matmul=simd,all_reduce=rabenseifner"
VERIFIED_RANKS = 8
ROWS = 16  # of a training
WARM_UP = 0.1  # of the samples
MEMORY = 6 << 30  # bytes of one simulation
# Open MPI's choice of algorithms, but for MPI_Bcast: with that, MPI_Comm_split sends a message between any two ranks.
OPTIONS = ("network/model:SMPI", "surf/precision:1e-9", "smpi/send-is-detached-thresh:0", "smpi/test:0",
           "smpi/iprobe:0", "smpi/allreduce:ompi", "smpi/allgatherv:ompi", "smpi/barrier:ompi", "contexts/stack-size:1024")


# --- one training --------------------------------------------------------------------------------


def parts_of(mode, nodes):
    """The number of ranks that divide the batch of an update, each a part of BATCH samples."""
    name, *options = mode.split(",")
    if name in ("downpour", "token_ring", "single"):
        return 1
    if name == "ssp":
        return max(1, nodes - 1)  # rank 0 is the server
    if name.startswith("token_ring/"):
        return int(dict(option.split("=") for option in options).get("node", 1))
    return nodes


@dataclass
class Job:
    platform: simulate.Platform
    nodes: int
    mode: str
    slow: str

    @property
    def key(self):
        return self.platform.name, str(self.nodes), self.mode, self.slow


@dataclass
class Plan:
    """What all trainings have in common."""

    use: str
    batch: int  # of a rank
    samples: int
    images: int  # to train on
    step_s: float  # forward and backward of a rank
    pass_s: float  # over the weights
    factor: float  # parameters of PROBLEM / those of the small network
    arithmetic: str

    def rank_batch(self, nodes):
        return max(1, min(self.batch, self.images // nodes))

    def own_steps(self, nodes):
        return max(1, self.samples // (self.rank_batch(nodes) * nodes))

    def slow(self, name, nodes):
        """rank, factor, first step and step after the last; None: no rank is slow."""
        own = self.own_steps(nodes)
        known = {"none": None, "permanent": (1, 3), "passing": (1, 10, own // 4, own // 4 + max(1, own // 16))}
        return known[name] if name in known else tuple(name.split(":"))

    def words(self, job):
        parts = parts_of(job.mode, job.nodes)
        rank_batch = self.rank_batch(job.nodes)
        batch = parts * rank_batch
        steps = max(1, self.samples // batch)
        slow = self.slow(job.slow, job.nodes)
        # The learning rate is for gradients of BATCH samples, as local_sgd has them on any number of ranks.
        scale = 1 if job.mode.startswith("local_sgd") else (batch / self.batch) ** 0.5
        return {"network": NETWORK, "mode": job.mode, "use": self.use, "batch": batch, "steps": steps,
                "log_every": max(1, steps // ROWS), "evaluate": 1, "verify": 0,
                "scale": scale, "warm_up": int(WARM_UP * self.samples) if scale > 1 else 0,
                "seconds": self.step_s * parts, "pass": self.pass_s,
                **dict(zip(("slow_rank", "slow_factor", "slow_from", "slow_to"), slow or ()))}


class Simulator(simulate.Simulator):
    """Runs stepladder_smpi_train."""

    def train(self, platform, nodes, words, arithmetic, limit=None):
        """Lines of train.csv and of staleness.csv, the figures at the end or the reason why there are none, wall time,
        CPU time. The reason is "" if the CPU time ran out."""
        xml, _ = self.files(platform, nodes)
        command = [self.program, *simulate.LOG, *(f"--cfg={option}" for option in (*simulate.OPTIONS, *OPTIONS)),
                   xml, nodes, *(f"{name}={value}" for name, value in words.items())]
        text, status, wall, cpu = self.execute(command, arithmetic, limit or self.limit, MEMORY)
        lines = {"row": [], "staleness": [], "ok": [], "failed:": []}
        for line in text.splitlines():
            kind, _, rest = line.partition(" ")
            if kind in lines:
                lines[kind].append(rest)
        if status is None:
            end = ""
        elif status == 0 and lines["ok"]:
            end = dict(word.split("=") for word in lines["ok"][0].split())
        else:
            end = lines["failed:"][0] if lines["failed:"] else simulate.crash(text, status)
        return lines["row"], lines["staleness"], end, wall, cpu


def info(program, use, modes):
    """Parameters of the network, images to train on, their origin, and the columns of the CSV files."""
    simulator = Simulator(program, ROOT, 60)
    for mode in modes:
        text, status, _, _ = simulator.execute(
            [program, *simulate.LOG, "info", f"network={NETWORK}", f"mode={mode}", f"use={use}"], None, 60)
        found = re.search(r"^parameters=(\d+) images=(\d+) data=(\S+) columns=(.*)$", text, re.MULTILINE)
        if not found:
            reason = text.strip().removeprefix("failed: ") or simulate.crash(text, status)
            raise UsageError(f"simulate_training: {reason}")
    return int(found[1]), int(found[2]), found[3], json.loads(found[4])["tables"]


# --- all of them ---------------------------------------------------------------------------------


class Run(simulate.Run):
    """The trainings of a run folder."""

    def __init__(self, simulator, tables, plan, columns, say):
        super().__init__(simulator, tables["simulations"], say)
        self.tables, self.plan, self.columns = tables, plan, columns
        self.too_long = {}  # (platform, nodes, mode): slow

    @staticmethod
    def series(job):
        return job.platform.name, job.mode, job.slow

    def verify_modes(self, modes):
        """A few steps on a few ranks: all rungs give correct results, and in synchronous modes the weights of all
        ranks are equal. They do not depend on the network."""
        def one(mode):
            job = Job(simulate.Platform("verification", 50e-6, 0.8e-9), VERIFIED_RANKS, mode, "none")
            words = self.plan.words(job) | {"steps": 3, "verify": 1}
            _, _, end, _, _ = self.simulator.train(job.platform, job.nodes, words, None, limit=120)
            with self.lock:
                self.verified[mode] = "" if isinstance(end, dict) else end or "the verification took too long"

        self.work(modes, one)
        for mode in modes:
            if self.verified[mode]:
                self.failed = True
                self.say(f"FAILED {mode}: {self.verified[mode]}")

    def train(self, job):
        """The row of simulations.csv, and lines of the other files."""
        row = dict(zip(KEY, job.key))
        limit = self.simulator.limit
        with self.lock:
            expected = self.expected_cpu(job)
        if self.verified[job.mode]:
            return row | {"status": "failed", "reason": self.verified[job.mode]}, [], []
        if expected and expected[1] > 1.5 * limit:
            return row | {"status": "skipped", "reason": f"the simulation would take about {expected[1]:.0f} s of CPU "
                                                         f"time (limit: {limit} s)"}, [], []
        if job.key[:3] in self.too_long:
            slow = self.too_long[job.key[:3]]
            return row | {"status": "skipped", "reason": f"the simulation with slow={slow} took more than {limit} s of "
                                                         "CPU time"}, [], []
        platform = replace(job.platform, beta=job.platform.beta * self.plan.factor)
        rows, staleness, end, wall, cpu = self.simulator.train(platform, job.nodes, self.plan.words(job),
                                                               self.plan.arithmetic)
        row["wall_s"] = wall
        with self.lock:
            self.cost.setdefault(self.series(job), {})[job.nodes] = cpu, cpu
        if isinstance(end, dict):
            return row | {"status": "ok"} | end, rows, staleness
        if not end:
            with self.lock:
                self.too_long[job.key[:3]] = job.slow
            return row | {"status": "skipped", "reason": f"the simulation took more than {limit} s of CPU time"}, [], []
        if "bad_alloc" in end:
            return row | {"status": "skipped", "reason": f"the simulation needs more than {MEMORY >> 30} GiB"}, [], []
        return row | {"status": "diverged" if "learning rate" in end else "failed", "reason": end}, [], []

    def train_all(self, jobs):
        total, done = len(jobs), 0

        def one(job):
            nonlocal done
            row, rows, staleness = self.train(job)
            with self.lock:
                done += 1
                for name, lines in (("train", rows), ("staleness", staleness)):
                    for line in lines:
                        self.tables[name].append(self.scaled(job, dict(zip(self.columns[name], *csv.reader([line])))))
                self.table.append(row)
                self.failed = self.failed or row["status"] == "failed"
                what = f"{float(row['seconds']):.4f} s, {row['step']} updates" if row["status"] == "ok" \
                    else f"{row['status']}: {row['reason']}"
                self.say(f"[{done}/{total}] {job.platform.name} {job.nodes} {job.mode}, slow: {job.slow}: {what}")

        self.work(jobs, one)

    def scaled(self, job, row):
        """The bytes are those of PROBLEM."""
        if row.get("bytes_per_step"):
            row["bytes_per_step"] = float(row["bytes_per_step"]) * self.plan.factor
        return {"platform": job.platform.name, "slow": job.slow} | row


# --- the last screen -----------------------------------------------------------------------------


def print_summary(simulations, trainings, target, say):
    ends = {tuple(row[name] for name in KEY): row for row in simulations}
    rows = {}
    for row in trainings:
        rows.setdefault((row["platform"], row["ranks"], row["mode"], row["slow"]), []).append(row)

    def rate(key):
        row = ends.get(key)
        return float(row["samples"]) / float(row["seconds"]) if row and row["status"] == "ok" else None

    slows = [slow for slow in dict.fromkeys(row["slow"] for row in simulations) if slow != "none"]
    width = max((len(row["mode"]) for row in simulations), default=0) + 1
    say(f"\n{'platform':13}{'nodes':>6} {'mode':{width}}{'samples/s':>10}" +
        "".join(f"{slow[:12]:>13}" for slow in slows) +
        f"{'staleness':>11}{'waiting':>9}{'accuracy':>10}{'to ' + format(target, '.0%'):>9}")
    lines = []
    for platform, nodes, mode in dict.fromkeys(key[:3] for key in ends):
        plain = rate((platform, nodes, mode, "none"))
        steps = rows.get((platform, nodes, mode, "none"), [])
        if not steps:
            row = ends.get((platform, nodes, mode, "none"))
            lines.append(f"{platform:13}{nodes:>6} {mode:{width}}{row['status'] if row else '-':>10}")
            continue
        last = steps[-1]
        reached = next((row["seconds"] for row in steps if row["accuracy"] and float(row["accuracy"]) >= target), None)
        slower = [rate((platform, nodes, mode, slow)) for slow in slows]
        lines.append(
            f"{platform:13}{nodes:>6} {mode:{width}}{plain:>10.0f}" +
            "".join(f"{'-' if s is None else f'{s / plain:.2f}x':>13}" for s in slower) +
            f"{last['staleness_mean'] and format(float(last['staleness_mean']), '.1f') or '-':>11}"
            f"{max(0.0, float(last['waiting_share'])):>9.0%}{float(last['accuracy']):>10.1%}"
            f"{'-' if reached is None else format(float(reached), '.2f') + ' s':>9}")
    for line in lines[:28]:
        say(line)
    if len(lines) > 28:
        say(f"… {len(lines) - 28} more in simulations.csv and train.csv")
    say("Slow ranks: samples/s relative to none. staleness: mean; waiting: for other ranks, share of the time.")


# --- the command ---------------------------------------------------------------------------------


def step_seconds(run, network):
    """Forward and backward of the fastest measured step of one process on the CPU, and where they come from."""
    path = run / "step.csv"
    try:
        steps = {}
        for row in simulate.read_csv(path):
            if (row["network"], row["mode"], row["ranks"], row["device"]) == (network, "single", "1", "cpu"):
                times = steps.setdefault((row["use"], row["threads"]), {"total": None, "update": 0.0})
                if row["layer"] == "total":
                    times["total"] = float(row["median_s"])
                elif row["phase"] == "update":
                    times["update"] += float(row["median_s"])
    except (OSError, ValueError, KeyError) as error:
        raise UsageError(f"STEP_RUN={run}: step.csv cannot be used ({error})") from None
    found = [(times["total"] - times["update"], use, threads) for (use, threads), times in steps.items()
             if times["total"] is not None]
    if not found:
        raise UsageError(f"STEP_RUN={run}: step.csv has no steps of {network} in one process")
    seconds, use, threads = min(found)
    return seconds, f"{path.parent.name}/step.csv, {use}, {threads} threads"


def check_modes(modes):
    for mode in modes:
        names = mode.split(",")[0].split("/")
        if "pipeline" in names or "model_parallel" in names:
            raise UsageError(f"MODES={mode}: its messages are activations; the small network's stand for no other's")


def check_slow(words, fewest):
    for word in words:
        if word not in ("none", "permanent", "passing") and not re.fullmatch(
                r"\d+:([1-9]\d*(\.\d+)?)(:\d+:\d+)?", word):
            raise UsageError(f"SLOW={word}: expected none, permanent, passing, RANK:FACTOR or RANK:FACTOR:FROM:TO")
        if word[0].isdigit() and int(word.split(":")[0]) >= fewest:
            raise UsageError(f"SLOW={word}: the smallest cluster has the ranks 0 to {fewest - 1}")


def open_tables(out, columns):
    if (out / "simulations.csv").exists() and os.environ.get("RESUME") != "1":
        raise UsageError(f"{out}: holds a run already; name another folder with OUT, or resume it with RESUME=1")
    try:
        out.mkdir(parents=True, exist_ok=True)
        return {name: simulate.Table(out / f"{name}.csv", names) for name, names in columns.items()}
    except OSError as error:
        raise UsageError(f"{out}: cannot be written ({error.strerror})") from None


def drop_unfinished(tables):
    """Rows of trainings that were stopped between their rows and that of simulations.csv."""
    done = {tuple(row[name] for name in KEY) for row in tables["simulations"].rows}
    for name in ("train", "staleness"):
        table = tables[name]
        rows = [row for row in table.rows if (row["platform"], row["ranks"], row["mode"], row["slow"]) in done]
        if len(rows) != len(table.rows):
            table.file.truncate(0)
            table.file.write(",".join(table.columns) + "\n")
            table.rows = []
            for row in rows:
                table.append(row)


def simulate_training(say):
    modes = [mode.strip() for mode in (os.environ.get("MODES") or MODES).split(";") if mode.strip()] or MODES.split(";")
    check_modes(modes)
    nodes = simulate.whole_numbers("NODES", "8,16,64,256", 2)
    slows = simulate.words_of("SLOW", "none,permanent,passing")
    check_slow(slows, nodes[0])
    samples = simulate.whole_numbers("SAMPLES", "40000", 1)[0]
    batch = simulate.whole_numbers("BATCH", "8", 1)[0]
    limit = simulate.whole_numbers("LIMIT", "120", 1)[0]
    use = os.environ.get("USE") or USE
    problem = os.environ.get("PROBLEM") or "mnist_cnn"
    counts = simulate.problems_of_suite()
    if problem not in counts:
        raise UsageError(f"PROBLEM={problem}: no such problem in bench/suites/all_reduce.csv")
    try:
        target = float(os.environ.get("TARGET") or 0.85)
    except ValueError:
        raise UsageError(f"TARGET={os.environ['TARGET']}: expected an accuracy from 0 to 1") from None
    platforms = simulate.words_of("NETWORK", "fattree-100g")
    for name in platforms:
        if name not in simulate.PLATFORMS:
            raise UsageError(f"NETWORK={name}: expected {', '.join(simulate.PLATFORMS)}")
    step_run = Path(os.environ.get("STEP_RUN") or simulate.DEFAULT_RUN)
    step_s, source = step_seconds(step_run, problem)
    arithmetic = simulate.memory_arithmetic(step_run)
    simulate.require_simgrid()
    program = Path(os.environ.get("STEPLADDER_SMPI_TRAIN") or
                   simulate.build(os.environ.get("BUILD") or "build", "stepladder_smpi_train")).resolve()

    parameters, images, data, described = info(program, use, modes)
    described = {name: [*IDENTITY, *(tuple(c.get(key, "") for key in ("name", "type", "unit", "meaning"))
                                     for c in described[name])] for name in ("train", "staleness")}
    described["simulations"] = SIMULATIONS
    columns = {name: [column[0] for column in table] for name, table in described.items()}
    factor = counts[problem] / parameters
    # Additions and copies of one byte here stand for those of `factor` bytes.
    scaled = {name: [[size / factor, seconds] for size, seconds in points] for name, points in arithmetic.items()}
    pass_s = arithmetic["add"][-1][1] * 4 * counts[problem] / arithmetic["add"][-1][0]
    plan = Plan(use, batch, samples, images, step_s, pass_s, factor, f"compute {simulate.arithmetic_text(scaled)}")

    out = Path(os.environ.get("OUT") or
               ROOT / "results/local" / time.strftime("simulated-training-%Y-%m-%dT%H-%M-%SZ", time.gmtime()))
    tables = open_tables(out, columns)
    drop_unfinished(tables)
    say(f"Run folder: {out}")
    (out / "columns.json").write_text(json.dumps({"schema_version": 1, "tables": {
        name: [dict(zip(("name", "type", "unit", "meaning"), column)) for column in table]
        for name, table in described.items()}}, indent=1) + "\n")
    (out / "simulation.json").write_text(json.dumps({
        "schema_version": 1, "simulator": simulate.simgrid_version(), "commit": simulate.commit(), "data": data,
        "stands_for": problem, "parameters": parameters, "bytes_factor": factor, "use": use,
        "step": {"seconds": step_s, "source": source}, "pass_s": pass_s, "batch_of_a_rank": batch, "samples": samples,
        "slow": {name: {str(n): plan.slow(name, n) for n in nodes} for name in slows},
    }, indent=1) + "\n")
    before = {tuple(row[name] for name in KEY) for row in tables["simulations"].rows}
    jobs = [Job(simulate.PLATFORMS[name], n, mode, slow)
            for name in platforms for n in nodes for slow in slows for mode in modes]
    jobs = [job for job in jobs if job.key not in before]
    with tempfile.TemporaryDirectory(prefix="stepladder-simulation-") as folder:
        simulator = Simulator(program, folder, limit)
        signal.signal(signal.SIGTERM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
        own_columns = {name: columns[name][len(IDENTITY):] for name in ("train", "staleness")}
        run = Run(simulator, tables, plan, own_columns, say)
        try:
            run.verify_modes(list(dict.fromkeys(job.mode for job in jobs)))
            run.train_all(jobs)
        except KeyboardInterrupt:
            simulator.stop()
            say(f"Stopped. The finished rows are in {out}; resume with OUT={out} RESUME=1.")
            return 130
    print_summary(tables["simulations"].rows, tables["train"].rows, target, say)
    say(f"A step of a rank: {1e3 * step_s:.3g} ms, {problem} ({source}); its gradients: {4e-6 * counts[problem]:.3g} "
        f"MB; an addition or update of them: {1e3 * pass_s:.3g} ms.")
    return 1 if run.failed else 0


def main():
    try:
        return simulate_training(lambda text: print(text, flush=True))
    except UsageError as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
