"""What the interactive training step needs: times inside measured steps, and times of rungs
alone."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from plots.data.chain import main_step
from plots.data.names import is_cpu, ladder_order, technique_in_name
from plots.data.ratios import Ladder, Resource, is_set_apart, resource_of
from plots.data.reading import Row, Run
from plots.data.steps import Configuration, by_network, configurations
from plots.page.shapes import networks

UPDATE = "all parameters"  # the operations of the update, which summary.csv measures as one


def operations(c: Configuration, problems: dict[str, str],
               optimizer: str | None) -> dict[str, dict[str, Any]]:
    """The operations of a step by layer and phase: layer, phase, primitive and problem (None:
    outside the ladders), variant, seconds."""
    found: dict[str, dict[str, Any]] = {}
    for row in c.rows:
        layer, phase = row["layer"], row["phase"]
        key = f"{c.network}.{layer}"
        names = [f"{key}.forward",
                 f"{key}.forward.bias_relu"] if phase == "forward" else [key, f"{key}.backward"]
        problem = next((name for name in names if name in problems), None)
        primitive = problems[problem] if problem else None
        if phase == "update" and problems.get(f"{c.network}/{optimizer}"):
            layer, problem, primitive = UPDATE, f"{c.network}/{optimizer}", "sgd_update"
        entry = found.setdefault(f"{layer}|{phase}", {
            "layer": layer, "phase": phase, "primitive": primitive, "problem": problem,
            "variant": row["variant"], "seconds": 0.0})
        entry["seconds"] += row["median_s"] or 0.0
    return found


def problem_name(row: Row) -> str:
    problem, direction = row["problem"], row["direction"]
    return f"{problem}/{direction}" if row["primitive"] == "sgd_update" else problem


def alone(ladders: Iterable[Ladder], resource: Resource,
          wanted: set[str]) -> dict[str, dict[str, dict[str, float]]]:
    """Seconds by primitive, variant and problem: on these threads, or on the most below them."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for ladder in ladders:
        order = [rung.name for rung in ladder_order(ladder.rungs)]
        threads_of: dict[tuple[str, str], int] = {}
        of_variant: dict[str, dict[str, float]] = {}
        for row in ladder.measured:
            r, problem = resource_of(row), problem_name(row)
            if (r.ranks != 1 or r.threads > resource.threads or r.device != resource.device
                or problem not in wanted
                    or is_set_apart(row) or row["cache"] == "cold"):
                continue
            key = (row["variant"], problem)
            if threads_of.get(key, 0) <= r.threads:
                threads_of[key] = r.threads
                of_variant.setdefault(row["variant"], {})[problem] = float(f"{row['median_s']:.4g}")
        if of_variant:
            found[ladder.primitive] = {name: of_variant[name]
                                       for name in order if name in of_variant}
    return found


def swap_data(run: Run, ladders: list[Ladder], root: Path) -> dict[str, Any] | None:
    found = [c for c in configurations(run.step or []) if c.resource.ranks == 1
             and is_cpu(c.resource.device)]
    if not found:
        return None
    described = networks(root)
    problems = {problem_name(row): ladder.primitive for ladder in ladders for row in ladder.measured
                if resource_of(row).ranks == 1}
    techniques = {row["variant"]: row["technique"] for ladder in ladders for row in ladder.measured}
    data: dict[str, Any] = {"networks": {}, "techniques": techniques}
    main = main_step(run)  # of the first screen
    for network, here in sorted(by_network(found).items(),
                                key=lambda item: not main or item[0] != main.own.network):
        optimizer = described[network].optimizer if network in described else None
        threads: dict[str, Any] = {}
        for c in here:
            made = operations(c, problems, optimizer)
            place = threads.setdefault(c.resource.label,
                                       {"uses": {}, "alone": {}, "operations": []})
            if not place["operations"]:
                place["operations"] = [{k: o[k] for k in ("layer", "phase", "primitive", "problem")}
                                       for o in made.values()]
                place["keys"] = list(made)
                wanted = {o["problem"] for o in made.values() if o["problem"]}
                place["alone"] = alone(ladders, c.resource, wanted)
            place["uses"][c.use] = {
                "total": float(f"{c.total_s:.5g}"),
                "seconds": [float(f"{made[k]['seconds']:.4g}") if k in made else 0
                            for k in place["keys"]],
                "variants": [made[k]["variant"] if k in made else "" for k in place["keys"]]}
            for o in made.values():
                techniques.setdefault(o["variant"], technique_in_name(o["variant"]) or "none")
        # Steps whose rungs all run in one thread are measured on the first number of threads alone.
        label, first = next(iter(threads.items()))
        for place in threads.values():
            if place["keys"] == first["keys"]:
                place["uses"] |= {f"{use}, {label}": step for use, step in first["uses"].items()
                                  if use not in place["uses"]}
        data["networks"][network] = threads
    return data
