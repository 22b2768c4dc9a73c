"""Checks that a run folder is complete: check_run.py RUN

Prints every problem; exit status 1 if there is one.
"""

import csv
import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from plots.data import schema  # noqa: E402
from plots.data.errors import InputError  # noqa: E402
from plots.data.reading import PARTS, load_run  # noqa: E402
from plots.page import timeline  # noqa: E402

CHART_FORMATS = (".svg", ".pdf", ".png")
JSON_COPIES = ("summary", "step")  # of the CSV files of these names
INFERENCE = "inference"  # a run may have none


def read_part(run, part, problems):
    """The contents of one file of the run; None if it is absent or malformed."""
    try:
        loaded = load_run(run, (part,))
    except InputError as error:
        problems.append(str(error))
        return None
    problems.extend(loaded.warnings)
    content = getattr(loaded, part)
    if not content:
        problems.append(f"{part}: the file is missing or has no rows")
    return content


def read_json(path, problems):
    """A JSON object; empty if the file is absent or malformed."""
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        problems.append(f"{path}: {error}")
        return {}
    if not isinstance(content, dict):
        problems.append(f"{path}: expected a JSON object")
        return {}
    return content


def read_csv(path):
    """Header and number of rows; None if the file is absent, which read_part reports."""
    try:
        with path.open(newline="") as file:
            header, *rows = csv.reader(file)
    except (OSError, ValueError, csv.Error):
        return None
    return header, len(rows)


def check_json_copy(run, name, problems):
    """NAME.json has the columns of NAME.csv and as many rows."""
    path = run / f"{name}.json"
    content = read_json(path, problems)
    expected = read_csv(run / f"{name}.csv")
    if not content or expected is None:
        return
    columns, rows = content.get("columns"), content.get("rows")
    if columns != expected[0]:
        problems.append(f"{path}: its columns are not those of {name}.csv")
    elif not isinstance(rows, list) or len(rows) != expected[1]:
        count = len(rows) if isinstance(rows, list) else "no"
        problems.append(f"{path}: {count} rows; {name}.csv has {expected[1]}")
    elif any(not isinstance(row, dict) or list(row) != columns for row in rows):
        problems.append(f"{path}: a row has other fields than the columns")


def check_columns_json(run, problems):
    """columns.json has the meaning of every column. Reading a CSV file checks names and types."""
    path = run / "columns.json"
    content = read_json(path, problems)
    if not content:
        return
    described = content.get("tables") or {}
    for name in (*schema.TABLES, *schema.INFERENCE_TABLES):
        if not all(column.get("meaning") for column in described.get(name) or []):
            problems.append(f"{path}: a column of {name} has no meaning")


def check_text(path, pattern, sentence, problems):
    try:
        if not re.fullmatch(pattern, path.read_text(), re.DOTALL):
            problems.append(f"{path}: {sentence}")
    except (OSError, ValueError) as error:
        problems.append(f"{path}: {error}")


def check_trace(path, problems):
    try:
        if not any(step.lanes for step in timeline.steps(path)):
            problems.append(f"{path}: the file is missing or has no operation")
    except InputError as error:
        problems.append(str(error))


def check_status(name, row, statuses, problems):
    """Adds what is wrong with the status, and tells whether the row has a time."""
    if row["status"] not in statuses:
        problems.append(f"{name}: unknown status '{row['status']}'")
    elif row["status"] == "failed":
        problems.append(f"{name}: failed ({row['reason']})")
    elif row["status"] != "ok" and not row["reason"]:
        problems.append(f"{name}: {row['status']}, without a reason")
    return row["status"] == "ok"


def check_summary(rows, problems):
    for row in rows:
        name = "summary: " + row_name(row)
        if not check_status(name, row, schema.STATUSES, problems):
            continue
        if row["verified"] != "yes":
            problems.append(f"{name}: ok, but verified is '{row['verified']}'")
        if not (row["median_s"] or 0) > 0:
            problems.append(f"{name}: ok, but median_s is '{row['median_s']}'")
    measured = {row["primitive"] for row in rows if row["status"] == "ok"}
    for suite in sorted((ROOT / "bench/suites").glob("*.csv")):
        if suite.stem not in measured:
            problems.append(f"summary: no ok row of {suite.stem}")


def check_inference(rows, problems):
    for row in rows:
        name = (f"inference: {row['network']} {row['use']} {row['layer']}, batch {row['batch']}, "
                f"{row['threads']} threads, {row['split']}")
        if not check_status(name, row, ("ok", "failed", "unavailable"), problems):
            continue
        if row["layer"] != schema.TOTAL:
            if row["median_s"] is None or row["share"] is None:
                problems.append(f"{name}: ok, without median_s or share")
        elif row["verified"] != "yes":
            problems.append(f"{name}: ok, but verified is '{row['verified']}'")
        else:
            times = [row[column] for column in ("p50_s", "p90_s", "p99_s", "max_s")]
            if None in times or not 0 < times[0] <= times[1] <= times[2] <= times[3]:
                problems.append(f"{name}: the percentiles are {times}, expected 0 < p50 <= max")
            if not (row["samples_per_s"] or 0) > 0:
                problems.append(f"{name}: samples_per_s is '{row['samples_per_s']}'")


def row_name(row):
    """The row of a variant that cannot run on this machine has no problem, threads and ranks."""
    words = [row[key] for key in ("primitive", "direction", "variant", "problem") if row[key]]
    counts = [f"{row[key]} {key}" for key in ("threads", "ranks") if row[key] is not None]
    return ", ".join([" ".join(words), *counts])


def check_filled(part, rows, column, problems):
    """Every row has a finite number, at least 0, in this column."""
    empty = sum(row[column] is None or row[column] < 0 for row in rows)
    if empty:
        problems.append(f"{part}: {empty} of {len(rows)} rows have no valid {column}")


def check_charts(folder, problems):
    charts = {}
    for path in folder.glob("*"):
        if path.suffix in CHART_FORMATS and path.stat().st_size:
            charts.setdefault(path.stem, set()).add(path.suffix)
    if not charts:
        problems.append(f"{folder}: no charts")
    for stem, suffixes in sorted(charts.items()):
        missing = [suffix for suffix in CHART_FORMATS if suffix not in suffixes]
        if missing:
            problems.append(f"{folder / stem}: missing or empty as {', '.join(missing)}")


def check(run):
    """The problems of a run folder, one sentence each."""
    problems = []
    parts = {part: read_part(run, part, problems) or [] for part in PARTS}
    read_json(run / "benchmark.json", problems)
    for name in JSON_COPIES:
        check_json_copy(run, name, problems)
    check_columns_json(run, problems)
    check_text(run / schema.TABLES_FILE, r"# .*\n\| .*", "no heading or no table", problems)
    check_trace(run / schema.TRACE_FILE, problems)
    check_text(run / schema.REPORT_FILE, "<!doctype html>.*</html>", "no whole page", problems)
    check_summary(parts["summary"], problems)
    if (run / f"{INFERENCE}.csv").exists():
        check_inference(read_part(run, INFERENCE, problems) or [], problems)
        check_json_copy(run, INFERENCE, problems)
    check_filled("step", parts["step"], "median_s", problems)
    check_filled("train", parts["train"], "loss", problems)
    check_charts(run / schema.CHARTS_FOLDER, problems)
    return problems


def main(arguments):
    if len(arguments) != 1:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    problems = check(Path(arguments[0]))
    for problem in problems:
        print(problem, file=sys.stderr)
    outcome = f"{len(problems)} problems" if problems else "files, columns and rows are complete"
    print(f"{arguments[0]}: {outcome}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
