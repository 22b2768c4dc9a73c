"""bench/peers/inference.py: the measurements are fakes, the files are read back; and the peers that
are installed in .venv-peers, on a small network with the weights of stepladder infer."""

import json
import os
import re
from pathlib import Path

import pytest

import inference
from plots.data import reading
from tests.commands import ROOT, execute

PYTHON = ROOT / ".venv-peers/bin/python"

NETWORK = {"tiny": {
    "input": {"channels": 2, "height": 9, "width": 7}, "classes": 4, "batch": 4,
    "layers": [
        {"type": "convolution", "filters": 6, "kernel_h": 3, "kernel_w": 2, "pad_h": 1, "pad_w": 0,
         "groups": 2}, {"type": "relu"},
        {"type": "local_response_normalization", "size": 3, "alpha": 0.5, "k": 1},
        {"type": "max_pool", "window": 2, "stride": 1, "pad": 1},
        {"type": "dropout", "rate": 0.5},
        {"type": "convolution", "name": "last", "filters": 4, "kernel": 2, "stride": 2},
        {"type": "tanh"}, {"type": "average_pool", "window": 2, "stride": 1, "pad": 1},
        {"type": "fully_connected", "outputs": 5}, {"type": "sigmoid"},
        {"type": "fully_connected", "outputs": 4}, {"type": "softmax_cross_entropy"}],
    "optimizer": {"type": "sgd", "learning_rate": 0.1, "weight_decay": 0.1,
                  "weight_decay_on": "convolution"}}}


def times(median):
    return {"median_s": median, "p90_s": 2 * median, "p99_s": 4 * median, "samples_per_s": 8.0}


@pytest.fixture
def run(main_of, monkeypatch):
    """`medians`: of each use in the first round, the second one and so on."""
    def call(medians, *options, broken=""):
        left = {use: list(values) for use, values in medians.items()}

        def of_stepladder(program, network, batches, threads, seconds, export):
            taken = {use: left[use].pop(0) for use in inference.OURS}
            return {(use, batch): times(value) for use, value in taken.items()
                    for batch in batches}, {"cpu_model": "a processor"}

        def of_peer(file, network, use, mode, batches, threads, seconds, export):
            if (mode or use) == broken:
                raise RuntimeError("no compiler")
            value = left[mode or use].pop(0)
            return {batch: times(value) for batch in batches}, {use: "2.0"}

        monkeypatch.setattr(inference, "run_stepladder", of_stepladder)
        monkeypatch.setattr(inference, "run_peer", of_peer)
        return main_of(inference, "--file", ROOT / "bench/networks.json", "--networks", "mlp",
                       "--batch", "1,8", "--threads", "2", "--rounds", "3", *options)
    return call


MEDIANS = {"best": [0.5, 2.0, 1.0], "vendor": [1.0] * 3, "eager": [2.0, 4.0, 8.0],
           "compile": [1.0] * 3, "onnxruntime": [3.0] * 3}


def rows_of(out):
    return {(r["use"], r["mode"], r["batch"]): r
            for r in reading.read_table(out / "peers_inference.csv", [])}


def test_medians_and_ratios_are_those_of_the_rounds(run):
    status, shown, out = run(MEDIANS)
    assert status == 0
    rows = rows_of(out)
    assert {key[:2] for key in rows} == {("best", ""), ("vendor", ""), ("pytorch", "eager"),
                                         ("pytorch", "compile"), ("onnxruntime", "")}
    best, eager = rows["best", "", 8], rows["pytorch", "eager", 8]
    assert (best["rounds"], best["threads"], best["median_s"]) == (3, 2, 1.0)
    assert (best["ci_low_s"], best["ci_high_s"], best["p99_s"]) == (0.5, 2.0, 4.0)
    assert best["ratio"] is None and best["status"] == "ok"
    # 2 / 0.5, 4 / 2 and 8 / 1 in turn, not the ratio of the medians
    assert (eager["ratio"], eager["ratio_ci_low"], eager["ratio_ci_high"]) == (4.0, 2.0, 8.0)
    assert re.search(r"pytorch +eager +batch 8 +2 threads +4000\.000 +16000\.000 +4\.00x", shown)
    environment = json.loads((out / "environment.json").read_text())
    assert environment == {"schema_version": 1, "cpu_model": "a processor", "pytorch": "2.0",
                           "onnxruntime": "2.0", "rounds": 3}


def test_what_fails_is_a_row_with_the_reason_and_the_others_are_measured(run):
    status, shown, out = run(MEDIANS, broken="compile")
    rows = rows_of(out)
    assert status == 1 and "FAILED: no compiler" in shown
    assert rows["pytorch", "compile", 1]["reason"] == "no compiler"
    assert rows["pytorch", "compile", 1]["median_s"] is None
    assert rows["onnxruntime", "", 8]["status"] == "ok"


def test_a_folder_with_a_run_is_not_changed(run):
    run(MEDIANS)
    with pytest.raises(SystemExit, match="holds a run already"):
        run(MEDIANS)


@pytest.mark.parametrize(("options", "sentence"), [
    (("--networks", "lenet"), "has no network 'lenet'; it has mlp, mnist_cnn"),
    (("--batch", "0"), "--batch 0: expected whole numbers from 1"),
    (("--threads", "two"), "--threads two: expected whole numbers from 1")])
def test_a_wrong_option_is_an_error_and_leaves_no_folder(run, tmp_path, options, sentence):
    with pytest.raises(SystemExit, match=sentence):
        run(MEDIANS, *options)
    assert not (tmp_path / "run").exists()


def test_the_columns_are_documented():
    text = (ROOT / "bench/peers/README.md").read_text().split("## Inference")[1]
    documented = dict(re.findall(r"^\| `(\w+)` \| (text|integer|number) \|", text, re.MULTILINE))
    assert documented == inference.COLUMNS["peers_inference"]


def test_percentiles_are_nearest_ranks():
    found = inference.times_of([float(n) for n in range(100, 0, -1)], batch=3)
    assert (found["p90_s"], found["p99_s"]) == (90.0, 99.0)
    assert found["median_s"] == 50.5
    assert found["samples_per_s"] == 3 * 100 / 5050
    assert inference.times_of([2.0], batch=1)["p99_s"] == 2.0


@pytest.fixture(scope="module")
def program():
    path = Path(os.environ.get("STEPLADDER", ROOT / "build/stepladder"))
    if not path.exists():
        pytest.skip("stepladder is not built")
    return path


@pytest.fixture(scope="module")
def exported(program, tmp_path_factory):
    """networks.json, and what stepladder infer exports of its network."""
    folder = tmp_path_factory.mktemp("peers")
    networks = folder / "networks.json"
    networks.write_text(json.dumps(NETWORK))
    network = folder / "tiny.json"
    network.write_text(json.dumps(NETWORK["tiny"]))
    execute(program, "infer", "--network", network, "--batch", "3", "--requests", "20", "--threads",
            "1", "--use", "serial", "--export", folder / "tiny", "--out", folder / "run")
    return networks, folder / "tiny"


def peer(networks, export, framework, **expected):
    package = "onnxruntime" if framework == "onnxruntime" else "torch"
    if not PYTHON.exists() or execute(PYTHON, "-c", f"import {package}", status=None).returncode:
        pytest.skip(f"{package} is not installed in .venv-peers: make peers INFERENCE=1 does it")
    return execute(PYTHON, ROOT / "bench/peers/inference_peer.py", "tiny", "--framework", framework,
                   "--file", networks, "--export", export, "--batch", "1,3", "--threads", "1",
                   "--seconds", "0.01", timeout=600, **expected)


@pytest.mark.parametrize("framework", ["eager", "compile", "onnxruntime"])
def test_a_peer_computes_the_logits_of_the_reference(exported, framework):
    done = peer(*exported, framework)
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["latencies"].keys() == {"1", "3"}
    assert all(len(found) >= 10 and min(found) > 0 for found in result["latencies"].values())


@pytest.mark.parametrize("framework", ["eager", "onnxruntime"])
def test_a_peer_with_another_weight_is_refused(exported, tmp_path, framework):
    networks, export = exported
    content = bytearray(export.read_bytes())
    # the first array, of the layer that decays first: "last"
    start = 24 + 8 + int.from_bytes(content[24:32], "little")
    content[start + 3] ^= 0x80  # the sign
    (tmp_path / "other").write_bytes(content)
    peer(networks, tmp_path / "other", framework, status=1, error="the logits differ from ours by")


def test_a_file_that_is_no_export_is_refused(exported):
    networks, _ = exported
    peer(networks, networks, "onnxruntime", status=1, error="was not written by stepladder infer")


def test_our_rows_are_those_of_stepladder_infer(program, tmp_path):
    found, machine = inference.run_stepladder(program, "mlp", [1, 2], 1, 0.02, tmp_path / "mlp")
    assert machine["cpu_model"] and machine["commit"] and "commands" not in machine
    assert found.keys() == {(use, batch) for use in ("best", "vendor") for batch in (1, 2)}
    for one in found.values():
        assert one["median_s"] > 0 and one["p99_s"] >= one["p90_s"] > 0
    assert (tmp_path / "mlp").stat().st_size > 4 * 535818


def test_our_error_is_the_reason(program, tmp_path):
    with pytest.raises(RuntimeError, match="stepladder: .*nowhere"):
        inference.run_stepladder(program, "nowhere.json", [1], 1, 0.02, tmp_path / "none")
