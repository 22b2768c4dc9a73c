"""make compare-modes: trains a network in several modes, once per seed, and compares them.

Time to a held-out accuracy, samples/s, shares of computing, communication and waiting. All modes
train with one seed before the next seed begins, so that a drift of the machine affects all of them.
`single`, one process, is always among them. With HOSTS or HOSTFILE the ranks are on several hosts
(scripts/hosts.py). finished.txt in the run folder lists the trainings that RESUME=1 leaves out.
Variables: NETWORK RANKS MODES SEEDS EPOCHS TARGET BATCH BATCH_PER_RANK OPTIMIZER LEARNING_RATE
EVALUATE_EVERY THREADS USE DATA HOSTS RATE LATENCY HOSTFILE OUT RESUME BUILD (see make help).
"""

import json
import re
import subprocess
from typing import NamedTuple

import runner
from hosts import Hosts, need_mpirun
from runner import Refused, given, variable

DEFAULT_MODES = """
synchronous; synchronous,overlap=yes; synchronous,compressed=one_bit; synchronous,compressed=top_k
sharded; parameter_server; token_ring; downpour; ssp,bound=2; local_sgd,every=8; hogwild
threads_over_samples; actors_learner; model_parallel; pipeline; token_ring/parameter_server"""
known = {}  # of the program: what `stepladder modes --json` says of each mode, by name


def learn_modes(program):
    done = subprocess.run([program, "modes", "--json"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Refused(f"{program} modes --json ended with status {done.returncode}; make build")
    known.update((mode["name"], mode) for mode in json.loads(done.stdout))


def is_of_one_process(mode):
    """True if its replicas are threads. An unknown mode is the program's to refuse."""
    return known.get(name_of(mode), {}).get("replicas") == "threads"


class Training(NamedTuple):
    mode: str
    ranks: int  # one rank is `single`
    seed: int

    @property
    def title(self):
        return f"seed {self.seed}: {self.mode}" + (
            "" if self.mode == "single" else f", {self.ranks} ranks")


def name_of(mode):
    return mode.split(",")[0]


def modes_wanted():
    """Each once, and `single` first."""
    text = variable("MODES", DEFAULT_MODES).replace(" ", "")
    return list(dict.fromkeys(["single", *filter(None, re.split(r"[;\n]", text))]))


def trainings(modes, rank_counts, seeds):
    found = []
    for seed in seeds:
        for mode in modes:
            counts = [1] if mode == "single" else [count for count in rank_counts if count > 1]
            found += [Training(mode, count, seed) for count in counts]
    return found


def start(training, program, hosts, threads):
    """The command that starts the program on the ranks of the training."""
    ranks = 1 if is_of_one_process(training.mode) else training.ranks
    if hosts:
        return (hosts.start_one(program) if ranks == 1
                else hosts.start(ranks // hosts.count, program))
    if ranks == 1:
        return [program]
    # Ranks that share a core must not wait busily for each other.
    yields = ["--mca", "mpi_yield_when_idle", "1"] if ranks * threads > runner.core_count() else []
    return ["mpirun", "-np", str(ranks), "--bind-to", "none", "--oversubscribe", *yields, program]


def arguments(training, options):
    found = ["train", "--mode", training.mode, "--seed", str(training.seed), *options]
    if is_of_one_process(training.mode):
        found += ["--replicas", str(training.ranks)]
    if variable("BATCH_PER_RANK") and known.get(name_of(training.mode), {}).get("divides_batches"):
        found.append("--batch-per-rank")
    return found


def ranks_wanted(hosts):
    text = variable("RANKS", str(hosts.count) if hosts else "4")
    counts = runner.whole_numbers("RANKS", text, "4 or 2,4", "[1-9][0-9]{0,3}")
    if hosts and any(count != 1 and count % hosts.count for count in counts):
        raise Refused(f"RANKS={text}: expected multiples of the {hosts.count} hosts")
    return counts


def main():
    runner.allow_mpi_as_root()
    epochs = variable("EPOCHS", "10")
    evaluate_every = variable("EVALUATE_EVERY", "1000")
    runner.whole_number("EPOCHS", epochs)
    runner.whole_number("EVALUATE_EVERY", evaluate_every)
    threads = runner.whole_number("THREADS", variable("THREADS", "1"))
    if variable("BATCH"):
        runner.whole_number("BATCH", variable("BATCH"))
    target = variable("TARGET", "0.97")
    if not re.fullmatch(r"0?\.[0-9]*[1-9][0-9]*", target):
        raise Refused(f"TARGET={target}: expected an accuracy between 0 and 1, such as 0.97")
    seeds = runner.whole_numbers("SEEDS", variable("SEEDS", "1,2,3,4,5"), "1,2,3", "[0-9]{1,18}")
    program = runner.built_program()
    learn_modes(program)

    modes, left_out = modes_wanted(), []
    hosts = None
    if variable("HOSTS") or variable("HOSTFILE"):
        left_out = [mode for mode in modes if is_of_one_process(mode)]
        modes = [mode for mode in modes if mode not in left_out]
        hosts = Hosts()
        need_mpirun()
        hosts.choose()
    elif any(mode != "single" and not is_of_one_process(mode) for mode in modes):
        need_mpirun()
    rank_counts = ranks_wanted(hosts)
    options = ["--network", variable("NETWORK", "mnist_cnn"), "--epochs", epochs,
               "--evaluate-every", evaluate_every, "--threads", str(threads),
               *given(("BATCH", "--batch"), ("OPTIMIZER", "--optimizer"),
                      ("LEARNING_RATE", "--learning-rate"), ("USE", "--use"), ("DATA", "--data"))]
    run = runner.Run(
        "compare-modes", runner.new_folder("modes-"),
        ["NETWORK", "RANKS", "MODES", "SEEDS", "EPOCHS", "TARGET", "BATCH", "BATCH_PER_RANK",
         "OPTIMIZER", "LEARNING_RATE", "EVALUATE_EVERY", "THREADS", "USE", "DATA", "HOSTS", "RATE",
         "LATENCY", "HOSTFILE"])
    try:
        if hosts:
            hosts.make()
            print(f"Network: {hosts.network}")
        if left_out:
            print("Left out, modes of one process:", *left_out)
        if max(rank_counts) * threads > runner.core_count() and not variable("HOSTFILE"):
            print(f"{max(rank_counts)} ranks of {threads} thread(s) share {runner.core_count()} "
                  "cores: mpirun --oversubscribe")
        print(f"Run folder: {run.folder}")
        train_all(run, trainings(modes, rank_counts, seeds), program, hosts, options, threads)
    finally:
        if hosts:
            hosts.remove()
    return run.finish("modes", "--target", target)


def train_all(run, todo, program, hosts, options, threads):
    record = run.path / "finished.txt"
    before = record.read_text().splitlines() if run.resume and record.exists() else []
    finished, refused = 0, set()  # modes that the program does not take on that many ranks
    for part, training in enumerate(todo, 1):
        words = arguments(training, options)
        line = f"{training.ranks} ranks on {hosts.count if hosts else 1} hosts: {' '.join(words)}"
        if line in before:
            finished += 1
            continue
        if training[:2] in refused:
            continue
        run.announce(part, len(todo), training.title)
        status = run.to_end([*start(training, program, hosts, threads), *words,
                             "--out", run.folder, *run.resume])
        if status == 0:
            with record.open("a") as file:
                print(line, file=file)
        else:
            run.end_if_refused(status)
            if status == 2:
                refused.add(training[:2])
            run.fail(training.title, status)
        run.resume = ["--resume"]
    if finished:
        print(f"{finished} of {len(todo)} trainings were finished before.")


if __name__ == "__main__":
    runner.main("compare-modes", main)
