"""No file that is compiled for an ISA gives its code to a file of a narrower one.

Code of a file that is compiled once per ISA is in the namespace of that ISA. What it shares with others, as the members of
a contract, is defined in the baseline objects too, which come first on the link line: the linker keeps the first copy.
"""

import shutil
import subprocess

import pytest

ISAS = ["sse42", "avx2", "avx512"]


def functions(program_path, isa):
    """Mangled names of the project's functions that the linker could merge with those of other files."""
    objects = list((program_path.parent / f"CMakeFiles/stepladder_kernels_{isa}.dir").rglob("*.o"))
    if shutil.which("nm") is None or not objects:
        pytest.skip("nm or the object files were not found")
    listing = subprocess.run(["nm", "--defined-only", *objects], capture_output=True, text=True,
                             check=True).stdout
    words = [line.split() for line in listing.splitlines() if len(line.split()) == 3]
    return {name for _, kind, name in words if kind in "TWu" and "10stepladder" in name}


@pytest.mark.parametrize("isa", ISAS)
def test_functions_are_in_the_namespace_of_their_isa_or_in_the_baseline(program_path, isa):
    found = functions(program_path, isa)
    own = {name for name in found if f"{len(isa)}{isa}" in name}
    assert own
    assert found - own - functions(program_path, "any") == set()
