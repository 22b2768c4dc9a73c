"""scripts/bench.sh: its commands, its output, and failures of a command."""

import os
import pty
import signal
import time

import pytest

SINGLE = "matmul convolution max_pool average_pool sgd_update reorder"


@pytest.fixture
def project(sandbox):
    """A project on four cores whose program measures nothing and writes one row."""
    program(sandbox)
    sandbox.fake("python", folder=sandbox.root / ".venv/bin")
    sandbox.fake("mpirun", 'while [[ $1 != build/* ]]; do shift; done; "$@"')
    sandbox.fake("nproc", "echo 4")
    sandbox.fake("lscpu", "printf '%s\\n' '# Core,Socket' 0,0 0,0 1,0 1,0")
    return sandbox


def program(sandbox, body=""):
    sandbox.fake("stepladder", f"""
out=
while (($#)); do [[ $1 != --out ]] || out=$2; arguments+=" $1"; shift; done
write() {{ mkdir -p "$out" && touch "$out/summary.csv" "$out/environment.json"; }}
{body}
write""", folder=sandbox.root / "build")


def rank_counts(project):
    return [call.split("-np ")[1].split()[0] for call in project.calls("mpirun")]


def test_one_run_folder_holds_everything(project):
    result = project.run("bench.sh", OUT="run")
    assert result.returncode == 0, result.stderr
    calls = project.calls("stepladder")
    assert calls[0] == f"bench {SINGLE} --suite layers --threads 1,4 --out run"
    assert all(call.endswith("--out run --resume") for call in calls[1:])
    updates = "all_reduce_update*,sharded_update*,mpi_reduce_scatter*"
    assert [call.split(" --out")[0] for call in calls[1:7]] == \
        ["bench matmul --suite layers --variant mpi_rows,summa,summa_overlap"] * 2 + \
        [f"bench sgd_update --suite layers --variant {updates}"] * 2 + \
        ["bench all_reduce --suite layers"] * 2
    steps = [call.split() for call in calls if call.startswith("step ")]
    rungs = ["serial", "simd", "openmp", "best", "vendor"]
    over_ranks = ["best", "best,all_reduce=mpi_allreduce", "best,all_reduce=gather_broadcast"]
    uses = [[step[i + 1] for i, word in enumerate(step) if word == "--use"] for step in steps]
    assert list(zip((step[2] for step in steps), uses)) == [
        ("mlp", rungs), ("mnist_cnn", rungs), ("cifar_cnn", rungs),
        ("mnist_cnn", ["openmp"]), ("mnist_cnn", over_ranks), ("mnist_cnn", over_ranks)]
    assert " ".join(steps[3]).endswith("--threads 1,2,4 --inter 1,2 --out run --resume")
    train = "train --network mlp --epochs 2"
    over_ranks = [f"{train} --mode {mode} --threads 1" for mode in ("synchronous", "local_sgd", "token_ring")]
    assert [call.split(" --out")[0] for call in calls if call.startswith("train ")] == \
        [train, f"{train} --mode hogwild --replicas 4 --threads 1", *over_ranks, *over_ranks]
    assert project.calls("python")[-4:] == ["-m plots charts run", "-m plots tables run",
                                            "-m plots page run", "-m plots table run"]


def test_primitives_without_any_of_the_suites_are_left_out(project):
    suites = project.root / "bench/suites"
    suites.mkdir(parents=True)
    for primitive, suite in (("matmul", "thin"), ("max_pool", "squares"), ("all_reduce", "layers")):
        (suites / f"{primitive}.csv").write_text(f"suite,name\n{suite},one\n")
    assert project.run("bench.sh", OUT="run", SUITE="thin,squares").returncode == 0
    calls = [call for call in project.calls("stepladder") if call.startswith("bench ")]
    assert calls[0].startswith("bench matmul max_pool --suite thin,squares ")
    assert not any("all_reduce" in call.split(" --")[0] for call in calls)


def test_the_default_folder_is_a_new_one_under_results_local(project):
    assert project.run("bench.sh").returncode == 0
    assert len(list((project.root / "results/local").iterdir())) == 1


def test_one_core_measures_one_thread_and_one_rank(project):
    project.fake("nproc", "echo 1")
    project.run("bench.sh", OUT="run")
    assert "--threads 1 " in project.calls("stepladder")[0]
    assert not any("--inter" in call for call in project.calls("stepladder"))
    assert rank_counts(project) == ["1"]


def test_ranks_are_two_and_all_cores_by_default(project):
    project.run("bench.sh", PRIMITIVE="all_reduce")
    assert rank_counts(project) == ["2", "4"]


def test_primitive_and_variant_restrict_the_run(project):
    project.run("bench.sh", OUT="run", PRIMITIVE="matmul, max_pool", VARIANT="open*",
                SUITE="alexnet", THREADS="3", BUDGET="0.5")
    assert project.calls("stepladder") == [
        "bench matmul max_pool --suite alexnet --variant open* --budget 0.5 --threads 3 --out run"]


def test_more_ranks_than_cores_only_when_asked(project):
    refused = project.run("bench.sh", OUT="run", PRIMITIVE="all_reduce", RANKS="2,8")
    assert refused.returncode == 1
    assert "4 cores" in refused.stderr and "OVERSUBSCRIBE=1" in refused.stderr
    assert project.calls("stepladder") == []

    accepted = project.run("bench.sh", OUT="run", PRIMITIVE="all_reduce", RANKS="2,8",
                           OVERSUBSCRIBE="1")
    assert accepted.returncode == 0
    few, many = project.calls("mpirun")
    assert "--oversubscribe" not in few and "--oversubscribe" in many


def test_open_mpi_may_use_hardware_threads_for_ranks(project):
    project.run("bench.sh", PRIMITIVE="all_reduce", RANKS="2,4")
    few, many = project.calls("mpirun")
    assert "--use-hwthread-cpus" not in few and "--use-hwthread-cpus" in many


@pytest.mark.parametrize("ranks", ["two", "0", "2,-1"])
def test_ranks_that_are_no_numbers_are_refused(project, ranks):
    result = project.run("bench.sh", RANKS=ranks)
    assert result.returncode == 1 and "RANKS" in result.stderr


@pytest.mark.parametrize("user, allowed", [(0, "1"), (1000, "")])
def test_open_mpi_is_allowed_to_run_as_root(project, user, allowed):
    project.fake("id", f"echo {user}")
    program(project, f"""
[[ "$OMPI_ALLOW_RUN_AS_ROOT$OMPI_ALLOW_RUN_AS_ROOT_CONFIRM" == "{allowed * 2}" ]] || exit 9""")
    assert project.run("bench.sh", PRIMITIVE="all_reduce").returncode == 0


def test_without_mpirun_all_reduce_is_skipped_visibly(project):
    project.remove("mpirun")
    result = project.run("bench.sh", OUT="run")
    assert result.returncode == 0
    assert "all_reduce: SKIPPED" in result.stdout
    assert not any("all_reduce" in call for call in project.calls("stepladder"))


def test_every_part_is_one_line_and_its_output_goes_to_the_log(project):
    program(project, "for i in {1..50}; do echo on stdout; echo on stderr >&2; done")
    project.fake("python", """
case "$*" in
  *"plots charts"*) echo "29 charts" ;;
  *"plots table "*) echo "the last screen" ;;
esac""",
                 folder=project.root / ".venv/bin")
    result = project.run("bench.sh", OUT="run")
    assert (result.returncode, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[0] == "Run folder: run"
    assert [line.split()[0] for line in lines[1:-3]] == [f"[{i}/21]" for i in range(1, 22)]
    assert lines[-3].startswith("Measured in ") and lines[-2:] == ["", "the last screen"]
    log = (project.root / "run/bench.log").read_text()
    assert log.count("on stdout\n") == log.count("on stderr\n") == 21 * 50
    assert "29 charts" in log and "+ build/stepladder step --network mlp " in log


def test_on_a_terminal_the_progress_is_shown_there(project):
    program(project, "echo on stdout; echo progress >&2")
    terminal, stderr = pty.openpty()
    process = project.start("bench.sh", stderr=stderr, OUT="run", PRIMITIVE="max_pool")
    os.close(stderr)
    stdout, _ = process.communicate(timeout=60)
    assert os.read(terminal, 1000) == b"progress\r\n"
    os.close(terminal)
    assert "on stdout" not in stdout
    log = (project.root / "run/bench.log").read_text()
    assert "on stdout" in log and "progress" not in log


def test_the_end_of_a_failed_part_is_shown(project):
    program(project, 'write; for i in {1..30}; do echo "row $i"; done; echo "2 failed" >&2; exit 1')
    result = project.run("bench.sh", OUT="run", PRIMITIVE="max_pool")
    assert result.returncode == 1 and "run/bench.log" in result.stderr
    shown = [line for line in result.stderr.splitlines() if line.startswith("  | ")]
    assert len(shown) == 12 and shown[-1] == "  | 2 failed"


def test_a_failed_part_does_not_stop_the_others(project):
    program(project, 'if [[ $arguments == *" convolution "* ]]; then write; exit 1; fi')
    result = project.run("bench.sh", OUT="run")
    assert result.returncode == 1
    assert len(project.calls("stepladder")) == 7 + 4 + 2 + 8
    assert project.calls("python")[-1] == "-m plots table run"
    assert SINGLE in result.stderr and "exit status 1" in result.stderr


def test_a_crash_does_not_stop_the_others(project):
    program(project, 'if [[ $arguments == *" step "* ]]; then kill -SEGV $$; fi')
    result = project.run("bench.sh", OUT="run")
    assert result.returncode == 1
    assert len(project.calls("stepladder")) == 7 + 4 + 2 + 8
    assert result.stderr.count("exit status 139") == 6


def test_a_refusal_before_measuring_ends_the_run(project):
    program(project, "echo 'unknown suite: layrs' >&2; exit 2")
    result = project.run("bench.sh", OUT="run", SUITE="layrs")
    assert result.returncode == 2 and "unknown suite: layrs" in result.stderr
    assert len(project.calls("stepladder")) == 1


def test_a_folder_that_holds_a_run_is_only_resumed_on_request(project):
    project.run("bench.sh", OUT="run", PRIMITIVE="matmul")
    program(project, 'if [[ $arguments != *--resume* ]]; then echo "run: holds a run"; exit 1; fi')
    refused = project.run("bench.sh", OUT="run", PRIMITIVE="matmul,all_reduce")
    assert refused.returncode == 1
    assert len(project.calls("stepladder")) == 1
    assert "RESUME=1" in refused.stderr

    resumed = project.run("bench.sh", OUT="run", PRIMITIVE="matmul", RESUME="1")
    assert resumed.returncode == 0
    assert project.calls("stepladder")[0].endswith("--out run --resume")


@pytest.mark.parametrize("kill", [
    lambda process: os.killpg(process.pid, signal.SIGINT),  # Ctrl-C reaches the whole group
    lambda process: os.kill(process.pid, signal.SIGTERM),
])
def test_an_interrupted_run_prints_how_to_resume(project, kill):
    (project.bin / "real-sleep").symlink_to("/bin/sleep")
    program(project, '''trap "exit 130" INT TERM; write; touch started
while :; do real-sleep 0.1; done''')
    process = project.start("bench.sh", OUT="my run", SUITE="alexnet")
    for _ in range(1000):
        if (project.root / "started").exists():
            break
        time.sleep(0.05)
    kill(process)
    stdout, _ = process.communicate(timeout=120)
    assert process.returncode == 130
    assert len(project.calls("stepladder")) == 1
    assert "make bench SUITE=alexnet OUT=my\\ run RESUME=1" in stdout


def test_without_python_the_measurements_are_still_made(project):
    project.fake("python", "exit 1", folder=project.root / ".venv/bin")
    result = project.run("bench.sh", OUT="run", PRIMITIVE="matmul")
    assert result.returncode == 0
    assert "Charts and tables: SKIPPED" in result.stdout and "run/summary.csv" in result.stdout
