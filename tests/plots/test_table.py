from __future__ import annotations

import pytest
from run_folder import summary_row, write_csv

from plots import schema
from plots.__main__ import main
from plots.numbers import binary_size, milliseconds, times, with_prefix
from plots.reading import load_run
from plots.table import render


def line_of(text: str, start: str) -> list[str]:
    return next(line for line in text.splitlines() if line.strip().startswith(start)).split()


def test_speedups_at_every_thread_count_and_counts_of_rows(tmp_path):
    write_csv(tmp_path, schema.SUMMARY, [
        summary_row("serial", 8.0, speedup_vs_serial=1, speedup_vs_vendor=0.25),
        summary_row("serial", 8.0, problem="q", speedup_vs_serial=1,
                    reason="noisy: 95 % interval spans 30 % of the median"),
        summary_row("openmp", 4.0, technique="openmp", speedup_vs_serial=2, speedup_vs_vendor=0.5),
        summary_row("openmp", 1.0, technique="openmp", problem="q", speedup_vs_serial=8),
        summary_row("openmp", 1.0, technique="openmp", threads=2, speedup_vs_serial=16,
                    speedup_vs_vendor=1.25),
        summary_row("broken", 0, median_s="", status="failed", reason="wrong tail"),
        summary_row("mkl", 0, technique="vendor", median_s="", status="unavailable",
                    reason="not found")])
    text = render(load_run(tmp_path))
    # variant, technique, over serial on 1 and 2, over vendor on 1 and 2, then the counts
    assert line_of(text, "openmp") == ["openmp", "openmp", "4.00x", "16.0x", "0.50x", "1.25x",
                                       "3", "0", "0", "0", "0"]
    assert line_of(text, "serial") == ["serial", "serial", "1.00x", "-", "0.25x", "-",
                                       "2", "0", "0", "0", "1"]
    assert line_of(text, "broken")[-5:] == ["0", "1", "0", "0", "0"]
    assert "7 rows: 5 ok, 1 failed, 1 unavailable, 0 skipped; 1 of the ok rows flagged" in text
    assert "FAILED:\n  matmul broken (1 row): wrong tail" in text
    assert "unavailable:\n  matmul mkl (1 row): not found" in text


def test_a_whole_run_ends_with_steps_and_paths(run_dir, capsys):
    assert main(["table", str(run_dir)]) == 0
    text = capsys.readouterr().out
    assert "data=generated" in text.splitlines()[0]
    for primitive in ("matmul forward", "convolution backward_data", "sgd_update adam",
                      "all_reduce sum"):
        assert f"{primitive}: " in text
    assert "training step of mnist_cnn: milliseconds" in text
    assert line_of(text, "best,max_pool=serial")[1] == "ablate"
    assert f"  {run_dir / 'step.csv'}" in text.splitlines()
    assert max(map(len, text.split("written:")[0].splitlines())) < 130


def test_columns_line_up(run_dir):
    block = render(load_run(run_dir)).split("\n\n")[1].splitlines()
    label_ends = {block[2].index(label) + len(label) for label in ("ok", "failed", "flagged")}
    for line in block[3:]:
        assert all(line[end - 1].isdigit() and line[end:end + 1] in ("", " ")
                   for end in label_ends)


def test_a_run_without_results_yet(tmp_path):
    write_csv(tmp_path, schema.SUMMARY, [])
    assert "0 rows" in render(load_run(tmp_path))


def test_errors_have_an_exit_status_and_no_traceback(tmp_path, capsys):
    assert main(["table", str(tmp_path / "absent")]) == 2
    assert "no such folder" in capsys.readouterr().err


@pytest.mark.parametrize("ratio, text", [
    (None, "-"), (0.00432, "0.0043x"), (0.871, "0.87x"), (3.414, "3.41x"), (26.21, "26.2x"),
    (262.4, "262x")])
def test_ratios_have_three_digits_or_fewer(ratio, text):
    assert times(ratio) == text


def test_other_numbers():
    assert [milliseconds(s) for s in (None, 0.0001234, 0.0012345, 0.0123, 0.1234)] \
        == ["-", "0.123", "1.23", "12.3", "123"]
    assert [binary_size(n) for n in (4, 49152, 2 ** 21, 2 ** 34)] \
        == ["4 B", "48 KiB", "2 MiB", "16 GiB"]
    assert [with_prefix(n) for n in (0.1, 3000, 1e4, 1.5e6, 2e9)] \
        == ["0.1", "3000", "10k", "1.5M", "2G"]
