"""make bench: its commands, its output, and failures of a command."""

import os
import pty
import signal

import pytest

import runner
from tests.commands import wait_until

SINGLE = "matmul convolution max_pool average_pool sgd_update reorder low_precision layers"
PARTS = 1 + 2 + 1 + 2 * 3 + 6 + 8


def rank_counts(project):
    return [launch.split()[2] for launch in project.launches() if launch]


def test_one_run_folder_holds_everything(project):
    project.run("run_bench.py", OUT="run")
    calls = project.calls()
    assert calls[0] == f"bench {SINGLE} --quiet --suite layers --threads 1,4 --out run"
    assert all(call.endswith("--out run --resume") for call in calls[1:])
    updates = "all_reduce_update*,sharded_update*,mpi_reduce_scatter*"
    assert [call.split(" --out")[0] for call in calls[1:10]] == \
        [f"attribute {name} --budget 0.1" for name in ("matmul", "convolution")] + \
        ["bench matmul --quiet --suite layers --direction forward --place opencl "
         "--threads 1,4"] + \
        ["bench matmul --quiet --suite layers --variant mpi_rows,summa,summa_overlap"] * 2 + \
        [f"bench sgd_update --quiet --suite layers --variant {updates}"] * 2 + \
        ["bench all_reduce --quiet --suite layers"] * 2
    steps = [call.split() for call in calls if call.startswith("step ")]
    rungs = ["serial", "compiler", "simd", "openmp", "best", "vendor"]
    over_ranks = ["best", "best,all_reduce=mpi_allreduce", "best,all_reduce=gather_broadcast"]
    uses = [[step[i + 1] for i, word in enumerate(step) if word == "--use"] for step in steps]
    assert list(zip((step[2] for step in steps), uses)) == [
        ("mlp", rungs), ("mnist_cnn", rungs), ("cifar_cnn", rungs),
        ("mnist_cnn", ["openmp"]), ("mnist_cnn", over_ranks), ("mnist_cnn", over_ranks)]
    assert " ".join(steps[3]).endswith("--threads 1,2,4 --inter 1,2 --out run --resume")
    train = "train --network mlp --epochs 2"
    over_ranks = [f"{train} --mode {mode} --threads 1"
                  for mode in ("synchronous", "local_sgd", "token_ring")]
    assert [call.split(" --out")[0] for call in calls if call.startswith("train ")] == \
        [train, f"{train} --mode hogwild --replicas 4 --threads 1", *over_ranks, *over_ranks]
    assert project.plots == ["charts run", "tables run", "page run", "table run"]
    assert len(calls) == PARTS


def test_primitives_without_any_of_the_suites_are_left_out(project):
    suites = project.root / "bench/suites"
    suites.mkdir(parents=True)
    for primitive, suite in (("matmul", "thin"), ("max_pool", "squares"), ("all_reduce", "layers")):
        (suites / f"{primitive}.csv").write_text(f"suite,name\n{suite},one\n")
    project.run("run_bench.py", OUT="run", SUITE="thin,squares")
    calls = [call for call in project.calls() if call.startswith("bench ")]
    assert calls[0].startswith("bench matmul max_pool --quiet --suite thin,squares ")
    assert not any("all_reduce" in call.split(" --")[0] for call in calls)


def test_the_default_folder_is_a_new_one_under_results_local(project):
    project.run("run_bench.py")
    assert len(list((project.root / "results/local").iterdir())) == 1


def test_one_core_measures_one_thread_and_one_rank(project):
    project.cores = project.physical_cores = 1
    project.run("run_bench.py", OUT="run")
    assert "--threads 1 " in project.calls()[0]
    assert not any("--inter" in call for call in project.calls())
    assert rank_counts(project) == ["1"]


def test_primitive_and_variant_restrict_the_run(project):
    project.run("run_bench.py", OUT="run", PRIMITIVE="matmul, max_pool", VARIANT="open*",
                SUITE="alexnet", THREADS="3", BUDGET="0.5")
    assert project.calls() == [
        "bench matmul max_pool --quiet --suite alexnet --variant open* --budget 0.5 --threads 3 "
        "--out run"]


def test_more_ranks_than_cores_only_when_asked(project):
    variables = {"OUT": "run", "PRIMITIVE": "all_reduce", "RANKS": "2,8"}
    project.run("run_bench.py", **variables, status=1, error=("4 cores", "OVERSUBSCRIBE=1"))
    assert project.commands == []
    project.run("run_bench.py", **variables, OVERSUBSCRIBE="1")
    few, many = project.launches()
    assert "--oversubscribe" not in few and "--oversubscribe" in many


def test_ranks_are_two_and_all_cores_with_hardware_threads(project):
    project.run("run_bench.py", PRIMITIVE="all_reduce")
    assert rank_counts(project) == ["2", "4"]
    few, many = project.launches()
    assert "--use-hwthread-cpus" not in few and "--use-hwthread-cpus" in many


@pytest.mark.parametrize("ranks", ["two", "0", "2,-1"])
def test_ranks_that_are_no_numbers_are_refused(project, ranks):
    project.run("run_bench.py", RANKS=ranks, status=1,
                error=f"RANKS={ranks}: expected whole numbers")


@pytest.mark.parametrize("user, allowed", [(0, "1"), (1000, None)])
def test_open_mpi_is_allowed_to_run_as_root(project, monkeypatch, user, allowed):
    names = ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")
    for name in names:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: user)
    runner.allow_mpi_as_root()
    assert [os.environ.get(name) for name in names] == [allowed, allowed]


def test_without_mpirun_all_reduce_is_skipped_visibly(project):
    project.tools = {}
    result = project.run("run_bench.py", OUT="run")
    assert "all_reduce: SKIPPED" in result.stdout
    assert not any("all_reduce" in call for call in project.calls())


def test_a_failed_part_or_a_crash_does_not_stop_the_others(project):
    project.answer = lambda line: 1 if " convolution " in line else 139 if " step " in line else 0
    result = project.run("run_bench.py", OUT="run", status=1, error=f"{SINGLE} (exit status 1)")
    assert len(project.commands) == PARTS
    assert project.plots[-1] == "table run"
    assert result.stderr.count("exit status 139") == 6


def test_after_a_crash_the_same_part_goes_on(project):
    work = project.root / "run/.work"

    def crash_once(line):
        project.write(work.parent)
        work.unlink(missing_ok=True)
        if "--after-crash" not in line:
            work.touch()
            project.output = "lost a rank"
            return 139
        return 0

    project.answer = crash_once
    result = project.run("run_bench.py", OUT="run", PRIMITIVE="matmul", VARIANT="naive")
    assert "  | lost a rank" in result.stderr
    assert project.calls()[1].endswith("--out run --resume --after-crash")
    assert len(project.calls()) == 2


def test_a_refusal_before_measuring_ends_the_run(project):
    def refuse(_):
        project.output = "unknown suite: layrs"
        return 2

    project.answer = refuse
    project.run("run_bench.py", OUT="run", SUITE="layrs", status=2, error="unknown suite: layrs")
    assert len(project.commands) == 1


def test_all_reduce_without_the_variant_is_skipped_visibly(project):
    project.answer = lambda line: 2 if "bench all_reduce" in line else 0
    result = project.run("run_bench.py", OUT="run", VARIANT="packed")
    assert "all_reduce: SKIPPED, it has no variant packed" in result.stdout


def test_a_folder_that_holds_a_run_is_only_resumed_on_request(project):
    project.run("run_bench.py", OUT="run", PRIMITIVE="matmul", VARIANT="naive")
    project.answer = lambda line: 0 if "--resume" in line else 1
    project.run("run_bench.py", OUT="run", PRIMITIVE="matmul,all_reduce", status=1,
                error="RESUME=1")
    assert len(project.commands) == 1
    project.run("run_bench.py", OUT="run", PRIMITIVE="matmul", RESUME="1")
    assert project.calls()[0].endswith("--out run --resume")


# --- real processes ------------------------------------------------------------------------------


def program(sandbox, body):
    sandbox.fake("stepladder", f"""
while (($#)); do [[ $1 != --out ]] || out=$2; shift; done
write() {{ mkdir -p "$out" && touch "$out/summary.csv"; }}
{body}
write""", folder=sandbox.root / "build")
    sandbox.fake("python", 'if [[ $* == *"plots table "* ]]; then echo "the last screen"; else '
                 'echo drawn; fi', folder=sandbox.root / ".venv/bin")


def test_every_part_is_one_line_and_its_output_goes_to_the_log(sandbox):
    program(sandbox, "for i in {1..50}; do echo on stdout; echo on stderr >&2; done")
    result = sandbox.run("run_bench.py", OUT="run", PRIMITIVE="max_pool", SUITE="quick", lines=0)
    lines = result.stdout.splitlines()
    assert lines[0] == "Run folder: run"
    assert lines[1].startswith("[1/1] max_pool (after 0 min ")
    assert lines[2].startswith("Measured in ") and lines[3:] == ["", "the last screen"]
    log = (sandbox.root / "run/bench.log").read_text()
    assert log.count("on stdout\n") == log.count("on stderr\n") == 50
    assert log.count("drawn") == 3
    assert "+ build/stepladder bench max_pool --quiet --suite quick " in log


def test_on_a_terminal_the_progress_is_shown_there(sandbox):
    program(sandbox, "echo on stdout; echo progress >&2")
    terminal, stderr = pty.openpty()
    process = sandbox.start("run_bench.py", stderr=stderr, OUT="run", PRIMITIVE="max_pool")
    os.close(stderr)
    stdout, _ = process.communicate(timeout=60)
    assert os.read(terminal, 1000) == b"progress\r\n"
    os.close(terminal)
    assert "on stdout" not in stdout
    log = (sandbox.root / "run/bench.log").read_text()
    assert "on stdout" in log and "progress" not in log


def test_the_end_of_a_failed_part_is_shown(sandbox):
    program(sandbox, 'write; for i in {1..30}; do echo "row $i"; done; echo "2 failed" >&2; exit 1')
    result = sandbox.run("run_bench.py", OUT="run", PRIMITIVE="max_pool", status=1,
                         error="run/bench.log")
    shown = [line for line in result.stderr.splitlines() if line.startswith("  | ")]
    assert len(shown) == 12 and shown[-1] == "  | 2 failed"


def test_a_signal_of_the_program_has_the_status_of_a_shell(sandbox):
    program(sandbox, "write; kill -SEGV $$")
    sandbox.run("run_bench.py", OUT="run", PRIMITIVE="max_pool", status=1,
                error="max_pool (exit status 139)")


@pytest.mark.parametrize("kill", [
    lambda process: os.killpg(process.pid, signal.SIGINT),  # Ctrl-C reaches the whole group
    lambda process: os.kill(process.pid, signal.SIGTERM),
])
def test_an_interrupted_run_prints_how_to_resume(sandbox, kill):
    (sandbox.bin / "real-sleep").symlink_to("/bin/sleep")
    program(sandbox, '''trap "exit 130" INT TERM; write; touch started
while :; do real-sleep 0.1; done''')
    process = sandbox.start("run_bench.py", OUT="my run", SUITE="alexnet")
    assert wait_until((sandbox.root / "started").exists, 60)
    kill(process)
    stdout, _ = process.communicate(timeout=120)
    assert process.returncode == 130
    assert len(sandbox.calls("stepladder")) == 1
    assert "make bench SUITE=alexnet OUT='my run' RESUME=1" in stdout


def test_without_python_the_measurements_are_still_made(sandbox):
    program(sandbox, "")
    sandbox.fake("python", "exit 1", folder=sandbox.root / ".venv/bin")
    result = sandbox.run("run_bench.py", OUT="run", PRIMITIVE="matmul")
    assert "Charts and tables: SKIPPED" in result.stdout and "run/summary.csv" in result.stdout
