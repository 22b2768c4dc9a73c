"""Malformed files are refused with file, place and expectation, and nothing is half-written."""

import gzip
import struct

import pytest

from conftest import MATMUL_HEADER

SUITES = [
    ("s,a,4,5,six,0,0,\n", ("bad.csv:2", 'column k holds "six"', "a whole number from 1 to")),
    ("s,a,4,5,6,0,0,\ns,b,4,5,6,0,\n", ("bad.csv:3", "7 fields; the header has 8")),
    ("s,a,4,5,6,0,0,\ns,a,4,5,7,0,0,\n", ("bad.csv:3", "already at", "bad.csv:2",
                                          "expected another name")),
    ('s,"a,4,5,6,0,0,\n', ("bad.csv:2", "a quotation mark is not closed")),
    ("", ("bad.csv", "only a header; expected problems below it")), ]


@pytest.mark.parametrize("lines, parts", SUITES, ids=[parts[1] for _, parts in SUITES])
@pytest.mark.parametrize("command", ["bench", "verify"])
def test_a_malformed_suite(stepladder, tmp_path, command, lines, parts):
    suite = tmp_path / "bad.csv"
    suite.write_text(MATMUL_HEADER + lines)
    out = ("--out", tmp_path / "run") if command == "bench" else ()
    stepladder(command, "matmul", "--suite-file", suite, *out, status=1, error=parts)
    assert [path.name for path in tmp_path.iterdir()] == ["bad.csv"]


def test_a_suite_that_is_not_there(stepladder, tmp_path):
    stepladder("bench", "matmul", "--suite-file", tmp_path / "none.csv", "--out", tmp_path / "run",
               status=1, error=f"{tmp_path}/none.csv: cannot open: No such file")
    assert not list(tmp_path.iterdir())


NETWORKS = [
    ('{"mine": {\n  "input": {"channels": 1, "height": 28\n', ("net.json:3", )),
    ('{"mine": {\n'
     '  "input": {"channels": 1, "height": 28, "width": 28}, "classes": 10, "batch": 4,\n'
     '  "layers": [{"type": "fully_conected", "name": "fc1", "outputs": 10}],\n'
     '  "optimizer": {"type": "sgd", "learning_rate": 0.1}\n}}\n', ("net.json:3", "fully_conected",
                                                                    "fully_connected")),
    ('{"mine": {\n'
     '  "input": {"channels": 1, "height": 28, "width": 28}, "classes": 10, "batch": "four",\n'
     '  "layers": [{"type": "softmax_cross_entropy"}]\n}}\n', ("net.json:2", "batch")), ]


@pytest.mark.parametrize("text, parts", NETWORKS, ids=["torn", "layer type", "batch"])
@pytest.mark.parametrize("command", ["step", "train"])
def test_a_malformed_network(stepladder, tmp_path, command, text, parts):
    network = tmp_path / "net.json"
    network.write_text(text)
    stepladder(command, "--network", network, "--out", tmp_path / "run", status=(1, 2),
               error=parts)
    assert [path.name for path in tmp_path.iterdir()] == ["net.json"]


def idx_files(count=70):
    images = struct.pack(">IIII", 0x803, count, 28, 28) + bytes(count * 28 * 28)
    labels = struct.pack(">II", 0x801, count) + bytes(i % 10 for i in range(count))
    return {f"{part}-{kind}": content for part in ("train", "t10k")
            for kind, content in (("images-idx3-ubyte", images), ("labels-idx1-ubyte", labels))}


DATA = [
    ("torn images", "train-images-idx3-ubyte", lambda good: good[:-100], "byte"),
    ("another magic number", "train-labels-idx1-ubyte", lambda good: b"\x00\x00\x08\x05" + good[4:],
     "byte offset 0"),
    ("a label of 10", "t10k-labels-idx1-ubyte", lambda good: good[:20] + b"\x0a" + good[21:],
     "byte offset 20"),
    ("an empty file", "t10k-images-idx3-ubyte", lambda good: b"", "byte offset 0"),
    ("torn gzip", "train-images-idx3-ubyte", lambda good: gzip.compress(good)[:-20], "gzip"), ]


@pytest.mark.parametrize("what, name, spoil, place", DATA, ids=[row[0] for row in DATA])
def test_malformed_data(stepladder, tmp_path, what, name, spoil, place):
    data = tmp_path / "data"
    data.mkdir()
    for file, content in idx_files().items():
        (data / file).write_bytes(spoil(content) if file == name else content)
    stepladder("train", "--network", "mlp", "--data", data, "--out", tmp_path / "run", status=1,
               error=(name, place))
    assert not (tmp_path / "run").exists()
