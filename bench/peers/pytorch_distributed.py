"""Times synchronous data-parallel training steps of one network in PyTorch, in the same way as
`mpirun -np RANKS stepladder step`: DistributedDataParallel over gloo, one process per rank.

Every rank has one thread, a core of its own while there are enough, and its own random images. A
series of steps starts at a barrier and takes the maximum over the ranks. In turns with it, every
rank makes the same steps without DistributedDataParallel: the difference is the communication that
computing waits for.

Prints one line of JSON: the version of PyTorch, the seconds of a step in every series, and those of
the phases; all_reduce is the difference. It fails if the gradients are not the mean over the ranks.
"""

import argparse
import json
import os
import statistics
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing
from torch.nn.parallel import DistributedDataParallel

from pytorch_step import Training

LARGEST_ERROR = 1e-4  # of the gradients of a tensor, relative to their norm


def training_of(description, mode):
    """In mode compile DistributedDataParallel holds the compiled network: the other way round the
    step was slower, whether or not it was cut at the buckets (optimize_ddp)."""
    training = Training(description, "eager" if mode == "compile" else mode, torch.device("cpu"))
    if mode == "compile":
        training.model = torch.compile(training.model)
    return training


def trainings_of(description, mode, rank):
    """One training with DistributedDataParallel and one without, with the same weights on all ranks
    and the same images and labels on one rank."""
    pair = []
    for _ in range(2):
        torch.manual_seed(1)
        pair.append(training_of(description, mode))
    together, alone = pair
    torch.manual_seed(2 + rank)
    alone.images.uniform_()
    alone.labels.random_(description["classes"])
    together.images, together.labels = alone.images, alone.labels
    together.model = DistributedDataParallel(together.model, gradient_as_bucket_view=True,
                                             static_graph=True)
    return together, alone


def largest_error(together, alone):
    """Of the gradients, relative to the means over the ranks of those of `alone`."""
    for training in (together, alone):
        torch.manual_seed(1)  # the same dropout
        training.forward().backward()
    errors = []
    for found, own in zip(together.model.parameters(), alone.model.parameters(), strict=True):
        mean = own.grad.clone()
        dist.all_reduce(mean)
        mean /= dist.get_world_size()
        error = torch.linalg.vector_norm(found.grad - mean) / torch.linalg.vector_norm(mean)
        errors.append(error.item())
    for training in (together, alone):
        training.optimizer.zero_grad()
    return over_ranks(max(errors, key=lambda e: (e != e, e)))  # NaN is the largest


def over_ranks(value):
    """The maximum."""
    box = torch.tensor([value], dtype=torch.float64)
    dist.all_reduce(box, op=dist.ReduceOp.MAX)
    return box.item()


def series(step, steps):
    """Seconds of a step."""
    dist.barrier()
    start = time.perf_counter()
    for _ in range(steps):
        step()
    return over_ranks(time.perf_counter() - start) / steps


def measure(together, alone, seconds):
    """Seconds of a step in every series, with all ranks together and alone, in turns: at least ten
    series of steps of `seconds` / 20 each."""
    for training in (together, alone):
        series(training.step, 5)
    estimate = series(together.step, 2)
    steps = max(1, round(seconds / 20 / estimate))
    found = [(series(together.step, steps), series(alone.step, steps)) for _ in range(10)]
    return tuple(zip(*found))


def spawn(run_rank, ranks, *arguments):
    """Calls run_rank(rank, *arguments) in a process of one thread for each rank, on a core of its
    own while there are enough. One that fails ends all."""
    # Bound by OpenMP, the first threads of all ranks would share one core.
    os.environ |= {"OMP_NUM_THREADS": "1", "OMP_PROC_BIND": "false",
                   "GLOO_SOCKET_IFNAME": os.environ.get("GLOO_SOCKET_IFNAME", "lo")}
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(run_in_group, (f"{folder}/store", run_rank, ranks, arguments),
                                    nprocs=ranks)


def run_in_group(rank, store, run_rank, ranks, arguments):
    """Joins the group of all ranks, calls run_rank and leaves the group."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[rank % len(cores)]})
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=ranks)
    run_rank(rank, *arguments)
    dist.barrier()
    dist.destroy_process_group()


def run_rank(rank, options, description):
    together, alone = trainings_of(description, options.mode, rank)
    error = largest_error(together, alone)
    if not error <= LARGEST_ERROR:
        raise ValueError(f"pytorch_distributed: the gradients differ by {error:.2g} from the mean "
                         f"over the ranks, expected at most {LARGEST_ERROR:g}")
    total, without = measure(together, alone, options.seconds)
    phases = [alone.phases() for _ in range(10)]
    if rank == 0:
        exposed = statistics.median(t - w for t, w in zip(total, without))
        print(json.dumps({
            "torch": torch.__version__, "device": "cpu", "total": total,
            "phases": {"all_reduce": max(exposed, 0.0)}
                      | {name: statistics.median(times) for name, times in
                         zip(("forward", "backward", "update"), zip(*phases))}}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("network", help="a network in the file")
    parser.add_argument("--file", required=True, help="networks.json")
    parser.add_argument("--ranks", type=int, required=True)
    parser.add_argument("--mode", required=True, choices=["eager", "channels_last", "compile"])
    parser.add_argument("--seconds", type=float, default=3.0, help="measuring time, about")
    options = parser.parse_args()
    with open(options.file, encoding="utf-8") as file:
        description = json.load(file)[options.network]
    spawn(run_rank, options.ranks, options, description)


if __name__ == "__main__":
    main()
