"""roofline: rate against arithmetic intensity, under the measured peak and bandwidths (Williams,
Waterman and Patterson, Communications of the ACM 52(4), 2009)."""

from __future__ import annotations

import math
from collections.abc import Iterator

from matplotlib.axes import Axes
from matplotlib.text import Text

from plots.charts import style
from plots.charts.figure import Page, caption, chart, plain_log
from plots.charts.labels import label_clusters, slide_along
from plots.data.ceilings import peaks
from plots.data.ratios import (
    Ladder,
    Resource,
    first_and_last,
    is_set_apart,
    ladders,
    problem_key,
    resource_of,
    resources_of,
)
from plots.data.reading import Row, Run, grouped

MOST_PANELS_ACROSS = 2
MARGIN = 1.7  # factor between the axes' limits and the outermost points and roofs
SAME_LINE = 1.3  # bandwidths that differ by a smaller factor share a line

Span = tuple[float, float]


@chart("roofline", needs="summary")
def draw(run: Run) -> Iterator[tuple[str, Page | str]]:
    placed = [ladder for ladder in ladders(run) if any(on_the_chart(row) for row in ladder.rows)]
    with_roofs = [r for r in first_and_last(resources_of(row for ladder in placed
                                                         for row in ladder.measured))
                  if r.ranks == 1 and peaks(run, "GFLOP/s", r)]
    if not placed:
        yield "roofline", "no row has a rate, FLOPs and bytes"
    elif not with_roofs:
        yield "roofline", "no measured peak in ceilings.json"
    else:
        yield "roofline", draw_roofline(run, placed, with_roofs)


def on_the_chart(row: Row) -> bool:
    return bool(row["gflops_per_s"] and row["flops"] and row["bytes"])


def intensity(row: Row) -> float:
    """FLOPs per byte of the problem, where every operand counts once."""
    return row["flops"] / row["bytes"]


def draw_roofline(run: Run, placed: list[Ladder], resources: list[Resource]) -> Page:
    shown = {(ladder.primitive, resource): shown_rows(ladder, resource)
             for ladder in placed for resource in resources}
    techniques = {row["technique"] for rows in shown.values() for row in rows}
    across, up = limits(run, [row for rows in shown.values() for row in rows], resources)
    columns = min(MOST_PANELS_ACROSS, len(resources))
    page = Page(
        "roofline: FLOP rate against arithmetic intensity",
        caption(run, resources,
                "Shown for every problem: the first rung, our fastest rung and the fastest "
                "library. Dashed: measured FMA peak and best measured bandwidth of each level. "
                "Intensity: FLOPs of the definition per byte, each operand counted once. "
                "Algorithms with fewer multiplications (Winograd) can exceed the peak; so can "
                "low_precision, as the peak is that of fp32."),
        len(resources), columns, panel_height=3.1, share_x=True, share_y=True,
        legend=style.technique_handles(techniques), legend_columns=7)
    for axes, resource in zip(page.panels(), resources):
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlim(across)
        axes.set_ylim(up)
        of_resource = {ladder.primitive: shown[ladder.primitive, resource] for ladder in placed}
        for row in (row for rows in of_resource.values() for row in rows):
            axes.plot(intensity(row), row["gflops_per_s"], alpha=0.7, label=row["technique"],
                      **style.technique_style(row["technique"]).marks)
        clusters = {name: points_of(rows) for name, rows in of_resource.items() if rows}
        names = draw_roofs(page, axes, peaks(run, "GFLOP/s", resource)["peak"],
                           peaks(run, "GB/s", resource),
                           [point for points in clusters.values() for point in points])
        label_clusters(page, axes, clusters, names)
        axes.set_title(resource.label, loc="left")
        axes.set_xlabel("arithmetic intensity (FLOP per byte)")
        axes.set_ylabel("rate (GFLOP/s)")
        plain_log(axes.xaxis)
        plain_log(axes.yaxis)
    return page


def shown_rows(ladder: Ladder, resource: Resource) -> list[Row]:
    """For every problem on this resource: the first rung, our fastest rung, the fastest library."""
    shown = []
    found = [row for row in ladder.measured if on_the_chart(row) and resource_of(row) == resource
             and not is_set_apart(row)]
    for rows in grouped(found, problem_key).values():
        libraries = [row for row in rows if row["technique"] == "vendor"]
        rungs = [row for row in rows if row["technique"] != "vendor"]
        first = ladder.first_rung.name if ladder.first_rung else None
        shown += [row for row in rungs if row["variant"] == first]
        shown += [max(group, key=lambda row: row["gflops_per_s"])
                  for group in (rungs, libraries) if group]
    return shown


def limits(run: Run, rows: list[Row], resources: list[Resource]) -> tuple[Span, Span]:
    """Limits of both axes, the same for all panels."""
    found = [intensity(row) for row in rows]
    rates = [row["gflops_per_s"] for row in rows]
    highest = max(rates + [peaks(run, "GFLOP/s", r)["peak"] for r in resources])
    return ((min(found) / MARGIN ** 2, max(found) * MARGIN), (min(rates) / MARGIN ** 2,
                                                         highest * MARGIN))


def draw_roofs(page: Page, axes: Axes, peak: float, bandwidths: dict[str, float],
               points: list[tuple[float, float]]) -> list[Text]:
    """Each bandwidth rises to the peak; the peak continues to the right. Returns their names."""
    left, right = axes.get_xlim()
    low, _ = axes.get_ylim()
    line = style.DASHED | {"zorder": 1}
    ridge = peak / max(bandwidths.values(), default=peak / left)
    axes.plot([max(left, ridge), right], [peak, peak], **line)
    names = [axes.annotate(f"peak {peak:.0f} GFLOP/s", (left, peak), xytext=(2, 2), ha="left",
                           textcoords="offset points", fontsize=style.SMALL, color=style.REFERENCE)]
    for levels, bandwidth in merged(bandwidths):
        start, end = max(left, low / bandwidth), peak / bandwidth
        axes.plot([start, end], [start * bandwidth, peak], **line)
        name = axes.text(start * 1.3, start * 1.3 * bandwidth, f"{levels} {bandwidth:.0f} GB/s",
                         rotation=math.degrees(math.atan(bandwidth)), rotation_mode="anchor",
                         transform_rotates_text=True, va="bottom", fontsize=style.SMALL,
                         color=style.REFERENCE)
        along = [start * 1.3 * (end / start) ** (i / 20) for i in range(13)]
        slide_along(page, axes, name, [(x, x * bandwidth) for x in along], points, tuple(names))
        names.append(name)
    return names


def merged(bandwidths: dict[str, float]) -> list[tuple[str, float]]:
    """Lines with their levels: a level joins the line of a faster one within SAME_LINE."""
    groups: list[tuple[str, float]] = []
    for level, value in sorted(bandwidths.items(), key=lambda item: -item[1]):
        if groups and value * SAME_LINE >= groups[-1][1]:
            groups[-1] = (", ".join(sorted((*groups[-1][0].split(", "), level))), groups[-1][1])
        else:
            groups.append((level, value))
    return groups


def points_of(rows: list[Row]) -> list[tuple[float, float]]:
    return [(intensity(row), row["gflops_per_s"]) for row in rows]
