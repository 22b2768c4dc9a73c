"""What the tests of programs and scripts share."""

import csv
import json
import shlex
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def check(done, status=0, error=(), lines=None):
    """The command that is done ended with this status (or one of several, or "not 0"; None: any),
    and its stderr holds this text, or each of these texts, and has so many whole lines (None: any).
    """
    said = (f"exit status {done.returncode}, expected {status}: {shlex.join(map(str, done.args))}\n"
            f"{done.stdout}\n{done.stderr}")
    if status == "not 0":
        assert done.returncode != 0, said
    elif status is not None:
        assert done.returncode in (status if isinstance(status, tuple) else (status,)), said
    for text in (error,) if isinstance(error, str) else error:
        assert text in done.stderr, f"{text!r} is not in stderr; {said}"
    if lines is not None:
        assert len(done.stderr.splitlines()) == lines == done.stderr.count("\n"), said
    return done


def execute(*command, status=0, error=(), lines=None, timeout=180, **options):
    """Runs a command to its end and checks how it ended."""
    done = subprocess.run([str(word) for word in command], text=True, timeout=timeout,
                          check=False, **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE,
                                          **options})
    return check(done, status, error, lines)


def wait_until(is_so, seconds=30):
    """Whether it becomes so within these seconds."""
    end = time.monotonic() + seconds
    while not (found := is_so()) and time.monotonic() < end:
        time.sleep(0.02)
    return found


def ends(process, seconds=5):
    """Whether this process, which may be no child of the test, ends within these seconds. Neither
    one that is gone nor one that waits to be reaped has an executable."""
    return wait_until(lambda: not Path(f"/proc/{process}/exe").exists(), seconds)


@contextmanager
def changing(path):
    """The content of a JSON file, which has what becomes of it afterwards."""
    content = json.loads(path.read_text())
    yield content
    path.write_text(json.dumps(content))


def read_csv(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def write_csv(path, rows, columns=None):
    """Rows of dictionaries, as the program writes them; without `columns`, those of the first
    one."""
    rows = list(rows)
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, columns or rows[0], restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def write_script(path, text):
    """A file that can be executed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path
