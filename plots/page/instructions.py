"""The instructions of a rung's inner loop, from its object file in the build folder.

A compiler's output has no mark for the hottest loop. Of the innermost loops of the file, the one
with most floating-point arithmetic, if it is dense, is shown, which is a guess, and the page says
so.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from plots.data.names import split_isa

LONGEST = 160        # instructions of a loop; longer ones are not innermost loops of one idea
TIMEOUT_S = 20
ARITHMETIC = re.compile(
    r"v?(fn?m(add|sub)\d*|add|sub|mul|div|max|min|sqrt|cmp\w*|rsqrt\w*)[ps][sd]\b")
LINE = re.compile(r"\s*(?P<at>[0-9a-f]+):\s+(?P<text>.*?)\s*$")
CONDITIONAL_JUMP = re.compile(r"j(?!mp)\w+\s+([0-9a-f]+)\b")
LEAVES = re.compile(r"(ret|call|jmp)\b")  # not in a loop that is worth showing

Code = list[tuple[int, str]]  # address and text


class Loop(NamedTuple):
    instructions: list[str]
    arithmetic: int
    floats: int  # that the arithmetic of one pass has


def object_file(build: Path, source: str, variant: str) -> Path | None:
    """Of the variant's instruction set, in the way of CMake: CMakeFiles/<target>.dir/<source>.o."""
    isa = split_isa(variant)[1]
    found = sorted(build.glob(f"CMakeFiles/*{f'_{isa}' if isa else ''}.dir/{source}.o"))
    return found[0] if found else None


def inner_loop(build: Path, root: Path, source: str, headers: Sequence[str], variant: str,
               compiled_in: str = "") -> Loop | str:
    """The loop, or why there is none. `compiled_in` is the folder of the build folder with the file
    that includes the source, "" if the source is compiled itself."""
    path = object_file(build, compiled_in + source, variant)
    if path is None:
        return "the build folder has no object file of this source; make build makes it"
    newest = max((root / name).stat().st_mtime for name in (source, *headers))
    if path.stat().st_mtime < newest:
        return "its object file is older than the source; make build compiles it again"
    if not shutil.which("objdump"):
        return "objdump is not on this machine"
    try:
        listing = subprocess.run(["objdump", "--disassemble", "--no-show-raw-insn", "-M", "intel",
                                  str(path)],
                                 capture_output=True, text=True, timeout=TIMEOUT_S,
                                 check=True).stdout
    except (subprocess.SubprocessError, OSError):
        return "objdump could not read its object file"
    best = max((loop for code in functions(listing) for loop in innermost_loops(code)),
               key=lambda loop: loop.floats ** 2 / len(loop.instructions), default=None)
    if best is None or not best.arithmetic:
        return "its object file has no simple loop with floating-point instructions"
    return best


def functions(listing: str) -> Iterator[Code]:
    code: Code = []
    for line in listing.splitlines():
        if line.endswith(">:"):
            if code:
                yield code
            code = []
        elif match := LINE.match(line):
            code.append((int(match["at"], 16), match["text"]))
    if code:
        yield code


def innermost_loops(code: Code) -> Iterator[Loop]:
    """Between a backward jump and its target, without another such jump inside."""
    place = {at: i for i, (at, _) in enumerate(code)}
    last_start = -1
    for i, (at, text) in enumerate(code):
        jump = CONDITIONAL_JUMP.match(text)
        start = place.get(int(jump[1], 16)) if jump else None
        if start is None or start > i:
            continue
        if start > last_start and i - start < LONGEST:
            body = [shown(t) for _, t in code[start:i + 1]]
            if not any(LEAVES.match(t) for t in body):
                arithmetic = [t for t in body if ARITHMETIC.match(t)]
                yield Loop(body, len(arithmetic), sum(map(floats_of, arithmetic)))
        last_start = max(last_start, start)


def floats_of(instruction: str) -> int:
    if not re.match(r"\S+p[sd]\b", instruction):
        return 1
    return 16 if "zmm" in instruction else 8 if "ymm" in instruction else 4


def shown(text: str) -> str:
    """Without the symbols that objdump adds to addresses."""
    return re.sub(r"\s*(#.*|<[^>]*>)$", "", re.sub(r"\s+", " ", text))
