"""The simulated cluster: the rungs compute correct results in it, and its times are those of its
links.

STEPLADDER_SMPI names the program (build/stepladder_smpi without it).
"""

import json
import re
import signal
from dataclasses import replace

import pytest

import simulate
import smpi
from conftest import Script, sorted_rows
from smpi import read_csv

COMMAND = Script("simulate.py", "STEPLADDER_SMPI", "stepladder_smpi",
                 ("NODES", "NETWORK", "VARIANT", "PROBLEM", "STEP_RUN", "LIMIT"))
FREE = {"add": [[0, 0], [1e9, 0]], "copy": [[0, 0], [1e9, 0]]}  # arithmetic that takes no time


def flat(alpha=1e-5, beta=1e-9, arithmetic=FREE):
    return smpi.Platform(f"flat-{alpha:g}-{beta:g}", alpha, beta, arithmetic=arithmetic)


@pytest.fixture(scope="module")
def simulator(tmp_path_factory):
    COMMAND.needs_simgrid()
    simulator = simulate.Simulator(COMMAND.program, tmp_path_factory.mktemp("simulation"), 60)
    simulator.why_not = simulator.rungs()
    return simulator


def seconds(simulator, platform, nodes, variant, count, direction="sum", **options):
    p = platform
    answer, _, _ = simulator.run(
        p, nodes, "time", variant, direction, count, p.node_ranks(nodes), p.alpha, p.beta,
        p.near_alpha, p.beta, arithmetic=p.arithmetic, **options)
    status, simulated, model, messages = answer.split()
    assert status == "ok"
    return float(simulated), float(model) if model != "-" else None, int(messages)


def test_all_rungs_give_exact_results(simulator):
    p = flat()
    verified = 0
    for variant, why_not in simulator.why_not.items():
        for ranks in (7, 16) if not why_not else ():
            answer, _, _ = simulator.run(p, ranks, "verify", variant, p.node_ranks(ranks))
            if not answer.startswith("unavailable: "):
                assert answer == "ok", f"{variant}, {ranks} ranks: {answer}"
                verified += 1
    assert verified >= 20


def test_a_rung_that_cannot_be_simulated_says_why(simulator):
    assert "shared memory" in simulator.why_not["shared_window"]


@pytest.mark.parametrize("variant", ["ring", "recursive_doubling", "gather_broadcast"])
def test_half_the_bandwidth_doubles_a_long_transfer(simulator, variant):
    one, two = (seconds(simulator, flat(beta=beta), 8, variant, 4_000_000)[0]
                for beta in (1e-9, 2e-9))
    assert two / one == pytest.approx(2, rel=0.05)


def test_the_latency_is_that_of_each_message(simulator):
    simulated, _, messages = seconds(simulator, flat(alpha=1e-3), 16, "ring", 16)
    assert messages == 16 * 2 * 15
    assert simulated == pytest.approx(30e-3, rel=0.01)


@pytest.mark.parametrize("count", [16_000, 1_000_000])
def test_the_ring_takes_the_time_of_its_formula(simulator, count):
    alpha, beta, gamma, p, n = 5e-5, 8e-10, 1e-10, 16, 4 * count
    platform = flat(alpha, beta, {"add": [[0, 0], [1e9, 1e9 * gamma]], "copy": FREE["copy"]})
    simulated, model, _ = seconds(simulator, platform, p, "ring", count)
    formula = 2 * (p - 1) * alpha + 2 * (p - 1) / p * n * beta + (p - 1) / p * n * gamma
    assert simulated == pytest.approx(formula, rel=0.05)
    assert model == pytest.approx(formula, rel=0.01)


def test_additions_take_their_time(simulator):
    slow = {"add": [[0, 0], [1e9, 1.0]], "copy": FREE["copy"]}  # 1 ns for a byte
    with_additions = seconds(simulator, flat(arithmetic=slow), 4, "ring", 1_000_000)[0]
    without = seconds(simulator, flat(), 4, "ring", 1_000_000)[0]
    assert with_additions - without == pytest.approx(3 / 4 * 4e6 * 1e-9, rel=0.01)


def test_a_simulation_repeats_to_the_bit(simulator):
    tree = smpi.PLATFORMS["fattree-100g"]
    tree = replace(tree, arithmetic=FREE)
    answers = {seconds(simulator, tree, 40, "segmented_ring", 300_000, "mean") for _ in range(3)}
    assert len(answers) == 1


def test_a_shared_uplink_is_slower_than_a_flat_network(simulator):
    """Recursive doubling exchanges whole vectors between the leaf switches, over half as many
    links."""
    tree = replace(smpi.PLATFORMS["fattree-100g"], arithmetic=FREE)
    same_links = replace(tree, name="no-tree", leaf=0)
    times = [seconds(simulator, p, 64, "recursive_doubling", 4_000_000)[0]
             for p in (tree, same_links)]
    assert 1.1 < times[0] / times[1] < 2.5


def test_the_ring_agrees_with_that_of_simgrid(simulator):
    ours = seconds(simulator, flat(), 16, "ring", 1_000_000)[0]
    theirs = seconds(simulator, flat(), 16, "mpi_allreduce", 1_000_000,
                     options=("smpi/allreduce:lr",))[0]
    assert theirs == pytest.approx(ours, rel=0.3)


# --- the command ---------------------------------------------------------------------------------


SMALL = {"NODES": "4,8", "NETWORK": "flat-1g", "VARIANT": "ring,mpi_allreduce,shared_window",
         "PROBLEM": "mnist_cnn"}


def test_a_run_has_its_rows_steps_and_a_short_last_screen(command, tmp_path):
    out = tmp_path / "run"
    done = command(out, **SMALL)
    rows = read_csv(out / "simulation.csv")
    assert [(row["nodes"], row["variant"], row["status"]) for row in rows
            if not row["problem"]] == [("", "shared_window", "unavailable")]
    ok = [row for row in rows if row["status"] == "ok"]
    assert sorted((row["nodes"], row["variant"]) for row in ok) == [
        (n, v) for n in "48" for v in ("mpi_allreduce", "ring")]
    assert all(row["verified"] == "yes" and row["direction"] == "mean" for row in ok)
    ring = next(row for row in ok if row["variant"] == "ring" and row["nodes"] == "8")
    assert int(ring["messages"]) == 8 * 14
    assert float(ring["seconds"]) == pytest.approx(float(ring["model_s"]), rel=0.05)
    steps = read_csv(out / "scaling.csv")
    assert len(steps) == 8
    for row in steps:
        compute, step = float(row["compute_s"]), float(row["step_s"])
        assert step == pytest.approx(compute + float(row["all_reduce_s"]), rel=1e-4)
        assert float(row["efficiency"]) == pytest.approx(compute / step, rel=1e-4)
    weak, strong = ([row for row in steps if row["scaling"] == kind] for kind in ("weak", "strong"))
    assert len({row["compute_s"] for row in weak}) == 1
    assert {row["global_batch"] for row in strong} == {str(64 * 64)}
    screen = done.stdout.partition("\nplatform")[2]
    assert screen and len(screen.splitlines()) <= 30
    tables = json.loads((out / "columns.json").read_text())["tables"]
    assert [c["name"] for c in tables["simulation"]] == list(rows[0])
    assert [c["name"] for c in tables["scaling"]] == list(steps[0])

    command.resume_without_a_row(out, "simulation.csv", torn="flat-1g,8,torn", **SMALL)
    assert sorted_rows(read_csv(out / "simulation.csv")) == sorted_rows(rows)


def test_a_measured_run_is_compared_row_by_row(command, tmp_path):
    """A run whose times are those of its links is simulated within a few per cent."""
    run = tmp_path / "measured"
    run.mkdir()
    alpha, beta = 1e-4, 8e-9
    line = [[n, alpha + n * beta] for n in (4, 1e3, 1e5, 1e7)]
    free = [[4, 1e-9], [1e9, 0.1]]
    links = {"ranks": 4, "hosts": 4, "within": {},
             "between": {"send": line, "shift": line, "swap": line},
             "add": free, "copy": free}
    (run / "links.json").write_text(json.dumps({"schema_version": 1, "links": [links]}))
    count = 1_000_000
    ideal = 6 * alpha + 1.5 * 4 * count * beta
    (run / "summary.csv").write_text(
        "primitive,direction,variant,problem,shape,ranks,hosts,status,median_s\n"
        f"all_reduce,sum,ring,count,{count},4,4,ok,{ideal}\n"
        f"all_reduce,sum,ring,other,{count},4,2,ok,1\n")
    done = command(tmp_path / "run", NETWORK=f"measured:{run}")
    match = re.search(r"Median difference: ([\d.]+) % \(1 rows\)", done.stdout)
    assert match and float(match[1]) < 3


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_keeps_whole_rows(command, tmp_path, number):
    out = tmp_path / "run"
    process = command.start(out, NODES="4,5,6,7,8,128", NETWORK="flat-1g",
                            VARIANT="ring,segmented_ring", PROBLEM="alexnet")
    for line in process.stdout:
        if line.startswith("[3/"):
            break
    process.send_signal(number)
    rest, _ = process.communicate(timeout=30)
    assert process.returncode == 130 and "RESUME=1" in rest
    text = (out / "simulation.csv").read_text()
    assert text.endswith("\n") and len(read_csv(out / "simulation.csv")) >= 3


def test_a_simulation_that_takes_too_long_is_skipped_with_the_reason(command, tmp_path):
    out = tmp_path / "run"
    command(out, NODES="256", NETWORK="flat-1g", VARIANT="segmented_ring", PROBLEM="alexnet",
            LIMIT="2")
    row, = read_csv(out / "simulation.csv")
    assert (row["status"], row["seconds"]) == ("skipped", "")
    assert "2 s of CPU time" in row["reason"]


@pytest.mark.parametrize("variables, message", [
    ({"NODES": "many"}, "NODES=many: expected whole numbers"),
    ({"NODES": "0"}, "NODES=0"),
    ({"NETWORK": "token-ring"}, "NETWORK=token-ring: expected flat-1g"),
    ({"NETWORK": "measured:/nowhere"}, "links.json cannot be used"),
    ({"PROBLEM": "lenet"}, "PROBLEM=lenet: no such problem"),
    ({"STEP_RUN": "/nowhere"}, "STEP_RUN=/nowhere"),
    ({"LIMIT": "soon"}, "LIMIT=soon"),
    ({"PATH": "/nowhere"},
     "simulate: unavailable, SimGrid is not on this machine (Debian: libsimgrid-dev)"),
])
def test_a_wrong_argument_is_one_sentence(tmp_path, variables, message):
    COMMAND(tmp_path / "run", **variables, status=2, error=message, lines=1)
    assert not (tmp_path / "run").exists()


def test_an_unknown_rung_is_one_sentence(command, tmp_path):
    command(tmp_path / "run", VARIANT="rings", status=2, error="VARIANT=rings", lines=1)


def test_a_tree_has_room_for_any_number_of_nodes():
    tree = smpi.PLATFORMS["fattree-100g"]
    for nodes, leaves in ((1, 1), (32, 1), (33, 2), (1000, 32)):
        assert f'topo_parameters="2;32,{leaves};1,16;1,1"' in tree.xml(nodes)
        assert f'radical="0-{32 * leaves - 1}"' in tree.xml(nodes)


def test_groups_of_two_level_rungs():
    flat_groups = [flat().node_ranks(n) for n in (1, 4, 7, 16, 64, 1024)]
    assert flat_groups == [0, 2, 3, 4, 8, 32]
    assert smpi.PLATFORMS["fattree-100g"].node_ranks(256) == 32
