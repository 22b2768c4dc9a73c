"""size-<primitive>: rate against problem size, below the measured peak."""

from __future__ import annotations

from collections.abc import Iterator

from matplotlib.axes import Axes

from plots import style
from plots.names import widest_builds
from plots.page import Page, caption, plain_log
from plots.ratios import (Ladder, Resource, first_and_last, ladders, rate_bounds, resource_of,
                          resources_of)
from plots.reading import Row, Run

# primitive: column of the rate, its unit, column of the size, label of the size
COMPUTE = ("gflops_per_s", "GFLOP/s", "flops", "problem size (FLOPs)")
MEMORY = ("gbytes_per_s", "GB/s", "bytes", "problem size (bytes read and written)")
QUANTITIES = {"matmul": COMPUTE, "convolution": COMPUTE, "max_pool": MEMORY, "sgd_update": MEMORY}

# Suites that vary one size. Problems of other suites differ in shape: no line joins them.
SWEEPS = ("squares", "sweep")
MOST_PANELS = 6

# Ratio of the highest to the lowest rate from which the axis is logarithmic.
LOGARITHMIC_FROM = 30

LABEL_HEIGHT = 0.07  # as a fraction of the panel


def draw(run: Run) -> Iterator[tuple[str, Page | str]]:
    if run.summary is None:
        yield "size", "no summary.csv"
        return
    for ladder in ladders(run):
        if ladder.primitive not in QUANTITIES:
            continue
        name = f"size-{ladder.primitive}"
        resources = first_and_last(resources_of(ladder.measured))
        if not resources:
            yield name, "no row has a time"
        elif len(ladder.directions) * len(resources) <= MOST_PANELS:
            yield name, draw_sizes(run, ladder, resources)
        else:
            for resource in resources:
                suffix = resource.label.replace(" ", "-")
                yield f"{name}-{suffix}", draw_sizes(run, ladder, [resource])


def draw_sizes(run: Run, ladder: Ladder, resources: list[Resource]) -> Page | str:
    rate, unit, size, size_label = QUANTITIES[ladder.primitive]
    directions = ladder.directions
    panels = [(direction, resource) for resource in resources for direction in directions]
    rows_of = {panel: [row for row in ladder.measured
                       if (row["direction"], resource_of(row)) == panel
                       and row[rate] and row[size]] for panel in panels}
    drawn = {row["variant"] for rows in rows_of.values() for row in rows}
    if not drawn:
        return f"no row has both {rate} and {size}"
    rungs = [rung for rung in widest_builds(ladder.measured_rungs) if rung.name in drawn]
    styles = style.variant_styles(ladder.rungs)
    peaks_of = {r: peaks(run, unit, r) for r in resources}
    remark = ("One marker per problem. Error bars: 95 % confidence. Only the build for the widest "
              "instruction set.")
    if unit == "GFLOP/s":
        remark += (" Dashed: measured FMA peak."
                   if any(peaks_of.values()) else " No measured peak in ceilings.json.")
    else:
        remark += (" Dashed: measured bandwidth of each memory level."
                   if any(peaks_of.values()) else " No measured bandwidth in ceilings.json.")
    columns = min(3, len(directions)) if len(directions) > 1 else len(resources)
    grid_rows = -(-len(panels) // columns)
    swept = {row["variant"] for rows in rows_of.values() for row in rows if row["suite"] in SWEEPS}
    page = Page(
        f"{ladder.primitive}: {unit} against problem size", caption(run, resources, remark),
        grid_rows, columns, panel_height=2.35 if grid_rows == 1 else 1.85, legend_columns=6,
        legend=[styles[rung.name].handle(rung.name, line=rung.name in swept) for rung in rungs])
    for axes, (panel, rows) in zip(page.panels(), rows_of.items()):
        direction, resource = panel
        for rung in rungs:
            draw_variant(axes, [row for row in rows if row["variant"] == rung.name], rate, size,
                         styles[rung.name], rung.name)
        axes.set_xscale("log")
        axes.set_title(", ".join(t for t in (direction, resource.label) if t), loc="left")
        axes.set_xlabel(size_label)
        axes.set_ylabel(f"rate ({unit})")
        axes.margins(x=0.08)
        if rows:
            plain_log(axes.xaxis)
        rates = [row[rate] for (_, r), found in rows_of.items() if r == resource for row in found]
        if rates:
            top_of_axis(axes, peaks_of[resource], rates)
    page.hide_from(len(panels))
    return page


def draw_variant(axes: Axes, rows: list[Row], rate: str, size: str, look: style.Style,
                 label: str) -> None:
    for sweep in (True, False):
        points = sorted((row for row in rows if (row["suite"] in SWEEPS) == sweep),
                        key=lambda row: row[size])
        if not points:
            continue
        bounds = [rate_bounds(row, row[rate]) for row in points]
        errors = [[row[rate] - low for row, (low, _) in zip(points, bounds)],
                  [high - row[rate] for row, (_, high) in zip(points, bounds)]]
        axes.errorbar([row[size] for row in points], [row[rate] for row in points], yerr=errors,
                      elinewidth=0.6, capsize=0, label=label, alpha=0.9,
                      **(look.line if sweep else look.marks))


def peaks(run: Run, unit: str, resource: Resource) -> dict[str, float]:
    """The measured ceilings on these threads, lowest first: the FMA peak, or the best bandwidth of
    each memory level."""
    found: dict[str, float] = {}
    for ceiling in run.ceilings or []:
        if (ceiling["unit"] != unit or ceiling["threads"] != resource.threads or resource.device
                or (unit == "GFLOP/s" and ceiling["name"] != "fma_peak")):
            continue
        name = "peak" if unit == "GFLOP/s" else ceiling["level"] or ceiling["name"]
        found[name] = max(found.get(name, 0.0), ceiling["value"])
    return dict(sorted(found.items(), key=lambda item: item[1]))


def top_of_axis(axes: Axes, ceilings: dict[str, float], rates: list[float]) -> None:
    """Sets the top to the lowest ceiling that is at least every rate of this resource."""
    highest = max(rates)
    enough = [value for value in ceilings.values() if value >= highest]
    top = enough[0] if enough else highest * 1.05
    if top / min(rates) > LOGARITHMIC_FROM and len(ceilings) > 1:
        axes.set_yscale("log")
        axes.set_ylim(min(rates) / 1.5, top)
        plain_log(axes.yaxis)
    else:
        axes.set_ylim(0, top)
    draw_ceilings(axes, {name: value for name, value in ceilings.items() if value <= top})


def draw_ceilings(axes: Axes, ceilings: dict[str, float]) -> None:
    """Lines with names to the right of the panel, lowest first."""
    to_fraction = axes.transScale + axes.transLimits
    place = -1.0
    for name, value in ceilings.items():
        axes.axhline(value, color=style.REFERENCE, linewidth=0.9, linestyle=(0, (5, 2)),
                     clip_on=False, zorder=1)
        place = max(to_fraction.transform((1, value))[1], place + LABEL_HEIGHT)
        axes.annotate(f"{name} {value:.0f}", (1, place), xytext=(3, 0), xycoords="axes fraction",
                      textcoords="offset points", va="center", fontsize=6, color=style.REFERENCE)
