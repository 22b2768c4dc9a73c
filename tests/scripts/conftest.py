"""A copy of the project's scripts in a folder of its own, where every command they call is a fake.

PATH holds only links to some harmless tools and the fakes: nothing is installed, built or
downloaded. Each fake records its command line.
"""

import json
import os
import runpy
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest

from tests.commands import ROOT, check, write_script

sys.path.insert(0, str(ROOT / "scripts"))

import runner  # noqa: E402

HARMLESS = ["bash", "cat", "cut", "date", "dirname", "env", "expand", "grep", "id", "kill",
            "ldconfig", "mkdir", "mktemp", "mv", "nproc", "paste", "realpath", "rm", "sed",
            "sha256sum", "sort", "tail", "touch", "tr", "wc"]


class Sandbox:
    def __init__(self, folder):
        self.root = folder / "project"
        self.bin = folder / "bin"
        self.log = folder / "calls"
        self.bin.mkdir()
        shutil.copytree(ROOT / "scripts", self.root / "scripts")
        for name in HARMLESS:
            path = shutil.which(name, path="/usr/bin:/bin:/usr/sbin:/sbin")
            if path:
                (self.bin / name).symlink_to(path)
        self.fake("sleep")

    def fake(self, name, body="", folder=None):
        """A command that records its call and then runs `body` (bash)."""
        path = Path(folder or self.bin) / name
        path.unlink(missing_ok=True)
        write_script(path, f'#!{self.bin}/bash\necho "{name} $*" >>"{self.log}"\n{body}\n')

    def remove(self, name):
        (self.bin / name).unlink()

    def start(self, script, *arguments, stderr=subprocess.PIPE, **variables):
        self.log.write_text("")
        return subprocess.Popen(
            [sys.executable if script.endswith(".py") else self.bin / "bash",
             self.root / "scripts" / script, *arguments], cwd=self.root,
            text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr,
            env={"PATH": str(self.bin), "HOME": str(self.root), "LC_ALL": "C", **variables},
            # A test runner in the background may ignore Ctrl-C, and its children inherit that.
            start_new_session=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))

    def run(self, script, *arguments, status=0, error=(), lines=None, **variables):
        """Runs it to its end and checks how it ended: see check()."""
        process = self.start(script, *arguments, **variables)
        stdout, stderr = process.communicate(timeout=120)
        return check(subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr),
                     status, error, lines)

    def calls(self, name):
        """The command lines with which this fake was called, without its name."""
        lines = self.log.read_text().splitlines()
        return [line[len(name) + 1:] for line in lines if line.split(" ", 1)[0] == name]


@pytest.fixture
def sandbox(tmp_path):
    return Sandbox(tmp_path)


# As `stepladder modes --json` prints them, without what no runner reads.
MODES = [{"name": name, "replicas": replicas, "divides_batches": divides}
         for replicas, divides, names in (
             ("one", False, "single"), ("ranks", True, "synchronous sharded parameter_server ssp"),
             ("ranks", True, "local_sgd"), ("threads", True, "threads_over_samples"),
             ("threads", False, "hogwild actors_learner"),
             ("ranks", False, "downpour token_ring model_parallel pipeline hybrid"))
         for name in names.split()]


class Project:
    """An empty project in which a runner runs in this process and its commands are only recorded.

    `answer`, called with the words of a command, gives the exit status (0), and may set `output`.
    """

    def __init__(self, folder, capsys):
        self.root, self.capsys = folder, capsys
        self.cores, self.physical_cores = 4, 2
        self.commands = []  # of the program, each with its mpirun
        self.plots = []
        self.tools = {"mpirun"}
        self.answer = lambda line: 0
        self.output = ""
        (folder / "build").mkdir()
        (folder / "build/stepladder").touch(0o755)

    def to_end(self, run, command):
        words = [str(word) for word in command]
        if words[:3] == [runner.PYTHON, "-m", "plots"]:
            self.plots.append(" ".join(words[3:]))
            return 0
        self.commands.append(words)
        self.output = ""
        status = self.answer(" ".join(words))
        run.tail = [self.output.encode()]
        if status != 2:
            self.write(run.path)
        if status == 130:
            run.stopped("Stopped.", 130)
        return status

    @staticmethod
    def write(folder):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "environment.json").touch()

    def calls(self):
        """The command lines of the program, without mpirun and the program's name."""
        return [" ".join(words[self.start_of(words) + 1:]) for words in self.commands]

    def launches(self):
        """The options of mpirun before the program; empty where it starts alone."""
        return [" ".join(words[:self.start_of(words)]) for words in self.commands]

    @staticmethod
    def start_of(words):
        return next(i for i, word in enumerate(words) if word.endswith("/stepladder"))

    def run(self, script, status=0, error=(), lines=None, **variables):
        """Runs it to its end and checks how it ended: see check()."""
        self.commands, self.plots = [], []
        with mock.patch.dict(os.environ, variables):
            try:
                runpy.run_path(str(ROOT / "scripts" / script), run_name="__main__")
                returncode = 0
            except SystemExit as end:
                returncode = end.code or 0
        return check(subprocess.CompletedProcess([script], returncode, *self.capsys.readouterr()),
                     status, error, lines)


@pytest.fixture
def project(tmp_path, capsys, monkeypatch):
    made = Project(tmp_path, capsys)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(runner, "ROOT", tmp_path)
    monkeypatch.setattr(runner, "core_count", lambda: made.cores)
    monkeypatch.setattr(runner, "physical_core_count", lambda: made.physical_cores)
    monkeypatch.setattr(runner, "has_modules", lambda names: True)
    monkeypatch.setattr(runner, "call", lambda command, output: made.plots.append(
        " ".join(command[3:])) or 0)
    monkeypatch.setattr(runner.Run, "to_end", lambda run, command: made.to_end(run, command))
    monkeypatch.setattr(runner.signal, "signal", lambda number, handler: None)
    monkeypatch.setattr(
        shutil, "which", lambda name: f"/bin/{name}" if name in made.tools else None)
    monkeypatch.setattr(subprocess, "run", lambda command, **options: SimpleNamespace(
        stdout=json.dumps(MODES) if "modes" in command else "mpirun (Open MPI) 4.1.4",
        returncode=0))
    exported = [word for line in (ROOT / "Makefile").read_text().splitlines()
                if line.startswith("export ") for word in line.split()[1:]]
    with mock.patch.dict(os.environ):
        for name in exported:
            os.environ.pop(name, None)
        yield made
