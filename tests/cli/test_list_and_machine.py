"""list prints the variants and why one cannot run here; machine describes the machine."""

import json
import re
from pathlib import Path

import pytest

from conftest import TINY_SUITE
from tests.commands import ROOT, wait_until


@pytest.mark.parametrize("asked, shown", [
    ((), ["matmul", "convolution", "max_pool", "average_pool", "sgd_update", "all_reduce", "layers",
          "reorder", "low_precision"]),
    (("max_pool", "matmul"), ["max_pool", "matmul"])], ids=["nothing", "two"])
def test_list_shows_every_primitive_or_only_what_was_asked_for(stepladder, asked, shown):
    lines = stepladder("list", *asked).stdout.splitlines()
    assert [line for line in lines if not line.startswith(" ")] == shown


def test_a_rung_shows_what_it_builds_on(stepladder):
    assert ("serial_ikj             serial   fp32  [on serial_ijk] "
            in stepladder("list", "matmul", "--full").stdout)


def test_a_rung_shows_the_layouts_that_it_supports_besides_the_plain_one(stepladder):
    lines = stepladder("list", "convolution", "--full").stdout.splitlines()
    rows = {line.split()[0]: line for line in lines if line.startswith("  ") and line[2] != " "}
    assert rows["naive"].endswith("; also supports NHWC")
    assert "NHWC" not in rows["direct"]
    assert rows["direct_chwn_avx2"].endswith("; supports CHWN only")
    assert rows["direct_nchw16c_avx2"].endswith("; supports NCHW16c only")


def test_cuda_rows_are_listed_and_without_a_gpu_have_a_reason(stepladder):
    has_gpu = json.loads(stepladder("machine", "--json").stdout)["gpu"] is not None
    for primitive in ("matmul", "convolution", "max_pool", "sgd_update"):
        lines = stepladder("list", primitive, "--full").stdout.splitlines()
        rows = [i for i, line in enumerate(lines) if line.split()[1:2] == ["cuda"]]
        assert rows, primitive
        for i in rows:
            following = lines[i + 1] if i + 1 < len(lines) else ""
            assert has_gpu or "unavailable: " in following and "CUDA" in following, lines[i]


def test_libraries_are_listed_as_available_where_they_run_and_nowhere_else(stepladder):
    lines = stepladder("list", "matmul", "--full").stdout.splitlines()
    rows = [(i, line.split()[0]) for i, line in enumerate(lines) if line.split()[1:2] == ["vendor"]]
    assert len(rows) >= 4
    for i, name in rows:
        listed = "unavailable: " not in (lines[i + 1] if i + 1 < len(lines) else "")
        done = stepladder("verify", "matmul", "--variant", name, "--random", "20",
                          status=0 if listed else 4)
        passed = int(re.search(r"(\d+) checks passed", done.stdout)[1])
        assert (passed > 0) == listed, name


def test_machine_describes_itself_as_json(stepladder):
    done = stepladder("machine", "--json")
    machine = json.loads(done.stdout)
    assert machine["schema_version"] == 1
    for key in ("cpu_model", "cores", "caches", "governor", "affinity", "memory_bytes", "compiler",
                "compiler_flags", "libraries", "gpu", "gpu_driver", "gpu_power_limit_w",
                "gpu_highest_clocks", "gpu_monitor", "commit", "dirty", "counters", "energy"):
        assert key in machine
    assert machine["cores"] >= 1 and machine["memory_bytes"] > 0
    assert machine["affinity"].keys() >= {"OMP_PLACES", "OMP_PROC_BIND", "GOMP_SPINCOUNT"}


def test_another_source_folder_has_suites_and_a_commit(stepladder, tmp_path):
    (tmp_path / "bench/suites").mkdir(parents=True)
    (tmp_path / "bench/suites/matmul.csv").write_text(TINY_SUITE)
    there = {"STEPLADDER_SOURCE_DIR": str(tmp_path), "STEPLADDER_COMMIT_FILE": None}
    stepladder("verify", "matmul", "--variant", "blocked", "--suite", "tiny", environment=there)

    def commit(**changed):
        machine = json.loads(stepladder("machine", "--json", environment=there | changed).stdout)
        return machine["commit"], machine["dirty"]

    assert commit() == ("unknown", None)
    (tmp_path / "build/gpu-bundle").mkdir(parents=True)
    (tmp_path /
     "build/gpu-bundle/commit").write_text("0123456789abcdef0123456789abcdef01234567 dirty\n")
    assert commit() == ("0123456789ab", True)
    named = tmp_path / "named"
    named.write_text("fedcba987654\n")
    assert commit(STEPLADDER_COMMIT_FILE=str(named)) == ("fedcba987654", False)
    # The program may have been built from another commit than that of the sources beside it.
    assert commit(STEPLADDER_SOURCE_DIR=str(ROOT),
                  STEPLADDER_COMMIT_FILE=str(named))[0] == "fedcba987654"
    if (ROOT / ".git").exists():
        assert commit(STEPLADDER_SOURCE_DIR=str(ROOT))[0] not in ("fedcba987654", "unknown")


def test_a_source_folder_without_suites_is_refused(stepladder, tmp_path):
    done = stepladder("machine", "--json", environment={"STEPLADDER_SOURCE_DIR": str(tmp_path)},
                      status=1)
    assert done.stderr == (
        f"stepladder: {tmp_path}: has no folder bench/suites; STEPLADDER_SOURCE_DIR must name "
        "stepladder's sources\n")


def test_machine_measures_ceilings(stepladder):
    done = stepladder("machine")
    assert "ceilings on 1 thread\n" in done.stdout
    for ceiling in ("fma_peak", "stream_copy", "DRAM"):
        assert ceiling in done.stdout
    *narrower, widest = json.loads(stepladder("machine", "--json").stdout)["isa"]
    found = {line.split()[0] for line in done.stdout.splitlines() if line.startswith("  ")}
    assert {f"fma_peak_{isa}" for isa in narrower} <= found
    assert f"fma_peak_{widest}" not in found


def test_the_features_of_a_device_are_probed_where_there_is_one(stepladder):
    if json.loads(stepladder("machine", "--json").stdout)["gpu"] is None:
        done = stepladder("machine", "--probe", status=1)
        assert re.fullmatch(r"stepladder: machine --probe needs a CUDA device: .+\n", done.stderr)
        assert done.stdout == ""
    else:
        assert "tma_swizzle" in stepladder("machine", "--probe").stdout


def test_the_program_keeps_its_name_when_it_starts_itself_again(stepladder):
    running = stepladder.start("verify", "matmul", "--random", 100_000, environment={
        "OMP_PROC_BIND": None})
    process = Path("/proc", str(running.pid))
    try:
        assert wait_until(lambda: b"STEPLADDER_PINNED=1" in (process / "environ").read_bytes())
        assert (process / "comm").read_text() == f"{Path(running.args[0]).name[:15]}\n"
    finally:
        running.kill()
        running.communicate()


def test_modes_as_json_and_as_text(stepladder):
    modes = json.loads(stepladder("modes", "--json").stdout)
    names = [mode["name"] for mode in modes]
    assert names == sorted(names) and {"single", "synchronous", "hybrid"} <= set(names)
    ssp = modes[names.index("ssp")]
    assert ssp["replicas"] == "ranks" and not ssp["synchronous"] and ssp["divides_batches"]
    assert [(option["name"], option["default"]) for option in ssp["options"]] == [("bound", "2")]
    lines = stepladder("modes").stdout.splitlines()
    assert [line.split()[0] for line in lines[1:] if not line.startswith(" ")] == names
