"""Which rungs stand together in tables and charts."""

from __future__ import annotations

from plots.data.chain import best_of_branch, groups_of
from plots.data.ratios import ladders
from plots.data.reading import load_run
from plots.tables.blocks import ladder_block
from run_folder import columns, summary_row, write_csv

# Variant, technique, what it builds on, milliseconds.
RUNGS = [("serial", "serial", "", 100), ("serial_o3_avx512", "serial", "serial", 50),
         ("simd_avx2", "simd", "serial", 30), ("simd_avx512", "simd", "serial", 20),
         ("create", "pthread", "simd", 40), ("pool", "pthread", "create", 15),
         ("cyclic", "openmp", "simd", 18), ("guided", "openmp", "simd", 17),
         ("packed", "simd", "simd", 5), ("library", "vendor", "", 6),
         ("library_ring", "vendor", "library", 9), ("library_tree", "vendor", "library", 8)]


def run_of(folder):
    write_csv(folder, columns.SUMMARY, [
        summary_row(name, ms / 1000, technique=technique, builds_on=below,
                    speedup_vs_serial=100 / ms) for name, technique, below, ms in RUNGS])
    return load_run(folder)


def test_branches_are_apart_from_the_main_ladder(tmp_path):
    ladder, = ladders(run_of(tmp_path))
    groups = groups_of(ladder, ladder.measured_rungs)
    assert [(group.kind, {rung.name for rung in group.rungs}) for group in groups] == [
        ("main", {"serial", "simd_avx2", "simd_avx512", "packed"}),
        ("compiler", {"serial_o3_avx512"}), ("branch", {"create", "pool"}),
        ("branch", {"cyclic", "guided"}), ("library", {"library"}),
        ("library", {"library_ring", "library_tree"})]
    assert [best_of_branch(ladder, group.rungs).name for group in groups if group.is_branch] == [
        "pool", "guided", "library_tree"]


def test_a_branch_is_one_line_of_the_table(tmp_path):
    run = run_of(tmp_path)
    ladder, = ladders(run)
    lines = [line.split("|")[1].strip() for line in ladder_block(run, ladder).splitlines()
             if line.startswith("| `")]
    assert lines == ["`serial`", "`simd_avx2`", "`simd_avx512`", "`packed`", "`serial_o3_avx512`",
                     "`pool` (2)", "`guided` (2)", "`library`",
                     "`library_tree` (2)"]
