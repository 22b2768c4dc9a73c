"""What a user gets wrong, or a file of another program holds, ends in one clear sentence or
works."""

import csv
import json
import os
import subprocess

import pytest

from conftest import QUICK, TINY_NETWORK
from test_bad_files import idx_files
from tests.commands import read_csv, write_csv

TRAIN = ("--use", "serial", "--data", "generated", "--threads", "1")


@pytest.mark.parametrize("command", ["train", "step", "plan"])
def test_names_that_are_not_utf_8(program_path, tmp_path, command):
    network, out = os.fsencode(tmp_path) + b"/tiny\xff.json", os.fsencode(tmp_path) + b"/it's\xff"
    with open(network, "w") as file:
        json.dump(TINY_NETWORK, file)
    options = {
        "train": [*TRAIN, "--steps", "2"], "step": [
            "--use", "serial", "--budget", "0.01", "--threads", "1"], "plan": [
                "--use", "serial", "--threads", "1", "--modes", "single"]}[command]
    arguments = [program_path, command, "--network", network, *options, "--out", out]
    done = subprocess.run(arguments, capture_output=True, check=False, timeout=180)
    assert done.returncode == 0, done.stderr
    with open(out + b"/%b.csv" % command.encode(), encoding="utf-8", newline="") as file:
        assert {row["network"] for row in csv.DictReader(file)} == {"tiny\ufffd"}
    with open(out + b"/environment.json", encoding="utf-8") as file:
        typed, = json.load(file)["commands"]
    words = subprocess.run(["bash", "-c", f"printf '%s\\n' {typed}"], capture_output=True,
                           check=True).stdout.splitlines()
    assert network in words and out in words  # the command can be repeated


def test_a_suite_that_is_not_utf_8(stepladder, tmp_path):
    suite = tmp_path / "latin.csv"
    suite.write_bytes(
        "suite,name,m,n,k,transpose_a,transpose_b,source\ns,M\u00fcller,4,5,6,0,0,\n".encode(
            "latin-1"))
    done = stepladder("bench", "matmul", "--suite-file", suite, "--out", tmp_path / "run", status=1)
    assert done.stderr == f"stepladder: {suite}:2: not UTF-8 text; save the file as UTF-8\n"
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("arguments", [
    ("list",), ("list", "matmul"), ("machine", "--json"), ("--help",), ("--version",),
    ("bench", "--help"),
    ("verify", "matmul", "--variant", "serial_ijk", "--shape", "4x4x4"),
    ("train", "--steps", "1", *TRAIN, "--network", "tiny.json", "--out", "run"),
    ("bench", "matmul", "--variant", "serial_ijk", "--shape", "4x4x4", *QUICK, "--out", "run")],
    ids=" ".join)
def test_output_that_is_lost_is_an_error(stepladder, tmp_path, arguments):
    (tmp_path / "tiny.json").write_text(json.dumps(TINY_NETWORK))
    with open("/dev/full", "w") as full:
        stepladder(*arguments, stdout=full, cwd=tmp_path, status=1,
                   error="stepladder: the output cannot be written: ")


def test_a_comparison_whose_output_is_lost_is_no_slowdown(stepladder, finished_run):
    with open("/dev/full", "w") as full:
        stepladder("compare", finished_run, finished_run, stdout=full, status=2,
                   error="No space left on device")


@pytest.mark.parametrize("wrong, message", [
    (("--checkpoint", "tiny.json"), "tiny.json: cannot be used as the folder of checkpoints"),
    (("--mode", "ssp,bound=many"), "mode ssp,bound=many: bound=many: expected a whole number"),
    (("--mode", "pipeline,micro_batches=9"), "micro_batches")])
def test_a_refused_command_leaves_no_run(stepladder, network, tmp_path, wrong, message):
    arguments = ("train", "--network", network, *TRAIN, "--steps", "2", "--out", tmp_path / "run")
    stepladder(*arguments, *wrong, cwd=tmp_path, status=1, error=message)
    assert not (tmp_path / "run").exists()
    stepladder(*arguments)


def test_a_refused_command_leaves_the_files_of_others(stepladder, network, tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    (run / "notes.txt").write_text("mine")
    arguments = ("train", "--network", network, *TRAIN, "--steps", "2", "--out", run)
    stepladder(*arguments, "--checkpoint", network, status=1)
    assert (run / "notes.txt").read_text() == "mine" and not (run / "environment.json").exists()
    stepladder(*arguments)


def test_rows_of_a_run_stay_when_a_later_command_is_refused(stepladder, network, tmp_path):
    run = tmp_path / "run"
    arguments = ("train", "--network", network, *TRAIN, "--steps", "2", "--out", run)
    stepladder(*arguments)
    rows = read_csv(run / "train.csv")
    stepladder(*arguments, "--resume", "--checkpoint", network, status=1)
    assert read_csv(run / "train.csv") == rows and (run / "environment.json").exists()


@pytest.mark.parametrize("arguments", [
    ("train", "--network", "mlp", "--data", ""),
    ("train", "--network", "mlp", "--out", ""),
    ("train", "--network", ""),
    ("train", "--network", "mlp", "--use", ""),
    ("train", "--network", "mlp", "--checkpoint", ""),
    ("step", "--network", "mlp", "--use", "best", "--use", ""),
    ("bench", "--suite", ""),
    ("bench", "--variant", ""),
    ("bench", "matmul", "--shape", ""),
    ("verify", "--problem", ""),
    ("tune", "--out", ""),
    ("plan", "--network", "mlp", "--rate", ""),
    ("list", "matmul", ""),
    ("compare", "", "b")], ids=" ".join)
def test_an_empty_value_is_wrong_usage(stepladder, tmp_path, arguments):
    done = stepladder(*arguments, cwd=tmp_path, status=2, error=": expected a value, not ''")
    assert done.stdout == ""
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("arguments, outcome", [
    (("matmul", "--variant", "serial_ijk", "--shape", "1000000x1000000x1000000"), "1 skipped"),
    (("convolution", "--variant", "direct", "--shape", "1x3x8x8x4x3x3 layout=nhwc"),
     "3 unavailable")])
def test_a_verification_of_nothing_is_no_success(stepladder, arguments, outcome):
    done = stepladder("verify", *arguments, status=4)
    assert outcome in done.stdout
    assert done.stderr.startswith("stepladder: nothing was verified: ")


def test_a_folder_with_the_name_of_a_data_file(stepladder, network, tmp_path):
    data = tmp_path / "data"
    (data / "train-images-idx3-ubyte").mkdir(parents=True)
    for name, content in idx_files().items():
        (data / name.replace("images-idx", "images.idx")).write_bytes(content)
    arguments = ("train", "--network", "mlp", "--use", "serial", "--threads", "1", "--batch", "8",
                 "--steps", "1", "--data", data, "--out", tmp_path / "run")
    stepladder(*arguments)
    (data / "train-images.idx3-ubyte").unlink()
    stepladder(*arguments, "--resume", status=1,
               error=f"{data}/train-images-idx3-ubyte: cannot read: Is a directory")


def test_a_step_that_is_no_number_is_named(stepladder, network, tmp_path):
    run = tmp_path / "run"
    arguments = ("train", "--network", network, *TRAIN, "--checkpoint", tmp_path / "checkpoint",
                 "--out", run, "--log-every", "1")
    stepladder(*arguments, "--steps", "2")
    first, second = read_csv(run / "train.csv")
    write_csv(run / "train.csv", [first, second | {"step": "two"}])
    stepladder(*arguments, "--steps", "4", "--resume", status=1,
               error=f'{run}/train.csv:3: column step holds "two"; expected a whole number from 0')


@pytest.mark.parametrize("change", [
    lambda text: b"\xef\xbb\xbf" + text,
    lambda text: text.replace(b"\n", b"\r\n")], ids=["byte order mark", "carriage returns"])
def test_a_run_whose_tables_a_spreadsheet_saved_goes_on(stepladder, network, tmp_path, change):
    run = tmp_path / "run"
    arguments = ("train", "--network", network, *TRAIN, "--steps", "2", "--out", run)
    stepladder(*arguments)
    (run / "train.csv").write_bytes(change((run / "train.csv").read_bytes()))
    stepladder(*arguments, "--resume", "--seed", "2")
    with open(run / "train.csv", encoding="utf-8-sig", newline="") as file:
        assert {row["seed"] for row in csv.DictReader(file)} == {"1", "2"}
