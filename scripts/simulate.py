"""Simulates all-reduce on clusters with SimGrid's SMPI, and predicts data-parallel training steps
from it.

Environment variables, all optional:
    NODES     64,256,1024          numbers of nodes; one rank on each
    NETWORK   flat-10g,fattree-100g, also flat-1g, or measured:RUN: a flat network with the measured
              links of the run in that folder, whose all_reduce rows are simulated and compared
    VARIANT   *                    rungs; patterns, separated by commas
    PROBLEM   mnist_cnn,alexnet    names in bench/suites/all_reduce.csv
    STEP_RUN  results/<machine>    the run whose step.csv has the compute time of a training step,
                                   and whose ceilings.json has the rates of additions and copies
    LIMIT     120                  CPU seconds of one simulation; longer ones are skipped
    OUT       results/local/simulation-<time>;  RESUME=1 resumes the run in that folder
    BUILD     build                the build folder
Writes simulation.csv, scaling.csv, columns.json and simulation.json. Exit status: 2 for wrong
arguments, or without SimGrid; 1 if a simulation failed; 130 if interrupted.
"""

import json
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

import smpi  # noqa: E402  (needs the path above)
from plots.data.names import is_rung  # noqa: E402
from plots.data.schema import documented_columns  # noqa: E402
from smpi import PLATFORMS, Platform, UsageError, read_csv  # noqa: E402

COLUMNS = {name: documented_columns("docs/results-format.md", name)
           for name in ("simulation", "scaling")}
TYPICAL_STEPS = ROOT / "simulation/steps.csv"  # of networks that the run has no steps of
STRONG_NODES = 64  # strong scaling: the global batch is that of so many nodes
VERIFIED_RANKS = (4, 7, 16, 64)
LIBRARY = "mpi_allreduce"


def alpha_and_beta(points):
    """alpha from the shortest message, beta from the two longest: a link that limits its rate lets
    a burst pass, so that messages between these are faster than the line."""
    if len(points) < 2 or points[-1][0] <= points[-2][0]:
        raise UsageError("links.json: the links are measured at fewer than two lengths")
    (size, seconds), (longer_size, longer_seconds) = points[-2:]
    beta = (longer_seconds - seconds) / (longer_size - size)
    return max(points[0][1] - points[0][0] * beta, 1e-9), beta


def measured_platform(run):
    """The platform of a measured run, and its number of hosts."""
    path = run / "links.json"
    try:
        content = json.loads(path.read_text())
        every = [one for one in content.get("links", [content]) if one.get("between")]
        if not every:
            raise UsageError(f"{path}: no links between hosts were measured")
        links = max(every, key=lambda one: one.get("hosts", 0))
        between = links["between"]
        alpha, beta = alpha_and_beta(between.get("shift") or between["send"])
        arithmetic = {name: links[name] for name in ("add", "copy")}
        return Platform("measured", alpha, beta, arithmetic=arithmetic), links.get("hosts") or 4
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"NETWORK=measured:{run}: links.json cannot be used ({error})") from None


@dataclass
class Job:
    platform: Platform
    nodes: int
    variant: str
    direction: str = "mean"
    problem: str = ""  # empty: verification
    count: int = 0

    @property
    def series(self):
        return self.platform.name, self.variant, self.direction, self.problem

    @property
    def key(self):
        return self.platform.name, str(self.nodes), *self.series[1:]

    def __str__(self):
        return f"{self.platform.name} {self.nodes} {self.variant} {self.problem}"


def key_of(row):
    return tuple(row[name] for name in ("platform", "nodes", "variant", "direction", "problem"))


class Simulator(smpi.Simulator):
    """Runs stepladder_smpi."""

    libraries = frozenset()  # variants of technique vendor

    def technique(self, variant):
        return "vendor" if variant in self.libraries else "mpi"

    def run(self, platform, nodes, *arguments, arithmetic=None, options=(), limit=None):
        """Last line of the output, wall time, CPU time. The line is "" if the CPU time ran out."""
        xml, hosts = self.files(platform, nodes)
        # Rungs: a send ends with its transfer, as in the cost model. Libraries: Open MPI's choice
        # of algorithm, and SMPI's default for sends, which end at once up to 64 KiB (SimGrid 3.32
        # sums wrongly without, in place).
        library = any(argument in self.libraries for argument in arguments)
        options = options or (("smpi/coll-selector:ompi",) if library else
                              ("smpi/send-is-detached-thresh:0",))
        options = (*smpi.OPTIONS, "contexts/guard-size:0", "contexts/stack-size:256", *options)
        command = ["smpirun", "-np", nodes, "-no-privatize", "-hostfile", hosts, "-platform", xml,
                   *smpi.LOG, *(f"--cfg={option}" for option in options), self.program, *arguments]
        text, status, wall, cpu = self.execute(command, smpi.arithmetic_text(arithmetic),
                                               limit or self.limit)
        if status is None:
            return "", wall, cpu
        answers = [line for line in text.splitlines() if "\t" in line or
                   line.split(":")[0].split(" ")[0] in ("ok", "unavailable", "failed")]
        if arguments[0] == "list":
            return "\n".join(answers), 0, cpu
        if not answers or (status != 0 and not answers[-1].startswith("failed")):
            answers = [f"failed: {smpi.crash(text, status)}"]
        return answers[-1], wall, cpu

    def rungs(self):
        """Why a rung cannot be simulated, by name; empty for the others."""
        answer, _, _ = self.run(PLATFORMS["flat-10g"], 1, "list")
        lines = [line.split("\t") for line in answer.splitlines()]
        self.libraries = {name for name, technique, _ in lines if technique == "vendor"}
        return {name: why for name, _, why in lines}


class Run(smpi.Run):
    """`verified` of a variant: yes or "", status, reason."""

    def verify(self, variant):
        """Exact sums on all ranks, once for each rung; they do not depend on the network."""
        platform = PLATFORMS["flat-10g"]
        tried = []
        for ranks in VERIFIED_RANKS:
            answer, _, _ = self.simulator.run(platform, ranks, "verify", variant,
                                              platform.node_ranks(ranks), limit=120)
            reason = answer.partition(": ")[2]
            if answer.startswith("unavailable"):
                tried.append(reason)
            elif answer != "ok":
                reason = reason or "the verification took too long"
                return "no", "failed", f"{ranks} ranks: {reason}"
        if len(tried) == len(VERIFIED_RANKS):
            return "", "unavailable", tried[0]
        return "yes", "ok", ""

    def verify_all(self, variants, why_not):
        def one(variant):
            why = why_not[variant]
            result = ("", "unavailable", why) if why else self.verify(variant)
            with self.lock:
                self.verified[variant] = result

        self.work(variants, one)
        present = {row["variant"] for row in self.table.rows}
        for variant in variants:
            verified, status, reason = self.verified[variant]
            if status == "unavailable" and variant not in present:
                self.table.append({"variant": variant, "status": status, "reason": reason,
                                   "technique": self.simulator.technique(variant)})
                self.say(f"{variant}: unavailable, {reason}")
        good = sum(self.verified[v][0] == "yes" for v in variants)
        self.say(f"{good} of {len(variants)} rungs give exact sums on "
                 f"{', '.join(map(str, VERIFIED_RANKS))} ranks")
        for variant in variants:
            if self.verified[variant][1] == "failed":
                self.say(f"FAILED {variant}: {self.verified[variant][2]}")

    def simulate(self, job):
        verified, status, reason = self.verified[job.variant]
        p, limit = job.platform, self.simulator.limit
        node_ranks = p.node_ranks(job.nodes)
        row = {"platform": p.name, "nodes": job.nodes, "node_ranks": node_ranks,
               "variant": job.variant, "technique": self.simulator.technique(job.variant),
               "direction": job.direction, "problem": job.problem, "bytes": 4 * job.count,
               "verified": verified, "status": status, "reason": reason}
        if status != "ok":
            return row, (), ""
        messages, expected = self.expected_cpu(job) or (0, 0)
        if expected > 1.5 * limit:
            row |= {"status": "skipped", "reason":
                    f"about {messages / 1e6:.1f} million messages: the simulation would take "
                    f"{expected:.0f} s (limit: {limit} s)"}
            return row, (), ""
        answer, wall, cpu = self.simulator.run(
            p, job.nodes, "time", job.variant, job.direction, job.count, node_ranks,
            p.alpha, p.beta, p.near_alpha, p.beta, arithmetic=p.arithmetic)
        row["wall_s"] = wall
        words = answer.split()
        if not words:
            row |= {"status": "skipped",
                    "reason": f"the simulation took more than {limit} s of CPU time"}
        elif words[0] != "ok":
            row |= {"status": words[0].rstrip(":"), "reason": answer.partition(": ")[2]}
        else:
            row |= {"seconds": float(words[1]), "messages": int(words[3]) or None,
                    "model_s": None if words[2] == "-" else float(words[2])}
            self.keep_cost(job, int(words[3]), cpu)
            return row, (), f"{row['seconds']:.6f} s"
        return row, (), ""


# --- training steps ------------------------------------------------------------------------------


def network_batches():
    networks = json.loads((ROOT / "bench/networks.json").read_text())
    return {name: network["batch"] for name, network in networks.items()}


def compute_times(run):
    """{network: (seconds of a step of the network's own batch, where they come from)}: the fastest
    measured step of one process on the CPU."""
    found = {}
    for network, seconds, _, source in smpi.measured_steps(run):
        if network not in found or seconds < found[network][0]:
            found[network] = seconds, source
    batches = network_batches()
    for row in read_csv(TYPICAL_STEPS):
        name, batch = row["network"], int(row["batch"])
        factor = batches[name] / batch
        found.setdefault(name, (
            float(row["seconds"]) * factor,
            f"simulation/steps.csv, batch {batch}, multiplied by {factor:g}"))
    return found


def scaling_rows(rows, compute):
    """Steps of which the all-reduce begins when the last gradient is there: no overlap."""
    batches = network_batches()
    for row in rows:
        network = row["problem"]
        if row["status"] != "ok" or network not in compute or row["direction"] != "mean":
            continue
        nodes, reduce = int(row["nodes"]), float(row["seconds"])
        for scaling, factor, batch_nodes in (("weak", 1, nodes),
                                             ("strong", STRONG_NODES / nodes, STRONG_NODES)):
            seconds = compute[network][0] * factor
            yield {"platform": row["platform"], "nodes": nodes, "variant": row["variant"],
                   "technique": row["technique"], "network": network, "scaling": scaling,
                   "global_batch": batch_nodes * batches[network], "compute_s": seconds,
                   "all_reduce_s": reduce, "step_s": seconds + reduce,
                   "efficiency": seconds / (seconds + reduce)}


def print_scaling(rows, say):
    groups, strong = {}, {}
    for row in rows:
        key = row["platform"], row["network"], int(row["nodes"])
        if row["scaling"] == "weak":
            groups.setdefault(key, []).append(row)
        else:
            strong[(*key, row["variant"])] = row
    if not groups:
        return
    say(f"\n{'platform':13}{'nodes':>6} {'network':10} {'fastest rung':22}{'all-reduce':>11}"
        f"{'step':>10}{'efficiency':>11}{LIBRARY:>15}{'strong':>8}")
    lines = []
    for key, group in sorted(groups.items()):
        best = min(filter(is_rung, group), key=lambda r: float(r["step_s"]), default=None)
        if best is None:
            continue
        library = [f"{100 * float(r['efficiency']):.1f} %" for r in group
                   if r["variant"] == LIBRARY]
        lines.append(f"{key[0]:13}{key[2]:>6} {key[1]:10} {best['variant']:22}"
                     f"{1e3 * float(best['all_reduce_s']):>8.2f} ms{float(best['step_s']):>8.3f} s"
                     f"{100 * float(best['efficiency']):>9.1f} %"
                     f"{library[0] if library else '-':>15}"
                     f"{100 * float(strong[(*key, best['variant'])]['efficiency']):>6.1f} %")
    smpi.print_lines(lines, 24, " in scaling.csv", say)
    say("Efficiency: compute / step, weak scaling; last column: strong scaling, global batch of "
        f"{STRONG_NODES} nodes.")


# --- comparison with a measured run --------------------------------------------------------------


def matches(variant, patterns):
    return any(fnmatchcase(variant, pattern) for pattern in patterns)


def measured_jobs(run, platform, hosts, patterns):
    jobs = {}
    try:
        for row in read_csv(run / "summary.csv"):
            if (row["primitive"] == "all_reduce" and row["status"] == "ok"
                    and row["ranks"] == row.get("hosts", str(hosts)) == str(hosts)
                    and matches(row["variant"], patterns)):
                job = Job(platform, hosts, row["variant"], row["direction"], row["problem"],
                          int(row["shape"]))
                jobs[job.key] = job, float(row["median_s"])
    except (OSError, ValueError, KeyError) as error:
        raise UsageError(f"NETWORK=measured:{run}: summary.csv cannot be used ({error})") from None
    if not jobs:
        raise UsageError(f"NETWORK=measured:{run}: summary.csv has no all_reduce rows with one "
                         f"rank on each of {hosts} hosts")
    return jobs


def print_comparison(rows, jobs, say):
    by_size, lines = {}, []
    say(f"\n{'rung':24}{'direction':10}{'problem':16}{'simulated':>12}{'measured':>12}"
        f"{'difference':>12}")
    for row in rows:
        if row["status"] != "ok" or key_of(row) not in jobs:
            continue
        simulated, measured = float(row["seconds"]), jobs[key_of(row)][1]
        difference = 100 * (simulated / measured - 1)
        by_size.setdefault(int(row["bytes"]), []).append(abs(difference))
        lines.append(f"{row['variant']:24}{row['direction']:10}{row['problem']:16}"
                     f"{1e3 * simulated:>9.3f} ms{1e3 * measured:>9.3f} ms{difference:>10.1f} %")
    smpi.print_lines(lines, 26, "", say)
    if lines:
        median = statistics.median(sum(by_size.values(), []))
        say(f"Median difference: {median:.1f} % ({len(lines)} rows)")
        say("By bytes: " + ", ".join(f"{size}: {statistics.median(by_size[size]):.1f} %"
                                     for size in sorted(by_size)))


# --- the command ---------------------------------------------------------------------------------


def draw_charts(out, say):
    """With the Python environment of make setup; the tables are complete without it."""
    python = ROOT / ".venv/bin/python"
    if not python.exists():
        say("\nCharts: SKIPPED, no Python environment with numpy and matplotlib (see make setup)")
        return
    done = subprocess.run([python, "-m", "plots", "charts", out], cwd=ROOT, capture_output=True,
                          text=True, check=False)
    say(f"\nCharts: {out}/charts" if done.returncode == 0 else
        f"\nNo charts: {done.stderr.strip()}")


def simulate(say):
    patterns = smpi.words_of("VARIANT", "*")
    nodes = smpi.whole_numbers("NODES", "64,256,1024", 1)
    limit = smpi.whole_numbers("LIMIT", "120", 1)[0]
    problems = smpi.words_of("PROBLEM", "mnist_cnn,alexnet")
    counts = smpi.problem_counts(problems)
    step_run = smpi.step_run()
    compute = compute_times(step_run)
    arithmetic = smpi.memory_arithmetic(step_run)
    platforms, measured = [], {}
    for word in smpi.words_of("NETWORK", "flat-10g,fattree-100g"):
        if word.startswith("measured:"):
            folder = Path(word.partition(":")[2])
            measured = measured_jobs(folder, *measured_platform(folder), patterns)
        elif word in PLATFORMS:
            platforms.append(replace(PLATFORMS[word], arithmetic=arithmetic))
        else:
            raise UsageError(f"NETWORK={word}: expected {', '.join(PLATFORMS)} or measured:RUN")
    program, out = smpi.program("stepladder_smpi"), smpi.run_folder("simulation")

    with tempfile.TemporaryDirectory(prefix="stepladder-simulation-") as folder:
        simulator = Simulator(program, folder, limit)
        why_not = simulator.rungs()
        if not why_not:
            raise UsageError("simulate: stepladder_smpi lists no rungs")
        variants = [name for name in why_not if matches(name, patterns)]
        if not variants:
            raise UsageError(f"VARIANT={','.join(patterns)}: no rung of all_reduce has this name")

        tables = smpi.open_run(out, {"simulation": COLUMNS["simulation"]})
        rows = tables["simulation"].rows
        say(f"Run folder: {out}")
        jobs = [Job(platform, count, variant, "mean", problem, counts[problem]) for count in nodes
                for platform in platforms for problem in problems for variant in variants]
        if measured:
            jobs += [job for job, _ in measured.values() if job.variant in why_not]
            variants = list(dict.fromkeys([*(variants if platforms else ()),
                                           *(job.variant for job in jobs)]))
        before = set(map(key_of, rows))
        jobs = [job for job in jobs if job.key not in before]
        path = out / "simulation.json"
        known = json.loads(path.read_text())["platforms"] if path.exists() else {}
        used = dict.fromkeys(job.platform for job in jobs)
        smpi.describe_run(
            out, COLUMNS,
            platforms=known | {p.name: {
                "alpha_s": p.alpha, "beta_s_per_byte": p.beta,
                "nodes_of_a_leaf_switch": p.leaf or None, "arithmetic": p.arithmetic}
                for p in used},
            compute={name: {"seconds": seconds, "source": source}
                     for name, (seconds, source) in compute.items()})
        run = Run(simulator, tables, say)

        def all_simulations():
            run.verify_all(variants, why_not)
            run.simulate_all([job for job in jobs
                              if run.verified[job.variant][1] != "unavailable"])

        if not run.finish(out, all_simulations):
            return 130

    (out / "scaling.csv").unlink(missing_ok=True)
    scaling = smpi.open_run(out, {"scaling": COLUMNS["scaling"]})["scaling"]
    for row in scaling_rows(rows, compute):
        scaling.append(row)
    print_scaling(scaling.rows, say)
    for name in dict.fromkeys(row["problem"] for row in rows if row["status"] == "ok"):
        if name in network_batches() and name not in compute:
            say(f"No training steps of {name}: neither {step_run / 'step.csv'} nor "
                "simulation/steps.csv has its compute time")
    for name in dict.fromkeys(row["network"] for row in scaling.rows):
        say(f"Compute of {name}: {compute[name][0]:.4g} s ({compute[name][1]})")
    if measured:
        print_comparison(rows, measured, say)
    if scaling.rows:
        draw_charts(out.resolve(), say)
    return 1 if run.failed else 0


if __name__ == "__main__":
    sys.exit(smpi.main(simulate))
