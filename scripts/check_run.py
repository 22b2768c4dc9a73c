"""Checks that a run folder is whole: check_run.py RUN

Says everything that is wrong with it, and exits 1 then.
"""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from plots import schema  # noqa: E402
from plots.errors import InputError  # noqa: E402
from plots.reading import EVERYTHING, load_run  # noqa: E402

CHART_FORMATS = (".svg", ".pdf", ".png")


def read_part(run, part, problems):
    """What one file of the run holds, None where it is absent or malformed."""
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


def check_benchmark_json(path, problems):
    try:
        json.loads(path.read_text())
    except (OSError, ValueError) as error:
        problems.append(f"{path}: {error}")


def check_summary(rows, problems):
    for row in rows:
        name = " ".join(str(row[key]) for key in ("primitive", "direction", "variant", "problem"))
        name = f"summary: {name}, {row['threads']} threads, {row['ranks']} ranks"
        if row["status"] not in schema.STATUSES:
            problems.append(f"{name}: unknown status '{row['status']}'")
        elif row["status"] == "failed":
            problems.append(f"{name}: failed ({row['reason']})")
        elif row["status"] != "ok":
            if not row["reason"]:
                problems.append(f"{name}: {row['status']}, without a reason")
        else:
            if row["verified"] != "yes":
                problems.append(f"{name}: ok, yet verified is '{row['verified']}'")
            if not (row["median_s"] or 0) > 0:
                problems.append(f"{name}: ok, yet median_s is '{row['median_s']}'")
    measured = {row["primitive"] for row in rows if row["status"] == "ok"}
    for suite in sorted((ROOT / "bench/suites").glob("*.csv")):
        if suite.stem not in measured:
            problems.append(f"summary: no ok row of {suite.stem}")


def check_filled(part, rows, column, problems):
    """Every row has a finite number, not negative, in this column."""
    empty = sum(row[column] is None or row[column] < 0 for row in rows)
    if empty:
        problems.append(f"{part}: {empty} of {len(rows)} rows without a proper {column}")


def check_charts(folder, problems):
    charts = {}
    for path in folder.glob("*"):
        if path.suffix in CHART_FORMATS and path.stat().st_size:
            charts.setdefault(path.stem, set()).add(path.suffix)
    if not charts:
        problems.append(f"{folder}: no charts")
    for stem, suffixes in sorted(charts.items()):
        lacking = [suffix for suffix in CHART_FORMATS if suffix not in suffixes]
        if lacking:
            problems.append(f"{folder / stem}: missing or empty as {', '.join(lacking)}")


def check(run):
    """The problems of a run folder, one sentence each."""
    problems = []
    parts = {part: read_part(run, part, problems) or [] for part in EVERYTHING}
    check_benchmark_json(run / "benchmark.json", problems)
    check_summary(parts["summary"], problems)
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
    outcome = f"{len(problems)} problems" if problems else "files, columns and rows are as expected"
    print(f"{arguments[0]}: {outcome}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
