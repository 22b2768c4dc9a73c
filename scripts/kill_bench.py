"""Kills a measurement at random moments, resumes it each time, and checks that nothing is lost.

    kill_bench.py [--kills N] [--seed N] -- build/stepladder bench sgd_update --suite layers --budget 0.02

The command runs once uninterrupted. Then it is killed with SIGKILL, supervisor and measuring process together, after a
random part of that time, and resumed with --resume until the kills are used up; a run that ends starts in a new folder.
--out and --resume are added to the command. Checked after every kill: no row that was finished is lost or torn. Checked
of every run that ends: its rows are those of the uninterrupted run, each once, with its samples.
Exit status: 0, or 1 with the reason, or 2 for wrong arguments.
"""

import argparse
import csv
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TABLES = {"summary": ("primitive", "direction", "suite", "problem", "variant", "threads", "ranks", "cache"),
          "step": ("network", "use", "mode", "threads", "ranks", "layer", "phase")}


class Failure(Exception):
    pass


def read_rows(path):
    """The whole rows of a table; a last line without its newline was being written."""
    text = path.read_text() if path.exists() else ""
    rows = list(csv.DictReader(text[:text.rfind("\n") + 1].splitlines()))
    for row in rows:
        if None in row or None in row.values():
            raise Failure(f"{path}: a row is torn: {list(row.values())[:5]}")
    return rows


def finished_rows(run):
    """Key and status of every row of the tables in a run folder."""
    found = {}
    for table, key in TABLES.items():
        for row in read_rows(run / f"{table}.csv"):
            name = (table, *(row.get(column, "") for column in key))
            if name in found:
                raise Failure(f"{run}: {name} is there twice")
            found[name] = row.get("status", "ok")
    return found


def check_samples(run):
    sampled = {(row["problem"], row["variant"], row["threads"]) for row in read_rows(run / "samples.csv")}
    for row in read_rows(run / "summary.csv"):
        if row["status"] == "ok" and (row["problem"], row["variant"], row["threads"]) not in sampled:
            raise Failure(f"{run}: {row['problem']} {row['variant']} has no samples")


def start(command, run, resume):
    return subprocess.Popen([*command, "--out", str(run), *(["--resume"] if resume else [])], start_new_session=True,
                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def kill(process):
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def run_to_end(command, run, resume):
    process = start(command, run, resume)
    _, errors = process.communicate()
    if process.returncode != 0:
        raise Failure(f"exit status {process.returncode}: {errors.strip()[-300:]}")


def check_end(run, expected):
    rows = finished_rows(run)
    if rows != expected:
        missing, other = set(expected) - set(rows), set(rows) - set(expected)
        changed = {key for key in set(rows) & set(expected) if rows[key] != expected[key]}
        raise Failure(f"{run}: {len(missing)} rows are missing, {len(other)} are unknown, {len(changed)} have another "
                      f"status: {[*missing, *other, *changed][:2]}")
    check_samples(run)


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("command", nargs="+")
    options = parser.parse_args(arguments)
    moments = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        begin = time.monotonic()
        run_to_end(options.command, folder / "whole", False)
        seconds = time.monotonic() - begin
        expected = finished_rows(folder / "whole")
        kills = complete = number = 0
        before = {}
        while kills < options.kills:
            run = folder / f"run{number}"
            process = start(options.command, run, bool((run / "environment.json").exists()))
            try:
                _, errors = process.communicate(timeout=moments.uniform(0, seconds))
            except subprocess.TimeoutExpired:
                kill(process)
                kills += 1
                now = finished_rows(run)
                if lost := set(before) - set(now):
                    raise Failure(f"kill {kills}: {len(lost)} finished rows were lost: {sorted(lost)[:2]}") from None
                before = now
                if kills % 10 == 0:
                    print(f"{kills} of {options.kills} kills", file=sys.stderr, flush=True)
                continue
            if process.returncode != 0:
                raise Failure(f"after {kills} kills: exit status {process.returncode}: {errors.strip()[-300:]}")
            check_end(run, expected)
            complete += 1
            number += 1
            before = {}
        run = folder / f"run{number}"
        run_to_end(options.command, run, bool((run / "environment.json").exists()))
        check_end(run, expected)
        print(f"{kills} kills, {complete + 1} complete runs of {len(expected)} rows: none lost, none torn")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except Failure as failure:
        sys.exit(f"kill_bench.py: {failure}")
