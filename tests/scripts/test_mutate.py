"""scripts/mutate.py: which changes are tried, how they are judged, and that the list of equivalent
ones fits the sources."""

import pytest

import mutate
from tests.commands import ROOT


@pytest.mark.parametrize(("line", "changed"), [
    ("  if (a < b) return;", ["  if (true || a < b) return;", "  if (false && a < b) return;",
                              "  if (a <= b) return;", "  if (a > b) return;"]),
    ("  return a + b * !c;", ["  return a - b * !c;", "  return a + b / !c;",
                              "  return a + b * c;"]),
    ("  int x = 10;", ["  int x = 11;", "  int x = 0;"]),
    ("  int x = 0;  // 1 < 2", ["  int x = 1;  // 1 < 2"]),
    ("  double x = 0.5;", ["  double x = 10.5;"]),
    ("  x = std::max(a, b);", ["  x = std::min(a, b);", "  ;"]),
    ("  sum(a);", ["  ;"]),
    ("  ++count;", ["  ;"]),
    ("  total += a == b;", ["  total -= a == b;", "  total += a != b;", "  ;"]),
    ("  std::vector<int> x;", []),
    ("  const int& x = y;", []),
    ("  std::int64_t i = 1e-9;", []),
    ('  say("1 < 2");', ["  ;"]),
    ("  return x;", []),
    ("      first(a,", []),
    ("#if A < 2", []),
    ("  // a < b", []),
])
def test_operators_constants_conditions_and_statements_are_changed(line, changed):
    assert [text.rstrip("\n") for text in mutate.changes(line + "\n")] == changed


def test_lines_that_use_the_gpu_are_not_tried():
    lines = ["  if (clock == Clock::device) {\n", "    start();\n", "    }\n", "  }\n",
             "  device()->wait();\n", "  if (device_ != nullptr)  // device()\n",
             "    device_->upload();\n"]
    assert mutate.lines_for_gpu(lines) == {1, 2, 3, 4, 5}


def test_the_draw_depends_on_the_seed_alone_and_lines_take_turns():
    files = ["harness/measure/drift.cpp", "bench/compare.cpp"]
    first = list(mutate.drawn(files, 1))
    assert first == list(mutate.drawn(files, 1)) != list(mutate.drawn(files, 2))
    lines = {(mutant.file, mutant.line) for mutant in first}
    assert {(mutant.file, mutant.line) for mutant in first[:len(lines)]} == lines


def test_equivalent_mutants_are_ones_of_the_lines_of_their_files():
    for (file, before, after), reason in mutate.known_equivalents().items():
        lines = [line for line in (ROOT / file).read_text().splitlines() if line.strip() == before]
        assert lines, (f"{file} has no line {before}: take the entry out of "
                       "tests/mutants/equivalent.txt")
        assert after in [changed.strip() for changed in mutate.changes(lines[0] + "\n")]
        assert len(reason) > 20


def test_an_entry_that_is_not_complete_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "equivalent.txt"
    monkeypatch.setattr(mutate, "EQUIVALENT", path)
    path.write_text("# comment\n\na.cpp\n- x < 1\n+ x <= 1\n  x is never 1\n\n"
                    "b.cpp\n- y\n+ z\n  no y\n")
    assert mutate.known_equivalents() == {("a.cpp", "x < 1", "x <= 1"): "x is never 1",
                                          ("b.cpp", "y", "z"): "no y"}
    path.write_text("a.cpp\n- x < 1\n+ x <= 1\n")
    with pytest.raises(mutate.Broken, match="holds an entry"):
        mutate.known_equivalents()


def test_every_file_and_source_of_a_group_is_there():
    files = mutate.selected(["*"])
    for expected in ("harness/verify/verify.cpp", "harness/measure/statistics.cpp",
                     "harness/results/comparison.cpp", "bench/compare.cpp",
                     "harness/adapters/typed_case.hpp"):
        assert expected in files
    for files, checks in mutate.GROUPS.items():
        for glob in (*files, *(unit for check in checks for unit in check.units)):
            assert list(ROOT.glob(glob)), f"{glob} matches nothing"
    with pytest.raises(mutate.Broken, match="no file is called other"):
        mutate.selected(["other"])


class Build:
    """Gives each check an object of its own, whose machine code a mutant changes or not."""

    def __init__(self, folder, changed):
        self.folder, self.changed = folder, changed

    def objects(self, check, _file):
        return [check.program]

    def compile(self, objects, _file, _text, folder):
        if folder == "mutant" and self.changed is None:
            raise mutate.Broken("no C++")
        paths = {made: self.folder / f"{folder}-{made}" for made in objects}
        for made, path in paths.items():
            path.write_text(made + (folder if made in (self.changed or ()) else ""))
        return paths


@pytest.mark.parametrize(("changed", "results", "verdict"), [
    (None, [], ("did not compile", "")),
    ([], [], ("same code", "")),
    (["a", "b"], ["killed"], ("killed", "test a")),
    (["b"], ["timed out"], ("timed out", "test b")),
    (["a", "b"], ["SURVIVED", "killed"], ("killed", "test b")),
    (["a", "b"], ["SURVIVED", "SURVIVED"], ("SURVIVED", "")),
])
def test_each_test_whose_program_changes_judges_a_mutant(tmp_path, changed, results, verdict):
    judge, left = mutate.Judge(Build(tmp_path, changed)), list(results)
    judge.test = lambda check, new: left.pop(0)
    checks = [mutate.Check(name, (), f"test {name}") for name in ("a", "b")]
    mutant = mutate.Mutant("scripts/mutate.py", 1, "x\n", "y\n")
    assert judge.verdict(checks, mutant) == verdict
    assert not left


def test_the_score_counts_killed_and_hung_mutants(capsys):
    counts = mutate.Counter({"killed": 8, "timed out": 1, "same code": 5, "did not compile": 7,
                             "SURVIVED": 1})
    survivor = mutate.Mutant("a.cpp", 3, "  x = 1;\n", "  x = 2;\n")
    assert mutate.report(counts, [survivor]) == 0
    output = capsys.readouterr().out
    assert "9 of 10 mutants were killed: 90.0 %" in output
    assert "a.cpp:3\n    - x = 1;\n    + x = 2;" in output
    assert mutate.report(counts, [survivor, survivor]) == 1
