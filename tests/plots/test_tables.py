from __future__ import annotations

import pytest

from plots.__main__ import main
from plots.data.instruction_sets import peak_of_each
from plots.data.numbers import binary_size, milliseconds, percent, plural, times, with_prefix
from plots.data.reading import load_run
from plots.tables import blocks
from plots.tables.tables_md import render
from run_folder import (
    LAYERS,
    VARIANTS,
    ceiling,
    environment,
    summary_row,
    table_row,
    total,
    unavailable_row,
    write_csv,
    write_json,
)
from tests import columns


def section(text: str, heading: str) -> str:
    """The text from a heading to the next one."""
    return text.split(f"{heading}\n", 1)[1].split("\n#", 1)[0]


def test_speedups_at_every_thread_count_and_counts_of_rows(run_of):
    text = render(run_of([
        summary_row("serial", 8.0, speedup_vs_serial=1, speedup_vs_vendor=0.25),
        summary_row("serial", 8.0, problem="q", speedup_vs_serial=1,
                    reason="noisy: 95 % interval spans 30 % of the median"),
        summary_row("openmp", 4.0, technique="openmp", speedup_vs_serial=2, speedup_vs_vendor=0.5),
        summary_row("openmp", 1.0, technique="openmp", problem="q", speedup_vs_serial=8),
        summary_row("openmp", 1.0, technique="openmp", threads=2, speedup_vs_serial=16,
                    speedup_vs_vendor=1.25),
        summary_row("broken", 0, median_s="", status="failed", reason="wrong tail"),
        summary_row("mkl", 0, technique="vendor", median_s="", status="unavailable",
                    reason="not found")]))
    # variant, technique, over serial on 1 and 2, over vendor on 1 and 2, then the counts
    assert table_row(text, "`openmp`") == ["`openmp`", "openmp", "4.00x", "16.0x", "0.50x", "1.25x",
                                         "3", "0", "0", "0", "0"]
    assert table_row(text, "`serial`") == ["`serial`", "serial", "1.00x", "–", "0.25x", "–",
                                         "2", "0", "0", "0", "1"]
    assert table_row(text, "`broken`")[-5:] == ["0", "1", "0", "0", "0"]
    assert "7 rows: 5 ok, 1 failed, 1 unavailable, 0 skipped; 1 of the ok rows noisy" in text
    assert table_row(section(text, "## Failed"), "matmul")[1:] == ["`broken`", "1", "wrong tail"]
    assert table_row(section(text, "## Unavailable"), "matmul")[1:] == ["`mkl`", "1", "not found"]


def test_a_variant_that_cannot_run_here_is_named_once(run_of):
    text = render(run_of([
        unavailable_row("matmul", "cublas", "vendor"),
        summary_row("serial", 8.0, speedup_vs_serial=1)]))
    assert text.count("`cublas`") == 1
    assert table_row(section(text, "## Unavailable"), "matmul")[1:] \
        == ["`cublas`", "1", "cublas was not found"]
    assert [line for line in text.splitlines() if line.startswith("###")] == ["### forward"]


def test_a_whole_run_is_written_to_tables_md(run_dir, capsys):
    assert main(["tables", str(run_dir)]) == 0
    assert capsys.readouterr().out == f"wrote {run_dir / 'tables.md'}\n"
    text = (run_dir / "tables.md").read_text()
    assert "data: generated" in text.splitlines()[2]
    headings = [line for line in text.splitlines() if line.startswith("#")]
    for primitive in (*VARIANTS, "all_reduce"):
        assert f"## {primitive}" in headings
    assert {"### forward", "### backward_data", "### adam", "### sum"} <= set(headings)
    for network in LAYERS:
        assert f"## Training step of {network}" in headings
    assert table_row(text, "`best,max_pool=serial`")[1] == "ablate"
    assert "- [step.csv](step.csv)" in text.splitlines()


def test_every_table_has_as_many_cells_in_every_line(run_dir):
    blocks = [block.splitlines() for block in render(load_run(run_dir)).split("\n\n")
              if block.startswith("|")]
    assert len(blocks) > 20
    for block in blocks:
        assert {line.count("|") for line in block} == {block[0].count("|")}


def test_the_gain_of_more_threads_is_a_table(run_of):
    def timed(variant, problem, threads, seconds):
        return summary_row(variant, seconds, problem=problem, technique="openmp", threads=threads)

    text = render(run_of([
        timed("openmp", "p", 1, 8.0), timed("openmp", "p", 2, 2.0), timed("openmp", "q", 1, 8.0),
        timed("openmp", "q", 2, 8.0), timed("static", "p", 1, 8.0), timed("static", "p", 2, 4.0),
        timed("static", "p", 4, 1.0), summary_row("serial", 9.0)]))
    table = section(text, "### matmul, threads")
    assert table_row(table, "variant") == ["variant", "2 threads", "4 threads", "problems"]
    assert table_row(table, "`openmp`") == ["`openmp`", "2.00x", "–", "2"]
    assert table_row(table, "`static`") == ["`static`", "2.00x", "8.00x", "1"]
    assert "`serial`" not in table


def test_the_speedup_of_a_step_is_that_over_the_baseline(run_of):
    run = run_of(step=[
        total(use="serial", seconds=0.008, predicted_s=0.008),
        total(use="best", seconds=0.002, predicted_s=0.001)])
    line = table_row(section(render(run), "## Training step of mlp"), "`best`")
    assert line[-3:] == ["1.00", "2.00x", "4.00x"]  # plans alone, step / alone, over serial
    line, = [line for line in blocks.steps(run).splitlines() if "`best`" in line]
    assert [cell.strip() for cell in line.strip("|").split("|")][-2:] == ["4.00x", "2.00"]
    assert "| over `serial` | measured / predicted |" in blocks.steps(run)


def test_each_build_of_a_rung_is_held_against_the_peak_of_its_instruction_set(tmp_path):
    def built(variant, rate, problem="p", **values):
        return summary_row(variant, 1.0, problem=problem, gflops_per_s=rate,
                           **{"technique": "simd", "precision": "fp32"} | values)

    folder = tmp_path / "instruction_sets"
    write_json(tmp_path / "environment.json", **environment())
    write_json(folder / "environment.json", **environment())
    write_json(folder / "ceilings.json", ceilings=[
        ceiling("fma_peak", "GFLOP/s", 200.0), ceiling("fma_peak_avx2", "GFLOP/s", 100.0),
        ceiling("fma_peak_sse42", "GFLOP/s", 40.0),
        ceiling("fma_peak_sse42", "GFLOP/s", 80.0, threads=2)])
    write_csv(folder, columns.SUMMARY, [
        built("simd_sse42", 20.0), built("simd_sse42", 5.0, "q"), built("simd_avx2", 60.0),
        built("simd_avx2", 15.0, "q"), built("simd_avx512", 40.0), built("simd_avx512", 40.0, "q"),
        built("simd_avx512", 1.0, "of one build alone"), built("simd_sse42", 70.0, threads=2),
        built("packed_avx512", 150.0), built("packed_int8_avx2", 90.0, precision="int8"),
        built("packed_int8_avx512", 90.0, precision="int8")])
    text = section(render(load_run(folder)), "## Instruction sets")
    assert table_row(text, "matmul") == ["matmul", "`simd`", "10", "25 %", "30", "30 %", "40",
                                         "20 %", "2"]
    assert "sse42 40, avx2 100, avx512 200 GFLOP/s" in " ".join(text.split())
    assert "packed" not in text
    block = blocks.known_blocks(load_run(tmp_path), [])["instruction-sets"]
    assert text.strip() in block(tmp_path)
    assert blocks.known_blocks(load_run(folder), [])["instruction-sets"](tmp_path) is None


@pytest.mark.parametrize("isa, value, found", [
    (["sse42", "avx2"], 8.0, {"sse42": 2.0, "avx2": 8.0}), (["neon"], 8.0, {"sse42": 2.0}),
    (None, 8.0, {"sse42": 2.0}), (["avx2"], None, {"sse42": 2.0})])
def test_the_peak_without_a_name_is_that_of_the_widest_set(tmp_path, isa, value, found):
    write_json(tmp_path / "environment.json", **environment() | {"isa": isa})
    write_json(tmp_path / "ceilings.json", ceilings=[
        ceiling("fma_peak", "GFLOP/s", value), ceiling("fma_peak_sse42", "GFLOP/s", 2.0)])
    assert peak_of_each(load_run(tmp_path)) == found


def test_markdown_in_a_reason_stays_in_its_cell(run_of):
    run = run_of([summary_row("broken", 0, median_s="", status="failed", reason="a | b\nc")])
    assert "| matmul | `broken` | 1 | a \\| b c |" in render(run)


def test_a_run_without_results_yet(run_of):
    assert "0 rows" in render(run_of([]))


def test_errors_have_an_exit_status_and_no_traceback(tmp_path, capsys):
    for command in ("table", "tables"):
        assert main([command, str(tmp_path / "absent")]) == 2
        assert "no such folder" in capsys.readouterr().err


@pytest.mark.parametrize("ratio, text", [
    (None, "–"), (0.00432, "0.0043x"), (0.871, "0.87x"), (3.414, "3.41x"), (26.21, "26.2x"),
    (262.4, "262x")])
def test_ratios_have_three_digits_or_fewer(ratio, text):
    assert times(ratio) == text


def test_other_numbers():
    assert [milliseconds(s) for s in (None, 0.0001234, 0.0012345, 0.0123, 0.1234)] \
        == ["–", "0.123", "1.23", "12.3", "123"]
    assert [percent(share) for share in (None, 0.84, 9.5, 81.4)] == ["–", "0.8 %", "9.5 %", "81 %"]
    assert [plural(count, "row") for count in (0, 1, 2)] == ["0 rows", "1 row", "2 rows"]
    assert [binary_size(n) for n in (4, 49152, 2 ** 21, 2 ** 34)] \
        == ["4 B", "48 KiB", "2 MiB", "16 GiB"]
    assert [with_prefix(n) for n in (0.1, 3000, 1e4, 1.5e6, 2e9)] \
        == ["0.1", "3000", "10k", "1.5M", "2G"]
