from __future__ import annotations

import re
from pathlib import Path

import pytest

from plots.__main__ import main
from plots.data.errors import InputError
from plots.data.ratios import ladders
from plots.data.reading import load_run
from plots.tables import markdown
from plots.tables.blocks import (
    data_parallel_peers,
    inference_peers,
    known_blocks,
    ladder_block,
    peers,
    sweep,
)
from plots.tables.report import documents, primitives_of, rewrite
from run_folder import summary_row, table_row, total, write_csv, write_json
from tests import columns


def block(name: str, content: str = "") -> str:
    return f"<!-- results:{name} begin -->\n{content}<!-- results:{name} end -->\n"


OLD = "old text\n"
PUBLISHED = [path.parent for path in sorted(columns.RESULTS.glob("*/columns.json"))
             if path.parent.name != "local"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository with a main README, a page in docs and the README of one primitive."""
    folder = tmp_path / "repository"
    (folder / "kernels/matmul").mkdir(parents=True)
    (folder / "kernels/common").mkdir()
    (folder / "docs").mkdir()
    (folder / "docs/results.md").write_text(block("steps", OLD))
    (folder / "kernels/matmul/matmul.hpp").touch()
    (folder / "README.md").write_text(f"# Title\n\n{block('summary', OLD)}tail\n"
                                      f"{block('steps')}{block('training')}{block('machine')}"
                                      f"{block('directions')}")
    (folder / "kernels/matmul/README.md").write_text(f"intro\n{block('ladder-matmul')}reasons\n")
    (folder / "kernels/common/README.md").write_text("no markers\n")
    return folder


def test_text_between_markers_is_replaced_and_the_rest_stays(run_dir, root):
    outcome = rewrite(load_run(run_dir), root)
    assert sorted(path.relative_to(root).as_posix() for path in outcome.changed) \
        == ["README.md", "docs/results.md", "kernels/matmul/README.md"]
    assert outcome.warnings == []
    assert OLD not in (root / "docs/results.md").read_text()
    text = (root / "README.md").read_text()
    assert OLD not in text
    assert text.startswith("# Title\n\n<!-- results:summary begin -->\n\n")
    assert "\n\n<!-- results:summary end -->\ntail\n" in text
    assert "| `best,convolution=direct` | 2 threads |" in text.split("**mnist_cnn**")[1]
    assert "0123456789ab" in text
    ladder = (root / "kernels/matmul/README.md").read_text()
    assert ladder.startswith("intro\n") and ladder.endswith("reasons\n")
    assert "**backward_data**" in ladder
    assert (root / "kernels/common/README.md").read_text() == "no markers\n"


def test_a_second_report_changes_nothing(run_dir, root):
    rewrite(load_run(run_dir), root)
    texts = {path: path.read_text() for path in root.rglob("*.md")}
    assert rewrite(load_run(run_dir), root).changed == []
    assert texts == {path: path.read_text() for path in root.rglob("*.md")}


def test_the_table_of_a_ladder(run_of, root):
    rewrite(run_of([
        summary_row("blocked", 8.0, speedup_vs_serial=1, percent_of_roof=2),
        summary_row("blocked", 32.0, problem="q", speedup_vs_serial=1, percent_of_roof=8),
        summary_row("simd_avx2", 4.0, technique="simd", builds_on="blocked", speedup_vs_serial=2),
        summary_row("simd_avx2", 4.0, technique="simd", builds_on="blocked", problem="q",
                    speedup_vs_serial=8, speedup_vs_vendor=0.5),
        summary_row("openmp", 2.0, technique="openmp", builds_on="simd", threads=2,
                    speedup_vs_serial=4),
        summary_row("mkl", 0, technique="vendor", status="unavailable", median_s="")]), root)
    text = (root / "kernels/matmul/README.md").read_text()
    assert table_row(text, "rung") == ["rung", "builds on", "on", "gain", "over serial",
                                       "over vendor", "of roof", "problems"]
    assert table_row(text, "`blocked`")[1:] == ["–", "1 thread", "–", "1.00x", "–", "4.0 %", "2"]
    assert table_row(text, "`simd_avx2`")[1:] == ["`blocked`", "1 thread", "4.00x", "4.00x",
                                                 "0.50x", "–", "2"]
    assert table_row(text, "`openmp`")[1:] == ["`simd`", "2 threads", "2.00x", "4.00x", "–", "–",
                                              "1"]
    assert "mkl" not in text


def test_a_table_has_equal_arithmetic_only_where_it_makes_a_difference():
    run = load_run(columns.FOLDER)
    found = {ladder.primitive: ladder_block(run, ladder) for ladder in ladders(run)}
    assert "equal" in table_row(found["convolution"], "rung")  # Winograd and FFT
    assert "equal" not in table_row(found["matmul"], "rung")
    assert "`equal`" in found["convolution"] and "`equal`" not in found["matmul"]


def test_wide_text_becomes_several_lines_and_a_wide_table_several_tables():
    labels, rows = ["a", "b", *"cdef"], [["x", str(i), *["y" * 21] * 4] for i in range(2)]
    text = markdown.narrow(f"{'word ' * 30}\n\n{markdown.table(labels, rows, 2)}")
    assert max(map(len, text.splitlines())) <= markdown.NARROW < 30 * 5
    first, second = (part.splitlines() for part in text.split("\n\n")[1:])
    assert first[:3] == ["| a | b | c | d |", "| :-- | :-- | --: | --: |",
                         f"| x | 0 | {'y' * 21} | {'y' * 21} |"]
    assert second[0] == "| a | b | e | f |" and len(first) == len(second) == 4


@pytest.mark.parametrize("machine", PUBLISHED, ids=lambda path: path.name)
def test_no_block_of_a_published_run_is_too_wide(machine, tmp_path):
    known = known_blocks(load_run(machine, ("environment", "summary", "step", "train")), ())
    made = [text for name, block in known.items() if (text := block(tmp_path))
            and not name.startswith("chart-")]
    assert made
    assert max(len(line) for text in made for line in markdown.narrow(text).splitlines()) <= 100


def test_every_block_of_the_documents_is_what_a_published_run_gives():
    repository = columns.RESULTS.parent
    left = {}
    for path in documents(repository):
        for found in re.finditer(r"<!-- results:(\S+) begin -->\n\n(.*?)\n\n<!-- results:\1 end",
                                 path.read_text(), re.DOTALL):
            left[path, found[1]] = found[2]
    assert len(left) > 20
    for run in (*PUBLISHED, *sorted(columns.RESULTS.glob("*/layers"))):
        known = known_blocks(load_run(run), primitives_of(repository))
        for (path, name), text in list(left.items()):
            made = known[name](path.parent) if name in known else None
            if made is not None and markdown.narrow(made) == text:
                del left[path, name]
    assert not left


def test_the_best_rung_of_the_summary_has_most_problems_before_most_gain(run_of, root):
    rewrite(run_of([
        summary_row("serial", 8.0, speedup_vs_serial=1),
        summary_row("serial", 8.0, problem="q", speedup_vs_serial=1),
        summary_row("general", 4.0, speedup_vs_serial=2, builds_on="serial"),
        summary_row("general", 4.0, problem="q", speedup_vs_serial=2, builds_on="serial"),
        summary_row("special", 1.0, speedup_vs_serial=8, builds_on="serial"),
        summary_row("library", 1.0, technique="vendor", speedup_vs_serial=8)]), root)
    assert table_row((root / "README.md").read_text(), "matmul", "1 thread", "`general`")[3] \
        == "2.00x"


def test_a_serial_loop_that_runs_more_problems_is_not_the_best_of_the_summary(run_of, root):
    rewrite(run_of([
        summary_row("serial", 8.0, technique="serial", speedup_vs_serial=1),
        summary_row("serial", 8.0, technique="serial", problem="q", speedup_vs_serial=1),
        summary_row("special", 1.0, technique="simd", speedup_vs_serial=8, builds_on="serial")]),
        root)
    assert table_row((root / "README.md").read_text(), "matmul", "1 thread", "`special`")[3] \
        == "8.00x"


def test_each_precision_has_its_best_rung_in_the_summary(run_of, root):
    of = [{"primitive": "low_precision", "direction": name, "precision": name}
          for name in ("bf16", "int8")]
    rewrite(run_of([
        *(summary_row("serial", 8.0, speedup_vs_serial=1, **precision) for precision in of),
        *(summary_row("packed", 4.0, speedup_vs_serial=2, **precision) for precision in of),
        summary_row("amx", 1.0, speedup_vs_serial=8, **of[1])]), root)
    text = (root / "README.md").read_text()
    assert table_row(text, "low_precision bf16", "1 thread", "`packed`")[3] == "2.00x"
    assert table_row(text, "low_precision int8", "1 thread", "`amx`")[3] == "8.00x"


@pytest.mark.parametrize("apart", [{"prepacked": "yes"}, {"precision": "bf16"}])
def test_a_rung_with_packed_weights_or_rounded_operands_is_not_the_best_of_the_summary(run_of, root,
                                                                                       apart):
    rewrite(run_of([
        summary_row("serial", 1.0, speedup_vs_serial=1, prepacked="no"),
        summary_row("packed", 0.5, speedup_vs_serial=2, prepacked="no"),
        summary_row("apart", 0.25, speedup_vs_serial=4, **apart)]), root)
    text = (root / "README.md").read_text()
    assert table_row(text, "matmul", "1 thread", "`packed`")[3] == "2.00x"


def test_a_block_without_rows_in_the_run_is_kept_with_a_warning(run_dir, root):
    (root / "README.md").write_text(block("training", "of another day\n"))
    (run_dir / "train.csv").unlink()
    outcome = rewrite(load_run(run_dir), root)
    assert (root / "README.md").read_text() == block("training", "of another day\n")
    assert outcome.warnings == [f"{root / 'README.md'}:3: the run has nothing for 'training'; its "
                                "block was kept"]


def test_a_primitive_without_rows_is_a_known_name(run_dir, root):
    (run_dir / "summary.csv").unlink()
    assert "ladder-matmul" in rewrite(load_run(run_dir), root).warnings[-1]


def test_the_link_to_a_chart_is_relative_to_the_readme(run_dir, root):
    (run_dir / "charts").mkdir()
    (run_dir / "charts/ladder-matmul.svg").touch()
    (root / "kernels/matmul/README.md").write_text(block("chart-ladder-matmul"))
    rewrite(load_run(run_dir), root)
    line = (root / "kernels/matmul/README.md").read_text().splitlines()[2]
    assert line.startswith("![ladder matmul](../../../run/charts/ladder-matmul.svg")
    assert (root / "kernels/matmul" / line[line.index("(") + 1:-1]).exists()


@pytest.mark.parametrize("text, line, message", [
    (block("sumary"), 1, "no results are named 'sumary'; the nearest names are summary"),
    (block("zzz"), 1,
     "expected one of all-reduce, all-reduce-network, all-reduce-peers, answer, "
     "data-parallel-peers, directions, inference, inference-peers, instruction-sets, ladder-"),
    ("<!-- results:summary begin -->\n", 1, "'summary' begins here and has no end"),
    ("x\n<!-- results:summary end -->\n", 2, "'summary' ends without a begin"),
    ("<!-- results:steps begin -->\n<!-- results:summary end -->\n", 2,
     "'summary' ends inside 'steps' of line 1"),
    ("<!-- results:steps begin -->\n" + block("summary"), 2,
     "'summary' begins inside 'steps', which began in line 1"),
    ("<!-- results:summary start -->\n", 1, "is no marker"),
    ("<!-- results:summary begin --> text\n", 1, "is no marker")])
def test_wrong_markers_name_file_and_line_and_nothing_is_written(run_dir, root, text, line,
                                                                 message):
    path = root / "kernels/matmul/README.md"
    path.write_text(text)
    before = (root / "README.md").read_text()
    with pytest.raises(InputError) as error:
        rewrite(load_run(run_dir), root)
    assert str(error.value).startswith(f"{path}:{line}: ")
    assert message in str(error.value)
    assert (root / "README.md").read_text() == before


def test_the_command(run_dir, root, capsys):
    assert main(["report", str(run_dir), "--root", str(root)]) == 0
    assert f"rewrote {root / 'README.md'}" in capsys.readouterr().out
    (root / "README.md").write_text(block("sumary"))
    assert main(["report", str(run_dir), "--root", str(root)]) == 2
    assert "README.md:1: " in capsys.readouterr().err


def test_a_thread_sweep_is_a_line_for_each_pair_and_a_column_for_each_network(run_of):
    text = sweep(run_of(step=[
        total(network, "openmp", seconds, threads, mode=mode)
        for network, mode, threads, seconds in (
            ("mlp", "inter=1", 1, 0.008), ("mlp", "inter=2", 1, 0.004),
            ("mlp", "inter=1", 2, 0.002), ("mnist_cnn", "inter=1", 1, 0.09),
            ("mnist_cnn", "single", 2, 0.01))]))
    assert table_row(text, "operations at once")[2:] == ["mlp, `openmp`", "mnist_cnn, `openmp`"]
    assert table_row(text, "1", "1")[2:] == ["8.00 (1.00x)", "90.0 (1.00x)"]
    assert table_row(text, "1", "2")[2:] == ["2.00 (4.00x)", "–"]
    assert table_row(text, "2", "1")[2:] == ["4.00 (2.00x)", "–"]


def test_the_fastest_mode_of_a_peer_is_compared_with_best(run_of, tmp_path):
    assert peers(run_of(step=[total(seconds=0.002)])) is None
    write_json(tmp_path / "peers/environment.json", rounds=3, pytorch="2.9",
               cpu_model="a processor", commit="0123456789ab")
    write_csv(tmp_path / "peers", columns.STEP, [
        total(seconds=0.002), total(use="vendor", seconds=0.004),
        total(use="pytorch", mode="eager", seconds=0.008),
        total(use="pytorch", mode="compile", seconds=0.006), total(seconds=0.002, threads=2)])
    text = peers(load_run(tmp_path))
    assert text.startswith("a processor; commit 0123456789ab; ")
    assert "PyTorch 2.9; medians of 3 rounds" in text
    assert table_row(text, "mlp")[1:] == ["1 thread", "2.00", "4.00", "6.00", "compile", "3.00x"]
    assert text.count("| mlp ") == 1


def test_requests_of_other_libraries_are_compared_with_best(run_of, tmp_path):
    assert inference_peers(run_of(step=[total(seconds=0.002)])) is None
    folder = tmp_path / "peers/inference"
    write_json(folder / "environment.json", rounds=3, pytorch="2.9", onnxruntime="1.32",
               cpu_model="a processor")
    kinds = {"network": "text", "use": "text", "mode": "text", "batch": "integer",
             "threads": "integer", "median_s": "number", "ratio": "number", "status": "text"}
    write_json(folder / "columns.json", tables={"peers_inference": [
        {"name": name, "type": kind} for name, kind in kinds.items()]})
    (folder / "peers_inference.csv").write_text(
        ",".join(kinds) + "\n"
        "mlp,best,,8,1,0.002,,ok\nmlp,vendor,,8,1,0.004,2,ok\nmlp,pytorch,eager,8,1,0.008,4,ok\n"
        "mlp,pytorch,compile,8,1,0.006,3,ok\nmlp,onnxruntime,,8,1,,,failed\n"
        "mlp,best,,1,1,,,failed\nmlp,vendor,,1,1,0.001,,ok\n")
    text = inference_peers(load_run(tmp_path))
    assert text.startswith("a processor; ")
    assert "PyTorch 2.9, ONNX Runtime 1.32; medians of 3 rounds" in text
    assert table_row(text, "mlp")[1:] == ["8", "1 thread", "2.00", "2.00x", "3.00x", "–"]
    assert text.count("| mlp ") == 1


def test_data_parallel_steps_beside_those_of_a_peer(run_of, tmp_path):
    write_json(tmp_path / "environment.json")
    assert data_parallel_peers(run_of(step=[])) is None
    folder = tmp_path / "modes/peers"
    write_json(folder / "environment.json", rounds=5, pytorch="2.9")
    kinds = dict.fromkeys(("threads", "ranks", "batch", "rounds"), "integer") \
        | dict.fromkeys(("network", "use", "mode", "status", "reason"), "text")
    header = ("network,use,mode,threads,ranks,batch,rounds,median_s,ci_low_s,ci_high_s,"
              "samples_per_s,ratio,ratio_ci_low,ratio_ci_high,exposed_share,status,reason")
    write_json(folder / "columns.json", tables={"peers_data_parallel": [
        {"name": name, "type": kinds.get(name, "number")} for name in header.split(",")]})
    (folder / "peers_data_parallel.csv").write_text(
        header + "\n"
        "mlp,best,synchronous,1,2,64,5,0.002,0.001,0.003,64000,,,,0.04,ok,\n"
        "mlp,pytorch,eager,1,2,64,5,0.004,0.003,0.005,32000,2.0,1.5,2.5,0.3,ok,\n"
        "mlp,pytorch,compile,1,2,64,,,,,,,,,,failed,no compiler\n")
    text = data_parallel_peers(load_run(tmp_path))
    assert "PyTorch 2.9" in text and "5 rounds" in text
    assert table_row(text, "mlp", "2",
                     "`best`, synchronous")[3:] == ["2.00", "64,000", "4.0 %", "–"]
    assert table_row(text, "mlp", "2", "PyTorch, eager")[3:] == ["4.00", "32,000", "30 %",
                                                                 "2.00x (1.50x to 2.50x)"]
    assert table_row(text, "mlp", "2", "PyTorch, compile")[3:] == ["failed: no "
                                                                   "compiler", "–", "–", "–"]
