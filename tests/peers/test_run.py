"""bench/peers/run.py without PyTorch: what it measures is replaced, what it writes is read back."""

import csv
import importlib.util
import sys
from pathlib import Path

import pytest

from plots import reading, schema

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def peers(monkeypatch):
    spec = importlib.util.spec_from_file_location("peers_run", ROOT / "bench/peers/run.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    phases = {"forward": 0.25, "backward": 0.5, "update": 0.25}

    def of_stepladder(program, network, use, threads, tuned):
        assert tuned.exists()
        return 1.0 / threads, {p: s / threads for p, s in phases.items()}, {}

    def of_pytorch(file, network, mode, threads, device):
        if mode == "compile":
            raise RuntimeError("no compiler")
        return 2.0 / threads, phases, {"torch": "2.0"}

    monkeypatch.setattr(module, "has_cuda", lambda: False)
    monkeypatch.setattr(module, "tune", lambda program, networks, threads, file: file.touch())
    monkeypatch.setattr(module, "run_stepladder", of_stepladder)
    monkeypatch.setattr(module, "run_pytorch", of_pytorch)
    return module


@pytest.fixture
def run(peers, monkeypatch, tmp_path, capsys):
    def call():
        monkeypatch.setattr(sys, "argv", ["run.py", "--file", str(ROOT / "bench/networks.json"), "--rounds", "2",
                                          "--networks", "mlp,mnist_cnn", "--threads", "1,2",
                                          "--out", str(tmp_path / "run")])
        status = peers.main()
        return status, capsys.readouterr().out, tmp_path / "run"
    return call


def test_step_csv_has_the_columns_of_stepladder_step_and_a_total_for_each_configuration(run):
    _, _, out = run()
    rows = reading.read_table(out / "step.csv", schema.STEP, [])
    totals = {(r["network"], r["use"], r["mode"], r["threads"]): r["median_s"]
              for r in rows if r["layer"] == "total"}
    assert totals["mlp", "best", "single", 2] == 0.5
    assert totals["mnist_cnn", "pytorch", "channels_last", 2] == 1.0
    assert ("mlp", "pytorch", "channels_last", 1) not in totals  # it has no images
    assert len(list(csv.DictReader((out / "samples.csv").open()))) == 2 * len(totals)


def test_a_peer_that_fails_is_named_and_the_others_are_measured(run):
    status, told, _ = run()
    assert status == 1
    assert "FAILED mlp pytorch compile 1 cpu: no compiler" in told
    assert "2.00x" in told


def test_a_folder_with_a_run_is_left_alone(run):
    run()
    with pytest.raises(SystemExit, match="holds a run already"):
        run()
