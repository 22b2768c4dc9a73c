"""Names of variants: family, instruction set, technique, and the order of a ladder.

A source that is built for several instruction sets gives one variant for each, with the set as a
suffix: simd_avx512 is the AVX-512 build of the family simd. `builds_on` names the family.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from plots.data.schema import TECHNIQUES

ISA_NARROW_TO_WIDE = ("sse42", "avx2", "avx512")


class Rung(NamedTuple):
    """A variant; `builds_on` is as in the file, empty for a first rung."""
    name: str
    technique: str
    builds_on: str
    device: str = ""
    idea: str = ""  # what it adds to the rung below; files of former versions have none


# Of all_reduce: it runs the rung that the cost model predicts to be the fastest.
BY_MODEL = "by_model"


def is_rung(row: Mapping[str, Any]) -> bool:
    """Whether a row is of one of our rungs: not of a library, and not by_model."""
    return row["technique"] != "vendor" and row["variant"] != BY_MODEL


def is_by_compiler(rung: Rung) -> bool:
    """Whether it is a serial rung as the compiler alone vectorizes it, such as blocked_o3_avx2."""
    return split_isa(rung.name)[0].endswith("_o3")


def split_isa(variant: str) -> tuple[str, str]:
    """('simd', 'avx512') for simd_avx512; ('blocked', '') for blocked."""
    family, _, suffix = variant.rpartition("_")
    return (family, suffix) if family and suffix in ISA_NARROW_TO_WIDE else (variant, "")


def isa_width(variant: str) -> int:
    """Index in ISA_NARROW_TO_WIDE, -1 without a suffix."""
    isa = split_isa(variant)[1]
    return ISA_NARROW_TO_WIDE.index(isa) if isa else -1


def resolve_builds_on(rung: Rung, present: Collection[str]) -> str | None:
    """The variant in `present` that the rung builds on, or None.

    An exact name has priority. Otherwise the name is a family: the build for the rung's own
    instruction set if there is one (packed_avx2 builds on simd_avx2), else the widest build.
    """
    if not rung.builds_on:
        return None
    if rung.builds_on in present:
        return rung.builds_on
    builds = [name for name in present if split_isa(name)[0] == rung.builds_on]
    same_isa = [name for name in builds if split_isa(name)[1] == split_isa(rung.name)[1]]
    return max(same_isa or builds, key=isa_width, default=None)


def widest_builds(rungs: Iterable[Rung]) -> list[Rung]:
    """The build of each family for the widest instruction set, in the given order."""
    rungs = list(rungs)
    widest: dict[str, int] = {}
    for rung in rungs:
        family = split_isa(rung.name)[0]
        widest[family] = max(widest.get(family, -1), isa_width(rung.name))
    return [rung for rung in rungs if isa_width(rung.name) == widest[split_isa(rung.name)[0]]]


def ladder_order(rungs: Iterable[Rung]) -> list[Rung]:
    """The order of `stepladder list --full`: CPU, CUDA, OpenCL; our rungs before the vendors'
    libraries, then the number of rungs below, name, and instruction set."""
    by_name = {rung.name: rung for rung in rungs}

    def height(rung: Rung) -> int:
        seen = {rung.name}
        below = resolve_builds_on(rung, by_name)
        while below is not None and below not in seen:
            seen.add(below)
            below = resolve_builds_on(by_name[below], by_name)
        return len(seen) - 1

    def place(rung: Rung) -> tuple:
        on_gpu = rung.technique == "cuda" or not is_cpu(rung.device)
        return (2 if rung.technique == "opencl" else on_gpu, rung.technique == "vendor",
                height(rung), split_isa(rung.name)[0], isa_width(rung.name))

    return sorted(by_name.values(), key=place)


def is_cpu(device: str) -> bool:
    return device in ("", "cpu")


def technique_in_name(variant: str) -> str:
    """The last word of a name that is a technique (simd_openmp: openmp), or ''.

    For files without a technique column, if summary.csv does not have the variant.
    """
    words = [word for word in variant.split("_") if word in TECHNIQUES]
    return words[-1] if words else ""
