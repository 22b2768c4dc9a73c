"""scripts/gpu.sh: its stages on a GPU machine, their time limits, and what is left after a failure.

The GPU, the compiler and the program are fakes; gpu_rungs.py and the table at the end are real.
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

from conftest import Sandbox
from tests import columns
from tests.commands import ROOT, ends, execute, wait_until, write_script

TOOLS = ["basename", "cp", "du", "getconf", "gzip", "head", "tar", "tee", "timeout"]
LADDERS = {"matmul": ["naive", "tf32_wgmma", "warp_tile", "cublas"], "sgd_update": ["naive"],
           "layers": ["bias"], "all_reduce": ["nccl"]}
OWN = [("matmul", "naive"), ("matmul", "warp_tile"), ("sgd_update", "naive"), ("layers", "bias"),
       ("matmul", "tf32_wgmma")]  # in the order of their verification

PROGRAM = """
echo "environment $STEPLADDER_SOURCE_DIR|$STEPLADDER_COMMIT_FILE" >>"{log}"
if [[ $1 == --version ]]; then echo "stepladder 0.1.0"; exit; fi
if [[ $1 == list && $2 == --place ]]; then cat "lists/$3/"*; exit; fi
if [[ $1 == list ]]; then cat "lists/$4/$2"; exit; fi
matches() {{ # FILE: does the command line match the pattern of this file?
  [[ -e $1 && $words == $(cat "$1") ]]
}}
words="$*"
if matches fails; then echo "FAILED it went wrong"; exit 1; fi
if matches breaks; then echo "stepladder: the device is lost"; exit 3; fi
if matches hangs; then
  trap 'echo stopped; exit 130' INT TERM
  echo $$ >hanging
  while [[ -e hangs ]]; do sleep 0.1; done
fi
out=; record=
for word in "$@"; do
  [[ $before != --out ]] || out=$word
  [[ $before != --record ]] || record=$word
  before=$word
done
[[ -z $record ]] || cp verified.json "$record"
[[ -z $out ]] || {{ mkdir -p "$out"; cp environment.json samples.csv benchmark.json "$out"; }}
[[ $1 != bench ]] || cp summary.csv "$out"
[[ $1 != step ]] || cp step.csv "$out"
if [[ $1 == machine ]]; then printf '%s\\n' "NVIDIA H200" "  TMA    works"; fi
"""


def csv_text(table, rows):
    lines = [table.names, *([str(row.get(name, "")) for name in table.names] for row in rows)]
    return "".join(",".join(fields) + "\n" for fields in lines)


def summary_row(suite, variant, median, **values):
    return {"primitive": "matmul", "direction": "forward", "variant": variant,
            "technique": "cuda", "suite": suite, "problem": "p", "precision": "fp32",
            "device": "NVIDIA X", "status": "ok", "verified": "yes", "threads": 1,
            "median_s": median, "gflops_per_s": 2000, "gbytes_per_s": 1, **values}


def program_in(machine, folder):
    machine.fake("stepladder", PROGRAM.format(log=machine.log), folder=machine.root / folder)


def write_list(machine, passed=()):
    """What the program lists; the own rungs in `passed` were verified on a device."""
    for place in ("cuda", "cpu"):
        (machine.root / "lists" / place).mkdir(parents=True, exist_ok=True)
    for primitive, rungs in LADDERS.items():
        text = primitive + "\n"
        for rung in rungs:
            technique = "vendor" if rung in ("cublas", "nccl") else "cuda"
            status = "verified on" if rung in passed else "changed since it was verified on"
            text += f"  {rung:22} {technique:8} fp32  adds\n"
            text += f"  {'':22} {status} NVIDIA X, 2026-01-31\n"
        (machine.root / "lists/cuda" / primitive).write_text(text)
    for primitive in ("matmul", "convolution", "max_pool", "sgd_update"):
        (machine.root / "lists/cpu" / primitive).write_text(
            f"{primitive}\n  {'simple':22} serial   fp32  the definition\n"
            f"  {'fast_avx2':22} simd     fp32  [on simple] vectors\n")


def with_gpu(sandbox):
    """A machine with an H200 and six cores, where everything works; the program must be built."""
    root = sandbox.root
    for name in TOOLS:
        (sandbox.bin / name).symlink_to(shutil.which(name))
    (sandbox.bin / "sleep").unlink()
    (sandbox.bin / "sleep").symlink_to(shutil.which("sleep"))
    (sandbox.bin / "nproc").unlink()
    sandbox.fake("nproc", "echo 6")
    shutil.copytree(ROOT / "bench/suites", root / "bench/suites")
    sandbox.fake("nvidia-smi", "echo 'NVIDIA H200, 9.0'")
    sandbox.fake("nvcc", "echo 'Cuda compilation tools, release 13.0, V13.0.88'")
    sandbox.fake("compute-sanitizer", 'while [[ $1 != build/* ]]; do shift; done; "$@"')
    sandbox.fake("cmake", """
[[ $1 != --build ]] || echo "environment: $CMAKE_PREFIX_PATH|$LDFLAGS"
[[ ! -e no-build ]]""")
    sandbox.fake("python3", f"""
case "$*" in
  *gpu_rungs.py*)
    [[ ! -e each ]] || set -- "$@" --each "$(cat each)"
    exec {sys.executable} "$@" ;;
  *gpu_table.py*) exec {sys.executable} "$@" ;;
  *"import torch"*) [[ ! -e no-torch ]] ;;
  *peers/run.py*)
    words="$*"; out=${{words##*--out }}; mkdir -p "$out"
    cp peers.csv "$out/step.csv"; touch "$out/samples.csv" ;;
esac""")
    write_list(sandbox)
    program_in(sandbox, "build/gpu")
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
        step | {"use": "cuda", "mode": "single", "median_s": 0.001},
        step | {"use": "cuda_tf32", "mode": "single", "median_s": 0.0005}]))
    (root / "peers.csv").write_text(csv_text(columns.STEP, [
        step | {"use": "pytorch", "mode": "eager", "median_s": 0.006},
        step | {"use": "pytorch", "mode": "cuda_graph_tf32", "median_s": 0.002}]))
    verdict = {"digest": "0123456789ab", "date": "2026-01-31", "device": "NVIDIA X"}
    (root / "verified.json").write_text(json.dumps({
        "schema_version": 1, "verified": {"kernels/matmul/cuda/naive.cu": verdict},
        "failed": {"kernels/matmul/cuda/broken/broken.cu": verdict}}))
    return sandbox


@pytest.fixture
def machine(sandbox):
    yield with_gpu(sandbox)
    (sandbox.root / "hangs").unlink(missing_ok=True)  # ends what a killed script has left


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory):
    """A machine after a run of all stages, and its result."""
    machine = with_gpu(Sandbox(tmp_path_factory.mktemp("whole")))
    return machine, machine.run("gpu.sh", "run", OUT="out")


def prebuilt(machine, architectures="90a"):
    """Adds the bundle with the program for these architectures."""
    program_in(machine, "build/gpu-bundle/bin")
    bundle = machine.root / "build/gpu-bundle"
    for name, text in (("architectures", architectures), ("commit", "0123456789ab"),
                       ("glibc", "2.17")):
        (bundle / name).write_text(text + "\n")
    return bundle


def stages(result):
    """[(outcome, title)] in the order of the output."""
    shown = result.stdout.split(" s in total; ")[0]
    return re.findall(r"^  (ok|FAILED|CUT|SKIPPED) +(.*?): ", shown, re.MULTILINE)


def outcome(result, title):
    return {name: word for word, name in stages(result)}[title]


def unpacked(archive):
    """{path in the run folder: text} of the files in the archive."""
    with tarfile.open(archive) as tar:
        return {member.name.split("/", 1)[1]: tar.extractfile(member).read().decode()
                for member in tar.getmembers() if member.isfile()}


def files_in(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def calls_of(machine, *command):
    return [call for call in machine.calls("stepladder") if call.startswith(command)]


def wait_for_the_hang(machine):
    """Returns the process that hangs."""
    file = machine.root / "hanging"
    found = wait_until(lambda: file.exists() and file.read_text())
    assert found, "nothing hangs"
    return int(found)


def test_without_a_gpu_it_says_so_at_once(machine):
    for body in ("exit 9", "echo 'No devices were found'"):
        machine.fake("nvidia-smi", body)
        machine.run("gpu.sh", "run", OUT="out", status=1, error="no NVIDIA GPU")
        assert machine.calls("cmake") == []
        assert not (machine.root / "run").exists() and not (machine.root / "out").exists()
    machine.remove("nvidia-smi")
    machine.run("gpu.sh", status=1, error="no NVIDIA GPU")


@pytest.mark.parametrize("name, value", [
    ("PART", "checks"), ("LIMIT", "8m"), ("LIMIT", "0"), ("ARCHIVE", "run.zip")])
def test_a_wrong_variable_is_refused_in_one_sentence(machine, name, value):
    result = machine.run("gpu.sh", "run", **{name: value}, status=1)
    assert result.stdout == ""
    assert re.fullmatch(rf"make gpu: {name}={re.escape(value)}: expected .*\n", result.stderr)
    assert not (machine.root / "run").exists() and machine.calls("nvidia-smi") == []


def test_it_builds_verifies_and_measures_everything(whole_run):
    machine, _ = whole_run
    configured, built = machine.calls("cmake")
    assert "--preset release -B build/gpu" in configured
    assert "-DSTEPLADDER_CUDA_ARCHITECTURES=90a" in configured
    assert "--target stepladder" in built
    assert sorted(call for call in calls_of(machine, "verify") if "--record" in call) == sorted(
        f"verify {primitive} --variant {rung} --place cuda "
        "--suite layers --random 40 --record run/verified.json"
        for primitive, rung in OWN)
    assert calls_of(machine, *(f"bench {primitive} --place cuda"
                               for primitive in ("matmul", "sgd_update", "layers"))) == [
        f"bench {primitive} --place cuda --variant {variants} --suite {suite} --threads 1 "
        "--out run --resume"
        for primitive, variants, suite in (
            ("layers", "bias", "layers"), ("matmul", "naive,tf32_wgmma,warp_tile,cublas", "layers"),
            ("sgd_update", "naive", "layers"),
            ("matmul", "naive,tf32_wgmma,warp_tile,cublas", "gpu"), ("sgd_update", "naive", "gpu"),
            ("layers", "bias", "alexnet"),
            ("matmul", "naive,tf32_wgmma,warp_tile,cublas", "alexnet"))]
    assert calls_of(machine, "step") == [
        f"step --network {network} --use {use} --threads 1 --out run --resume"
        for use in ("cuda", "cuda_tf32") for network in ("mlp", "mnist_cnn", "cifar_cnn")]
    assert sum("peers/run.py --device cuda" in call for call in machine.calls("python3")) == 1
    assert "nccl" not in "".join(calls_of(machine, "verify", "bench"))


def test_the_sanitizers_run_the_own_rungs_only(whole_run):
    machine, result = whole_run
    sanitized = [call.split(" build/gpu/stepladder ")
                 for call in machine.calls("compute-sanitizer")]
    for tool in ("memcheck", "racecheck"):
        assert sorted(own for options, own in sanitized if options.split()[1] == tool) == sorted(
            f"verify {primitive} --variant {rung} --place cuda --random 3"
            for primitive, rung in OWN)
    titles = [title for _, title in stages(result)]
    assert titles.index("memcheck") == titles.index("verify") + 1
    assert titles[-1] == "racecheck"


def test_the_cpu_ladder_has_a_folder_of_its_own_and_all_threads(whole_run):
    machine, _ = whole_run
    of_cpu = [call for call in calls_of(machine, "bench") if "--place cpu" in call]
    assert [call.split()[1] for call in of_cpu] == ["matmul", "convolution", "max_pool",
                                                    "sgd_update"]
    for call in of_cpu:
        assert re.search(r"--variant simple,\*_avx(2|512) --threads 1,2,4 .*--out run/cpu --resume",
                         call)
    assert (machine.root / "run/cpu/summary.csv").exists()


@pytest.mark.parametrize("part, titles", [
    ("check", ["build", "probe", "verify", "memcheck"]),
    ("measure", ["build", "verify", "bench matmul layers", "racecheck"])])
def test_a_part_has_its_own_stages_and_limit(machine, part, titles):
    only = {"PRIMITIVE": "matmul", "SUITE": "layers"} if part == "measure" else {}
    result = machine.run("gpu.sh", "run", PART=part, **only)
    assert [title for _, title in stages(result)] == titles
    limit = {"check": 240, "measure": 420}[part]
    assert f"at most {limit} s" in result.stdout
    assert ("    |   TMA    works" in result.stdout) == (part == "check")
    assert len(calls_of(machine, "machine --probe")) == (part == "check")


@pytest.mark.parametrize("part, verified", [
    ("check", ["matmul naive", "matmul tf32_wgmma", "matmul warp_tile"]),
    ("measure", ["matmul warp_tile"])])
def test_only_changed_rungs_are_verified_before_times(machine, part, verified):
    write_list(machine, passed=["naive", "tf32_wgmma"])
    machine.run("gpu.sh", "run", PART=part, PRIMITIVE="matmul", SUITE="layers")
    done = [call.split() for call in calls_of(machine, "verify") if "--record" in call]
    assert sorted(f"{words[1]} {words[3]}" for words in done) == verified
    if part == "measure":  # all are timed
        timed, = calls_of(machine, "bench")
        assert "--variant naive,tf32_wgmma,warp_tile,cublas " in timed


@pytest.mark.parametrize("names", ["matmul,sgd_update", "matmul sgd_update", "matmul, sgd_update"])
def test_primitives_are_separated_by_commas_or_spaces(machine, names):
    machine.run("gpu.sh", "run", PART="measure", PRIMITIVE=names, SUITE="layers")
    for command in ("verify", "bench"):
        assert {call.split()[1] for call in calls_of(machine, command)} == {"matmul", "sgd_update"}


def test_an_unknown_primitive_is_a_failure(machine):
    result = machine.run("gpu.sh", "run", PART="check", PRIMITIVE="matmull", status=1)
    assert outcome(result, "verify") == "FAILED"
    assert "matmull" in (machine.root / "run/logs/verify.log").read_text().splitlines()[-1]


# --- the program ----------------------------------------------------------------------------------


def test_a_prebuilt_program_is_used_and_nothing_is_built(machine):
    bundle = prebuilt(machine)
    for name in ("cmake", "nvcc"):
        machine.remove(name)
    result = machine.run("gpu.sh", "run", PART="check")
    assert stages(result)[0] == ("ok", "program")
    assert [title for _, title in stages(result)] == ["program", "probe", "verify", "memcheck"]
    # The first call asks for the version.
    assert set(machine.calls("environment")[1:]) == {f"{machine.root}|{bundle}/commit"}
    assert machine.calls("environment")[0].startswith(f"{machine.root}|")


@pytest.mark.parametrize("gpus, architectures, used", [
    (["NVIDIA H200, 9.0"], "90a", True), (["NVIDIA A100, 8.0"], "90a", False),
    (["NVIDIA A100, 8.0"], "80", True),
    (["NVIDIA H200, 9.0", "NVIDIA A100, 8.0"], "90a", False)])
def test_a_prebuilt_program_is_used_on_its_own_architectures_only(
        machine, gpus, architectures, used):
    prebuilt(machine, architectures)
    machine.fake("nvidia-smi", "printf '%s\\n' " + " ".join(f"'{gpu}'" for gpu in gpus))
    result = machine.run("gpu.sh", "run", PART="check", PRIMITIVE="layers")
    assert stages(result)[0] == ("ok", "program" if used else "build")
    assert (machine.calls("cmake") == []) == used


@pytest.mark.parametrize("body", ["echo 'libfmt.so.9: not found' >&2; exit 127", "kill -SEGV $$"])
def test_a_prebuilt_program_that_does_not_start_is_built(machine, body):
    bundle = prebuilt(machine)
    machine.fake("stepladder", body, folder=bundle / "bin")
    result = machine.run("gpu.sh", "run", PART="check", PRIMITIVE="layers")
    assert stages(result)[0] == ("ok", "build")
    if "libfmt" in body:
        assert "libfmt.so.9" in unpacked(machine.root / "run.tar.gz")["logs/program.log"]
    assert set(machine.calls("environment")) == {"|"}  # a built one knows its sources


@pytest.mark.parametrize("version", ["release 12.9, V12.9.41", "no version"])
def test_an_older_nvcc_is_refused_at_once(machine, version):
    machine.fake("nvcc", f"echo '{version}'")
    result = machine.run("gpu.sh", "run", status=1)
    assert outcome(result, "build") == "FAILED"
    assert "expected 13.0 or newer" in result.stdout
    assert machine.calls("cmake") == [] and machine.calls("stepladder") == []


def test_a_failed_build_ends_the_run(machine):
    (machine.root / "no-build").touch()
    result = machine.run("gpu.sh", "run", status=1)
    assert stages(result) == [("FAILED", "build")]
    assert machine.calls("stepladder") == []
    assert "logs/build.log" in unpacked(machine.root / "run.tar.gz")


def test_the_libraries_of_the_bundle_are_used_for_a_build(machine):
    bundle = machine.root / "build/gpu-bundle"
    bundle.mkdir(parents=True)
    (bundle / "glibc").write_text("2.17\n")
    machine.run("gpu.sh", "run", PART="check", PRIMITIVE="layers", CMAKE_PREFIX_PATH="/opt/other")
    log = unpacked(machine.root / "run.tar.gz")["logs/build.log"]
    assert f"environment: {bundle}:/opt/other|-Wl,--disable-new-dtags" in log


def test_a_bundle_for_a_newer_c_library_is_refused(machine):
    bundle = machine.root / "build/gpu-bundle"
    bundle.mkdir(parents=True)
    (bundle / "glibc").write_text("9.99\n")
    result = machine.run("gpu.sh", "run", status=1)
    assert outcome(result, "build") == "FAILED"
    assert "is for glibc 9.99 or newer" in result.stdout


@pytest.mark.parametrize("capability, architecture", [
    ("7.5", "75"), ("8.0", "80"), ("9.0", "90a"), ("10.0", "100")])
def test_it_builds_for_the_machines_own_gpu(machine, capability, architecture):
    machine.fake("nvidia-smi", f"printf '%s\\n' 'NVIDIA X, {capability}' 'NVIDIA X, {capability}'")
    machine.run("gpu.sh", "run", PART="check", PRIMITIVE="layers")
    configured = machine.calls("cmake")[0]
    assert re.search(rf"-DSTEPLADDER_CUDA_ARCHITECTURES={architecture}( |$)", configured)


def test_an_older_gpu_is_refused(machine):
    machine.fake("nvidia-smi", "echo 'NVIDIA V100, 7.0'")
    machine.run("gpu.sh", "run", status=1, error="compute capability 7.0; expected 7.5")


def nvidia_packages(folder, include):
    return execute(sys.executable, ROOT / "scripts/nvidia_packages.py", include,
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


# --- the run folder and what arrives --------------------------------------------------------------

ALL = {"environment.json", "benchmark.json", "summary.csv", "samples.csv", "step.csv",
       "verified.json", "peers/step.csv", "peers/samples.csv", "cpu/summary.csv",
       "cpu/samples.csv", "table.txt", "logs/stages.txt", "logs/nvidia-smi.txt", "logs/build.log",
       "logs/probe.log", "logs/verify.log", "logs/verify.txt", "logs/verify/matmul-warp_tile.log",
       "logs/memcheck/layers-bias.log", "logs/racecheck.txt", "logs/bench-matmul-layers.log",
       "logs/step-mlp-cuda_tf32.log", "logs/PyTorch.log", "logs/cpu-max_pool.log"}


def test_two_files_arrive_and_the_archive_has_everything(whole_run):
    machine, result = whole_run
    out = machine.root / "out"
    assert files_in(out) == {"gpu-run.tar.gz", "gpu-run.txt"}
    files = unpacked(out / "gpu-run.tar.gz")
    assert set(files) >= ALL
    assert set(files) == files_in(machine.root / "run")
    assert (out / "gpu-run.txt").read_text() == files["table.txt"]
    assert files["table.txt"] in result.stdout


def test_without_out_the_archive_is_beside_the_run_folder(machine):
    for argument, name, variables in (
            ("run", "run", {}), ("c/", "c", {}), ("d/", "d", {"OUT": "d/"}),
            ("a", "elsewhere/b", {"ARCHIVE": "elsewhere/b.tar.gz", "OUT": "out"})):
        machine.run("gpu.sh", argument, PART="check", PRIMITIVE="layers", **variables)
        assert "verified.json" in unpacked(machine.root / f"{name}.tar.gz")
        assert (machine.root / f"{name}.txt").exists()
    assert not (machine.root / "out").exists()
    for run in ("c", "d"):
        assert not any(name.endswith(".tar.gz") for name in files_in(machine.root / run))


def test_without_an_argument_the_run_folder_is_a_new_local_one(machine):
    machine.run("gpu.sh", OUT="out", PART="check", PRIMITIVE="layers")
    run, = (machine.root / "results/local").iterdir()
    assert re.fullmatch(r"[0-9T:-]+Z-gpu", run.name)
    with tarfile.open(machine.root / "out/gpu-run.tar.gz") as archive:
        assert archive.getnames()[0] == run.name


def make_gpu(folder, *arguments, **variables):
    own = {name: value for name, value in os.environ.items()  # of a make that runs the tests
           if name not in ("MAKEFLAGS", "MAKEOVERRIDES", "MFLAGS", "OUT", "PART", "ARCHIVE")}
    return execute("make", "-C", folder, "--no-print-directory", *arguments,
                   env=own | variables).stdout


@pytest.mark.skipif(shutil.which("make") is None, reason="make was not found")
def test_out_is_the_run_folder_only_on_the_command_line_of_make(tmp_path):
    assert make_gpu(ROOT, "-n", "gpu", "OUT=run").split() == ["scripts/gpu.sh", '"$OUT"']
    assert make_gpu(ROOT, "-n", "gpu", OUT="out").split() == ["scripts/gpu.sh"]
    assert make_gpu(ROOT, "-n", "gpu").split() == ["scripts/gpu.sh"]
    # What the script gets.
    shutil.copy(ROOT / "Makefile", tmp_path)
    write_script(tmp_path / "scripts/gpu.sh", '#!/bin/sh\necho "$#|$1|$OUT|$PART|$ARCHIVE"\n')
    assert make_gpu(tmp_path, "gpu", "OUT=a b", "PART=check") == "1|a b|a b|check|\n"
    assert make_gpu(tmp_path, "gpu", "ARCHIVE=x.tar.gz", OUT="out") == "0||out||x.tar.gz\n"


def test_both_parts_one_after_another(machine):
    """As on a machine that keeps nothing but what is in OUT, with the prebuilt program."""
    prebuilt(machine)
    arrived = {}
    for part in ("check", "measure"):
        out = machine.root.parent / f"out-{part}"
        out.mkdir()
        machine.run("gpu.sh", f"results/local/{part}", OUT=str(out), PART=part)
        assert len(files_in(out)) <= 8
        assert all(name.count("/") <= 2 for name in files_in(out))
        assert "verified in this run: 1 rungs" in (out / "gpu-run.txt").read_text()
        arrived[part] = unpacked(out / "gpu-run.tar.gz")
        shutil.rmtree(machine.root / "results")
    assert {"verified.json", "table.txt", "logs/probe.log", "logs/memcheck.txt",
            "logs/verify/matmul-naive.log"} <= set(arrived["check"])
    assert "summary.csv" not in arrived["check"]
    assert ALL - {"logs/build.log", "logs/probe.log", "logs/memcheck/layers-bias.log"} <= \
        set(arrived["measure"])
    assert arrived["check"]["logs/verify.txt"].count("ok ") == len(OWN)


def test_the_times_may_follow_in_the_folder_of_the_check(machine):
    machine.run("gpu.sh", "run", PART="check")
    machine.run("gpu.sh", "run", PART="measure", RESUME="1", OUT="out")
    assert set(unpacked(machine.root / "out/gpu-run.tar.gz")) >= ALL


def test_it_ends_with_a_short_table(whole_run):
    shown = whole_run[1].stdout
    row, = [line.split() for line in shown.splitlines() if line.startswith("  warp_tile")]
    assert row == ["warp_tile", "fp32", "-", "4.00x", "0.50x", "2.0", "TFLOP/s", "8.00x", "-",
                   "2.0", "TFLOP/s"]
    assert re.search(r"^  naive +fp32 +verified ", shown, re.MULTILINE)
    assert "FAILED broken forward p: 3 wrong elements" in shown
    assert ("ours 1.000, ours in TF32 0.500, eager 6.000 (6.0x), cuda_graph_tf32 2.000 (4.0x)"
            in shown)
    assert "verified in this run: 1 rungs; FAILED: matmul broken" in shown
    assert len(shown) < 12000


def test_one_primitive_is_measured_again_into_the_same_folder(machine):
    machine.run("gpu.sh", "run", PART="check")
    (machine.root / "run/samples.csv").touch()
    machine.run("gpu.sh", "run", PRIMITIVE="matmul", BUDGET="0.5")
    measured = calls_of(machine, "verify", "bench")
    assert {call.split()[1] for call in measured} == {"matmul"}
    assert calls_of(machine, "bench")[0] == (
        "bench matmul --place cuda --variant naive,tf32_wgmma,warp_tile,cublas --budget 0.5 "
        "--suite layers --threads 1 --out run --resume --again")
    assert calls_of(machine, "step") == []
    assert {"samples.csv", "logs/memcheck/layers-bias.log"} <= set(  # the earlier logs stay
        unpacked(machine.root / "run.tar.gz"))


def test_a_folder_with_a_run_is_only_changed_on_request(machine):
    machine.run("gpu.sh", "run", PART="measure", SUITE="layers")
    before = (machine.root / "run.tar.gz").read_bytes()
    machine.run("gpu.sh", "run", PART="measure", status=1, error="holds a run already")
    assert (machine.root / "run.tar.gz").read_bytes() == before
    machine.run("gpu.sh", "run", PART="measure", SUITE="layers", RESUME="1")
    assert not any("--again" in call for call in machine.calls("stepladder"))
    assert not any("peers/run.py" in call for call in machine.calls("python3"))  # measured before


# --- failures -------------------------------------------------------------------------------------


def test_a_failed_stage_does_not_stop_the_others(machine):
    failing = {"machine*": "probe", "verify matmul --variant naive *--random 40*": "verify",
               "verify*warp_tile*--random 3": "memcheck",
               "bench matmul*cuda*--suite layers*": "bench matmul layers",
               "step*mnist_cnn*cuda_tf32*": "step mnist_cnn cuda_tf32"}
    (machine.root / "fails").write_text(f"@({'|'.join(failing)})")
    result = machine.run("gpu.sh", "run", SUITE="layers gpu", status=1)
    expected = {*failing.values(), "racecheck"}
    assert {title for word, title in stages(result) if word == "FAILED"} == expected
    assert {title for word, title in stages(result) if word == "ok"} == {
        "build", "bench layers layers", "bench sgd_update layers", "bench matmul gpu",
        "bench sgd_update gpu", "PyTorch",
        *(f"step {network} {use}" for use in ("cuda", "cuda_tf32")
          for network in ("mlp", "mnist_cnn", "cifar_cnn")
          if (network, use) != ("mnist_cnn", "cuda_tf32")),
        "cpu matmul", "cpu convolution", "cpu max_pool", "cpu sgd_update"}
    assert "    | FAILED  matmul naive FAILED it went wrong\n" in result.stdout  # of verify
    assert "    | FAILED  matmul warp_tile FAILED it went wrong\n" in result.stdout  # of memcheck
    assert "    | FAILED it went wrong\n" in result.stdout  # the log of another stage
    assert {"summary.csv", "step.csv"} <= set(unpacked(machine.root / "run.tar.gz"))
    shown = (machine.root / "run.txt").read_text()
    assert all(f"FAILED    {title}: exit status 1" in shown for title in expected)


def test_without_the_list_of_cpu_rungs_the_run_goes_on(machine):
    (machine.root / "lists/cpu/convolution").unlink()
    result = machine.run("gpu.sh", "run", SUITE="layers")
    assert outcome(result, "racecheck") == "ok" and outcome(result, "cpu matmul") == "ok"
    assert "verified in this run: 1 rungs" in (machine.root / "run.txt").read_text()


def test_a_rung_that_breaks_the_device_or_hangs_is_reported_and_not_timed(machine):
    (machine.root / "breaks").write_text("verify *@(warp_tile|sgd_update)*--random 40*")
    (machine.root / "each").write_text("3")
    (machine.root / "hangs").write_text("verify * tf32_wgmma *--random 40*")
    (machine.root / "fails").write_text("verify layers *--random 40*")
    result = machine.run("gpu.sh", "run", PART="measure", PRIMITIVE="matmul,sgd_update,layers",
                         SUITE="layers", status=1)
    assert outcome(result, "verify") == "FAILED"
    assert "    | 1 of 5 rungs passed" in result.stdout
    for line in ("BROKEN  matmul warp_tile stepladder: the device is lost",
                 "BROKEN  sgd_update naive stepladder: the device is lost",
                 "CUT     matmul tf32_wgmma after 3.0 s",
                 "FAILED  layers bias FAILED it went wrong"):
        assert f"    | {line}\n" in result.stdout
    assert [call.split(" --threads")[0] for call in calls_of(machine, "bench")] == [
        "bench matmul --place cuda --variant naive,cublas --suite layers",
        "bench layers --place cuda --variant bias --suite layers"]
    assert outcome(result, "bench sgd_update layers") == "SKIPPED"
    assert "every rung broke the device or did not terminate" in result.stdout


def test_after_the_time_limit_the_other_stages_are_listed_as_skipped(machine):
    (machine.root / "hangs").write_text("bench matmul*")
    begun = time.monotonic()
    result = machine.run("gpu.sh", "run", PART="measure", LIMIT="16", status=1)
    assert time.monotonic() - begun < 30
    words = stages(result)
    assert ("CUT", "bench matmul layers") in words and ("ok", "verify") in words
    after = words[words.index(("CUT", "bench matmul layers")) + 1:]
    assert {("SKIPPED", "PyTorch"), ("SKIPPED", "racecheck")} <= set(after)
    assert {word for word, _ in after} == {"SKIPPED"}
    assert "the limit of 16 s is reached" in result.stdout
    # It was interrupted, not killed.
    assert "stopped" in unpacked(machine.root / "run.tar.gz")["logs/bench-matmul-layers.log"]


def test_without_pytorch_or_sanitizer_the_rest_is_measured(machine):
    (machine.root / "no-torch").touch()
    machine.remove("compute-sanitizer")
    result = machine.run("gpu.sh", "run", SUITE="layers")
    assert {title for word, title in stages(result) if word == "SKIPPED"} == {
        "PyTorch", "memcheck", "racecheck"}


@pytest.mark.parametrize("hangs, title", [
    ("step*", "step mlp cuda"), ("verify matmul --variant tf32_wgmma *", "verify")])
def test_a_run_that_is_told_to_end_keeps_its_results(machine, hangs, title):
    (machine.root / "hangs").write_text(hangs)
    process = machine.start("gpu.sh", "run", OUT="out", PART="measure", SUITE="layers")
    hanging = wait_for_the_hang(machine)
    os.kill(process.pid, signal.SIGTERM)
    stdout, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"CUT       {title}: interrupted" in stdout
    files = unpacked(machine.root / "out/gpu-run.tar.gz")
    assert {"verified.json", "logs/verify/matmul-naive.log", "table.txt"} <= set(files)
    assert "ok      matmul naive\n" in files["logs/verify.txt"]
    assert f"{title}: interrupted" in (machine.root / "out/gpu-run.txt").read_text()
    if title != "verify":
        assert {"summary.csv", "samples.csv", "logs/bench-sgd_update-layers.log"} <= set(files)
        assert "stopped" in files["logs/step-mlp-cuda.log"]
    assert ends(hanging), "a rung still runs"


def test_a_run_that_is_killed_has_archived_its_finished_stages(machine):
    (machine.root / "hangs").write_text("step*")
    process = machine.start("gpu.sh", "run", OUT="out", PART="measure", SUITE="layers",
                            stderr=subprocess.DEVNULL)
    wait_for_the_hang(machine)
    process.kill()
    (machine.root / "hangs").unlink()
    process.communicate(timeout=60)
    files = unpacked(machine.root / "out/gpu-run.tar.gz")
    assert {"summary.csv", "samples.csv", "verified.json", "logs/verify/matmul-naive.log",
            "logs/verify.txt", "logs/bench-sgd_update-layers.log"} <= set(files)
    assert re.findall(r"^ *(\w+) +(.*?): ", files["logs/stages.txt"], re.MULTILINE) == [
        ("ok", "build"), ("ok", "verify"), ("ok", "bench layers layers"),
        ("ok", "bench matmul layers"), ("ok", "bench sgd_update layers")]
