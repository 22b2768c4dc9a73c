"""The tables of the sources beside ours, each with its machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from markupsafe import Markup

from plots.data.names import is_cpu
from plots.data.numbers import MISSING, milliseconds, number, percent
from plots.data.reading import Run
from plots.data.steps import Configuration, configurations, thread_sweep
from plots.page.markup import html_table
from plots.page.shapes import BYTES, Network, networks

FILE = Path(__file__).with_name("sources.json")


def then_and_now(run: Run, root: Path) -> dict[str, Any]:
    sources = json.loads(FILE.read_text(encoding="utf-8"))
    known = networks(root)
    survey = sources["survey"]
    return {"survey": survey, "nine": table_9(run, sources, known), "ten": table_10(run, sources),
            "four": table_4(sources, known), "four_remark": sources["table_4"]["remark"],
            "ours": our_machine(run)}


def our_machine(run: Run) -> str:
    environment = run.environment or {}
    peak = peak_per_core(run)
    return (f"{environment.get('cpu_model') or 'unknown machine'}, "
            f"{environment.get('cores') or '?'} cores"
            + (f", measured peak {peak:.0f} GFLOP/s per core" if peak else ""))


def peak_per_core(run: Run) -> float | None:
    return next((c["value"] / c["threads"] for c in run.ceilings or [] if c["name"] == "fma_peak"),
                None)


def table_9(run: Run, sources: dict, known: dict[str, Network]) -> Markup:
    """Lines of the survey, then ours: the slowest and the fastest of our own steps, and the
    library's."""
    survey = sources["survey"]
    lines = []
    for row in sources["table_9"]["rows"]:
        flops = known[row["network"]].step_flops if row["network"] in known else None
        for label, cores, ms, peak in (
                ("survey: one thread", 1, row["serial_ms"], survey["peak_gflops_per_core"]),
                (f"survey: {survey['cores']} threads", survey["cores"], row["threads_ms"],
                 survey["peak_gflops_per_core"]),
                (f"survey: one {survey['gpu']}", None, row["gpu_ms"], survey["gpu_peak_gflops"])):
            lines.append(line_of(row["name"], label, cores, ms / 1e3, row["serial_ms"] / 1e3,
                                 flops, peak))
        lines += our_lines(run, row["name"], row["network"], flops)
    labels = ["network", "step", "ms per batch", "over one thread",
              "parallel efficiency", "GFLOP/s",
              "GFLOP/s per core", "of peak"]
    return html_table(labels, lines, 2, "Table 9: " + sources["table_9"]["what"])


def line_of(network: str, label: str, cores: int | None, seconds: float, serial_s: float | None,
            flops: float | None, peak: float | None) -> list[str]:
    """`cores` is None for a GPU, whose rate is that of the whole device."""
    rate = flops / seconds / 1e9 if flops else None
    per_core = rate / (cores or 1) if rate else None
    gain = serial_s / seconds if serial_s else None
    return [network, label, milliseconds(seconds), f"{gain:.3g}×" if gain else MISSING,
            percent(100 * gain / cores) if gain and cores and cores > 1 else MISSING,
            number(rate, ".3g"), number(per_core, ".3g") if cores else "whole device",
            percent(100 * per_core / peak) if per_core and peak else MISSING]


def our_lines(run: Run, name: str, network: str, flops: float | None) -> list[list[str]]:
    here = [c for c in configurations(run.step or []) if c.network == network and c.mode != "ablate"
            and c.resource.ranks == 1]
    if not here:
        return [[name, "ours: not measured; make bench adds it", *[MISSING] * 6]]
    lines = []
    for use in ("serial", "simd", "openmp", "best", "vendor"):
        of_use = sorted((c for c in here if c.use == use and is_cpu(c.resource.device)),
                        key=lambda c: c.resource)
        if not of_use:
            continue
        one = next((c for c in of_use if c.resource.threads == 1), None)
        for c in {id(c): c for c in (of_use[0], of_use[-1])}.values():
            lines.append(line_of(name, f"ours: `{use}`, {c.resource.label}", c.resource.threads,
                                 c.total_s,
                                 one.total_s if one else None, flops, peak_per_core(run)))
    return lines + [line_of(name, f"ours: `{c.use}`, {c.resource.device}", None, c.total_s, None,
                            flops, None)
                    for c in here if not is_cpu(c.resource.device)]


def table_10(run: Run, sources: dict) -> Markup:
    table = sources["table_10"]
    lines = [["survey", str(inter), str(intra), f"{mnist}", f"{mnist_load} %", f"{cifar}",
              f"{cifar_load} %"]
             for inter, intra, cifar, cifar_load, mnist, mnist_load in table["rows"]]
    places: dict[tuple[int, int], dict[str, Configuration]] = {}
    for c in thread_sweep(run.step or []):
        places.setdefault((c.operations_at_once or 1, c.resource.threads), {})[c.network] = c
    for (inter, intra), of_network in sorted(places.items()):
        mnist, cifar = of_network.get("mnist_cnn"), of_network.get("cifar_cnn")
        lines.append(["ours", str(inter), str(intra), *(cell for c in (mnist, cifar) for cell in (
            milliseconds(c.total_s if c else None), percent(c.processor_load if c else None)))])
    if not places:
        lines.append(["ours: not measured; `stepladder step --threads 1,2 --inter 1,2` adds "
                      "it", *[MISSING] * 6])
    labels = ["machine", "operations at once", "threads in each", "MNIST, ms", "processor load",
              "CIFAR-10, ms", "processor load"]
    return html_table(labels, lines, 1, "Table 10: " + table["what"])


def table_4(sources: dict, known: dict[str, Network]) -> Markup:
    table = sources["table_4"]
    ours = known.get("alexnet")
    layers = {layer.name: layer for layer in ours.layers} if ours else {}
    lines = []
    for name, filters, neurons, size, parameters, sent in table["rows"]:
        if ours and name == "all":
            all_of = ours.layers
            own = [f"{sum(layer.neurons for layer in all_of):,}",
                   f"{sum(layer.parameters for layer in all_of):,}",
                   f"{ours.batch * BYTES * sum(layer.sent for layer in all_of) / 2**20:.1f}"]
        elif ours and name in layers:
            layer = layers[name]
            own = [f"{layer.neurons:,}", f"{layer.parameters:,}",
                   f"{ours.batch * BYTES * layer.sent / 2**20:.2f}"]
        else:
            own = [MISSING] * 3
        lines.append([name, str(filters or MISSING), f"{size} x {size}" if size else MISSING,
                      f"{neurons:,}", own[0], parameters, own[1], f"{sent}", own[2]])
    labels = ["layer", "filters", "map", "neurons, survey", "ours",
              "parameters, survey", "ours",
              "MB sent, survey", "ours"]
    return html_table(labels, lines, 1, "Table 4: " + table["what"])


