"""The last screen of `make bench`: its size on every kind of run, and its contents."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from plots.__main__ import main
from plots.data.overview import BestRung
from plots.data.ratios import Resource, ladders
from plots.data.reading import Run, load_run
from plots.screen.bench_screen import (
    MOST_LINES,
    MOST_STEPS,
    WIDTH,
    most_of_each_device,
    render,
    rung_line,
)
from run_folder import (
    environment,
    summary_row,
    total,
    unavailable_row,
    write_csv,
    write_json,
    write_run,
)
from tests import columns
from tests.commands import ROOT

PUBLISHED = columns.FOLDER
LONG = "a_rung_with_a_name_as_long_as_this_avx512"


def screen(run: Run) -> str:
    """The screen of a run, which fits whatever the run holds."""
    text = render(run)
    assert len(text.splitlines()) <= MOST_LINES == 46
    for line in text.splitlines():
        assert len(line) <= WIDTH == 110 or str(run.folder) in line, line
    return text


@pytest.fixture
def screen_of(run_of):
    return lambda *rows, **others: screen(run_of(*rows, **others))


def block(text: str, title: str) -> list[list[str]]:
    """Words of the lines below the line that starts with the title."""
    found = next(part for part in text.split("\n\n") if part.startswith(title))
    return [line.split() for line in found.splitlines()[1:]]


def commands(text: str) -> list[str]:
    return [line.partition("  #")[0].strip() for line in text.split("Next:\n")[1].splitlines()]


def test_a_full_run(run_dir, monkeypatch):
    monkeypatch.chdir(run_dir.parent)
    text = screen(load_run(run_dir))
    first, machine, *_ = text.split("\n\n")
    assert " bought the most: a factor of " in first
    assert machine.startswith("Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz; commit 0123456789ab; "
                              "data: generated\nThe machine was quiet: 3 %")
    best = block(text, "Our best rung")
    assert [line[:3] for line in best[1:3]] == [["matmul", "1", "thread"],
                                               ["matmul", "2", "threads"]]
    assert [line[:3] for line in best[-2:]] == [["all_reduce", "2", "ranks"],
                                               ["all_reduce", "4", "ranks"]]
    assert len(best) == 1 + 4 * 2 + 2
    steps = block(text, "Training step")
    assert [line[0] for line in steps[1:]] == ["mlp", "mlp", "mnist_cnn", "mnist_cnn", "cifar_cnn",
                                              "cifar_cnn"]
    assert all(line[-2:] == ["over", "serial"] for line in steps[1:])
    assert "FAILED" not in text
    assert len(commands(text)) == 3


def test_the_published_run(monkeypatch):
    monkeypatch.chdir(ROOT)
    text = render(load_run(PUBLISHED))
    assert len(text.splitlines()) <= MOST_LINES
    assert max(map(len, text.splitlines())) <= WIDTH
    assert " ".join(block(text, "Our best rung")[1]) \
        == "matmul 2 threads packed_openmp_avx512 231 GFLOP/s 73.4x 1.04x 48 % 23"
    assert " ".join(block(text, "Training step")[-1]) \
        == "cifar_cnn 2 threads best 30.0 52.7 1.75x 301x over serial"
    assert ("Charts: results/intel-xeon-2core/layers/charts (15); start with ladder-matmul.svg"
            in text)


def test_a_larger_machine_with_a_gpu_and_many_networks(screen_of):
    """More resources than lines: the most threads of each device, and the number of the others."""
    rows, steps = [], []
    for primitive in ("matmul", "convolution", "max_pool", "average_pool", "sgd_update", "layers",
                      "all_reduce"):
        rows.append(summary_row("serial", 9.0, primitive=primitive, speedup_vs_serial=1))
        for device, threads, ranks in (("cpu", 1, 1), ("cpu", 8, 1), ("cpu", 128, 1), ("cpu", 1, 2),
                                       ("cpu", 1, 64), ("NVIDIA H100 80GB HBM3 with a name", 1, 1)):
            rows.append(summary_row(LONG, 0.001, primitive=primitive, technique="openmp",
                                    builds_on="serial", threads=threads, ranks=ranks, device=device,
                                    speedup_vs_serial=9000, speedup_vs_vendor=1.5,
                                    percent_of_roof=99.9))
    for network in ("a_network_with_a_rather_long_name", "b", "c", "d", "e"):
        for threads in (1, 8, 128):
            steps += [total(network, use, 0.5, threads) for use in ("serial", "best", "vendor")]
        steps.append(total(network, "cuda", 0.001, device="NVIDIA H100 80GB HBM3 with a name"))
    text = screen_of(rows, step=steps)
    assert "3 more" in [line.strip() for line in text.splitlines()]
    assert any(len(line) == WIDTH for line in text.splitlines())
    assert [line[0] for line in block(text, "Training step")].count("b") == 2
    assert len(block(text, "Training step")) == 1 + MOST_STEPS


@pytest.mark.parametrize("over_vendor, equal, shown", [
    (1.5, 0.75, "1.50x (slower: 0.75x)"), (0.75, 0.75, "slower: 0.75x"),
    (1.5, 1.25, "1.50x (1.25x)"), (None, None, "–")])
def test_a_loss_at_equal_arithmetic_is_called_so_beside_a_gain(over_vendor, equal, shown):
    rung = next(iter(ladders(load_run(PUBLISHED)))).rungs[0]
    best = BestRung(rung, 8.0, over_vendor, equal, rung, 50.0, 3)
    assert rung_line("convolution", Resource("", 1, 2), best)[5] == shown


def test_failed_rows_are_named_and_counted(screen_of):
    rows = [summary_row("serial", 8.0, speedup_vs_serial=1)]
    rows += [summary_row("packed", 0, median_s="", status="failed", threads=2, problem=f"p{i}",
                         reason="exact tier: 3 wrong elements, first at (1, 2)\n" + 200 * "x")
             for i in range(5)]
    text = screen_of(rows)
    assert "6 rows: 1 ok (0 noisy), 5 failed" in text
    failed = [line for line in text.splitlines() if line.startswith("  FAILED")]
    assert len(failed) == 3
    assert failed[0].startswith("  FAILED matmul forward packed p0: exact tier: 3 wrong elements")
    assert "2 more failed rows:" in text and "/summary.csv" in text
    assert commands(text)[0] == \
        "build/stepladder verify matmul --variant packed --suite layers --threads 2"


def test_one_primitive_prints_less(tmp_path):
    folder = write_run(tmp_path / "run", ("matmul",), ())
    (folder / "step.csv").unlink()
    write_csv(folder, columns.SUMMARY, [
        summary_row("serial", 8.0, speedup_vs_serial=1),
        summary_row("openmp", 2.0, technique="openmp", speedup_vs_serial=4, threads=2)])
    text = screen(load_run(folder))
    assert len(text.splitlines()) <= 20
    assert "Training step" not in text and "Charts" not in text and "Tables" not in text
    assert commands(text)[:2] == ["make bench PRIMITIVE=matmul SUITE=squares", "make bench"]


def test_steps_alone(screen_of):
    text = screen_of(step=[
        total(use="simd", seconds=0.009), total(use="best", seconds=0.003),
        total(use="vendor", seconds=0.006), total(use="best,matmul=serial_ijk", mode="ablate"),
        total("mnist_cnn", "openmp", 0.004), total("mnist_cnn", "vendor", 0.002)])
    assert block(text, "Training step")[1:] == [
        ["mlp", "1", "thread", "best", "3.00", "6.00", "2.00x", "3.00x", "over", "simd"],
        ["mnist_cnn", "1", "thread", "openmp", "4.00", "2.00", "slower:", "0.50x",
         "–"]]


def test_rungs_without_a_first_rung_are_ranked_by_time(screen_of):
    """`make bench VARIANT=packed*,openblas` measures no rung to compare with."""
    text = screen_of([
        summary_row("packed", 4.0, builds_on="simd", speedup_vs_vendor=0.5),
        summary_row("packed_openmp", 3.0, builds_on="packed", speedup_vs_vendor=0.75),
        summary_row("openblas", 2.0, technique="vendor", speedup_vs_vendor=1)])
    assert block(text, "Our best rung")[1] == [
        "matmul", "1", "thread", "packed_openmp", "–", "–", "slower:", "0.75x", "–", "1"]


def test_noise_in_half_of_the_rows_is_a_warning_on_top(screen_of):
    rows = [summary_row("serial", 8.0, speedup_vs_serial=1, reason="noisy: spread 40 %"),
            summary_row("simd", 4.0, technique="simd", speedup_vs_serial=2)]
    assert screen_of(rows).startswith("WARNING: 1 of 2 measured rows are noisy")
    rows.append(summary_row("openmp", 2.0, technique="openmp", speedup_vs_serial=4))
    assert "WARNING" not in screen_of(rows)


def test_a_share_beyond_the_roof_is_explained(screen_of):
    text = screen_of([
        summary_row("serial", 8.0, speedup_vs_serial=1, percent_of_roof=4),
        summary_row("winograd", 1.0, technique="simd", speedup_vs_serial=8, percent_of_roof=140)])
    found = block(text, "Our best rung")
    assert found[1][-3:] == ["140", "%*", "1"] and found[2][0] == "*:"


def test_a_ratio_at_equal_arithmetic_is_explained():
    found = block(render(load_run(PUBLISHED)), "Our best rung")
    [convolution] = [line for line in found if line[0] == "convolution"]
    assert re.fullmatch(r"\([\d.]+x\)", convolution[8])
    assert "(…):" in [line[0] for line in found]


def test_the_step_of_a_network_is_shown_where_it_is_fastest_beside_the_libraries(screen_of):
    steps = [total("other", "best", 0.001, threads) for threads in (1, 2, 4)]
    for threads, seconds in ((1, 0.008), (2, 0.003), (4, 0.005), (8, 0.002)):
        steps += [total("net", "best", seconds, threads)]
        steps += [total("net", "vendor", 0.006, threads)] if threads < 8 else []
    shown = block(screen_of(step=steps), "Training step")[1:]
    assert [line[:6] for line in shown if line[0] == "net"] == [
        ["net", "2", "threads", "best", "3.00", "6.00"]]


def test_unavailable_rows_are_counted_by_reason(screen_of):
    rows = [summary_row("serial", 8.0, speedup_vs_serial=1)]
    for count, name in ((3, "c"), (2, "d"), (2, "e"), (1, "f"), (1, "g")):
        rows += [[f"{name} was not found" if cell == f"{name}{i} was not found" else cell
                  for cell in unavailable_row("matmul", f"{name}{i}", "cuda")]
                 for i in range(count)]
    assert ("  unavailable: 3 (c was not found), 2 (d was not found), 2 (e was not found), "
            "2 (2 other reasons)") in screen_of(rows).splitlines()


def test_a_variant_that_cannot_run_here_is_one_unavailable_row(screen_of):
    text = screen_of([
        unavailable_row("matmul", "cublas", "vendor"),
        summary_row("serial", 8.0, speedup_vs_serial=1, suite="squares")], step=[total()])
    assert "2 rows: 1 ok (0 noisy), 1 unavailable" in text
    assert "  build/stepladder list  # every rung, and why 1 did not run" in text.splitlines()


def test_columns_line_up(run_dir):
    lines = next(part for part in render(load_run(run_dir)).split("\n\n")
                 if part.startswith("Our best rung")).splitlines()[1:]
    ends = [lines[0].rindex(label) + len(label)
            for label in ("rate", "speedup", "over vendor", "of roof", "n")]
    for line in lines[1:]:
        assert all(not line[end - 1].isspace() and line[end:end + 1] in ("", " ") for end in ends)


def test_charts_and_tables_are_named_where_they_are(run_dir, monkeypatch):
    assert main(["tables", str(run_dir)]) == 0
    (run_dir / "charts").mkdir()
    (run_dir / "charts/step-mlp.svg").touch()
    monkeypatch.chdir(run_dir.parent)
    lines = screen(load_run(run_dir)).splitlines()
    assert ("Charts: run/charts (1); start with step-mlp.svg: time of a step by phase and layer"
            in lines)
    assert "Tables: run/tables.md" in lines


COMPARE_EARLIER = "make compare OLD='old run' NEW=run"
COMPARE_LATER = "make compare OLD=run NEW=FOLDER"


def write_one_row(folder: Path, variant: str, **about) -> None:
    write_json(folder / "environment.json", **environment() | about)
    write_csv(folder, columns.SAMPLES, [])
    write_csv(folder, columns.SUMMARY, [summary_row(variant, 8.0)])


@pytest.mark.parametrize("change, command", [
    ({}, COMPARE_EARLIER), ({"cpu_model": "another"}, COMPARE_LATER),
    ({"started_at": "2099-01-01T00:00:00Z"}, COMPARE_LATER)])
def test_the_compare_command_names_an_earlier_run(tmp_path, monkeypatch, change, command):
    write_one_row(tmp_path / "old run", "serial",
                  **{"started_at": "2024-05-04T10:00:00Z"} | change)
    write_one_row(tmp_path / "run", "serial")
    monkeypatch.chdir(tmp_path)
    assert command in commands(screen(load_run(tmp_path / "run")))


def test_runs_without_common_rows_or_with_malformed_files_are_not_compared(tmp_path, monkeypatch):
    for name in ("a", "b"):
        write_one_row(tmp_path / name, "other", started_at="2024-01-01T00:00:00Z")
    write_one_row(tmp_path / "run", "serial")
    (tmp_path / "b/environment.json").write_text("{")
    monkeypatch.chdir(tmp_path)
    assert COMPARE_LATER in commands(screen(load_run(tmp_path / "run")))


def test_a_run_without_results_yet(screen_of):
    assert "0 rows: 0 ok" in screen_of([])


def test_the_command_prints_the_screen_and_writes_nothing(run_dir, capsys):
    before = sorted(run_dir.iterdir())
    assert main(["table", str(run_dir)]) == 0
    assert capsys.readouterr().out == render(load_run(run_dir)) + "\n"
    assert sorted(run_dir.iterdir()) == before


def test_step_rows_of_the_thread_sweep_do_not_count(screen_of):
    text = screen_of(step=[total(seconds=0.003), total(seconds=0.001, mode="inter=1")])
    assert block(text, "Training step")[1][4] == "3.00"


def test_of_many_resources_the_most_threads_of_one_process_stay():
    one, two, ranks, more, gpu = (Resource("cpu", 1, 1), Resource("cpu", 1, 2),
                                  Resource("cpu", 2, 1),
                                  Resource("cpu", 4, 1), Resource("GPU", 1, 0))
    assert set(most_of_each_device([one, two, ranks, more, gpu])) == {two, gpu}
    assert most_of_each_device([ranks, more]) == [more]
