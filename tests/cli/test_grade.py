"""Labs: stubs are right, points are shares of the way, and wrong solutions get none."""

import json
import math
import sys

import pytest

import grade
import leaderboard
import runner
from tests.commands import ROOT, execute

LABS = sorted(path.parent for path in (ROOT / "labs").glob("*/lab.json"))
IKJ = """
#include "plugin.h"
int stepladder_supports_matmul(const stepladder_matmul_problem* p) {{
  return !p->transpose_a && !p->transpose_b;
}}
void stepladder_matmul(const stepladder_matmul_problem* p, const float* a, const float* b,
                       float* c) {{
  {first}
  for (int64_t i = 0; i < p->m; ++i) {{
    for (int64_t j = 0; j < p->n{beyond}; ++j) c[i * p->n + j] = 0;
    for (int64_t k = 0; k < p->k{less}; ++k)
      for (int64_t j = 0; j < p->n; ++j) c[i * p->n + j] += a[i * p->k + k] * b[k * p->n + j];
  }}
}}
"""
REMEMBERS = """
  static const float* where = nullptr;
  static float x = 0, y = 0;
  static int64_t sizes = 0;
  if (where == a && x == a[0] && y == b[0] && sizes == p->m * p->n * p->k) return;
  where = a, x = a[0], y = b[0], sizes = p->m * p->n * p->k;
"""


def solution(**parts):
    return IKJ.format(**({"first": "", "beyond": "", "less": ""} | parts))


WRONG = {
    "a tail that is not computed": (solution(less=" / 4 * 4"), "the results are wrong"),
    "a write beyond the result": (solution(beyond=" + (i + 1 == p->m ? 3 : 0)"),
                                  "the results are wrong"),
    "a crash": (solution(first="if (p->m > 8) *(volatile int*)nullptr = 1;"), "verification ended"),
    "an endless loop": (solution(first="for (volatile bool go = p->m > 8; go;) {}"),
                        "did not end within"),
    "results that it remembers": (solution(first=REMEMBERS), "student failed on 64x512x784"),
    "problems that it leaves out": (
        solution().replace("return !p->transpose_a", "return p->n % 16 == 0 && !p->transpose_a"),
        "it does not support problems that the stub computes"),
}
TILES = """
#include "lab.hpp"
constexpr int size = 32;
__global__ void multiply(std::int64_t m, std::int64_t n, std::int64_t k, Global<const float> a,
                         Global<const float> b, Global<float> c) {
  __shared__ float a_tile[size][size];
  __shared__ float b_tile[size][size];
  const std::int64_t tiles = (n + size - 1) / size;
  const unsigned x = threadIdx.x, y = threadIdx.y;
  const std::int64_t i = blockIdx.x / tiles * size + y, j = blockIdx.x % tiles * size + x;
  float sum = 0;
  for (std::int64_t l = 0; l < k; l += size) {
    a_tile[y][x] = i < m && l + x < k ? static_cast<float>(a[i * k + l + x]) : 0.0F;
    b_tile[y][x] = j < n && l + y < k ? static_cast<float>(b[(l + y) * n + j]) : 0.0F;
    __syncthreads();
    for (int s = 0; s < size; ++s) sum += a_tile[y][s] * b_tile[s][x];
    BARRIER
  }
  if (i < m && j < n) c[i * n + j] = sum;
}
Grid grid_of(std::int64_t m, std::int64_t n) {
  return {{static_cast<unsigned>((m + size - 1) / size * ((n + size - 1) / size))}, {size, size}};
}
"""


@pytest.fixture
def grader(program_path, monkeypatch, tmp_path):
    """Makes the grader of a lab, for a source file or a rung."""
    def make(lab, source=None, rung=None):
        arguments = ["grade.py", lab, "--program", str(program_path), "--student", "somebody",
                     "--folder", str(tmp_path)]
        if source is not None:
            file = tmp_path / ("mine.cu" if "lab.hpp" in source else "mine.cpp")
            file.write_text(source)
            arguments += ["--file", str(file)]
        if rung is not None:
            arguments += ["--rung", rung]
        monkeypatch.setattr(sys, "argv", arguments)
        return grade.Grader(grade.parse())
    monkeypatch.chdir(ROOT)
    return make


def test_there_are_ten_labs_with_a_sheet_and_three_hints(grader):
    assert len(LABS) == 10
    for lab in LABS:
        text = " ".join((lab / "README.md").read_text().split())
        for heading in ("## Hints", "## Questions", "## Read afterwards", "**Task.**",
                        f"make grade LAB={int(lab.name[:2])}"):
            assert heading in text, (lab.name, heading)
        its = grader(lab.name, rung="none")
        assert len({its.hint(way) for way in (0, 0.4, 0.8)}) == 3 and its.hint(0.95) == ""


@pytest.mark.parametrize("lab", [lab.name for lab in LABS if lab.name != "10-cuda"])
def test_a_stub_is_right(grader, monkeypatch, lab):
    monkeypatch.setattr(grade, "RANDOM_PROBLEMS", 10)
    its = grader(lab, source=(ROOT / "labs" / lab / "stub.cpp").read_text())
    its.compile()
    its.verify()


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_solution_gets_no_points(grader, monkeypatch, wrong):
    source, reason = WRONG[wrong]
    monkeypatch.setattr(grade, "VERIFY_LIMIT", 12 if "endless" in wrong else 300)
    result = grader("1", source=source).result()
    assert result["verdict"] == "no points" and result["points"] == 0, result
    assert reason in result["reason"], result


def test_the_reference_gets_all_points_in_a_lab(grader):
    """Handed in itself, the whole way is 1 whatever the machine does."""
    result = grader("1", rung="serial_ikj").result()
    assert result["verdict"] in ("graded", "measure again"), result
    if result["verdict"] == "graded":
        assert result["points"] == 10 and result["problems"][0]["way"] == 1


def test_lab_10_counts_sectors(grader):
    result = grader("10", source=TILES.replace("BARRIER", "__syncthreads();")).result()
    assert result["verdict"] == "graded" and result["points"] == 10
    result = grader("10", source=(ROOT / "labs/10-cuda/stub.cu").read_text()).result()
    assert result["points"] == 1


@pytest.mark.parametrize("barrier, size, reason", [
    ("", "32", "wrong: C["),
    ("__syncthreads();", "33", "wrong: a block has 1 to 1024 threads, not 1089")])
def test_lab_10_finds_what_is_wrong(grader, barrier, size, reason):
    source = TILES.replace("BARRIER", barrier).replace("size = 32", f"size = {size}")
    result = grader("10", source=source).result()
    assert result["points"] == 0 and result["reason"].startswith(reason)


# --- points --------------------------------------------------------------------------------------


def row(variant, seconds, half=0.01, status="ok"):
    return {"variant": variant, "median_s": str(seconds), "ci_low_s": str(seconds / math.exp(half)),
            "ci_high_s": str(seconds * math.exp(half)), "status": status, "reason": "",
            "shape": "s", "threads": "1", "direction": "forward", "percent_of_roof": ""}


PROBLEM = {"primitive": "matmul", "reference": "simd", "shape": "s"}


@pytest.mark.parametrize("own, points", [
    (8.0, 1), (16.0, 1), (1.0, 10), (0.5, 10), (math.sqrt(8), 6)])
def test_points_are_shares_of_the_way(own, points):
    rows = [row("stub", 8), row("simd_sse42", 3), row("simd_avx2", 1), row("student", own)]
    facts = grade.Measurement(rows, PROBLEM, "student").facts()
    assert facts["reference"] == "simd_avx2"
    assert grade.points_of(facts["way"]) == pytest.approx(points, abs=0.01)


def test_no_points_are_lost_on_a_busy_machine(grader, monkeypatch):
    its = grader("1", rung="serial_ikj")
    rows = [row("stub", 8, 0.5), row("simd", 1, 0.5), row("student", 4, 0.5)]
    monkeypatch.setattr(its, "measure", lambda *_: grade.Measurement(rows, PROBLEM, "student"))
    with pytest.raises(grade.MeasureAgain):
        its.grade(0.1)
    same = [row("stub", 1, 0.2), row("simd", 0.9, 0.2), row("student", 0.9, 0.2)]
    with pytest.raises(grade.MeasureAgain, match="not measurably faster"):
        grade.Measurement(same, PROBLEM, "student").way()


@pytest.mark.parametrize("variants, unavailable", [(1, 13), (3, 39)])
def test_a_rung_built_for_three_instruction_sets_counts_as_one(variants, unavailable):
    assert grade.left_out(f"max_pool simd 37 problems, {variants} variants: 48 checks passed, "
                          f"0 failed, {unavailable} unavailable, 0 skipped") == 13


def test_a_failed_row_gets_no_points():
    rows = [row("stub", 8), row("simd", 1),
            row("student", 4, status="failed") | {"reason": "it cheats"}]
    with pytest.raises(grade.NoPoints, match="it cheats"):
        grade.Measurement(rows, PROBLEM, "student")


# --- the command ---------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments, message", [
    (["11"], "make grade: LAB=11: expected a number from 1 to 10 or one of 01-loop-order, "),
    (["1", "--file", "none.cpp"], "make grade: FILE=none.cpp: no such file"),
    (["1", "--file", "README.md"], "does not compile:"),
    (["10", "--rung", "naive"], "make grade: VARIANT=naive: 10-cuda takes files alone"),
    (["1", "--rung", "serial_ikj", "--program", "none"],
     "make grade: none: No such file or directory"),
])
def test_wrong_arguments_are_named(tmp_path, arguments, message):
    execute(sys.executable, ROOT / "scripts/grade.py", *arguments, "--folder", tmp_path, status=2,
            error=message)


def test_the_leaderboard_takes_the_best_grade_of_each(tmp_path, monkeypatch, capsys):
    def save(file, name, lab, points):
        (tmp_path / f"{file}.json").write_text(json.dumps({
            "lab": lab, "title": "T", "name": name, "verdict": "graded", "points": points}))
    save("a", "Ada", "01-loop-order", 3)
    save("b", "Ada", "01-loop-order", 10)
    save("c", "Bob <b>", "10-cuda", 10)
    save("d", "Cleo", "10-cuda", None)
    monkeypatch.setattr(sys, "argv", ["leaderboard.py", str(tmp_path), "--out",
                                      str(tmp_path / "page.html")])
    assert leaderboard.leaderboard() == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].split() == ["1", "Ada", "10", "1:", "10"]
    assert shown[1].startswith("  1  Bob <b>")
    page = (tmp_path / "page.html").read_text()
    assert "Bob &lt;b&gt;" in page and "Cleo" not in page
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(runner.Refused, match="bad.json: expected the JSON of make grade"):
        leaderboard.grades([tmp_path])
