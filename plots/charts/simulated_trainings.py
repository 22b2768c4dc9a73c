"""Chart of `make simulate-training`: samples/s and accuracy of the training modes against the
number of nodes, one column of panels per slow rank."""

from __future__ import annotations

from collections.abc import Iterator

from plots.charts import style
from plots.charts.figure import Page, plain_log
from plots.charts.simulated import caption, label_nodes
from plots.data.reading import Row, Run
from plots.data.trainings import latest_trainings

SLOW = {"none": "no slow rank", "permanent": "rank 1 three times slower",
        "passing": "rank 1 slower for a while"}
PANELS = {"samples_per_s": "samples/s", "accuracy": "final accuracy (%)"}


def draw(run: Run) -> Iterator[tuple[str, Page | str]]:
    rows = [row for row in run.train or [] if row.get("platform")]
    for platform in dict.fromkeys(row["platform"] for row in rows):
        yield f"simulated-trainings-{platform}", draw_modes(
            run, platform, [row for row in rows if row["platform"] == platform])


def draw_modes(run: Run, platform: str, rows: list[Row]) -> Page | str:
    last = {(row["slow"], row["mode"], row["ranks"]): row
            for training in latest_trainings(rows)
            for row in training if row["accuracy"] is not None}
    nodes = sorted({ranks for _, _, ranks in last})
    if len(nodes) < 2:
        return "fewer than two numbers of nodes"
    slows, modes = (list(dict.fromkeys(key[i] for key in last)) for i in (0, 1))
    looks = style.mode_styles(modes)
    page = Page(f"training modes on simulated clusters, {platform}",
                caption(run, "One rank per node, real arithmetic; the time of computing is "
                             "injected, that of messages simulated. "
                             "Every training ends after the same number of samples of all ranks. "
                             "Slow for a while: 10 times."),
                len(PANELS) * len(slows), len(slows), panel_height=1.9, legend_columns=4,
                share_x=True, share_y="row", legend=[looks[mode].handle(mode) for mode in modes])
    for (column, label), across in zip(PANELS.items(), page.axes):
        across[0].set_ylabel(label)
        for axes, slow in zip(across, slows):
            for mode in modes:
                points = [(count, row[column] * (100 if column == "accuracy" else 1))
                          for count in nodes
                          if (row := last.get((slow, mode, count))) and row[column] is not None]
                axes.plot([x for x, _ in points], [y for _, y in points], **looks[mode].line)
            label_nodes(axes, nodes)
    for axes, slow in zip(page.axes[0], slows):
        axes.set_title(SLOW.get(slow, f"slow rank {slow}"), loc="left")
        axes.set_xlabel("")
    page.axes[0, 0].set_yscale("log")
    plain_log(page.axes[0, 0].yaxis)
    return page
