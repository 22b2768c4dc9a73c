"""compare on recorded runs of one build: no false alarms, and a slowdown of 5 % is found or cannot
be told.

tests/compare/NN.csv.xz has the repetitions of one run: the AVX-512 rungs and oneDNN on the layers
of mlp and mnist_cnn, measured on a shared virtual machine with two cores. The runs are of one
build: no row differs between them in truth.
"""

import itertools
import json
import math
from collections import Counter

import pytest

import detection_curve
from tests.commands import ROOT

RUNS = sorted((ROOT / "tests/compare").glob("*.csv.xz"))
PAIRS = list(itertools.combinations(range(len(RUNS)), 2))


@pytest.fixture(scope="module")
def recorded(finished_run, tmp_path_factory):
    """Makes the folder of a run, with the times of one variant multiplied if one is named."""
    folder = tmp_path_factory.mktemp("recorded")
    columns = (finished_run / "samples.csv").read_text().splitlines()[0].split(",")
    runs = detection_curve.recorded_runs()

    def make(number, variant=None, factor=1.0):
        run = folder / f"{number}-{variant}-{factor}"
        if not run.exists():
            detection_curve.write_run(run, runs[number], columns, variant, factor)
        return run
    return make


def compare(stepladder, before, after):
    return json.loads(stepladder("compare", before, after, "--json", status=(0, 1)).stdout)


def test_there_are_ten_runs():
    assert len(RUNS) >= 10


@pytest.mark.parametrize("kind", ["rows", "rungs"])
def test_false_alarms_are_rare(stepladder, recorded, kind):
    alarmed, false_rows, all_rows, verdicts = 0, 0, 0, Counter()
    for a, b in PAIRS:
        rows = compare(stepladder, recorded(a), recorded(b))[kind]
        wrong = [row for row in rows if row["verdict"] in ("slower", "faster")]
        alarmed += bool(wrong)
        false_rows += len(wrong)
        all_rows += len(rows)
        verdicts.update(row["verdict"] for row in rows)
    print(f"{alarmed} of {len(PAIRS)} comparisons and {false_rows} of {all_rows} {kind} are false "
          f"alarms; {dict(verdicts)}")
    assert alarmed <= 0.05 * len(PAIRS)
    assert false_rows <= 0.01 * all_rows


def allows(row, size):
    """Whether the interval lets a slowdown of this size be found with a probability of 95 %.

    The half-width of the interval is 5 standard errors or a little more, and 1.645 of them are left
    to chance.
    """
    if row["ratio"] is None:
        return False
    half_width = math.log(row["ratio_high"] / row["ratio"])
    return 0 < half_width * (1 + 1.645 / 5) < math.log(size)


@pytest.mark.parametrize(("kind", "size"), [("rungs", 1.05), ("rows", 1.05), ("rows", 1.2)])
def test_a_slowdown_is_found_or_cannot_be_told(stepladder, recorded, kind, size):
    found = Counter()
    for variant in detection_curve.RUNGS:
        for a, b in PAIRS[::5]:
            for row in compare(stepladder, recorded(a), recorded(b, variant, size))[kind]:
                if row["variant"] == variant:
                    found[allows(row, size), row["verdict"]] += 1
    print(kind, size, dict(found))
    allowed = sum(count for (is_allowed, _), count in found.items() if is_allowed)
    assert allowed > 0 or (kind, size) == ("rows", 1.05)
    assert found[True, "slower"] >= 0.95 * allowed
    # A change of just the threshold is called the same in 5 % of the cases at most.
    wrong = 0.05 if size == 1.05 else 0.01
    missed = sum(found[key, verdict] for key in (True, False) for verdict in ("same", "faster"))
    assert missed <= wrong * found.total()
