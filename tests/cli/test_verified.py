"""`list` calls a CUDA rung verified only where a published file has the digest of its source, which
is computed here a second time.
"""

import hashlib
import json
import re
import signal
import subprocess
from pathlib import Path

import pytest

from tests.commands import ROOT, execute, wait_until

NEVER = "never run on a device"


def closure(file, root=ROOT):
    """The file and all headers of the project that it includes, as paths from the root."""
    found, waiting = set(), [file]
    while waiting:
        name = waiting.pop()
        if name not in found and name != "kernels/common/variant.hpp":
            found.add(name)
            waiting += re.findall(r'^\s*#\s*include\s*["<](kernels/[^">]+)',
                                  (root / name).read_text(), re.MULTILINE)
    return sorted(found)


def code_of(path):
    """Without comments, white space, and what a VariantInfo tells its readers alone."""
    text = "".join(line.split("//")[0] for line in path.read_text().splitlines())
    text = "".join(text.split())
    return re.sub(r'\.(adds|builds_on)=("[^"]*")+,|\.idea=[\w:]+,', "", text)


def digest_of(file, root=ROOT):
    sums = "".join(f"{hashlib.sha256(code_of(root / name).encode()).hexdigest()}  {name}\n"
                   for name in closure(file, root))
    return hashlib.sha256(sums.encode()).hexdigest()[:12]


def cuda_rungs():
    """Path: digest of every .cu file that holds a variant of our own."""
    files = [path for path in sorted(ROOT.glob("kernels/*/cuda/**/*.cu"))
             if "const Registration registration{" in path.read_text()]
    return {
        path.relative_to(ROOT).as_posix(): digest_of(path.relative_to(ROOT).as_posix())
        for path in files}


def listed(stepladder, *options):
    """Path: the status of each CUDA rung that `list` prints."""
    paths = {(path.split("/")[1], path.split("/")[-1]): path for path in cuda_rungs()}
    done = stepladder("list", "--place", "cuda", "--full", *options)
    found, primitive = {}, None
    for line in done.stdout.splitlines():
        if not line.startswith(" "):
            primitive = line
        elif line[2] != " ":
            name = line.split()[0]
        elif "unavailable: " not in line:
            found[paths[primitive, f"{name}.cu"]] = line.strip()
    return found


def publish(results, verified, failed=()):
    """The file of one machine, x; the arguments are {file: digest}."""
    def entries(digests):
        return {file: {"digest": digest, "date": "2026-01-31", "device": "NVIDIA X"}
                for file, digest in dict(digests).items()}

    (results / "x").mkdir()
    (results / "x/verified.json").write_text(json.dumps(
        {"schema_version": 1, "verified": entries(verified), "failed": entries(failed)}))


def expected_status(file, digest, published):
    """What `list` should print, by the rules of docs/gpu.md, for the files of one machine or
    none."""
    for kind, now, then in (("failed", "FAILED on", "changed since it failed on"),
                            ("verified", "verified on", "changed since it was verified on")):
        for claims in published:
            if claim := claims[kind].get(file):
                status = now if claim["digest"] == digest else then
                return f"{status} {claim['device']}, {claim['date']}"
    return NEVER


def test_every_rung_has_never_run_where_nothing_is_published(stepladder, tmp_path):
    statuses = listed(stepladder, "--results", tmp_path)
    assert statuses.keys() == cuda_rungs().keys()
    assert set(statuses.values()) == {NEVER}


def test_the_program_has_the_digests_of_the_tree(stepladder, tmp_path):
    publish(tmp_path, cuda_rungs())
    statuses = listed(stepladder, "--results", tmp_path)
    assert statuses and set(statuses.values()) == {"verified on NVIDIA X, 2026-01-31"}


def test_another_digest_reads_as_changed(stepladder, tmp_path):
    publish(tmp_path, {file: digest[:-1] + ("0" if digest[-1] != "0" else "1")
                       for file, digest in cuda_rungs().items()})
    statuses = listed(stepladder, "--results", tmp_path)
    assert statuses and set(statuses.values()) == {
        "changed since it was verified on NVIDIA X, 2026-01-31"}


def test_a_failure_reads_as_one(stepladder, tmp_path):
    file, digest = next(iter(cuda_rungs().items()))
    publish(tmp_path, {}, {file: digest})
    assert listed(stepladder, "--results", tmp_path)[file] == "FAILED on NVIDIA X, 2026-01-31"


def test_published_files_claim_no_more_than_the_tree_holds(stepladder):
    """A tracked verified.json holds for the sources that it was made from."""
    published = [
        json.loads(path.read_text()) for path in sorted(ROOT.glob("results/*/verified.json"))]
    rungs, statuses = cuda_rungs(), listed(stepladder)
    if len(published) <= 1:
        assert statuses == {
            file: expected_status(file, digest, published) for file, digest in rungs.items()}
    for file, status in statuses.items():
        is_current = any(
            claims["verified"].get(file, {}).get("digest") == rungs[file] for claims in published)
        assert is_current or not status.startswith("verified"), f"{file}: {status}"


def test_the_readme_says_that_no_rung_has_run_on_a_gpu_until_one_has(stepladder):
    says_none = "None of them has run on a GPU yet" in " ".join(
        (ROOT / "README.md").read_text().split())
    assert says_none == all(status == NEVER for status in listed(stepladder).values())


def test_a_damaged_file_is_an_error_with_its_name_and_line(stepladder, tmp_path):
    publish(tmp_path, {})
    path = tmp_path / "x/verified.json"
    path.write_text(
        '{\n "schema_version": 1,\n'
        ' "verified": {"kernels/matmul/cuda/naive.cu": {"digest": "none"}}\n}\n'
    )
    done = stepladder("list", "--results", tmp_path, status=1,
                      error=(f"{path}:3: ", "12 hex digits"))
    assert done.stdout == ""


def test_a_missing_results_folder_is_reported(stepladder, tmp_path):
    statuses = listed(stepladder, "--results", tmp_path / "none")
    assert statuses
    for status in statuses.values():
        assert status.startswith("not known") and f"{tmp_path}/none cannot be read" in status


def test_without_a_device_there_is_nothing_to_record(stepladder, tmp_path):
    if json.loads(stepladder("machine", "--json").stdout)["gpu"] is not None:
        pytest.skip("this machine has a device")
    record = tmp_path / "verified.json"
    done = stepladder("verify", "max_pool", "--random", "3", "--record", record, status=1,
                      error=("--record", "CUDA"))
    assert done.stdout == ""
    assert not record.exists()


@pytest.fixture
def emulated(program_path):
    """The program with the emulator in place of a GPU (tests/simt)."""
    path = Path(program_path).parent / "stepladder_emulated"
    if not path.exists():
        pytest.skip(f"{path} was not built; make test builds it")
    return path


def recorded(path):
    return json.loads(path.read_text())["verified"].keys() if path.exists() else set()


def test_a_verification_that_is_cut_has_recorded_the_rungs_that_finished(emulated, tmp_path):
    record = tmp_path / "verified.json"
    process = subprocess.Popen(
        [emulated, "verify", "matmul", "--place", "cuda", "--random", "30", "--record", record],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: recorded(record))
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert "kernels/matmul/cuda/naive.cu" in recorded(record)
    assert "kernels/matmul/cuda/wgmma/tf32x3_wgmma_cluster.cu" not in recorded(record)  # the last


def test_processes_that_record_at_once_lose_nothing(emulated, tmp_path):
    record = tmp_path / "verified.json"
    rungs = ["naive", "coalesced", "shared_memory", "register_tile"]
    processes = [
        subprocess.Popen([
            emulated, "verify", "matmul", "--variant", rung, "--place", "cuda", "--random", "3",
            "--record", record], stdout=subprocess.PIPE, stderr=subprocess.PIPE) for rung in rungs]
    for process in processes:
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
    assert recorded(record) == {f"kernels/matmul/cuda/{rung}.cu" for rung in rungs}


def test_on_a_device_what_passed_is_recorded_and_listed(stepladder, tmp_path):
    if json.loads(stepladder("machine", "--json").stdout)["gpu"] is None:
        pytest.skip("this machine has no device")
    (tmp_path / "here").mkdir()
    record = tmp_path / "here/verified.json"
    stepladder("verify", "max_pool", "--variant", "naive", "--random", "20", "--record", record)
    statuses = listed(stepladder, "--results", tmp_path)
    assert statuses["kernels/max_pool/cuda/naive.cu"].startswith("verified on ")
    assert statuses["kernels/sgd_update/cuda/naive.cu"] == NEVER


@pytest.fixture
def small_tree(tmp_path):
    """One .cu file that includes a.hpp, and through it b.hpp; other.hpp stands apart."""
    kernels = tmp_path / "a tree/kernels/matmul"
    kernels.mkdir(parents=True)
    (kernels / "rung.cu").write_text(
        '#include <cuda_runtime.h>\n#  include "kernels/matmul/a.hpp"\nint x;\n'
        '#include "kernels/common/variant.hpp"\n'
        'constexpr VariantInfo info{\n    .name = "rung",\n    .adds = "one idea"\n'
        '            " on two lines",\n    .idea = Idea::vectors,\n};\n')
    (kernels / "a.hpp").write_text('#pragma once\n#include "kernels/matmul/b.hpp"\n')
    (kernels / "b.hpp").write_text('#pragma once\n#include "kernels/matmul/a.hpp"\nint y;\n')
    (kernels / "other.hpp").write_text("#pragma once\n")
    (tmp_path / "sources.txt").write_text("kernels/matmul/rung.cu\n")
    return tmp_path


def run_script(folder, **expected):
    return execute("cmake", f"-DROOT={folder}/a tree", f"-DSOURCES={folder}/sources.txt",
                   f"-DOUTPUT={folder}/digests.cpp", "-P", ROOT / "cmake/source_digests.cmake",
                   **expected)


def digest_by_script(folder):
    run_script(folder)
    return re.search(r'"kernels/matmul/rung.cu", "(\w+)"', (folder / "digests.cpp").read_text())[1]


def test_a_digest_covers_what_is_included_directly_or_not_and_nothing_else(small_tree):
    tree = small_tree / "a tree"
    before = digest_by_script(small_tree)
    assert before == digest_of("kernels/matmul/rung.cu", tree)
    (tree / "kernels/matmul/other.hpp").write_text("int z;\n")
    assert digest_by_script(small_tree) == before
    for name in ("rung.cu", "a.hpp", "b.hpp"):
        with (tree / "kernels/matmul" / name).open("a") as file:
            file.write("char c;")
        after = digest_by_script(small_tree)
        assert after != before and after == digest_of("kernels/matmul/rung.cu", tree), name
        before = after


@pytest.mark.parametrize("old, new", [
    ("int x;", "int  x; // of the rung"),
    ("\n};", "};"),
    ("one idea", "another idea"),
    ("Idea::vectors", "Idea::packing"),
])
def test_a_digest_covers_code_alone(small_tree, old, new):
    before = digest_by_script(small_tree)
    rung = small_tree / "a tree/kernels/matmul/rung.cu"
    text = rung.read_text()
    assert old in text
    rung.write_text(text.replace(old, new))
    assert digest_by_script(small_tree) == before == digest_of(
        "kernels/matmul/rung.cu", small_tree / "a tree")


def test_the_build_depends_on_every_file_of_a_digest(small_tree):
    digest_by_script(small_tree)
    rule = (small_tree / "digests.cpp.d").read_text().replace("\\ ", "_").replace("\\\n",
                                                                                  " ").split()
    assert [name.rsplit("/", 1)[1] for name in rule[1:]] == ["a.hpp", "b.hpp", "rung.cu"]


@pytest.mark.parametrize("line, message", [
    ('#include "kernels/matmul/none.hpp"', "there is no such file"),
    ('#include "a.hpp"', "expected a path from the project's root"),
])
def test_an_include_that_cannot_be_followed_stops_the_build(small_tree, line, message):
    with (small_tree / "a tree/kernels/matmul/b.hpp").open("a") as file:
        file.write(line + "\n")
    assert message in " ".join(run_script(small_tree, status="not 0").stderr.split())
