"""The compiled k loop of the register tile keeps its accumulators in registers."""

import re
import subprocess

import pytest

# One FMA for each vector of the tile; SSE4.2 multiplies and adds.
TILES = {  # ISA: (rows and vectors of GemmTile, arithmetic instruction, number of them)
    "sse42": ("6l, 2l", "addps", 12),
    "avx2": ("6l, 2l", "vfmadd", 12),
    "avx512": ("8l, 3l", "vfmadd", 24),
}


def functions(program):
    """Demangled name -> (address, size)."""
    listing = subprocess.run(["nm", "--demangle", "--print-size", program], capture_output=True,
                             text=True, check=True)
    found = {}
    for line in listing.stdout.splitlines():
        fields = line.split(maxsplit=3)
        if len(fields) == 4 and fields[2] in "tTwW":
            found[fields[3]] = (int(fields[0], 16), int(fields[1], 16))
    return found


def instructions(program, address, size):
    """(address, text) of each."""
    listing = subprocess.run([
        "objdump", "--disassemble", "--no-show-raw-insn", f"--start-address={address}",
        f"--stop-address={address + size}", program], capture_output=True, text=True, check=True)
    matches = (re.match(r"\s*([0-9a-f]+):\s+(.*)", line) for line in listing.stdout.splitlines())
    return [(int(m[1], 16), m[2]) for m in matches if m]


def loops(code):
    """The instructions between each backward jump and its target, shortest first."""
    found = []
    for at, text in code:
        jump = re.match(r"j\w+\s+([0-9a-f]+)\b", text)
        if jump and code[0][0] <= int(jump[1], 16) <= at:
            found.append([t for a, t in code if int(jump[1], 16) <= a <= at])
    return sorted(found, key=len)


# How the tile reads b, by GemmTile::Rows.
SOURCES = {"padded": 0, "exact": 1, "packed": 2}


@pytest.mark.without_sanitizers("each load of the loop is checked")
@pytest.mark.parametrize("isa", TILES)
@pytest.mark.parametrize("source", SOURCES)
def test_the_k_loop_of_the_tile_keeps_its_accumulators_in_registers(stepladder, isa, source):
    shape, arithmetic, count = TILES[isa]
    names = functions(stepladder.path)
    # tile, and multiply_tile where it is not inlined
    tile = re.compile(rf"tile<\(stepladder::{isa}::GemmTile<{shape}, xsimd::batch<.*?>::Rows\)"
                      rf"{SOURCES[source]}, {shape}, stepladder::{isa}::IdentityEpilogue")

    def arithmetic_in(loop):
        return sum(text.startswith(arithmetic) for text in loop)

    bodies = [
        loop for name, place in names.items() if tile.search(name)
        for loop in loops(instructions(stepladder.path, *place)) if arithmetic_in(loop) >= count]
    assert bodies, f"no function with {tile.pattern} has a loop with {count} {arithmetic}"
    body = bodies[0]
    assert arithmetic_in(body) == count
    on_stack = [text for text in body if re.search(r"\(%r[sb]p", text)]
    if source != "padded":  # it has more pointers than general registers
        on_stack = [text for text in on_stack if "mm" in text]
    assert not on_stack, "\n".join(body)
