from __future__ import annotations

import pytest

from plots.charts import inference as chart
from plots.data.inference import services
from plots.data.reading import load_run
from plots.page import write
from plots.tables import blocks, tables_md
from run_folder import write_documented, write_run
from tests.commands import ROOT


@pytest.fixture
def run_of(tmp_path):
    """A run whose inference.csv has these rows, of dictionaries."""
    def make(*rows):
        folder = write_run(tmp_path / "run")
        write_documented(folder, "inference", rows)
        return load_run(folder)
    return make


def total(median_s=0.001, *, use="best", batch=8, threads=1, split="inside", **values):
    return {"network": "mlp", "use": use, "split": split, "batch": batch, "threads": threads,
            "ranks": 1, "weights": "generated", "layer": "total", "status": "ok",
            "verified": "yes", "error_ratio": 0.01, "requests": 100, "median_s": median_s,
            "ci_low_s": median_s, "ci_high_s": median_s, "p50_s": median_s, "p90_s": 2 * median_s,
            "p99_s": 4 * median_s, "max_s": 8 * median_s, "samples_per_s": batch / median_s,
            **values}


def layer(name, share, **values):
    return {**total(), "layer": name, "variant": "simd", "share": share, "p50_s": "", **values}


def test_layers_belong_to_the_total_that_follows(run_of):
    run = run_of(layer("fc1", 80), layer("fc2", 20), total(0.001),
                 layer("fc1", 50, batch=64), layer("fc2", 50, batch=64), total(0.004, batch=64))
    first, second = services(run.inference)
    assert (first.batch, second.batch) == (8, 64)
    assert [r["share"] for r in first.slowest_layers] == [80, 20]
    assert first.total["samples_per_s"] == 8000
    assert (first.place, first.use) == ("1 thread", "best")


def test_the_last_measurement_counts_and_rows_without_a_time_are_left_out(run_of):
    run = run_of(total(0.001), total(0.002),
                 {**total(use="mkl"), "status": "unavailable", "median_s": ""})
    found, = services(run.inference)
    assert found.total["median_s"] == 0.002


def test_places_name_what_threads_share(run_of):
    run = run_of(total(threads=2), total(threads=2, split="requests"), total(ranks=2),
                 total(threads=2, ranks=2))
    assert [service.place for service in services(run.inference)] == [
        "2 threads inside", "2 requests at once", "2 ranks", "2 ranks x 2 threads inside"]


def test_the_chart_has_a_line_for_rungs_and_threads_and_a_point_for_each_batch(run_of):
    run = run_of(*(total(0.001 * batch ** 0.5 * slower, use=use, batch=batch)
                   for use, slower in (("best", 1), ("serial", 30)) for batch in (64, 1, 8)),
                 total(0.0005, threads=2, batch=1))
    (name, page), = chart.draw(run)
    assert name == "inference-mlp"
    axes, = page.panels()
    lines = [container.lines[0] for container in axes.containers]
    assert [list(line.get_xdata()) for line in lines][0] == pytest.approx(
        [1 / 0.001, 8 / (0.001 * 8 ** 0.5), 64 / 0.008])
    assert list(lines[0].get_ydata()) == pytest.approx([1, 8 ** 0.5, 8])
    assert [len(line.get_xdata()) for line in lines] == [3, 3, 1]
    assert [text.get_text() for text in axes.texts] == ["1", "8", "64", "1", "8", "64", "1"]
    assert {text.get_text() for text in page.figure.legends[0].get_texts()} == {
        "best, 1 thread", "best, 2 threads inside", "serial, 1 thread"}
    title = next(text for text in page.figure.texts if text.get_gid() == "title").get_text()
    assert "0.500 ms for 1 sample (2 threads inside)" in title.replace("\n", " ")
    assert "at most 8000 samples/s (batch 64, 1 thread)" in title.replace("\n", " ")


def test_bars_reach_from_the_median_to_the_99th_percentile(run_of):
    run = run_of(total(0.001))
    (_, page), = chart.draw(run)
    container, = page.panels()[0].containers
    (low, high), = [[point[1] for point in segment]
                    for segment in container.lines[2][0].get_segments()]
    assert (low, high) == pytest.approx((1, 4))


def test_a_run_without_inference_or_without_times_says_so(run_of, run_dir):
    assert list(chart.draw(load_run(run_dir))) == [("inference", "no inference.csv")]
    failed = run_of({**total(), "status": "failed", "median_s": ""})
    assert list(chart.draw(failed)) == [("inference", "inference.csv has no request with a time")]
    assert blocks.inference(failed) is None


def test_the_tables_have_every_service_and_its_slowest_layers(run_of):
    run = run_of(layer("fc1", 55), layer("fc2", 15), layer("fc3", 30), total(0.001))
    text = tables_md.render(run)
    assert "## Inference" in text
    assert ("| `best` | 1 thread | 8 | 1.00 | 2.00 | 4.00 | 8.00 | 8000 | fc1 55 %, fc3 30 % |"
            in text)
    assert "- [inference.csv](inference.csv)" in text
    assert blocks.known_blocks(run, ())["inference"](run.folder).endswith(
        blocks.inference_tables(run))


def test_the_page_has_the_table(run_of):
    run = run_of(layer("fc1", 100), total(0.001))
    html, _ = write.render(run, None, ROOT, ROOT / "build/stepladder")
    assert "<h3>Inference</h3>" in html and "fc1 100 %" in html
