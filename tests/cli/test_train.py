"""train: from data files to accuracy."""

import json
import re

import pytest

from conftest import HAS_BF16, Command
from tests.commands import ROOT, read_csv
from tests.stripes import network_of_stripes


@pytest.fixture
def train(stepladder, stripes, tmp_path):
    network = tmp_path / "tiny.json"
    network.write_text(json.dumps(network_of_stripes(
        10, type="sgd", learning_rate=0.1, decay=0.95, decay_every_samples=100)))
    return Command(stepladder, tmp_path / "run", "train.csv", "train", "--network", network,
                   "--data", stripes, "--shift", "0", "--threads", "1")


def test_it_learns_and_stops_at_the_target(train):
    done, rows = train("--epochs", "40", "--target-accuracy", "0.9", "--log-every", "7")
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
    _, rows = train("--steps", "1", "--target-accuracy", "1", status=1,
                    error="target of 100.00 % was not reached")
    assert len(rows) == 1


@pytest.mark.skipif(not HAS_BF16, reason="this CPU has no AVX512_BF16")
def test_products_of_bf16_keep_the_loss_within_two_per_cent(stepladder, train, stripes, tmp_path):
    _, fp32 = train("--epochs", "10", "--log-every", "5")
    stepladder("train", "--network", tmp_path / "tiny.json", "--data", stripes, "--shift", "0",
               "--threads", "1", "--use", "best,matmul=packed_bf16", "--epochs", "10",
               "--log-every", "5", "--out", tmp_path / "narrow")
    narrow = [float(row["loss"]) for row in read_csv(tmp_path / "narrow" / "train.csv")]
    wide = [float(row["loss"]) for row in fp32]
    assert narrow == pytest.approx(wide, rel=0.02)
    assert narrow != pytest.approx(wide, rel=1e-6)  # the rung was used


@pytest.mark.skipif(HAS_BF16, reason="this CPU has AVX512_BF16")
def test_bf16_on_a_cpu_without_it_is_an_error(train):
    train("--epochs", "1", "--use", "bf16", status="not 0",
          error="--use bf16: this CPU has no AVX512_BF16")


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
    _, rows = train("--steps", "15", "--log-every", "1", *arguments)
    assert {row["optimizer"] for row in rows} == {name}
    rates = [float(row["learning_rate"]) for row in rows]
    assert rates[0] == pytest.approx(rate) and rates[-1] == pytest.approx(0.95 * rate)


def test_optimizers_in_one_run_folder_are_trainings_of_their_own(train):
    for name in ("sgd", "momentum", "adam"):
        _, rows = train("--steps", "3", "--log-every", "1", "--optimizer", name, "--resume")
    assert [row["optimizer"] for row in rows] == ["sgd"] * 3 + ["momentum"] * 3 + ["adam"] * 3
    assert len({row["loss"] for row in rows}) > 3


def test_an_unknown_optimizer_is_an_error_with_the_nearest(train):
    _, rows = train("--optimizer", "adm", status=2, error=("unknown optimizer 'adm'", "adam"))
    assert not rows


@pytest.mark.parametrize("arguments, message", [
    (["--warm-up", "100"], "--warm-up requires --batch-per-rank"),
    (["--mode", "synchronous", "--replicas", "2"], "start it with mpirun -np 2"),
    (["--replicas", "2"], "mode single has no replica threads")])
def test_options_without_an_effect_are_errors(train, arguments, message):
    _, rows = train(*arguments, status="not 0", error=message)
    assert not rows


HAS_DIGITS = (ROOT / "data/mnist").exists()


@pytest.mark.parametrize("arguments, origin, says", [
    (("mlp", "--data", "generated"), "generated", ""),
    (("mlp",), *(("mnist-5k", "4000 to train on, 1000 held out") if HAS_DIGITS else
                 ("generated", "`make data` downloads them"))),
    (("cifar_cnn", "--batch", "8"), "generated", "")],  # it takes no digits
    ids=["asked for", "default", "no digits"])
def test_every_output_names_the_data(stepladder, tmp_path, arguments, origin, says):
    run = tmp_path / "run"
    shown = stepladder("train", "--steps", "2", "--threads", "1", "--out", run, "--network",
                       *arguments).stdout
    assert all(f"data={origin} " in line or f"data={origin})" in line
               for line in shown.splitlines() if "data=" in line)
    assert shown.count(f"data={origin}") == 2
    assert json.loads((run / "environment.json").read_text())["data"] == origin
    assert says in shown and ("make data" in shown) == ("make data" in says)


def test_what_cannot_be_generated_is_an_error_that_names_the_option(stepladder, tmp_path):
    stepladder("train", "--network", "alexnet", "--out", tmp_path / "run", status=1,
               error=("alexnet: no data can be generated for 1000 classes", "--data"))
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
                      "--out", run, environment={"LD_PRELOAD": preloaded(FEW_THREADS)}, status=1)
    assert re.search(f"{what} [234] of 5 cannot be started: Resource temporarily unavailable\n",
                     done.stderr), done.stderr
