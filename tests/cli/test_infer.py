"""infer: latency and throughput of a network that infers, verified in the same run."""

import json
import re
import struct
import zlib

import pytest

from conftest import HAS_VNNI, TINY_NETWORK, Command
from tests.commands import read_csv

BRIEF = ("--requests", "60", "--threads", "1")


@pytest.fixture
def infer(stepladder, network, tmp_path):
    return Command(stepladder, tmp_path / "run", "inference.csv", "infer", "--network", network)


@pytest.fixture
def checkpoints(stepladder, network, tmp_path):
    """The folder of checkpoints of a training of the tiny network, and the accuracy it reported."""
    folder = tmp_path / "checkpoints"
    stepladder("train", "--network", network, "--use", "serial", "--data", "generated", "--threads",
               "1", "--steps", "30", "--checkpoint", folder, "--every", "10", "--out",
               tmp_path / "training")
    accuracy = read_csv(tmp_path / "training/train.csv")[-1]["accuracy"]
    return folder, float(accuracy)


def totals(rows):
    return [row for row in rows if row["layer"] == "total"]


def test_every_layer_has_a_row_and_each_batch_its_total(infer):
    _, rows = infer("--batch", "2,3", "--use", "simd", *BRIEF)
    layers = ["conv", "conv.bias", "relu1", "fc", "fc.bias", "softmax1", "total"]
    assert [(row["layer"], row["batch"]) for row in rows] == [
        (layer, batch) for batch in ("2", "3") for layer in layers]
    for row in rows:
        assert (row["status"], row["weights"]) == ("ok", "generated")
        assert float(row["median_s"]) > 0
        assert (row["share"] == "") == (row["layer"] == "total")
    for batch in ("2", "3"):
        shares = [float(row["share"]) for row in rows if row["share"] and row["batch"] == batch]
        assert sum(shares) == pytest.approx(100, rel=1e-4)
    for row in totals(rows):
        times = [float(row[column]) for column in ("p50_s", "p90_s", "p99_s", "max_s")]
        assert times == sorted(times) and times[0] > 0
        assert float(row["ci_low_s"]) <= float(row["median_s"]) <= float(row["ci_high_s"])
        assert row["verified"] == "yes" and 0 <= float(row["error_ratio"]) <= 1
        assert int(row["requests"]) >= 30
        # one request after the other
        rate = int(row["batch"]) / float(row["median_s"])
        assert 0.2 * rate < float(row["samples_per_s"]) < 5 * rate


def test_json_has_the_rows_of_the_csv_file_and_the_columns_their_meaning(infer):
    _, rows = infer("--batch", "2", "--use", "simd", *BRIEF)
    content = json.loads((infer.run / "inference.json").read_text())
    assert content["columns"] == list(rows[0])
    assert [row["median_s"] for row in content["rows"]] == [float(r["median_s"]) for r in rows]
    described = json.loads((infer.run / "columns.json").read_text())["tables"]["inference"]
    assert [column["name"] for column in described] == content["columns"]
    environment = json.loads((infer.run / "environment.json").read_text())
    assert " infer " in environment["commands"][0] and environment["cpu_model"]


def test_uses_are_separated_by_commas_and_an_exception_belongs_to_the_use_before_it(infer):
    _, rows = infer("--batch", "2", "--use", "simd,serial,convolution=im2col,best", *BRIEF)
    assert [row["use"] for row in totals(rows)] == ["simd", "serial,convolution=im2col", "best"]
    variants = {(row["use"], row["layer"]): row["variant"] for row in rows}
    assert variants["serial,convolution=im2col", "conv"] == "im2col"
    assert variants["serial,convolution=im2col", "fc"] == "serial_ijk"


@pytest.mark.parametrize(("split", "expected"), [
    ("both", [("inside", "1"), ("inside", "2"), ("requests", "2")]),
    ("inside", [("inside", "1"), ("inside", "2")]),
    ("requests", [("inside", "1"), ("requests", "2")])])
def test_threads_work_inside_a_request_or_each_on_its_own(infer, split, expected):
    done, rows = infer("--batch", "2", "--use", "openmp", "--threads", "1,2", "--requests", "40",
                       "--split", split)
    assert [(row["split"], row["threads"]) for row in totals(rows)] == expected
    compared = "openmp on 2 threads: more throughput with " in done.stdout
    assert compared == (split == "both")
    assert ("lower latency with " in done.stdout) == compared


@pytest.mark.parametrize(("split", "threads", "expected"), [
    ("both", "1,2", [("inside", "1"), ("requests", "2")]),
    ("inside", "2,1", [("inside", "2")]),
    ("requests", "2,1", [("requests", "2"), ("inside", "1")])])
def test_rungs_of_one_thread_work_inside_a_request_once(infer, split, threads, expected):
    _, rows = infer("--batch", "2", "--use", "serial", "--threads", threads, "--split", split,
                    "--requests", "20")
    assert [(row["split"], row["threads"]) for row in totals(rows)] == expected


def test_the_table_has_a_line_for_each_row(infer):
    done, _ = infer("--batch", "2", "--use", "simd,serial", *BRIEF)
    lines = [line.split() for line in done.stdout.splitlines()]
    heading = next(line for line in lines if line[:1] == ["use"])
    assert heading == ["use", "median", "p90", "p99", "max", "samples/s", "requests"]
    assert [line[0] for line in lines if line[1:3] == ["1", "thread"]] == ["simd", "serial"]


def test_weights_that_are_packed_once_are_used_and_right(stepladder, tmp_path):
    run = tmp_path / "run"
    stepladder("infer", "--network", "mlp", "--batch", "4", "--use", "prepacked", *BRIEF, "--out",
               run)
    rows = read_csv(run / "inference.csv")
    assert [row["variant"].startswith("prepacked") for row in rows if row["layer"] == "fc1"] == [
        True]
    assert totals(rows)[0]["verified"] == "yes"


def test_the_accuracy_with_the_weights_of_a_training_is_that_which_it_reported(infer, checkpoints):
    folder, accuracy = checkpoints
    done, rows = infer("--batch", "2,4", "--use", "serial,simd", "--weights", folder, *BRIEF)
    found = [(row["batch"], row["accuracy"]) for row in totals(rows)]
    assert [batch for batch, value in found if value] == ["4", "4"]
    assert [float(value) for _, value in found if value] == pytest.approx([accuracy] * 2, abs=1e-5)
    name, = {row["weights"] for row in rows}
    assert re.fullmatch(r"step 30 \([0-9a-f]{8}\)", name)
    assert f"train reported {100 * accuracy:.2f} %\n" in done.stdout


@pytest.mark.skipif(not HAS_VNNI, reason="this CPU has no AVX512_VNNI")
def test_int8_quantizes_operands_within_its_bound(infer, checkpoints):
    folder, accuracy = checkpoints
    _, rows = infer("--batch", "4", "--weights", folder, *BRIEF, "--use",
                    "serial,int8,best,matmul=prepacked_int8,convolution=direct_int8")
    assert [row["variant"] for row in rows if row["use"].startswith("best") and row["layer"] in
            ("conv", "fc")] == ["direct_int8", "prepacked_int8"]
    serial, chosen, quantized = totals(rows)
    assert (serial["use"], chosen["use"]) == ("serial", "int8")
    assert quantized["verified"] == chosen["verified"] == "yes"
    assert float(serial["error_ratio"]) < 0.1 < float(quantized["error_ratio"]) <= 1
    assert float(quantized["accuracy"]) == pytest.approx(accuracy, abs=0.05)


@pytest.mark.parametrize("command", ["train", "step"])
def test_int8_is_for_weights_that_do_not_change(stepladder, network, tmp_path, command):
    why = "only infer has it, since training changes the weights" if HAS_VNNI else \
        "this CPU has no AVX512_VNNI"
    stepladder(command, "--network", network, "--use", "int8", "--out", tmp_path / "run", status=1,
               error=f"--use int8: {why}")
    assert not (tmp_path / "run").exists()


def test_one_checkpoint_is_named_by_its_file(infer, checkpoints):
    folder, _ = checkpoints
    older = min(folder.glob("step-*.checkpoint"))
    done, rows = infer("--batch", "2", "--use", "serial", "--weights", older, "--seed", "2", *BRIEF)
    assert {row["weights"].split(" (")[0] for row in rows} == {"step 20"}
    assert "on other images" in done.stdout  # of another seed


def test_resume_tells_two_trainings_of_as_many_steps_apart(infer, stepladder, network, checkpoints,
                                                           tmp_path):
    folder, _ = checkpoints
    other = tmp_path / "other"
    stepladder("train", "--network", network, "--use", "serial", "--data", "generated",
               "--threads", "1", "--steps", "30", "--seed", "9", "--checkpoint", other,
               "--every", "30", "--out", tmp_path / "training9")
    for weights, services in ((folder, 1), (other, 2), (folder, 2)):
        _, rows = infer("--batch", "2", "--use", "serial", "--weights", weights, *BRIEF, "--resume")
        assert len({row["weights"] for row in totals(rows)}) == len(totals(rows)) == services


def read_arrays(path):
    """As other programs read an exported file."""
    content = path.read_bytes()
    line, rest = content.split(b"\n", 1)
    assert line == b"stepladder checkpoint 1"
    size, = struct.unpack_from("<Q", rest)
    header = json.loads(rest[8:8 + size])
    arrays, at = {}, 8 + size
    for array in header["arrays"]:
        arrays[array["name"]] = struct.unpack_from(f"<{array['length']}f", rest, at)
        at += 4 * array["length"]
    assert at + 4 == len(rest)
    return header, arrays


def test_an_export_has_parameters_images_and_outputs(infer, tmp_path):
    infer("--batch", "2,5", "--use", "serial", *BRIEF, "--export", tmp_path / "tiny.bin")
    header, arrays = read_arrays(tmp_path / "tiny.bin")
    assert "network: tiny" in header["identity"]
    assert {name: len(values) for name, values in arrays.items()} == {
        "conv.weights": 36, "conv.biases": 4, "fc.weights": 4 * 16 * 3, "fc.biases": 3,
        "images": 5 * 36, "logits": 5 * 3, "probabilities": 5 * 3}
    for n in range(5):
        assert sum(arrays["probabilities"][3 * n:3 * n + 3]) == pytest.approx(1, rel=1e-5)


def test_an_export_of_nothing_is_refused(infer, tmp_path):
    arguments = ("--batch", "2", "--use", "serial", *BRIEF)
    infer(*arguments)
    infer(*arguments, "--resume", "--export", tmp_path / "tiny.bin", status=1, lines=1,
          error="tiny.bin: there is no network to export: its requests are measured")
    assert not (tmp_path / "tiny.bin").exists()


def test_resuming_measures_only_what_is_missing(infer):
    infer("--batch", "2", "--use", "simd", *BRIEF)
    _, rows = infer("--batch", "2", "--use", "simd", *BRIEF, "--resume")
    assert len(totals(rows)) == 1
    _, rows = infer("--batch", "2,3", "--use", "simd", *BRIEF, "--resume")
    assert [row["batch"] for row in totals(rows)] == ["2", "3"]


def test_a_rung_that_cannot_run_is_an_unavailable_row_beside_the_others(infer):
    arguments = ("--batch", "2", *BRIEF, "--use")
    done, rows = infer(*arguments, "serial,convolution=direct_chwn,simd")
    assert [(row["use"], row["status"]) for row in totals(rows)] == [
        ("serial,convolution=direct_chwn", "unavailable"), ("simd", "ok")]
    assert "supports CHWN" in rows[0]["reason"]
    assert rows[0]["layer"] == "total" and rows[0]["median_s"] == rows[0]["verified"] == ""
    assert "unavailable: " in done.stdout


def test_a_run_without_any_time_has_an_exit_status_of_its_own(infer):
    _, rows = infer("--batch", "2", "--use", "convolution=direct_chwn", *BRIEF, status=4)
    assert [row["status"] for row in rows] == ["unavailable"]


@pytest.mark.parametrize(("arguments", "status", "sentence"), [
    (("--batch", "0"), 2, "--batch: expected whole numbers from 1 to 1000000000, such as 1,2, not "
                          "'0'"),
    (("--use", "fastest"), 2, "unknown rung 'fastest'"),
    (("--use", "best,matmull=serial"), 2, "unknown primitive 'matmull'"),
    (("--use", "cuda"), 1, "--use cuda"),
    (("--requests", "1"), 2, "expected a whole number from 2 to 10000000, not '1'"),
    (("--requests", "9", "--budget", "1"), 2, "--budget excludes --requests"),
    (("--split", "none"), 2, "--split"),
    (("--data", "generated"), 2, "--data requires --weights"),
    (("--weights", "nowhere"), 2, "nowhere"),
    (("--threads", "0"), 2, "expected whole numbers from 1 to 1024")])
def test_bad_input_is_one_sentence_and_leaves_nothing(infer, arguments, status, sentence):
    done, rows = infer(*arguments, status=status)
    first = done.stderr.splitlines()[0]
    assert sentence in first, done.stderr
    assert rows == [] and not infer.run.exists()


def test_an_unknown_network_is_named(stepladder, tmp_path):
    stepladder("infer", "--network", "mlpp", "--out", tmp_path / "run", status="not 0",
               error=("mlpp", "mlp"))
    assert not (tmp_path / "run").exists()


def test_the_checkpoint_of_another_network_is_refused(stepladder, checkpoints, tmp_path):
    folder, _ = checkpoints
    other = json.loads(json.dumps(TINY_NETWORK))
    other["layers"][0]["filters"] = 5
    (tmp_path / "other").mkdir()
    path = tmp_path / "other/tiny.json"
    path.write_text(json.dumps(other))
    stepladder("infer", "--network", path, "--weights", min(folder.glob("step-*")), "--out",
               tmp_path / "run", status=1, error="of another network: layer: conv convolution",
               lines=1)
    assert not (tmp_path / "run").exists()


def test_a_damaged_checkpoint_is_refused(infer, checkpoints):
    folder, _ = checkpoints
    newest = max(folder.glob("step-*.checkpoint"))
    content = bytearray(newest.read_bytes())
    content[-100] ^= 1
    newest.write_bytes(content)
    done, rows = infer("--weights", newest, *BRIEF, status=1)
    assert rows == []
    assert done.stderr == f"stepladder: {newest}: damaged: its checksum is wrong\n"


@pytest.mark.parametrize("use", ["serial", "serial,simd"])
def test_outputs_that_are_no_numbers_fail(infer, checkpoints, use):
    folder, _ = checkpoints
    newest = max(folder.glob("step-*.checkpoint"))
    content = bytearray(newest.read_bytes())[:-4]
    header = content.index(b"\n") + 1
    first = header + 8 + struct.unpack_from("<Q", content, header)[0]
    struct.pack_into("<f", content, first, float("nan"))
    newest.write_bytes(content + struct.pack("<I", zlib.crc32(content)))
    _, rows = infer("--weights", newest, "--use", use, *BRIEF, status=1)
    assert [row["status"] for row in totals(rows)] == ["failed"] * len(totals(rows)) != []
    for row in totals(rows):
        assert "the outputs differ from the fp64 reference by inf times the bound, 0.0001" in \
            row["reason"]
    # they stay failed
    _, resumed = infer("--weights", newest, "--use", use, *BRIEF, "--resume", status=1)
    assert resumed == rows


def test_too_few_images_for_the_batch_are_an_error(infer, checkpoints):
    folder, _ = checkpoints
    _, rows = infer("--weights", folder, "--batch", "100000", *BRIEF, status=1,
                    error="images are too few for a batch of 100000; use --batch")
    assert rows == []


def test_ranks_serve_requests_of_their_own(infer, mpirun):
    done, rows = infer("--batch", "2", "--use", "serial", *BRIEF, launcher=mpirun(2))
    total, = totals(rows)
    assert total["ranks"] == "2" and total["verified"] == "yes"
    assert int(total["requests"]) % 2 == 0 and int(total["requests"]) >= 60
    times = [float(total[column]) for column in ("p50_s", "p90_s", "p99_s", "max_s")]
    assert times == sorted(times)
    assert "2 ranks" in done.stdout


def test_ranks_share_the_images_of_the_accuracy(infer, checkpoints, mpirun):
    folder, accuracy = checkpoints
    _, rows = infer("--batch", "2", "--use", "serial", "--weights", folder, *BRIEF,
                    launcher=mpirun(2))
    assert float(totals(rows)[0]["accuracy"]) == pytest.approx(accuracy, abs=1e-5)


def test_all_ranks_refuse_the_same_input_in_one_sentence(infer, mpirun, tmp_path):
    done, rows = infer("--weights", tmp_path, *BRIEF, launcher=mpirun(2), status="not 0")
    assert rows == []
    own = [line for line in done.stderr.splitlines() if line.startswith("stepladder: ")]
    assert len(own) == 1 and "holds no checkpoint" in own[0]
