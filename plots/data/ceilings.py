"""The measured ceilings of a run."""

from __future__ import annotations

from plots.data.ratios import Resource
from plots.data.reading import Run


def peaks(run: Run, unit: str, resource: Resource, name: str = "fma_peak") -> dict[str, float]:
    """The measured ceilings on these threads, lowest first: the peak of that name, or the best
    bandwidth of each memory level."""
    found: dict[str, float] = {}
    for ceiling in run.ceilings or []:
        if (ceiling["unit"] != unit or ceiling["threads"] != resource.threads or resource.device
                or (unit == "GFLOP/s" and ceiling["name"] != name)):
            continue
        level = "peak" if unit == "GFLOP/s" else ceiling["level"] or ceiling["name"]
        found[level] = max(found.get(level, 0.0), ceiling["value"])
    return dict(sorted(found.items(), key=lambda item: item[1]))
