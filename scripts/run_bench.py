"""make bench: measures everything into one run folder, draws the charts and prints the results.

Each part is one line on the screen; its output goes to bench.log in the run folder. Variables:
PRIMITIVE VARIANT SUITE THREADS RANKS BUDGET OUT RESUME OVERSUBSCRIBE BUILD (see make help).
SUITE=quick leaves out the steps of the large networks and most trainings.
"""

import shutil
from pathlib import Path

import runner
from runner import Refused, given, variable, words

PRIMITIVES = ("matmul convolution max_pool average_pool sgd_update all_reduce reorder "
              "low_precision layers")
OVER_RANKS = {"matmul": "mpi_rows,summa,summa_overlap",
              "sgd_update": "all_reduce_update*,sharded_update*,mpi_reduce_scatter*"}
RUNGS = ["serial", "compiler", "simd", "openmp", "best", "vendor"]
ATTRIBUTED = ("matmul", "convolution")  # of those that have a lattice


def has_suite(primitive, suites):
    path = Path(f"bench/suites/{primitive}.csv")
    return path.exists() and any(line.split(",")[0] in suites
                                 for line in path.read_text().splitlines())


def primitives(suite):
    """Those that are wanted, or that have one of the suites, if any has."""
    if variable("PRIMITIVE"):
        return words(variable("PRIMITIVE"))
    every = PRIMITIVES.split()
    return [name for name in every if has_suite(name, words(suite))] or every


def rank_counts(cores):
    text = variable("RANKS", f"2,{cores}" if cores > 2 else str(cores))
    counts = runner.whole_numbers("RANKS", text, "2 or 2,4")
    if max(counts) > cores and not variable("OVERSUBSCRIBE"):
        raise Refused(f"RANKS={text}: this machine has {cores} cores. Ranks that share a core wait "
                      "for each other most of the time; OVERSUBSCRIBE=1 allows it.")
    return counts


def parts():
    """[(title, command)], the most general first."""
    cores, program = runner.core_count(), runner.program_path()
    suite = variable("SUITE", "layers")
    counts = rank_counts(cores)
    threads = variable("THREADS", f"1,{cores}" if cores > 1 else "1")
    has_mpirun = shutil.which("mpirun") is not None
    several = [count for count in counts if count > 1 and has_mpirun]
    rows = ["--quiet", "--suite", suite, *given(("VARIANT", "--variant"), ("BUDGET", "--budget"))]
    wanted = primitives(suite)
    single = [name for name in wanted if name != "all_reduce"]
    found = []
    if single:
        found.append((" ".join(single),
                      [program, "bench", *single, *rows, "--threads", threads]))
    if not variable("VARIANT"):
        budget = given(("BUDGET", "--budget")) or ["--budget", "0.1"]
        found += [(f"what each technique buys in {name}, whatever the order",
                   [program, "attribute", name, *budget]) for name in ATTRIBUTED if name in single]
        if "matmul" in single and suite == "layers":
            found.append(("matmul on OpenCL, forward",
                          [program, "bench", "matmul", *rows, "--direction", "forward", "--place",
                           "opencl", "--threads", threads]))
    for primitive, variants in OVER_RANKS.items():
        if primitive in single and not variable("VARIANT"):
            found += [(f"{primitive}, {count} ranks",
                       [*runner.mpirun(count), program, "bench", primitive, *rows,
                        "--variant", variants]) for count in several]
    if "all_reduce" in wanted and not has_mpirun:
        print("all_reduce: SKIPPED, mpirun is not on this machine (Open MPI)")
    elif "all_reduce" in wanted:
        found += [(f"all_reduce, {count} ranks",
                   [*runner.mpirun(count), program, "bench", "all_reduce", *rows])
                  for count in counts]
    if not variable("PRIMITIVE"):
        found += steps(program, cores, threads, several, quick=suite == "quick")
        found += trainings(program, cores, several, quick=suite == "quick")
    return found


def uses(*values):
    return [word for value in values for word in ("--use", value)]


def steps(program, cores, threads, rank_counts_of_steps, quick):
    step = [program, "step", "--network"]
    networks = ["mlp"] if quick else ["mlp", "mnist_cnn", "cifar_cnn"]
    found = [(f"training steps of {network}: {' '.join(RUNGS)}",
              [*step, network, *uses(*RUNGS), "--threads", threads]) for network in networks]
    if quick:
        return found
    if cores > 1:
        sweep = ",".join(str(1 << i) for i in range(cores.bit_length()))
        found.append((f"thread sweep of mnist_cnn: {sweep} threads per operation, "
                      "1 and 2 operations at once",
                      [*step, "mnist_cnn", *uses("openmp"), "--threads", sweep, "--inter", "1,2"]))
    # Data parallel: every rank takes its own samples, and the gradients are averaged.
    averages = uses("best", "best,all_reduce=mpi_allreduce", "best,all_reduce=gather_broadcast")
    return found + [
        (f"training steps of mnist_cnn, {count} ranks: three ways to average the gradients",
         [*runner.mpirun(count), *step, "mnist_cnn", "--threads", "1", *averages])
        for count in rank_counts_of_steps]


def trainings(program, cores, rank_counts_of_steps, quick):
    """`make compare-modes` in short: one process, threads, and ranks with and without waiting."""
    title = "training of mlp, 2 epochs"
    train = [program, "train", "--network", "mlp", "--epochs", "2"]
    found = [(title, train)]
    if not quick and cores > 1:
        found.append((f"{title}: hogwild, {cores} threads",
                      [*train, "--mode", "hogwild", "--replicas", str(cores), "--threads", "1"]))
    modes = ["synchronous"] if quick else ["synchronous", "local_sgd", "token_ring"]
    return found + [(f"{title}: {mode}, {count} ranks",
                     [*runner.mpirun(count), *train, "--mode", mode, "--threads", "1"])
                    for count in rank_counts_of_steps for mode in modes]


def main():
    runner.allow_mpi_as_root()
    todo = parts()
    if not todo:
        raise Refused("Nothing to measure.")
    run = runner.Run("bench", runner.new_folder(),
                     ["PRIMITIVE", "VARIANT", "SUITE", "THREADS", "RANKS", "BUDGET",
                      "OVERSUBSCRIBE"])
    print(f"Run folder: {run.folder}")
    for part, (title, command) in enumerate(todo, 1):
        run.announce(part, len(todo), title)
        status = run.measure(command)
        if status:
            run.end_if_refused(status)
            if (status == 2 and title.startswith("all_reduce") and variable("VARIANT")
                    and not variable("PRIMITIVE")):
                print(f"all_reduce: SKIPPED, it has no variant {variable('VARIANT')}")
            else:
                run.fail(title, status)
        run.resume = ["--resume"]
    return run.finish("table")


if __name__ == "__main__":
    runner.main("bench", main, status=1)
