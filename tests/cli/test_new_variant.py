"""A variant is one new file: dropped into a copy of the tree it is built, listed and verified.

The file is the example of CONTRIBUTING.md. What the tested build folder has compiled is not
compiled again.
"""

import json
import re
from pathlib import Path

import pytest

import faults
from conftest import Program
from tests.commands import ROOT, check, execute


@pytest.fixture(scope="module")
def copied(program_path, tmp_path_factory):
    """A copy of the tree and its configured build folder."""
    build = program_path.parent
    if not (build / "compile_commands.json").exists():
        pytest.skip(f"{build} is not a build folder of CMake")
    copy = faults.Copy(tmp_path_factory.mktemp("copy"), build, 2)
    copy.synchronize()
    copy.configure()
    return copy.tree


def configure(tree, *options, **expected):
    return execute("cmake", "-S", tree, "-B", tree / "build", *options, **expected)


def build(tree, target):
    execute("cmake", "--build", tree / "build", "--target", target, "--parallel", "2", timeout=600)


def example():
    """Path and text of the variant that CONTRIBUTING.md shows."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    found = re.search(r"`(kernels/[\w/]+\.cpp)`:\n\n```cpp\n(.*?)```", text, re.DOTALL)
    return found[1], found[2]


def test_the_example_is_short():
    assert len(example()[1].splitlines()) <= 60


@pytest.mark.without_sanitizers("building a copy takes over ten minutes")
def test_one_new_file_is_built_listed_and_verified(copied, program_path):
    path, text = example()
    primitive, name = Path(path).parts[1], Path(path).stem
    assert not (ROOT / path).exists()
    (copied / path).write_text(text)
    old = Program(program_path)
    old("new", "convolution", "copy_of_im2col", "--from", "im2col",
        environment={"STEPLADDER_SOURCE_DIR": str(copied)})
    build(copied, "stepladder")

    program = Program(copied / "build/stepladder")
    listed = program("list", primitive, "--full").stdout.splitlines()
    row, = [line for line in listed if line.split()[:1] == [name]]
    adds = re.search(r'\.adds = "(.*?)"', text)[1]
    assert row.endswith(adds)

    done = program("verify", primitive, "--variant", name, "--random", "50")
    counts = re.search(r"50 problems, 1 variant: (\d+) checks passed, 0 failed", done.stdout)
    assert int(counts[1]) > 0
    (copied / path).unlink()

    # The copy that `new` makes compiles too, and is another rung.
    done = program("verify", "convolution", "--variant", "copy_of_im2col", "--random", "5")
    assert ", 0 failed" in done.stdout, done.stdout
    tree = program("list", "convolution").stdout
    assert re.search(r"─ im2col: .*\n(.*\n)*.*─ copy_of_im2col: what it adds to im2col", tree)


def digests(tree):
    """Path and digest of every CUDA rung, as the build has them compiled in."""
    build(tree, "stepladder_source_digests")
    return dict(re.findall(r'{"(\S+)", "(\w+)"}', (tree / "build/source_digests.cpp").read_text()))


def test_a_changed_header_changes_the_digests_of_the_rungs_that_include_it_and_no_others(copied):
    before = digests(copied)
    header = copied / "kernels/max_pool/cuda/element.hpp"
    text = header.read_text()
    header.write_text(text + "// another line\nstruct Another;\n")
    after = digests(copied)
    header.write_text(text)
    changed = {file for file in before if before[file] != after[file]}
    including = {path.relative_to(copied).as_posix() for path in copied.glob("kernels/**/*.cu")
                 if "kernels/max_pool/cuda/element.hpp" in path.read_text()}
    assert including and changed == including
    assert digests(copied) == before


def test_a_new_rung_gets_a_digest(copied):
    rung = copied / "kernels/max_pool/another.cu"
    text = (copied / "kernels/max_pool/cuda/naive.cu").read_text()
    rung.write_text(text.replace('.name = "naive"', '.name = "another"'))
    with_it = digests(copied)
    rung.unlink()
    assert "kernels/max_pool/another.cu" in with_it
    assert "kernels/max_pool/another.cu" not in digests(copied)


@pytest.mark.parametrize("primitive", ["reorder", "matmul"])
def test_the_rungs_of_one_primitive_can_be_built_alone(copied, primitive):
    done = configure(copied, f"-DSTEPLADDER_PRIMITIVES={primitive}", "-DSTEPLADDER_UNITY=OFF",
                     status=None)
    sources = [entry["file"] for entry in json.loads(
        (copied / "build/compile_commands.json").read_text())]
    configure(copied, "-DSTEPLADDER_PRIMITIVES=", "-DSTEPLADDER_UNITY=ON")
    check(done)
    serial = [source for source in sources
              if re.search(r"tree/kernels/\w+/cpu/serial\w*\.cpp", source)]
    assert serial and all(f"/{primitive}/" in source for source in serial)
    assert any("kernels/convolution/reference.cpp" in source for source in sources)


@pytest.mark.parametrize("name, text, messages", [
    ("mistyped", (ROOT / "kernels/max_pool/cpu/serial.cpp").read_text(),
     ('mistyped.cpp: registers the name "serial"', '"mistyped"')),
    ("nameless", "const Registration registration{info, plan_of<pool>};\n",
     ('nameless.cpp: expected `constexpr VariantInfo info{.name = "nameless"',))],
    ids=["another name", "no description"])
def test_a_file_without_a_description_of_its_name_stops_the_configuration(copied, name, text,
                                                                          messages):
    wrong = copied / f"kernels/max_pool/{name}.cpp"
    wrong.write_text(text)
    done = configure(copied, status=None)
    wrong.unlink()
    said = " ".join(check(done, status="not 0").stderr.split())
    assert f"kernels/max_pool/{name}.cpp: " in said
    assert all(message in said for message in messages), said
