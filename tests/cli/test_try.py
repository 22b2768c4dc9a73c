"""stepladder new and try: the loop of somebody who writes a rung."""

import re
import shutil

import pytest
from conftest import ROOT, Program


@pytest.fixture
def tree(tmp_path):
    """What the two commands read of the project."""
    tree = tmp_path / "tree"
    shutil.copytree(ROOT / "bench/suites", tree / "bench/suites")
    shutil.copytree(ROOT / "kernels/matmul", tree / "kernels/matmul")
    return tree


@pytest.fixture
def run(program_path, finished_run, tree):
    """Starts the program on that tree, with the ceilings of another run."""
    folder = tree / "results/local/try"
    folder.mkdir(parents=True)
    shutil.copy(finished_run / "ceilings.json", folder)
    program = Program(program_path)
    return lambda *arguments, **options: program(
        *arguments, environment={"STEPLADDER_SOURCE_DIR": str(tree)}, **options)


@pytest.mark.parametrize("source, folder", [
    ("serial_ijk", "cpu"), ("blocked", "cpu"), ("simd", "cpu"), ("packed_openmp", "cpu/packed")])
def test_a_new_rung_is_a_copy_that_builds_on_its_source(run, tree, source, folder):
    done = run("new", "matmul", "my_idea", "--from", source)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        f"kernels/matmul/{folder}/my_idea.cpp",
        "Change it, then: make try VARIANT=my_idea PRIMITIVE=matmul"]
    text = (tree / "kernels/matmul" / folder / "my_idea.cpp").read_text()
    assert text.startswith("// my_idea: ") and "kernels/matmul/matmul.hpp has the contract" in text
    info = re.search(r"VariantInfo info\{(.*?)\n\};", text, re.DOTALL)[1]
    assert info.count('.name = "my_idea"') == info.count(f'.builds_on = "{source}"') == 1
    assert info.count(".builds_on") == info.count(".adds") == info.count(".idea") == 1
    # the code is that of the source
    old = (tree / "kernels/matmul" / folder / f"{source}.cpp").read_text()
    code = old[old.index("namespace"):old.index("constexpr VariantInfo")]
    assert code in text


@pytest.mark.parametrize("arguments, message", [
    (("my_idea", "--from", "simdd"), "unknown rung of matmul 'simdd'; nearest: simd"),
    (("simd", "--from", "blocked"), "matmul has a rung simd already"),
    (("My-Idea", "--from", "simd"), "expected lower-case letters, digits and _, not 'My-Idea'"),
    (("my_idea",), "--from is required")])
def test_a_new_rung_needs_a_free_name_and_a_source(run, tree, arguments, message):
    before = sorted(tree.rglob("*.cpp"))
    done = run("new", "matmul", *arguments)
    assert done.returncode != 0 and message in done.stderr
    assert sorted(tree.rglob("*.cpp")) == before


def test_a_rung_is_tried_beside_the_one_below_the_others_and_the_libraries(run):
    done = run("try", "simd", "--primitive", "matmul", "--shape", "40x64x48", "--threads", "1",
               "--random", "3", "--budget", "0.005")
    assert done.returncode == 0, done.stderr
    assert re.search(r"matmul simd_\w+ .*, 0 failed", done.stdout)
    table = [line.split()[0] for line in done.stdout.splitlines() if " us " in line or " ns " in line]
    assert {"serial_ijk", "blocked"} < set(table) and len(table) > 6
    verdict = done.stdout[done.stdout.index("geometric means:"):].splitlines()[1:]
    number = r"[\d.]+x"
    for line, what in zip(verdict, ("as blocked, the rung below", "the fastest other rung",
                                    "the fastest library")):
        assert re.match(rf"  {number} as fast \({number} \.\. {number}\) as \w+, ", line)
        assert what in line


@pytest.mark.parametrize("arguments, message", [
    (("simmd",), "unknown rung 'simmd'; nearest: simd"),
    (("simd",), "have a rung simd; name one with --primitive"),
    (("simd", "--primitive", "matmull"), "unknown primitive 'matmull'; nearest: matmul"),
    (("warp_tile",), "warp_tile cannot run here: ")])
def test_what_cannot_be_tried_is_refused(run, tree, arguments, message):
    done = run("try", *arguments)
    assert done.returncode != 0 and message in done.stderr
    assert [path.name for path in (tree / "results/local/try").iterdir()] == ["ceilings.json"]


def test_a_rung_that_is_wrong_is_not_measured(program_path):
    crashing = Program(program_path.parent / "stepladder_crashing")
    done = crashing("try", "crashes_segv", "--primitive", "matmul", "--random", "2")
    assert done.returncode == 1
    assert "crashes_segv ended with signal 11" in done.stdout
    assert "geometric means" not in done.stdout
