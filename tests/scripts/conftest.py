"""A copy of the project's scripts in a folder of its own, where every command they call is a fake.

PATH holds only links to some harmless tools and the fakes: nothing is installed, built or
downloaded. Each fake records its command line.
"""

import shutil
import signal
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

HARMLESS = """bash cat cut date dirname env expand grep id kill ldconfig mkdir mktemp mv nproc paste
realpath rm sed sha256sum sort tail touch tr wc""".split()


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
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_text(f'#!{self.bin}/bash\necho "{name} $*" >>"{self.log}"\n{body}\n')
        path.chmod(0o755)

    def remove(self, name):
        (self.bin / name).unlink()

    def start(self, script, *arguments, stderr=subprocess.PIPE, **variables):
        self.log.write_text("")
        return subprocess.Popen(
            [self.bin / "bash", self.root / "scripts" / script, *arguments], cwd=self.root,
            text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr,
            env={"PATH": str(self.bin), "HOME": str(self.root), "LC_ALL": "C", **variables},
            # A test runner in the background may ignore Ctrl-C, and its children inherit that.
            start_new_session=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))

    def run(self, script, *arguments, **variables):
        process = self.start(script, *arguments, **variables)
        stdout, stderr = process.communicate(timeout=120)
        return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)

    def calls(self, name):
        """The command lines with which this fake was called, without its name."""
        lines = self.log.read_text().splitlines()
        return [line[len(name) + 1:] for line in lines if line.split(" ", 1)[0] == name]


@pytest.fixture
def sandbox(tmp_path):
    return Sandbox(tmp_path)
