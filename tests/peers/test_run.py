"""bench/peers/run.py without PyTorch: the measurements are fakes, the files are read back."""

import csv
import importlib.util
import sys
from pathlib import Path

import pytest

from plots import reading

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def peers(monkeypatch):
    spec = importlib.util.spec_from_file_location("peers_run", ROOT / "bench/peers/run.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    phases = {"forward": 0.25, "backward": 0.5, "update": 0.25}

    def of_stepladder(program, network, use, threads, tuned):
        assert (tuned is None) if use == "cuda" else tuned.exists()
        return 1.0 / threads, {p: s / threads for p, s in phases.items()}, {}

    def of_pytorch(file, network, mode, threads, device, seconds):
        if mode == "compile":
            raise RuntimeError("no compiler")
        versions = {"torch": "2.0", "device": device}
        return 2.0 / threads, {} if mode.startswith("cuda_graph") else phases, versions

    monkeypatch.setattr(module, "tune", lambda program, networks, threads, file: file.touch())
    monkeypatch.setattr(module, "run_stepladder", of_stepladder)
    monkeypatch.setattr(module, "run_pytorch", of_pytorch)
    return module


@pytest.fixture
def run(peers, monkeypatch, tmp_path, capsys):
    def call(*options):
        monkeypatch.setattr(sys, "argv", [
            "run.py", "--file", str(ROOT / "bench/networks.json"), "--rounds", "2", "--networks",
            "mlp,mnist_cnn", "--threads", "1,2", "--out", str(tmp_path / "run"), *options])
        status = peers.main()
        return status, capsys.readouterr().out, tmp_path / "run"
    return call


def test_step_csv_has_the_columns_of_stepladder_step_and_a_total_for_each_configuration(run):
    _, _, out = run()
    rows = reading.read_table(out / "step.csv", [])
    totals = {(r["network"], r["use"], r["mode"], r["threads"]): r["median_s"]
              for r in rows if r["layer"] == "total"}
    assert totals["mlp", "best", "single", 2] == 0.5
    assert totals["mnist_cnn", "pytorch", "channels_last", 2] == 1.0
    assert ("mlp", "pytorch", "channels_last", 1) not in totals  # it has no images
    assert len(list(csv.DictReader((out / "samples.csv").open()))) == 2 * len(totals)


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
