"""plan: the time of one update of the weights in every mode of training, predicted and measured."""

import json
import re

import pytest

from conftest import Command

SHORT = ("--use", "simd", "--data", "generated")
OF_RANKS = {
    "synchronous", "sharded", "parameter_server", "token_ring", "downpour", "ssp", "local_sgd",
    "model_parallel", "pipeline"}
OF_ONE_PROCESS = {"single", "hogwild", "threads_over_samples", "actors_learner"}


def line(alpha, beta):
    return [[size, alpha + beta * size] for size in (4, 1024, 1048576, 67108864)]


def link_costs(alpha, beta):
    return {"send": line(alpha, beta), "shift": line(alpha, beta), "swap": line(alpha, beta)}


@pytest.fixture
def links(tmp_path):
    """A run folder with measured links: 1 GB/s within a host, and 1 Gbit/s between hosts."""
    none = {"send": [], "shift": [], "swap": []}
    memory = {
        "add": line(0, 2e-10), "copy": line(0, 1e-10), "stream": line(0, 1e-10), "handoff": line(
            1e-7, 1e-10), "code": 1e-10, "measurements": 1}
    folder = tmp_path / "links"
    folder.mkdir()
    (folder / "links.json").write_text(
        json.dumps({
            "schema_version": 1, "links": [{
                "within": link_costs(1e-6,
                                     1e-9), "between": none, "ranks": 2, "hosts": 1, **memory}, {
                                         "within": link_costs(1e-6, 1e-9), "between": link_costs(
                                             3e-5, 8e-9), "ranks": 4, "hosts": 2, **memory}]}))
    return folder


@pytest.fixture
def plan(stepladder, network, tmp_path):
    return Command(stepladder, tmp_path / "run", "plan.csv", "plan", "--network", network, *SHORT)


def test_every_mode_has_a_row_the_fastest_first(plan, links):
    done, rows = plan("--ranks", "2", "--links", links)
    assert {row["mode"] for row in rows} == OF_RANKS | OF_ONE_PROCESS | {"synchronous,overlap=yes"}
    can_run = [row for row in rows if not row["why_not"]]
    assert rows[:len(can_run)] == can_run
    assert [row["mode"] for row in rows if row["why_not"]] == ["single"]
    times = [float(row["predicted_s"]) for row in can_run]
    assert times == sorted(times) and times[0] > 0
    for row in can_run:
        parts = sum(float(row[column]) for column in ("compute_s", "exposed_s", "waiting_s"))
        assert float(row["predicted_s"]) == pytest.approx(parts, rel=1e-4)
        assert float(row["samples_per_s"]) == pytest.approx(4 / float(row["predicted_s"]), rel=1e-4)
        assert row["measured_s"] == "" and row["ranks"] == "2" and row["batch"] == "4"
    assert f"Use {rows[0]['mode']}: " in done.stdout
    assert "it runs on one rank" in done.stdout


def test_slow_links_between_hosts_make_communication_longer(plan, links):
    _, rows = plan("--ranks", "4", "--hosts", "2", "--links", links, "--modes", "synchronous",
                   "parameter_server", "hogwild")
    exposed = {row["mode"]: float(row["exposed_s"]) for row in rows if not row["why_not"]}
    assert set(exposed) == {"synchronous", "parameter_server"}
    _, rows = plan("--ranks", "4", "--hosts", "2", "--rate", "1mbit", "--modes", "synchronous",
                   "parameter_server", "--resume")
    slow = {row["mode"]: float(row["exposed_s"]) for row in rows[-2:]}
    assert all(slow[mode] > 2 * exposed[mode] for mode in exposed)


def test_without_links_only_modes_of_one_process_have_a_prediction(plan):
    done, rows = plan("--ranks", "2", "--measure")
    assert {row["mode"] for row in rows if not row["why_not"]} == OF_ONE_PROCESS - {"single"}
    for row in rows:
        assert (row["measured_s"] != "") == (row["why_not"] == "")
        assert "mpirun" in row["why_not"] or row["mode"] in OF_ONE_PROCESS
    assert re.search(r"Errors of 3 predictions: median \d+\.\d %, 90th percentile \d+\.\d %",
                     done.stdout)


def test_ranks_measure_their_links_their_layers_and_the_modes(plan, mpirun):
    done, rows = plan("--measure", launcher=mpirun(2), timeout=240)
    measured = {row["mode"]: row for row in rows if row["measured_s"]}
    assert set(measured) == OF_RANKS | {"synchronous,overlap=yes"}
    for row in measured.values():
        error = 100 * (float(row["predicted_s"]) / float(row["measured_s"]) - 1)
        assert float(row["error_percent"]) == pytest.approx(error, abs=0.01 + abs(error) * 1e-3)
    errors = sorted(abs(float(row["error_percent"])) for row in measured.values())
    median = (errors[4] + errors[5]) / 2
    assert f"Errors of 10 predictions: median {median:.1f} %" in done.stdout
    fastest = min(measured.values(), key=lambda row: float(row["measured_s"]))["mode"]
    assert f"the fastest measured, {fastest}, " in done.stdout


# What one process of each rank counts while it trains.
def test_the_bytes_of_model_parallelism_are_those_that_train_reports(stepladder, mpirun, network,
                                                                     tmp_path):
    run = tmp_path / "train"
    trained = stepladder("train", "--network", network, *SHORT, "--steps", "1", "--mode",
                         "model_parallel", "--out", run, launcher=mpirun(2))
    forward, backward = map(
        float,
        re.search(r"model parallel: (\S+) MB forward, (\S+) MB backward", trained.stdout).groups())
    planned = stepladder("plan", "--network", network, "--ranks", "2", "--bytes")
    mib = 2**20 / 1e6
    of_plan = re.search(r"^all +(\S+) +(\S+)", planned.stdout, re.MULTILINE).groups()
    assert [float(value) * mib for value in of_plan] == pytest.approx([forward, backward],
                                                                      abs=0.011)


def test_the_surveys_counting_of_alexnet_over_three_devices(stepladder):
    done = stepladder("plan", "--network", "alexnet", "--ranks", "3", "--bytes")
    survey = {
        fields[1]: fields[-1] for fields in map(str.split, done.stdout.splitlines())
        if len(fields) == 5}
    assert (survey["conv3"], survey["fc1"], survey["fc2"], survey["fc3"]) == ("42.25", "9.00",
                                                                              "4.00", "1.33")
    assert re.search(r"^all .* 56\.58$", done.stdout, re.MULTILINE)


@pytest.mark.parametrize(("arguments", "says"), [
    (("--ranks", "3", "--hosts", "2"), "3 ranks on 2 hosts: expected as many ranks on every host"),
    (("--ranks", "2", "--hosts", "2", "--rate", "1furlong"),
     "--rate 1furlong: expected a number with kbit, mbit or gbit"),
    (("--ranks", "2", "--hosts", "2", "--rate", "-1gbit"), "--rate -1gbit: expected"),
    (("--ranks", "2", "--hosts", "2", "--rate", "0x1gbit"), "--rate 0x1gbit: expected"),
    (("--ranks", "2", "--hosts", "2", "--rate", "gbit"), "--rate gbit: expected"),
    (("--ranks", "2", "--rate", "1gbit"), "--rate is that of the links between hosts"),
    (("--ranks", "5"), "a batch of 4 is smaller than the number of ranks, 5"),
    (("--ranks", "2", "--modes", "synchronus"), "synchronous"),
    (("--ranks", "2", "--modes", "ssp,bond=2"), "bound"),
])
def test_bad_options_end_with_one_sentence(plan, arguments, says):
    done, rows = plan(*arguments, status="not 0", error=says)
    assert rows == []
    assert len(done.stderr.strip().splitlines()) <= 2, done.stderr


@pytest.mark.parametrize(("change", "says"), [
    (lambda text: text[:100], "links.json"),
    (lambda text: text.replace('"send"', '"sent"'), "send"),
    (lambda text: text.replace("[1024,", "[2,"), "increasing bytes"),
    (lambda text: text.replace("[1024,", '["x",'), "a number from 0"),
    (lambda text: '{"schema_version": 1, "links": []}', "no links within a host were measured"),
])
def test_bad_links_are_named_with_their_file(plan, links, change, says):
    file = links / "links.json"
    file.write_text(change(file.read_text()))
    _, rows = plan("--ranks", "2", "--links", links, "--modes", "synchronous", status=1,
                   error=("links.json", says))
    assert rows == []


def test_links_are_not_given_twice(plan, mpirun):
    _, rows = plan("--rate", "1gbit", launcher=mpirun(2), status="not 0",
                   error="--rate: under mpirun the links are measured")
    assert rows == []
    _, rows = plan("--ranks", "3", launcher=mpirun(2), status="not 0",
                   error="--ranks 3: mpirun started 2")
