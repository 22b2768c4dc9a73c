"""A variant is one new file: dropped into a copy of the tree it is built, listed and verified.

The file is the example of CONTRIBUTING.md. What the tested build folder has compiled is not
compiled again.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import ROOT, Program

sys.path.insert(0, str(ROOT / "scripts"))

import faults  # noqa: E402  (needs the path above)


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


def configure(tree, *options):
    return subprocess.run(["cmake", "-S", tree, "-B", tree / "build", *options],
                          capture_output=True, text=True, timeout=120, check=False)


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
    copy = old("new", "convolution", "copy_of_im2col", "--from", "im2col",
               environment={"STEPLADDER_SOURCE_DIR": str(copied)})
    assert copy.returncode == 0, copy.stderr
    done = subprocess.run(["cmake", "--build", copied / "build", "--target", "stepladder",
                           "--parallel", "2"], capture_output=True, text=True, timeout=600,
                          check=False)
    assert done.returncode == 0, done.stdout + done.stderr

    program = Program(copied / "build/stepladder")
    listed = program("list", primitive, "--full").stdout.splitlines()
    row, = [line for line in listed if line.split()[:1] == [name]]
    adds = re.search(r'\.adds = "(.*?)"', text)[1]
    assert row.endswith(adds)

    done = program("verify", primitive, "--variant", name, "--random", "50")
    assert done.returncode == 0, done.stdout
    counts = re.search(r"50 problems, 1 variant: (\d+) checks passed, 0 failed", done.stdout)
    assert int(counts[1]) > 0
    (copied / path).unlink()

    # The copy that `new` makes compiles too, and is another rung.
    done = program("verify", "convolution", "--variant", "copy_of_im2col", "--random", "5")
    assert done.returncode == 0 and ", 0 failed" in done.stdout, done.stdout
    tree = program("list", "convolution").stdout
    assert re.search(r"─ im2col: .*\n(.*\n)*.*─ copy_of_im2col: what it adds to im2col", tree)


def digests(tree):
    """Path and digest of every CUDA rung, as the build has them compiled in."""
    done = subprocess.run(["cmake", "--build", tree / "build", "--target",
                           "stepladder_source_digests"], capture_output=True, text=True,
                          timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
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
    done = configure(copied, f"-DSTEPLADDER_PRIMITIVES={primitive}", "-DSTEPLADDER_UNITY=OFF")
    sources = [entry["file"] for entry in json.loads(
        (copied / "build/compile_commands.json").read_text())]
    assert configure(copied, "-DSTEPLADDER_PRIMITIVES=", "-DSTEPLADDER_UNITY=ON").returncode == 0
    assert done.returncode == 0, done.stderr
    serial = [source for source in sources
              if re.search(r"tree/kernels/\w+/cpu/serial\w*\.cpp", source)]
    assert serial and all(f"/{primitive}/" in source for source in serial)
    assert any("kernels/convolution/reference.cpp" in source for source in sources)


def test_a_file_that_registers_another_name_stops_the_configuration(copied):
    wrong = copied / "kernels/max_pool/mistyped.cpp"
    serial = (copied / "kernels/max_pool/cpu/serial.cpp").read_text()
    wrong.write_text(serial)
    done = configure(copied)
    wrong.unlink()
    assert done.returncode != 0
    message = " ".join(done.stderr.split())
    assert 'kernels/max_pool/mistyped.cpp: registers the name "serial"' in message
    assert '"mistyped"' in message


def test_a_file_whose_description_cannot_be_read_stops_the_configuration(copied):
    wrong = copied / "kernels/max_pool/nameless.cpp"
    wrong.write_text('const Registration registration{info, plan_of<pool>};\n')
    done = configure(copied)
    wrong.unlink()
    assert done.returncode != 0
    message = " ".join(done.stderr.split())
    assert ('kernels/max_pool/nameless.cpp: expected `constexpr VariantInfo info{.name = "nameless"'
            in message)
