"""The blocks of Markdown between result markers, by name.

machine            the machine of the run
spread             how far ratios of rungs repeat in further runs of that machine
answer             what each technique bought, and the ladder from the first rung to the best one
summary            per primitive: our best rung over the first rung and over the vendors' libraries
directions         the same per direction
steps              time of a training step per network and configuration
steps-over-ranks   the same over several ranks, from the folder all_reduce/ of the run, or from the
run
inference          latency and throughput of requests to networks that infer
instruction-sets   GFLOP/s of rungs that are built for several instruction sets, and the share of
                   the peak of each, from the folder instruction_sets/ of the run
thread-sweep       threads inside an operation against operations at once, milliseconds per step
peers              the same training steps in PyTorch, from the folder peers/ of the run
inference-peers    inference in PyTorch and ONNX Runtime, from the folder peers/inference/
all-reduce         the fastest all-reduce at each length, from the folder all_reduce/ of the run
all-reduce-network the same between hosts, from the folder network/
all-reduce-peers   our fastest all-reduce beside other communication libraries, from the folder
                   all_reduce/peers/
simulation         predicted training steps on clusters, from the folder simulation/
training           the last row of every training
data-parallel-peers
                   data-parallel steps beside PyTorch's, from the folder modes/peers/
modes              the training modes side by side, from the folder modes/ of the run, or from the
run
modes-FAMILY       those of one family, such as modes-synchronous, beside single
modes-hosts        the same between hosts, from the folder modes/hosts/
ladder-PRIMITIVE   the rungs of a primitive: measured gain over the rung that it builds on, and
                   over the first one; of a side branch, its best rung
chart-NAME         the chart of that name in the charts folder of the run
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from plots.data import attribution, modes, network, schema, spread
from plots.data.chain import Bar, best_of_branch, groups_of, main_chain
from plots.data.inference import services
from plots.data.instruction_sets import Builds, builds, peak_of_each
from plots.data.names import Rung, is_rung, split_isa
from plots.data.numbers import (
    MISSING,
    binary_size,
    microseconds,
    milliseconds,
    number,
    percent,
    plural,
    times,
)
from plots.data.overview import best_rung, fastest, parts_of
from plots.data.provenance import provenance
from plots.data.ratios import Ladder, ladders, mean_ratio, resources_of
from plots.data.reading import Run, grouped, load_run, read_json, read_table
from plots.data.steps import baseline, by_network, configurations, thread_sweep
from plots.data.trainings import name_of, split_trainings
from plots.tables import markdown, mode_tables

# Makes the block for a file in the given folder; None if the run has no rows for it.
Block = Callable[[Path], str | None]


def known_blocks(run: Run, primitives: Iterable[str]) -> dict[str, Block]:
    found = {ladder.primitive: ladder for ladder in ladders(run)}
    known: dict[str, Block] = {
        "machine": lambda _: machine(run),
        "spread": lambda _: spread.of_run(run) or None,
        "answer": lambda _: answer(run),
        "summary": lambda _: summary(run, by_direction=False),
        "directions": lambda _: summary(run, by_direction=True),
        "steps": lambda _: steps(run),
        "steps-over-ranks": lambda _: steps_over_ranks(run),
        "inference": lambda _: inference(run),
        "instruction-sets": lambda _: instruction_sets(run.folder / "instruction_sets"),
        "thread-sweep": lambda _: sweep(run),
        "peers": lambda _: peers(run),
        "inference-peers": lambda _: inference_peers(run),
        "training": lambda _: with_source(run, training_table(run), "\n\n"),
        "data-parallel-peers": lambda _: data_parallel_peers(run),
        "modes": lambda _: training_modes(run, "modes") or training_modes(run),
        **{f"modes-{family.replace(' ', '-')}": lambda _, family=family: training_modes(
            run, "modes", family)
           for family in modes.FAMILIES if family != "one replica"},
        "modes-hosts": lambda _: training_modes(run, "modes/hosts"),
        "all-reduce": lambda _: all_reduce(run, "all_reduce") or all_reduce(run),
        "all-reduce-network": lambda _: all_reduce(run, "network"),
        "all-reduce-peers": lambda _: all_reduce_peers(run),
        "simulation": lambda _: simulation(run),
    }
    for primitive in sorted({*primitives, *found}):
        ladder = found.get(primitive)
        known[f"ladder-{primitive}"] = lambda _, ladder=ladder: ladder_block(run, ladder)
    charts = run.folder / schema.CHARTS_FOLDER
    for path in sorted(charts.glob("*.svg")):
        known[f"chart-{path.stem}"] = lambda folder, path=path: chart(path, folder)
    return known


def chart(path: Path, folder: Path) -> str:
    link = Path(os.path.relpath(path.resolve(), folder.resolve())).as_posix()
    return f"![{path.stem.replace('-', ' ')}]({link})"


def source(run: Run) -> str:
    return f"{provenance(run).line}; run `{run.folder.resolve().name}`."


def with_source(run: Run, text: str | None, between: str = " ") -> str | None:
    return f"{source(run)}{between}{text}" if text else None


def with_machine(folder: Path, text: str, between: str = " ") -> str:
    """With the machine of a run of peers; the oldest name none."""
    about = read_json(folder / schema.ENVIRONMENT_FILE) or {}
    known = "cpu_model" in about
    return f"{source(Run(folder, environment=about))}{between}{text}" if known else text


def source_and_network(run: Run) -> str:
    where = (run.environment or {}).get("network")
    return source(run) + (f" Network: {where}." if where else "")


def machine(run: Run) -> str | None:
    if run.environment is None:
        return None
    environment = run.environment
    memory = environment.get("memory_bytes")
    libraries = environment.get("libraries") or {}
    caches = environment.get("caches")
    if isinstance(caches, dict):
        caches = ", ".join(f"{level} {binary_size(size)}" for level, size in caches.items())
    facts = {
        "CPU": environment.get("cpu_model"),
        "cores": environment.get("cores"),
        "threads available": environment.get("threads_available"),
        "instruction sets": ", ".join(environment.get("isa") or []),
        "caches": caches,
        "memory": binary_size(memory) if memory else None,
        "GPU": environment.get("gpu"),
        "compiler": environment.get("compiler"),
        "flags": environment.get("compiler_flags"),
        # The version alone: Open MPI's text continues with its package and date.
        "libraries": ", ".join(f"{name} {str(version).partition(',')[0]}"
                               for name, version in libraries.items()),
        "counters": environment.get("counters"),
        "noise": environment.get("quiet_sentence"),
    }
    rows = [(name, markdown.cell(value)) for name, value in facts.items()
            if value not in (None, "")]
    return with_source(run, markdown.table(("", ""), rows, 2), "\n\n")


def answer(run: Run) -> str | None:
    """The sentences of the attributions, and a line for each rung of the main chain, for what the
    compiler makes of the best plain loop, and for the fastest library."""
    parts = [f"{attribution.sentence(found)}\n" for found in attribution.attributions(run)]
    chain = main_chain(ladders(run))
    if chain is None:
        return "\n".join([source(run) + "\n", *parts]).rstrip() if parts else None

    def line(bar: Bar, adds: str) -> list[str]:
        def mean(column: str) -> float | None:
            return chain.ladder.column_mean(column, bar.rung, None, bar.resource)

        large = chain.large.get(bar.rung.name)
        return [f"`{bar.rung.name}`", adds, bar.resource.label, number(mean("gflops_per_s"), ".1f"),
                times(bar.gain and bar.gain.value), times(large and large.value),
                times(bar.total.value), times(mean("speedup_vs_vendor"))]

    labels = ["rung", "adds", "on", "GFLOP/s", "gain", "large", "over the first", "library"]
    lines = [labels, *(line(bar, bar.rung.idea) for bar in chain.bars)]
    lines += [line(bar, what) for bar, what in (
        (chain.compiler, "the compiler alone"),
        *((library, "the fastest library") for library in chain.libraries)) if bar]
    if not chain.large:
        lines = [cells[:5] + cells[6:] for cells in lines]
    count = plural(chain.bars[-1].total.count, "problem")
    large = max((mean.count for mean in chain.large.values()), default=0)
    about = (f"{source(run)} Geometric means over {count} of {chain.ladder.primitive}; `gain`: "
             "over the line above; "
             + (f"`large`: the same over the {large} on which the last rung takes 20 us or more; "
                if large else "")
             + "`library`: over the fastest library of each problem on as many threads"
             + (f" ({named})." if (named := libraries_of(chain.ladder)) else "."))
    return "\n".join([about, "", markdown.table(lines[0], lines[1:], 3),
                      *(["", ALL_ORDERS, ""] if parts else []), *parts]).rstrip()


ALL_ORDERS = ("What a technique buys depends on what is there before it. All combinations of "
              "techniques, in code that is simpler than the rungs ([how](docs/measuring.md)):")


def libraries_of(ladder: Ladder) -> str:
    """As their rows name them: with the version and the kernels in use."""
    remarks = [Counter(row["reason"].partition(";")[0] for row in ladder.of(rung)).most_common(1)
               for rung in ladder.measured_rungs if rung.technique == "vendor"]
    return ", ".join(dict.fromkeys(remark for [(remark, _)] in remarks if remark))


def summary(run: Run, by_direction: bool) -> str | None:
    table = summary_table(ladders(run), by_direction)
    over = "the problems" if by_direction else "the problems of all directions"
    return (f"{source(run)} Geometric means over {over}; `equal`: direct algorithms only, the "
            f"best rung{equal_rungs(ladders(run))} over the libraries'.\n\n{table}"
            if table else None)


def equal_rungs(found: Sequence[Ladder]) -> str:
    """Those that are not the best rungs themselves."""
    best = [best_rung(ladder, None, resource) for ladder in found
            for resource in resources_of(ladder.measured)]
    names = dict.fromkeys(f"`{b.equal_rung.name}`" for b in best
                          if b and b.equal_rung and b.equal_rung != b.rung)
    return f" ({', '.join(names)})" if names else ""


def summary_table(found: Sequence[Ladder], by_direction: bool) -> str | None:
    rows = []
    for ladder in found:
        parts = ([([ladder.primitive, direction], direction) for direction in ladder.directions]
                 if by_direction else [([name], part) for name, part in parts_of(ladder)])
        for names, direction in parts:
            for resource in resources_of(ladder.measured):
                best = best_rung(ladder, direction, resource)
                if best and (best.over_first or best.over_vendor or best.percent_of_roof):
                    rows.append([*names, resource.label, f"`{best.rung.name}`",
                                 times(best.over_first), times(best.over_vendor),
                                 times(best.over_vendor_equal),
                                 percent(best.percent_of_roof), str(best.problems)])
    if not rows:
        return None
    labels = ["primitive", *(["direction"] if by_direction else []), "on", "best rung",
              "over first rung", "over vendor", "equal", "share of roof", "problems"]
    return markdown.table(labels, rows, len(labels) - 5)


def ladder_block(run: Run, ladder: Ladder | None) -> str | None:
    """One table per direction: every rung on its most threads, or ranks. The page has the
    others."""
    if ladder is None or not ladder.measured:
        return None
    labels = ["rung", "builds on", "on", "gain", f"over {ladder.baseline}", "over vendor",
              "equal", "of roof", "problems"]
    tables = []
    for direction in ladder.directions:
        here = [rung for rung in ladder.measured_rungs if ladder.of(rung, direction)]
        lines = []
        for group in groups_of(ladder, here):
            shown = ([best_of_branch(ladder, group.rungs, direction)] if group.is_branch
                     else group.rungs)
            lines += [ladder_line(ladder, rung, direction, len(group.rungs) - len(shown) + 1)
                      for rung in shown]
        if lines:
            tables.append((direction, lines))
    vendor, equal = labels.index("over vendor"), labels.index("equal")
    has_equal = any(line[equal] not in (MISSING, line[vendor])
                    for _, lines in tables for line in lines)
    parts = [f"{source(run)} Geometric means over the problems, of every rung on the most threads "
             "that it ran on: the main ladder, what the compiler makes of its loops, a line for "
             "each side branch, the libraries. (n): the fastest of n rungs. `gain` is over the "
             "rung that it builds on"
             + ("; `equal`: over the fastest library with the same kind of algorithm (direct, "
                "Winograd or FFT)." if has_equal else ".")]
    for direction, lines in tables:
        if not has_equal:
            lines = [line[:equal] + line[equal + 1:] for line in lines]
        parts.append((f"**{direction}**\n\n" if direction else "") + markdown.table(
            labels if has_equal else labels[:equal] + labels[equal + 1:], lines, 3))
    return "\n\n".join(parts)


def ladder_line(ladder: Ladder, rung: Rung, direction: str, rungs: int) -> list[str]:
    """rungs: those of the branch whose best this is."""
    where = rung, direction, resources_of(ladder.of(rung, direction))[-1]
    gain, total = mean_ratio(ladder.gains(*where)), mean_ratio(ladder.speedups(*where))
    base = ladder.base_of(rung)
    problems = {(row["problem"], row["cache"]) for row in ladder.compared(*where)}
    return [f"`{rung.name}`" + (f" ({rungs})" if rungs > 1 else ""),
            f"`{split_isa(base.name)[0]}`" if base else MISSING, where[2].label,
            times(gain and gain.value), times(total and total.value),
            times(ladder.column_mean("speedup_vs_vendor", *where)),
            times(ladder.column_mean("speedup_vs_vendor_equal", *where)),
            percent(ladder.column_mean("percent_of_roof", *where)), str(len(problems))]


def steps(run: Run) -> str | None:
    """One table per network."""
    found = configurations(run.step or [])
    if not found:
        return None
    parts = [f"{source(run)} Milliseconds per step; over ranks the mode is synchronous where none "
             "is named."]
    phases = ("forward", "backward", "update")
    for name, here in by_network(found).items():
        base = baseline(name, here)
        rows = []
        for c in here:
            usual = ("", "single", "ablate", *["synchronous"] * (c.resource.ranks > 1))
            rows.append([f"`{c.use}`",
                         c.resource.label + (f", {c.mode}" if c.mode not in usual else ""),
                         milliseconds(c.total_s), *(milliseconds(c.phase_s(p)) for p in phases),
                         times(base.total_s / c.total_s),
                         f"{c.total_s / c.predicted_s:.2f}" if c.predicted_s else MISSING])
        labels = ("rungs", "on", "step", *phases, f"over `{base.use}`", "measured / predicted")
        parts += [f"**{name}**", markdown.table(labels, rows, 2)]
    return "\n\n".join(parts)


def inference(run: Run) -> str | None:
    return with_source(run, inference_tables(run))


def inference_tables(run: Run) -> str | None:
    """One table per network."""
    found = services(run.inference or [])
    if not found:
        return None
    parts = ["Milliseconds of a request; the layers that take most of it."]
    for name, here in grouped(found, lambda service: service.network).items():
        rows = [[f"`{s.use}`", s.place, str(s.batch), milliseconds(s.total["median_s"]),
                 *(milliseconds(s.total[column]) for column in ("p90_s", "p99_s", "max_s")),
                 number(s.total["samples_per_s"], ".4g"),
                 ", ".join(f"{row['layer']} {row['share']:.0f} %"
                           for row in s.slowest_layers[:2]) or MISSING]
                for s in here]
        labels = ("rungs", "on", "batch", "median", "p90", "p99", "longest", "samples/s", "layers")
        parts += [f"**{name}**", markdown.table(labels, rows, 2)]
    return "\n\n".join(parts)


def instruction_sets(folder: Path) -> str | None:
    if not folder.is_dir():
        return None
    run = load_run(folder, ("environment", "ceilings", "summary"))
    return with_source(run, instruction_sets_table(run))


def instruction_sets_table(run: Run) -> str | None:
    peak = peak_of_each(run)
    found = builds(ladders(run), peak)
    return instruction_sets_text(found, peak) if found else None


def instruction_sets_text(found: Sequence[Builds], peak: dict[str, float]) -> str:
    """A line for each rung that was measured as built for several instruction sets."""
    peak = {isa: value for isa, value in peak.items() if any(isa in b.rates for b in found)}
    rows = [[b.primitive, f"`{b.family}`",
             *(cell for isa in peak for cell in (
                 number(b.rates.get(isa), ".3g"),
                 percent(100 * b.rates[isa] / peak[isa] if isa in b.rates else None))),
             str(b.problems)] for b in found]
    labels = ("primitive", "rung", *(label for isa in peak for label in (isa, "of its peak")),
              "problems")
    measured = ", ".join(f"{isa} {value:.3g}" for isa, value in peak.items())
    return ("One source, built for each instruction set, on one thread: GFLOP/s, geometric means "
            f"over the problems, and the share of the peak of that set ({measured} GFLOP/s"
            + ("; SSE has no FMA: it multiplies and adds apart" if "sse42" in peak else "")
            + "). Rungs that save multiplications are left out.\n\n"
            + markdown.table(labels, rows, 2))


def sweep(run: Run) -> str | None:
    return with_source(run, sweep_table(run))


def sweep_table(run: Run) -> str | None:
    """A line for each pair of counts, a column for each network."""
    found = thread_sweep(run.step or [])
    if not found:
        return None
    columns = list(dict.fromkeys((c.network, c.use) for c in found))
    pairs = sorted({(c.operations_at_once, c.resource.threads) for c in found})
    times_s = {(c.network, c.use, c.operations_at_once, c.resource.threads): c.total_s
               for c in found}
    rows = []
    for pair in pairs:
        cells = []
        for column in columns:
            here, first = times_s.get((*column, *pair)), times_s.get((*column, *pairs[0]))
            cells.append(milliseconds(here)
                         + (f" ({times(first / here)})" if here and first else ""))
        rows.append([str(pair[0]), str(pair[1]), *cells])
    labels = ["operations at once", "threads in each",
              *(f"{network}, `{use}`" for network, use in columns)]
    return ("Milliseconds per step and gain over the first line; threads were free "
            "to move between the cores.\n\n" + markdown.table(labels, rows, 2))


def peers(run: Run) -> str | None:
    """The fastest mode of PyTorch beside our best rungs and the libraries'."""
    folder = run.folder / "peers"
    step = read_table(folder / "step.csv", [])
    about = read_json(folder / "environment.json")
    if not step or not about:
        return None
    rows = []
    groups = grouped(configurations(step), lambda c: (c.network, c.resource))
    for (name, resource), found in groups.items():
        own, vendor, peer = (fastest(c for c in found if c.use == use)
                             for use in ("best", "vendor", "pytorch"))
        if own is None or peer is None:
            continue
        rows.append([name, resource.label, milliseconds(own.total_s),
                     milliseconds(vendor.total_s if vendor else None),
                     milliseconds(peer.total_s), peer.mode, times(peer.total_s / own.total_s)])
    labels = ("network", "on", "`best`, ms", "`vendor`, ms", "PyTorch, ms", "its fastest mode",
              "PyTorch / `best`")
    return with_machine(folder, f"PyTorch {about['pytorch']}; medians of {about['rounds']} rounds "
                        f"in turns.\n\n{markdown.table(labels, rows, 2)}")


def inference_peers(run: Run) -> str | None:
    """A line for each network, batch and number of threads: our fp32 rungs, and the latencies of
    the others relative to theirs."""
    folder = run.folder / "peers/inference"
    rows = [row for row in read_table(folder / "peers_inference.csv", []) or []
            if row["status"] == "ok"]
    about = read_json(folder / "environment.json")
    if not rows or not about:
        return None
    lines = []
    groups = grouped(rows, lambda row: (row["network"], row["batch"], row["threads"]))
    for (name, batch, threads), found in groups.items():
        own = next((row for row in found if row["use"] == "best"), None)
        if own:
            ratios = [min((row["ratio"] for row in found
                           if row["use"] == use and row["ratio"] is not None), default=None)
                      for use in ("vendor", "pytorch", "onnxruntime")]
            lines.append([name, str(batch), plural(threads, "thread"),
                          milliseconds(own["median_s"]), *map(times, ratios)])
    labels = ("network", "batch", "on", "`best`, ms", "`vendor`", "PyTorch, its faster mode",
              "ONNX Runtime")
    return with_machine(
        folder,
        f"PyTorch {about.get('pytorch') or 'not measured'}, ONNX Runtime "
        f"{about.get('onnxruntime') or 'not measured'}; medians of {about['rounds']} rounds in "
        "turns. Milliseconds of a request with `best` in fp32, threads inside it; the others "
        "relative to it, with their calls from Python.\n\n"
        + markdown.table(labels, lines, 3))


def steps_over_ranks(run: Run) -> str | None:
    folder = run.folder / "all_reduce"
    if (folder / "step.csv").exists():
        return steps(load_run(folder, ("environment", "step")))
    return steps(replace(run, step=[row for row in run.step or [] if (row["ranks"] or 1) > 1]))


def all_reduce(run: Run, name: str = "") -> str | None:
    folder = run.folder / name
    if not folder.is_dir():
        return None
    ranks = load_run(folder, ("environment", "summary"))
    rows = network.fastest(network.all_reduce_rows(ranks))
    if not rows:
        return None
    return (f"{source_and_network(ranks)} Times in us.\n\n"
            + markdown.table(network.LABELS, rows, 0))


def all_reduce_peers(run: Run) -> str | None:
    """A line per number of ranks and length: our fastest rungs and each library, in us."""
    folder = run.folder / "all_reduce/peers"
    rows = [row for row in read_table(folder / "peers_all_reduce.csv", []) or []
            if row["status"] == "ok"]
    ours = "stepladder "
    libraries = list(dict.fromkeys(row["library"] for row in rows
                                   if not row["library"].startswith(ours)))
    parts = []
    for ranks in sorted({row["ranks"] for row in rows}):
        lines, beside = [], []
        for size in sorted({row["bytes"] for row in rows if row["ranks"] == ranks}):
            here = {row["library"]: row["median_s"] for row in rows
                    if (row["ranks"], row["bytes"]) == (ranks, size)}
            own = {name: time for name, time in here.items() if name.startswith(ours)}
            theirs = min((here[name] for name in libraries if name in here), default=None)
            if not own or theirs is None:
                continue
            best = min(own, key=own.get)
            copied = min((time for name, time in own.items() if "shared_window_copy" in name),
                         default=None)
            lines.append([binary_size(size), best.removeprefix(ours), microseconds(own[best]),
                          times(theirs / own[best]), microseconds(copied),
                          times(theirs / copied if copied else None)])
            beside.append([binary_size(size),
                           *(microseconds(here.get(name)) for name in libraries)])
        labels = ("length", "our fastest rung", "us", "library / ours",
                  "`shared_window_copy`, us", "library / it")
        parts += [f"**{plural(ranks, 'rank')}**; library: the fastest",
                  markdown.table(labels, lines, 0), "Microseconds of each library:",
                  markdown.table(["length", *libraries], beside, 0)]
    if not parts:
        return None
    return with_machine(folder, "\n\n".join(parts), "\n\n")


def simulation(run: Run) -> str | None:
    folder = run.folder / "simulation"
    rows = read_table(folder / "scaling.csv", []) or []
    groups = grouped(rows, lambda row: (row["network"], row["platform"], row["nodes"]))
    lines = []
    for (network_name, platform, nodes), here in sorted(groups.items()):
        weak = [row for row in here if row["scaling"] == "weak"]
        own = min(filter(is_rung, weak), key=lambda row: row["step_s"], default=None)
        if own is None:
            continue
        efficiency = {row["variant"]: 100 * row["efficiency"] for row in weak}
        strong = {row["variant"]: 100 * row["efficiency"] for row in here
                  if row["scaling"] == "strong"}
        lines.append([network_name, platform, f"{nodes:,}", f"`{own['variant']}`",
                      milliseconds(own["all_reduce_s"]), percent(efficiency[own["variant"]]),
                      percent(efficiency.get("mpi_allreduce")),
                      percent(efficiency.get("gather_broadcast")),
                      percent(strong.get(own["variant"]))])
    if not lines:
        return None
    about = read_json(folder / "simulation.json") or {}
    compute = "; ".join(f"{name} {milliseconds(value['seconds'])} ms"
                        for name, value in (about.get("compute") or {}).items()
                        if any(key[0] == name for key in groups))
    labels = ("network", "cluster", "nodes", "fastest rung", "ms", "efficiency", "MPI",
              "`gather_broadcast`", "strong")
    return (f"{about.get('simulator')}; commit {about.get('commit') or 'unknown'}. Compute of a "
            f"step: {compute}; ms: time of the all-reduce. Efficiency: compute / step, constant "
            "batch per node; MPI: that with MPI_Allreduce; strong: constant global batch, that of "
            "64 nodes.\n\n" + markdown.table(labels, lines, 4))


def training_modes(run: Run, name: str = "", family: str | None = None) -> str | None:
    folder = run.folder / name
    if not (folder / "train.csv").exists():
        return None
    compared = load_run(folder, ("environment", "train"))
    found = modes.compare(compared)
    if family:
        found = [c for c in found if c.mode == modes.SINGLE or modes.family_of(c.mode) == family]
    table = mode_tables.markdown_tables(found)
    return f"{source_and_network(compared)}\n\n{table}" if table else None


def data_parallel_peers(run: Run) -> str | None:
    """Samples/s of our data-parallel step and of PyTorch's, with the ratio of both."""
    folder = run.folder / "modes/peers"
    rows = read_table(folder / "peers_data_parallel.csv", []) or []
    about = read_json(folder / "environment.json")
    if not rows or not about:
        return None
    lines = []
    for row in rows:
        program = "PyTorch" if row["use"] == "pytorch" else f"`{row['use']}`"
        head = [row["network"], str(row["ranks"]), f"{program}, {row['mode']}"]
        if row["status"] != "ok":
            lines.append([*head, f"failed: {row['reason']}", *[MISSING] * 3])
            continue
        ratio = (f"{times(row['ratio'])} ({times(row['ratio_ci_low'])} to "
                 f"{times(row['ratio_ci_high'])})"
                 if row["ratio"] is not None else MISSING)
        lines.append([*head, milliseconds(row["median_s"]), number(row["samples_per_s"], ",.0f"),
                      percent(100 * row["exposed_share"]), ratio])
    labels = ("network", "ranks", "step", "ms", "samples/s", "exposed communication", "`best` / it")
    return with_machine(
        folder,
        f"PyTorch {about['pytorch']} with DistributedDataParallel over gloo; medians of "
        f"{about['rounds']} rounds in turns, one thread per rank.\n\n"
        + markdown.table(labels, lines, 3))


def training_table(run: Run) -> str | None:
    trainings = split_trainings(run.train or [])
    if not trainings:
        return None
    rows = []
    for training_rows in trainings:
        last = training_rows[-1]
        seed = f", seed {last['seed']}" if last.get("seed") is not None else ""
        accuracy = [row["accuracy"] for row in training_rows if row["accuracy"] is not None]
        rows.append([name_of(last) + seed, number(last["step"], "d"),
                     number(last["seconds"], ".1f"), number(last["samples_per_s"], ".0f"),
                     number(last["loss"], ".3f"),
                     f"{100 * accuracy[-1]:.1f} %" if accuracy else MISSING])
    labels = ("training", "steps", "seconds", "samples/s", "last loss", "accuracy")
    return markdown.table(labels, rows, 1)
