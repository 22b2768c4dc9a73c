from __future__ import annotations

import random
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import matplotlib
import matplotlib.colors
import numpy as np
import pytest
from matplotlib.container import ErrorbarContainer

from plots.__main__ import main
from plots.charts import draw, scaling, style
from plots.charts.figure import Page, columns_that_fit, label_of_all, row_by_row, save
from plots.charts.labels import count_inside, parts_of, spread
from plots.data import schema
from plots.data.ratios import Resource, ladders
from plots.data.reading import EVERYTHING, Row, Run, load_run
from run_folder import (
    LAYERS,
    ceiling,
    one_step,
    row,
    summary_row,
    total,
    unavailable_row,
    write_csv,
    write_json,
    write_run,
)
from tests import columns
from text_boxes import faults, measurable, text_of, title_of, visible_texts

EXPECTED = {
    "ladder-matmul", "ladder-max_pool", "ladder-all_reduce", "size-matmul", "size-max_pool",
    "roof-matmul", "roof-max_pool", "step-mnist_cnn", "ablation-mnist_cnn", "scaling-matmul",
    "scaling-max_pool", "scaling-step", "bus-bandwidth", "all-reduce-short", "all-reduce-map",
    "roofline", "loss", "predicted", "noise"}
ONE_OF_EACH_KIND = {
    "ladder-max_pool", "size-max_pool", "roof-max_pool", "step-mnist_cnn", "scaling-max_pool",
    "bus-bandwidth", "all-reduce-short", "all-reduce-map", "roofline", "loss", "predicted", "noise"}


def drawn(run: Run) -> dict[str, Page | str]:
    """Every chart by name, or the reason why it was not drawn."""
    with matplotlib.rc_context(style.RC):
        return {name: drawn for kind in draw.KINDS for name, drawn in kind.draw(run)}


@pytest.fixture
def charts_of(run_of: Callable[..., Run]) -> Callable[..., dict[str, Page | str]]:
    """The charts of a run with these rows: see run_of."""
    return lambda *rows, **others: drawn(run_of(*rows, **others))


@pytest.fixture
def chart_of(charts_of) -> Callable[..., Page | str]:
    return lambda name, *rows, **others: charts_of(*rows, **others)[name]


def test_the_charts_of_each_network_have_files_of_their_own(tmp_path):
    names = ["tiny.v1", "tiny.v2", "deep/net $1", "deep~net"]
    noise = random.Random(1)
    write_csv(tmp_path, columns.STEP, [line for name in names
                                       for line in one_step(noise, name, LAYERS["mlp"], "serial",
                                                            "single", 1, 1.0)])
    (tmp_path / "columns.json").write_text(columns.JSON)
    outcome = draw.write_kind(load_run(tmp_path), draw.KINDS.index(draw.step_time))
    files = {path.name for path in (tmp_path / "charts").iterdir()}
    assert set(outcome.written) >= {"step-tiny.v1", "step-tiny.v2", "step-deep~2fnet~20~241",
                                    "step-deep~7enet"}
    assert files == {f"{name}.{suffix}" for name in outcome.written
                     for suffix in ("svg", "pdf", "png")}


@pytest.fixture(scope="session")
def small_run(tmp_path_factory) -> Path:
    """Fewer primitives and networks than run_dir: drawing takes a second per chart."""
    return write_run(tmp_path_factory.mktemp("charts") / "run", ("matmul", "max_pool"),
                     ("mnist_cnn",), sweeps=True)


@pytest.fixture(scope="session")
def pages(small_run) -> dict[str, Page]:
    """Those of scaling are of four threads too, which take half the time of two."""
    run = load_run(small_run)
    found = drawn(run)
    for rows in (run.summary, run.step):
        rows += [Row(row.path, row | {"threads": 4, "median_s": row["median_s"] / 2})
                 for row in rows if row["threads"] == 2 and row["median_s"] is not None]
    with matplotlib.rc_context(style.RC):
        found |= dict(scaling.draw(run))
    return {name: page for name, page in found.items() if isinstance(page, Page)}


@pytest.fixture(scope="session")
def written(small_run, pages) -> Path:
    for name in ONE_OF_EACH_KIND:
        save(pages[name], small_run / "charts", name)
    return small_run / "charts"


@pytest.mark.parametrize("name", sorted(ONE_OF_EACH_KIND))
def test_every_chart_is_written_in_three_formats(written, name):
    svg, pdf, png = (written / f"{name}.{suffix}" for suffix in ("svg", "pdf", "png"))
    assert svg.stat().st_size > 10_000 and svg.read_text().rstrip().endswith("</svg>")
    assert pdf.stat().st_size > 5_000 and pdf.read_bytes().startswith(b"%PDF")
    assert png.stat().st_size > 10_000 and png.read_bytes().startswith(b"\x89PNG")


def test_no_other_chart_is_drawn(pages):
    assert set(pages) == EXPECTED


def test_the_same_results_give_the_same_files(small_run, written, tmp_path, capsys):
    for name in ("environment.json", "columns.json", "train.csv"):
        (tmp_path / name).write_bytes((small_run / name).read_bytes())
    assert main(["charts", str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith(f"1 chart (svg, pdf, png) in {tmp_path / 'charts'}:"
                                              "\n  loss\n  not drawn: ")
    for suffix in ("svg", "pdf", "png"):
        name = f"loss.{suffix}"
        assert (tmp_path / "charts" / name).read_bytes() == (written / name).read_bytes()
    assert b"dc:date" not in (written / "loss.svg").read_bytes()


def test_every_chart_has_a_caption_with_machine_commit_and_data(pages):
    for name, page in pages.items():
        caption = text_of(page, "caption")
        for fact in ("Platinum 8481C", "commit 0123456789ab", "data: generated"):
            assert fact in caption, name
        assert "thread" in caption or "ranks" in caption or name == "loss", name


def test_charts_fit_a_page(pages):
    for name, page in pages.items():
        width, height = page.figure.get_size_inches()
        assert width <= 7.2 and height <= 7, name


def test_no_text_overlaps_another_is_cut_or_too_small(pages):
    assert {name: faults(page) for name, page in pages.items()} == dict.fromkeys(pages, [])


@pytest.mark.parametrize("folder", [
    "intel-xeon-2core/layers", "intel-xeon-16core", *(f"amd-epyc-zen4-2core/{name}" for name in (
        "all_reduce", "network", "modes", "modes/scaling", "simulation", "simulation/trainings"))])
def test_no_text_of_the_published_charts_overlaps_another(folder):
    run = load_run(columns.RESULTS / folder, [part for part in EVERYTHING if part != "samples"])
    found = {name: page for name, page in drawn(run).items() if isinstance(page, Page)}
    assert found
    with matplotlib.rc_context(style.RC):
        assert {name: faults(page) for name, page in found.items()} == dict.fromkeys(found, [])


def test_faults_of_texts_are_found():
    page = Page("a title", "a caption", 1, 1, panel_height=2)
    axes = page.panels()[0]
    axes.text(0.5, 0.5, "one")
    axes.text(0.52, 0.5, "other")
    axes.text(0.1, 0.1, "small", fontsize=4)
    axes.text(0.1, 0.8, "apart")
    axes.text(0.5, 0.9, "hidden", visible=False)
    axes.text(0.5, 0.9, "seen")
    page.figure.text(0.98, 0.5, "beyond the edge")
    found = faults(page)
    assert "'one' overlaps 'other'" in found and "'small' has 4.0 points" in found
    assert "'beyond the edge' is cut" in found
    assert len(found) == 3


def test_no_legend_has_more_than_nine_entries(pages):
    for name, page in pages.items():
        for legend in page.figure.legends:
            assert len(legend.get_texts()) <= 9, name


def test_names_of_the_roofline_hide_no_point(pages):
    page = pages["roofline"]
    measurable(page)
    for axes in page.panels():
        if not axes.get_visible():
            continue
        points = axes.transData.transform([(line.get_xdata()[0], line.get_ydata()[0])
                                           for line in axes.lines if len(line.get_xdata()) == 1])
        for text in set(visible_texts(page)) & set(axes.texts):
            for box in parts_of(text):
                assert count_inside(box, points) == 0, text.get_text()


def test_labels_at_the_end_of_lines_stay_in_order_and_apart():
    assert spread([5, 5.5, 20], 2, 0, 30) == pytest.approx([5, 7, 20])
    assert spread([29, 30, 5], 2, 0, 30) == pytest.approx([28, 30, 5])
    assert spread([3, 1, 2], 4, 0, 30) == pytest.approx([9, 1, 5])
    assert spread([1, 2, 3], 10, 0, 15) == pytest.approx([0, 10, 20])  # they do not fit


def looks(page: Page) -> dict[str, set[tuple[str, str]]]:
    """Colours and markers by the label of what is drawn with a marker."""
    found: dict[str, set] = {}
    for axes in page.figure.axes:
        lines = [(line.get_label(), line) for line in axes.lines]
        lines += [(container.get_label(), container.lines[0]) for container in axes.containers
                  if isinstance(container, ErrorbarContainer) and container.lines[0] is not None]
        for label, line in lines:
            if line.get_marker() not in ("None", "", None) and not label.startswith("_"):
                found.setdefault(label, set()).add((matplotlib.colors.to_hex(line.get_color()),
                                                    line.get_marker()))
    return found


def test_a_technique_has_one_colour_and_marker_in_every_chart(small_run, pages):
    for ladder in ladders(load_run(small_run)):
        technique_of = {rung.name: rung.technique for rung in ladder.rungs}
        names = {f"{kind}-{ladder.primitive}" for kind in ("ladder", "size", "scaling", "roof")}
        if ladder.primitive == "all_reduce":
            names |= {"bus-bandwidth", "all-reduce-short"}
        seen = set()
        for name in names & set(pages):
            for label, found in looks(pages[name]).items():
                seen.add(label)
                technique = technique_of[label]
                assert found == {(style.COLOURS[technique].lower(),
                                  style.MARKERS[technique])}, (name, label)
        assert seen == {rung.name for rung in ladder.measured_rungs}


def test_techniques_have_colours_and_markers_of_their_own():
    assert set(style.COLOURS) == set(style.MARKERS) == set(schema.TECHNIQUES)
    for table, neutral in ((style.COLOURS, style.NEUTRAL_COLOUR),
                           (style.MARKERS, style.NEUTRAL_MARKER)):
        assert len({*table.values(), neutral}) == len(table) + 1


def lightness_and_hue(colour: str, seen: np.ndarray) -> np.ndarray:
    """CIE L*a*b* of a colour after a matrix on linear RGB."""
    rgb = np.array(matplotlib.colors.to_rgb(colour))
    linear = np.clip(seen @ np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4),
                     0, 1)
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722],
                    [0.0193, 0.1192, 0.9505]]) @ linear
    x, y, z = np.where((t := xyz / (0.9505, 1, 1.089)) > 0.008856, np.cbrt(t), 7.787 * t + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


# Machado, Oliveira and Fernandes, IEEE TVCG 15(6), 2009: deuteranopia.
DEUTERANOPIA = np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
                         [-0.011820, 0.042940, 0.968881]])


@pytest.mark.parametrize("seen", [np.eye(3), DEUTERANOPIA], ids=["all cones", "deuteranopia"])
def test_colours_of_techniques_are_far_apart(seen):
    colours = [lightness_and_hue(colour, seen)
               for colour in (*style.COLOURS.values(), style.NEUTRAL_COLOUR)]
    assert min(np.linalg.norm(a - b) for a, b in combinations(colours, 2)) > 20


def test_the_cells_of_a_map_are_light_enough_for_black_text():
    assert min(lightness_and_hue(face, np.eye(3))[0] for face in style.CELLS) > 80


def test_variants_of_one_technique_differ(small_run):
    for ladder in ladders(load_run(small_run)):
        styles = style.variant_styles(ladder.rungs)
        for technique in schema.TECHNIQUES:
            same = [styles[rung.name] for rung in ladder.rungs if rung.technique == technique]
            assert len({(look.marker, look.fill) for look in same}) == len(same)
            assert {look.marker for look in same} <= {style.MARKERS[technique]}
            assert {look.colour for look in same} <= {style.COLOURS[technique]}
    many = style.distinct_styles({f"rung{i}": "mpi" for i in range(25)}).values()
    assert len({(look.marker, look.fill) for look in many}) == 25


def y_labels(page: Page) -> list[str]:
    """Those of its first panel."""
    return [label.get_text() for label in page.panels()[0].get_yticklabels()]


def rungs(times: list[float], spread: float = 0.01) -> list[list[str]]:
    """Rungs that build on one another, with intervals of +-spread."""
    names = ("serial", "vectors", "packed")
    return [summary_row(name, seconds, technique=technique, builds_on=base,
                        ci_low_s=seconds * (1 - spread), ci_high_s=seconds * (1 + spread),
                        speedup_vs_serial=times[0] / seconds)
            for name, base, technique, seconds in zip(names, ("", *names),
                                                      ("serial", "simd", "openmp"), times)]


@pytest.mark.parametrize("times, spread, title", [
    ([12, 4, 2], 0.01, "packed is 6.0 times as fast as serial; SIMD bought the most, 3.0 times"),
    ([12, 8, 2], 0.01,
     "packed is 6.0 times as fast as serial; OpenMP threads bought the most, 4.0 times"),
    # Gains of 3 and 2.7: no more than the intervals allow.
    ([12, 4, 1.5], 0.2, "packed is 8.0 times as fast as serial"),
    ([12, 4, 1.5], 0.9, "matmul: speedup over serial"),
    ([1], 0.01, "matmul: speedup over serial")])
def test_the_title_of_a_ladder_is_its_whole_gain(chart_of, times, spread, title):
    page = chart_of("ladder-matmul", rungs(times, spread))
    assert title_of(page) == title
    if title != "matmul: speedup over serial":
        assert text_of(page, "subtitle") == "matmul: speedup over serial"


def test_a_ladder_has_its_main_rungs_below_then_branches_and_the_libraries_on_top(pages):
    labels = y_labels(pages["ladder-matmul"])
    assert [label.partition(" ")[0] for label in labels] == [
        "serial_ijk", "serial_ikj", "blocked", "simd_sse42", "simd_avx2", "simd_avx512", "packed",
        "packed_openmp", "openmp", "pthread", "onednn", "openblas"]
    assert "openmp  (on simd)" in labels and "packed" in labels
    low, high = pages["ladder-matmul"].panels()[0].get_ylim()
    assert low < high


def test_a_ladder_writes_the_gain_over_the_rung_below(chart_of):
    axes = chart_of("ladder-matmul", rungs([12, 4, 2])).panels()[0]
    assert {text.get_position()[1]: text.get_text() for text in axes.texts if text.get_text()} \
        == {1: "3.0x", 2: "2.0x"}


@pytest.mark.parametrize("others, roof", [
    ([("fast", 1.0, 40, "fma_peak")], 20),
    # The highest roof of a problem counts.
    ([("fast", 4.0, 10, "fma_peak"), ("tf32", 1.0, 5, "tf32_peak")], 160)])
def test_the_roof_of_a_ladder_is_the_speedup_at_the_roof(chart_of, others, roof):
    axes = chart_of("ladder-matmul", [
        summary_row("serial", 8.0, speedup_vs_serial=1, percent_of_roof=5, roof="fma_peak"),
        *(summary_row(name, seconds, technique="simd", builds_on="serial",
                      speedup_vs_serial=8 / seconds, percent_of_roof=share, roof=of)
          for name, seconds, share, of in others)]).panels()[0]
    found, = {line.get_xdata()[0] for line in axes.lines
              if list(line.get_ydata()) == [0, 1] and line.get_xdata()[0] != 1}
    assert found == pytest.approx(roof)


def sweep(variant: str, seconds: float, size: int, **values) -> list[str]:
    return summary_row(variant, seconds, problem=f"square.{size}", suite="squares", flops=size,
                       gflops_per_s=size / seconds / 1e9, **values)


def test_size_charts_name_the_rungs_that_tell_the_story(chart_of):
    rungs = [("serial", "serial", "", 8.0), ("tiny_gain", "simd", "serial", 7.8),
             ("step", "simd", "serial", 4.0), ("best", "simd", "step", 1.0),
             ("slow_library", "vendor", "", 2.0), ("library", "vendor", "", 1.5)]
    page = chart_of("size-matmul", [
        sweep(name, seconds * size / 1e9, size, technique=technique, builds_on=base)
        for name, technique, base, seconds in rungs for size in (10**8, 10**9)])
    axes = page.panels()[0]
    assert {text.get_text() for text in axes.texts} == {"serial", "step", "best", "library"}
    grey = {line.get_label() for line in axes.lines if line.get_color() == style.BACKGROUND}
    assert grey == {"tiny_gain", "slow_library"}
    assert title_of(page) == "best is 1.5 times as fast as library"
    assert not page.figure.legends


def test_size_charts_of_filters_have_the_filter_as_size(chart_of):
    sizes = (3, 11, 31)
    page = chart_of("size-convolution", [
        summary_row(name, seconds * size, primitive="convolution", suite="filters",
                    problem=f"filters.{size}x{size}", flops=1e9 * size**2,
                    gflops_per_s=size / seconds,
                    shape=f"n4 c32 h56 w56 k32 r{size} s{size} stride1x1 pad1x1 g1",
                    technique=technique, builds_on=base)
        for name, technique, base, seconds in (("serial", "serial", "", 4.0),
                                               ("best", "simd", "serial", 1.0))
        for size in sizes])
    axes = page.panels()[0]
    assert [list(bars.lines[0].get_xdata()) for bars in axes.containers] == [list(sizes)] * 2
    assert [label.get_text() for label in axes.get_xticklabels()] == ["3", "11", "31"]
    assert axes.get_xlabel() == "rows and columns of the filter"


SMALL_LAYER = "n64 c1 h28 w28 k32 r5 s5 stride1x1 pad2x2 g1"
DEEP_LAYER = "n4 c96 h27 w27 k256 r3 s3 stride2x2 pad1x1 g1"


def layout_row(variant, layout, seconds, shape=SMALL_LAYER, builds_on="direct_tile", **cells):
    name = f"{'small' if shape == SMALL_LAYER else 'deep'}.{layout}"
    return summary_row(variant, seconds, **{
        "primitive": "convolution", "suite": "layouts", "problem": name, "shape": shape,
        "layout": layout, "technique": "openmp", "builds_on": builds_on, "direction": "forward",
        "ci_low_s": 0.99 * seconds, "ci_high_s": 1.01 * seconds, **cells})


def conversion_row(direction, shape, seconds, variant="transposed"):
    return layout_row(variant, "chwn", seconds, shape, "serial", primitive="reorder",
                      problem=f"{direction} {shape}", direction=direction)


def layout_rows():
    return [
        layout_row("direct_tile_avx2", "nchw", 1.0, builds_on="openmp"),
        layout_row("winograd_avx2", "nchw", 0.4),
        layout_row("onednn", "nchw", 0.1, technique="vendor", builds_on=""),
        layout_row("direct_chwn_avx2", "chwn", 0.5),
        layout_row("direct_nchw16c_avx2", "nchw16c", 0.8),
        layout_row("direct_tile_avx2", "nchw", 1.0, DEEP_LAYER, "openmp"),
        layout_row("direct_chwn_avx2", "chwn", 4.0, DEEP_LAYER),
        layout_row("direct_nchw16c_avx2", "nchw16c", 0.8, DEEP_LAYER)]


def speedups(axes) -> list[float]:
    return sorted(round(float(line.get_xdata()[0]), 3)
                  for line in axes.lines if line.get_marker() not in ("None", "|"))


def test_the_chart_of_layouts_compares_with_the_rung_in_nchw_that_they_build_on(chart_of):
    page = chart_of("layouts-convolution", layout_rows())
    axes = page.panels()[0]
    assert speedups(axes) == [0.25, 1.25, 1.25, 2.0]
    # The fastest rung in nchw of any algorithm, without libraries.
    assert sorted(float(line.get_xdata()[0]) for line in axes.lines
                  if line.get_marker() == "|") == [1.0, 2.5]
    # The shape on which chwn gains most is on top.
    assert [label.get_text().splitlines()[0]
            for label in axes.get_yticklabels()] == ["small", "deep"]
    assert title_of(page) == "Fastest of 2 shapes, same algorithm: chwn on 1, nchw16c on 1"
    assert "the run has no rows of reorder" in " ".join(text_of(page, "caption").split())


def test_the_chart_of_layouts_adds_the_conversions_of_input_and_result(chart_of):
    page = chart_of("layouts-convolution", [
        *layout_rows(),
        conversion_row("nchw_to_chwn", "n64 c1 h28 w28", 0.25),
        conversion_row("chwn_to_nchw", "n64 c32 h28 w28", 0.5),
        conversion_row("chwn_to_nchw", "n64 c32 h28 w28", 9.0, "slow"),
        conversion_row("nchw_to_chwn", "n4 c96 h27 w27", 1.0),
        conversion_row("chwn_to_nchw", "n4 c256 h14 w14", 3.0),
        *(conversion_row(direction, shape, seconds) for seconds, shapes in (
            (0.25, ("n64 c1 h28 w28", "n64 c32 h28 w28")),
            (0.05, ("n4 c96 h27 w27", "n4 c256 h14 w14")))
          for direction, shape in zip(("nchw_to_nchw16c", "nchw16c_to_nchw"), shapes))])
    hollow = sorted(float(line.get_xdata()[0])
                    for line in page.panels()[0].lines if line.get_markerfacecolor() == "white")
    assert hollow == pytest.approx([1 / (4 + 1 + 3), 1 / (0.8 + 0.25 + 0.25),
                                    1 / (0.5 + 0.25 + 0.5), 1 / (0.8 + 0.05 + 0.05)])
    assert " ".join(title_of(page).split()) == ("Fastest of 2 shapes, same algorithm: chwn on 1, "
                                                "nchw16c on 1; with conversions nchw on 1, nchw16c "
                                                "on 1")


def test_the_title_of_layouts_names_none_whose_interval_touches_another(chart_of):
    close = [layout_row("direct_tile_avx2", "nchw", 1.0, builds_on="openmp"),
             layout_row("direct_chwn_avx2", "chwn", 0.985)]
    clear = [layout_row("direct_tile_avx2", "nchw", 1.0, DEEP_LAYER, "openmp"),
             layout_row("direct_chwn_avx2", "chwn", 4.0, DEEP_LAYER)]
    for rows, title in (
            (close, "convolution: layouts against nchw, the same algorithm"),
            (close + clear, "Fastest of 2 shapes, same algorithm: nchw on 1, too close on 1")):
        assert title_of(chart_of("layouts-convolution", rows)) == title


def test_layouts_without_a_row_in_nchw_have_no_chart(chart_of):
    why = chart_of("layouts-convolution", [layout_row("direct_chwn_avx2", "chwn", 0.5)])
    assert why.startswith("no shape of suite layouts has a time in nchw")


def test_size_charts_join_only_problems_of_sweeps(chart_of):
    why = chart_of("size-matmul", [summary_row("serial", 1.0, flops=1e9, gflops_per_s=1)])
    assert why.startswith("no row is of a suite that varies the size")


def test_charts_that_cannot_be_drawn_are_listed_with_the_reason(tmp_path, capsys):
    write_json(tmp_path / "environment.json")
    assert main(["charts", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert text.startswith("0 charts")
    for line in ("ladder: no summary.csv", "step: no step.csv", "loss: no train.csv",
                 "noise: no samples.csv", "predicted: no step.csv"):
        assert f"not drawn: {line}" in text


def test_a_folder_that_cannot_be_written_is_an_error(small_run, tmp_path, capsys):
    for name in ("columns.json", "train.csv"):
        (tmp_path / name).write_bytes((small_run / name).read_bytes())
    (tmp_path / "charts").touch()
    assert main(["charts", str(tmp_path)]) == 1
    assert str(tmp_path / "charts") in capsys.readouterr().err


def test_files_with_nothing_but_headers(tmp_path):
    for table in columns.TABLES.values():
        write_csv(tmp_path, table, [])
    assert all(isinstance(result, str) for result in drawn(load_run(tmp_path)).values())


def test_one_row_is_enough_for_a_ladder(charts_of):
    found = charts_of([summary_row("serial", 1.0, speedup_vs_serial=1)])
    assert isinstance(found["ladder-matmul"], Page)
    assert found["roof-matmul"] == "no row has a share of the roof"
    assert found["scaling-matmul"] == scaling.TOO_FEW


def test_a_rung_without_a_speedup_has_no_line_in_the_ladder(chart_of):
    labels = y_labels(chart_of("ladder-matmul", [
        summary_row("serial", 1.0, speedup_vs_serial=1),
        summary_row("fused", 0.5, direction="forward_bias_relu", speedup_vs_serial="")]))
    assert any("serial" in label for label in labels)
    assert not any("fused" in label for label in labels)


def test_the_row_of_a_variant_that_cannot_run_here_changes_no_chart(charts_of):
    rows = [summary_row("serial", 1.0, speedup_vs_serial=1, percent_of_roof=5, flops=1e9,
                        gflops_per_s=1)]
    before = charts_of(rows)
    after = charts_of([unavailable_row("matmul", "cublas", "vendor"), *rows,
                       unavailable_row("convolution", "cudnn", "vendor")])
    assert {name for name, page in after.items() if isinstance(page, Page)} \
        == {name for name, page in before.items() if isinstance(page, Page)}
    titles = [axes.get_title(loc="left") for axes in after["ladder-matmul"].panels()]
    assert titles == ["forward"]


def test_rows_that_all_failed(charts_of):
    found = charts_of([summary_row("serial", 0, status="failed", median_s="")])
    assert found["ladder-matmul"] == "no row has a speedup"
    assert found["size-matmul"] == "no row has a time"


def test_the_peak_is_the_top_of_the_axis(pages):
    assert pages["size-matmul"].panels()[0].get_ylim() == (0, 151.0)
    assert pages["size-max_pool"].panels()[0].get_ylim()[1] == pytest.approx(12.1)


def test_a_rate_above_the_measured_peak_is_not_cut_off(chart_of):
    page = chart_of("size-matmul", [sweep("fast", size / 1e11, size) for size in (10**9, 10**11)],
                    ceilings=[ceiling("fma_peak", "GFLOP/s", 90.0)])
    assert page.panels()[0].get_ylim()[1] > 100


def test_the_roofline_shows_the_first_rung_the_fastest_and_the_library(chart_of):
    work = {"flops": 1e9, "bytes": 1e8}  # 10 FLOP per byte
    axes = chart_of("roofline", [
        summary_row("serial", 1.0, gflops_per_s=1, **work),
        summary_row("slow", 0.1, technique="simd", builds_on="serial", gflops_per_s=10, **work),
        summary_row("fast", 0.02, technique="simd", builds_on="slow", gflops_per_s=50, **work),
        summary_row("library", 0.025, technique="vendor", gflops_per_s=40, **work)], ceilings=[
        ceiling("fma_peak", "GFLOP/s", 90.0), ceiling("stream_copy", "GB/s", 9.0, "DRAM"),
        ceiling("stream_read", "GB/s", 60.0, "L2"), ceiling("stream_read", "GB/s", 66.0, "L1")
    ]).panels()[0]
    points = {(line.get_label(), line.get_xdata()[0], line.get_ydata()[0])
              for line in axes.lines if len(line.get_xdata()) == 1}
    assert points == {("serial", 10, 1), ("simd", 10, 50), ("vendor", 10, 40)}
    ridges = {line.get_xdata()[1] for line in axes.lines if line.get_ydata()[-1] == 90.0} - {
        axes.get_xlim()[1]}
    assert ridges == {10.0, 90 / 66}
    texts = {text.get_text() for text in axes.texts}
    assert texts == {"peak 90 GFLOP/s", "L1, L2 66 GB/s", "DRAM 9 GB/s", "matmul"}


def test_a_sweep_through_the_caches_has_a_logarithmic_axis(chart_of):
    axes = chart_of("size-sgd_update", [
        summary_row("simd", 1e-6 * size, primitive="sgd_update", problem=f"count.{size}",
                    suite="sweep", bytes=size, gbytes_per_s=rate)
        for size, rate in ((1e3, 200), (1e5, 80), (1e7, 5))], ceilings=[
        ceiling("stream_copy", "GB/s", value, level)
        for level, value in (("DRAM", 10.0), ("L2", 90.0), ("L1", 300.0))]).panels()[0]
    assert axes.get_yscale() == "log"
    assert axes.get_ylim()[1] == 300


def test_many_threads_and_a_gpu(charts_of):
    """The ladder shows the fewest and the most threads; the GPU has its name."""
    rows = [summary_row("serial", 64.0, speedup_vs_serial=1)]
    rows += [summary_row("openmp", 64.0 / threads, technique="openmp", builds_on="serial",
                         threads=threads, speedup_vs_serial=threads)
             for threads in (1, 2, 4, 8, 16, 32)]
    rows.append(summary_row("naive", 0.1, technique="cuda", builds_on="serial", device="H200",
                            speedup_vs_serial=640))
    found = charts_of(rows)
    assert y_labels(found["ladder-matmul"]) == ["serial", "openmp", "naive  (on serial)"]
    legend = [text.get_text() for text in found["ladder-matmul"].figure.legends[0].get_texts()]
    assert legend == ["serial", "openmp", "cuda", "1 thread", "32 threads, H200"]
    ticks = list(found["scaling-matmul"].panels()[0].get_xticks())
    assert ticks == [1, 2, 4, 8, 16, 32]


def test_a_bar_of_a_step_is_its_total_and_its_layers_add_up(chart_of):
    rows = []
    for use, seconds in (("serial", 0.07), ("best", 0.007), ("vendor", 0.014)):
        where = {"network": "mlp", "use": use, "mode": "single", "threads": 2, "ranks": 1}
        rows += [
            row(columns.STEP, **where, layer="fc1", phase="forward", variant="v", median_s=0.002),
            row(columns.STEP, **where, layer="fc1", phase="backward", variant="v", median_s=0.004),
            row(columns.STEP, **where, layer="total", phase="total", median_s=seconds)]
    page = chart_of("step-mlp", step=rows)
    times, shares = page.panels()
    assert [bar.get_width() for bar in times.patches] == pytest.approx([70, 7, 14])
    assert sum(bar.get_width() for bar in shares.patches) == pytest.approx(300)
    assert title_of(page).replace("\n", " ") == \
        "mlp: 7.00 ms a step, 10 times as fast as serial, 2.0 times as fast as the libraries"
    assert title_of(chart_of("step-mlp", step=rows[3:6])) == "mlp: time of one training step"


def values_of(page, label):
    """The y values of the series of a line chart."""
    found, = [container for container in page.panels()[0].containers
              if container.get_label() == label]
    return [float(y) for y in found[0].get_ydata()]


def test_more_threads_that_take_less_time_have_a_speedup_above_one(charts_of):
    found = charts_of([
        summary_row("openmp", 8.0, technique="openmp"),
        summary_row("openmp", 2.0, technique="openmp", threads=2),
        summary_row("openmp", 1.0, technique="openmp", threads=3)], step=[
        total(seconds=9), total(seconds=6, threads=2), total(seconds=3, threads=4)])
    assert values_of(found["scaling-matmul"], "openmp") == pytest.approx([1, 4, 8])
    assert values_of(found["scaling-step"], "best") == pytest.approx([1, 1.5, 3])


def test_two_numbers_of_threads_are_no_line(charts_of):
    found = charts_of([summary_row("openmp", 8.0, technique="openmp"),
                       summary_row("openmp", 2.0, technique="openmp", threads=2)],
                      step=[total(seconds=9), total(seconds=6, threads=2)])
    for name in ("scaling-matmul", "scaling-step"):
        assert found[name] == scaling.TOO_FEW


def test_a_panel_of_scaling_has_the_variants_that_are_fastest_on_the_most_threads(charts_of):
    rungs = [summary_row("serial", 99.0, speedup_vs_serial=1)]
    for rank in range(15):
        seconds = {1: 10.0, 2: 20.0 - rank, 4: 30.0 + rank}
        rungs += [summary_row(f"rung{rank}", time, technique="openmp", builds_on="serial",
                              threads=threads, speedup_vs_serial=99 / time)
                  for threads, time in seconds.items()]
    page = charts_of(rungs)["scaling-matmul"]
    shown = {container.get_label() for container in page.panels()[0].containers}
    assert shown == {f"rung{rank}" for rank in range(12)}
    assert "the 12 variants that are fastest on the most threads" in text_of(page, "caption")


def test_a_legend_reads_row_by_row():
    assert row_by_row(list("abcde"), 3) == ["a", "d", "b", "e", "c"]
    assert row_by_row(list("ab"), 2) == ["a", "b"]


def test_a_legend_has_as_many_columns_as_fit():
    short = [style.technique_style("simd").handle("simd") for _ in range(8)]
    long = [style.technique_style("simd").handle("a_name_as_long_as_this_avx512")] * 8
    assert columns_that_fit(short, 6) == 6
    assert columns_that_fit(short[:2], 6) == 2
    assert columns_that_fit(long, 6) == 2
    assert columns_that_fit([style.technique_style("simd").handle("x" * 500)], 6) == 1


def test_resources_in_a_caption():
    cpu = [Resource("", 1, threads) for threads in (4, 1, 2)]
    assert label_of_all(cpu[1:2]) == "1 thread"
    assert label_of_all([*cpu, *cpu]) == "1, 2, 4 threads"
    assert label_of_all([cpu[0], Resource("", 2, 1), Resource("H200", 1, 1),
                         Resource("", 2, 2)]) == "4 threads, 2 ranks, 2 ranks x 2 threads, H200"


def test_a_step_on_many_thread_counts_shows_the_first_and_the_last(chart_of):
    rows = []
    for use in ("simd", "openmp", "best", "vendor"):
        for threads in (1, 2, 4, 8, 16, 32):
            rows += one_step(random.Random(1), "mlp", LAYERS["mlp"], use, "single", threads, 8)
    labels = y_labels(chart_of("step-mlp", step=rows))
    assert labels[:3] == ["simd, 1 thread", "simd, 32 threads", "openmp, 1 thread"]
    assert len(labels) == 8
