"""The fastest all-reduce at each length, between hosts: the last screen of `make bench-network`."""

from __future__ import annotations

from plots.data.network import LABELS, all_reduce_rows, fastest
from plots.data.reading import Run
from plots.screen.text import WIDTH, clipped, columns


def render(run: Run) -> str:
    rows = [row for row in all_reduce_rows(run) if (row["hosts"] or 1) > 1]
    network = (run.environment or {}).get("network") or "not recorded"
    sentence = (run.environment or {}).get("quiet_sentence") or ""
    heading = "\n".join(clipped(line, WIDTH) for line in (f"Network: {network}", sentence) if line)
    if not rows:
        return f"{heading}\n\nNo row has more than one host."
    return (f"{heading}\n\nOur fastest rung that sends fp32, sum; times in us; of bound: share of "
            f"the bandwidth bound\n{columns(LABELS, fastest(rows), 0)}")
