"""Training on simulated ranks: the modes compute what they compute without a simulator, and their
time is that of the injected steps and messages.

STEPLADDER_SMPI_TRAIN names the program (build/stepladder_smpi_train without it).
"""

import json

import pytest

import simulate_training
import smpi
from conftest import Script, sorted_rows
from smpi import read_csv

COMMAND = Script("simulate_training.py", "STEPLADDER_SMPI_TRAIN", "stepladder_smpi_train",
                 ("MODES", "NODES", "NETWORK", "SLOW", "SAMPLES", "BATCH", "USE", "PROBLEM",
                  "STEP_RUN", "TARGET", "LIMIT"))
STEP = 0.01  # seconds of a rank's step
FLAT = smpi.Platform("flat", 1e-5, 1e-9)  # 0.1 ms for a message of all gradients


@pytest.fixture(scope="module")
def simulator(tmp_path_factory):
    COMMAND.needs_simgrid()
    return simulate_training.Simulator(COMMAND.program, tmp_path_factory.mktemp("training"), 60)


def run(simulator, mode, ranks=8, steps=6, batch=64, parts=None, platform=FLAT, **words):
    """Rows of train.csv, {staleness: updates} and the figures at the end."""
    words = {"network": simulate_training.NETWORK, "mode": mode, "use": simulate_training.USE,
             "data": "generated", "batch": batch, "steps": steps,
             "seconds": STEP * (parts or ranks), "verify": 0, **words}
    rows, staleness, end, _, _ = simulator.train(platform, ranks, words, None)
    assert isinstance(end, dict), end
    end = {name: value if name == "weights" else float(value) for name, value in end.items()}
    histogram = [[int(value) for value in line.split(",")[-2:]] for line in staleness]
    return rows, {s: n for s, n in histogram if n}, end


def slow(factor, rank=1, **steps):
    return {"slow_rank": rank, "slow_factor": factor, **steps}


@pytest.fixture(scope="module")
def single(simulator):
    return run(simulator, "single", ranks=1)


def test_a_step_takes_its_injected_time(single):
    assert single[2]["seconds"] == pytest.approx(6 * STEP) and single[2]["loss"] > 0


@pytest.mark.parametrize("mode, ranks", [
    ("synchronous", 8), ("sharded", 8), ("parameter_server", 8), ("ssp,bound=0", 9)])
def test_synchronous_modes_train_as_one_process_does(simulator, single, mode, ranks):
    _, _, end = run(simulator, mode, ranks, verify=1)
    assert end["loss"] == pytest.approx(single[2]["loss"], rel=1e-5)


@pytest.mark.parametrize("bound", [0, 1, 3])
def test_the_staleness_of_ssp_is_bounded_with_a_slow_rank(simulator, bound):
    _, staleness, end = run(simulator, f"ssp,bound={bound}", steps=12, batch=56, parts=7, **slow(5))
    assert max(staleness) == bound
    assert sum(staleness.values()) == 7 * end["step"] == 7 * 12


@pytest.mark.parametrize("mode", [
    "synchronous", "downpour", "ssp,bound=2", "token_ring", "token_ring/parameter_server,node=2"])
def test_a_training_repeats_to_the_bit(simulator, mode):
    words = {"steps": 40, "batch": 8, "parts": 1, "evaluate": 1, "log_every": 20,
             **slow(3, slow_from=2, slow_to=4)}
    first, second = (run(simulator, mode, platform=smpi.PLATFORMS["fattree-100g"], **words)
                     for _ in range(2))
    assert first == second
    another = run(simulator, mode, platform=smpi.PLATFORMS["fattree-100g"], **words | {"seed": 2})
    assert another[2]["weights"] != first[2]["weights"]


def test_a_slow_rank_delays_all_ranks_of_synchronous_training(simulator):
    usual, delayed = (run(simulator, "synchronous", **words)[2]["seconds"]
                      for words in ({}, slow(4)))
    assert delayed - usual == pytest.approx(6 * 3 * STEP, rel=0.01)
    passing = run(simulator, "synchronous", **slow(4, slow_from=2, slow_to=4))[2]["seconds"]
    assert passing - usual == pytest.approx(2 * 3 * STEP, rel=0.01)


def test_downpour_does_not_wait_for_a_slow_rank(simulator):
    def per_sample(mode, batch, parts, **words):
        end = run(simulator, mode, steps=20 * 64 // batch, batch=batch, parts=parts, **words)[2]
        return end["seconds"] / end["samples"]

    synchronous = [per_sample("synchronous", 64, 8, **words) for words in ({}, slow(4))]
    downpour = [per_sample("downpour", 8, 1, **words) for words in ({}, slow(4))]
    assert synchronous[1] / synchronous[0] > 3.5 > 1.5 > downpour[1] / downpour[0]
    assert downpour[1] < synchronous[1]


def test_downpour_counts_the_staleness_of_every_update(simulator):
    _, staleness, end = run(simulator, "downpour", steps=50, batch=8, parts=1)
    assert sum(staleness.values()) == end["step"] == 50
    assert max(staleness) == 6  # the gradients of the other six workers


def test_messages_of_the_gradients_take_the_time_of_the_links(simulator):
    """A ring sends 2 (p-1)/p n bytes in 2 (p-1) messages, one after another."""
    use = "serial,all_reduce=ring"
    alpha, beta, n = 1e-4, 1e-8, 4 * 25450
    end = run(simulator, "synchronous", steps=4, use=use,
              platform=smpi.Platform("slower", alpha, beta))[2]
    ring = 14 * alpha + 14 / 8 * n * beta
    # The time includes the sum of the last loss.
    assert end["seconds"] / 4 - STEP == pytest.approx(ring, rel=0.1)
    assert end["messages"] == pytest.approx(4 * 8 * 14, rel=0.02)


@pytest.mark.parametrize("words, message", [
    ({"mode": "synchronous,overlap=yes"}, "the thread that overlaps messages cannot be simulated"),
    ({"mode": "hogwild"}, "the simulation has no threads"),
    ({"mode": "gossip"}, "gossip"),
    ({"batch": 100000}, "images are too few for a batch of 100000"),
    ({"steps": "many"}, "steps=many: expected a number"),
    ({"colour": "blue"}, "colour=blue: no such option"),
    ({"use": "serial,all_reduce=rings"}, "rings"),
    ({"scale": 1e9}, "learning rate"),
])
def test_a_training_that_cannot_run_says_why_in_one_sentence(simulator, words, message):
    words = {"network": simulate_training.NETWORK, "mode": "synchronous",
             "use": simulate_training.USE, "data": "generated", "batch": 64, "steps": 60,
             "seconds": STEP, "verify": 0} | words
    _, _, end, _, _ = simulator.train(FLAT, 4, words, None)
    assert isinstance(end, str) and message in end


# --- the command ---------------------------------------------------------------------------------


SMALL = {"NODES": "4", "MODES": "synchronous;ssp,bound=1;token_ring;local_sgd",
         "SLOW": "none,1:3", "SAMPLES": "800"}


def test_a_run_has_its_rows_and_a_short_last_screen(command, tmp_path):
    out = tmp_path / "run"
    done = command(out, **SMALL)
    simulations, trainings = read_csv(out / "simulations.csv"), read_csv(out / "train.csv")
    assert [row["status"] for row in simulations] == ["ok"] * 8
    for row in simulations:
        steps = [t for t in trainings if (t["mode"], t["slow"]) == (row["mode"], row["slow"])]
        assert steps[-1]["step"] == row["step"] and len(steps) > 5
        assert float(steps[-1]["seconds"]) == pytest.approx(float(row["seconds"]), rel=1e-4)
        assert 0 < float(steps[-1]["accuracy"]) <= 1
        shares = [float(steps[-1][f"{name}_share"]) for name in ("compute", "exposed", "waiting")]
        assert sum(shares) == pytest.approx(1, abs=0.05)  # the loss of each row is summed, too
    bytes_sent = {row["mode"]: float(row["bytes_per_step"]) for row in trainings
                  if row["bytes_per_step"]}
    assert bytes_sent["synchronous"] == pytest.approx(2 * 3 / 4 * 4 * 1663370, rel=1e-3)
    assert {row["mode"] for row in read_csv(out / "staleness.csv")} == {"ssp,bound=1", "token_ring"}
    tables = json.loads((out / "columns.json").read_text())["tables"]
    for name, rows in (("train", trainings), ("simulations", simulations)):
        assert [column["name"] for column in tables[name]] == list(rows[0])
    screen = done.stdout.partition("\nplatform")[2]
    assert screen and len(screen.splitlines()) <= 32

    command.resume_without_a_row(out, "simulations.csv", **SMALL)
    assert sorted_rows(read_csv(out / "simulations.csv")) == sorted_rows(simulations)
    assert sorted_rows(read_csv(out / "train.csv")) == sorted_rows(trainings)


def test_a_training_that_takes_too_long_is_skipped_with_the_reason(command, tmp_path):
    out = tmp_path / "run"
    command(out, NODES="64", MODES="sharded", SLOW="none", LIMIT="1")
    row, = read_csv(out / "simulations.csv")
    assert row["status"] == "skipped" and "1 s of CPU time" in row["reason"]


@pytest.mark.parametrize("variables, message", [
    ({"NODES": "one"}, "NODES=one: expected whole numbers"),
    ({"SLOW": "1:0"}, "SLOW=1:0: expected none, permanent, passing"),
    ({"SLOW": "8:2"}, "SLOW=8:2: the smallest cluster has the ranks 0 to 7"),
    ({"MODES": "pipeline"}, "MODES=pipeline"),
    ({"NETWORK": "token-ring"}, "NETWORK=token-ring: expected flat-1g"),
    ({"PROBLEM": "lenet"}, "PROBLEM=lenet: no such problem"),
    ({"STEP_RUN": "/nowhere"}, "STEP_RUN=/nowhere"),
    ({"TARGET": "high"}, "TARGET=high"),
    ({"PATH": "/nowhere"}, "SimGrid is not on this machine"),
])
def test_a_wrong_argument_is_one_sentence(tmp_path, variables, message):
    COMMAND(tmp_path / "run", **variables, status=2, error=message, lines=1)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("variables", [{"MODES": "gossip"}, {"USE": "serials"}])
def test_an_unknown_name_is_one_sentence(command, tmp_path, variables):
    command(tmp_path / "run", **variables, status=2, lines=1)
    assert not (tmp_path / "run").exists()
