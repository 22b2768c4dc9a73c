"""OpenCL rungs as users run them: on PoCL, without a device, and under oclgrind."""

import json
import os
import re
import shutil
import subprocess

import pytest

from conftest import QUICK
from tests.commands import ROOT, read_csv

PRIMITIVES = ("matmul", "convolution", "max_pool", "sgd_update")
KERNELS = ROOT / "kernels"
# opencl_tuned has the kernels of opencl_register, and timing its list takes minutes in oclgrind.
SMALL = "opencl_naive,opencl_vector"
LARGE = SMALL + ",opencl_local,opencl_register"


def devices(stepladder):
    return json.loads(stepladder("machine", "--json").stdout)["opencl"]


@pytest.fixture
def device(stepladder):
    found = [one for one in devices(stepladder) if one["chosen"]]
    if not found:
        pytest.skip("no OpenCL device")
    return found[0]


def test_the_environment_names_the_device_and_its_driver(device):
    assert device["device"] and device["driver"] and device["version"].startswith("OpenCL ")
    assert device["compute_units"] >= 1


def test_a_place_selects_the_rungs_on_opencl(stepladder, device):
    for primitive in PRIMITIVES:
        lines = stepladder("list", primitive, "--place", "opencl", "--full").stdout.splitlines()
        rows = [line.split() for line in lines[1:] if line[2] != " "]
        assert {row[0] for row in rows} >= {"opencl_naive", "opencl_vector"}, primitive
        assert {row[1] for row in rows} <= {"opencl", "vendor"}, primitive
        assert not any("unavailable" in line for line in lines), primitive


def test_random_problems_are_verified_on_one_and_two_threads(stepladder, device):
    done = stepladder("verify", *PRIMITIVES, "--place", "opencl", "--random", "40", "--threads",
                      "1,2" if device["compute_units"] > 1 else "1")
    assert int(re.search(r"(\d+) checks passed", done.stdout)[1]) > 200


def test_a_step_runs_on_opencl(stepladder, device, network, tmp_path):
    stepladder("step", "--network", network, "--use", "opencl", "--threads", "1", "--repetitions",
               "3", "--budget", "0.02", "--out", tmp_path / "run")
    rows = read_csv(tmp_path / "run/step.csv")
    assert {row["layer"] for row in rows if row["variant"].startswith("opencl_")} >= {"conv", "fc"}


def test_without_a_device_the_rungs_are_unavailable(stepladder, tmp_path):
    none = {"OCL_ICD_VENDORS": str(tmp_path)}
    why = "no OpenCL device: install pocl-opencl-icd"
    assert json.loads(stepladder("machine", "--json", environment=none).stdout)["opencl"] == []
    assert f"(unavailable: {why})" in stepladder("list", "matmul", "--place", "opencl",
                                                 environment=none).stdout
    stepladder("bench", "matmul", "--variant", "opencl_naive,serial_ijk", "--shape", "5x6x7",
               *QUICK, "--out", tmp_path / "run", environment=none)
    rows = {row["variant"]: row for row in read_csv(tmp_path / "run/summary.csv")}
    assert (rows["opencl_naive"]["status"], rows["opencl_naive"]["reason"]) == ("unavailable", why)
    assert rows["serial_ijk"]["status"] == "ok"


def test_a_name_that_no_device_has_is_one_clear_error(stepladder):
    for command in (["list"], ["verify", "matmul", "--place", "opencl", "--random", "1"],
                    ["machine", "--json"]):
        done = stepladder(*command, environment={"STEPLADDER_OPENCL": "no such device"}, status=1,
                          lines=1)
        assert done.stdout == ""
        assert done.stderr.startswith("stepladder: STEPLADDER_OPENCL=no such device is part of no")


def test_a_part_of_its_name_chooses_a_device(stepladder, device):
    part = device["platform"][:8]
    done = stepladder("machine", "--json", environment={"STEPLADDER_OPENCL": part})
    assert [one["chosen"] for one in json.loads(done.stdout)["opencl"]].count(True) == 1


needs_oclgrind = pytest.mark.skipif(shutil.which("oclgrind") is None,
                                    reason="oclgrind is not installed (Debian: oclgrind)")


@pytest.mark.without_sanitizers("oclgrind is preloaded too")
@needs_oclgrind
@pytest.mark.parametrize("primitive,variants,shape", [
    ("matmul", LARGE + ",opencl_tile,opencl_packed", "9x53x21"),
    ("convolution", LARGE, "1x3x6x7x5x3x3x1x1x1x1"),
    ("max_pool", SMALL, "1x2x7x9x3x3x2x2x1x1"), ("sgd_update", SMALL, "71")])
def test_oclgrind_finds_no_race_and_no_overrun(stepladder, primitive, variants, shape, tmp_path):
    log = tmp_path / "oclgrind.log"
    done = stepladder("verify", primitive, "--variant", variants, "--shape", shape, "--threads",
                      "1", launcher=["oclgrind", "--check-api", "--data-races", "--log", str(log)])
    assert int(re.search(r"(\d+) checks passed", done.stdout)[1]) > 0
    assert not log.exists() or log.read_text() == ""


def oclgrind_of(kernel, folder):
    """What oclgrind says of one work-group of matmul's opencl_local, 16 x 16 x 20."""
    elements = (KERNELS / "matmul/opencl/elements.cl").read_text()
    macros = "#define TILE 16\n#define TRANSPOSE_A 0\n#define TRANSPOSE_B 0\n"
    (folder / "kernel.cl").write_text(macros + elements + kernel)
    (folder / "run.sim").write_text(
        "kernel.cl\nmultiply\n16 16 1\n16 16 1\n<size=4 int>\n16\n<size=4 int>\n16\n"
        "<size=4 int>\n20\n<size=1280 fill=1 float>\n<size=1280 fill=1 float>\n"
        "<size=1024 fill=0 float>\n")
    done = subprocess.run(["oclgrind-kernel", "--data-races", "run.sim"], cwd=folder,
                          capture_output=True, text=True, timeout=120, env=os.environ)
    return done.stdout + done.stderr


@needs_oclgrind
def test_oclgrind_finds_a_missing_barrier_and_an_overrun(tmp_path):
    kernel = (KERNELS / "matmul/opencl/opencl_local.cl").read_text()
    assert oclgrind_of(kernel, tmp_path) == ""
    barrier = "    barrier(CLK_LOCAL_MEM_FENCE);\n"
    assert "data race" in oclgrind_of(kernel.replace(barrier, "", 1), tmp_path)
    assert "Invalid write" in oclgrind_of(kernel.replace("c[i * n + j] =", "c[i * n + j + 1] ="),
                                          tmp_path)
