"""stepladder new and try: the loop of somebody who writes a rung."""

import re
import shutil

import pytest

from conftest import HAS_BF16, Program
from tests.commands import ROOT


@pytest.fixture
def tree(tmp_path):
    """What the two commands read of the project."""
    tree = tmp_path / "tree"
    shutil.copytree(ROOT / "bench/suites", tree / "bench/suites")
    shutil.copytree(ROOT / "kernels/matmul", tree / "kernels/matmul")
    return tree


@pytest.fixture
def run(program_path, tree):
    """Starts the program on that tree."""
    program = Program(program_path)
    return lambda *arguments, **options: program(
        *arguments, environment={"STEPLADDER_SOURCE_DIR": str(tree)}, **options)


@pytest.mark.parametrize("source, folder", [
    ("serial_ijk", "cpu"), ("blocked", "cpu"), ("simd", "cpu"), ("packed_openmp", "cpu/packed")])
def test_a_new_rung_is_a_copy_that_builds_on_its_source(run, tree, source, folder):
    done = run("new", "matmul", "my_idea", "--from", source)
    assert done.stdout.splitlines() == [
        f"kernels/matmul/{folder}/my_idea.cpp",
        "Change it, then: make try VARIANT=my_idea PRIMITIVE=matmul"]
    text = (tree / "kernels/matmul" / folder / "my_idea.cpp").read_text()
    assert text.startswith("// my_idea: ") and "kernels/matmul/matmul.hpp has the contract" in text
    info = re.search(r"VariantInfo info\{(.*?)\n\};", text, re.DOTALL)[1]
    assert info.count('.name = "my_idea"') == info.count(f'.builds_on = "{source}"') == 1
    assert info.count(".builds_on") == info.count(".adds") == info.count(".idea") == 1
    # the code is that of the source, but for the name of its class
    old = (tree / "kernels/matmul" / folder / f"{source}.cpp").read_text()
    code = old[old.index("namespace"):old.index("constexpr VariantInfo")]
    assert re.sub(r"\b(Simd|Blocked)\b", "MyIdea", code) in text
    assert re.search(r"\.idea = Idea::\w+,  // or another of kernels/common/variant\.hpp", info)


@pytest.mark.parametrize("arguments, message", [
    (("my_idea", "--from", "simdd"), "unknown rung of matmul 'simdd'; nearest: simd"),
    (("simd", "--from", "blocked"), "matmul has a rung simd already"),
    (("My-Idea", "--from", "simd"), "expected lower-case letters, digits and _, not 'My-Idea'"),
    (("my_idea",), "--from is required")])
def test_a_new_rung_needs_a_free_name_and_a_source(run, tree, arguments, message):
    before = sorted(tree.rglob("*.cpp"))
    run("new", "matmul", *arguments, status="not 0", error=message)
    assert sorted(tree.rglob("*.cpp")) == before


def test_a_rung_is_tried_beside_the_one_below_the_others_and_the_libraries(run):
    done = run("try", "simd", "--primitive", "matmul", "--shape", "40x64x48", "--threads", "1",
               "--random", "3", "--budget", "0.005")
    assert re.search(r"matmul simd_\w+ .*, 0 failed", done.stdout)
    table = [line.split()[0] for line in done.stdout.splitlines()
             if " us " in line or " ns " in line]
    assert {"serial_ijk", "blocked"} < set(table) and len(table) > 6
    verdict = done.stdout[done.stdout.index("geometric means:"):].splitlines()[1:]
    number = r"[\d.]+x"
    for line, what in zip(verdict, ("as blocked, the rung below", "the fastest other rung",
                                    "the fastest library")):
        assert re.match(rf"  {number} as fast \({number} \.\. {number}\) as \w+, ", line)
        assert what in line


@pytest.mark.skipif(not HAS_BF16, reason="this CPU has no AVX512_BF16")
def test_a_rung_that_rounds_operands_is_compared_with_those_that_round_them_too(run):
    done = run("try", "packed_bf16", "--shape", "40x64x48", "--threads", "1", "--random", "3",
               "--budget", "0.005")
    verdict = done.stdout[done.stdout.index("geometric means:"):]
    assert re.search(r"as packed_avx\w+, the rung below", verdict)
    assert re.search(r"as packed_bf16_(openmp|amx), the fastest other rung", verdict)
    assert "as onednn_bf16, the fastest library" in verdict


# The second loop takes almost all of the time.
TWO_LOOPS = """
#include "plugin.h"
int stepladder_supports_matmul(const stepladder_matmul_problem* p) {
  return !p->transpose_a && p->transpose_b;
}
void stepladder_matmul(const stepladder_matmul_problem* p, const float* a, const float* b,
                       float* c) {
  for (int64_t i = 0; i < p->m * p->n; ++i) c[i] = 1.0f / (1.0f + i);
  for (int64_t i = 0; i < p->m; ++i)
    for (int64_t j = 0; j < p->n; ++j) {
      float sum = 0;
      for (int64_t k = 0; k < p->k; ++k) sum += a[i * p->k + k] * b[j * p->k + k];
      c[i * p->n + j] = sum;
    }
}
"""


@pytest.mark.without_sanitizers("its checks are in the loop")
def test_the_inner_loop_is_that_in_which_the_time_is_spent(run, shared_object):
    library = shared_object(TWO_LOOPS)
    done = run("try", "mine", "--primitive", "matmul", "--plugin", library, "--shape",
               "32x32x2000 transpose_b=1", "--threads", "1", "--random", "0", "--budget", "0.005",
               "--asm")
    shown = done.stdout[done.stdout.index("\nInner loop of mine on 32x32x2000"):]
    share, samples = re.search(r"one thread: (\d+) % of (\d+) samples", shown).groups()
    assert int(share) > 60 and int(samples) > 100
    lines = shown.splitlines()
    body = lines[3:lines.index("of stepladder_matmul") - 1]
    for instruction, meaning in (
            (r"movss xmm\d+,DWORD PTR \[", "loads a float"),
            (r"mulss xmm\d+,DWORD PTR \[", "multiplies a float, one operand from memory"),
            (r"addss xmm", "adds a float"),
            (r"j\w+ ", "repeats the loop")):
        pattern = rf"{instruction}.*  {meaning}$"
        assert sum(bool(re.search(pattern, line)) for line in body) == 1, shown
    assert not any("div" in line for line in body)
    assert lines[-1] == f"in {library}"
    counted = re.match(r"(\d+) instructions: ", lines[-3])
    assert int(counted[1]) == len(body)


@pytest.mark.without_sanitizers("its checks are in the loop")
def test_what_lies_on_the_stack_is_called_so(run, shared_object):
    library = shared_object(TWO_LOOPS.replace("float sum", "volatile float sum"))
    done = run("try", "mine", "--primitive", "matmul", "--plugin", library, "--shape",
               "32x32x2000 transpose_b=1", "--threads", "1", "--random", "0", "--budget", "0.005",
               "--asm")
    for moves in (r"ss xmm\d+,DWORD PTR \[rsp.*  loads a float from the stack",
                  r"ss DWORD PTR \[rsp.*  stores a float on the stack"):
        assert re.search(rf"{moves}: a spilled register, or a local array$", done.stdout, re.M)


@pytest.mark.parametrize("arguments, message", [
    (("simmd",), "unknown rung 'simmd'; nearest: simd"),
    (("simd",), "have a rung simd; name one with --primitive"),
    (("simd", "--primitive", "matmull"), "unknown primitive 'matmull'; nearest: matmul"),
    (("warp_tile",), "warp_tile cannot run here: ")])
def test_what_cannot_be_tried_is_refused(run, tree, arguments, message):
    run("try", *arguments, status="not 0", error=message)
    assert not (tree / "results/local/try").exists()


def test_a_rung_that_is_wrong_is_not_measured(program_path):
    crashing = Program(program_path.parent / "stepladder_crashing")
    done = crashing("try", "crashes_segv", "--primitive", "matmul", "--random", "2", status=1)
    assert "crashes_segv ended with signal 11" in done.stdout
    assert "geometric means" not in done.stdout
