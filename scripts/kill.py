"""Kills a measurement or a training at random moments, resumes it each time, and checks that
nothing is lost.

    kill.py bench [options] -- build/stepladder bench sgd_update --suite layers --budget 0.02
    kill.py train [options] -- mpirun -np 3 build/stepladder train --network mlp --mode synchronous
        --use simd,all_reduce=ring --steps 400 --every 5

The command runs uninterrupted, a training twice. Then it is killed with SIGKILL, all its processes
together, after a random time, and resumed until the kills are used up; one that ends before starts
anew. --out, --resume and --checkpoint are added to the command.

bench: after every kill, no row that was finished is lost or torn; at the end, the rows are those of
the uninterrupted run, each once, with its samples.
train: every start goes on from the newest checkpoint, no checkpoint is torn, and the training ends
with the weights of the uninterrupted one. Rungs that are not named are chosen by timing, and may
round differently in the next run.

Exit status: 0, or 1 with the reason, or 2 for wrong arguments.
"""

import argparse
import csv
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
TABLES = {
    "summary": ("primitive", "direction", "suite", "problem", "variant", "threads", "ranks",
                "cache"),
    "step": ("network", "use", "mode", "threads", "ranks", "layer", "phase")}


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


def send_kill(send, process):
    """False if it has ended before."""
    try:
        send(process, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


class Subject:
    """A command in a folder of its own, where it leaves the folder `run`."""

    def __init__(self, command, folder):
        self.command, self.folder, self.run = command, folder, folder / "run"
        self.process = None

    def clear(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)

    def start(self, *more):
        with open(self.folder / "stdout", "w") as out, open(self.folder / "stderr", "w") as errors:
            self.process = subprocess.Popen(
                [*self.command, "--out", str(self.run), *map(str, more)], stdout=out, stderr=errors,
                stdin=subprocess.DEVNULL, start_new_session=True)

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

    def check_status(self):
        if self.process.wait() != 0:
            raise Failure(f"It ended with exit status {self.process.returncode}; stderr:\n"
                          f"{self.end_of_errors()}")

    def kill(self):
        """All processes, and waits until they are gone."""
        if self.process is None:
            return
        if self.process.poll() is None:
            send_kill(os.killpg, self.process.pid)
        end = time.monotonic() + 30
        while running := processes_of(self.process.pid):
            for process in running:
                send_kill(os.kill, process)
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
        if not send_kill(os.kill, draw.choice(ranks)):
            return False
        end = time.monotonic() + SECONDS_TO_END
        while running := processes_of(self.process.pid):
            if time.monotonic() > end:
                raise Failure(f"Processes {running} were still there {SECONDS_TO_END} s after a "
                              f"rank was killed; stderr:\n{self.end_of_errors()}")
            self.process.poll()
            time.sleep(0.01)
        if self.process.wait() == 0:
            raise Failure("The exit status was 0 although a rank was killed.")
        if not self.errors().strip():
            raise Failure("A rank was killed, and no message says so.")
        return True


# --- a measurement -------------------------------------------------------------------------------


def read_rows(path):
    """The whole rows of a table; a last line without its newline was being written."""
    text = path.read_text() if path.exists() else ""
    rows = list(csv.DictReader(text[:text.rfind("\n") + 1].splitlines()))
    for row in rows:
        if None in row or None in row.values():
            raise Failure(f"{path}: a row is torn: {list(row.values())[:5]}")
    return rows


class Bench(Subject):
    def start(self, *more):
        super().start(*more, *(["--resume"] if (self.run / "environment.json").exists() else []))

    def progress(self):
        """Key and status of every finished row."""
        found = {}
        for table, key in TABLES.items():
            for row in read_rows(self.run / f"{table}.csv"):
                name = (table, *(row.get(column, "") for column in key))
                if name in found:
                    raise Failure(f"{self.run}: {name} is there twice")
                found[name] = row.get("status", "ok")
        return found

    def uninterrupted(self):
        """Its rows, and the seconds that it takes."""
        self.clear()
        begin = time.monotonic()
        self.start()
        self.check_status()
        return self.progress(), time.monotonic() - begin

    def ends_before(self, _, seconds, __):
        return self.has_ended(seconds)

    def check_kill(self, before, kills):
        if lost := set(before) - set(self.progress()):
            raise Failure(f"kill {kills}: {len(lost)} finished rows were lost: {sorted(lost)[:2]}")

    def check_end(self, expected, _):
        rows = self.progress()
        if rows != expected:
            missing, other = set(expected) - set(rows), set(rows) - set(expected)
            changed = {key for key in set(rows) & set(expected) if rows[key] != expected[key]}
            raise Failure(f"{self.run}: {len(missing)} rows are missing, {len(other)} are unknown, "
                          f"{len(changed)} have another status: "
                          f"{[*missing, *other, *changed][:2]}")
        sampled = {(row["problem"], row["variant"], row["threads"])
                   for row in read_rows(self.run / "samples.csv")}
        for row in read_rows(self.run / "summary.csv"):
            key = row["problem"], row["variant"], row["threads"]
            if row["status"] == "ok" and key not in sampled:
                raise Failure(f"{self.run}: {key[0]} {key[1]} has no samples")


# --- a training ----------------------------------------------------------------------------------


class Training(Subject):
    def __init__(self, command, folder):
        super().__init__(command, folder)
        self.checkpoints = folder / "checkpoints"

    def clear(self, ceilings=None):
        super().clear()
        self.run.mkdir()
        if ceilings and ceilings.exists():  # measuring them takes seconds
            shutil.copy(ceilings, self.run)

    def start(self, *more):
        super().start("--checkpoint", self.checkpoints, *more)

    def progress(self):
        """The step of the newest checkpoint; -1 without checkpoints."""
        steps = [re.match(r"step-(\d+)-[0-9a-f]{8}\.checkpoint$", path.name)
                 for path in self.checkpoints.glob("step-*")]
        return max((int(match[1]) for match in steps if match), default=-1)

    def uninterrupted(self, ceilings):
        """Its weights, the seconds to the first checkpoint, and the seconds in all."""
        self.clear(ceilings)
        begin = time.monotonic()
        self.start()
        first = None
        while not self.has_ended(0.01):
            if first is None and self.progress() >= 0:
                first = time.monotonic() - begin
        seconds = time.monotonic() - begin
        weights = self.weights()
        if self.progress() < 0:
            raise Failure("The uninterrupted training left no checkpoint.")
        return weights, first or seconds, seconds

    def ends_before(self, needs_checkpoint, seconds, before):
        """Whether it ends in so many seconds, from now or from the first checkpoint after the step
        `before`."""
        while needs_checkpoint and self.progress() == before:
            if self.has_ended(0.005):
                return True
        return self.has_ended(seconds)

    def check_kill(self, before, kills):
        for line in self.errors().splitlines():
            if re.search(r"\.checkpoint: (torn|damaged|no checkpoint|cannot)", line):
                raise Failure(f"A checkpoint was lost: {line}")
        if self.progress() < before:
            raise Failure(f"The newest checkpoint was of step {before}; after kill {kills} it is "
                          f"of step {self.progress()}.")

    def weights(self):
        """The hash of the weights that the training printed at its end."""
        self.check_status()
        text = (self.folder / "stdout").read_text()
        found = re.findall(r"^weights fnv1a ([0-9a-f]{16})$", text, re.MULTILINE)
        if len(found) != 1:
            raise Failure(f"Expected one line 'weights fnv1a HASH', found {len(found)}: see "
                          f"{self.folder / 'stdout'}")
        return found[0]

    def check_end(self, expected, kills):
        self.check_kill(-1, kills)
        weights = self.weights()
        if expected not in ("", weights):
            raise Failure(f"The weights after {kills} kills are {weights}; of the uninterrupted "
                          f"training, {expected}.")
        left = [path.name for path in self.checkpoints.iterdir() if ".tmp-" in path.name]
        if left:
            raise Failure(f"Temporary files are left: {', '.join(left)}")


# --- both ----------------------------------------------------------------------------------------


def run_killed(subject, options, expected, moment, patience):
    """The number of starts that had something to go on from, and of runs that ended."""
    draw = random.Random(options.seed)
    kills = resumed = ended = 0
    subject.clear()
    while True:
        before = subject.progress()
        resumed += before not in (-1, {})
        subject.start(*(["--resume"] if options.kind == "train" else []))
        killed = False
        if kills == options.kills:
            if not subject.has_ended(patience):
                raise Failure(f"What was resumed did not end in {patience:.0f} s.")
        elif not subject.ends_before(*moment(draw), before):
            killed = subject.kill_one_rank(draw) if options.one_rank else not subject.kill()
        if killed:
            kills += 1
            subject.check_kill(before, kills)
            if kills % 20 == 0:
                print(f"{kills} of {options.kills} kills", file=sys.stderr, flush=True)
            continue
        subject.check_status()
        subject.check_end(expected, kills)
        ended += 1
        if kills == options.kills:
            return resumed, ended
        subject.clear()


def kill_bench(options, folder, subjects):
    subjects += [Bench(options.command, folder / name) for name in ("whole", "killed")]
    expected, seconds = subjects[0].uninterrupted()
    _, ended = run_killed(subjects[1], options, expected,
                          lambda draw: (False, draw.uniform(0, seconds)), 60 + 10 * seconds)
    return (f"{options.kills} kills, {ended} complete runs of {len(expected)} rows: none lost, "
            "none torn")


def kill_training(options, folder, subjects):
    subjects += [Training(options.command, folder / name) for name in ("first", "second", "killed")]
    expected, *_ = subjects[0].uninterrupted(None)
    again, first, seconds = subjects[1].uninterrupted(subjects[0].run / "ceilings.json")
    if again != expected and not options.any_weights:
        raise Failure(f"Without a kill, the weights are {expected}, and another time {again}: name "
                      "all rungs in --use, or do not compare (--any-weights).")
    longest = options.longest or (seconds - first) / 4
    print(f"Uninterrupted: {seconds:.1f} s, weights {expected}. Kills come up to {longest:.2f} s "
          "after a save.", flush=True)

    def moment(draw):
        """Every fourth kill comes before the steps begin, the others after a new checkpoint."""
        early = draw.random() < 0.25
        return (False, draw.uniform(0, first)) if early else (True, draw.uniform(0, longest))

    resumed, ended = run_killed(subjects[2], options, "" if options.any_weights else expected,
                                moment, 60 + 10 * seconds)
    if resumed == 0:
        raise Failure("No start found a checkpoint: use more kills or a smaller --every.")
    same = "not compared" if options.any_weights else f"{expected}, as of the uninterrupted one"
    return (f"{options.kills} kills; {resumed} starts from a checkpoint; {ended} trainings ended; "
            f"weights: {same}.")


def parse(arguments):
    parser = argparse.ArgumentParser(usage="kill.py {bench,train} [options] -- COMMAND",
                                     description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=("bench", "train"))
    parser.add_argument("--kills", type=int, default=200, help="by default 200")
    parser.add_argument("--seed", type=int, default=1, help="of the moments of the kills")
    parser.add_argument("--one-rank", action="store_true",
                        help="kill one rank; the others must end by themselves within "
                             f"{SECONDS_TO_END} s")
    parser.add_argument("--any-weights", action="store_true",
                        help="do not compare the weights: asynchronous modes are not reproducible")
    parser.add_argument("--longest", type=float, metavar="SECONDS",
                        help="longest time from a checkpoint to a kill; by default that of a "
                             "quarter of the steps")
    parser.add_argument("--folder", type=Path, help="of the outputs; by default a temporary one")
    parser.add_argument("command", nargs="+", metavar="COMMAND", help="a training with --every")
    parsed = parser.parse_args(arguments)
    words = {word.partition("=")[0] for word in parsed.command}
    if added := {"--checkpoint", "--resume", "--out"} & words:
        parser.error(f"{', '.join(sorted(added))}: added to the command by this program")
    if parsed.kills < 1:
        parser.error("--kills: expected 1 or more")
    if parsed.one_rank and not any("mpi" in Path(word).name for word in parsed.command):
        parser.error("--one-rank: the command starts no ranks with mpirun or mpiexec")
    return parsed


def main():
    options = parse(sys.argv[1:])
    folder = options.folder or Path(tempfile.mkdtemp(prefix="kill."))
    subjects = []
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the subject must end, too
    try:
        print((kill_bench if options.kind == "bench" else kill_training)(options, folder, subjects))
    except (Failure, OSError) as failure:
        print(f"{failure}\nThe files are in {folder}.", file=sys.stderr)
        return 1
    finally:
        for subject in subjects:
            subject.kill()
    if options.folder is None:
        shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
