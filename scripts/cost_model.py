"""Fits the cost model of `best` to measured runs, or checks one against runs that it was not fitted
to.

    python3 scripts/cost_model.py fit RUN… --out cost_model.json
    python3 scripts/cost_model.py check cost_model.json RUN…

`fit` uses the rows of OpenMP and SIMD rungs that are ok, in fp32 and not prepacked:
harness/rungs/cost_model.hpp has the formula. `check` prints the regret: the time of the chosen
rung over that of the fastest, less one. Chosen is the rung that is predicted to be fastest, and, in
a second line, the fastest of those that `best` measures.
docs/cost-model.md explains both.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from plots.data.errors import InputError
from plots.data.reading import load_run, read_json
from plots.tables.markdown import table

FEWEST_POINTS = 12  # a rung with fewer is not modelled
MOST_POINTS = 800   # of one fit: it takes N³ operations
UNCERTAIN_FACTOR = 1.25  # as uncertain_factor in harness/rungs/cost_model.hpp
MEAN_VARIANCE = 100.0  # prior variance of the linear mean's coefficients, relative to the kernel's

Family = tuple[str, str, str, int]  # primitive, direction, layout, threads


@dataclass
class Measured:
    """Medians in seconds, by variant, of one problem."""

    name: str
    features: list[float]
    seconds: dict[str, float]


def round_up(value: int, step: int) -> int:
    return -(-value // step) * step


def features_of(row: dict[str, Any]) -> list[float]:
    """As shape_features() in harness/rungs/cost_model.cpp."""
    sizes: list[float] = [int(number) for number in re.findall(r"\d+", row["shape"])]
    if row["primitive"] == "matmul" and len(sizes) == 3:
        m, n, k = sizes
        transposed = re.search(r" ([nt])([nt])\b", row["shape"])
        sizes += [min(m, n), max(m, n), round_up(n, 16) / n, min(n, 16), min(k, 16), m * k, n * k]
        letters = transposed.groups() if transposed else "nn"
        sizes += [4 if letter == "t" else 1 for letter in letters]
    elif row["primitive"] == "convolution" and len(sizes) == 12:
        (batch, channels, height, width, filters, kernel_h, kernel_w, stride_h, stride_w, pad_h,
         pad_w, _) = sizes
        rows = (height + 2 * pad_h - kernel_h) // stride_h + 1
        columns = (width + 2 * pad_w - kernel_w) // stride_w + 1
        source, target, source_plane = channels, filters, height * width
        taps = kernel_h * kernel_w
        if row["direction"] == "backward_data":
            source, target, source_plane = filters, channels, rows * columns
            rows, columns = math.ceil(height / stride_h), math.ceil(width / stride_w)
            taps = math.ceil(kernel_h / stride_h) * math.ceil(kernel_w / stride_w)
        sizes = [batch, batch * rows * columns, columns,
                 round_up(rows, 4) * round_up(columns, 4) / (rows * columns), source, target,
                 min(source, 16), min(target, 16), round_up(target, 16) / target,
                 kernel_h * kernel_w, kernel_w, stride_h * stride_w, stride_w, source * taps,
                 source * source_plane]
    return [math.log2(max(1.0, size)) for size in (*sizes, row["flops"], row["bytes"])]


def read_runs(folders: list[Path]) -> tuple[str, str, dict[Family, list[Measured]]]:
    """The processor, the commit and the problems of each family. A later run replaces rows of an
    earlier one."""
    cpu_models, commits = set(), set()
    problems: dict[Family, dict[tuple[float, ...], Measured]] = defaultdict(dict)
    for folder in folders:
        run = load_run(folder, ("environment", "summary"))
        if run.environment is None or run.summary is None:
            raise InputError(f"{folder}: has no environment.json or no summary.csv; expected a run "
                             "of `stepladder bench`")
        cpu_models.add(run.environment["cpu_model"])
        commits.add(run.environment["commit"])
        for row in run.summary:
            if (row["status"] != "ok" or row["technique"] not in ("simd", "openmp")
                    or row["precision"] != "fp32" or row["prepacked"] == "yes"
                    or row["ranks"] not in (None, 1) or not row["flops"]):
                continue
            features = features_of(row)
            key = row["primitive"], row["direction"], row["layout"], int(row["threads"])
            new = Measured(row["problem"], features, {})
            problem = problems[key].setdefault(tuple(features), new)
            problem.seconds[row["variant"]] = row["median_s"]
    if len(cpu_models) > 1:
        raise InputError(f"the runs are of several processors, {', '.join(sorted(cpu_models))}; "
                         "expected one")
    return (cpu_models.pop(), ", ".join(sorted(commits)),
            {key: list(found.values()) for key, found in problems.items()})


def matern(points: np.ndarray, others: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    differences = (points[:, None, :] - others[None, :, :]) / lengths
    r = np.sqrt(3 * np.sum(differences**2, axis=2))
    return (1 + r) * np.exp(-r)


class Fit:
    """The Gaussian processes of one family, which share the lengths and the noise."""

    def __init__(self, problems: list[Measured]):
        self.x = np.array([problem.features for problem in problems])
        self.center, spread = self.x.mean(axis=0), self.x.std(axis=0)
        self.varies = spread > 1e-9
        self.spread = np.where(self.varies, spread, 1.0)
        linear = (self.x - self.center) / self.spread * self.varies
        self.mean_basis = np.hstack([np.ones((len(problems), 1)), linear])
        variants = sorted({variant for problem in problems for variant in problem.seconds})
        # The indices of its problems, log2(seconds) less their mean, and the mean.
        self.rungs: dict[str, tuple[np.ndarray, np.ndarray, float]] = {}
        for variant in variants:
            at = np.array([i for i, problem in enumerate(problems) if variant in problem.seconds])
            if len(at) >= FEWEST_POINTS:
                y = np.log2([problems[i].seconds[variant] for i in at])
                self.rungs[variant] = (at, y - y.mean(), float(y.mean()))
        self.lengths = 4 * self.spread
        self.noise = 0.01  # variance relative to the kernel's

    def covariance(self, lengths: np.ndarray, noise: float) -> np.ndarray:
        mean = MEAN_VARIANCE * self.mean_basis @ self.mean_basis.T
        return matern(self.x, self.x, lengths) + mean + noise * np.eye(len(self.x))

    def loss(self, lengths: np.ndarray, noise: float) -> float:
        """Negative log marginal likelihood of all rungs, up to a constant, at the best variance of
        each."""
        whole, total = self.covariance(lengths, noise), 0.0
        for at, y, _ in self.rungs.values():
            factor = np.linalg.cholesky(whole[np.ix_(at, at)])
            half = np.linalg.solve(factor, y)
            total += len(y) * math.log(float(half @ half) / len(y)) / 2
            total += float(np.log(np.diag(factor)).sum())
        return total

    def search(self, sweeps: int = 4) -> None:
        """Coordinate descent over the logarithms of the lengths and of the noise."""
        def moved(d: int | None, factor: float) -> tuple[np.ndarray, float]:
            """The lengths and the noise with one of them multiplied, d, or the noise for None."""
            lengths, noise = self.lengths.copy(), self.noise
            if d is None:
                noise = min(max(noise * factor, 1e-6), 1.0)
            else:
                low, high = 0.05 * self.spread[d], 1000 * self.spread[d]
                lengths[d] = min(max(lengths[d] * factor, low), high)
            return lengths, noise

        best = self.loss(self.lengths, self.noise)
        step = 4.0
        for _ in range(sweeps):
            for d in [*np.flatnonzero(self.varies), None]:
                for factor in (step, 1 / step):
                    while (loss := self.loss(*moved(d, factor))) < best - 1e-9:
                        (self.lengths, self.noise), best = moved(d, factor), loss
            step = math.sqrt(step)

    def to_json(self) -> dict[str, Any]:
        whole = self.covariance(self.lengths, self.noise)
        rungs = {}

        def rounded(values: np.ndarray) -> list[float]:
            return [float(f"{value:.7g}") for value in values]

        for variant, (at, y, mean) in self.rungs.items():
            weights = np.zeros(len(self.x))
            weights[at] = np.linalg.solve(whole[np.ix_(at, at)], y)
            coefficients = MEAN_VARIANCE * self.mean_basis.T @ weights
            slopes = coefficients[1:] / self.spread * self.varies
            rungs[variant] = {"bias": float(mean + coefficients[0] - slopes @ self.center),
                              "slopes": rounded(slopes), "weights": rounded(weights)}
        return {"lengths": rounded(np.where(self.varies, self.lengths, 1e3)),
                "points": [rounded(point) for point in self.x], "rungs": rungs}


# Directions that are one problem with other operands, so that they are one fit.
POOLED = {
    ("matmul", "forward"): "product", ("matmul", "backward_data"): "product",
    ("matmul", "backward_weights"): "product", ("convolution", "forward"): "correlation",
    ("convolution", "backward_data"): "correlation"}


def fit_families(families: dict[Family, list[Measured]]) -> list[dict[str, Any]]:
    together: dict[Family, dict[str, list[Measured]]] = defaultdict(dict)
    for (primitive, direction, layout, threads), problems in sorted(families.items()):
        pool = POOLED.get((primitive, direction), direction)
        together[(primitive, pool, layout, threads)][direction] = problems
    found = []
    for (primitive, _, layout, threads), by_direction in together.items():
        problems = [problem for each in by_direction.values() for problem in each]
        kept = min(len(problems), MOST_POINTS)  # evenly from all directions
        process = Fit([problems[i * len(problems) // kept] for i in range(kept)])
        if len(process.rungs) < 2:
            continue  # there is nothing to choose
        process.search()
        found.append({"primitive": primitive, "directions": list(by_direction), "layout": layout,
                      "threads": threads} | process.to_json())
        print(f"{primitive} {' and '.join(by_direction)}, {threads} thread{'s' * (threads > 1)}: "
              f"{len(process.x)} problems, {len(process.rungs)} rungs, noise {process.noise:.2g}",
              flush=True)
    return found


def fit(folders: list[Path]) -> dict[str, Any]:
    cpu_model, commit, families = read_runs(folders)
    found = fit_families(families)
    if not found:
        raise InputError(f"{', '.join(map(str, folders))}: no primitive has two rungs that were "
                         f"measured on {FEWEST_POINTS} problems")
    source = f"commit {commit}, runs {', '.join(folder.name for folder in folders)}"
    return {"schema_version": 1, "cpu_model": cpu_model, "source": source, "families": found}


def covers(family: dict[str, Any], variant: str, features: list[float]) -> bool:
    """Whether the rung was measured with such sizes, within a factor of two."""
    measured = np.array(family["points"])[np.array(family["rungs"][variant]["weights"]) != 0]
    low, high = measured.min(axis=0) - 1, measured.max(axis=0) + 1
    return bool(np.all((low <= features) & (features <= high)))


def predicted(family: dict[str, Any], variant: str, features: list[float]) -> float:
    rung, x = family["rungs"][variant], np.array([features])
    kernel = matern(x, np.array(family["points"]), np.array(family["lengths"]))
    mean = rung["bias"] + x[0] @ np.array(rung["slopes"])
    return float(2 ** (mean + kernel[0] @ np.array(rung["weights"])))


@dataclass
class Regret:
    """Of one problem."""

    predicted: float  # of the rung that is predicted to be fastest
    measured: float   # of the fastest of the rungs within UNCERTAIN_FACTOR
    rungs: int        # their number
    problem: str
    chosen: str       # predicted to be fastest
    fastest: str


def regrets(model: dict[str, Any], folders: list[Path]) -> dict[str, list[Regret]]:
    """By primitive and threads: of each problem that has two modelled rungs."""
    families = {(f["primitive"], direction, f["layout"], f["threads"]): f
                for f in model["families"] for direction in f["directions"]}
    _, _, measured = read_runs(folders)
    found: dict[str, list[Regret]] = defaultdict(list)
    for key, problems in sorted(measured.items()):
        if key not in families:
            continue
        family = families[key]
        for problem in problems:
            rungs = [variant for variant in problem.seconds if variant in family["rungs"]]
            expected = {variant: predicted(family, variant, problem.features) for variant in rungs
                        if covers(family, variant, problem.features)}
            if len(rungs) < 2 or not expected:
                continue
            seconds = problem.seconds
            chosen = min(expected, key=expected.__getitem__)
            fastest = min(seconds, key=seconds.__getitem__)
            close = [seconds[variant] for variant in expected
                     if expected[variant] < UNCERTAIN_FACTOR * expected[chosen]]
            found[f"{key[0]}, {key[3]} thread{'s' * (key[3] > 1)}"].append(Regret(
                seconds[chosen] / seconds[fastest] - 1, min(close) / seconds[fastest] - 1,
                len(close), f"{problem.name} {key[1]}", chosen, fastest))
    return found


def print_check(found: dict[str, list[Regret]]) -> None:
    lines = []
    for name, each in found.items():
        rungs = np.mean([regret.rungs for regret in each])
        for kind, regrets_of_kind in (
                ("predicted", [regret.predicted for regret in each]),
                (f"{rungs:.2f} measured", [regret.measured for regret in each])):
            values = np.array(regrets_of_kind)
            worst = each[int(values.argmax())]
            lines.append([name, str(len(each)), kind, f"{np.mean(values == 0):.0%}",
                          f"{np.mean(values):.1%}", f"{np.median(values):.1%}",
                          f"{np.percentile(values, 95):.1%}", f"{values.max():.1%}",
                          f"{worst.problem}: predicted {worst.chosen}, fastest {worst.fastest}"])
    print(table(("rows", "problems", "rungs", "fastest chosen", "mean regret", "median",
                 "95th percentile", "worst", "of"), lines, 1))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    fit_parser = commands.add_parser("fit", help="fit a model to runs")
    check_parser = commands.add_parser("check", help="print the regret of a model on runs")
    check_parser.add_argument("model", type=Path)
    for sub in (fit_parser, check_parser):
        sub.add_argument("runs", metavar="RUN", type=Path, nargs="+")
    fit_parser.add_argument("--out", type=Path, required=True, help="JSON file to write")
    options = parser.parse_args()
    try:
        if options.command == "fit":
            model = fit(options.runs)
            part = options.out.with_name(options.out.name + ".part")
            part.write_text(json.dumps(model) + "\n")
            part.replace(options.out)
        else:
            model = read_json(options.model)
            if model is None:
                raise InputError(f"{options.model}: no such file; expected one that "
                                 "`make cost-model` wrote")
            if any("directions" not in family for family in model["families"]):
                raise InputError(f"{options.model}: of an earlier version; `make cost-model` "
                                 "writes a new one")
            print_check(regrets(model, options.runs))
    except InputError as error:
        print(f"cost_model: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
