"""bench/peers/pytorch_distributed.py and all_reduce_gloo.py in the environment of `make peers`."""

import json
import os
import sys

import pytest

from tests.commands import ROOT, execute

# Verification in one process, a group of one rank; the second argument makes the gradients wrong.
VERIFY = """
import json, sys
sys.path.insert(0, "bench/peers")
import torch.distributed as dist
import pytorch_distributed as peers
dist.init_process_group("gloo", init_method="file://" + sys.argv[1], rank=0, world_size=1)
description = json.load(open("bench/networks.json"))["mlp"]
together, alone = peers.trainings_of(description, "eager", 0)
if sys.argv[2] == "wrong":
    together.labels = (alone.labels + 1) % description["classes"]
print(peers.largest_error(together, alone) <= peers.LARGEST_ERROR)
"""


@pytest.fixture(scope="module")
def python():
    path = ROOT / ".venv-peers/bin/python"
    if not path.exists():
        pytest.skip("no PyTorch on this machine (make peers installs it into .venv-peers)")
    code = "import torch.distributed as d; assert d.is_gloo_available()"
    if execute(path, "-c", code, status=None).returncode != 0:
        pytest.skip("this PyTorch has no gloo")
    return path


def test_two_ranks_are_verified_and_measured(python):
    done = execute(python, "bench/peers/pytorch_distributed.py", "mlp", "--file",
                   "bench/networks.json", "--ranks", "2", "--mode", "eager", "--seconds", "0.2",
                   cwd=ROOT, timeout=300)
    result = json.loads(done.stdout.splitlines()[-1])
    assert len(result["total"]) == 10 and min(result["total"]) > 0
    phases = result["phases"]
    assert phases.keys() == {"forward", "backward", "all_reduce", "update"}
    assert min(phases["forward"], phases["backward"], phases["update"]) > 0
    assert 0 <= phases["all_reduce"] < max(result["total"])


@pytest.mark.parametrize("gradients, agree", [("right", "True"), ("wrong", "False")])
def test_verification_tells_wrong_gradients_from_right_ones(python, tmp_path, gradients, agree):
    done = execute(python, "-c", VERIFY, tmp_path / "store", gradients, cwd=ROOT, timeout=300)
    assert done.stdout.split() == [agree]


@pytest.mark.parametrize("cores", ["all", "the last"])
def test_gloo_is_verified_and_measured(python, cores):
    used = sorted(os.sched_getaffinity(0))[-1 if cores == "the last" else 0:]
    done = execute("taskset", "-c", ",".join(map(str, used)), python,
                   "bench/peers/all_reduce_gloo.py", "2", "65536", "2", "0.001", "1", "1000",
                   cwd=ROOT, timeout=300)
    version, *sizes = [line.split(",") for line in done.stdout.splitlines()]
    assert version[:2] == ["version", "2"] and version[2].startswith("gloo in torch")
    assert [(count, verified) for count, verified, _, _ in sizes] == [("1", "yes"), ("1000", "yes")]
    for _, _, _, seconds in sizes:
        assert all(float(s) > 0 for s in seconds.split(";"))


def test_run_reads_its_options_without_pytorch(tmp_path):
    execute(sys.executable, "bench/peers/run.py", "--ranks", "1", "--out", tmp_path / "run",
            cwd=ROOT, status=2, error="'1' is not a number of ranks")
