"""Training modes side by side: modes.csv, the charts, the last screen and the tables."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path

import matplotlib
import matplotlib.colors
import pytest
from matplotlib.colors import to_hex

import mode_run
from plots.__main__ import main
from plots.charts import draw, style
from plots.charts.figure import Page
from plots.data import modes, schema
from plots.data.errors import InputError
from plots.data.modes import compare, labels_of, most_ranks
from plots.data.reading import Run, load_run
from plots.data.trainings import groups_of, latest_trainings, split_trainings
from plots.screen import modes_screen
from plots.screen.text import WIDTH
from plots.tables import blocks
from plots.tables.tables_md import render
from run_folder import write_json
from tests.columns import described
from tests.commands import ROOT, changing, read_csv, write_csv
from text_boxes import faults, text_of


def evaluations(accuracies: list[float], **values) -> list[dict]:
    """A training with one row per evaluation: after 1 s and 100 samples, 2 s and 200 samples, …"""
    common = {"network": "tiny", "use": "simd", "mode": "single", "threads": 1, "ranks": 1,
              "hosts": 1,
              "device": "cpu", "seed": 1, "batch": 10, "optimizer": "sgd", "all_reduce": "",
              "loss": 0.5, "learning_rate": 0.1,
              "bytes_per_step": 0, "compute_share": 1, "exposed_share": 0, "hidden_share": 0,
              "waiting_share": 0}
    return [common | {"step": 10 * k, "epoch": 1 + k // 3, "samples": 100 * k, "seconds": k,
                      "samples_per_s": 100, "accuracy": accuracy} | values
            for k, accuracy in enumerate(accuracies, start=1)]


def compared(folder: Path, *trainings: list[dict], target: float = 0.9) -> list[modes.Compared]:
    return compare(load_run(mode_run.write(folder, trainings)), target)


def rows_of(folder: Path) -> list[dict]:
    return read_csv(folder / "modes.csv")


@pytest.fixture(scope="module")
def comparison(tmp_path_factory) -> Path:
    """All modes with five seeds. Tests only read it."""
    folder = mode_run.write_comparison(tmp_path_factory.mktemp("modes") / "run")
    assert main(["modes", str(folder), "--target", "0.97"]) == 0
    return folder


def drawn(folder: Path) -> dict[str, Page | str]:
    with matplotlib.rc_context(style.RC):
        return dict(draw.modes.draw(load_run(folder)))


def loss_of(run: Run) -> Page:
    with matplotlib.rc_context(style.RC):
        (_, loss), = draw.loss.draw(run)
    return loss


# --- trainings -----------------------------------------------------------------------------------


@pytest.mark.parametrize("column, value", [
    ("network", "other"), ("use", "openmp"), ("mode", "ssp,bound=2"), ("threads", 2), ("ranks", 4),
    ("hosts", 2), ("seed", 2), ("batch", 20), ("optimizer", "adam")])
def test_trainings_that_differ_in_one_column_are_two_however_their_rows_mix(tmp_path,
                                                                            column, value):
    one, other = evaluations([0.1, 0.2, 0.3]), evaluations([0.4, 0.5, 0.6], **{column: value})
    mixed = [row for pair in zip(one, other) for row in pair]
    found = split_trainings(load_run(mode_run.write(tmp_path, [mixed])).train)
    assert [[row["accuracy"] for row in training] for training in found] == [[0.1, 0.2, 0.3],
                                                                            [0.4, 0.5, 0.6]]
    assert {training[0][column] for training in found} == {one[0][column], value}


def test_a_training_that_was_stopped_and_begun_again_counts_once(tmp_path):
    stopped, whole = evaluations([0.99]), evaluations([0.1, 0.2, 0.95])
    one, = compared(tmp_path, stopped, whole)
    assert len(one.trainings) == 1
    assert one.to_target("seconds").median == 3
    assert len(split_trainings(load_run(tmp_path).train)) == 2


def test_files_of_earlier_versions_have_the_mode_only(tmp_path):
    old = {"step": "integer", "seconds": "number", "loss": "number", "accuracy": "number",
           "mode": "text"}
    write_json(tmp_path / "columns.json", tables={"train": described(old)})
    (tmp_path / "train.csv").write_text("\n".join([
        ",".join(old), "1,1,2,,single", "2,2,1,0.5,single", "1,1,2,,", "1,1,2,,single", ""]))
    run = load_run(tmp_path)
    assert [len(training) for training in split_trainings(run.train)] == [2, 1, 1]
    assert list(groups_of(run.train)) == ["single", "single (2)", "single (3)"]
    assert compare(run) == []
    assert drawn(tmp_path) == {"modes": "train.csv has no mode beside single"}
    loss = loss_of(run)
    assert [text.get_text() for text in loss.figure.legends[0].get_texts()] == [
        "single: 50.0 %", "single (2)", "single (3)"]


def test_names_of_groups_tell_networks_modes_and_ranks_apart(tmp_path):
    run = load_run(mode_run.write(tmp_path, [
        evaluations([0.5]), evaluations([0.5], seed=2), evaluations([0.5], mode="sharded", ranks=4),
        evaluations([0.5], mode="sharded", ranks=4, hosts=2), evaluations([0.5], network="other"),
        evaluations([0.5], batch=20), evaluations([0.5], batch=20, optimizer="adam")]))
    assert {name: len(group) for name, group in groups_of(run.train).items()} == {
        "tiny, single, batch 10, sgd": 2, "tiny, sharded, 4 ranks": 1,
        "tiny, sharded, 4 ranks on 2 hosts": 1,
        "other, single": 1, "tiny, single, batch 20, sgd": 1, "tiny, single, batch 20, adam": 1}
    assert len(latest_trainings(run.train)) == 7


def simulated(folder: Path, nodes=(8, 16)) -> Path:
    """Rows as `make simulate-training` writes them: 50 or, with a slow rank, 25 samples/s per
    node."""
    tables = [[row | {"platform": "fattree-100g", "slow": slow} for row in evaluations(
        [0.5, 0.8], mode=mode, ranks=count, hosts=count,
        samples_per_s=count * (50 if slow == "none" else 25))]
        for mode in ("synchronous", "downpour") for slow in ("none", "permanent")
              for count in nodes]
    return mode_run.write(folder, tables,
                          columns={"platform": "text", "slow": "text"} | mode_run.TRAIN)


def test_simulated_trainings_have_a_chart_of_their_own(tmp_path):
    run = load_run(simulated(tmp_path))
    assert len(latest_trainings(run.train)) == 8
    assert "tiny, downpour, 16 nodes of fattree-100g, slow rank: permanent" in groups_of(run.train)
    assert compare(run) == []
    with matplotlib.rc_context(style.RC):
        (name, page), = draw.simulated_trainings.draw(run)
        assert dict(draw.loss.draw(run)) == {"loss": "the trainings are simulated"}
    assert name == "simulated-trainings-fattree-100g"
    rates = [[list(line.get_ydata()) for line in axes.lines] for axes in page.axes[0]]
    assert rates == [[[400, 800]] * 2, [[200, 400]] * 2]
    assert [axes.get_title("left") for axes in page.axes[0]] == ["no slow rank",
                                                                 "rank 1 three times slower"]


def test_simulated_trainings_on_one_number_of_nodes_are_not_drawn(tmp_path):
    assert dict(draw.simulated_trainings.draw(load_run(simulated(tmp_path, (8,))))) \
        == {"simulated-trainings-fattree-100g": "fewer than two numbers of nodes"}


def test_optimizers_of_one_mode_have_colours_of_their_own(tmp_path):
    run = load_run(mode_run.write(tmp_path, [evaluations([0.5, 0.75], optimizer=name)
                                             for name in ("sgd", "adam",
                                                          "momentum,learning_rate=0.1")]))
    loss = loss_of(run)
    legend, = loss.figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [
        "single, sgd: 75.0 %", "single, adam: 75.0 %", "single, momentum,learning_rate=0.1: 75.0 %"]
    assert len({line.get_color() for line in legend.get_lines()}) == 3


# --- modes.csv -----------------------------------------------------------------------------------


def test_time_to_target_is_that_of_the_first_evaluation_that_reached_it(tmp_path):
    one, = compared(tmp_path, evaluations([0.5, 0.92, 0.8, 0.95]))
    assert one.to_target("seconds").median == 2
    assert one.to_target("samples").median == 200
    assert one.final_accuracy.median == 0.95
    assert one.reached == 1


def test_with_five_seeds_the_interval_is_the_range(tmp_path):
    firsts = [3, 7, 5, 4, 6]  # the evaluation at which each seed reaches the target
    one, = compared(tmp_path, *(evaluations([0.5] * (first - 1) + [0.9], seed=seed)
                                for seed, first in enumerate(firsts)))
    assert one.to_target("seconds") == (5, 3, 7)


@pytest.mark.parametrize("reached, median, high",
                         [(5, 2, 2), (4, 2, None), (3, 2, None), (2, None, None)])
def test_a_seed_that_did_not_reach_the_target_counts_as_infinite(tmp_path, reached, median, high):
    run = load_run(mode_run.write(tmp_path,
                                  [evaluations([0.5, 0.95 if seed < reached else 0.6], seed=seed)
                                   for seed in range(5)]))
    found = compare(run, 0.9)
    modes.write(run, found)
    written, = rows_of(tmp_path)
    number = [float(written[name]) if written[name] else None
              for name in ("time_to_target_s", "time_to_target_high_s", "reached")]
    assert number == [median, high, reached]


def test_the_speedup_refers_to_single_with_the_same_rungs_and_threads(tmp_path):
    found = compared(
        tmp_path,
        *(evaluations([0.5], seed=seed, samples_per_s=rate)
          for seed, rate in enumerate((90, 100, 500))),
        evaluations([0.5], threads=2, samples_per_s=180),
        evaluations([0.5], use="openmp", samples_per_s=40),
        evaluations([0.5], network="other", samples_per_s=7),
        evaluations([0.5], mode="sharded", ranks=4, samples_per_s=250),
        evaluations([0.5], mode="sharded", ranks=4, threads=2, samples_per_s=270),
        evaluations([0.5], mode="sharded", ranks=4, use="avx", samples_per_s=270))
    speedups = [modes.speedup(c, found) for c in found if c.mode == "sharded"]
    assert speedups == [2.5, 1.5, None]


def test_shares_are_means_and_come_from_the_last_row_that_has_them(tmp_path):
    first = evaluations([0.5, 0.6], mode="downpour", exposed_share=0.2, staleness_mean=1,
                        staleness_max=3)
    first.append(first[-1] | {"step": 30, "exposed_share": None, "accuracy": None,
                              "staleness_mean": None, "staleness_max": None})
    one, = compared(tmp_path, first, evaluations([0.5], mode="downpour", seed=2, exposed_share=0.4,
                                                 staleness_mean=2, staleness_max=9))
    written = modes.row_of(one, [one])
    assert (written["exposed_share"], written["staleness_mean"],
            written["staleness_max"]) == (0.3, 1.5, 9)


def test_the_final_loss_is_the_mean_over_the_last_epoch(tmp_path):
    training = evaluations([0.5] * 4)  # epochs 1, 1, 2, 2
    for row_, loss in zip(training, (9, 8, 0.4, 0.2)):
        row_["loss"] = loss
    one, = compared(tmp_path, training)
    assert one.final_loss == pytest.approx(0.3)


COLUMNS = [
    "network", "mode", "use", "all_reduce", "threads", "ranks", "hosts", "batch", "optimizer",
    "seeds", "samples_per_s", "speedup_vs_single", "bytes_per_step", "compute_share",
    "exposed_share", "hidden_share", "waiting_share", "staleness_mean", "staleness_max",
    "target_accuracy", "reached", "time_to_target_s", "time_to_target_low_s",
    "time_to_target_high_s", "samples_to_target", "final_accuracy", "final_accuracy_low",
    "final_accuracy_high", "final_loss"]


def test_the_files_have_the_columns_of_the_document(comparison):
    names = [column[0] for column in modes.columns()]
    assert names == COLUMNS
    content = json.loads((comparison / "modes.json").read_text())
    written = rows_of(comparison)
    assert content["columns"] == names == list(written[0])
    assert len(written) == len(content["rows"]) == len(mode_run.MODES)
    for text, value in zip(written, content["rows"]):
        assert list(value) == names
        for name, kind, _, _ in modes.columns():
            assert text[name] == ("" if value[name] is None
                                  else modes.number_text(value[name])), name
            assert value[name] is None or isinstance(value[name], {"text": str, "integer": int,
                                                                   "number": float}[kind]), name
    described = json.loads((comparison / "columns.json").read_text())["tables"]
    assert [(c["name"], c["type"], c.get("unit", ""), c["meaning"])
            for c in described["modes"]] == modes.columns()
    assert list(described) == ["train", "staleness", "modes"]


@pytest.mark.parametrize("document, table, message", [
    ("README.md", "modes", "README.md: has no heading '### modes.csv' with a table of its columns"),
    ("docs/none.md", "modes", "docs/none.md: No such file or directory; expected the columns of "
                              "modes.csv")])
def test_a_document_without_the_columns_is_named(document, table, message):
    with pytest.raises(InputError) as raised:
        schema.documented_columns(document, table)
    assert str(raised.value) == f"{ROOT}/{message}"


def test_the_target_is_kept_for_the_charts(tmp_path, capsys):
    folder = mode_run.write_comparison(tmp_path / "run", ("single", "synchronous"), (1,))
    assert compare(load_run(folder))[0].target == modes.DEFAULT_TARGET
    assert main(["modes", str(folder), "--target", "0.91"]) == 0
    assert compare(load_run(folder))[0].target == 0.91
    first = (folder / "modes.csv").read_bytes()
    assert main(["modes", str(folder)]) == 0
    assert (folder / "modes.csv").read_bytes() == first
    assert "target: 91 %" in capsys.readouterr().out


@pytest.mark.parametrize("target", ["0", "1.5", "nan", "high"])
def test_a_wrong_target_is_one_sentence(comparison, target, capsys):
    with pytest.raises(SystemExit) as error:
        main(["modes", str(comparison), "--target", target])
    assert error.value.code == 2
    assert f"'{target}': expected an accuracy above 0 and at most 1" in capsys.readouterr().err


def test_a_run_without_trainings_is_an_error_and_writes_nothing(tmp_path, capsys):
    mode_run.write(tmp_path, [])
    assert main(["modes", str(tmp_path)]) == 2
    assert "train.csv: no training that names its network" in capsys.readouterr().err
    assert not list(tmp_path.glob("modes.*"))


# --- charts --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pages(comparison) -> dict[str, Page]:
    found = drawn(comparison)
    assert found.pop(
        "modes-scaling-mnist_cnn") == "no mode was trained on two or more numbers of ranks"
    assert set(found) == {f"modes-{kind}-mnist_cnn"
                          for kind in ("convergence", "time", "staleness")}
    return found


def test_pages_fit_and_say_where_the_numbers_come_from(pages):
    for name, page in pages.items():
        width, height = page.figure.get_size_inches()
        assert width <= 7.2 and height <= 7.1, name
        caption = text_of(page, "caption")
        for fact in ("Platinum 8481C", "commit 0123456789ab", "data: mnist-5k", "4 ranks",
                     "5 seeds"):
            assert fact in caption, (name, fact)


def test_every_mode_has_one_colour_of_its_own():
    colours = [look.colour for look in style.mode_styles([]).values()]
    assert len(set(colours)) == len(colours)
    looks = style.mode_styles(["ssp,bound=2", "ssp,bound=8", "ssp", "token_ring/downpour"])
    assert len({looks[mode].colour for mode in ("ssp", "ssp,bound=2", "ssp,bound=8")}) == 3
    assert looks["token_ring/downpour"].colour == style.HYBRID_COLOUR
    assert modes.family_of("token_ring/downpour") == "hybrid"
    assert modes.family_of("ssp,bound=8") == modes.family_of("downpour")
    hues = {mode: matplotlib.colors.rgb_to_hsv(matplotlib.colors.to_rgb(look.colour))[0]
            for mode, look in looks.items()}
    assert hues["ssp,bound=8"] == pytest.approx(hues["ssp"], abs=0.01)


def test_a_mode_has_the_same_colour_in_every_chart(comparison, pages):
    looks = style.mode_styles(mode_run.MODES)
    handles = [handle for axes in pages["modes-convergence-mnist_cnn"].axes[:, 1]
               for handle in axes.get_legend().legend_handles]
    assert {handle.get_label() for handle in handles} == set(mode_run.MODES)
    handles += pages["modes-staleness-mnist_cnn"].figure.legends[0].legend_handles
    for handle in handles:
        mode = handle.get_label().partition(", mean")[0]
        assert to_hex(handle.get_color()) == looks[mode].colour.lower(), handle.get_label()
    to_target, rates, *_ = pages["modes-time-mnist_cnn"].panels()
    labels = [label.get_text() for label in to_target.get_yticklabels()]
    assert [to_hex(bar.get_facecolor())
            for bar in rates.patches] == [looks[mode].colour.lower() for mode in labels]


def test_the_loss_of_many_trainings_has_the_colours_of_their_families(comparison):
    loss = loss_of(load_run(comparison))
    families = style.family_styles()
    legend = {handle.get_label(): to_hex(handle.get_color())
              for handle in loss.figure.legends[0].legend_handles}
    shown = {modes.family_of(mode) for mode in mode_run.MODES}
    assert legend == {family: families[family].colour.lower() for family in shown}


def test_no_text_of_the_modes_overlaps_another(pages, comparison):
    loss = loss_of(load_run(comparison))
    assert {name: faults(page) for name, page in (pages | {"loss": loss}).items()} \
        == dict.fromkeys([*pages, "loss"], [])


def test_convergence_shows_each_family_beside_single(pages):
    page = pages["modes-convergence-mnist_cnn"]
    panels = {axes.get_title(loc="left"): axes for axes in page.axes[:, 0]}
    assert list(panels) == [family for family in modes.FAMILIES
                            if family not in ("one replica", "hybrid")]
    for (family, by_time), by_samples in zip(panels.items(), page.axes[:, 1]):
        names = [handle.get_label() for handle in by_samples.get_legend().legend_handles]
        assert "single" in names and all(modes.family_of(name) in (family, "one replica")
                                         for name in names)
        assert by_time.get_xscale() == by_time.get_yscale() == "log"
        target, = (line for line in by_time.lines if len(line.get_xdata()) == 2)
        assert list(target.get_ydata()) == pytest.approx([3, 3])
    limits = {axes.get_xlim() for axes in page.axes[:, 0]}
    assert len(limits) == 1


def test_the_line_is_the_median_of_the_seeds_and_the_band_their_range(tmp_path):
    page = drawn(mode_run.write(tmp_path, [
        evaluations([0.5, accuracy], mode=mode, seed=seed)
        for mode in ("single", "ssp")
        for seed, accuracy in enumerate((0.9, 0.7, 0.6))]))["modes-convergence-tiny"]
    by_time = page.axes[0, 0]
    line, = (line
             for line in by_time.lines
             if to_hex(line.get_color()) == style.mode_styles([])["ssp"].colour.lower())
    assert list(line.get_ydata()) == pytest.approx([50, 30])
    band = by_time.collections[0].get_paths()[0].vertices
    at_end = band[band[:, 0] == 2, 1]
    assert (at_end.min(), at_end.max()) == (pytest.approx(10), pytest.approx(40))


def test_modes_are_in_the_order_of_their_time_to_the_target(comparison, pages):
    to_target, _, shares, _ = pages["modes-time-mnist_cnn"].panels()
    labels = [label.get_text() for label in to_target.get_yticklabels()]
    times = {row["mode"]: float(row["time_to_target_s"] or math.inf) for row in rows_of(comparison)}
    assert labels == sorted(labels, key=times.get)
    assert labels[-1] == "actors_learner" and math.isinf(times["actors_learner"])
    texts = [text.get_text() for text in to_target.texts]
    assert "not reached, 0/5" in texts and any(text.endswith(" 3/5") for text in texts)
    # compute, exposed and waiting are side by side, and hidden communication lies on compute
    y = labels.index("sharded")
    bars = [bar for bar in shares.patches if round(bar.get_y() + bar.get_height() / 2) == y]
    compute, exposed, waiting, hidden = bars
    assert [bar.get_width() for bar in bars] == pytest.approx([70, 18, 10, 10])
    assert hidden.get_x() + hidden.get_width() == pytest.approx(
        compute.get_width()) == exposed.get_x()
    assert waiting.get_x() == pytest.approx(88)


def test_earlier_histograms_of_staleness_have_no_batch_and_no_optimizer(comparison, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(comparison, folder)
    later = ("batch", "optimizer")
    rows = [{name: value for name, value in row.items() if name not in later}
            for row in read_csv(folder / "staleness.csv")]
    write_csv(folder / "staleness.csv", rows)
    with changing(folder / "columns.json") as content:
        content["tables"]["staleness"] = [
            column for column in content["tables"]["staleness"] if column["name"] not in later]
    assert_adds_up(drawn(folder)["modes-staleness-mnist_cnn"])


def test_the_histogram_of_staleness_adds_up(pages):
    assert_adds_up(pages["modes-staleness-mnist_cnn"])


def assert_adds_up(page):
    axes = page.panels()[0]
    lines = [line for line in axes.lines if len(line.get_xdata()) > 2]
    assert len(lines) == 4
    for line in lines:
        assert sum(line.get_ydata()) == pytest.approx(100)
        assert list(line.get_xdata()) == list(range(len(line.get_xdata())))


def test_several_numbers_of_ranks_show_the_scaling(tmp_path):
    rates = {2: 150, 4: 280}
    page = drawn(mode_run.write(tmp_path, [
        evaluations([0.5]),
        *(evaluations([0.5], mode="sharded", ranks=ranks, samples_per_s=rate)
          for ranks, rate in rates.items()),
        *(evaluations([0.5], mode="sharded", ranks=ranks, batch=10 * ranks, samples_per_s=2 * rate)
          for ranks, rate in rates.items()),
        evaluations([0.5], mode="downpour", ranks=4)]))["modes-scaling-tiny"]
    panels = {axes.get_title(loc="left").split(":")[0]: axes for axes in page.panels()}
    for kind, factor in (("strong", 1), ("weak", 2)):
        measured, = (line for line in panels[kind].lines if list(line.get_xdata()) == [2, 4]
                     and line.get_linestyle() != "None")  # no cap of an error bar
        assert list(measured.get_ydata()) == [factor * rate for rate in rates.values()]
        ideal = next(line for line in panels[kind].lines if list(line.get_xdata()) == [1, 4])
        assert list(ideal.get_ydata()) == [100, 400]
    labels = [text.get_text() for text in page.figure.legends[0].get_texts()]
    assert labels == ["sharded", "single", "ideal"]


def test_other_pages_show_the_most_ranks_only(tmp_path):
    folder = mode_run.write_comparison(tmp_path / "run", ("single", "sharded"), (1,), (2, 4))
    found = compare(load_run(folder))
    assert sorted(labels_of(found).values()) == ["sharded, 2 ranks", "sharded, 4 ranks", "single"]
    assert sorted(labels_of(most_ranks(found)).values()) == ["sharded", "single"]
    assert {c.setting.ranks for c in most_ranks(found)} == {1, 4}


def test_single_alone_needs_no_charts(tmp_path):
    folder = mode_run.write_comparison(tmp_path / "run", ("single",), (1, 2))
    assert drawn(folder) == {"modes": "train.csv has no mode beside single"}
    assert "## Training modes" not in render(load_run(folder))


@pytest.mark.parametrize("accuracies", [[], [None, None], [0.0], [1.0, 1.0]])
def test_extreme_trainings_are_drawn(tmp_path, accuracies):
    folder = mode_run.write(tmp_path,
                            [evaluations(accuracies or [None], loss=0.1 if accuracies else None,
                                         mode=mode)
                             for mode in ("single", "ssp")])
    for result in drawn(folder).values():
        if isinstance(result, Page):
            result.figure.draw_without_rendering()


# --- screen and tables ---------------------------------------------------------------------------


def test_the_screen_fits_and_is_sorted(comparison, capsys):
    text = modes_screen.render(load_run(comparison), compare(load_run(comparison)))
    lines = text.splitlines()
    assert all(len(line) <= WIDTH or str(comparison) in line for line in lines) and len(lines) <= 40
    table = [line.split() for line in lines if line.startswith("  ")]
    assert [line[0] for line in table[1:]] == \
        [row["mode"]
         for row in sorted(rows_of(comparison),
                           key=lambda row: float(row["time_to_target_s"] or math.inf))]
    single, = (line for line in table if line[0] == "single")
    assert single[2] == "1.00x" and single[-3:] == ["s", "97.6", "%"]
    downpour, = (line for line in table if line[0] == "downpour")
    assert "3/5" in downpour
    assert f"{comparison}/modes.csv" in text


def test_the_screen_names_network_and_charts(tmp_path, monkeypatch):
    folder = mode_run.write(tmp_path / "run",
                            [evaluations([0.95]),
                             evaluations([0.95], mode="ssp", ranks=4, hosts=4)])
    with changing(folder / "environment.json") as environment:
        environment["network"] = "4 hosts, 1gbit"
    draw.write_all(load_run(folder))
    monkeypatch.chdir(tmp_path)
    text = modes_screen.render(load_run(Path("run")), compare(load_run(folder)))
    assert "Network: 4 hosts, 1gbit" in text
    assert "Charts: run/charts: modes-time-tiny.svg, modes-convergence-tiny.svg" in text


def test_networks_that_differ_after_a_point_have_charts_of_their_own(tmp_path):
    folder = mode_run.write(tmp_path / "run",
                            [evaluations([0.95]), evaluations([0.95], mode="ssp", ranks=4)])
    header, rows = (folder / "train.csv").read_text().split("\n", 1)
    assert "tiny" in rows
    (folder / "train.csv").write_text(
        "\n".join([header, rows.replace("tiny", "tiny.v1") + rows.replace("tiny", "tiny.v2")]))
    names = [name for name, _ in draw.modes.draw(load_run(folder))]
    assert names == [f"modes-{kind}-tiny.v{i}" for i in (1, 2)
                     for kind in ("convergence", "time", "staleness", "scaling")]


def test_tables_and_blocks_have_the_modes(comparison, tmp_path):
    text = render(load_run(comparison))
    assert "| `synchronous,compressed=one_bit` |" in text.split("## Training modes")[1].split(
        "## Training\n")[0]
    assert "| mnist_cnn, sharded, 4 ranks, seed 3 |" in text
    assert "[modes.csv](modes.csv)" in text
    block = blocks.known_blocks(load_run(comparison), ())["modes"](comparison)
    assert block is not None and "target: 97 %" in block
    published = tmp_path / "machine"
    published.mkdir()
    (published / "summary.csv").write_text("")
    (published / "modes").symlink_to(comparison)
    assert "target: 97 %" in blocks.known_blocks(load_run(published, ()), ())["modes"](published)


def test_a_family_of_modes_is_a_block_with_single(comparison):
    text = blocks.training_modes(load_run(comparison), family="parts of the model")
    assert {line.split("`")[1] for line in text.splitlines() if line.startswith("| `")} == {
        "single", "pipeline", "model_parallel"}
    assert blocks.training_modes(load_run(comparison), "missing") is None
    known = blocks.known_blocks(load_run(comparison), ())
    assert {"modes", "modes-hosts", "modes-synchronous", "modes-asynchronous-and-local-steps",
            "modes-hybrid"} <= set(known)
