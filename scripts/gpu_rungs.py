"""Verifies the project's own CUDA rungs, each in a process of its own, several at once.

    gpu_rungs.py PROGRAM --logs FOLDER [--record FILE] [--tool 'compute-sanitizer …'] …

A rung that breaks the device or does not terminate costs its own result only. Rungs of NVIDIA's
libraries are left out: `bench` verifies what it times. Those with wgmma come last. Prints a line
for each rung as it ends, and writes the lines to FOLDER.txt:

    ok      PRIMITIVE RUNG     every problem passed
    FAILED  PRIMITIVE RUNG …   a wrong result, or an error of the tool
    BROKEN  PRIMITIVE RUNG …   it left the device unusable
    CUT     PRIMITIVE RUNG …   not finished after EACH seconds
    NONE    PRIMITIVE RUNG …   no problem that it can run here

Exit status 1 when a rung did not pass that can run here.
"""

import argparse
import os
import queue
import re
import shlex
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path

LOST_DEVICE, NOTHING_VERIFIED = 3, 4  # exit statuses of the program
running = set()  # processes of rungs, each the leader of its group
TELLING = re.compile(r"^(FAILED|stepladder: |========= (?!COMPUTE-SANITIZER|ERROR SUMMARY))")


def own_rungs(program):
    """(primitive, rung, whether this source has passed on a device), as `list --full` prints
    them."""
    shown = subprocess.run([program, "list", "--place", "cuda", "--full"], capture_output=True,
                           text=True, check=True).stdout
    found, primitive = [], None
    for line in shown.splitlines():
        if not line.startswith(" "):
            primitive = line.strip()
        elif line[2] != " ":
            rung, technique = line.split()[:2]
            if technique == "cuda":
                found.append([primitive, rung, False])
            own = technique == "cuda"
        elif own and line.strip().startswith("verified on"):
            found[-1][2] = True
    return found


def verify(options, primitive, rung, cores):
    log = options.logs / f"{primitive}-{rung}.log"
    suite = ["--suite", options.suite] if (
        options.suite and Path(f"bench/suites/{primitive}.csv").exists()) else []
    record = ["--record", options.record] if options.record else []
    command = [*shlex.split(options.tool), options.program, "verify", primitive, "--variant", rung,
               "--place", "cuda", *suite, "--random", str(options.random), *record]
    with log.open("w") as output:
        print("+", *command, file=output, flush=True)
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            start_new_session=True, preexec_fn=lambda: os.sched_setaffinity(0, cores))
        running.add(process)
        try:
            status = process.wait(options.each)
        except subprocess.TimeoutExpired:
            status = None
            for number, seconds in ((signal.SIGINT, 2), (signal.SIGKILL, None)):
                os.killpg(process.pid, number)
                try:
                    process.wait(seconds)
                    break
                except subprocess.TimeoutExpired:
                    pass
        running.discard(process)
    outcome = ("CUT" if status is None else "ok" if status == 0 else "NONE" if status ==
               NOTHING_VERIFIED else "BROKEN" if status == LOST_DEVICE or status < 0 else "FAILED")
    telling = [line for line in log.read_text(errors="replace").splitlines()
               if TELLING.match(line)]
    if outcome != "ok" and not telling:
        telling = [f"exit status {status}" if status is not None else f"after {options.each} s"]
    reason = " ".join(telling[:2])[:240] if outcome != "ok" else ""
    return f"{outcome:7} {primitive} {rung} {reason}"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--logs", type=Path, required=True, help="a folder for the output")
    parser.add_argument("--each", type=float, default=10, help="seconds for a rung")
    parser.add_argument("--random", type=int, default=40, help="random problems of a rung")
    parser.add_argument("--suite", default="", help="and the problems of this suite")
    parser.add_argument("--record", help="verified.json")
    parser.add_argument("--tool", default="", help="a command that runs the program")
    parser.add_argument("--primitive", default="", help="only these, separated by commas")
    parser.add_argument("--variant", default="", help="only these globs, separated by commas")
    parser.add_argument("--new", action="store_true", help="only rungs that have not passed yet")
    options = parser.parse_args()
    options.logs.mkdir(parents=True, exist_ok=True)

    rungs = own_rungs(options.program)
    primitives = re.findall(r"[^, ]+", options.primitive)
    if unknown := set(primitives) - {primitive for primitive, _, _ in rungs}:
        print(f"no CUDA rungs of {', '.join(sorted(unknown))}")
        return 1
    chosen = [(primitive, rung) for primitive, rung, passed in rungs
              if not (options.new and passed)
              and primitive != "all_reduce"  # needs several GPUs
              and (not primitives or primitive in primitives)
              and (not options.variant
                   or any(fnmatch(rung, glob) for glob in options.variant.split(",")))]
    chosen.sort(key=lambda names: "wgmma" in names[1])

    # Each process has two cores: it computes the expected results on them.
    cores = sorted(os.sched_getaffinity(0))
    slots = queue.SimpleQueue()
    for start in range(0, max(len(cores) - 1, 1), 2):
        slots.put(set(cores[start:start + 2]))

    def one(names):
        slot = slots.get()
        try:
            return verify(options, *names, slot)
        finally:
            slots.put(slot)

    passed = none = 0
    with (Path(f"{options.logs}.txt").open("w") as lines,
          ThreadPoolExecutor(slots.qsize()) as pool):
        for ended in as_completed([pool.submit(one, names) for names in chosen]):
            line = ended.result().rstrip()
            passed += line.startswith("ok ")
            none += line.startswith("NONE ")
            print(line, flush=True)
            print(line, file=lines, flush=True)
    print(f"{passed} of {len(chosen)} rungs passed", flush=True)
    return 0 if passed + none == len(chosen) else 1


def end(*_):
    """Ends the processes of rungs too: one that does not terminate would keep the GPU busy."""
    for process in list(running):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    os._exit(130)


if __name__ == "__main__":
    for signal_to_end in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signal_to_end, end)
    sys.exit(main())
