"""Reads a run folder. Absent files are None; malformed ones are an InputError."""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from plots.data import schema
from plots.data.errors import InputError
from plots.data.numbers import number_in


class Row(dict):
    """A line of a CSV file by column name. A column that the file lacks is an InputError."""

    __slots__ = ("path",)

    def __init__(self, path: Path, values: dict[str, Any]):
        super().__init__(values)
        self.path = path

    def __missing__(self, column: str) -> Any:
        raise InputError(f"{self.path}: has no column '{column}'")


def grouped(items: Iterable, key: Callable) -> dict[Any, list]:
    """Rows, or other items, of each key, in their order."""
    found: dict[Any, list] = {}
    for item in items:
        found.setdefault(key(item), []).append(item)
    return found


PARTS = ("environment", "ceilings", *schema.TABLES)
OF_THE_FOLDER = (*schema.TABLES, *schema.INFERENCE_TABLES, *schema.MODE_TABLES,
                 *schema.SIMULATION_TABLES)
EVERYTHING = ("environment", "ceilings", *OF_THE_FOLDER, *schema.ATTRIBUTION_TABLES)


@dataclass
class Run:
    folder: Path
    environment: dict[str, Any] | None = None
    ceilings: list[dict[str, Any]] | None = None
    refused_ceilings: dict[int, str] = field(default_factory=dict)  # threads: why
    summary: list[Row] | None = None
    step: list[Row] | None = None
    train: list[Row] | None = None
    samples: list[Row] | None = None
    inference: list[Row] | None = None
    staleness: list[Row] | None = None
    attribution: list[Row] | None = None
    simulation: list[Row] | None = None
    scaling: list[Row] | None = None
    warnings: list[str] = field(default_factory=list)


def load_run(folder: Path, parts: Collection[str] = EVERYTHING) -> Run:
    """Reads the named parts of a run folder; at least one result file must be there."""
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; expected the folder of a run")
    if not any((folder / name).exists()
               for name in (*schema.RUN_FILES, *schema.SIMULATION_FILES)):
        raise InputError(f"{folder}: holds none of {', '.join(schema.RUN_FILES)}; "
                         "expected the folder of a run")
    run = Run(folder)
    if "environment" in parts:
        run.environment = read_json(folder / schema.ENVIRONMENT_FILE)
    if "ceilings" in parts:
        path = folder / schema.CEILINGS_FILE
        if (content := read_json(path)) is not None:
            run.ceilings = measured_ceilings(path, content)
            run.refused_ceilings = refused_ceilings(path, content)
    for name, path in table_files(folder).items():
        if name in parts:
            setattr(run, name, read_table(path, run.warnings))
    return run


def table_files(folder: Path) -> dict[str, Path]:
    """Where each table of a run is, if it has it, or has it compressed."""
    inside = folder / schema.ATTRIBUTION_FOLDER
    return ({name: folder / f"{name}.csv" for name in OF_THE_FOLDER}
            | {name: inside / f"{name}.csv" for name in schema.ATTRIBUTION_TABLES})


def compressed(path: Path) -> Path:
    return path.with_name(f"{path.name}.gz")


def read_text(path: Path) -> str | None:
    """The text of a file, or of the file of that name that gzip compressed; None if there is
    neither."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        path = compressed(path)
        try:
            data = gzip.decompress(path.read_bytes())
        except FileNotFoundError:
            return None
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise InputError(f"{path}: expected gzip data; {error}") from None
    try:
        return data.decode("utf-8-sig")  # without the byte order mark of spreadsheets
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: byte {error.start} is not UTF-8 text") from None


def read_tables(folder: Path) -> dict[str, schema.Table]:
    """The columns of the folder's CSV files, by name, as its columns.json describes them."""
    path = folder / schema.COLUMNS_FILE
    content = read_json(path)
    if content is None:
        raise InputError(f"{path}: missing; it describes the columns of the CSV files. Copy it "
                         "from a run with the same columns")
    tables = content.get("tables")
    if not isinstance(tables, dict):
        raise InputError(f"{path}: expected an object named 'tables'")
    return {name: schema.Table(f"{name}.csv", tuple(read_columns(path, name, columns)))
            for name, columns in tables.items()}


def read_columns(path: Path, table: str, columns: Any) -> Iterator[schema.Column]:
    if not isinstance(columns, list):
        raise InputError(f"{path}: expected a list of columns of '{table}'")
    for number, column in enumerate(columns):
        column = column if isinstance(column, dict) else {}
        kind = schema.TYPES.get(column.get("type"))
        if not isinstance(column.get("name"), str) or kind is None:
            raise InputError(f"{path}: {table}[{number}] has no proper name or type; expected a "
                             f"name and one of the types {', '.join(schema.TYPES)}")
        yield schema.Column(column["name"], kind)


def read_table(path: Path, warnings: list[str]) -> list[Row] | None:
    """Rows of a CSV file with typed values, or None when there is no file.

    A last line without a newline was torn by a crash: it is skipped with a warning.
    """
    text = read_text(path)
    if text is None:
        return None
    table = read_tables(path.parent).get(path.stem)
    if table is None:
        raise InputError(f"{path.parent / schema.COLUMNS_FILE}: does not describe {path.name}")
    if not text:
        warnings.append(f"{path}: empty; expected a header row")
        return []
    reader = csv.reader(io.StringIO(text, newline=""))
    records = []
    first_line = 1
    for fields in reader:
        records.append((first_line, fields))
        first_line = reader.line_num + 1
    check_header(path, records[0][1], table)
    body = records[1:]
    if not text.endswith("\n"):
        if not body:
            raise InputError(f"{path}:1: the header row has no end; expected a newline")
        line, _ = body.pop()
        warnings.append(f"{path}:{line}: the last line is torn (no newline at its end); skipped")
    return [parse_row(path, line, fields, table) for line, fields in body if fields]


def check_header(path: Path, found: list[str], table: schema.Table) -> None:
    expected = table.names
    if found == expected:
        return
    for number, (have, want) in enumerate(zip(found, expected), start=1):
        if have != want:
            detail = f"column {number} is '{have}', expected '{want}'"
            break
    else:
        if len(found) < len(expected):
            detail = f"the columns end after {len(found)}, expected '{expected[len(found)]}' next"
        else:
            detail = f"column {len(expected) + 1} '{found[len(expected)]}' is not expected"
    raise InputError(f"{path}:1: {detail}; {schema.COLUMNS_FILE} describes: {','.join(expected)}")


def parse_row(path: Path, line: int, fields: list[str], table: schema.Table) -> Row:
    if len(fields) != len(table.columns):
        raise InputError(f"{path}:{line}: {len(fields)} fields, expected {len(table.columns)}")
    return Row(path, {column.name: parse_field(path, line, column, value)
                      for column, value in zip(table.columns, fields)})


def parse_field(path: Path, line: int, column: schema.Column, value: str) -> Any:
    if column.kind is str:
        return value
    if value == "" or value.lstrip("-") in ("nan", "inf"):
        return None
    number = number_in(value)
    if number is None or not math.isfinite(number) or (column.kind is int
                                                       and number != int(number)):
        kind = "a whole number" if column.kind is int else "a number"
        raise InputError(f"{path}:{line}: column {column.name} is '{value}', expected {kind}")
    return int(value) if column.kind is int and value.lstrip(
        "-").isdecimal() else column.kind(number)


def read_json(path: Path) -> dict[str, Any] | None:
    text = read_text(path)
    if text is None:
        return None
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"{path}:{error.lineno}: {error.msg} (column {error.colno})") from None
    if not isinstance(content, dict):
        raise InputError(f"{path}:1: expected a JSON object")
    version = content.get("schema_version")
    if version != schema.SCHEMA_VERSION:
        raise InputError(f"{path}: schema_version is {version!r}, expected "
                         f"{schema.SCHEMA_VERSION}")
    return content


def measured_ceilings(path: Path, content: dict[str, Any]) -> list[dict[str, Any]]:
    ceilings = content.get("ceilings")
    if not isinstance(ceilings, list):
        raise InputError(f"{path}: expected a list named 'ceilings'")
    # JSON has no NaN: a ceiling that could not be measured is null.
    ceilings = [c for c in ceilings if not (isinstance(c, dict) and c.get("value", 0) is None)]
    for number, ceiling in enumerate(ceilings):
        for name, kind in schema.CEILING_FIELDS.items():
            if not isinstance(ceiling, dict) or not isinstance(ceiling.get(name), kind):
                raise InputError(f"{path}: ceilings[{number}] has no proper '{name}'; expected "
                                 f"an object with {', '.join(schema.CEILING_FIELDS)}")
    return ceilings


def refused_ceilings(path: Path, content: dict[str, Any]) -> dict[int, str]:
    def reason(entry: dict[str, Any]) -> str:
        busy = float(entry["cores_of_others"])
        return str(entry.get("inconsistent")
                   or f"other processes used {busy:.1f} cores while they were measured")
    try:
        return {int(entry["threads"]): reason(entry) for entry in content.get("refused", [])}
    except (KeyError, TypeError, ValueError):
        raise InputError(f"{path}: 'refused' is no list of objects with threads and "
                         "cores_of_others") from None
