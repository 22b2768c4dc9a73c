"""scripts/gpu.sh: its stages on a GPU machine, their time limits, and the results after a failure.

The GPU, the compiler and the program are fakes; the table at the end is the real one.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import time

import pytest

from conftest import ROOT
from tests import columns

TOOLS = "du getconf gzip head tar timeout".split()
LADDERS = {"matmul": ["naive", "warp_tile", "cublas"], "sgd_update": ["naive"],
           "layers": ["bias"], "all_reduce": ["nccl"]}


def csv_text(table, rows):
    lines = [table.names, *([str(row.get(name, "")) for name in table.names] for row in rows)]
    return "".join(",".join(fields) + "\n" for fields in lines)


def summary_row(suite, variant, median, **values):
    return {"primitive": "matmul", "direction": "forward", "variant": variant,
            "technique": "cuda", "suite": suite, "problem": "p", "precision": "fp32",
            "device": "NVIDIA X", "status": "ok", "verified": "yes", "threads": 1,
            "median_s": median, "gflops_per_s": 2000, "gbytes_per_s": 1, **values}


@pytest.fixture
def machine(sandbox):
    """A machine with an H200, where everything works."""
    root = sandbox.root
    for name in TOOLS:
        (sandbox.bin / name).symlink_to(shutil.which(name))
    (sandbox.bin / "sleep").unlink()
    (sandbox.bin / "sleep").symlink_to(shutil.which("sleep"))
    shutil.copytree(ROOT / "bench/suites", root / "bench/suites")
    sandbox.fake("nvidia-smi", "echo 'NVIDIA H200, 9.0'")
    sandbox.fake("nvcc", "echo 'Cuda compilation tools, release 13.0, V13.0.88'")
    sandbox.fake("compute-sanitizer", 'while [[ $1 != build/* ]]; do shift; done; "$@"')
    sandbox.fake("cmake", """
[[ $1 != --build ]] || echo "environment: $CMAKE_PREFIX_PATH|$LDFLAGS"
[[ ! -e no-build ]]""")
    sandbox.fake("python3", f"""
case "$*" in
  *gpu_table.py*) exec {sys.executable} "$@" ;;
  *"import torch"*) [[ ! -e no-torch ]] ;;
  *peers/run.py*)
    words="$*"; out=${{words##*--out }}; mkdir -p "$out"
    cp peers.csv "$out/step.csv"; touch "$out/samples.csv" ;;
esac""")
    (sandbox.bin / "cp").symlink_to(shutil.which("cp"))
    ladders = "".join(
        f'[[ $2 != --place && $2 != {primitive} ]] || printf "%s\\n" {primitive} '
        + " ".join(f"'  {name}  {'vendor' if name == 'cublas' else 'cuda'}  fp32  adds'"
                   for name in names) + "\n"
        for primitive, names in LADDERS.items())
    sandbox.fake("stepladder", f"""
if [[ $1 == list ]]; then
{ladders}exit 0
fi
if [[ -e fails ]] && [[ "$*" == $(cat fails) ]]; then echo "it went wrong"; exit 1; fi
if [[ -e breaks ]] && [[ $1 == verify ]]; then
  [[ "$*" == *--variant* && "$*" != *"--variant warp_tile "* ]] || exit 3
fi
if [[ -e hangs ]] && [[ "$*" == $(cat hangs) ]]; then
  trap 'echo stopped; exit 130' INT TERM; touch hanging; while :; do sleep 0.1; done
fi
out=; record=
for word in "$@"; do
  [[ $before != --out ]] || out=$word
  [[ $before != --record ]] || record=$word
  before=$word
done
[[ -z $record ]] || cp verified.json "$record"
[[ -z $out ]] || cp environment.json samples.csv benchmark.json "$out"
[[ $1 != bench ]] || cp summary.csv "$out"
[[ $1 != step ]] || cp step.csv "$out"
""", folder=root / "build/gpu")
    (root / "environment.json").write_text("{}")
    (root / "benchmark.json").write_text("{}")
    (root / "samples.csv").write_text("samples\n")
    (root / "summary.csv").write_text(csv_text(columns.SUMMARY, [
        summary_row("layers", "naive", 4.0),
        summary_row("layers", "warp_tile", 1.0, builds_on="naive", speedup_vs_vendor=0.5),
        summary_row("gpu", "naive", 8.0), summary_row("gpu", "warp_tile", 1.0, builds_on="naive"),
        summary_row("gpu", "broken", "", status="failed", verified="no",
                    reason="3 wrong elements"),
        summary_row("", "cublas", "", direction="", problem="", status="unavailable", threads="",
                    verified="no", reason="not found", gflops_per_s="", gbytes_per_s="")]))
    step = {"network": "mlp", "layer": "total", "phase": "total", "threads": 1, "ranks": 1,
            "device": "cuda"}
    (root / "step.csv").write_text(csv_text(columns.STEP, [
        step | {"use": "cuda", "mode": "single", "median_s": 0.001}]))
    (root / "peers.csv").write_text(csv_text(columns.STEP, [
        step | {"use": "pytorch", "mode": "eager", "median_s": 0.006},
        step | {"use": "pytorch", "mode": "cuda_graph", "median_s": 0.002}]))
    verdict = {"digest": "0123456789ab", "date": "2026-01-31", "device": "NVIDIA X"}
    (root / "verified.json").write_text(json.dumps({
        "schema_version": 1, "verified": {"kernels/matmul/cuda/naive.cu": verdict},
        "failed": {"kernels/matmul/cuda/broken/broken.cu": verdict}}))
    return sandbox


def stages(result):
    """[(outcome, title)] in the order of the output."""
    shown = result.stdout.split(" s in total; ")[0]
    return re.findall(r"^  (ok|FAILED|CUT|SKIPPED) +(.*?): ", shown, re.MULTILINE)


def outcome(result, title):
    return dict((name, word) for word, name in stages(result))[title]


def packed(run):
    with tarfile.open(run / "raw.tar.gz") as archive:
        return {name for name in archive.getnames()}


def test_without_a_gpu_it_says_so_at_once(machine):
    for body in ("exit 9", "echo 'No devices were found'"):
        machine.fake("nvidia-smi", body)
        result = machine.run("gpu.sh", OUT="run")
        assert result.returncode == 1 and "no NVIDIA GPU" in result.stderr
        assert machine.calls("cmake") == [] and not (machine.root / "run").exists()
    machine.remove("nvidia-smi")
    assert "no NVIDIA GPU" in machine.run("gpu.sh").stderr


def test_it_builds_verifies_and_measures_everything(machine):
    result = machine.run("gpu.sh", OUT="run")
    assert result.returncode == 0, result.stdout + result.stderr
    configured, built = machine.calls("cmake")
    assert "--preset release -B build/gpu" in configured
    assert "-DSTEPLADDER_CUDA_ARCHITECTURES=90a" in configured
    assert "--target stepladder" in built
    calls = machine.calls("stepladder")
    verified = [call for call in calls if "--record" in call]
    assert verified == [
        "verify matmul --place cuda --suite layers --random 200 --record run/verified.json",
        "verify sgd_update --place cuda --suite layers --random 200 --record run/verified.json",
        "verify layers --place cuda --random 200 --record run/verified.json"]  # it has no suites
    assert [call for call in calls if call.startswith("bench")] == [
        f"bench {primitive} --place cuda --suite {suite} --threads 1 --out run --resume"
        for primitive, suite in (("matmul", "layers"), ("sgd_update", "layers"), ("matmul", "gpu"),
                                 ("sgd_update", "gpu"), ("matmul", "alexnet"))]
    assert [call.split()[2] for call in calls if call.startswith("step")] == \
        ["mlp", "mnist_cnn", "cifar_cnn"]
    assert all("--use cuda" in call for call in calls if call.startswith("step"))
    assert sum("peers/run.py --device cuda" in call for call in machine.calls("python3")) == 1
    sanitized = [call.split(" build/gpu/stepladder ")
                 for call in machine.calls("compute-sanitizer")]
    assert [own for _, own in sanitized if "matmul" in own] == \
        ["verify matmul --variant naive,warp_tile --place cuda --random 3"] * 2
    assert [tool.split()[1] for tool, _ in sanitized] == ["memcheck"] * 3 + ["racecheck"] * 3
    assert outcome(result, "verify all_reduce") == "SKIPPED"


@pytest.mark.parametrize("version", ["release 12.9, V12.9.41", "no version"])
def test_an_older_nvcc_is_refused_at_once(machine, version):
    machine.fake("nvcc", f"echo '{version}'")
    result = machine.run("gpu.sh", OUT="run")
    assert result.returncode == 1 and "expected 13.0 or newer" in result.stderr
    assert machine.calls("cmake") == [] and not (machine.root / "run").exists()


def test_the_sanitizers_come_before_a_fourth_suite(machine):
    result = machine.run("gpu.sh", OUT="run", SUITE="layers gpu alexnet squares")
    titles = [title for _, title in stages(result)]
    order = ["bench matmul alexnet", "memcheck matmul", "racecheck matmul", "bench matmul squares"]
    assert [title for title in titles if title in order] == order


def test_the_run_folder_has_few_files(machine):
    machine.run("gpu.sh", OUT="run")
    run = machine.root / "run"
    files = {path.relative_to(run).as_posix() for path in run.rglob("*") if path.is_file()}
    assert files == {"environment.json", "summary.csv", "step.csv", "verified.json",
                     "peers/step.csv", "raw.tar.gz"}
    assert {"samples.csv", "benchmark.json", "peers/samples.csv", "logs/build.log",
            "logs/verify-matmul.log"} <= packed(run)


def test_it_ends_with_a_short_table(machine):
    shown = machine.run("gpu.sh", OUT="run").stdout
    row, = [line.split() for line in shown.splitlines() if line.startswith("  warp_tile")]
    assert row == ["warp_tile", "fp32", "-", "4.00x", "0.50x", "2.0", "TFLOP/s", "8.00x", "-",
                   "2.0", "TFLOP/s"]
    assert re.search(r"^  naive +fp32 +verified ", shown, re.MULTILINE)
    assert "FAILED broken forward p: 3 wrong elements" in shown
    assert "ours 1.000, eager 6.000 (6.0x), cuda_graph 2.000 (2.0x)" in shown
    assert "verified on this device: 1 rungs; FAILED: matmul broken" in shown
    assert len(shown) < 12000


@pytest.mark.parametrize("calls, title", [
    ("verify matmul*", "verify matmul"), ("bench matmul*--suite layers*", "bench matmul layers"),
    ("step*mnist_cnn*", "step mnist_cnn"), ("verify*naive,warp_tile*", "memcheck matmul")])
def test_a_failed_stage_does_not_stop_the_others(machine, calls, title):
    (machine.root / "fails").write_text(calls)
    result = machine.run("gpu.sh", OUT="run")
    assert result.returncode == 1
    assert outcome(result, title) == "FAILED"
    assert "    | it went wrong" in result.stdout
    others = {word for word, name in stages(result) if name.split()[1:] != title.split()[1:]}
    assert others - {"SKIPPED"} == {"ok"}
    assert (machine.root / "run/summary.csv").exists() and (machine.root / "run/step.csv").exists()


def test_a_rung_that_breaks_the_device_is_found_and_not_timed(machine):
    (machine.root / "breaks").touch()
    result = machine.run("gpu.sh", OUT="run", PRIMITIVE="matmul")
    assert result.returncode == 1
    assert [(word, title) for word, title in stages(result) if title.startswith("verify")] == [
        ("FAILED", "verify matmul"), ("ok", "verify matmul naive"),
        ("FAILED", "verify matmul warp_tile"), ("ok", "verify matmul cublas")]
    timed = [call for call in machine.calls("stepladder") if call.startswith("bench")]
    assert timed and all("--place cuda --variant naive,cublas --suite" in call for call in timed)


def test_a_failed_build_ends_the_run(machine):
    (machine.root / "no-build").touch()
    result = machine.run("gpu.sh", OUT="run")
    assert result.returncode == 1 and stages(result) == [("FAILED", "build")]
    assert machine.calls("stepladder") == []
    assert "logs/build.log" in packed(machine.root / "run")


def test_after_the_time_limit_the_other_stages_are_listed_as_skipped(machine):
    (machine.root / "hangs").write_text("bench matmul*")
    begun = time.monotonic()
    result = machine.run("gpu.sh", OUT="run", LIMIT="32")
    assert time.monotonic() - begun < 40
    assert result.returncode == 1
    words = stages(result)
    assert ("CUT", "bench matmul layers") in words and ("ok", "verify matmul") in words
    after = words[words.index(("CUT", "bench matmul layers")) + 1:]
    assert ("SKIPPED", "PyTorch") in after and {word for word, _ in after} == {"SKIPPED"}
    assert "the limit of 32 s is reached" in result.stdout
    with tarfile.open(machine.root / "run/raw.tar.gz") as archive:
        log = archive.extractfile("logs/bench-matmul-layers.log").read()
        assert b"stopped" in log  # it was interrupted, not killed


def test_one_primitive_is_measured_again_into_the_same_folder(machine):
    machine.run("gpu.sh", OUT="run")
    result = machine.run("gpu.sh", OUT="run", PRIMITIVE="matmul", BUDGET="0.5")
    assert result.returncode == 0, result.stdout + result.stderr
    calls = machine.calls("stepladder")
    measured = [call.split() for call in calls if call.startswith(("verify", "bench"))]
    assert {words[1] for words in measured} == {"matmul"}
    assert [call for call in calls if call.startswith("bench")][0] == (
        "bench matmul --place cuda --budget 0.5 --suite layers --threads 1 --out run --resume "
        "--again")
    assert not any(call.startswith("step") for call in calls)
    # raw.tar.gz was unpacked and packed again
    assert {"samples.csv", "peers/samples.csv", "logs/step-mlp.log"} <= packed(machine.root / "run")


def test_a_folder_with_a_run_is_only_changed_on_request(machine):
    machine.run("gpu.sh", OUT="run")
    before = (machine.root / "run/raw.tar.gz").read_bytes()
    result = machine.run("gpu.sh", OUT="run")
    assert result.returncode == 1 and "holds a run already" in result.stderr
    assert (machine.root / "run/raw.tar.gz").read_bytes() == before
    assert machine.run("gpu.sh", OUT="run", RESUME="1").returncode == 0
    assert not any("--again" in call for call in machine.calls("stepladder"))
    assert not any("peers/run.py" in call for call in machine.calls("python3"))  # measured before


def test_the_bundle_is_used_if_it_exists(machine):
    bundle = machine.root / "build/gpu-bundle"
    bundle.mkdir(parents=True)
    (bundle / "glibc").write_text("2.17\n")
    machine.run("gpu.sh", OUT="run", CMAKE_PREFIX_PATH="/opt/other")
    with tarfile.open(machine.root / "run/raw.tar.gz") as archive:
        log = archive.extractfile("logs/build.log").read().decode()
    assert f"environment: {bundle}:/opt/other|-Wl,--disable-new-dtags" in log


def nvidia_packages(folder, include):
    script = ROOT / "scripts/nvidia_packages.py"
    return subprocess.run([sys.executable, script, include], capture_output=True, text=True,
                          check=True,
                          env=os.environ | {"PYTHONPATH": str(folder)}).stdout.splitlines()


def test_cudnn_and_cublas_come_from_python_packages_if_the_toolkit_lacks_them(tmp_path):
    for package, header, library in (("cu13", "cublas_v2.h", "libcublas.so.13"),
                                     ("cudnn", "cudnn.h", "libcudnn.so.9")):
        for name in (f"include/{header}", f"lib/{library}"):
            (tmp_path / "nvidia" / package / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "nvidia" / package / name).touch()
    toolkit = tmp_path / "toolkit"
    toolkit.mkdir()
    (toolkit / "cublas_v2.h").touch()
    of = tmp_path / "nvidia"
    assert nvidia_packages(tmp_path, toolkit) == [
        f"libraries {of}/cu13/lib", f"prefix {of}/cudnn", f"libraries {of}/cudnn/lib"]
    assert nvidia_packages(tmp_path / "nowhere", toolkit) == []


def test_a_bundle_for_a_newer_c_library_is_refused(machine):
    bundle = machine.root / "build/gpu-bundle"
    bundle.mkdir(parents=True)
    (bundle / "glibc").write_text("9.99\n")
    result = machine.run("gpu.sh", OUT="run")
    assert result.returncode == 1 and "is for glibc 9.99 or newer" in result.stderr


def test_without_pytorch_or_sanitizer_the_rest_is_measured(machine):
    (machine.root / "no-torch").touch()
    machine.remove("compute-sanitizer")
    result = machine.run("gpu.sh", OUT="run")
    assert result.returncode == 0
    assert outcome(result, "PyTorch") == outcome(result, "memcheck, racecheck") == "SKIPPED"


@pytest.mark.parametrize("capability, architecture", [
    ("7.5", "75"), ("8.0", "80"), ("9.0", "90a"), ("10.0", "100")])
def test_it_builds_for_the_machines_own_gpu(machine, capability, architecture):
    machine.fake("nvidia-smi", f"printf '%s\\n' 'NVIDIA X, {capability}' 'NVIDIA X, {capability}'")
    machine.run("gpu.sh", OUT="run")
    configured = machine.calls("cmake")[0]
    assert re.search(rf"-DSTEPLADDER_CUDA_ARCHITECTURES={architecture}( |$)", configured)


def test_an_older_gpu_is_refused(machine):
    machine.fake("nvidia-smi", "echo 'NVIDIA V100, 7.0'")
    result = machine.run("gpu.sh", OUT="run")
    assert result.returncode == 1 and "compute capability 7.0; expected 7.5" in result.stderr


def test_an_interrupted_run_keeps_its_results(machine):
    (machine.root / "hangs").write_text("step*")
    process = machine.start("gpu.sh", OUT="run")
    for _ in range(600):
        if (machine.root / "hanging").exists():
            break
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGTERM)
    stdout, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "CUT       step mlp: interrupted" in stdout
    assert (machine.root / "run/summary.csv").exists()
    assert "samples.csv" in packed(machine.root / "run")
