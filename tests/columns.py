"""The columns of result files, as a published run describes them."""

from pathlib import Path

from plots.data.reading import read_tables

FOLDER = min(Path(__file__).resolve().parents[1].glob("results/*/columns.json")).parent
JSON = (FOLDER / "columns.json").read_text()  # for the run folders that tests write
TABLES = read_tables(FOLDER)
SUMMARY, STEP, TRAIN, SAMPLES = (TABLES[name] for name in ("summary", "step", "train", "samples"))
