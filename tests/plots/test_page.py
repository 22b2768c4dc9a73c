"""report.html, figures/ and tables/ of a run."""

from __future__ import annotations

import base64
import gzip
import html
import html.parser
import json
import os
import re
import shutil
import sys
from pathlib import Path

import pytest

import page_run
import run_folder
from plots.__main__ import main
from plots.data import chain as chains
from plots.data.numbers import times
from plots.data.ratios import ladders
from plots.data.reading import load_run
from plots.page import (
    clocks,
    explorer,
    instructions,
    markup,
    shapes,
    sources,
    svg,
    swap,
    verdicts,
    write,
)
from tests import columns
from tests.commands import ROOT, read_csv, write_script

SECTIONS = ("answer", "swap", "rungs", "explorer", "sources", "convergence", "replicas", "clocks",
            "measured")
VOID = {"meta", "link", "input", "br"}


class Elements(html.parser.HTMLParser):
    """All elements with their attributes; fails on tags that are not closed in order."""

    def __init__(self, text: str):
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def ids(self) -> list[str]:
        return [a["id"] for _, a in self.found if a.get("id")]


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    folder = page_run.write(tmp_path_factory.mktemp("page") / "run")
    assert main(["page", str(folder)]) == 0
    return folder


@pytest.fixture
def folder(made, tmp_path) -> Path:
    """A copy that a test may change."""
    return shutil.copytree(made, tmp_path / "run")


@pytest.fixture(scope="module")
def text(made) -> str:
    return (made / write.FILE).read_text()


@pytest.fixture(scope="module")
def elements(text) -> Elements:
    return Elements(text)


def data_of(text: str, name: str) -> dict:
    packed = re.search(rf'<script type="application/gzip" id="{name}">(.*?)</script>', text,
                       re.S)[1]
    return json.loads(gzip.decompress(base64.b64decode(packed)))


def test_the_page_is_below_its_limit_and_has_all_sections(made, elements):
    assert 50_000 < (made / write.FILE).stat().st_size < write.LIMIT
    ids = elements.ids()
    assert set(SECTIONS) <= set(ids)
    assert len(ids) == len(set(ids))


def test_it_asks_for_nothing_outside(text, elements):
    for tag, attributes in elements.found:
        for name in ("src", "href", "srcset", "action", "data", "poster"):
            assert (attributes.get(name)
                    or "#")[0] == "#" or attributes[name] == "data:,", (tag, attributes)
    style = re.search(r"<style>(.*?)</style>", text, re.S)[1]
    assert "url(" not in style and "@import" not in style
    script = re.findall(r"<script>(.*?)</script>", text, re.S)[-1]
    assert not re.search(r"fetch\(|XMLHttpRequest|import\(|WebSocket|sendBeacon", script)


def test_every_link_has_its_target(elements):
    ids = set(elements.ids())
    missing = {a["href"] for tag, a in elements.found if tag == "a"
               and a.get("href", "#")[1:] not in ids
               and a.get("href")}
    assert not missing


def test_the_first_sentence_has_the_numbers_of_the_run(made, text):
    run = load_run(made)
    found = {ladder.primitive: ladder for ladder in ladders(run)}
    chain = chains.chain_of(found["matmul"])
    assert [bar.rung.name for bar in chain.bars] == [
        "serial_ijk", "serial_ikj", "blocked", "simd_avx512", "packed", "packed_openmp"]
    assert chain.bars[-1].resource.threads == 2
    most = chains.bought(chain)[0]
    sentence = re.search(r'<p class="answer">(.*?)</p>', text, re.S)[1]
    assert times(chain.bars[-1].total.value).replace("x", "×") in sentence
    assert f"<b>{times(most.gain.value).removesuffix('x')}</b>" in sentence
    assert "training step of mnist_cnn takes" in sentence and "measured ceiling" in sentence
    assert most.technique == "simd" and sentence.startswith("SIMD")


def test_what_the_techniques_bought_multiplies_to_the_whole(made):
    chain = chains.chain_of(ladders(load_run(made))[0])
    product = 1.0
    for share in chains.bought(chain):
        assert share.gain.low <= share.gain.value <= share.gain.high
        product *= share.gain.value
    assert product == pytest.approx(chain.bars[-1].total.value, rel=0.05)


def test_the_ceiling_is_the_first_rungs_time_over_the_time_at_the_roof(ladder_of):
    chain = chains.chain_of(ladder_of([
        run_folder.summary_row("serial_ijk", 1.0, percent_of_roof=2, speedup_vs_serial=1),
        run_folder.summary_row("blocked", 0.1, builds_on="serial_ijk", percent_of_roof=20,
                               speedup_vs_serial=10)]))
    assert chain.ceiling == pytest.approx(50) and chain.of_ceiling == pytest.approx(20)


def test_a_missing_ceiling_has_its_reason(ladder_of):
    chain = chains.chain_of(ladder_of([
        run_folder.summary_row("serial_ijk", 1.0, speedup_vs_serial=1),
        run_folder.summary_row("blocked", 0.1, builds_on="serial_ijk", speedup_vs_serial=10)]))
    assert chain.of_ceiling is None
    for threads, reason in ((chain.resource.threads + 1, "no ceiling was measured"),
                            (chain.resource.threads, "the ceilings were refused: a neighbour")):
        assert f"({reason})" in chains.sentence(chain, None, {threads: "a neighbour"})


def chain_on(ladder_of, rows):
    return chains.chain_of(
        ladder_of([run_folder.summary_row(name, seconds, problem=problem, threads=threads,
                                          technique=technique, builds_on=below)
                   for name, technique, below, threads, problem, seconds in rows]))


def test_a_chain_is_judged_on_the_problems_of_all_its_rungs(ladder_of):
    chain = chain_on(ladder_of, [
        ("a", "serial", "", 1, "p", 8.0), ("a", "serial", "", 1, "q", 8.0),
        ("b", "simd", "a", 1, "p", 4.0),
        ("c", "simd", "b", 1, "p", 1.0), ("c", "simd", "b", 1, "q", 0.1)])
    assert [round(bar.total.value, 6) for bar in chain.bars] == [1, 2, 8]
    assert chains.bought(chain)[0].gain.value == pytest.approx(8)


def test_a_better_algorithm_on_the_same_threads_is_not_a_gain_of_threads(ladder_of):
    chain = chain_on(ladder_of,
                     [("a", "serial", "", 1, "p", 8.0), ("b", "openmp", "a", 2, "p", 4.0),
                      ("c", "openmp", "b", 2, "p", 1.0)])
    assert [(b.name, b.gain.value) for b in chains.bought(chain)] == [
        ("Better threaded code", 4), ("OpenMP threads", 2)]


def test_the_rung_that_the_model_chooses_is_no_first_rung(ladder_of):
    ladder = ladder_of([run_folder.summary_row("by_model", 1.0),
                        run_folder.summary_row("ring", 2.0)])
    assert ladder.first_rung.name == "ring"


def test_failed_and_unavailable_rows_are_shown_with_their_reasons(text):
    rows = data_of(text, "rows-data")
    statuses = [rows["texts"]["status"][i] for i in rows["columns"]["status"]]
    reasons = [rows["texts"]["reason"][i] for i in rows["columns"]["reason"]]
    assert reasons[statuses.index("failed")] == page_run.FAILED["reason"]
    assert "mkl was not found" in [r for r, s in zip(reasons, statuses) if s == "unavailable"]
    static = text[text.index('id="failed"'):]
    assert "element 3 is &lt;b&gt;0.5&lt;/b&gt;, expected 0.7 &amp; &lt;/script&gt;" in static
    assert "1 failed" in text and "mkl was not found" in static


def test_rows_have_a_time_exactly_where_the_run_has_one(made, text):
    expected = [row["median_s"] for row in read_csv(made / "summary.csv")]
    shown = data_of(text, "rows-data")["columns"]["median_s"]
    assert len(shown) == len(expected)
    for value, field in zip(shown, expected):
        assert (value is None) == (field == "")
        assert value is None or value == pytest.approx(float(field), rel=1e-3)


def test_rows_whose_intervals_overlap_share_a_place(ladder_of):
    spans = {"a": (1.0, 1.2), "b": (1.1, 1.3), "c": (1.25, 1.4), "d": (2.0, 2.1)}
    ladder = ladder_of([run_folder.summary_row(name, (low + high) / 2, ci_low_s=low, ci_high_s=high)
                        for name, (low, high) in spans.items()]
                       + [run_folder.summary_row("other", 9.0, problem="q"),
                          run_folder.summary_row("none", 9.0, status="failed", median_s=None)])
    assert explorer.ranks(ladder.rows) == [(1, True), (1, True), (2, False), (4, False),
                                           (1, False), None]


def test_a_usual_command_is_made_again_and_another_is_kept(made):
    row = {"primitive": "matmul", "variant": "a", "suite": "layers", "problem": "p",
           "direction": "forward", "threads": 2, "ranks": 1}
    usual = explorer.usual_command(row)
    assert usual == ("build/stepladder bench matmul --variant a --suite layers --problem p "
                     "--direction forward --threads 2")
    assert explorer.usual_command(row | {"ranks": 4}) == f"mpirun -np 4 {usual}"


def test_swapping_has_measured_steps_and_times_alone(made, text):
    network = data_of(text, "swap-data")["networks"]["mlp"]["2 threads"]
    run = load_run(made)
    total = next(row["median_s"] for row in run.step if row["layer"] == "total"
                 and row["use"] == "best"
                 and row["network"] == "mlp" and row["threads"] == 2)
    assert network["uses"]["best"]["total"] == pytest.approx(total, rel=1e-4)
    forward = network["operations"][network["keys"].index("fc1|forward")]
    assert (forward["primitive"], forward["problem"]) == ("matmul", "mlp.fc1.forward")
    of = {row["variant"]: row["median_s"] for row in run.summary
          if row["problem"] == "mlp.fc1.forward"
          and row["threads"] == 1}
    # blocked ran on one thread only, and counts on two as well.
    assert network["alone"]["matmul"]["blocked"]["mlp.fc1.forward"] == pytest.approx(
        of["blocked"], rel=1e-3)
    assert {o["primitive"] for o in network["operations"]} == {"matmul", None}


def test_swapping_offers_a_step_of_one_thread_beside_those_of_two(folder):
    run = load_run(folder)
    run.step = [row for row in run.step if row["threads"] == 1 or row["use"] == "best"]
    of = swap.swap_data(run, ladders(run), ROOT)["networks"]["mlp"]
    one, two = of["1 thread"]["uses"], of["2 threads"]["uses"]
    assert two["serial, 1 thread"] == one["serial"]
    assert two["best"] != one["best"] and "best, 1 thread" not in two and "serial" not in two


def test_swapping_begins_with_the_network_of_the_first_screen(made, text):
    assert next(iter(data_of(text, "swap-data")["networks"])) == chains.main_step(
        load_run(made)).own.network


def test_a_run_without_steps_says_what_adds_them(folder):
    (folder / "step.csv").unlink()
    (folder / "train.csv").unlink()
    (folder / "ceilings.json").unlink()
    assert main(["page", str(folder)]) == 0
    text = (folder / write.FILE).read_text()
    assert "No training steps in this run: <code>build/stepladder step" in text
    assert "No trainings in this run" in text and "No ceilings.json" in text
    Elements(text)


def test_a_run_of_one_rung_for_several_instruction_sets_begins_with_their_shares(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    run_folder.write_json(folder / "environment.json", **run_folder.environment())
    run_folder.write_json(folder / "ceilings.json", **run_folder.ceilings())
    run_folder.write_csv(folder, columns.SUMMARY, [
        run_folder.summary_row(f"simd_{isa}", 1.0, technique="simd", builds_on="blocked",
                               precision="fp32", gflops_per_s=rate)
        for isa, rate in (("sse42", 30.2), ("avx512", 75.5))])
    assert main(["page", str(folder)]) == 0
    text = (folder / write.FILE).read_text()
    answer = " ".join(text.split('id="answer"')[1].split("</section>")[0].split())
    assert "One source of matmul, <code>simd</code>, reaches 80 % of the peak of sse42 and " \
        "50 % of avx512's." in html.unescape(answer)
    assert "no two rungs" not in text and "shares of their own peaks" not in text
    Elements(text)


def test_a_run_of_trainings_alone_has_a_page(tmp_path):
    folder = run_folder.write_run(tmp_path / "run")
    for path in folder.iterdir():
        if path.name not in ("train.csv", "columns.json", "environment.json"):
            path.unlink()
    (folder / "charts").mkdir()
    (folder / "charts/loss.svg").write_text("a chart")
    assert main(["page", str(folder)]) == 0
    text = (folder / write.FILE).read_text()
    assert "This run has no two rungs" in text and "No summary.csv in this run" in text
    assert "training loss against seconds" in text


def test_sources_and_differences_are_those_of_the_repository(text):
    listing = (ROOT / "kernels/matmul/cpu/serial_ikj.cpp").read_text()
    shown = re.search(r'<details '
                      r'id="src-kernels-matmul-cpu-serial_ikj.cpp">.*?<code>(.*?)</code>', text,
                      re.S)[1]
    plain = re.sub(r"</?b[^>]*>", "", shown)
    assert html.unescape(plain) == listing.rstrip("\n")
    assert "Difference to serial_ijk" in text and 'class=plus' in text and 'class=minus' in text


def test_missing_sources_are_said(folder, tmp_path):
    assert main(["page", str(folder), "--root", str(tmp_path)]) == 0
    assert "No file below kernels/matmul of this repository registers serial_ijk" in (
        folder / write.FILE).read_text()


def test_differences_mark_what_changed():
    rows, left_out = sources.side_by_side("a\nb\nc\n", "a\nx < y\nc\n")
    assert "<td class=minus>b</td><td class=plus>x &lt; y</td>" in rows and left_out == 0


def test_long_sources_are_cut_and_counted():
    html_text, left_out = sources.highlighted("int x;\n" * (sources.MOST_LINES + 7))
    assert left_out == 7 and html_text.count("\n") == sources.MOST_LINES - 1


def test_code_beyond_the_budget_is_named(made, folder, monkeypatch, capsys):
    limit = (made / write.FILE).stat().st_size - 100_000
    monkeypatch.setattr("plots.page.write.LIMIT", limit)
    assert main(["page", str(folder)]) == 0
    assert limit - 50_000 < (folder / write.FILE).stat().st_size <= limit
    error = capsys.readouterr().err
    assert re.search(r": \d+ listings? of sources left out or shortened to keep the page "
                     r"small; the first: kernels/", error), error
    assert "left out to keep this page small" in (folder / write.FILE).read_text()


def test_expected_gains_come_from_the_tables_of_the_primitive():
    gains = sources.expected_gains(ROOT, "matmul")
    assert set(gains) > {"unrolled", "packed"} and gains["unrolled"].startswith("1.5")
    assert sources.expected_gains(ROOT, "nothing") == {}


def test_every_rung_of_the_repository_has_a_source_that_says_what_it_adds():
    for primitive in ("matmul", "convolution", "max_pool", "sgd_update", "all_reduce"):
        found = sources.find_sources(ROOT, primitive)
        assert len(found) > 5 and all((ROOT / s.path).is_file() for s in found.values())
        assert all(s.adds for s in found.values()), [n for n, s in found.items() if not s.adds]


def test_sizes_of_networks_are_those_of_the_sources():
    known = shapes.networks(ROOT)
    alexnet = {layer.name: layer for layer in known["alexnet"].layers}
    assert alexnet["conv1"].neurons == 290_400 and alexnet["conv5"].map == 13
    assert sum(layer.parameters for layer in alexnet.values()) == 60_965_224
    assert sum(layer.parameters for layer in known["mlp"].layers) == 535_818
    # Three products of the fully connected layers, but two of the first.
    assert known["mlp"].step_flops == 64 * (4 * 784 * 512 + 6 * 512 * 256 + 6 * 256 * 10)


def test_the_sources_tables_stand_beside_ours(text):
    section = text[text.index('id="sources"'):text.index('id="convergence"')]
    assert "survey: 24 threads" in section and "ours: <code>best</code>, 2 threads" in section
    assert ">496<" in section and ">60,965,224<" in section and "25 %" in section


def test_figures_and_tables(made):
    assert sorted(p.name for p in (made / "figures").iterdir()) == [
        "ladder-matmul.pdf", "ladder-matmul.png", "ladder-matmul.svg"]
    tables = made / "tables"
    assert {p.suffix for p in tables.iterdir()} == {".tex", ".csv", ".md"}
    rows = read_csv(tables / "matmul-forward.csv")
    assert [row["variant"] for row in rows][:2] == ["serial_ijk", "serial_ikj"]
    tex = (tables / "matmul-forward.tex").read_text()
    for part in (r"\begin{tabular}{ll", r"\toprule", r"\texttt{serial\_ijk} & serial &"):
        assert part in tex
    assert len(tex.split(r"\midrule")[1].split(r"\bottomrule")[0].strip().splitlines()) == len(rows)
    assert not [p for p in made.iterdir() if p.name.startswith(".")]


@pytest.mark.parametrize("is_compressed", [False, True])
def test_charts_older_than_the_results_are_drawn_again(folder, monkeypatch, is_compressed):
    drawn = []
    monkeypatch.setattr("plots.charts.draw.write_all", lambda run: drawn.append(run.folder))
    summary = folder / "summary.csv"
    if is_compressed:
        compressed = folder / "summary.csv.gz"
        compressed.write_bytes(gzip.compress(summary.read_bytes()))
        summary.unlink()
        summary = compressed
    charts = max(path.stat().st_mtime for path in (folder / "charts").glob("*.svg"))
    for later, expected in ((5, []), (60, [folder])):  # one checkout, then a new measurement
        for table in folder.glob("*.csv*"):
            os.utime(table, (charts, charts))
        os.utime(summary, (charts + later, charts + later))
        assert main(["page", str(folder)]) == 0
        assert drawn == expected


def test_latex_characters_are_escaped():
    table = markup.Table("t", ["`a_b`", "50 % & more"], [["{x}", "1–2"]], 1)
    assert r"\texttt{a\_b} & 50 \% \& more \\" in write.latex(
        table) and r"\{x\} & 1--2 \\" in write.latex(table)


def test_tables_are_read_back_from_markdown():
    text = "## A\n\n### B\n\n| x | y |\n| :-- | --: |\n| a\\|b | 1 |\n\nno table\n"
    assert markup.tables_of(text) == [markup.Table("A, B", ["x", "y"], [["a|b", "1"]], 1)]


# --- a base --------------------------------------------------------------------------------------


def program(folder: Path, answer: dict | str, status: int = 0) -> Path:
    body = answer if isinstance(answer, str) else (
        f"cat <<'JSON'\n{json.dumps(answer)}\nJSON\nexit {status}")
    return write_script(folder / "stepladder", f"#!/bin/sh\n{body}\n")


def test_with_a_base_rows_have_the_verdicts_of_compare(made, tmp_path):
    folder, base = shutil.copytree(made, tmp_path / "new"), page_run.write(tmp_path / "old", seed=2)
    row = {"primitive": "matmul", "direction": "forward", "problem": "mlp.fc1.forward",
           "variant": "blocked",
           "threads": 1, "ranks": 1, "old_s": 1, "new_s": 2, "ratio": 2.0, "verdict": "slower"}
    answer = {"schema_version": 2, "rows": [row], "rungs": [],
              "totals": {"slower": 1, "faster": 0, "same": 0, "cannot_tell": 4,
                         "in_one_run_only": 7}}
    fake = program(tmp_path, answer, status=1)
    assert main(["page", str(folder), "--base", str(base), "--program", str(fake)]) == 0
    text = (folder / write.FILE).read_text()
    assert "Against old, stepladder compare finds 0 rows faster, 1 slower, 0 the same" in text
    rows = data_of(text, "rows-data")
    assert rows["columns"]["verdict"].count("slower") == 1
    place = rows["columns"]["verdict"].index("slower")
    assert rows["columns"]["ratio"][place] == 2
    assert rows["texts"]["variant"][rows["columns"]["variant"][place]] == "blocked"


@pytest.mark.parametrize("body, reason", [
    (None, "there is no program"),
    ("echo 'error: no row in common' >&2; exit 2", "no row in common"),
    ("echo nonsense", "wrote no JSON"),
    ("echo '{\"schema_version\": 1}'", "wrote schema_version 1")])
def test_without_the_program_there_are_ratios_but_no_verdicts(made, tmp_path, body, reason):
    base = page_run.write(tmp_path / "old")
    fake = program(tmp_path, body) if body else tmp_path / "nothing"
    found = verdicts.compare(load_run(made), load_run(base), fake)
    assert reason in verdicts.sentence(found)
    assert {v.verdict for v in found.rows.values()} == {verdicts.NOT_JUDGED}
    assert all(v.ratio == pytest.approx(1) for v in found.rows.values())


# --- bad input -----------------------------------------------------------------------------------


def one_sentence(capsys) -> str:
    error = capsys.readouterr().err
    assert error.startswith("error: ") and error.count("\n") == 1
    return error


def test_bad_input_is_one_sentence_and_leaves_the_old_page(folder, capsys):
    lines = (folder / "summary.csv").read_text().splitlines()
    lines[5] = lines[5].replace(",ok,", ",ok", 1)
    (folder / "summary.csv").write_text("\n".join(lines) + "\n")
    before = {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    capsys.readouterr()
    assert main(["page", str(folder)]) == 2
    assert "summary.csv:6: " in one_sentence(capsys)
    assert before == {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_no_half_written_page_is_left(folder, monkeypatch, capsys):
    old = (folder / write.FILE).read_bytes()

    def full(self, *_, **__):
        raise OSError(28, "No space left on device", str(self))

    monkeypatch.setattr(Path, "write_text", full)
    capsys.readouterr()
    assert main(["page", str(folder)]) == 1
    assert "No space left" in one_sentence(capsys)
    assert (folder / write.FILE).read_bytes() == old
    assert (folder / "tables/matmul-forward.csv").exists()
    assert not [p.name for p in folder.iterdir() if p.name.startswith(".")]


@pytest.mark.parametrize("arguments, reason", [
    (["nowhere"], "no such folder"), (["run", "--base", "run"], "is the run itself"),
    (["run", "--base", "empty"], "holds none of")])
def test_wrong_folders(made, tmp_path, monkeypatch, capsys, arguments, reason):
    shutil.copytree(made, tmp_path / "run")
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    capsys.readouterr()
    assert main(["page", *arguments]) == 2
    assert reason in one_sentence(capsys)


# --- colours -------------------------------------------------------------------------------------


def test_colours_stand_out_in_both_themes():
    for technique, (light, dark) in svg.technique_colours().items():
        assert svg.contrast(light, svg.LIGHT) >= svg.LEAST_CONTRAST, technique
        assert svg.contrast(dark, svg.DARK) >= svg.LEAST_CONTRAST, technique
        assert svg.contrast(svg.text_on(light),
                            light) >= 4.5 and svg.contrast(svg.text_on(dark), dark) >= 4.5
    assert svg.contrast("#000000", "#ffffff") == pytest.approx(21)


def test_the_backgrounds_are_those_of_the_style_sheets():
    folder = Path(sys.modules["plots.page"].__file__).parent / "templates"
    assert f"--bg: {svg.DARK};" in (folder / "dark.css").read_text()
    assert "--bg: #fff;" in (folder / "style.css").read_text() and svg.LIGHT == "#ffffff"


def test_instruction_counters_make_a_table_of_cpi(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    run_folder.write_csv(folder, columns.SUMMARY, [run_folder.summary_row(
        "serial_ijk", 1.0, flops=100.0, cycles=200, instructions=400, cpi=0.5)])
    run = load_run(folder)
    sentence, table = clocks.clocks(run, ladders(run))
    assert sentence.startswith("Cycles and instructions") and ">0.50<" in table and ">2<" in table


def test_without_counters_there_are_reference_cycles_per_flop(made):
    run = load_run(made)
    sentence, table = clocks.clocks(run, ladders(run))
    assert "no hardware counters here" in sentence and "reference cycles" in table
    run.samples = None
    assert clocks.clocks(run, ladders(run))[1] is None
    assert swap.swap_data(run, [], ROOT)["networks"]["mlp"]


# --- instructions --------------------------------------------------------------------------------

LISTING = """
0000000000000000 <multiply>:
   0:\tpush   rbx
   1:\tvmovups zmm1,ZMMWORD PTR [rax]
   5:\tvfmadd231ps zmm0,zmm1,zmm2        # 40 <table>
   9:\tadd    rax,0x40
   d:\tjne    1 <multiply+0x1>
   f:\tdec    rcx
  12:\tjne    0 <multiply>
  14:\tret
0000000000000020 <copy>:
  20:\tmovss  xmm0,DWORD PTR [rax]
  24:\tjne    20 <copy>
"""


def test_innermost_loops_are_found_without_the_loops_around_them():
    loops = [loop for code in instructions.functions(LISTING)
             for loop in instructions.innermost_loops(code)]
    assert [(len(loop.instructions), loop.arithmetic) for loop in loops] == [(4, 1), (2, 0)]
    assert loops[0].instructions == ["vmovups zmm1,ZMMWORD PTR [rax]",
                                     "vfmadd231ps zmm0,zmm1,zmm2",
                                     "add rax,0x40", "jne 1"]


def test_instructions_belong_to_the_source_that_is_shown(tmp_path, monkeypatch):
    source = tmp_path / "kernels/p/cpu/simd.cpp"
    compiled = tmp_path / "build/CMakeFiles/kernels_avx2.dir/kernels/p/cpu/simd.cpp.o"
    for path in (source, compiled):
        path.parent.mkdir(parents=True)
        path.touch()
    (tmp_path / "listing").write_text(LISTING)
    tool = write_script(tmp_path / "bin/objdump",
                        f"#!/bin/sh\nexec /bin/cat {tmp_path / 'listing'}\n")
    monkeypatch.setenv("PATH", str(tool.parent))

    def loop(variant, compiled_in=""):
        return instructions.inner_loop(tmp_path / "build", tmp_path, "kernels/p/cpu/simd.cpp", (),
                                       variant, compiled_in)

    assert loop("simd_avx2").arithmetic == 1
    assert "no object file" in loop("simd_avx512")
    assert "no object file" in loop("simd_avx2", "by_compiler/o3/")
    by_compiler = compiled.parent / "../../../by_compiler/o3/kernels/p/cpu/simd.cpp.o"
    by_compiler.parent.mkdir(parents=True)
    by_compiler.touch()
    assert loop("simd_avx2", "by_compiler/o3/").arithmetic == 1
    (tmp_path / "listing").write_text("0000 <f>:\n   0:\tret\n")
    assert "no simple loop" in loop("simd_avx2")
    tool.write_text("#!/bin/sh\nexit 1\n")
    assert "could not read" in loop("simd_avx2")
    tool.unlink()
    assert loop("simd_avx2") == "objdump is not on this machine"
    os.utime(compiled, (1, 1))
    assert "older than the source" in loop("simd_avx2")
