"""A training that was stopped or killed goes on from its checkpoint and ends with the same weights,
bit for bit."""

import json
import os
import re
import shutil
import sys
import zlib

import pytest

from conftest import ENVIRONMENT
from tests.commands import ROOT, execute, read_csv
from tests.stripes import network_of_stripes

OPTIMIZERS = {
    "sgd": {"type": "sgd", "learning_rate": 0.1, "decay": 0.95, "decay_every_samples": 120},
    "momentum": {"type": "momentum", "momentum": 0.9, "learning_rate": 0.02},
    "adam": {"type": "adam", "learning_rate": 0.005}}


class Trainings:
    """Trainings of one network; each name has a folder of its own for the run and the
    checkpoints."""

    def __init__(self, program, data, folder, optimizer="momentum", dropout=()):
        self.program = program
        self.folder = folder
        self.network = folder / "tiny.json"
        self.network.write_text(json.dumps(network_of_stripes(12, dropout,
                                                              **OPTIMIZERS[optimizer])))
        # A named rung: `best` is chosen by timing. Shifted images: the draws must go on, too.
        self.fixed = [
            "--network", self.network, "--data", data, "--shift", "1", "--threads", "1", "--use",
            "simd"]

    def run(self, name, steps, *arguments, **options):
        run = self.folder / name / "run"
        return self.program("train", *self.fixed, "--steps", steps, "--every", 10, "--out", run,
                            "--checkpoint", self.checkpoints(name), *arguments, **options)

    def weights(self, *arguments, **options):
        """The hash of the weights at the end."""
        return weights_of(self.run(*arguments, **options))

    def checkpoints(self, name):
        return self.folder / name / "checkpoints"

    def newest_first(self, name):
        return sorted(self.checkpoints(name).glob("step-*.checkpoint"), reverse=True)

    def rows(self, name):
        return read_csv(self.folder / name / "run/train.csv")


@pytest.fixture
def trainings(stepladder, stripes, tmp_path):
    return Trainings(stepladder, stripes, tmp_path)


def weights_of(done):
    found, = re.findall(r"^weights fnv1a ([0-9a-f]{16})$", done.stdout, re.MULTILINE)
    return found


@pytest.mark.parametrize("dropout", [(), (0.2,)], ids=["whole", "dropout"])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_resumed_training_ends_with_the_same_weights(stepladder, stripes, tmp_path, optimizer,
                                                       dropout):
    trainings = Trainings(stepladder, stripes, tmp_path, optimizer, dropout)
    whole = trainings.weights("whole", 60, "--log-every", "1")
    # an epoch is 16 steps: the last of these stops are in the middle of one
    parts = [trainings.weights("parts", steps, "--log-every", "1", "--resume")
             for steps in (16, 25, 60)]
    assert parts[-1] == whole
    assert len({whole, *parts}) == 3  # the weights change, and the hash with them
    assert trainings.weights("other", 60, "--seed", "2") != whole


def test_rows_go_on_where_the_checkpoint_was(trainings):
    columns = ("step", "epoch", "samples", "loss", "accuracy", "learning_rate")
    trainings.weights("whole", 60, "--log-every", "4")
    for steps in (30, 60):
        trainings.weights("parts", steps, "--log-every", "4", "--resume")
    wanted, found = ([[row[column] for column in columns] for row in trainings.rows(name)]
                     for name in ("whole", "parts"))
    assert [row
            for row in found if row[0] != "30"] == wanted  # that of step 30 ended the first part
    seconds = [float(row["seconds"]) for row in trainings.rows("parts")]
    assert seconds == sorted(seconds)


def test_the_newest_two_are_kept(trainings):
    trainings.weights("a", 40)
    assert [path.name[:11] for path in trainings.newest_first("a")] == [
        "step-000040", "step-000030"]
    assert len(list(trainings.checkpoints("a").iterdir())) == 2


def test_without_a_checkpoint_resume_starts_anew(trainings):
    whole = trainings.weights("whole", 20)
    assert trainings.weights("new", 20, "--resume") == whole


def test_a_finished_training_can_be_resumed(trainings):
    whole = trainings.weights("a", 20)
    assert trainings.weights("a", 20, "--resume") == whole


@pytest.mark.parametrize("changed", ["train-images-idx3-ubyte", "t10k-labels-idx1-ubyte"])
def test_a_training_does_not_go_on_with_other_data_of_the_same_size(trainings, stripes, changed):
    trainings.weights("a", 20)
    before = trainings.rows("a")
    file = stripes / changed
    content = file.read_bytes()
    file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    trainings.run("a", 40, "--resume", status=1,
                  error="the checkpoint of step 20 is of a training on other images or labels")
    assert trainings.rows("a") == before
    file.write_bytes(content)
    trainings.weights("a", 40, "--resume")


def test_a_checkpoint_without_a_hash_of_the_data_is_loaded(trainings):
    """As earlier versions wrote them."""
    whole = trainings.weights("whole", 30)
    trainings.weights("a", 20)
    newest = trainings.newest_first("a")[0]
    line, rest = newest.read_bytes().split(b"\n", 1)
    size = int.from_bytes(rest[:8], "little")
    header = json.loads(rest[8:8 + size])
    del header["progress"]["data"]
    text = json.dumps(header).encode()
    content = line + b"\n" + len(text).to_bytes(8, "little") + text + rest[8 + size:-4]
    newest.write_bytes(content + zlib.crc32(content).to_bytes(4, "little"))
    done = trainings.run("a", 30, "--resume")
    assert "resumed after step 20" in done.stdout
    assert weights_of(done) == whole


@pytest.mark.parametrize("damage", ["torn", "damaged"])
def test_a_damaged_checkpoint_is_named_and_the_one_before_is_used(trainings, damage):
    whole = trainings.weights("whole", 60)
    trainings.weights("a", 30)
    newest = trainings.newest_first("a")[0]
    content = newest.read_bytes()
    if damage == "torn":
        newest.write_bytes(content[:-100])
    else:
        newest.write_bytes(content[:-100] + bytes([content[-100] ^ 1]) + content[-99:])
    done = trainings.run("a", 60, "--resume")
    assert weights_of(done) == whole
    assert done.stderr.count(".checkpoint: ") == 1
    assert f"{newest}: {damage}: " in done.stderr


@pytest.mark.parametrize("option,value,reason", [
    ("--batch", "6", "batch: 12, not 6"), ("--seed", "2", "seed: 1.*, not 2"),
    ("--shift", "0", "shift: 1, not 0"), ("--use", "serial", "use: simd, not serial")])
def test_the_checkpoint_of_another_training_is_refused_and_left_alone(trainings, option, value,
                                                                      reason):
    trainings.weights("a", 20)
    before = {path.name: path.read_bytes() for path in trainings.newest_first("a")}
    if option in trainings.fixed:
        trainings.fixed[trainings.fixed.index(option) + 1] = value
    else:
        trainings.fixed += [option, value]
    done = trainings.run("a", 20, "--resume")
    assert re.search(f"of another training: .*{reason}", done.stderr)
    after = {path.name: path.read_bytes() for path in trainings.newest_first("a")}
    assert {name: after[name] for name in before} == before


def test_a_folder_that_cannot_be_written_is_an_error_before_training(trainings):
    trainings.checkpoints("a").parent.mkdir()
    trainings.checkpoints("a").write_text("a file")
    trainings.run("a", 20, status=1, error=(f"{trainings.checkpoints('a')}: ", "Not a directory"))
    assert not (trainings.folder / "a/run/train.csv").exists() or not trainings.rows("a")


# --- killed ---------------------------------------------------------------------------------------


def kill_training(trainings, *options, launcher=(), arguments=()):
    return execute(
        sys.executable, ROOT / "scripts/kill.py", "train", *options, "--folder",
        trainings.folder / "kills", "--", *launcher, trainings.program.path, "train",
        *trainings.fixed, *arguments, timeout=300, env=os.environ | ENVIRONMENT)


def test_a_dozen_kills_lose_nothing(trainings):
    done = kill_training(trainings, "--kills", "12", arguments=("--steps", "400", "--every", "3"))
    assert "12 kills" in done.stdout


# --- several ranks -------------------------------------------------------------------------------


def test_two_ranks_resume_bit_for_bit_and_three_go_on(trainings, mpirun):
    arguments = ("--mode", "synchronous", "--log-every", "10")
    whole = trainings.weights("whole", 60, *arguments, launcher=mpirun(2))
    trainings.weights("parts", 30, *arguments, launcher=mpirun(2))
    shutil.copytree(trainings.folder / "parts", trainings.folder / "three")
    assert trainings.weights("parts", 60, *arguments, "--resume", launcher=mpirun(2)) == whole
    trainings.weights("three", 60, *arguments, "--resume", launcher=mpirun(3))
    losses = {
        name: {
            int(row["step"]): float(row["loss"]) for row in trainings.rows(name)
            if row["ranks"] == ranks} for name, ranks in (("whole", "2"), ("three", "3"))}
    assert min(losses["three"]) > 30 and max(losses["three"]) == 60
    # three ranks add the gradients in another order
    assert [losses["three"][step] for step in (40, 50, 60)] == pytest.approx(
        [losses["whole"][step] for step in (40, 50, 60)], rel=1e-3)


def test_a_torn_checkpoint_is_named_once_by_all_ranks_together(trainings, mpirun):
    arguments = ("--mode", "synchronous")
    trainings.weights("a", 30, *arguments, launcher=mpirun(2))
    newest = trainings.newest_first("a")[0]
    newest.write_bytes(newest.read_bytes()[:200])
    done = trainings.run("a", 40, *arguments, "--resume", launcher=mpirun(2))
    weights_of(done)
    assert done.stderr.count(f"{newest}: torn: ") == 1


@pytest.mark.parametrize("options", [(), ("--one-rank",)])
def test_kills_of_two_ranks_lose_nothing(trainings, mpirun, options):
    kill_training(trainings, "--kills", "4", *options, launcher=mpirun(2),
                  arguments=("--mode", "synchronous", "--steps", "300", "--every", "3"))
