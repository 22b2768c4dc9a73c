"""What the programs that measure peers share: the answer of a program, intervals, result files."""

import contextlib
import csv
import json
import os
import subprocess
from pathlib import Path


def last_line(text):
    lines = [line for line in text.strip().splitlines() if line.strip(" -=|")]
    return lines[-1].strip() if lines else "no message"


def interval(values):
    """Order statistics that cover the median with 95 %; the extremes of fewer than six values."""
    ordered = sorted(values)
    n, term, tail, rank = len(ordered), 0.5 ** len(values), 0.0, 0
    for k in range(n):
        tail += term
        if tail > 0.025:
            break
        rank = k + 1
        term *= (n - k) / (k + 1)
    rank = max(rank, 1)
    return ordered[rank - 1], ordered[n - rank]


def write_columns(out, tables):
    """Adds the tables to those of other programs in the same folder."""
    path = out / "columns.json"
    content = {"schema_version": 1, "tables": {}}
    with contextlib.suppress(OSError, ValueError):  # there is none, or it is torn
        content = json.loads(path.read_text())
    for name, columns in tables.items():
        content["tables"][name] = [{"name": c, "type": kind} for c, kind in columns.items()]
    path.write_text(json.dumps(content, indent=1) + "\n")


def write_rows(path, columns, rows):
    """A CSV file; numbers have six digits."""
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, columns, restval="", lineterminator="\n")
        table.writeheader()
        table.writerows({name: f"{value:.6g}" if isinstance(value, float) else value
                         for name, value in row.items()} for row in rows)


def machine_of(run):
    """The machine and the program: what environment.json of a run of ours says of other runs
    too."""
    of_the_run = ("commands", "noise", "quiet_sentence")
    about = json.loads((run / "environment.json").read_text())
    return {name: value for name, value in about.items() if name not in of_the_run}


def write_environment(out, about):
    (out / "environment.json").write_text(
        json.dumps({"schema_version": 1} | about, indent=1) + "\n")


def described(file, networks):
    """The descriptions of all networks of the file, which must have these."""
    known = json.loads(Path(file).read_text())
    for network in networks:
        if network not in known:
            raise SystemExit(f"peers: {file} has no network '{network}'; it has {', '.join(known)}")
    return known


def numbers_of(option, text):
    numbers = text.split(",")
    if not all(number.isdecimal() and int(number) > 0 for number in numbers):
        raise SystemExit(f"peers: {option} {text}: expected whole numbers from 1, such as 1,2")
    return list(dict.fromkeys(map(int, numbers)))


def answer_of(command, threads=None):
    """Runs a program, with `threads` on as many threads that are bound to cores, and reads the JSON
    in the last line that it prints."""
    places = {"OMP_NUM_THREADS": str(threads), "OMP_PLACES": "cores", "OMP_PROC_BIND": "close"}
    done = subprocess.run(command, capture_output=True, text=True,
                          env=os.environ | (places if threads else {}))
    if done.returncode != 0:
        raise RuntimeError(last_line(done.stderr))
    return json.loads(done.stdout.splitlines()[-1])
