"""make bench-network: measures all_reduce between hosts over TCP, and ends with a table of rungs.

The hosts are network namespaces of this machine, or the machines of HOSTFILE (scripts/hosts.py).
Variables: HOSTS RATE LATENCY RANKS_PER_HOST HOSTFILE SUITE VARIANT BUDGET OUT RESUME BUILD
(see make help and docs/cluster.md).
"""

import sys

import runner
from hosts import Hosts, need_mpirun
from runner import given, variable


def main():
    runner.allow_mpi_as_root()
    hosts = Hosts()
    counts = runner.whole_numbers("RANKS_PER_HOST", variable("RANKS_PER_HOST", "1"),
                                  "1,2", "[1-9][0-9]{0,2}")
    need_mpirun()
    program = runner.built_program()
    rows = ["--suite", variable("SUITE", "network"),
            "--direction", "sum",  # the mean sends the same messages
            *given(("VARIANT", "--variant"), ("BUDGET", "--budget"))]
    hosts.choose()
    run = runner.Run("bench-network", runner.new_folder("network-"),
                     ["HOSTS", "RATE", "LATENCY", "RANKS_PER_HOST", "HOSTFILE", "SUITE", "VARIANT",
                      "BUDGET"])
    try:
        hosts.make()
        print(f"Network: {hosts.network}\nRun folder: {run.folder}")
        for part, count in enumerate(counts, 1):
            run.announce(part, len(counts), f"all_reduce, ranks per host: {count}")
            status = run.to_end([*hosts.start(count, program), "bench", "all_reduce", *rows,
                                 "--out", run.folder, *run.resume])
            if status:
                end_if_stopped(run, status)
                run.fail(f"ranks per host: {count}", status)
            run.resume = ["--resume"]
    finally:
        hosts.remove()
    return run.finish("network")


def end_if_stopped(run, status):
    if not (run.path / "summary.csv").exists() or (run.held_a_run and not run.resume):
        run.nothing_measured(status)
    if status != 1:  # a rank or mpirun was killed
        run.show_end_of_log()
        run.stopped(f"mpirun ended with status {status}.", 1, sys.stderr)


if __name__ == "__main__":
    runner.main("bench-network", main)
