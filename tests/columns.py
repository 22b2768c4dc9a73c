"""The columns of result files: as a published run describes them, and as the documents do, which
are those of today."""

import re

from plots.data.reading import read_tables
from tests.commands import ROOT

RESULTS = ROOT / "results"
FOLDER = RESULTS / "intel-xeon-2core/layers"
JSON = (FOLDER / "columns.json").read_text()  # for the run folders that tests write
TABLES = read_tables(FOLDER)
SUMMARY, STEP, TRAIN, SAMPLES = (TABLES[name] for name in ("summary", "step", "train", "samples"))


def documented(table: str) -> dict[str, str]:
    """The type of each column of a table of docs/results-format.md."""
    text = (ROOT / "docs/results-format.md").read_text().split(f"## {table}.csv")[1]
    return dict(re.findall(r"^\| `(\w+)` \| (\w+) \|", text.split("\n## ")[0], re.MULTILINE))


def described(types: dict[str, str]) -> list[dict[str, str]]:
    """These columns in the form of columns.json."""
    return [{"name": name, "type": kind, "unit": "", "meaning": "a column"}
            for name, kind in types.items()]
