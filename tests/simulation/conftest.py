"""What the tests of both simulators share."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands import ROOT, check

sys.path.insert(0, str(ROOT / "scripts"))


class Script:
    """The script of a simulator, whose program a variable names (a file in build without it);
    `names` are those of its other variables."""

    def __init__(self, name, variable, program, names):
        self.name, self.names = name, (*names, "OUT", "RESUME")
        self.program = Path(os.environ.get(variable, ROOT / "build" / program)).resolve()
        self.own = {variable: self.program}

    def needs_simgrid(self):
        if not shutil.which("smpirun") or not self.program.exists():
            pytest.skip(f"no SimGrid, or {self.program.name} is not built")

    def start(self, out, **variables):
        own = {name: str(value) for name, value in (self.own | {"OUT": out} | variables).items()}
        others = {name: value for name, value in os.environ.items() if name not in self.names}
        return subprocess.Popen(
            [sys.executable, ROOT / "scripts" / self.name], text=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env=others | own,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))

    def __call__(self, out, status=0, error=(), lines=None, **variables):
        """Runs it to its end and checks how it ended: see check()."""
        process = self.start(out, **variables)
        stdout, stderr = process.communicate(timeout=120)
        return check(subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr),
                     status, error, lines)

    def resume_without_a_row(self, out, file, torn="", **variables):
        """Refuses a second run, and with RESUME=1 simulates the last row of the file again."""
        self(out, status=2, error="RESUME=1", lines=1, **variables)
        lines = (out / file).read_text().splitlines(keepends=True)
        (out / file).write_text("".join(lines[:-1]) + torn)
        assert "[1/1]" in self(out, RESUME="1", **variables).stdout


@pytest.fixture
def command(request):
    """The script of the module, where SimGrid is there."""
    request.module.COMMAND.needs_simgrid()
    return request.module.COMMAND


def sorted_rows(rows):
    """Without the time that the simulation took."""
    return sorted(str(row | {"wall_s": ""}) for row in rows)
