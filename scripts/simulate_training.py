"""Trains a small network on simulated clusters in several modes, with a slow rank (SimGrid's SMPI).

The arithmetic is real, its time is injected: a step of a rank takes the time of a step of PROBLEM,
and a message that of the gradients of PROBLEM, of which the small network has a fraction.

Environment variables, all optional:
    MODES     'synchronous;sharded;parameter_server;downpour;ssp,bound=2;local_sgd;token_ring':
              modes of stepladder train, separated by ;
    NODES     8,16,64,256          numbers of nodes; one rank on each
    NETWORK   fattree-100g         also flat-1g, flat-10g
    SLOW      none,permanent,passing: rank 1 computes 3 times slower, or 10 times in a sixteenth of
              its steps; or RANK:FACTOR, RANK:FACTOR:FROM:TO in steps of that rank
    SAMPLES   40000                of a training, all ranks together
    BATCH     8                    samples of a step of one rank; fewer if there are too few images
                                   for all ranks
    USE       serial,matmul=simd,all_reduce=rabenseifner: rungs, one for each primitive
    PROBLEM   mnist_cnn            the network whose times are injected; in
                                   bench/suites/all_reduce.csv
    STEP_RUN  results/<machine>    the run whose step.csv and ceilings.json have these times
    TARGET    0.85                 accuracy on the held-out images whose time is shown
    LIMIT     120                  CPU seconds of one simulation; longer ones are skipped
    OUT       results/local/simulated-training-<time>;  RESUME=1 resumes the run in that folder
    BUILD     build                the build folder
Writes train.csv, staleness.csv, simulations.csv, columns.json and simulation.json. Exit status: 2
for wrong arguments, or without SimGrid; 1 if a simulation failed; 130 if interrupted.
"""

import csv
import json
import os
import re
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

import smpi  # noqa: E402  (needs the path above)
from plots.data.schema import documented_columns  # noqa: E402
from smpi import UsageError  # noqa: E402

SIMULATIONS = documented_columns("simulation/README.md", "simulations")
IDENTITY = [column for column in SIMULATIONS if column[0] in ("platform", "slow")]
KEY = ("platform", "nodes", "mode", "slow")
TRAINING_KEY = ("platform", "ranks", "mode", "slow")  # in train.csv and staleness.csv

NETWORK = ROOT / "simulation/small_mlp.json"
MODES = "synchronous;sharded;parameter_server;downpour;ssp,bound=2;local_sgd;token_ring"
USE = "serial,matmul=simd,all_reduce=rabenseifner"
VERIFIED_RANKS = 8
ROWS = 16  # of a training
WARM_UP = 0.1  # of the samples
MEMORY = 6 << 30  # bytes of one simulation
# Open MPI's choice of algorithms, but for MPI_Bcast: with that, MPI_Comm_split sends a message
# between any two ranks.
OPTIONS = (*smpi.OPTIONS, "network/model:SMPI", "surf/precision:1e-9",
           "smpi/send-is-detached-thresh:0", "smpi/test:0", "smpi/iprobe:0",
           "smpi/allreduce:ompi", "smpi/allgatherv:ompi", "smpi/barrier:ompi",
           "contexts/stack-size:1024")


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


def check_modes(modes):
    for mode in modes:
        names = mode.split(",")[0].split("/")
        if "pipeline" in names or "model_parallel" in names:
            raise UsageError(f"MODES={mode}: its messages are activations; the small network's "
                             "stand for no other's")


@dataclass
class Job:
    platform: smpi.Platform
    nodes: int
    mode: str
    slow: str

    @property
    def key(self):
        return self.platform.name, str(self.nodes), self.mode, self.slow

    @property
    def series(self):
        return self.platform.name, self.mode, self.slow

    def __str__(self):
        return f"{self.platform.name} {self.nodes} {self.mode}, slow: {self.slow}"


def key_of(row, key=KEY):
    return tuple(row[name] for name in key)


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

    def slow(self, name, nodes):
        """rank, factor, first step and step after the last; None: no rank is slow."""
        own = max(1, self.samples // (self.rank_batch(nodes) * nodes))  # steps of a rank
        known = {"none": None, "permanent": (1, 3),
                 "passing": (1, 10, own // 4, own // 4 + max(1, own // 16))}
        return known[name] if name in known else tuple(name.split(":"))

    def words(self, job):
        parts = parts_of(job.mode, job.nodes)
        batch = parts * self.rank_batch(job.nodes)
        steps = max(1, self.samples // batch)
        slow = self.slow(job.slow, job.nodes)
        # The learning rate is for gradients of BATCH samples, which local_sgd has on any number of
        # ranks.
        scale = 1 if job.mode.startswith("local_sgd") else (batch / self.batch) ** 0.5
        return {"network": NETWORK, "mode": job.mode, "use": self.use, "batch": batch,
                "steps": steps, "log_every": max(1, steps // ROWS), "evaluate": 1, "verify": 0,
                "scale": scale, "warm_up": int(WARM_UP * self.samples) if scale > 1 else 0,
                "seconds": self.step_s * parts, "pass": self.pass_s,
                **dict(zip(("slow_rank", "slow_factor", "slow_from", "slow_to"), slow or ()))}


class Simulator(smpi.Simulator):
    """Runs stepladder_smpi_train."""

    def train(self, platform, nodes, words, arithmetic, limit=None):
        """Lines of train.csv and of staleness.csv, the figures at the end or the reason why there
        are none, wall time, CPU time. The reason is "" if the CPU time ran out."""
        xml, _ = self.files(platform, nodes)
        command = [self.program, *smpi.LOG, *(f"--cfg={option}" for option in OPTIONS), xml, nodes,
                   *(f"{name}={value}" for name, value in words.items())]
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
            end = lines["failed:"][0] if lines["failed:"] else smpi.crash(text, status)
        return lines["row"], lines["staleness"], end, wall, cpu


def info(program, use, modes):
    """Parameters of the network, images to train on, their origin, and the columns of the CSV
    files."""
    simulator = Simulator(program, ROOT, 60)
    for mode in modes:
        text, status, _, _ = simulator.execute(
            [program, *smpi.LOG, "info", f"network={NETWORK}", f"mode={mode}", f"use={use}"],
            None, 60)
        found = re.search(r"^parameters=(\d+) images=(\d+) data=(\S+) columns=(.*)$", text,
                          re.MULTILINE)
        if not found:
            reason = text.strip().removeprefix("failed: ") or smpi.crash(text, status)
            raise UsageError(f"simulate_training: {reason}")
    tables = json.loads(found[4])["tables"]
    columns = {name: [tuple(c.get(key, "") for key in ("name", "type", "unit", "meaning"))
                      for c in tables[name]] for name in ("train", "staleness")}
    return int(found[1]), int(found[2]), found[3], columns


# --- all of them ---------------------------------------------------------------------------------


class Run(smpi.Run):
    """The trainings of a run folder. `verified` of a mode is what is wrong with it."""

    def __init__(self, simulator, tables, plan, say):
        super().__init__(simulator, tables, say)
        self.plan = plan
        self.too_long = {}  # (platform, nodes, mode): slow

    def verify_modes(self, modes):
        """A few steps on a few ranks: all rungs give correct results, and in synchronous modes the
        weights of all ranks are equal. They do not depend on the network."""
        def one(mode):
            platform = smpi.Platform("verification", 50e-6, 0.8e-9)
            job = Job(platform, VERIFIED_RANKS, mode, "none")
            words = self.plan.words(job) | {"steps": 3, "verify": 1}
            _, _, end, _, _ = self.simulator.train(platform, job.nodes, words, None, limit=120)
            wrong = "" if isinstance(end, dict) else end or "the verification took too long"
            with self.lock:
                self.verified[mode] = wrong

        self.work(modes, one)
        for mode in modes:
            if self.verified[mode]:
                self.failed = True
                self.say(f"FAILED {mode}: {self.verified[mode]}")

    def simulate(self, job):
        row = dict(zip(KEY, job.key))
        limit = self.simulator.limit

        def without_figures(status, reason):
            return row | {"status": status, "reason": reason}, (), ""

        if self.verified[job.mode]:
            return without_figures("failed", self.verified[job.mode])
        _, expected = self.expected_cpu(job) or (0, 0)
        if expected > 1.5 * limit:
            return without_figures("skipped", f"the simulation would take about {expected:.0f} s "
                                              f"of CPU time (limit: {limit} s)")
        if slow := self.too_long.get(job.key[:3]):
            return without_figures("skipped", f"the simulation with slow={slow} took more than "
                                              f"{limit} s of CPU time")
        platform = replace(job.platform, beta=job.platform.beta * self.plan.factor)
        rows, staleness, end, row["wall_s"], cpu = self.simulator.train(
            platform, job.nodes, self.plan.words(job), self.plan.arithmetic)
        self.keep_cost(job, cpu, cpu)
        if isinstance(end, dict):
            others = [(name, self.scaled(job, name, line))
                      for name, lines in (("train", rows), ("staleness", staleness))
                      for line in lines]
            what = f"{float(end['seconds']):.4f} s, {end['step']} updates"
            return row | {"status": "ok"} | end, others, what
        if not end:
            with self.lock:
                self.too_long[job.key[:3]] = job.slow
            return without_figures("skipped", f"the simulation took more than {limit} s of CPU "
                                              "time")
        if "bad_alloc" in end:
            return without_figures("skipped",
                                   f"the simulation needs more than {MEMORY >> 30} GiB")
        return without_figures("diverged" if "learning rate" in end else "failed", end)

    def scaled(self, job, name, line):
        """The row of a line of the program. The bytes are those of PROBLEM."""
        values, = csv.reader([line])
        columns = [column for column in self.tables[name].columns
                   if column not in ("platform", "slow")]
        row = dict(zip(columns, values)) | {"platform": job.platform.name, "slow": job.slow}
        if row.get("bytes_per_step"):
            row["bytes_per_step"] = float(row["bytes_per_step"]) * self.plan.factor
        return row


def drop_unfinished(tables):
    """Rows of trainings that were stopped between their rows and that of simulations.csv."""
    done = {key_of(row) for row in tables["simulations"].rows}
    for name in ("train", "staleness"):
        rows = [row for row in tables[name].rows if key_of(row, TRAINING_KEY) in done]
        if len(rows) != len(tables[name].rows):
            tables[name].replace(rows)


# --- the last screen -----------------------------------------------------------------------------


def print_summary(simulations, trainings, target, say):
    ends = {key_of(row): row for row in simulations}
    rows = {}
    for row in trainings:
        rows.setdefault(key_of(row, TRAINING_KEY), []).append(row)

    def rate(key):
        row = ends.get(key)
        if not row or row["status"] != "ok":
            return None
        return float(row["samples"]) / float(row["seconds"])

    slows = [slow for slow in dict.fromkeys(row["slow"] for row in simulations) if slow != "none"]
    width = max((len(row["mode"]) for row in simulations), default=0) + 1
    say(f"\n{'platform':13}{'nodes':>6} {'mode':{width}}{'samples/s':>10}" +
        "".join(f"{slow[:12]:>13}" for slow in slows) +
        f"{'staleness':>11}{'waiting':>9}{'accuracy':>10}{'to ' + format(target, '.0%'):>9}")
    lines = []
    for key in dict.fromkeys(key[:3] for key in ends):
        platform, nodes, mode = key
        place = f"{platform:13}{nodes:>6} {mode:{width}}"
        plain = rate((*key, "none"))
        steps = rows.get((*key, "none"), [])
        if not steps:
            row = ends.get((*key, "none"))
            lines.append(f"{place}{row['status'] if row else '-':>10}")
            continue
        last = steps[-1]
        slower = [rate((*key, slow)) for slow in slows]
        relative = ["-" if s is None else f"{s / plain:.2f}x" for s in slower]
        staleness = last["staleness_mean"] and f"{float(last['staleness_mean']):.1f}" or "-"
        reached = [f"{float(row['seconds']):.2f} s" for row in steps
                   if row["accuracy"] and float(row["accuracy"]) >= target]
        lines.append(f"{place}{plain:>10.0f}" + "".join(f"{text:>13}" for text in relative) +
                     f"{staleness:>11}{max(0.0, float(last['waiting_share'])):>9.0%}"
                     f"{float(last['accuracy']):>10.1%}{reached[0] if reached else '-':>9}")
    smpi.print_lines(lines, 28, " in simulations.csv and train.csv", say)
    say("Slow ranks: samples/s relative to none. staleness: mean; waiting: for other ranks, share "
        "of the time.")


# --- the command ---------------------------------------------------------------------------------


def step_seconds(run, network):
    """Forward and backward of the fastest measured step, and where they come from."""
    steps = [(total - update, source) for name, total, update, source in smpi.measured_steps(run)
             if name == network]
    if not steps:
        raise UsageError(f"STEP_RUN={run}: step.csv has no steps of {network} in one process")
    return min(steps)


def slow_ranks(fewest):
    words = smpi.words_of("SLOW", "none,permanent,passing")
    for word in words:
        if word not in ("none", "permanent", "passing") and not re.fullmatch(
                r"\d+:([1-9]\d*(\.\d+)?)(:\d+:\d+)?", word):
            raise UsageError(f"SLOW={word}: expected none, permanent, passing, RANK:FACTOR or "
                             "RANK:FACTOR:FROM:TO")
        if word[0].isdigit() and int(word.split(":")[0]) >= fewest:
            raise UsageError(
                f"SLOW={word}: the smallest cluster has the ranks 0 to {fewest - 1}")
    return words


def simulate_training(say):
    modes = [mode.strip() for mode in (os.environ.get("MODES") or "").split(";") if mode.strip()]
    modes = modes or MODES.split(";")
    check_modes(modes)
    nodes = smpi.whole_numbers("NODES", "8,16,64,256", 2)
    slows = slow_ranks(nodes[0])
    samples = smpi.whole_numbers("SAMPLES", "40000", 1)[0]
    batch = smpi.whole_numbers("BATCH", "8", 1)[0]
    limit = smpi.whole_numbers("LIMIT", "120", 1)[0]
    use = os.environ.get("USE") or USE
    problem = os.environ.get("PROBLEM") or "mnist_cnn"
    count = smpi.problem_counts([problem])[problem]
    try:
        target = float(os.environ.get("TARGET") or 0.85)
    except ValueError:
        raise UsageError(
            f"TARGET={os.environ['TARGET']}: expected an accuracy from 0 to 1") from None
    platforms = smpi.words_of("NETWORK", "fattree-100g")
    for name in platforms:
        if name not in smpi.PLATFORMS:
            raise UsageError(f"NETWORK={name}: expected {', '.join(smpi.PLATFORMS)}")
    step_run = smpi.step_run()
    step_s, source = step_seconds(step_run, problem)
    arithmetic = smpi.memory_arithmetic(step_run)
    program = smpi.program("stepladder_smpi_train")

    parameters, images, data, own_columns = info(program, use, modes)
    columns = {"simulations": SIMULATIONS} | {
        name: [*IDENTITY, *described] for name, described in own_columns.items()}
    factor = count / parameters
    # Additions and copies of one byte here stand for those of `factor` bytes.
    scaled = {name: [[size / factor, seconds] for size, seconds in points]
              for name, points in arithmetic.items()}
    pass_s = arithmetic["add"][-1][1] * 4 * count / arithmetic["add"][-1][0]
    plan = Plan(use, batch, samples, images, step_s, pass_s, factor,
                f"compute {smpi.arithmetic_text(scaled)}")

    out = smpi.run_folder("simulated-training")
    tables = smpi.open_run(out, columns)
    drop_unfinished(tables)
    say(f"Run folder: {out}")
    smpi.describe_run(
        out, columns, data=data, stands_for=problem, parameters=parameters, bytes_factor=factor,
        use=use, step={"seconds": step_s, "source": source}, pass_s=pass_s, batch_of_a_rank=batch,
        samples=samples,
        slow={name: {str(n): plan.slow(name, n) for n in nodes} for name in slows})
    before = {key_of(row) for row in tables["simulations"].rows}
    jobs = [Job(smpi.PLATFORMS[name], n, mode, slow)
            for name in platforms for n in nodes for slow in slows for mode in modes]
    jobs = [job for job in jobs if job.key not in before]
    with tempfile.TemporaryDirectory(prefix="stepladder-simulation-") as folder:
        run = Run(Simulator(program, folder, limit), tables, plan, say)

        def all_trainings():
            run.verify_modes(list(dict.fromkeys(job.mode for job in jobs)))
            run.simulate_all(jobs)

        if not run.finish(out, all_trainings):
            return 130
    print_summary(tables["simulations"].rows, tables["train"].rows, target, say)
    say(f"A step of a rank: {1e3 * step_s:.3g} ms, {problem} ({source}); its gradients: "
        f"{4e-6 * count:.3g} MB; an addition or update of them: {1e3 * pass_s:.3g} ms.")
    return 1 if run.failed else 0


if __name__ == "__main__":
    sys.exit(smpi.main(simulate_training))
