"""inference-<network>: latency of a request against throughput. A line is one choice of rungs on
one number of threads; its points are the batches, its bars reach up to the 99th percentile."""

from __future__ import annotations

from collections.abc import Iterator

from plots.charts import style
from plots.charts.figure import Page, caption, chart, plain_log
from plots.data.inference import Service, services
from plots.data.numbers import milliseconds, plural, short
from plots.data.reading import Run, grouped

MOST_LINES = 18  # that a reader can tell apart


@chart("inference", needs="inference")
def draw(run: Run) -> Iterator[tuple[str, Page | str]]:
    found = services(run.inference)
    if not found:
        yield "inference", "inference.csv has no request with a time"
    for network, here in grouped(found, lambda service: service.network).items():
        yield f"inference-{network}", draw_network(run, network, here)


def draw_network(run: Run, network: str, found: list[Service]) -> Page:
    lines: dict[str, list[Service]] = {}
    for service in found:
        weights = "" if service.weights == found[0].weights else f", {service.weights}"
        name = f"{service.use}, {service.place}{weights}"
        lines.setdefault(name, []).append(service)
    remark = ("Median latency of a request against throughput, both logarithmic; bars reach from "
              "the median to the 99th percentile. Numbers: samples of a request.")
    if len(lines) > MOST_LINES:
        lines = dict(list(lines.items())[:MOST_LINES])
        remark += f" Only the first {MOST_LINES} lines are shown; inference.csv has the others."
    looks = style.distinct_styles({name: technique_of(members[0].use)
                                   for name, members in lines.items()})
    page = Page(f"{network}: latency of inference against throughput",
                caption(run, (s.resource for s in found), remark), 1, 1, panel_height=3.0,
                legend=[look.handle(name) for name, look in looks.items()], legend_columns=3,
                finding=finding(found))
    axes, = page.panels()
    for name, members in lines.items():
        members = sorted(members, key=lambda service: service.batch)
        rates = [service.total["samples_per_s"] for service in members]
        medians = [1000 * service.total["median_s"] for service in members]
        tails = [max(0.0, 1000 * service.total["p99_s"] - median)
                 for service, median in zip(members, medians)]
        axes.errorbar(rates, medians, yerr=[[0.0] * len(tails), tails], elinewidth=0.6, capsize=1.5,
                      **looks[name].line)
        for service, rate, median in zip(members, rates, medians):
            axes.annotate(str(service.batch), (rate, median), xytext=(4, -7),
                          textcoords="offset points", fontsize=style.SMALL)
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        plain_log(axis)
    axes.set_xlabel("throughput (samples/s)")
    axes.set_ylabel("latency of a request (ms)")
    return page


def technique_of(use: str) -> str:
    rung = use.partition(",")[0]
    return {"compiler": "serial"}.get(rung, rung)


def finding(found: list[Service]) -> str:
    """The shortest latency and the highest throughput of our own rungs."""
    own = [service for service in found if technique_of(service.use) != "vendor"]
    if not own:
        return ""
    fast = min(own, key=lambda service: service.total["median_s"])
    full = max(own, key=lambda service: service.total["samples_per_s"])
    return (f"{fast.network}: {milliseconds(fast.total['median_s'])} ms for "
            f"{plural(fast.batch, 'sample')} ({fast.place}), at most "
            f"{short(full.total['samples_per_s'])} samples/s (batch {full.batch}, {full.place})")
