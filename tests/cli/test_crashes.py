"""A variant that crashes, exits, hangs, damages the heap or takes too much memory costs its row
only."""

import contextlib
import copy
import glob
import json
import os
import re
import resource
import signal
import time

import pytest

from conftest import QUICK, TINY_NETWORK, Program, wait_for_rows
from tests.commands import ends, execute, read_csv, wait_until

GOOD = {"serial", "simd_sse42"}
REASONS = {
    "crashes_abort": "while it was verified: killed by SIGABRT",
    "crashes_exit": "while it was timed: exited with status 0",
    "crashes_hang": "while it was timed: did not return within 6 s",
    "crashes_late": "while it was timed: killed by SIGSEGV",
    "crashes_memory": "while it was verified: used ",
    "crashes_segv": "while it was verified: killed by SIGSEGV",
}


@pytest.fixture(scope="module")
def crashing(program_path):
    path = program_path.parent / "stepladder_crashing"
    assert path.exists(), f"{path} is missing; make test builds it"
    return Program(path)


def updates(counts):
    """A suite of problems u0, u1, and so on, with these counts of weights."""
    return "suite,name,count,source\n" + "".join(
        f"updates,u{i},{count},\n" for i, count in enumerate(counts))


@pytest.fixture
def suite(tmp_path):
    path = tmp_path / "updates.csv"
    path.write_text(updates((1000, 1001)))
    return path


def of_updates(suite, run, variants, *more):
    """The arguments of a run of these variants in all directions."""
    return ("bench", "sgd_update", "--suite-file", suite, "--variant", variants, *QUICK, "--out",
            run, *more)


def bench(program, *arguments, **options):
    return program(*of_updates(*arguments, "--direction", "sgd"), timeout=240, **options)


def rows_of(run):
    rows = {}
    for row in read_csv(run / "summary.csv"):
        key = (row["problem"], row["variant"])
        assert key not in rows, f"{key} is there twice"
        rows[key] = row
    return rows


def check(run, reasons):
    rows = rows_of(run)
    assert len(rows) == 2 * (len(GOOD) + len(reasons))
    for (_, variant), row in rows.items():
        if variant in GOOD:
            assert row["status"] == "ok" and row["verified"] == "yes" and float(row["median_s"]) > 0
        else:
            assert row["status"] == "failed" and row["median_s"] == "" and row["verified"] == "no"
            assert re.match(reasons[variant], row["reason"])
            if variant == "crashes_memory":
                used, allowed = map(float, re.findall(r"([\d.]+) GiB", row["reason"]))
                assert used >= allowed == 1
    assert {row["variant"] for row in read_csv(run / "samples.csv")} == GOOD


def test_verify_names_the_rung_that_crashes(crashing):
    done = crashing("verify", "sgd_update", "--direction", "sgd", "--shape", "1000", "--variant",
                    "serial,crashes_segv", status=-signal.SIGSEGV)
    assert re.search(r"^stepladder: sgd_update sgd crashes_segv \S+, 1 thread failed "
                     r"while it was verified: killed by SIGSEGV$", done.stderr, re.M)


@pytest.mark.parametrize("command", [("step",), ("train", "--steps", "2", "--data", "generated")])
def test_a_rung_of_a_network_that_crashes_is_named(crashing, network, tmp_path, command):
    done = crashing(*command, "--network", network, "--use", "serial,sgd_update=crashes_segv",
                    "--threads", "1", "--out", tmp_path / "run", status=-signal.SIGSEGV)
    assert re.search(r"^stepladder: sgd_update sgd crashes_segv \d+, 1 thread failed while it "
                     r"was verified: killed by SIGSEGV$", done.stderr, re.M), done.stderr


def test_a_driver_of_opencl_hides_no_crash(crashing):
    crashing("verify", "max_pool", "sgd_update", "--random", "40", "--variant",
             "opencl_naive,crashes_segv", status=-signal.SIGSEGV,
             error="sgd_update sgd crashes_segv")


def test_verify_shows_the_instruction_that_the_cpu_refuses(crashing):
    done = crashing("verify", "sgd_update", "--direction", "sgd", "--shape", "1000", "--variant",
                    "crashes_illegal", status=-signal.SIGILL)
    assert re.search(r"crashes_illegal .*: killed by SIGILL at the instruction "
                     r"0f 0b( [0-9a-f]{2}){6}$", done.stderr, re.M)


@pytest.mark.without_sanitizers("a crash is its error")
def test_every_way_to_crash_costs_one_row(crashing, suite, tmp_path):
    done = bench(crashing, suite, tmp_path / "run", "serial,simd_sse42," + ",".join(REASONS),
                 "--time-limit", "6", "--memory-limit", "1", status=1)
    assert "kept from before" in done.stdout
    check(tmp_path / "run", REASONS)


@pytest.mark.parametrize("count", [10, 1000, 100000])  # the process ends in another place for each
def test_the_variant_that_damages_the_heap_is_blamed(crashing, suite, tmp_path, count):
    suite.write_text(updates((count, count + 1)))
    bench(crashing, suite, tmp_path / "run", "serial,simd_sse42,crashes_heap", status=1)
    # The writes beyond its blocks end in the tables of malloc, and where these lie beside an
    # operand, in its guards.
    check(tmp_path / "run",
          {"crashes_heap": "while it was |accuracy tier: weights was written out of bounds, "})


@pytest.mark.without_sanitizers("a crash is its error")
def test_a_rung_with_threads_is_not_blamed_for_the_crash_of_another(crashing, tmp_path):
    """The reference of matmul runs on an OpenMP team, which a process that is forked beside it does
    not have."""
    run = tmp_path / "run"
    crashing("bench", "matmul", "--shape", "64x64x64", "--variant",
             "openmp_sse42,openmp_avx2,crashes_segv", *QUICK[2:], "--threads", "2", "--out", run,
             timeout=400, status=1)
    rows = {row["variant"]: row for row in read_csv(run / "summary.csv")}
    assert rows.pop("crashes_segv")["reason"].startswith("while it was verified: killed by SIGSEGV")
    assert rows and {row["status"] for row in rows.values()} <= {"ok", "unavailable"}, rows


@pytest.mark.without_sanitizers("a crash is its error")
def test_a_crash_leaves_the_rows_of_an_earlier_run_alone(crashing, suite, tmp_path):
    run = tmp_path / "run"
    bench(crashing, suite, run, "serial")
    before = rows_of(run)
    bench(crashing, suite, run, "serial,simd_sse42,crashes_segv", "--resume", status=1)
    after = rows_of(run)
    assert all(after[key] == row for key, row in before.items())
    check(run, {"crashes_segv": REASONS["crashes_segv"]})


def children_of(parent):
    return list(map(int, execute("pgrep", "-P", parent, status=None).stdout.split()))


def measuring_process(parent):
    """The child that does the work, and no probe of it."""
    found = wait_until(lambda: children_of(parent))
    assert found, "the supervisor has no child"
    return found[0]


def test_a_measuring_process_that_is_killed_is_replaced(stepladder, suite, tmp_path):
    run = tmp_path / "run"
    process = stepladder.start(*of_updates(suite, run, "serial"))
    wait_for_rows(run, process)
    os.kill(measuring_process(process.pid), signal.SIGKILL)
    stdout, stderr = process.communicate(timeout=120)
    rows = read_csv(run / "summary.csv")
    assert len(rows) == 2 * 6
    lost = [row for row in rows if row["status"] == "failed"]
    assert len(lost) <= 1 and process.returncode == len(lost), stderr
    assert "SIGKILL" in stderr and "memory" in stderr
    assert all(row["status"] == "ok" for row in rows if row not in lost), stdout


def test_a_problem_that_takes_too_much_memory_does_not_end_the_run(stepladder, suite, tmp_path):
    """Its operands alone exceed the limit, before any variant runs."""
    suite.write_text(updates((50000000, 1000)))
    bench(stepladder, suite, tmp_path / "run", "serial", "--memory-limit", "0.3", status=1,
          error="The run goes on.")
    rows = rows_of(tmp_path / "run")
    large, small = rows["u0", "serial"], rows["u1", "serial"]
    assert large["status"] == "failed" and "GiB are allowed" in large["reason"]
    assert small["status"] == "ok"


def under_limit(gib):
    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (int(gib * 2**30),) * 2)
    return limit


@pytest.mark.without_sanitizers("it reserves terabytes")
def test_a_problem_beyond_ulimit_is_skipped(stepladder, suite, tmp_path):
    suite.write_text(updates((400000000, 1000)))
    run = tmp_path / "run"
    bench(stepladder, suite, run, "serial", preexec_fn=under_limit(2))
    rows = rows_of(run)
    large, small = rows["u0", "serial"], rows["u1", "serial"]
    assert large["status"] == "skipped" and small["status"] == "ok"
    assert re.match(r"needs .* are available under ulimit -v$", large["reason"])


@pytest.mark.without_sanitizers("it reserves terabytes")
def test_memory_that_runs_out_is_one_sentence(stepladder, tmp_path):
    wide = copy.deepcopy(TINY_NETWORK)
    wide["layers"].insert(2, {"type": "fully_connected", "name": "wide", "outputs": 1000000})
    (tmp_path / "wide.json").write_text(json.dumps(wide))
    done = stepladder("train", "--network", tmp_path / "wide.json", "--steps", "1", "--data",
                      "generated", "--threads", "1", "--out", tmp_path / "run",
                      preexec_fn=under_limit(0.6), status=1)
    message = (r"stepladder: memory ran out: a block of [\d.]+ MiB was asked for; "
               r"see the limits of the process .*")
    assert re.fullmatch(message, done.stderr.splitlines()[-1]), done.stderr


def test_later_visits_append_and_survive_a_crash(stepladder, suite, tmp_path):
    run = tmp_path / "run"
    command = of_updates(suite, run, "serial,simd_sse42")
    process = stepladder.start(*command)
    wait_for_rows(run, process)
    with open(run / "samples.csv"), open(
            run / "summary.csv"):  # the numbers of open files are not used again
        files = [(run / name).stat().st_ino for name in ("samples.csv", "summary.csv")]
        later = run / "summary.later.csv"
        assert wait_until(lambda: later.exists() and later.read_text().count("\n") > 6,
                          60), "no problem was visited again"
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=30)
        assert [(run / name).stat().st_ino
                for name in ("samples.csv", "summary.csv")] == files, "they were rewritten"
    visited_again = {row["problem"] for row in read_csv(later)[:-1]}
    assert len(read_csv(run / "summary.csv")) == 2 * 6 * 2  # first visits
    stepladder(*command, "--resume", timeout=240)
    assert not later.exists() and not (run / "benchmark.later.jsonl").exists()
    rows, samples = read_csv(run / "summary.csv"), read_csv(run / "samples.csv")
    keys = [(row["direction"], row["problem"], row["variant"]) for row in rows]
    assert len(set(keys)) == len(keys) == 2 * 6 * 2 and visited_again
    assert {sample["visit"] for sample in samples if sample["problem"] in visited_again} >= {
        "0", "1"}
    records = json.loads((run / "benchmark.json").read_text())["benchmarks"]
    noise = json.loads((run / "environment.json").read_text())["noise"]
    assert len(records) >= len(samples) and noise["repetitions"] >= len(samples)


def test_killing_the_supervisor_ends_the_measurement(stepladder, suite, tmp_path):
    run = tmp_path / "run"
    process = stepladder.start(*of_updates(suite, run, "serial"))
    wait_for_rows(run, process)
    child = measuring_process(process.pid)
    process.kill()
    process.communicate(timeout=30)
    assert ends(child), "the measuring process outlived its supervisor"


def test_a_run_that_is_stopped_for_a_while_goes_on(stepladder, suite, tmp_path):
    run = tmp_path / "run"
    process = stepladder.start(*of_updates(suite, run, "serial", "--time-limit", "1"))
    wait_for_rows(run, process)
    os.killpg(process.pid, signal.SIGSTOP)
    time.sleep(3)
    os.killpg(process.pid, signal.SIGCONT)
    _, stderr = process.communicate(timeout=120)
    assert process.returncode == 0, stderr
    assert all(row["status"] == "ok" for row in read_csv(run / "summary.csv"))


# The wall clock goes an hour forth and back at every reading; the monotonic clock is the system's.
JUMPING_CLOCK = r"""
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static long jump = 3600;
int clock_gettime(clockid_t clock, struct timespec *now) {
  const int failed = (int)syscall(SYS_clock_gettime, clock, now);
  if (!failed && clock == CLOCK_REALTIME) now->tv_sec += jump = -jump;
  return failed;
}
int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  struct timespec exact;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &exact);
  now->tv_sec = exact.tv_sec;
  now->tv_usec = exact.tv_nsec / 1000;
  return 0;
}
time_t time(time_t *to) {
  struct timespec exact;
  clock_gettime(CLOCK_REALTIME, &exact);
  if (to) *to = exact.tv_sec;
  return exact.tv_sec;
}
"""


def test_a_wall_clock_that_jumps_changes_no_time(stepladder, preloaded, suite, tmp_path):
    library = preloaded(JUMPING_CLOCK)
    shown = execute("date", "+%s", env=os.environ | {
        "LD_PRELOAD": library, "ASAN_OPTIONS": "detect_leaks=0"})  # of date
    assert abs(int(shown.stdout) - time.time()) > 3500, "the library does not change the clock"
    stepladder(*of_updates(suite, tmp_path / "run", "serial,simd_sse42"),
               environment={"LD_PRELOAD": library})
    rows = read_csv(tmp_path / "run/summary.csv")
    assert rows and all(row["status"] == "ok" and 0 < float(row["median_s"]) < 1 for row in rows)
    samples = read_csv(tmp_path / "run/samples.csv")
    assert samples and all(0 < float(sample["seconds"]) < 1 for sample in samples)


def test_an_interruption_of_the_search_for_a_crash_leaves_no_process(crashing, suite, tmp_path):
    process = crashing.start(*of_updates(suite, tmp_path / "run", "crashes_alone,crashes_segv",
                                         "--direction", "sgd"))

    def searches():
        """Those that run the rung alone, in a child, and these children."""
        parents = children_of(process.pid)
        alone = [child for parent in parents for child in children_of(parent)]
        return parents + alone if alone else []

    found = wait_until(searches, 60)
    assert found, "no search began"
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode == 130
    assert not any(os.path.exists(f"/proc/{child}") for child in found)


@pytest.mark.without_sanitizers("a crash is its error")
def test_a_parent_that_ignores_its_children_changes_nothing(crashing, suite, tmp_path):
    """SIGCHLD is inherited as ignored: the kernel forgets how children ended, unless it is told not
    to."""
    bench(crashing, suite, tmp_path / "run", "serial,crashes_segv", status=1,
          preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    row = rows_of(tmp_path / "run")["u0", "crashes_segv"]
    assert row["reason"].startswith(REASONS["crashes_segv"])


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2,
                    reason="one processor: none can be taken away")
def test_a_core_that_is_taken_away_is_noticed(stepladder, suite, tmp_path):
    suite.write_text(updates(100000 + i for i in range(4)))
    run = tmp_path / "run"
    process = stepladder.start("bench", "sgd_update", "--direction", "sgd", "--suite-file", suite,
                               "--variant", "openmp_sse42", "--threads", "2", "--repetitions", "5",
                               "--budget", "0.05", "--out", run)
    wait_for_rows(run, process)
    cores = os.sched_getaffinity(0)
    child = measuring_process(process.pid)
    end = time.monotonic() + 3
    while process.poll() is None and time.monotonic() < end:  # threads that start later, too
        bind(child, {min(cores)})
        time.sleep(0.02)
    bind(child, cores)
    stdout, stderr = process.communicate(timeout=150)
    assert process.returncode == 0, stderr
    rows = read_csv(run / "summary.csv")
    assert len(rows) == 4 and all(row["status"] == "ok" for row in rows)
    waited = [
        sample for sample in read_csv(run / "samples.csv") if float(sample["queued_s"] or 0) > 0]
    assert any(sample["marked"] == "disturbed" for sample in waited), stdout
    assert "were disturbed" in stdout + stderr


def bind(process, cores):
    for task in glob.glob(f"/proc/{process}/task/*"):
        with contextlib.suppress(OSError):  # it has ended
            os.sched_setaffinity(int(os.path.basename(task)), cores)


def test_a_reader_that_leaves_is_no_crash(stepladder, suite, tmp_path):
    process = stepladder.start(*of_updates(suite, tmp_path / "run", "serial,simd_sse42"))
    process.stdout.close()
    errors = process.stderr.read()
    assert process.wait(timeout=60) == 128 + signal.SIGPIPE
    assert "lost" not in errors, errors
