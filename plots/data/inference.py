"""The requests of inference.csv: one object per network, rungs, batch, threads and their use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from plots.data import schema
from plots.data.ratios import Resource, resource_of
from plots.data.reading import Row


@dataclass
class Service:
    network: str
    use: str
    split: str  # inside or requests
    resource: Resource
    batch: int
    weights: str  # generated, or the step of a checkpoint
    total: Row
    layers: list[Row]

    @property
    def place(self) -> str:
        threads = self.resource.threads
        if threads == 1:
            return self.resource.label
        at_once = "threads inside" if self.split == "inside" else "requests at once"
        ranks = "" if self.resource.ranks == 1 else f"{self.resource.ranks} ranks x "
        return f"{ranks}{threads} {at_once}"

    @property
    def slowest_layers(self) -> list[Row]:
        return sorted(self.layers, key=lambda row: -(row["share"] or 0.0))


def services(inference: Sequence[Row]) -> list[Service]:
    """Those with a time, in the order of the file. The total row comes last; of one that was
    measured again, the last measurement counts."""
    found: dict[tuple, Service] = {}
    layers: list[Row] = []
    for row in inference:
        if row["layer"] != schema.TOTAL:
            layers.append(row)
            continue
        key = (row["network"], row["use"], row["split"], resource_of(row), row["batch"],
               row["weights"])
        if row["status"] == "ok" and row["median_s"]:
            found[key] = Service(*key, row, layers)
        layers = []
    return list(found.values())
