"""bench/peers/run.py without PyTorch: the measurements are fakes, the files are read back."""

import csv
import functools
import json
import re

import pytest

import run as peers_run
from plots.data import reading
from tests.commands import ROOT, write_script

MACHINE = {"cpu_model": "a processor", "commit": "0123456789ab"}


@pytest.fixture
def peers(monkeypatch):
    phases = {"forward": 0.25, "backward": 0.5, "update": 0.25}

    def of_stepladder(program, network, use, threads, tuned, ranks):
        assert (tuned is None) if use == "cuda" else tuned.exists()
        return 1.0 / threads, {p: s / threads for p, s in phases.items()}, MACHINE

    def of_pytorch(file, network, mode, threads, device, seconds, ranks, on_gpu):
        if mode == "compile":
            raise RuntimeError("no compiler")
        versions = {"pytorch": "2.0", "device": device}
        return 2.0 / threads, {} if mode.startswith("cuda_graph") else phases, versions

    monkeypatch.setattr(peers_run, "tune", lambda program, networks, threads, file: file.touch())
    monkeypatch.setattr(peers_run, "run_stepladder", of_stepladder)
    monkeypatch.setattr(peers_run, "run_pytorch", of_pytorch)
    return peers_run


@pytest.fixture
def run(peers, main_of):
    return functools.partial(main_of, peers, "--file", ROOT / "bench/networks.json", "--rounds",
                             "2", "--networks", "mlp,mnist_cnn", "--threads", "1,2")


def test_step_csv_has_the_columns_of_stepladder_step_and_a_total_for_each_configuration(run):
    _, _, out = run()
    rows = reading.read_table(out / "step.csv", [])
    totals = {(r["network"], r["use"], r["mode"], r["threads"]): r["median_s"]
              for r in rows if r["layer"] == "total"}
    assert totals["mlp", "best", "single", 2] == 0.5
    assert totals["mnist_cnn", "pytorch", "channels_last", 2] == 1.0
    assert ("mlp", "pytorch", "channels_last", 1) not in totals  # it has no images
    assert len(list(csv.DictReader((out / "samples.csv").open()))) == 2 * len(totals)


def test_the_environment_names_the_machine_the_commit_and_the_version(run):
    _, _, out = run()
    assert json.loads((out / "environment.json").read_text()) == MACHINE | {
        "schema_version": 1, "pytorch": "2.0", "device": "cpu", "rounds": 2, "ranks": 1}


def test_a_peer_that_fails_is_named_and_the_others_are_measured(run):
    status, shown, _ = run()
    assert status == 1
    assert "FAILED mlp pytorch compile 1 cpu: no compiler" in shown
    assert "2.00x" in shown


def test_a_folder_with_a_run_is_not_changed(run):
    run()
    with pytest.raises(SystemExit, match="holds a run already"):
        run()


def test_on_a_gpu_our_cuda_rungs_are_compared_with_three_modes_with_and_without_tf32(run):
    status, shown, out = run("--device", "cuda")
    rows = reading.read_table(out / "step.csv", [])
    totals = {(r["use"], r["mode"]) for r in rows
              if r["layer"] == "total" and r["network"] == "mlp"}
    assert totals == {("cuda", "graph"), ("pytorch", "eager"), ("pytorch", "eager_tf32"),
                      ("pytorch", "cuda_graph"), ("pytorch", "cuda_graph_tf32"),
                      ("pytorch", "compile_tf32")}
    assert {(r["threads"], r["device"]) for r in rows} == {(1, "cuda")}
    assert status == 1 and "FAILED mlp pytorch compile 1 cuda: no compiler" in shown
    assert not (out / "tuned.csv").exists()


def test_a_step_that_is_one_launch_has_a_total_and_no_phases(run):
    _, _, out = run("--device", "cuda")
    rows = reading.read_table(out / "step.csv", [])
    rows = [r for r in rows if r["mode"] == "cuda_graph"]
    assert rows and {r["phase"] for r in rows} == {"total"}


def test_an_interrupted_run_keeps_its_measurements(peers, run, monkeypatch, tmp_path):
    measured = []

    def of_pytorch(file, network, mode, *rest):
        if mode == "cuda_graph":
            raise KeyboardInterrupt
        measured.append((network, mode))
        return 1.0, {}, {}

    monkeypatch.setattr(peers, "run_pytorch", of_pytorch)
    with pytest.raises(KeyboardInterrupt):
        run("--device", "cuda")
    rows = reading.read_table(tmp_path / "run/step.csv", [])
    assert measured
    assert {(r["network"], r["mode"]) for r in rows if r["use"] == "pytorch"} == set(measured)


def test_on_a_gpu_one_process_of_pytorch_for_each_network_measures_all_modes(tmp_path,
                                                                             monkeypatch):
    """The process is a fake that counts its answers; it ends when it is asked to compile."""
    fake = tmp_path / "pytorch_step.py"
    fake.write_text("""
import json, sys
for count, line in enumerate(sys.stdin):
    if "compile" in line:
        sys.exit("no compiler")
    answer = {"torch": "2.0", "device": sys.argv[1], "total": [count, count, 9], "phases": {}}
    print(json.dumps({"error": "no graph"} if "graph" in line else answer), flush=True)
""")
    monkeypatch.setattr(peers_run, "HERE", tmp_path)
    on_gpu = peers_run.PyTorchOnGpu("networks.json", ["mlp", "mnist_cnn"], 0.1)

    def seconds(network, mode):
        return peers_run.run_pytorch("networks.json", network, mode, 1, "cuda", 0.1, 1, on_gpu)[0]

    assert [seconds("mlp", "eager"), seconds("mlp", "eager_tf32")] == [0, 1]
    assert seconds("mnist_cnn", "eager") == 0
    for mode, why in (("cuda_graph", "no graph"), ("compile", "no compiler"),
                      ("eager", "no compiler")):
        with pytest.raises(RuntimeError, match=why):
            seconds("mlp", mode)
    assert seconds("mnist_cnn", "eager") == 1


@pytest.fixture
def over_ranks(peers, run, monkeypatch):
    """A run with --ranks; `seconds`: per use, of the first round, the second one and so on."""
    def call(seconds, *options, broken=""):
        left = {}

        def measured(use, mode, ranks, network):
            assert ranks == 2
            if mode == broken:
                raise RuntimeError("no compiler")
            total = left.setdefault((use, mode, network), list(seconds[use])).pop(0)
            return total, {"forward": total / 2, "all_reduce": total / 4}, {"pytorch": "2.0"}

        monkeypatch.setattr(peers, "run_stepladder", lambda program, network, use, threads, tuned,
                            ranks: measured(use, "synchronous", ranks, network))
        monkeypatch.setattr(peers, "run_pytorch", lambda file, network, mode, threads, device,
                            seconds, ranks, on_gpu: measured("pytorch", mode, ranks, network))
        monkeypatch.setattr(peers.shutil, "which", lambda name: name)
        return run("--ranks", "2", *options)
    return call


SECONDS = {"best": [0.5, 2.0, 1.0], "vendor": [1.0] * 3, "pytorch": [2.0, 4.0, 8.0]}


def test_over_ranks_the_rates_and_the_ratios_of_the_rounds_are_written(over_ranks):
    status, shown, out = over_ranks(SECONDS, "--networks", "mnist_cnn", "--rounds", "3")
    assert status == 0
    rows = {(r["use"], r["mode"]): r
            for r in reading.read_table(out / "peers_data_parallel.csv", [])}
    assert rows.keys() == {("best", "synchronous"), ("vendor", "synchronous"),
                           ("pytorch", "eager"), ("pytorch", "channels_last"),
                           ("pytorch", "compile")}
    best, peer = rows["best", "synchronous"], rows["pytorch", "eager"]
    assert (best["ranks"], best["threads"], best["batch"], best["rounds"]) == (2, 1, 64, 3)
    assert (best["median_s"], best["ci_low_s"], best["ci_high_s"]) == (1.0, 0.5, 2.0)
    assert (best["samples_per_s"], best["ratio"]) == (128.0, None)
    assert peer["samples_per_s"] == 32.0
    # 2 / 0.5, 4 / 2 and 8 / 1 in turn, not the ratio of the medians
    assert (peer["ratio"], peer["ratio_ci_low"], peer["ratio_ci_high"]) == (4.0, 2.0, 8.0)
    assert peer["exposed_share"] == 0.25
    assert re.search(r"pytorch +eager +32\.0 +25\.0 % +4\.00x \(2\.00 to 8\.00\)", shown)

    step = reading.read_table(out / "step.csv", [])
    assert {(r["ranks"], r["threads"]) for r in step} == {(2, 1)}
    assert {r["mode"] for r in step if r["use"] == "best"} == {"synchronous"}
    assert {r["phase"] for r in step} == {"forward", "all_reduce", "total"}
    assert json.loads((out / "environment.json").read_text())["ranks"] == 2


def test_over_ranks_a_mode_that_fails_is_a_row_with_the_reason(over_ranks):
    status, shown, out = over_ranks(SECONDS, "--networks", "mlp", broken="compile")
    rows = {r["mode"]: r for r in reading.read_table(out / "peers_data_parallel.csv", [])}
    assert status == 1 and "FAILED mlp pytorch compile 1 cpu: no compiler" in shown
    assert (rows["compile"]["status"], rows["compile"]["reason"]) == ("failed", "no compiler")
    assert rows["compile"]["median_s"] is None and rows["eager"]["status"] == "ok"


def test_one_rank_alone_has_no_comparison_over_ranks(run):
    _, _, out = run()
    assert not (out / "peers_data_parallel.csv").exists()


@pytest.mark.parametrize("value", ["1", "two", "-2", "2,4"])
def test_a_wrong_number_of_ranks_is_an_error(run, capsys, tmp_path, value):
    with pytest.raises(SystemExit):
        run("--ranks", value)
    assert f"'{value}' is not a number of ranks; expected 2 or more" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("options", "sentence"), [
    (("--networks", "mlp,lenet"), "has no network 'lenet'; it has mlp, mnist_cnn"),
    (("--threads", "1,x"), "--threads 1,x: expected whole numbers from 1, such as 1,2")])
def test_a_wrong_option_is_an_error_and_leaves_no_folder(run, tmp_path, options, sentence):
    with pytest.raises(SystemExit, match=sentence):
        run(*options)
    assert not (tmp_path / "run").exists()


def test_the_columns_over_ranks_are_documented(peers):
    text = (ROOT / "bench/peers/README.md").read_text().split("## Inference")[0]
    documented = dict(re.findall(r"^\| `(\w+)` \| (text|integer|number) \|", text, re.MULTILINE))
    assert documented == peers.COLUMNS["peers_data_parallel"]


# The header of step.csv and the rows of a step on the given ranks; copies its arguments.
FAKE_STEP = """#!/bin/sh
echo "$@" > {arguments}
{failure}
while [ "$1" != --out ]; do shift; done
touch "$2/ceilings.json"
echo '{{"commit": "0123456789ab", "noise": {{}}, "commands": ["step"]}}' > "$2/environment.json"
cat > "$2/step.csv" <<END
layer,phase,ranks,median_s
conv1,forward,{ranks},0.25
conv2,forward,{ranks},0.5
gradients,all_reduce,{ranks},0.125
total,total,{ranks},1.5
END
"""


@pytest.fixture
def step_of(monkeypatch, tmp_path):
    """run_stepladder on two ranks, with a program in place of mpirun."""
    def call(ranks, failure=""):
        launcher = write_script(tmp_path / "launcher.sh", FAKE_STEP.format(
            arguments=tmp_path / "arguments", ranks=ranks, failure=failure))
        monkeypatch.setattr(peers_run, "mpirun",
                            lambda ranks, cores: [str(launcher), "-np", str(ranks)])
        return peers_run.run_stepladder("stepladder", "mlp", "best", 1, tmp_path / "tuned.csv", 2)
    return call


def test_our_step_over_ranks_runs_under_mpirun(step_of, tmp_path):
    assert step_of(ranks=2) == (1.5, {"forward": 0.75, "all_reduce": 0.125},
                                {"commit": "0123456789ab"})
    arguments = (tmp_path / "arguments").read_text()
    assert arguments.startswith("-np 2 stepladder step --network mlp --use best --threads 1 ")
    assert (tmp_path / "ceilings.json").exists()  # for the next round


def test_a_program_of_another_mpi_library_is_an_error(step_of):
    with pytest.raises(RuntimeError, match="the step ran on 1 rank, expected 2"):
        step_of(ranks=1)


def test_the_reason_is_our_sentence_and_not_that_of_mpirun(step_of):
    failure = "echo 'stepladder: no such rung' >&2; echo 'mpirun detected' >&2; exit 2"
    with pytest.raises(RuntimeError, match="^stepladder: no such rung$"):
        step_of(ranks=2, failure=failure)
