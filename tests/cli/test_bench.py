"""bench writes a whole run folder, verifies what it times, and every row can be repeated alone."""

import csv
import json
import math
import os
import re
import shlex
import sys

import pytest

from conftest import QUICK
from tests.commands import ROOT, execute, read_csv

KEY = ("primitive", "direction", "variant", "suite", "problem", "threads", "ranks", "cache")


def key_of(row):
    return tuple(row[name] for name in KEY)


def test_a_run_holds_all_its_files(finished_run):
    files = {path.name for path in finished_run.iterdir()}
    assert files == {
        "environment.json", "ceilings.json", "benchmark.json", "columns.json", "samples.csv",
        "summary.csv", "summary.json"}
    for name in ("environment", "ceilings", "benchmark", "columns", "summary"):
        assert json.loads((finished_run / f"{name}.json").read_text())["schema_version"] == 1


def test_the_environment_records_how_the_run_was_made(finished_run):
    environment = json.loads((finished_run / "environment.json").read_text())
    assert environment["seed"] == 1
    assert len(
        environment["commands"]) == 1 and " bench matmul --variant " in environment["commands"][0]
    assert environment["quiet_sentence"].startswith("The machine was ")


def test_every_file_has_exactly_the_columns_that_columns_json_describes(finished_run):
    tables = json.loads((finished_run / "columns.json").read_text())["tables"]
    assert tables.keys() == {"summary", "samples", "step", "train", "staleness", "plan",
                             "attribution", "inference"}
    for name in ("summary", "samples"):
        with open(finished_run / f"{name}.csv", newline="") as file:
            header, *lines = csv.reader(file)
        assert header == [column["name"] for column in tables[name]]
        assert lines and all(len(line) == len(header) for line in lines)
        for line in lines:
            for column, value in zip(tables[name], line):
                assert column["type"] == "text" or value == "" or float(value) is not None
    assert all(column["meaning"] for table in tables.values() for column in table)


def test_summary_json_has_the_rows_of_summary_csv(finished_run):
    content = json.loads((finished_run / "summary.json").read_text())
    types = {
        column["name"]: column["type"]
        for column in json.loads((finished_run / "columns.json").read_text())["tables"]["summary"]}
    read = {"text": str, "integer": int, "number": float}
    rows = read_csv(finished_run / "summary.csv")
    assert content["columns"] == list(rows[0])
    assert content["rows"] == [{
        name: read[types[name]](value) if value else None for name, value in row.items()}
                               for row in rows]


def test_every_row_that_is_ok_was_verified_and_has_times(finished_run):
    rows = read_csv(finished_run / "summary.csv")
    assert len({key_of(row) for row in rows}) == len(rows)
    ok = [row for row in rows if row["status"] == "ok"]
    has_ceilings = bool(json.loads((finished_run / "ceilings.json").read_text())["ceilings"])
    assert {row["variant"] for row in ok} >= {"serial_ijk", "serial_ikj", "blocked", "simd_sse42"}
    assert {row["problem"] for row in ok} == {"one", "two"}
    for row in ok:
        assert row["verified"] == "yes"
        assert 0 < float(row["min_s"]) <= float(row["median_s"])
        assert float(row["ci_low_s"]) <= float(row["median_s"]) <= float(row["ci_high_s"])
        assert float(row["gflops_per_s"]) == pytest.approx(
            float(row["flops"]) / float(row["median_s"]) / 1e9, rel=1e-4)
        if has_ceilings:  # they are refused beside a neighbour
            assert row["roof"] and float(row["percent_of_roof"]) > 0
        else:
            assert not row["percent_of_roof"]
        assert 0 <= float(row["error_ratio"]) <= 1


def test_every_row_that_is_not_ok_has_a_reason_and_no_time(finished_run):
    for row in read_csv(finished_run / "summary.csv"):
        if row["status"] != "ok":
            assert row["status"] == "unavailable" and row["reason"] and not row["median_s"]


def test_a_row_of_a_library_names_its_version(finished_run):
    rows = [row for row in read_csv(finished_run / "summary.csv") if row["variant"] == "blis"]
    assert rows and all(re.match(r"BLIS \d+\.\d+", row["reason"]) for row in rows)


def test_a_run_of_few_problems_ends_with_a_table_of_each(bench):
    done, rows = bench("matmul", "--shape", "20x30x40", "--variant",
                       "serial_i??,blocked_o3,simd,blis,summa", *QUICK, "--resume")
    lines = done.stdout.splitlines()
    at = lines.index("matmul forward 20x30x40")
    labels = re.split("  +", lines[at + 1].strip())
    assert labels[:8] == ["variant", "threads", "median", "95 % interval", "GFLOP/s", "over first",
                          "over compiler", "over library"]
    table = {line.split()[0]: line for line in lines[at + 2:lines.index("", at)]}
    ok = [row for row in rows if row["status"] == "ok"]
    assert list(table) == [row["variant"] for row in ok] and "serial_ijk" in table
    for row in ok:
        over = float(row["speedup_vs_vendor"])
        assert f"{over:.2f}x" in table[row["variant"]] or f"{over:.3g}x" in table[row["variant"]]
    assert any("unavailable: its product is of several processes" in line for line in lines)


def test_a_run_of_many_problems_ends_with_means(bench):
    shapes = [word for n in range(5) for word in ("--shape", f"{20 + n}x30x40")]
    done, _ = bench("matmul", *shapes, "--variant", "serial_ikj,simd_sse42", *QUICK[:2],
                    "--repetitions", "3", "--budget", "0.005", "--resume")
    lines = done.stdout.splitlines()
    at = lines.index("matmul, geometric means over the problems")
    assert [line.split()[:3] for line in lines[at + 2:at + 4]] == [
        ["serial_ikj", "1", "5"], ["simd_sse42", "1", "5"]]


def test_a_run_prints_json_or_no_tables_if_asked(stepladder, tmp_path):
    arguments = ("bench", "matmul", "--shape", "20x30x40", "--variant", "serial_ikj", *QUICK,
                 "--resume")
    out = tmp_path / "json"
    done = stepladder(*arguments, "--json", "--out", out)
    assert json.loads(done.stdout) == json.loads((out / "summary.json").read_text())
    assert "1 rows ok" in done.stderr
    done = stepladder(*arguments, "--quiet", "--out", tmp_path / "quiet")
    assert done.stdout.startswith("1 rows ok")
    stepladder(*arguments, "--quiet", "--json", "--out", tmp_path / "none", status=2)
    assert not (tmp_path / "none").exists()


def of_row(samples, row):
    return [s for s in samples if (s["variant"], s["problem"]) == (row["variant"], row["problem"])]


def test_every_repetition_is_kept(finished_run):
    samples = read_csv(finished_run / "samples.csv")
    for row in read_csv(finished_run / "summary.csv"):
        own = of_row(samples, row)
        if row["status"] != "ok":
            assert not own
            continue
        for visit in {int(s["visit"]) for s in own}:
            rounds = [int(s["repetition"]) - 10000 * visit for s in own if int(s["visit"]) == visit]
            # A repetition that replaces a disturbed one comes later; other rows may have had a
            # round meanwhile.
            assert rounds == list(range(len(rounds))) or any(
                s["marked"] for s in own if int(s["visit"]) == visit)
            assert rounds == sorted(set(rounds))
        assert len(own) >= int(row["repetitions"])
        undisturbed = sum(not s["marked"] for s in own)
        assert int(row["repetitions"]) in (undisturbed, len(own))
    records = json.loads((finished_run / "benchmark.json").read_text())["benchmarks"]
    assert len(records) == len(samples) and all("name" in record for record in records)


def expect_most_within_three(pairs):
    """Medians of ratios differ from ratios of medians beside a neighbour, but of most rows not by a
    factor of three."""
    off = [row for row, speedup, expected in pairs if not expected / 3 < speedup < expected * 3]
    assert len(off) < len(pairs) / 4, off


def test_speedups_are_the_time_of_the_other_over_that_of_the_row(finished_run):
    ok = [row for row in read_csv(finished_run / "summary.csv") if row["status"] == "ok"]
    seconds = {(row["variant"], row["problem"]): float(row["median_s"]) for row in ok}
    expect_most_within_three(
        [(row["variant"], float(row["speedup_vs_serial"]),
          seconds["serial_ijk", row["problem"]] / float(row["median_s"])) for row in ok])
    assert max(float(row["speedup_vs_serial"]) for row in ok) > 2


def test_the_speedup_over_the_compiler_is_over_its_fastest_rung(finished_run):
    ok = [row for row in read_csv(finished_run / "summary.csv") if row["status"] == "ok"]
    assert {row["variant"].rsplit("_", 1)[0] for row in ok} >= {"serial_ijk_o3", "blocked_o3"}
    fastest = {problem: min(float(row["median_s"]) for row in ok
                            if "_o3_" in row["variant"] and row["problem"] == problem)
               for problem in ("one", "two")}
    expect_most_within_three(
        [(row["variant"], float(row["speedup_vs_compiler"]),
          fastest[row["problem"]] / float(row["median_s"])) for row in ok])
    for row in ok:
        assert row["idea"] == ("compiler" if "_o3_" in row["variant"] or "_omp_simd" in
                               row["variant"] else row["idea"])


def test_the_median_of_a_row_lies_within_its_own_repetitions(finished_run):
    samples = read_csv(finished_run / "samples.csv")
    for row in read_csv(finished_run / "summary.csv"):
        if row["status"] == "ok":
            own = [float(s["seconds"]) for s in of_row(samples, row)]
            assert min(own) * 0.999 <= float(row["median_s"]) <= max(own) * 1.001, row["variant"]


def test_a_rows_repeat_command_repeats_that_row_alone(stepladder, finished_run, tmp_path):
    rows = [row for row in read_csv(finished_run / "summary.csv") if row["status"] == "ok"]
    for row in (rows[0], rows[-1]):
        out = tmp_path / row["variant"]
        program, *arguments = shlex.split(row["repeat_command"])
        assert program == "build/stepladder"
        stepladder(*arguments, *QUICK[2:], "--out", out)
        assert [key_of(again) for again in read_csv(out / "summary.csv")] == [key_of(row)]


def test_several_suites_are_measured_in_one_run_and_a_row_repeats_in_its_own(bench):
    done, rows = bench("sgd_update", "--suite", "layers,quick,squares,quick", "--problem", "mlp",
                       "--direction", "sgd", "--variant", "serial", *QUICK)
    assert "left out: sgd_update has no suite 'squares'\n" in done.stderr
    assert sorted(row["suite"] for row in rows) == ["layers", "quick"]
    assert [shlex.split(row["repeat_command"])[5:7] for row in rows] == [
        ["--suite", row["suite"]] for row in rows]


def test_names_that_a_shell_would_read_are_quoted(stepladder, tmp_path):
    suite = tmp_path / "my suite.csv"
    suite.write_text("suite,name,count,source\ns,it's; 100%,50,\n")
    out = tmp_path / "first"
    arguments = ("bench", "sgd_update", "--variant", "seria?", "--direction", "adam",
                 "--suite-file", suite, "--seed", 9)
    stepladder(*arguments, *QUICK, "--out", out)
    row, = read_csv(out / "summary.csv")
    again = tmp_path / "again"
    stepladder(*shlex.split(row["repeat_command"])[1:], *QUICK[2:], "--out", again)
    assert read_csv(again / "summary.csv")[0]["problem"] == "it's; 100%"
    environments = [json.loads((run / "environment.json").read_text()) for run in (out, again)]
    assert [environment["seed"] for environment in environments] == [9, 9]
    assert shlex.split(environments[0]["commands"][0])[3:5] == ["--variant", "seria?"]


def test_thread_counts_given_twice_are_measured_once(bench, tiny):
    _, rows = bench("matmul", "--variant", "openmp", "--suite-file", tiny, *QUICK[2:], "--threads",
                    "1,1")
    assert len(rows) == 2


def test_cold_rows_are_marked(bench, tiny):
    _, [row] = bench("matmul", "--variant", "serial_ikj", "--problem", "one", "--suite-file", tiny,
                     *QUICK, "--cold")
    assert row["cache"] == "cold" and row["repeat_command"].endswith(" --cold")


def test_a_problem_too_big_for_memory_is_skipped_and_the_others_measured(stepladder, bench, tiny):
    with open(tiny, "a") as file:
        file.write("tiny,huge,16777216,16777216,2,0,0,\n")
    _, rows = bench("matmul", "--variant", "serial_ikj", "--suite-file", tiny, *QUICK)
    rows = {row["problem"]: row for row in rows}
    assert rows["one"]["status"] == rows["two"]["status"] == "ok"
    assert rows["huge"]["status"] == "skipped"
    words = rows["huge"]["reason"].split()  # needs 8388608.0 GiB; 21.2 GiB are available
    assert words[0] == "needs" and float(words[1]) > 1e6 and words[2] == "GiB;"
    assert float(words[3]) > 0 and words[4:] == ["GiB", "are", "available"]

    done = stepladder("verify", "matmul", "--variant", "serial_ikj", "--suite-file", tiny)
    assert "SKIPPED matmul huge: needs " in done.stdout and " GiB are available" in done.stdout


def test_shapes_are_measured_without_a_file(bench):
    _, rows = bench("matmul", "--variant", "serial_ikj", "--shape", "9x8x7", "--shape",
                    "5x6x7 transpose_b=1", *QUICK)
    assert sorted((row["suite"], row["problem"], row["shape"], row["status"]) for row in rows) == [
        ("shape", "5x6x7 transpose_b=1", "5x6x7 nt", "ok"), ("shape", "9x8x7", "9x8x7 nn", "ok")]
    assert all(
        "--shape 9x8x7 --shape '5x6x7 transpose_b=1'" in row["repeat_command"] for row in rows)


def test_strides_along_a_side_of_one_pixel_skip_nothing(stepladder):
    stepladder("verify", "convolution", "--shape", "3x18x9x1x30x1x1 stride_w=3", "--shape",
               "2x4x1x9x4x1x1 stride_h=2")


@pytest.fixture
def gradients(tmp_path):
    path = tmp_path / "gradients.csv"
    path.write_text("suite,name,count,source\ntiny,gradients,1000,\n")
    return path


def test_all_reduce_on_two_ranks_has_bus_bandwidth(bench, mpirun, gradients):
    _, rows = bench("all_reduce", "--suite-file", gradients, *QUICK, launcher=mpirun(2))
    assert {row["direction"] for row in rows if row["status"] == "ok"} == {"sum", "mean"}
    assert {row["variant"] for row in rows} >= {"gather_broadcast", "ring", "mpi_allreduce"}
    between_gpus = {"peer_ring", "nccl"}  # in one process, without mpirun
    for row in rows:
        if row["variant"] in between_gpus:
            assert row["status"] == "unavailable" and row["reason"], row
            has_gpus = "not the GPUs of one" in row["reason"] or "GPU" in row["device"]
            assert has_gpus or not row["problem"] + row["direction"] + row["ranks"]
            continue
        if row["variant"].startswith("hierarchical_"):
            assert row["status"] == "unavailable" and "one node" in row["reason"], row
            continue
        assert (row["status"], row["verified"], row["ranks"]) == ("ok", "yes", "2"), row["reason"]
        # 2 (p − 1) / p · size
        assert float(row["busbw_gbytes_per_s"]) == pytest.approx(
            4000 / float(row["median_s"]) / 1e9, rel=1e-4)
        assert row["repeat_command"].startswith("mpirun -np 2 build/stepladder bench all_reduce ")


def test_products_over_two_ranks_have_the_rate_of_the_whole_product(bench, mpirun, tiny):
    _, rows = bench("matmul", "--variant", "packed,mpi_rows,summa,summa_overlap", "--suite-file",
                    tiny, *QUICK, launcher=mpirun(2), timeout=240)
    sizes = {"one": 33 * 20 * 17, "two": 16 * 16 * 16}
    over_ranks = {}
    for row in rows:
        if row["variant"].startswith("packed"):
            assert (row["status"], row["reason"]) == ("unavailable",
                                                      "its product is of one process")
            continue
        assert (row["status"], row["verified"], row["ranks"],
                row["cache"]) == ("ok", "yes", "2", "cold"), row["reason"]
        assert float(row["flops"]) == 2 * sizes[row["problem"]]
        assert float(row["gflops_per_s"]) == pytest.approx(
            float(row["flops"]) / float(row["median_s"]) / 1e9, rel=1e-4)
        assert row["roof"] == row["percent_of_roof"] == row["predicted_s"] == ""
        assert row["repeat_command"].startswith("mpirun -np 2 build/stepladder bench matmul ")
        over_ranks.setdefault(row["problem"], set()).add(row["variant"].rsplit("_", 1)[0])
    assert over_ranks == dict.fromkeys(sizes, {"mpi_rows", "summa", "summa_overlap"})


@pytest.mark.parametrize("ranks", ["3", "6"])
def test_products_over_ranks_pass_random_problems(stepladder, mpirun, ranks):
    done = stepladder("verify", "matmul", "--variant", "mpi_rows,summa,summa_overlap", "--random",
                      "30", launcher=mpirun(ranks), timeout=120)
    assert "180 checks passed, 0 failed" in done.stdout  # three rungs, two fillings


def test_products_over_ranks_need_mpirun(bench, mpirun, tiny):
    _, rows = bench("matmul", "--variant", "mpi_rows,summa", "--suite-file", tiny, *QUICK)
    assert len(rows) == 4
    assert {row["reason"] for row in rows} == {
        "its product is of several processes: start them with mpirun"}


def test_an_error_on_one_rank_ends_all_of_them(stepladder, mpirun, gradients, finished_run):
    stepladder("bench", "all_reduce", "--suite-file", gradients, *QUICK, "--out", finished_run,
               launcher=mpirun(2), status="not 0", error="holds a run already")


def test_a_wrong_name_is_reported_once_by_all_ranks(stepladder, mpirun):
    done = stepladder("bench", "all_reduce", "--variant", "rign", launcher=mpirun(2), status=2)
    assert done.stderr.count("nearest: ring") == 1


def test_one_rank_is_too_few_for_all_reduce(bench):
    done, _ = bench("all_reduce", status=1,
                    error="mpirun -np 2 build/stepladder bench all_reduce")
    assert "OMPI_ALLOW_RUN_AS_ROOT" not in done.stderr  # they are set here
    assert not bench.run.exists()


def test_root_gets_the_variables_that_mpirun_needs(stepladder):
    done = stepladder("bench", "all_reduce", status=1,
                      environment={"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": None})
    expected = "OMPI_ALLOW_RUN_AS_ROOT=1 and OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"
    assert (expected in done.stderr) == (os.geteuid() == 0)


def test_a_variant_that_cannot_run_here_has_one_row(stepladder, bench, tiny):
    listing = stepladder("list", "matmul", "--full").stdout.splitlines()
    missing = {listing[i - 1].split()[0]: line.split("unavailable: ")[1]
               for i, line in enumerate(listing) if "unavailable: " in line}
    variants = ",".join(["serial_ikj", *missing])
    for more in ((), ("--resume",)):
        done, rows = bench("matmul", "--variant", variants, "--suite-file", tiny, *QUICK[2:],
                           "--threads", "1,2", *more)
        assert f" {len(missing)} unavailable," in done.stdout
        rows = [row for row in rows if row["status"] == "unavailable"]
        assert {row["variant"]: row["reason"]
                for row in rows} == missing and len(rows) == len(missing)
        for row in rows:
            assert not any(row[name]
                           for name in ("problem", "direction", "shape", "layout", "suite", "cache",
                                        "threads", "ranks", "repeat_command", "median_s"))
    if missing:
        execute(sys.executable, "-m", "plots", "charts", bench.run, cwd=ROOT)


def test_energy_is_measured_where_the_machine_has_counters(stepladder, finished_run):
    energy = json.loads((finished_run / "environment.json").read_text())["energy"]
    ok = [row for row in read_csv(finished_run / "summary.csv") if row["status"] == "ok"]
    assert all((row["energy_j"] != "") == (energy == "available") for row in ok)
    assert energy == "available" or "powercap" in energy


def test_what_used_the_memory_before_does_not_slow_a_rung(stepladder, tmp_path):
    """With one channel, most lanes of a vector are unused. malloc fills them with the smallest
    normal numbers, whose products are denormal and cost 2x and more, or with zeros."""
    shortest = {"denormal": {}, "zero": {}}
    for run in range(5):  # other work may slow one of them; denormal numbers slow each run
        for name, perturb in (("denormal", 0x80 ^ 0xff), ("zero", 0xff)):
            out = tmp_path / f"{name}{run}"
            stepladder("bench", "convolution", "--shape", "16x1x28x28x20x5x5x1x1x2x2", "--variant",
                       "direct_tile,fft,winograd,openmp", *QUICK, "--out", out,
                       environment={"GLIBC_TUNABLES": f"glibc.malloc.perturb={perturb}"})
            for row in read_csv(out / "summary.csv"):
                if row["status"] == "ok":
                    key = row["variant"], row["direction"]
                    seconds = min(float(row["min_s"]), shortest[name].get(key, math.inf))
                    shortest[name][key] = seconds
        ratios = {key: seconds / shortest["zero"][key]
                  for key, seconds in shortest["denormal"].items()}
        middle = sorted(ratios.values())[len(ratios) // 2]  # the machine may be slower in one run
        slow = {key: ratio for key, ratio in ratios.items() if ratio > 1.5 * middle}
        if not slow:
            break
    assert len(ratios) >= 8 and slow == {}
