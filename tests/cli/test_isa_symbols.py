"""No file that is compiled for an ISA gives its code to a file of a narrower one, and no serial
rung is vectorized.

Code of a file that is compiled once per ISA is in the namespace of that ISA. What it shares with
others, as the members of a contract, is defined in the baseline objects too, which come first on
the link line: the linker keeps the first copy.
"""

import re
import shutil
import subprocess

import pytest

ISAS = ["sse42", "avx2", "avx512"]


def functions(program_path, isa):
    """Mangled names of the project's functions that the linker could merge with those of other
    files."""
    objects = list((program_path.parent / f"CMakeFiles/stepladder_kernels_{isa}.dir").rglob("*.o"))
    if shutil.which("nm") is None or not objects:
        pytest.skip("nm or the object files were not found")
    listing = subprocess.run(["nm", "--defined-only", *objects], capture_output=True, text=True,
                             check=True).stdout
    words = [line.split() for line in listing.splitlines() if len(line.split()) == 3]
    return {name for _, kind, name in words if kind in "TWu" and "10stepladder" in name}


@pytest.mark.without_sanitizers("functions are not inlined")
@pytest.mark.parametrize("isa", ISAS)
def test_functions_are_in_the_namespace_of_their_isa_or_in_the_baseline(program_path, isa):
    found = functions(program_path, isa)
    own = {name for name in found if f"{len(isa)}{isa}" in name}
    assert own
    assert found - own - functions(program_path, "any") == set()


# The operations of a loop on packed floats; moves and logic also come from copies and constants.
PACKED = re.compile(r"\bv?(f(n)?m(add|sub)\d+|add|sub|mul|div|max|min|sqrt)ps\b")


@pytest.mark.without_sanitizers("its checks use vectors")
def test_the_compiler_vectorizes_no_serial_rung_but_those_that_it_is_asked_to(program_path):
    objects = program_path.parent / "CMakeFiles"
    twins = {path.relative_to(objects).as_posix().split("/by_compiler/o3/")[1]
             for path in objects.glob("*/by_compiler/o3/**/*.o")}
    if shutil.which("objdump") is None or not twins:
        pytest.skip("objdump or the object files were not found")

    def packed(path):
        listing = subprocess.run(["objdump", "--disassemble", path], capture_output=True, text=True,
                                 check=True).stdout
        return len(PACKED.findall(listing))

    assert "kernels/matmul/cpu/blocked.cpp.o" in twins
    for twin in twins:
        # transposition of a matrix in squares has no arithmetic
        assert packed(objects / "stepladder_kernels_any.dir" / twin) == 0, twin
    for kind in ("o3", "omp_simd"):
        [*made] = objects.glob(f"*/by_compiler/{kind}/kernels/matmul/cpu/blocked.cpp.o")
        assert made and all(packed(path) > 0 for path in made)
