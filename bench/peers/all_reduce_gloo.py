"""Measures the all-reduce of gloo through torch.distributed: the counterpart of all_reduce_mpi.c,
with the same arguments, buffers and output.

    all_reduce_gloo.py RANKS CACHE_BYTES REPETITIONS BUDGET_SECONDS COUNT...

gloo reduces in place; out of place is a copy of the input and then the sum, both timed.
"""

import sys
import time

import torch
import torch.distributed as dist

from pytorch_distributed import over_ranks, spawn


def measure(rank, ranks, count, cache, repetitions, budget):
    pairs = int(min(max(2 * cache / (8 * max(count, 1)), 2), 4096))
    index = torch.arange(count, dtype=torch.int64)

    def values(of_rank):
        return ((index * 7 + of_rank * 13) % 33 - 16).float()

    own = values(rank)
    wanted = sum(values(r) for r in range(ranks))
    inputs = [own.clone() for _ in range(pairs)]
    outputs = [torch.full_like(own, float("nan")) for _ in range(pairs)]

    def all_reduce(pair):
        outputs[pair].copy_(inputs[pair])
        dist.all_reduce(outputs[pair])

    all_reduce(0)
    verified = torch.equal(outputs[0], wanted)
    estimates = []
    for _ in range(3):
        dist.barrier()
        start = time.perf_counter()
        all_reduce(0)
        estimates.append(over_ranks(time.perf_counter() - start))
    estimate = min(estimates)
    iterations = int(min(max(budget / repetitions / estimate, 1), 1000000))
    planned = int(min(max(budget / (iterations * estimate) + 0.5, 2), repetitions))
    seconds, at = [], 0
    for _ in range(planned):
        dist.barrier()
        start = time.perf_counter()
        for _ in range(iterations):
            all_reduce(at % pairs)
            at += 1
        seconds.append(over_ranks(time.perf_counter() - start) / iterations)
    verified = verified and torch.equal(outputs[(at - 1) % pairs], wanted)
    verified = over_ranks(0.0 if verified else 1.0) == 0
    if rank == 0:
        print(f"{count},{'yes' if verified else 'no'},{iterations},"
              + ";".join(f"{s:.9g}" for s in seconds), flush=True)


def run_rank(rank, cache, repetitions, budget, counts):
    ranks = dist.get_world_size()
    if rank == 0:
        print(f"version,{ranks},gloo in torch {torch.__version__}", flush=True)
    for count in counts:
        measure(rank, ranks, count, cache, repetitions, budget)


def main():
    ranks, cache, repetitions, budget = (int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]),
                                         float(sys.argv[4]))
    spawn(run_rank, ranks, cache, repetitions, budget, [*map(int, sys.argv[5:])])


if __name__ == "__main__":
    main()
