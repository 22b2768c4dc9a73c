"""Kills a training at random moments, resumes it each time, and checks that nothing is lost.

    kill_training.py [options] -- mpirun -np 3 build/stepladder train --network mlp --use simd,all_reduce=ring
        --mode synchronous --steps 400 --every 5

The training first runs uninterrupted, twice, in other folders. --checkpoint, --resume and --out are added to the
command. Checked: every start goes on from the newest checkpoint, no checkpoint is torn, and the training ends with the
weights of the uninterrupted one. A training that ends before it is killed starts anew, until the kills are used up.
Rungs that are not named are chosen by timing, and may round differently in the next run.
Exit status: 0, or 1 with the reason, or 2 for wrong arguments.
"""

import argparse
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RANK_VARIABLES = (b"OMPI_COMM_WORLD_RANK=", b"PMI_RANK=", b"PMIX_RANK=")
SECONDS_TO_END = 10  # for the other ranks, after one was killed


class Failure(Exception):
    pass


def processes_of(session):
    """The live processes of a session: mpirun puts its ranks into process groups of their own."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, _, _, of, *_ = (folder / "stat").read_text().rpartition(")")[2].split()
        except (OSError, ValueError):
            continue
        if int(of) == session and state not in "ZX":
            found.append(int(folder.name))
    return found


def is_rank(process):
    try:
        variables = Path(f"/proc/{process}/environ").read_bytes().split(b"\0")
    except OSError:
        return False
    return any(variable.startswith(RANK_VARIABLES) for variable in variables)


def send_kill(process):
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def newest_step(checkpoints):
    """-1 without checkpoints."""
    steps = [re.match(r"step-(\d+)-[0-9a-f]{8}\.checkpoint$", path.name) for path in checkpoints.glob("step-*")]
    return max((int(match[1]) for match in steps if match), default=-1)


class Training:
    """A training in a folder of its own."""

    def __init__(self, command, folder):
        self.command = command
        self.folder = folder
        self.checkpoints = folder / "checkpoints"
        self.process = None

    def clear(self, ceilings):
        shutil.rmtree(self.folder, ignore_errors=True)
        (self.folder / "run").mkdir(parents=True)
        if ceilings and ceilings.exists():  # measuring them takes seconds
            shutil.copy(ceilings, self.folder / "run")

    def start(self, *more):
        arguments = ["--checkpoint", self.checkpoints, "--out", self.folder / "run", *more]
        with open(self.folder / "stdout", "w") as out, open(self.folder / "stderr", "w") as errors:
            self.process = subprocess.Popen([*self.command, *map(str, arguments)], stdin=subprocess.DEVNULL,
                                            stdout=out, stderr=errors, start_new_session=True)

    def errors(self):
        return (self.folder / "stderr").read_text(errors="replace")

    def end_of_errors(self):
        return "\n".join(self.errors().splitlines()[-8:])

    def has_ended(self, seconds):
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def ends_before(self, needs_checkpoint, seconds, before):
        """Whether it ends in so many seconds, from now or from the first checkpoint after the step `before`."""
        while needs_checkpoint and newest_step(self.checkpoints) == before:
            if self.has_ended(0.005):
                return True
        return self.has_ended(seconds)

    def kill(self):
        """All processes, and waits until they are gone."""
        if self.process is None:
            return
        end = time.monotonic() + 30
        while running := processes_of(self.process.pid):
            for process in running:
                send_kill(process)
            if time.monotonic() > end:
                raise Failure(f"Processes {running} are still there 30 s after they were killed.")
            time.sleep(0.005)
        self.process.wait()

    def kill_one_rank(self, draw):
        """Kills a rank; the others must then end by themselves. False if all had ended before."""
        ranks = sorted(filter(is_rank, processes_of(self.process.pid)))
        if not ranks:  # none has started yet
            self.kill()
            return True
        if not send_kill(draw.choice(ranks)):
            return False
        end = time.monotonic() + SECONDS_TO_END
        while running := processes_of(self.process.pid):
            if time.monotonic() > end:
                raise Failure(f"Processes {running} were still there {SECONDS_TO_END} s after a rank was killed; "
                              f"stderr:\n{self.end_of_errors()}")
            self.process.poll()
            time.sleep(0.01)
        if self.process.wait() == 0:
            raise Failure("The exit status was 0 although a rank was killed.")
        if not self.errors().strip():
            raise Failure("A rank was killed, and no message says so.")
        return True

    def check_messages(self):
        for line in self.errors().splitlines():
            if re.search(r"\.checkpoint: (torn|damaged|no checkpoint|cannot)", line):
                raise Failure(f"A checkpoint was lost: {line}")

    def weights(self):
        """The hash of the weights that the training printed at its end."""
        if self.process.returncode != 0:
            raise Failure(f"The training ended with exit status {self.process.returncode}; stderr:\n"
                          f"{self.end_of_errors()}")
        found = re.findall(r"^weights fnv1a ([0-9a-f]{16})$", (self.folder / "stdout").read_text(), re.MULTILINE)
        if len(found) != 1:
            raise Failure(f"Expected one line 'weights fnv1a HASH', found {len(found)}: see {self.folder / 'stdout'}")
        return found[0]


def run_uninterrupted(training, ceilings):
    """Its weights, the seconds to the first checkpoint, and the seconds in all."""
    training.clear(ceilings)
    start = time.monotonic()
    training.start()
    first = None
    while not training.has_ended(0.01):
        if first is None and newest_step(training.checkpoints) >= 0:
            first = time.monotonic() - start
    seconds = time.monotonic() - start
    weights = training.weights()
    if newest_step(training.checkpoints) < 0:
        raise Failure("The uninterrupted training left no checkpoint.")
    return weights, first or seconds, seconds


def run_killed(training, arguments, expected, first, longest, ceilings, patience):
    """The number of starts from a checkpoint, and of trainings that ended."""
    draw = random.Random(arguments.seed)

    def moment():
        """Every fourth kill comes before the steps begin, the others after a new checkpoint."""
        return (False, draw.uniform(0, first)) if draw.random() < 0.25 else (True, draw.uniform(0, longest))

    kills = resumed = ended = 0
    training.clear(ceilings)
    while True:
        before = newest_step(training.checkpoints)
        resumed += before >= 0
        training.start("--resume")
        killed = False
        if kills == arguments.kills:
            if not training.has_ended(patience):
                raise Failure(f"The resumed training did not end in {patience:.0f} s.")
        elif not training.ends_before(*moment(), before):
            if arguments.one_rank:
                killed = training.kill_one_rank(draw)
            else:
                training.kill()
                killed = True
        training.check_messages()
        if killed:
            kills += 1
            if newest_step(training.checkpoints) < before:
                raise Failure(f"The newest checkpoint was of step {before}; after kill {kills} it is of step "
                              f"{newest_step(training.checkpoints)}.")
            if kills % 20 == 0:
                print(f"{kills} kills, step {newest_step(training.checkpoints)}", flush=True)
            continue
        training.process.wait()
        weights = training.weights()
        if not arguments.any_weights and weights != expected:
            raise Failure(f"The weights after {kills} kills are {weights}; of the uninterrupted training, {expected}.")
        ended += 1
        left = [path.name for path in training.checkpoints.iterdir() if ".tmp-" in path.name]
        if left:
            raise Failure(f"Temporary files are left: {', '.join(left)}")
        if kills == arguments.kills:
            return resumed, ended
        training.clear(ceilings)


def parse(arguments):
    parser = argparse.ArgumentParser(usage="kill_training.py [options] -- COMMAND", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200, help="by default 200")
    parser.add_argument("--seed", type=int, default=1, help="of the moments of the kills")
    parser.add_argument("--one-rank", action="store_true",
                        help=f"kill one rank; the others must end by themselves within {SECONDS_TO_END} s")
    parser.add_argument("--any-weights", action="store_true",
                        help="do not compare the weights: asynchronous modes are not reproducible")
    parser.add_argument("--longest", type=float, metavar="SECONDS",
                        help="longest time from a checkpoint to a kill; by default that of a quarter of the steps")
    parser.add_argument("--folder", type=Path, help="of the checkpoints and outputs; by default a temporary one")
    parser.add_argument("command", nargs="+", metavar="COMMAND", help="a training with --every")
    parsed = parser.parse_args(arguments)
    added = {"--checkpoint", "--resume", "--out"} & {word.partition("=")[0] for word in parsed.command}
    if added:
        parser.error(f"{', '.join(sorted(added))}: added to the command by this program")
    if parsed.kills < 1:
        parser.error("--kills: expected 1 or more")
    if parsed.one_rank and not any("mpi" in Path(word).name for word in parsed.command):
        parser.error("--one-rank: the command starts no ranks with mpirun or mpiexec")
    return parsed


def main():
    arguments = parse(sys.argv[1:])
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="kill_training."))
    trainings = [Training(arguments.command, folder / name) for name in ("first", "second", "killed")]
    ceilings = folder / "first/run/ceilings.json"
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the training must end, too
    try:
        expected = run_uninterrupted(trainings[0], None)[0]
        again, first, seconds = run_uninterrupted(trainings[1], ceilings)
        if again != expected and not arguments.any_weights:
            raise Failure(f"Without a kill, the weights are {expected}, and another time {again}: "
                          "name all rungs in --use, or do not compare (--any-weights).")
        longest = arguments.longest or (seconds - first) / 4
        print(f"Uninterrupted: {seconds:.1f} s, weights {expected}. Kills come up to {longest:.2f} s after a save.",
              flush=True)
        resumed, ended = run_killed(trainings[2], arguments, expected, first, longest, ceilings, 60 + 10 * seconds)
        if resumed == 0:
            raise Failure("No start found a checkpoint: use more kills or a smaller --every.")
    except (Failure, OSError) as failure:
        print(f"{failure}\nThe files are in {folder}.", file=sys.stderr)
        return 1
    finally:
        for training in trainings:
            training.kill()
    same = "not compared" if arguments.any_weights else f"{expected}, as of the uninterrupted one"
    print(f"{arguments.kills} kills; {resumed} starts from a checkpoint; {ended} trainings ended; weights: {same}.")
    if arguments.folder is None:
        shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
