"""scripts/mutate.py: which changes are tried, and that the list of equivalent ones fits the sources.

The generator is not installed for the tests; make mutate installs it.
"""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import mutate  # noqa: E402


@pytest.mark.parametrize(("before", "after", "tried"), [
    ("  if (a < b) return;", "  if (a <= b) return;", True),
    ("  if (a < b) return;", "  if (a > b) return;", True),
    ("  return a + b;", "  return a - b;", True),
    ("  return a * b;", "  return a / b;", True),
    ("  int x = 10;", "  int x = 00;", True),
    ("  sum();", "  /*sum();*/", True),
    ("  sum();", "  sum();\n  break;", True),
    ("  for (const int i : all) {", "  for (const int i : all) {\n  continue;", True),
    ("  std::vector<int> x;", "  std::vector<=int> x;", False),
    ("  std::vector<int> x;", "  std::vector>int> x;", False),
    ("  const int& x = y;", "  const int| x = y;", False),
    ("  char* end;", "  char/ end;", False),
    ("  std::int64_t i = 0;", "  std::int04_t i = 0;", False),
    ("  denominator = 1;", "  denomaxator = 1;", False),
    ("  if (a >= b) return;", "  if (a >== b) return;", False),
    ("  // a sentence", "  // a sentence\n  break;", False),
    ("  void f() {", "  void f() {\n  break;", False),
    ("  void f() {", "  /*void f() {*/", False),
    ("  x = std::max(a, b);", "  x = std::max ( b,a);", False),
])
def test_changes_that_no_compiler_takes_are_not_tried(before, after, tried):
    assert mutate.may_compile(before + "\n", after + "\n") == tried


def test_lines_that_use_the_gpu_are_not_tried():
    lines = ["  if (clock == Clock::device) {\n", "    start();\n", "    }\n", "  }\n", "  device()->wait();\n",
             "  if (device_ != nullptr)  // device()\n", "    device_->upload();\n"]
    assert mutate.lines_for_gpu(lines) == {1, 2, 3, 4, 5}


def test_continue_at_the_end_of_a_loop_is_not_tried():
    lines = ["void f() {\n", "  for (const int i : all\n", "       .of()) {\n", "    if (i > 0) {\n", "      a();\n", "    }\n",
             "    b();\n", "  }\n", "}\n"]

    def inserted(line, statement):
        return mutate.continues_anyway(lines, line, lines[line - 1] + f"    {statement}\n")
    assert inserted(7, "continue;")
    assert not inserted(7, "break;")
    assert not inserted(5, "continue;")  # of the if
    assert not inserted(8, "continue;")  # of the function
    assert not mutate.continues_anyway(lines, 7, "    /*b();*/\n")


def test_break_outside_of_loops_is_not_tried():
    lines = ["void f() {\n", "  a();\n", "  for (const int i : all)\n", "    b();\n", "  while (\n", "      c()) {\n",
             "    if (d())\n", "      e();\n", "    g();\n", "  }\n", "}\n", "void h() {\n", "  i();\n", "}\n"]

    def outside(line):
        return mutate.is_outside_loops(lines, line, lines[line - 1] + "    break;\n")
    assert [line for line in (2, 4, 6, 8, 9, 13) if outside(line)] == [2, 13]
    assert not mutate.is_outside_loops(lines, 2, "  /*a();*/\n")


def test_the_lines_of_equivalent_mutants_are_in_their_files():
    for (file, before, after), reason in mutate.known_equivalents().items():
        lines = [line.strip() for line in (ROOT / file).read_text().splitlines()]
        assert before in lines, f"{file} has no line {before}: take the entry out of tests/mutants/equivalent.txt"
        assert before != after and len(reason) > 20


def test_an_entry_that_is_not_complete_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "equivalent.txt"
    monkeypatch.setattr(mutate, "EQUIVALENT", path)
    path.write_text("# comment\n\na.cpp\n- x < 1\n+ x <= 1\n  x is never 1\n\nb.cpp\n- y\n+ z\n  no y\n")
    assert mutate.known_equivalents() == {("a.cpp", "x < 1", "x <= 1"): "x is never 1", ("b.cpp", "y", "z"): "no y"}
    path.write_text("a.cpp\n- x < 1\n+ x <= 1\n")
    with pytest.raises(mutate.Broken, match="holds an entry"):
        mutate.known_equivalents()


def test_every_file_and_source_of_a_group_is_there():
    files = mutate.selected(["*"])
    for expected in ("harness/verify/verify.cpp", "harness/measure/statistics.cpp", "harness/results/comparison.cpp",
                     "bench/compare.cpp", "harness/adapters/typed_case.hpp"):
        assert expected in files
    for group in mutate.GROUPS:
        globs = [*group.files, *group.units, *group.first, *(glob for _, sources, _ in group.checks for glob in sources or [])]
        for glob in globs:
            assert list(ROOT.glob(glob)), f"{glob} matches nothing"


class Recorded(mutate.Judge):
    """Of mutants with given machine code, and given results of the tests of each stage."""

    def __init__(self, codes, results):  # pylint: disable=super-init-not-called
        self.codes, self.results, self.builder = iter(codes), iter(results), self
        self.seen, self.tests = {}, 0

    def compile(self, _file, _text, _objects):
        code = next(self.codes)
        return ("same code", None) if code == "clean" else ({"object": code}, code)

    def tested(self, _new, _plans):
        self.tests += 1
        return next(self.results), "a test"


def test_a_mutant_counts_once_and_one_that_survives_the_first_test_gets_the_others():
    mutant = mutate.Mutant("scripts/mutate.py", 1, "x\n", "y\n")
    judge = Recorded(["a", "a", "b", "b", "c", "b", "c", "clean"], ["killed", "SURVIVED", "killed"])
    for is_last, verdict in [
            (False, "killed"), (False, "same as another"),
            (False, "SURVIVED"), (False, "SURVIVED"),  # the same here may differ in the other objects
            (True, "killed"), (True, "same as another"), (True, "same as another"), (True, "same code")]:
        assert judge.stage(mutant, ["object"], ["test"], is_last)[0] == verdict
    assert judge.tests == 3


def test_the_score_counts_killed_and_hung_mutants(capsys):
    counts = mutate.Counter({"killed": 8, "timed out": 1, "same code": 5, "did not compile": 7, "SURVIVED": 1})
    survivor = mutate.Mutant("a.cpp", 3, "  x = 1;\n", "  x = 2;\n")
    assert mutate.report(counts, [survivor], []) == 0
    output = capsys.readouterr().out
    assert "9 of 10 mutants were killed: 90.0 %" in output
    assert "a.cpp:3\n    - x = 1;\n    + x = 2;" in output
    assert mutate.report(counts, [survivor, survivor], []) == 1
