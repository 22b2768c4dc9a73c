"""Rungs that change the clock, so that their times are too short, fail. tests/harness has the other
ways to cheat."""

from conftest import QUICK
from tests.commands import read_csv

SLOW_CLOCK = r"""
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec *now) {
  const int failed = (int)syscall(SYS_clock_gettime, clock, now);
  if (!failed && clock == CLOCK_MONOTONIC) {
    const long long shown = (now->tv_sec * 1000000000LL + now->tv_nsec) / 10 * 9;
    now->tv_sec = shown / 1000000000;
    now->tv_nsec = shown % 1000000000;
  }
  return failed;
}
"""


def test_rows_whose_clock_was_changed_fail(stepladder, preloaded, tmp_path):
    suite = tmp_path / "updates.csv"
    suite.write_text("suite,name,count,source\nupdates,u,1000,\n")
    stepladder("bench", "sgd_update", "--direction", "sgd", "--suite-file", suite, "--variant",
               "serial", *QUICK, "--out", tmp_path / "run", status=1,
               environment={"LD_PRELOAD": preloaded(SLOW_CLOCK)})
    (row,) = read_csv(tmp_path / "run/summary.csv")
    assert row["status"] == "failed" and row["median_s"] == ""
    assert row["reason"].startswith(
        "the clock was changed: 10 % of the time that went by is missing in ")
