"""Tests of the program as users run it: output, files and exit status.

STEPLADDER names the program (build/stepladder without it).
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands import ROOT, check, execute, read_csv, wait_until
from tests.stripes import write_stripes

sys.path.insert(0, str(ROOT / "scripts"))  # tests import some of them

HAS_BF16 = "avx512_bf16" in Path("/proc/cpuinfo").read_text()
HAS_VNNI = "avx512_vnni" in Path("/proc/cpuinfo").read_text()

MATMUL_HEADER = "suite,name,m,n,k,transpose_a,transpose_b,source\n"
TINY_SUITE = MATMUL_HEADER + "tiny,one,33,20,17,0,0,\ntiny,two,16,16,16,0,1,\n"

TINY_VARIANTS = "blis,blocked,blocked_o3,serial_ijk_o3,serial_i??,simd_*,blocked_omp_simd"

TINY_NETWORK = {
    "input": {"channels": 1, "height": 6, "width": 6}, "classes": 3, "batch": 4,
    "layers": [
        {"type": "convolution", "name": "conv", "filters": 4, "kernel": 3}, {"type": "relu"},
        {"type": "fully_connected", "name": "fc", "outputs": 3}, {"type": "softmax_cross_entropy"}],
    "optimizer": {"type": "sgd", "learning_rate": 0.1}}

ENVIRONMENT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
               "OMP_NUM_THREADS": "2"}

# Short, and on one thread.
QUICK = ("--threads", "1", "--repetitions", "7", "--budget", "0.02")


def wait_for_rows(run, process, count=1):
    """Until summary.csv has so many rows."""
    def has_rows():
        has_ended = process.poll() is not None
        if (run / "summary.csv").exists() and len(read_csv(run / "summary.csv")) >= count:
            return True
        assert not has_ended, process.communicate()

    assert wait_until(has_rows, 120), "no row was written"


@pytest.fixture
def network(tmp_path):
    """The file of a network with a convolution and a fully connected layer."""
    path = tmp_path / "tiny.json"
    path.write_text(json.dumps(TINY_NETWORK))
    return path


def pytest_configure(config):
    config.addinivalue_line("markers", "without_sanitizers(reason): skipped in a sanitized build")


def has_address_sanitizer(path):
    return b"__asan_init" in Path(path).read_bytes()


@pytest.fixture(autouse=True)
def only_without_sanitizers(request):
    """@pytest.mark.without_sanitizers(reason) is for what a sanitizer changes."""
    mark = request.node.get_closest_marker("without_sanitizers")
    if mark and has_address_sanitizer(request.getfixturevalue("program_path")):
        pytest.skip(f"sanitized: {mark.args[0]}")


class Program:
    def __init__(self, path):
        self.path = path

    def start(self, *arguments, launcher=(), environment=None, **options):
        # a test runner in the background may ignore Ctrl-C, and its children would inherit that
        def reset():
            signal.signal(signal.SIGINT, signal.SIG_DFL)

        options.setdefault("preexec_fn", reset)
        variables = os.environ | ENVIRONMENT | (environment or {})
        options.setdefault("stdout", subprocess.PIPE)
        return subprocess.Popen(
            [*launcher, str(self.path), *map(str, arguments)], text=True, start_new_session=True,
            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, env={
                name: value for name, value in variables.items() if value is not None}, **options)

    def __call__(self, *arguments, status=0, error=(), lines=None, timeout=180, **options):
        """Runs it to its end and checks how it ended: see check()."""
        process = self.start(*arguments, **options)
        try:
            stdout, stderr = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        return check(subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr),
                     status, error, lines)

    def is_built_with(self, what):
        return f"built without {what}" not in self("list").stdout


class Command:
    """A subcommand that writes a table of the folder `run`: gives how it ended, and the rows that
    the table has then."""

    def __init__(self, program, run, table, *fixed):
        self.program, self.run, self.table, self.fixed = program, run, run / table, fixed

    def __call__(self, *arguments, **options):
        done = self.program(*self.fixed, *arguments, "--out", self.run, **options)
        return done, read_csv(self.table) if self.table.exists() else []


@pytest.fixture(scope="session", autouse=True)
def made_up_ceilings(tmp_path_factory):
    """Measuring takes 10 s for each run, and twice as long where other tests run beside. No row
    comes near these ones."""
    path = tmp_path_factory.mktemp("ceilings") / "ceilings.json"
    levels = [("fma_peak", "GFLOP/s", "")]
    levels += [(f"stream_{name}", "GB/s", level) for level in ("L1", "L2", "L3", "DRAM")
               for name in ("read", "triad", "copy", "write", "update", "scale")]
    path.write_text(json.dumps({"schema_version": 1, "ceilings": [
        {"name": name, "unit": unit, "threads": threads, "level": level, "value": 1e5 * threads}
        for threads in range(1, 9) for name, unit, level in levels]}))
    os.environ["STEPLADDER_CEILINGS"] = str(path)


@pytest.fixture(scope="session")
def program_path():
    path = Path(os.environ.get("STEPLADDER", ROOT / "build/stepladder")).resolve()
    assert path.is_file(), f"{path} is not there: build it, or name the program with STEPLADDER"
    return path


@pytest.fixture(scope="session")
def finished_run(program_path, tmp_path_factory):
    """A whole run on the tiny suite. Copy it before you change it.

    STEPLADDER_FINISHED_RUN names a folder where it is kept for other test runs, which try other
    programs on it.
    """
    kept = os.environ.get("STEPLADDER_FINISHED_RUN")
    if kept and Path(kept).exists():
        return Path(kept)
    folder = tmp_path_factory.mktemp("finished")
    suite = folder / "tiny.csv"
    suite.write_text(TINY_SUITE)
    run = folder / "run"
    Program(program_path)("bench", "matmul", "--variant", TINY_VARIANTS, "--suite-file", suite,
                          *QUICK, "--out", run, environment={"STEPLADDER_CEILINGS": None})
    return Path(shutil.copytree(run, kept)) if kept else run


@pytest.fixture(scope="session")
def stepladder(program_path):
    return Program(program_path)


@pytest.fixture
def bench(stepladder, tmp_path):
    return Command(stepladder, tmp_path / "run", "summary.csv", "bench")


@pytest.fixture
def mpirun(stepladder):
    """The command that starts a number of ranks, more than cores if need be."""
    path = shutil.which("mpirun")
    if path is None or not stepladder.is_built_with("MPI"):
        pytest.skip("no MPI on this machine")
    if "Open MPI" not in execute(path, "--version", status=None).stdout:
        pytest.skip("mpirun is not Open MPI's")
    return lambda ranks: [path, "--oversubscribe", "--mca", "mpi_yield_when_idle", "1", "-np",
                          str(ranks)]


@pytest.fixture
def preloaded(tmp_path, program_path):
    """Compiles C functions that stand before those of the libraries, for LD_PRELOAD; the sanitizer
    must come first."""
    before = []
    if has_address_sanitizer(program_path):
        before = execute("gcc", "-print-file-name=libasan.so").stdout.split()

    def library(source):
        (tmp_path / "preloaded.c").write_text(source)
        execute("gcc", "-shared", "-fPIC", "-O1", "-o", tmp_path / "preloaded.so",
                tmp_path / "preloaded.c", "-ldl")
        return ":".join([*before, str(tmp_path / "preloaded.so")])
    return library


@pytest.fixture
def shared_object(tmp_path):
    """Compiles functions of bench/plugin.h, or others."""
    def compile_it(source, name="libmine.so"):
        (tmp_path / "source.cpp").write_text(source)
        execute("c++", "-O2", "-shared", "-fPIC", f"-I{ROOT / 'bench'}", tmp_path / "source.cpp",
                "-o", tmp_path / name)
        return tmp_path / name
    return compile_it


@pytest.fixture
def stripes(tmp_path):
    return write_stripes(tmp_path / "stripes", 200, 55)


@pytest.fixture
def tiny(tmp_path):
    path = tmp_path / "tiny.csv"
    path.write_text(TINY_SUITE)
    return path
