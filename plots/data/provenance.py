"""Where results come from: machine, commit and data, as stated beside every table and chart."""

from __future__ import annotations

from typing import NamedTuple

from plots.data.reading import Run


class Provenance(NamedTuple):
    machine: str
    commit: str  # twelve digits, "(modified)" where the working tree had changes
    data: str

    @property
    def line(self) -> str:
        return f"{self.machine}; commit {self.commit}; data: {self.data}"


def provenance(run: Run) -> Provenance:
    environment = run.environment or {}
    commit = str(environment.get("commit") or "unknown")[:12]
    if environment.get("dirty"):
        commit += " (modified)"
    return Provenance(environment.get("cpu_model") or "unknown machine", commit,
                      str(environment.get("data") or "unknown").removeprefix("data="))
