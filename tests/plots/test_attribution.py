"""What each technique buys whatever the order: the sentence and the picture of the page."""

import json
import re
from dataclasses import replace

import pytest

import page_run
from plots.__main__ import main
from plots.charts import attribution as chart
from plots.data import schema
from plots.data.chain import main_chain
from plots.data.ratios import ladders
from plots.data.reading import load_run
from plots.page import attribution
from plots.page.write import render
from plots.tables import blocks
from tests.commands import write_csv
from text_boxes import title_of

NAMES = ["alone", "last", "average", "least", "most", "together"]
TEXTS = ["primitive", "direction", "problem", "shape", "technique", "partner", "least_after",
         "most_after"]
NUMBERS = [f"{name}{end}" for name in NAMES for end in ("", "_low", "_high")]


def write(folder, rows):
    """The part of a run folder that `stepladder attribute` writes."""
    part = folder / schema.ATTRIBUTION_FOLDER
    part.mkdir()
    columns = [{"name": name, "type": "text", "meaning": ""} for name in TEXTS]
    columns += [{"name": "threads", "type": "integer", "meaning": ""}]
    columns += [{"name": name, "type": "number", "meaning": ""} for name in NUMBERS]
    (part / "columns.json").write_text(json.dumps(
        {"schema_version": schema.SCHEMA_VERSION, "tables": {"attribution": columns}}))
    write_csv(part / "attribution.csv", rows, [column["name"] for column in columns])
    return folder


def technique(name, alone, last, average, least, most, **cells):
    return {"primitive": "matmul", "direction": "forward", "problem": "fc",
            "shape": "64x512x784 nn", "threads": 2, "technique": name, "alone": alone, "last": last,
            "average": average, "least": least, "most": most, "least_after": "nothing",
            "most_after": "tile", **cells}


ROWS = [
    technique("tile", 2.0, 3.0, 2.5, 1.9, 5.0),
    technique("threads", 1.8, 1.9, 1.85, 1.7, 2.0),
    technique("vectors", 1.4, 4.9, 3.1, 1.4, 4.9),
    technique("tile", "", "", "", "", "", partner="vectors", together=1.4),
    technique("all", "", "", 14.3, "", ""),
]


@pytest.fixture
def run(run_dir):
    return load_run(write(run_dir, ROWS))


@pytest.fixture
def page_folder(tmp_path):
    """Of a run that the page reads."""
    return write(page_run.write(tmp_path / "run"), ROWS)


def test_the_sentence_tells_what_depends_on_the_order_and_what_does_not(run):
    [found] = attribution.attributions(run)
    assert [row["technique"] for row in found.techniques] == ["vectors", "tile", "threads"]
    assert attribution.sentence(found) == (
        "On matmul (64x512x784 nn, 2 threads), all techniques together gave 14.3× over the plain "
        "loops. The mean of each over all orders (alone, last): vectors 3.10× (1.40×, 4.90×); "
        "a register tile 2.50× (2.00×, 3.00×); threads 1.85× whatever came before.")


@pytest.mark.parametrize("most,most_after,end", [
    (16, "vectors and threads", ", 16.0× without a register tile."),
    (20, "threads", ", 20.0× without vectors and a register tile."),
    (14.4, "vectors and threads", "."), (14.3, "tile, vectors and threads", ".")])
def test_the_sentence_names_a_faster_combination(run_dir, most, most_after, end):
    rows = [*ROWS[:-1], technique("all", "", "", 14.3, "", most, most_after=most_after)]
    [found] = attribution.attributions(load_run(write(run_dir, rows)))
    assert (f"all techniques together gave 14.3× over the plain loops{end} The mean "
            in attribution.sentence(found))


def test_the_picture_has_a_line_from_least_to_most_and_the_average_on_it(run):
    [found] = attribution.attributions(run)
    picture = str(attribution.picture(found))
    lines = re.findall(r'class="range" x1="([\d.]+)%" x2="([\d.]+)%"', picture)
    averages = re.findall(r'class="average" cx="([\d.]+)%"', picture)
    assert len(lines) == len(averages) == 3
    for (low, high), average in zip(lines, averages):
        assert 0 <= float(low) < float(average) < float(high) <= 100
    assert picture.count("class=\"end\"") == 6 and ">alone<" in picture and ">last<" in picture
    assert ">alone, last<" in picture  # of threads, which are close
    # the one of vectors is the widest but for the tile, and to the right of threads
    assert float(lines[0][1]) > float(lines[2][1])


@pytest.mark.parametrize("ends,shown", [
    ([(20, "alone"), (60, "last")], [(20, "alone", "end"), (60, "last", "start")]),
    ([(5, "last"), (60, "alone")], [(5, "last", "start"), (60, "alone", "start")]),
    ([(30, "alone"), (95, "last")], [(30, "alone", "end"), (95, "last", "end")]),
    ([(40, "alone"), (44, "last")], [(42, "alone, last", "middle")]),
    ([(2, "last"), (4, "alone")], [(2, "last, alone", "start")]),
    ([(94, "alone"), (97, "last")], [(97, "alone, last", "end")]),
])
def test_names_of_ends_neither_overlap_nor_leave_the_picture(ends, shown):
    assert attribution.end_names(ends) == shown


def test_the_page_answers_from_it_and_keeps_the_ladder(page_folder, tmp_path):
    text, _ = render(load_run(page_folder), None, tmp_path, tmp_path / "no program")
    answer = text[text.index('id="answer"'):text.index("</section>", text.index('id="answer"'))]
    assert "vectors 3.10× (1.40×, 4.90×)" in answer
    assert "The ladder of matmul" in answer and "In the order of the ladder" in answer


def test_the_command_that_prints_the_last_screen_begins_with_the_sentence(page_folder, capsys):
    assert main(["table", str(page_folder)]) == 0
    first = capsys.readouterr().out.partition("\n\n")[0]
    [found] = attribution.attributions(load_run(page_folder))
    assert " ".join(first.split()) == attribution.sentence(found)


def test_a_run_without_attribution_has_the_ladder_alone(run_dir):
    assert attribution.section(load_run(run_dir)) == []


def test_the_answer_of_the_readme_is_the_ladder_and_the_sentence(page_folder):
    run = load_run(page_folder)
    block = blocks.known_blocks(run, ())["answer"](page_folder)
    rungs = re.findall(r"^\| `(\w+)`", block, re.M)
    chain = main_chain(ladders(run))
    assert rungs[:len(chain.bars)] == [bar.rung.name for bar in chain.bars]
    assert rungs[-1] == chain.library.rung.name and "| 1.00x |" in block
    assert f"\n\n{attribution.sentence(attribution.attributions(run)[0])}" in block


def test_the_command_that_rewrites_readmes_reads_the_attribution(page_folder, tmp_path):
    root = tmp_path / "repository"
    root.mkdir()
    (root / "README.md").write_text("<!-- results:answer begin -->\n<!-- results:answer end -->\n")
    assert main(["report", str(page_folder), "--root", str(root)]) == 0
    assert "vectors 3.10×" in (root / "README.md").read_text()


def test_a_run_without_rungs_has_the_sentences_alone(run):
    alone = replace(run, summary=[])
    assert blocks.answer(alone) == (
        f"{blocks.source(run)}\n\n{attribution.sentence(attribution.attributions(run)[0])}")
    assert blocks.answer(replace(alone, attribution=[])) is None


def test_the_chart_shows_the_average_alone_and_last_between_least_and_most(run):
    [(name, page)] = chart.draw(run)
    assert name == "attribution-matmul"
    assert title_of(page) == ("Vectors buy the most: 1.4 to 4.9 times, by what is there already")
    axes = page.axes[0, 0]
    # Behind the line of no gain: those of vectors.
    lines = [list(line.get_xdata()) for line in axes.lines[1:5]]
    assert lines == [[1.4, 4.9], [3.1], [1.4], [4.9]]
    assert [label.get_text() for label in axes.get_yticklabels()] \
        == ["vectors", "a register tile", "threads"]


def test_a_gain_whatever_the_order_is_told_as_one_number(run):
    [found] = attribution.attributions(run)
    steady = found._replace(techniques=found.techniques[::-1])
    assert chart.finding(steady) == "Threads buy the most: 1.9 times, whatever came before"


def test_a_run_without_attribution_has_no_such_chart(run_dir):
    assert list(chart.draw(load_run(run_dir))) == [("attribution", "no attribution.csv")]
