"""What the runners of make bench, bench-network, compare-modes, cost-model and peers share.

Variables and their checks, the mpirun of a number of ranks, and the run: its commands, one after
another, with the output in bench.log of the run folder; resuming; a restart after a crash; the
charts, tables and the last screen. It needs nothing but Python's own library.
"""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYTHON = ".venv/bin/python"
MOST_RESTARTS = 20
LAST_LINES = 12


class Refused(Exception):
    """The one sentence that tells what is wrong before anything is measured."""


def main(target, function, status=2):
    """Runs the function in the root of the project; the exit status is that of its result."""
    os.chdir(ROOT)
    sys.stdout.reconfigure(line_buffering=True)
    try:
        sys.exit(function())
    except Refused as refusal:
        print(f"make {target}: {refusal}", file=sys.stderr)
        sys.exit(status)


# --- variables -----------------------------------------------------------------------------------


def variable(name, default=""):
    return os.environ.get(name) or default


def words(text):
    """The words of a list that commas or spaces separate."""
    return re.findall(r"[^,\s]+", text)


def whole_number(name, text, digits=9):
    if not re.fullmatch(rf"[1-9][0-9]{{0,{digits - 1}}}", text):
        raise Refused(f"{name}={text}: expected a whole number from 1")
    return int(text)


def whole_numbers(name, text, example, pattern="[1-9][0-9]{0,8}"):
    numbers = words(text)
    if not numbers:
        raise Refused(f"{name} is empty: expected whole numbers such as {example}")
    if not all(re.fullmatch(pattern, number) for number in numbers):
        raise Refused(f"{name}={text}: expected whole numbers such as {example}")
    return [int(number) for number in numbers]


def given(*pairs):
    """The options whose variables are set: pairs of a variable and its option."""
    return [word for name, option in pairs if variable(name) for word in (option, variable(name))]


def new_folder(before="", after=""):
    moment = time.strftime("%Y-%m-%dT%H-%M-%SZ", time.gmtime())
    return variable("OUT", f"results/local/{before}{moment}{after}")


def program_path():
    return f"{variable('BUILD', 'build')}/stepladder"


def built_program():
    program = os.path.abspath(program_path())
    if not os.access(program, os.X_OK):
        raise Refused(f"{program} is missing; make build")
    return program


# --- the machine ---------------------------------------------------------------------------------


def core_count():
    return len(os.sched_getaffinity(0))


def physical_core_count():
    listed = subprocess.run(["lscpu", "-p=CORE,SOCKET"], text=True, capture_output=True,
                            check=False).stdout if shutil.which("lscpu") else ""
    return len({line for line in listed.split() if line[0].isdigit()}) or core_count()


def allow_mpi_as_root():
    """Open MPI refuses to run as root, as containers do, unless both variables are set."""
    if os.getuid() == 0:
        os.environ |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def mpirun(ranks):
    """Starts this number of ranks on this machine."""
    # Ranks that share a core must not wait busily for each other.
    if ranks > core_count():
        placed = ["--oversubscribe", "--mca", "mpi_yield_when_idle", "1"]
    elif ranks > physical_core_count():  # by default Open MPI counts cores, not hardware threads
        placed = ["--use-hwthread-cpus", "--bind-to", "hwthread"]
    else:
        placed = ["--bind-to", "core"]
    return ["mpirun", "-np", str(ranks), *placed]


# --- a run ---------------------------------------------------------------------------------------


def call(command, output):
    """The exit status of a command, as a shell gives it. The parameter `output` is a file."""
    with running(command, output) as process:
        return shell_status(process.wait())


def shell_status(status):
    return status if status >= 0 else 128 - status


def running(command, output, errors=subprocess.STDOUT):
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=errors)


class Run:
    """The commands of a target, with their output in bench.log of the run folder.

    `variables` are those that the command to resume repeats.
    """

    def __init__(self, target, folder, variables):
        self.target, self.folder, self.variables = target, folder, variables
        self.path = Path(folder)
        self.held_a_run = any((self.path / name).exists()
                              for name in ("environment.json", "summary.csv"))
        self.resume = ["--resume"] if variable("RESUME") == "1" else []
        self.begun = time.monotonic()
        self.failures = []
        self.tail = []  # the last lines of the last command
        self.child = None
        self.interrupted = False
        # The terminal sends Ctrl-C to the child as well.
        signal.signal(signal.SIGINT, self.interrupt)
        signal.signal(signal.SIGTERM, self.interrupt)

    def interrupt(self, number, _frame):
        self.interrupted = True
        if number == signal.SIGTERM and self.child:
            self.child.terminate()

    def elapsed(self):
        seconds = int(time.monotonic() - self.begun)
        return f"{seconds // 60} min {seconds % 60} s"

    def resume_command(self):
        repeated = [f"{name}={shlex.quote(variable(name))}" for name in self.variables
                    if variable(name)]
        if variable("BUILD", "build") != "build":
            repeated.append(f"BUILD={shlex.quote(variable('BUILD'))}")
        return " ".join(["make", self.target, *repeated, f"OUT={shlex.quote(self.folder)}",
                         "RESUME=1"])

    def stopped(self, reason, status, file=None):
        print(f"\n{reason} The finished rows are in {self.folder}. To resume:\n"
              f"  {self.resume_command()}", file=file)
        sys.exit(status)

    def announce(self, part, of, title):
        print(f"[{part}/{of}] {title} (after {self.elapsed()})")

    def to_end(self, command):
        """Runs a command and returns its exit status.

        On a terminal its stderr stays there, because it shows the progress.
        """
        with tempfile.TemporaryFile() as output:
            try:
                errors = None if sys.stderr.isatty() else subprocess.STDOUT
                self.child = running(command, output, errors)
                status = shell_status(self.child.wait())
            except OSError as error:
                output.write(f"{command[0]}: {error.strerror}\n".encode())
                status = 127
            self.child = None
            output.seek(0)
            self.tail = list(deque(output, LAST_LINES))
            if self.path.is_dir():
                output.seek(0)
                with (self.path / "bench.log").open("ab") as log:
                    log.write(f"+ {' '.join(command)}\n".encode())
                    shutil.copyfileobj(output, log)
        if self.interrupted or status in (130, 143):
            self.stopped("Stopped.", 130)
        return status

    def measure(self, command):
        """Runs a command into the run folder and again after each crash.

        A rank that crashes ends them all. Its variant gets a failed row, and the others go on.
        """
        status = self.to_end([*command, "--out", self.folder, *self.resume])
        for _ in range(MOST_RESTARTS):
            if not (self.path / ".work").exists():
                break
            self.show_end_of_log()
            status = self.to_end([*command, "--out", self.folder, "--resume", "--after-crash"])
        return status

    def end_if_refused(self, status):
        """Ends if the first command was refused: a wrong name, or a folder in use."""
        if not self.resume and (status == 2 or self.held_a_run or not self.path.is_dir()):
            self.nothing_measured(status)

    def nothing_measured(self, status):
        self.show_end_of_log()
        if self.held_a_run:
            print(f"To resume that run: {self.resume_command()}", file=sys.stderr)
        sys.exit(status)

    def show_end_of_log(self):
        for line in self.tail:
            print("  |", line.decode(errors="replace").rstrip("\n"), file=sys.stderr)

    def fail(self, title, status):
        self.show_end_of_log()
        self.failures.append(f"{title} (exit status {status})")

    def finish(self, screen, *options):
        """Draws the charts, writes the tables and prints the last screen, a command of plots.

        With options, which that command keeps in the run folder, it runs before the charts too.
        """
        print(f"Measured in {self.elapsed()}")
        if has_modules("matplotlib, numpy"):
            outputs = [[screen, *options]] if options else []
            outputs += [["charts"], ["tables"]]
            if screen == "table":  # the last screen of make bench alone names the page
                if has_modules("jinja2, pygments"):
                    outputs.append(["page"])
                else:
                    print("Report page: SKIPPED, no Python environment with Jinja2 and Pygments "
                          "(see make setup)")
            for output in outputs:
                status = self.to_end([PYTHON, "-m", "plots", *output, self.folder])
                if status:
                    self.fail(output[0], status)
            print()
            status = call([PYTHON, "-m", "plots", screen, self.folder], None)
            if status:
                self.failures.append(f"{screen} (exit status {status})")
        else:
            print("Charts and tables: SKIPPED, no Python environment with numpy and matplotlib "
                  "(see make setup)\nWritten:")
            for path in sorted(self.path.iterdir()):
                print(f"  {self.folder}/{path.name}")
        if self.failures:
            print(f"\nFAILED (all output: {self.folder}/bench.log):",
                  *(f"  {failure}" for failure in self.failures), sep="\n", file=sys.stderr)
        return 1 if self.failures else 0


def has_modules(names):
    return Path(PYTHON).exists() and not subprocess.run(
        [PYTHON, "-c", f"import {names}"], capture_output=True, check=False).returncode
