"""The published runs as a site: an index and one page for each run."""

from __future__ import annotations

import gzip
import re

import pytest

import page_run
import run_folder
from plots.__main__ import main


@pytest.fixture
def results(tmp_path):
    folder = tmp_path / "results"
    page_run.write(folder / "machine")
    inside = run_folder.write_run(folder / "machine" / "inside", primitives=("sgd_update",),
                                  networks=())
    (inside / "train.csv").unlink()
    summary = inside / "summary.csv"
    (inside / "summary.csv.gz").write_bytes(gzip.compress(summary.read_bytes()))
    summary.unlink()
    run_folder.write_run(folder / "local" / "today", primitives=("matmul",), networks=())
    return folder


def test_every_published_run_has_its_page_and_a_link_to_it(results, tmp_path, capsys):
    site = tmp_path / "site"
    assert main(["site", str(results), str(site)]) == 0
    assert "with the pages of 2 runs" in capsys.readouterr().out
    files = {str(path.relative_to(site)) for path in site.rglob("*") if path.is_file()}
    assert files == {"index.html", "machine/report.html", "machine/inside/report.html"}
    index = (site / "index.html").read_text()
    links = set(re.findall(r'<h2[^>]*><a href="([^"]+)"', index))
    assert links == files - {"index.html"}
    assert "<code>sgd_update</code>" not in index and ">sgd_update</th>" in index
    assert "http" not in re.sub(r"xmlns=\S+", "", index)  # asks for nothing outside


def test_pages_of_runs_that_are_gone_are_removed(results, tmp_path):
    site = tmp_path / "site"
    assert main(["site", str(results), str(site)]) == 0
    (results / "machine" / "inside" / "summary.csv.gz").unlink()
    assert main(["site", str(results), str(site)]) == 0
    assert not (site / "machine" / "inside").exists() and (
        site / "machine" / "report.html").exists()


def test_a_folder_with_other_files_is_left_alone(results, tmp_path, capsys):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("years of work")
    assert main(["site", str(results), str(tmp_path / "mine")]) == 2
    assert "has files of its own" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize("make", [lambda path: path.mkdir(), lambda path: path.write_text("")])
def test_no_run_is_one_clear_sentence(tmp_path, capsys, make):
    make(tmp_path / "results")
    assert main(["site", str(tmp_path / "results"), str(tmp_path / "site")]) == 2
    assert str(tmp_path / "results") in capsys.readouterr().err
    assert not (tmp_path / "site").exists()


def test_a_malformed_run_leaves_the_earlier_site(results, tmp_path):
    site = tmp_path / "site"
    assert main(["site", str(results), str(site)]) == 0
    before = (site / "index.html").read_text()
    (results / "machine" / "columns.json").write_text("{")
    assert main(["site", str(results), str(site)]) != 0
    assert (site / "index.html").read_text() == before
