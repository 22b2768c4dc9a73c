"""make compare-modes: its commands, failures of a training, resuming; and one short real run."""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.commands import ROOT, execute, read_csv
from tests.stripes import network_of_stripes, write_stripes

OF_ONE_PROCESS = ["hogwild", "threads_over_samples", "actors_learner"]
OVER_RANKS = ["synchronous", "synchronous,overlap=yes", "synchronous,compressed=one_bit",
              "synchronous,compressed=top_k", "sharded", "parameter_server", "token_ring",
              "downpour", "ssp,bound=2", "local_sgd,every=8", "model_parallel", "pipeline",
              "token_ring/parameter_server"]


@pytest.fixture
def compare(project):
    """Runs a comparison on two cores into the folder `run`."""
    project.cores = 2
    return lambda **variables: project.run("run_modes.py", **{"OUT": "run", **variables})


def word_after(call, option):
    words = call.split()
    return words[words.index(option) + 1]


def trained(project):
    """Of every training: seed, mode, and mpirun's ranks or `replicas=N`."""
    found = []
    for launch, call in zip(project.launches(), project.calls()):
        ranks = word_after(launch, "-np") if "-np" in launch else ""
        if "--replicas" in call:
            ranks += f"replicas={word_after(call, '--replicas')}"
        found.append((word_after(call, "--seed"), word_after(call, "--mode"), ranks))
    return found


def modes(project):
    return [mode for _, mode, _ in trained(project)]


def failing(project, pattern, status, output=""):
    def answer(line):
        project.output = output
        return status if pattern in line else 0

    project.answer = answer


def test_all_modes_train_with_a_seed_before_the_next_seed(project, compare):
    compare(SEEDS="1,2")
    found = trained(project)
    assert len(found) == 2 * (1 + len(OVER_RANKS) + len(OF_ONE_PROCESS))
    assert [seed for seed, _, _ in found] == sorted(seed for seed, _, _ in found)
    first = {mode: ranks for seed, mode, ranks in found if seed == "1"}
    assert next(iter(first)) == "single" and first["single"] == ""
    assert {mode for mode, ranks in first.items() if ranks == "4"} == set(OVER_RANKS)
    assert {mode for mode, ranks in first.items() if ranks == "replicas=4"} == set(OF_ONE_PROCESS)
    calls = project.calls()
    assert calls[0] == ("train --mode single --seed 1 --network mnist_cnn --epochs 10 "
                        "--evaluate-every 1000 --threads 1 --out run")
    assert all(call.endswith("--out run --resume") for call in calls[1:])
    assert project.plots == ["modes --target 0.97 run", "charts run", "tables run", "modes run"]


def test_the_variables_restrict_and_describe_the_trainings(project, compare):
    compare(SEEDS="7", RANKS="2", MODES="ssp,bound=4 ; hogwild;single", EPOCHS="3",
            NETWORK="tiny.json", BATCH="8", THREADS="2", USE="simd", DATA="digits",
            EVALUATE_EVERY="50", TARGET="0.5", OPTIMIZER="adam", LEARNING_RATE="0.002")
    assert trained(project) == [("7", "single", ""), ("7", "ssp,bound=4", "2"),
                                ("7", "hogwild", "replicas=2")]
    assert all("--network tiny.json --epochs 3 --evaluate-every 50 --threads 2 --batch 8 "
               "--optimizer adam --learning-rate 0.002 --use simd --data digits" in call
               for call in project.calls())
    assert project.plots[0] == "modes --target 0.5 run"


def test_several_numbers_of_ranks_and_one_is_single(project, compare):
    compare(SEEDS="1", RANKS="1,2,8", MODES="sharded;hogwild")
    assert trained(project) == [
        ("1", "single", ""), ("1", "sharded", "2"), ("1", "sharded", "8"),
        ("1", "hogwild", "replicas=2"), ("1", "hogwild", "replicas=8")]


def test_ranks_above_the_cores_yield_and_the_first_lines_say_so(project, compare):
    result = compare(SEEDS="1", RANKS="2,4", MODES="sharded")
    few, many = filter(None, project.launches())
    assert "--oversubscribe" in few and "mpi_yield_when_idle" not in few
    assert "--oversubscribe" in many and "--mca mpi_yield_when_idle 1" in many
    assert ("4 ranks of 1 thread(s) share 2 cores: mpirun --oversubscribe"
            in result.stdout.splitlines())


def test_a_batch_per_rank_is_for_modes_that_divide_batches(project, compare):
    compare(SEEDS="1", BATCH_PER_RANK="1", MODES="synchronous;downpour;ssp;hogwild")
    assert [word_after(call, "--mode") for call in project.calls() if "--batch-per-rank" in call] \
        == ["synchronous", "ssp"]


@pytest.mark.parametrize("name, value, expected", [
    ("RANKS", "two", "whole numbers such as 4 or 2,4"),
    ("RANKS", "0", "whole numbers such as 4 or 2,4"),
    ("SEEDS", "1,x", "whole numbers such as 1,2,3"), ("EPOCHS", "0", "a whole number from 1"),
    ("BATCH", "-1", "a whole number from 1"), ("TARGET", "97", "between 0 and 1"),
    ("TARGET", "0.0", "between 0 and 1"), ("HOSTS", "1", "a whole number from 2 to 64")])
def test_a_wrong_value_is_one_sentence(project, compare, name, value, expected):
    compare(**{name: value}, status=2, error=(f"{name}={value}", expected), lines=1)
    assert project.commands == [] and not (project.root / "run").exists()


def test_modes_of_one_process_need_no_mpirun(project, compare):
    project.tools = {}
    compare(SEEDS="1", MODES="sharded;hogwild", status=2, error="mpirun is not on this machine")
    compare(SEEDS="1", MODES="hogwild")


# --- hosts ---------------------------------------------------------------------------------------


def test_machines_of_a_host_file_share_the_ranks(project, compare):
    (project.root / "hosts").write_text("# two\nnode1 slots=4\nnode2 slots=4\n")
    result = compare(SEEDS="1", HOSTFILE="hosts", MODES="sharded;hogwild;ssp", RANKS="2,4")
    assert "Left out, modes of one process: hogwild" in result.stdout.splitlines()
    assert "Network: 2 hosts, host file hosts" in result.stdout.splitlines()
    assert modes(project) == ["single", "sharded", "sharded", "ssp", "ssp"]
    launches = project.launches()
    assert all(launch.startswith("setpriv --pdeathsig TERM mpirun --hostfile hosts ")
               for launch in launches)
    assert word_after(launches[0], "-np") == "1"
    assert [word_after(launch, "--map-by") for launch in launches[1:]] == \
        ["ppr:1:node", "ppr:2:node"] * 2


def test_the_ranks_must_divide_among_the_hosts(project, compare):
    (project.root / "hosts").write_text("node1\nnode2\n")
    compare(HOSTFILE="hosts", RANKS="3", status=2,
            error="RANKS=3: expected multiples of the 2 hosts")


# --- failures ------------------------------------------------------------------------------------


def test_a_failed_training_does_not_stop_the_others(project, compare):
    failing(project, "--mode ssp ", 1, "rank 2 died")
    compare(SEEDS="1,2", MODES="ssp;sharded", status=1,
            error=("seed 1: ssp, 4 ranks (exit status 1)", "  | rank 2 died"))
    assert modes(project) == ["single", "ssp", "sharded"] * 2
    assert project.plots[-1] == "modes run"


def test_a_mode_that_the_program_refuses_is_asked_for_once(project, compare):
    failing(project, "--mode pipelin ", 2)
    compare(SEEDS="1,2,3", MODES="pipelin;sharded", status=1)
    assert modes(project) == ["single", "pipelin", "sharded", *["single", "sharded"] * 2]


def test_a_refusal_of_the_first_training_ends_the_run(project, compare):
    failing(project, "minst", 2, "unknown network: minst")
    compare(NETWORK="minst", status=2, error="unknown network: minst")
    assert len(project.commands) == 1


def test_a_resumed_run_repeats_only_what_did_not_finish(project, compare):
    failing(project, "--mode ssp --seed 2", 1)
    compare(SEEDS="1,2", MODES="ssp", status=1)
    project.answer = lambda line: 0
    resumed = compare(SEEDS="1,2", MODES="ssp", RESUME="1")
    assert trained(project) == [("2", "ssp", "4")]
    assert project.calls()[0].endswith("--out run --resume")
    assert "3 of 4 trainings were finished before." in resumed.stdout
    compare(SEEDS="1", MODES="ssp", RESUME="1", EPOCHS="11")
    assert len(trained(project)) == 2


def test_an_interrupted_run_prints_how_to_resume(project, compare):
    failing(project, "--mode ssp", 130)
    result = compare(OUT="my run", MODES="ssp,bound=2;sharded", SEEDS="1", status=130)
    assert len(project.commands) == 2
    assert ("make compare-modes MODES='ssp,bound=2;sharded' SEEDS=1 OUT='my run' RESUME=1"
            in result.stdout)


# --- a real run ----------------------------------------------------------------------------------

@pytest.fixture
def tiny(tmp_path):
    """Variables of a comparison that takes seconds."""
    program_path = Path(os.environ.get("STEPLADDER", ROOT / "build/stepladder")).resolve()
    if not program_path.is_file() or not shutil.which("mpirun"):
        pytest.skip("needs build/stepladder and mpirun")
    network = tmp_path / "tiny.json"
    network.write_text(json.dumps(network_of_stripes(12, type="sgd", learning_rate=0.1)))
    return {"BUILD": str(program_path.parent), "NETWORK": str(network),
            "DATA": str(write_stripes(tmp_path / "stripes", 240, 60)), "RANKS": "2",
            "SEEDS": "1,2", "EPOCHS": "2", "EVALUATE_EVERY": "120", "TARGET": "0.2", "USE": "simd",
            "OUT": str(tmp_path / "run")}


def test_a_short_comparison(tiny, tmp_path):
    result = execute(sys.executable, ROOT / "scripts/run_modes.py", timeout=300,
                     env={**os.environ, **tiny, "MODES": "synchronous;ssp,bound=1;hogwild"})
    rows = {row["mode"]: row for row in read_csv(tmp_path / "run/modes.csv")}
    assert set(rows) == {"single", "synchronous", "ssp,bound=1", "hogwild"}
    for mode, row in rows.items():
        assert row["seeds"] == "2" and row["ranks"] == ("1" if mode == "single" else "2")
        assert float(row["samples_per_s"]) > 0 and float(row["final_accuracy"]) > 0
        assert row["target_accuracy"] == "0.2"
    assert float(rows["single"]["speedup_vs_single"]) == 1
    assert float(rows["synchronous"]["bytes_per_step"]) > 0
    assert float(rows["single"]["bytes_per_step"] or 0) == 0
    for kind in ("convergence", "time"):
        assert (tmp_path / f"run/charts/modes-{kind}-tiny.svg").stat().st_size > 10_000
    assert "to target" in result.stdout and "modes.csv" in result.stdout
