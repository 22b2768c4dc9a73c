"""train: from data files to accuracy."""

import json
import random
import re
import struct

import pytest

from conftest import HAS_BF16, ROOT, read_csv

NETWORK = {
    "input": {"channels": 1, "height": 6, "width": 6}, "classes": 10, "batch": 10,
    "layers": [{"type": "fully_connected", "outputs": 16}, {"type": "relu"},
               {"type": "fully_connected", "outputs": 10}, {"type": "softmax_cross_entropy"}],
    "optimizer": {"type": "sgd", "learning_rate": 0.1, "decay": 0.95, "decay_every_samples": 100}}


@pytest.fixture
def stripes(tmp_path):
    """MNIST's files: noise with a bright row or column; which one it is, is the label."""
    draw = random.Random(1)
    folder = tmp_path / "stripes"
    folder.mkdir()
    for part, count in (("train", 200), ("t10k", 55)):
        labels = bytes(draw.randrange(10) for _ in range(count))
        pixels = bytearray()
        for label in labels:
            for y in range(6):
                for x in range(6):
                    bright = y == label if label < 5 else x == label - 5
                    pixels.append(draw.randrange(60) + (180 if bright else 0))
        (folder / f"{part}-images-idx3-ubyte").write_bytes(
            struct.pack(">IIII", 0x803, count, 6, 6) + pixels)
        (folder /
         f"{part}-labels-idx1-ubyte").write_bytes(struct.pack(">II", 0x801, count) + labels)
    return folder


@pytest.fixture
def train(stepladder, stripes, tmp_path):
    network = tmp_path / "tiny.json"
    network.write_text(json.dumps(NETWORK))
    run = tmp_path / "run"

    def call(*arguments):
        done = stepladder("train", "--network", network, "--data", stripes, "--shift", "0",
                          "--threads", "1", *arguments, "--out", run)
        return done, read_csv(run / "train.csv") if (run / "train.csv").exists() else []
    return call


def test_it_learns_and_stops_at_the_target(train):
    done, rows = train("--epochs", "40", "--target-accuracy", "0.9", "--log-every", "7")
    assert done.returncode == 0, done.stderr
    assert "data=mnist" in done.stdout and "55 held out" in done.stdout
    assert float(rows[-1]["accuracy"]) >= 0.9
    assert all(float(row["accuracy"] or 0) < 0.9 for row in rows[:-1])
    assert float(rows[-1]["loss"]) < float(rows[0]["loss"])


def test_rows_come_every_so_many_steps_and_at_the_end_of_an_epoch(train):
    _, rows = train("--steps", "45", "--log-every", "8")
    assert [int(row["step"]) for row in rows] == [8, 16, 20, 24, 32, 40, 45]
    assert [int(row["epoch"]) for row in rows] == [1, 1, 1, 2, 2, 2, 3]
    assert [row["step"] for row in rows if row["accuracy"]] == ["20", "40", "45"]
    # 100 samples are ten steps; the first step has seen none
    assert [float(row["learning_rate"]) for row in rows] == pytest.approx(
        [0.1 * 0.95 ** ((int(row["step"]) - 1) // 10) for row in rows])


def test_a_target_that_is_missed_is_an_exit_status(train):
    done, rows = train("--steps", "1", "--target-accuracy", "1")
    assert done.returncode == 1
    assert "target of 100.00 % was not reached" in done.stderr
    assert len(rows) == 1


@pytest.mark.skipif(not HAS_BF16, reason="this CPU has no AVX512_BF16")
def test_products_of_bf16_keep_the_loss_within_two_per_cent(stepladder, train, stripes, tmp_path):
    _, fp32 = train("--epochs", "10", "--log-every", "5")
    done = stepladder("train", "--network", tmp_path / "tiny.json", "--data", stripes, "--shift",
                      "0", "--threads", "1", "--use", "best,matmul=packed_bf16", "--epochs", "10",
                      "--log-every", "5", "--out", tmp_path / "narrow")
    assert done.returncode == 0, done.stderr
    narrow = [float(row["loss"]) for row in read_csv(tmp_path / "narrow" / "train.csv")]
    wide = [float(row["loss"]) for row in fp32]
    assert narrow == pytest.approx(wide, rel=0.02)
    assert narrow != pytest.approx(wide, rel=1e-6)  # the rung was used


@pytest.mark.skipif(HAS_BF16, reason="this CPU has AVX512_BF16")
def test_bf16_on_a_cpu_without_it_is_an_error(train):
    done, _ = train("--epochs", "1", "--use", "bf16")
    assert done.returncode != 0
    assert "--use bf16: this CPU has no AVX512_BF16" in done.stderr


def test_the_same_seed_trains_the_same(train):
    # A named rung: `best` is chosen by timing, and rungs differ in the last digits.
    _, first = train("--use", "simd", "--steps", "20", "--log-every", "1")
    _, both = train("--use", "simd", "--steps", "20", "--log-every", "1", "--resume")
    assert [row["loss"] for row in both] == 2 * [row["loss"] for row in first]


@pytest.mark.parametrize("arguments, name, rate", [
    ([], "sgd", 0.1), (["--learning-rate", "0.02"], "sgd,learning_rate=0.02", 0.02),
    (["--optimizer", "sgd"], "sgd", 0.1), (["--optimizer", "adam"], "adam", 0.001),
    (["--optimizer", "adagrad"], "adagrad", 0.1), (["--optimizer", "adadelta"], "adadelta", 1.0),
    (["--optimizer", "adam", "--learning-rate", "0.01"], "adam,learning_rate=0.01", 0.01)])
def test_another_optimizer_has_its_own_learning_rate_and_the_decay_of_the_network(
        train, arguments, name, rate):
    done, rows = train("--steps", "15", "--log-every", "1", *arguments)
    assert done.returncode == 0, done.stderr
    assert {row["optimizer"] for row in rows} == {name}
    rates = [float(row["learning_rate"]) for row in rows]
    assert rates[0] == pytest.approx(rate) and rates[-1] == pytest.approx(0.95 * rate)


def test_optimizers_in_one_run_folder_are_trainings_of_their_own(train):
    for name in ("sgd", "momentum", "adam"):
        done, rows = train("--steps", "3", "--log-every", "1", "--optimizer", name, "--resume")
        assert done.returncode == 0, done.stderr
    assert [row["optimizer"] for row in rows] == ["sgd"] * 3 + ["momentum"] * 3 + ["adam"] * 3
    assert len({row["loss"] for row in rows}) > 3


def test_an_unknown_optimizer_is_an_error_with_the_nearest(train):
    done, rows = train("--optimizer", "adm")
    assert done.returncode == 2
    assert "unknown optimizer 'adm'" in done.stderr and "adam" in done.stderr
    assert not rows


@pytest.mark.parametrize("arguments, message", [
    (["--warm-up", "100"], "--warm-up requires --batch-per-rank"),
    (["--mode", "synchronous", "--replicas", "2"], "start it with mpirun -np 2"),
    (["--replicas", "2"], "mode single has no replica threads")])
def test_options_without_an_effect_are_errors(train, arguments, message):
    done, rows = train(*arguments)
    assert done.returncode != 0 and message in done.stderr and not rows


def expect_data(done, run, origin):
    """Every output names the data."""
    assert done.returncode == 0, done.stderr
    assert all(f"data={origin} " in line or f"data={origin})" in line
               for line in done.stdout.splitlines() if "data=" in line)
    assert done.stdout.count(f"data={origin}") == 2
    assert json.loads((run / "environment.json").read_text())["data"] == origin


@pytest.fixture
def quick(stepladder, tmp_path):
    run = tmp_path / "run"

    def call(*arguments):
        return stepladder("train", *arguments, "--steps", "2", "--threads", "1", "--out", run), run
    return call


def test_generated_images_can_be_asked_for_and_every_output_says_so(quick):
    done, run = quick("--network", "mlp", "--data", "generated")
    expect_data(done, run, "generated")
    assert "make data" not in done.stdout


def test_the_default_is_the_real_digits_of_the_project_if_they_are_there(quick):
    done, run = quick("--network", "mlp")
    if (ROOT / "data/mnist").exists():
        expect_data(done, run, "mnist-5k")
        assert "4000 to train on, 1000 held out" in done.stdout
        assert "make data" not in done.stdout
    else:
        expect_data(done, run, "generated")
        assert "`make data` downloads them" in done.stdout


def test_a_network_that_takes_no_digits_gets_generated_images(quick):
    done, run = quick("--network", "cifar_cnn", "--batch", "8")
    expect_data(done, run, "generated")
    assert "make data" not in done.stdout


def test_what_cannot_be_generated_is_an_error_that_names_the_option(stepladder, tmp_path):
    done = stepladder("train", "--network", "alexnet", "--out", tmp_path / "run")
    assert done.returncode == 1
    assert "alexnet: no data can be generated for 1000 classes" in done.stderr
    assert "--data" in done.stderr
    assert not (tmp_path / "run").exists()


FEW_THREADS = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
int pthread_create(pthread_t *id, const pthread_attr_t *attributes, void *(*start)(void *),
                   void *argument) {
  static int started;
  int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) =
      dlsym(RTLD_NEXT, "pthread_create");
  return started == 2 ? EAGAIN : (++started, real(id, attributes, start, argument));
}
"""


@pytest.mark.parametrize("mode, what", [("hogwild", "thread"), ("threads_over_samples", "thread"),
                                        ("actors_learner", "actor")])
def test_a_thread_that_cannot_start_ends_the_training(stepladder, preloaded, tmp_path, mode, what):
    run = tmp_path / "run"
    done = stepladder("train", "--network", "mlp", "--data", "generated", "--mode", mode,
                      "--replicas", "5", "--threads", "1", "--use", "serial", "--steps", "10",
                      "--out", run, environment={"LD_PRELOAD": preloaded(FEW_THREADS)})
    assert done.returncode == 1, done.stderr
    assert re.search(f"{what} [234] of 5 cannot be started: Resource temporarily unavailable\n",
                     done.stderr), done.stderr
