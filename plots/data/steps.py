"""The training steps of step.csv: one object per network, choice of rungs, and resources."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from plots.data import schema
from plots.data.ratios import Resource, resource_of
from plots.data.reading import Row, grouped


@dataclass
class Configuration:
    network: str
    use: str
    mode: str
    resource: Resource
    total_s: float
    predicted_s: float | None
    rows: list[Row]  # one per layer, phase and variant, without the total
    # None in runs made before the columns were there.
    interval_s: tuple[float, float] | None = None  # 95 % confidence interval of total_s
    processor_load: float | None = None  # percent of all processors

    @property
    def operations_at_once(self) -> int | None:
        """The value of --inter of a thread sweep; None for other steps."""
        found = re.fullmatch(r"inter=(\d+)", self.mode)
        return int(found[1]) if found else None

    @property
    def label(self) -> str:
        mode = "" if self.mode in ("", "single", "ablate") else f", {self.mode}"
        return f"{self.use}, {self.resource.label}{mode}"

    def phase_s(self, phase: str) -> float:
        return sum(row["median_s"] or 0.0 for row in self.rows if row["phase"] == phase)

    @property
    def phases(self) -> list[str]:
        present = dict.fromkeys(row["phase"] for row in self.rows)
        return sorted(present, key=lambda phase: (schema.PHASES.index(phase)
                                                  if phase in schema.PHASES else 99, phase))


def configurations(step: Sequence[Row]) -> list[Configuration]:
    """All steps except those of thread sweeps."""
    return [c for c in measured(step) if c.operations_at_once is None]


def thread_sweep(step: Sequence[Row]) -> list[Configuration]:
    """Threads inside an operation against operations at once. Threads were not pinned, so these
    times are comparable with each other but not with those of configurations()."""
    return [c for c in measured(step) if c.operations_at_once is not None]


def measured(step: Sequence[Row]) -> list[Configuration]:
    """In the order of the file. A configuration without a total was interrupted and is left out; if
    one was measured again, the last measurement counts."""
    groups = grouped(step,
                     lambda row: (row["network"], row["use"], row["mode"], resource_of(row)))
    found = []
    for key, rows in groups.items():
        rows = last_measurement(rows)
        totals = [row for row in rows if row["layer"] == schema.TOTAL and row["median_s"]]
        if totals:
            parts = [row for row in rows if row["layer"] != schema.TOTAL]
            total = totals[-1]
            low, high = total.get("ci_low_s"), total.get("ci_high_s")
            found.append(Configuration(*key, total["median_s"], total["predicted_s"], parts,
                                       (low, high) if low and high else None,
                                       total.get("processor_load")))
    return found


def last_measurement(rows: list[Row]) -> list[Row]:
    """The rows of the last complete measurement; its total row is the first or the last one."""
    totals = [i for i, row in enumerate(rows) if row["layer"] == schema.TOTAL]
    if len(totals) < 2:
        return rows
    if totals[0] == 0:
        return rows[totals[-1]:]
    return rows[totals[-2] + 1:totals[-1] + 1]


def by_network(found: Iterable[Configuration]) -> dict[str, list[Configuration]]:
    return grouped(found, lambda c: c.network)


def baseline(network: str, found: Iterable[Configuration]) -> Configuration:
    """The reference of a network's speedups: 'serial' on the fewest threads, or the first measured
    configuration if the serial step was not measured."""
    here = [c for c in found if c.network == network]
    serial = (c for c in here if c.use == "serial")
    return min(serial, key=lambda c: c.resource, default=here[0])
