"""stepladder attribute: every combination of a primitive's techniques, measured in turns."""

import math

import pytest

from tests.commands import read_csv

SMALL = ("--shape", "40x60x50", "--budget", "0.01", "--repetitions", "5", "--threads", "2")


@pytest.fixture(scope="module")
def attributed(stepladder, tmp_path_factory):
    """A run folder with the attribution of two primitives, and what the first command printed."""
    run = tmp_path_factory.mktemp("attributed") / "run"
    done = stepladder("attribute", "matmul", *SMALL, "--out", run)
    stepladder("attribute", "sgd_update", "--shape", "3000", "--budget", "0.01", "--repetitions",
               "5", "--out", run, "--resume")
    return run, done.stdout


def test_all_combinations_are_measured_apart_from_the_rungs(attributed):
    run, _ = attributed
    rows = [row for row in read_csv(run / "attribution/summary.csv")
            if row["primitive"] == "matmul"]
    assert len(rows) == 32 and {row["status"] for row in rows} == {"ok"}
    assert len({row["variant"].rsplit("_", 1)[1] for row in rows}) == 1  # one instruction set
    assert {row["threads"] for row in rows} == {"1", "2"}
    assert all(("threads" in row["variant"]) == (row["threads"] == "2") for row in rows)
    assert not (run / "summary.csv").exists()


def test_the_averages_multiply_to_the_whole_gain_of_the_measured_times(attributed):
    run, _ = attributed
    seconds = {row["variant"].rsplit("_", 1)[0]: float(row["median_s"])
               for row in read_csv(run / "attribution/summary.csv") if row["primitive"] == "matmul"}
    rows = [row for row in read_csv(run / "attribution/attribution.csv")
            if row["primitive"] == "matmul"]
    techniques = [row for row in rows if not row["partner"] and row["technique"] != "all"]
    assert [row["technique"] for row in techniques] == [
        "blocking", "vectors", "tile", "packing", "threads"]
    [total] = [row for row in rows if row["technique"] == "all"]
    product = math.prod(float(row["average"]) for row in techniques)
    whole = seconds["lattice"] / seconds["lattice_blocking_vectors_tile_packing_threads"]
    assert product == pytest.approx(whole, rel=1e-3)
    assert float(total["average"]) == pytest.approx(whole, rel=1e-3)
    for row in techniques:
        name = row["technique"]
        assert float(row["alone"]) == pytest.approx(
            seconds["lattice"] / seconds[f"lattice_{name}"], rel=1e-3)
        assert float(row["least"]) <= float(row["average"]) <= float(row["most"])
        assert float(row["average_low"]) <= float(row["average"]) <= float(row["average_high"])
    assert sum(row["partner"] != "" for row in rows) == 10


def test_a_second_primitive_is_added_to_the_file(attributed):
    rows = read_csv(attributed[0] / "attribution/attribution.csv")
    assert {row["primitive"] for row in rows} == {"matmul", "sgd_update"}
    assert len({row["direction"] for row in rows if row["primitive"] == "sgd_update"}) == 6


def test_the_table_names_what_a_technique_bought(attributed):
    _, printed = attributed
    assert "matmul forward 40x60x50, 40x60x50 nn, 2 threads: " in printed
    lines = [line.split() for line in printed.splitlines()]
    [vectors] = [line for line in lines if line[:1] == ["vectors"] and line[1].endswith("x")]
    assert all(word.endswith("x") for word in vectors[1:4])


def test_every_combination_is_right_in_all_directions(stepladder):
    primitives = ("matmul", "convolution", "max_pool", "sgd_update")
    done = stepladder("verify", *primitives, "--variant", "lattice*", "--random", "20")
    assert done.stdout.count(" 0 failed") == len(primitives)


def test_a_step_switches_the_techniques_of_all_its_layers(stepladder, attributed):
    run, _ = attributed
    done = stepladder("step", "--attribute", "--network", "mlp", "--batch", "3", "--threads", "1,2",
                      "--repetitions", "3", "--budget", "0.01", "--out", run, "--resume")
    assert "step mlp, batch 3, 2 threads: " in done.stdout
    steps = [row for row in read_csv(run / "attribution/step.csv") if row["layer"] == "total"]
    assert len({row["use"] for row in steps}) == 32
    assert all((row["threads"] == "2") == ("_threads" in row["use"]) for row in steps)
    seconds = {row["use"]: float(row["median_s"]) for row in steps}
    rows = read_csv(run / "attribution/attribution.csv")
    assert {row["primitive"] for row in rows} == {"matmul", "sgd_update", "step"}
    averages = {row["technique"]: float(row["average"]) for row in rows
                if row["primitive"] == "step" and not row["partner"]}
    assert list(averages) == ["loops", "vectors", "tile", "packing", "threads", "all"]
    none = "serial,matmul=lattice,convolution=lattice,max_pool=lattice,sgd_update=lattice"
    everything = ("openmp,matmul=lattice_blocking_vectors_tile_packing_threads,"
                  "convolution=lattice_unfolding_vectors_tile_packing_threads,"
                  "max_pool=lattice_separable_vectors_threads,sgd_update=lattice_vectors_threads")
    assert averages.pop("all") == pytest.approx(seconds[none] / seconds[everything], rel=1e-3)
    assert math.prod(averages.values()) == pytest.approx(seconds[none] / seconds[everything],
                                                         rel=1e-3)


def test_a_step_is_attributed_without_other_rungs(stepladder, tmp_path):
    stepladder("step", "--attribute", "--network", "mlp", "--use", "best", "--out",
               tmp_path / "run", status=2, error="--use excludes --attribute")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("arguments, message", [
    (("reorder",), "primitive: reorder not in {"),
    ((), "primitive is required"),
    (("matmul", "--suite", "none"), "unknown suite 'none'"),
    (("matmul", "--threads", "0"), "expected a whole number from 1 to 1024, not '0'"),
])
def test_wrong_arguments_leave_no_folder(stepladder, tmp_path, arguments, message):
    stepladder("attribute", *arguments, "--out", tmp_path / "run", status=2, error=message)
    assert not (tmp_path / "run").exists()
