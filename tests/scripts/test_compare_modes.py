"""scripts/compare_modes.sh: its commands, failures of a training, resuming; and one short real run."""

import csv
import json
import os
import random
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
OF_ONE_PROCESS = ["hogwild", "threads_over_samples", "actors_learner"]
OVER_RANKS = ["synchronous", "synchronous,overlap=yes", "synchronous,compressed=one_bit", "synchronous,compressed=top_k", "sharded",
              "parameter_server", "token_ring", "downpour", "ssp,bound=2", "local_sgd,every=8",
              "model_parallel", "pipeline", "token_ring/parameter_server"]


@pytest.fixture
def project(sandbox):
    """A project on two cores whose program trains nothing and makes the run folder."""
    program(sandbox)
    sandbox.fake("python", folder=sandbox.root / ".venv/bin")
    sandbox.fake("mpirun", '''
[[ $1 != --version ]] || { echo "mpirun (Open MPI) 4.1.4"; exit; }
while [[ $1 != */stepladder ]]; do shift; done; "$@"''')
    sandbox.fake("nproc", "echo 2")
    return sandbox


def program(sandbox, body=""):
    sandbox.fake("stepladder", f"""
out= arguments="$*"
while (($#)); do [[ $1 != --out ]] || out=$2; shift; done
write() {{ mkdir -p "$out" && touch "$out/train.csv" "$out/environment.json"; }}
{body}
write""", folder=sandbox.root / "build")


def word_after(call, option):
    words = call.split()
    return words[words.index(option) + 1]


def launches(project):
    """Of every training: seed, mode, and mpirun's ranks or `replicas=N`."""
    found, ranks = [], ""
    for line in project.log.read_text().splitlines():
        if line.startswith("mpirun ") and "-np" in line:
            ranks = word_after(line, "-np")
        elif line.startswith("stepladder "):
            if "--replicas" in line:
                ranks += f"replicas={word_after(line, '--replicas')}"
            found.append((word_after(line, "--seed"), word_after(line, "--mode"), ranks))
            ranks = ""
    return found


def test_all_modes_train_with_a_seed_before_the_next_seed(project):
    result = project.run("compare_modes.sh", OUT="run", SEEDS="1,2")
    assert result.returncode == 0, result.stderr
    found = launches(project)
    assert len(found) == 2 * (1 + len(OVER_RANKS) + len(OF_ONE_PROCESS))
    assert [seed for seed, _, _ in found] == sorted(seed for seed, _, _ in found)
    first = {mode: ranks for seed, mode, ranks in found if seed == "1"}
    assert next(iter(first)) == "single" and first["single"] == ""
    assert {mode for mode, ranks in first.items() if ranks == "4"} == set(OVER_RANKS)
    assert {mode for mode, ranks in first.items() if ranks == "replicas=4"} == set(OF_ONE_PROCESS)
    calls = project.calls("stepladder")
    assert calls[0] == ("train --mode single --seed 1 --network mnist_cnn --epochs 10 --evaluate-every 1000 "
                        "--threads 1 --out run")
    assert all(call.endswith("--out run --resume") for call in calls[1:])
    assert project.calls("python")[-4:] == ["-m plots modes --target 0.97 run", "-m plots charts run",
                                            "-m plots tables run", "-m plots modes run"]


def test_the_variables_restrict_and_describe_the_trainings(project):
    result = project.run("compare_modes.sh", OUT="run", SEEDS="7", RANKS="2", MODES="ssp,bound=4 ; hogwild;single",
                         NETWORK="tiny.json", EPOCHS="3", BATCH="8", THREADS="2", USE="simd", DATA="digits",
                         EVALUATE_EVERY="50", TARGET="0.5")
    assert result.returncode == 0, result.stderr
    assert launches(project) == [("7", "single", ""), ("7", "ssp,bound=4", "2"), ("7", "hogwild", "replicas=2")]
    assert ("--network tiny.json --epochs 3 --evaluate-every 50 --threads 2 --batch 8 --use simd --data digits"
            in project.calls("stepladder")[1])
    assert project.calls("python")[-4] == "-m plots modes --target 0.5 run"


def test_several_numbers_of_ranks_and_one_is_single(project):
    project.run("compare_modes.sh", OUT="run", SEEDS="1", RANKS="1,2,8", MODES="sharded;hogwild")
    assert launches(project) == [("1", "single", ""), ("1", "sharded", "2"), ("1", "sharded", "8"),
                                 ("1", "hogwild", "replicas=2"), ("1", "hogwild", "replicas=8")]


def test_ranks_above_the_cores_yield_and_the_first_lines_say_so(project):
    result = project.run("compare_modes.sh", OUT="run", SEEDS="1", RANKS="2,4", MODES="sharded")
    few, many = (call for call in project.calls("mpirun") if call != "--version")
    assert "--oversubscribe" in few and "mpi_yield_when_idle" not in few
    assert "--oversubscribe" in many and "--mca mpi_yield_when_idle 1" in many
    assert "4 ranks of 1 thread(s) share 2 cores: mpirun --oversubscribe" in result.stdout.splitlines()


def test_a_batch_per_rank_is_for_modes_that_divide_batches(project):
    project.run("compare_modes.sh", OUT="run", SEEDS="1", BATCH_PER_RANK="1", MODES="synchronous;downpour;ssp;hogwild")
    assert [word_after(call, "--mode") for call in project.calls("stepladder") if "--batch-per-rank" in call] \
        == ["synchronous", "ssp"]


@pytest.mark.parametrize("name, value, expected", [
    ("RANKS", "two", "whole numbers such as 4 or 2,4"), ("RANKS", "0", "whole numbers such as 4 or 2,4"),
    ("SEEDS", "1,x", "whole numbers such as 1,2,3"), ("EPOCHS", "0", "a whole number from 1"),
    ("BATCH", "-1", "a whole number from 1"), ("TARGET", "97", "between 0 and 1"),
    ("TARGET", "0.0", "between 0 and 1"), ("HOSTS", "1", "a whole number from 2 to 64")])
def test_a_wrong_value_is_one_sentence(project, name, value, expected):
    result = project.run("compare_modes.sh", OUT="run", **{name: value})
    assert result.returncode == 2 and result.stderr.count("\n") == 1
    assert f"{name}={value}" in result.stderr and expected in result.stderr
    assert project.calls("stepladder") == [] and not (project.root / "run").exists()


def test_modes_of_one_process_need_no_mpirun(project):
    project.remove("mpirun")
    refused = project.run("compare_modes.sh", OUT="run", SEEDS="1", MODES="sharded;hogwild")
    assert refused.returncode == 2 and "mpirun is not on this machine" in refused.stderr
    accepted = project.run("compare_modes.sh", OUT="run", SEEDS="1", MODES="hogwild")
    assert accepted.returncode == 0, accepted.stderr


# --- hosts ---------------------------------------------------------------------------------------


def test_machines_of_a_host_file_share_the_ranks(project):
    project.fake("setpriv", 'shift 2; "$@"')
    (project.bin / "basename").symlink_to("/usr/bin/basename")
    (project.root / "hosts").write_text("# two\nnode1 slots=4\nnode2 slots=4\n")
    result = project.run("compare_modes.sh", OUT="run", SEEDS="1", HOSTFILE="hosts", MODES="sharded;hogwild;ssp",
                         RANKS="2,4")
    assert result.returncode == 0, result.stderr
    assert "Left out, modes of one process: hogwild" in result.stdout.splitlines()
    assert "Network: 2 hosts, host file hosts" in result.stdout.splitlines()
    mpirun = [call for call in project.calls("mpirun") if call != "--version"]
    assert [word_after(call, "--mode") for call in mpirun] == ["single", "sharded", "sharded", "ssp", "ssp"]
    assert all(call.startswith("--hostfile hosts ") for call in mpirun)
    assert word_after(mpirun[0], "-np") == "1"
    assert [word_after(call, "--map-by") for call in mpirun[1:]] == ["ppr:1:node", "ppr:2:node"] * 2


def test_the_ranks_must_divide_among_the_hosts(project):
    project.fake("setpriv")
    (project.bin / "basename").symlink_to("/usr/bin/basename")
    (project.root / "hosts").write_text("node1\nnode2\n")
    result = project.run("compare_modes.sh", HOSTFILE="hosts", RANKS="3")
    assert result.returncode == 2 and "RANKS=3: expected multiples of the 2 hosts" in result.stderr


# --- failures ------------------------------------------------------------------------------------


def test_a_failed_training_does_not_stop_the_others(project):
    program(project, 'if [[ $arguments == *"--mode ssp "* ]]; then write; echo "rank 2 died" >&2; exit 1; fi')
    result = project.run("compare_modes.sh", OUT="run", SEEDS="1,2", MODES="ssp;sharded")
    assert result.returncode == 1
    assert [mode for _, mode, _ in launches(project)] == ["single", "ssp", "sharded"] * 2
    assert "seed 1: ssp, 4 ranks (exit status 1)" in result.stderr and "  | rank 2 died" in result.stderr
    assert project.calls("python")[-1] == "-m plots modes run"


def test_a_mode_that_the_program_refuses_is_asked_for_once(project):
    program(project, 'if [[ $arguments == *"--mode pipelin "* ]]; then echo "unknown mode pipelin" >&2; exit 2; fi')
    result = project.run("compare_modes.sh", OUT="run", SEEDS="1,2,3", MODES="pipelin;sharded")
    assert result.returncode == 1 and result.stderr.count("unknown mode") == 1
    assert [mode for _, mode, _ in launches(project)] == ["single", "pipelin", "sharded", "single", "sharded",
                                                         "single", "sharded"]


def test_a_refusal_of_the_first_training_ends_the_run(project):
    program(project, "echo 'unknown network: minst' >&2; exit 2")
    result = project.run("compare_modes.sh", OUT="run", NETWORK="minst")
    assert result.returncode == 2 and "unknown network: minst" in result.stderr
    assert len(project.calls("stepladder")) == 1


def test_a_resumed_run_repeats_only_what_did_not_finish(project):
    program(project, 'if [[ $arguments == *"--mode ssp --seed 2"* ]]; then write; exit 1; fi')
    failed = project.run("compare_modes.sh", OUT="run", SEEDS="1,2", MODES="ssp")
    assert failed.returncode == 1
    program(project)
    resumed = project.run("compare_modes.sh", OUT="run", SEEDS="1,2", MODES="ssp", RESUME="1")
    assert resumed.returncode == 0
    assert launches(project) == [("2", "ssp", "4")]
    assert project.calls("stepladder")[0].endswith("--out run --resume")
    assert "3 of 4 trainings were finished before." in resumed.stdout
    longer = project.run("compare_modes.sh", OUT="run", SEEDS="1", MODES="ssp", RESUME="1", EPOCHS="11")
    assert longer.returncode == 0 and len(launches(project)) == 2


def test_an_interrupted_run_prints_how_to_resume(project):
    program(project, 'if [[ $arguments == *"--mode ssp"* ]]; then write; exit 130; fi')
    result = project.run("compare_modes.sh", OUT="my run", MODES="ssp,bound=2;sharded", SEEDS="1")
    assert result.returncode == 130
    assert r"make compare-modes MODES=ssp\,bound=2\;sharded SEEDS=1 OUT=my\ run RESUME=1" in result.stdout
    assert len(project.calls("stepladder")) == 2


# --- a real run ----------------------------------------------------------------------------------

NETWORK = {
    "input": {"channels": 1, "height": 6, "width": 6}, "classes": 10, "batch": 12,
    "layers": [{"type": "fully_connected", "outputs": 16}, {"type": "relu"},
               {"type": "fully_connected", "outputs": 10}, {"type": "softmax_cross_entropy"}],
    "optimizer": {"type": "sgd", "learning_rate": 0.1}}


def write_stripes(folder):
    """MNIST's files: noise with a bright row or column; which one it is, is the label."""
    draw = random.Random(1)
    folder.mkdir()
    for part, count in (("train", 240), ("t10k", 60)):
        labels = bytes(draw.randrange(10) for _ in range(count))
        pixels = bytes(draw.randrange(60) + (180 if (y if label < 5 else x) == label % 5 else 0)
                       for label in labels for y in range(6) for x in range(6))
        (folder / f"{part}-images-idx3-ubyte").write_bytes(struct.pack(">IIII", 0x803, count, 6, 6) + pixels)
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(struct.pack(">II", 0x801, count) + labels)
    return folder


@pytest.fixture
def tiny(tmp_path):
    """Variables of a comparison that takes seconds."""
    program_path = Path(os.environ.get("STEPLADDER", ROOT / "build/stepladder")).resolve()
    if not program_path.is_file() or not shutil.which("mpirun"):
        pytest.skip("needs build/stepladder and mpirun")
    help_text = subprocess.run([program_path, "train", "--help"], text=True, capture_output=True, check=True).stdout
    if "--mode" not in help_text:
        pytest.skip("the program knows no modes")
    (tmp_path / "tiny.json").write_text(json.dumps(NETWORK))
    return {"BUILD": str(program_path.parent), "NETWORK": str(tmp_path / "tiny.json"),
            "DATA": str(write_stripes(tmp_path / "stripes")), "RANKS": "2", "SEEDS": "1,2", "EPOCHS": "2",
            "EVALUATE_EVERY": "120", "TARGET": "0.2", "USE": "simd", "OUT": str(tmp_path / "run")}


def test_a_short_comparison(tiny, tmp_path):
    result = subprocess.run([ROOT / "scripts/compare_modes.sh"], text=True, capture_output=True, timeout=300,
                            env={**os.environ, **tiny, "MODES": "synchronous;ssp,bound=1;hogwild"})
    assert result.returncode == 0, result.stdout + result.stderr
    with (tmp_path / "run/modes.csv").open(newline="") as file:
        rows = {row["mode"]: row for row in csv.DictReader(file)}
    assert set(rows) == {"single", "synchronous", "ssp,bound=1", "hogwild"}
    for mode, row in rows.items():
        assert row["seeds"] == "2" and row["ranks"] == ("1" if mode == "single" else "2")
        assert float(row["samples_per_s"]) > 0 and float(row["final_accuracy"]) > 0
        assert row["target_accuracy"] == "0.2"
    assert float(rows["single"]["speedup_vs_single"]) == 1
    assert float(rows["synchronous"]["bytes_per_step"]) > 0 == float(rows["single"]["bytes_per_step"] or 0)
    for kind in ("convergence", "time"):
        assert (tmp_path / f"run/charts/modes-{kind}-tiny.svg").stat().st_size > 10_000
    assert "to target" in result.stdout and "modes.csv" in result.stdout


def test_another_optimizer_is_that_of_all_trainings(project):
    result = project.run("compare_modes.sh", OUT="run", SEEDS="1", MODES="sharded", OPTIMIZER="adam", LEARNING_RATE="0.002")
    assert result.returncode == 0, result.stderr
    calls = project.calls("stepladder")
    assert len(calls) == 2 and all("--optimizer adam --learning-rate 0.002" in call for call in calls)
