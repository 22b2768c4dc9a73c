"""The Makefile: which run its targets take."""

import os
import shutil

import pytest

from tests.commands import ROOT, execute


@pytest.fixture
def make(tmp_path):
    """Returns what a target would run in a project with three local runs, of which try/ is none."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    for age, name in enumerate(("try", "tuesday", "monday")):
        file = tmp_path / "results/local" / name / "environment.json"
        file.parent.mkdir(parents=True)
        file.touch()
        os.utime(file, (1e9 - age, 1e9 - age))

    def call(*words, **expected):
        done = execute("make", "--dry-run", "--no-print-directory", *words, cwd=tmp_path)
        # what the shell makes of it
        script = done.stdout.replace(".venv/bin/python -m", "echo").replace(
            '"$BUILD/stepladder"', "echo")
        script = "\n".join(line for line in script.splitlines() if not line.startswith("scripts/"))
        variables = dict(word.split("=") for word in words if "=" in word)
        return execute("bash", "-c", script, cwd=tmp_path,
                       env={"PATH": os.environ["PATH"], **variables}, **expected)
    call.root = tmp_path
    return call


@pytest.mark.parametrize("words, expected", [
    (["plots"], "plots charts results/local/tuesday"),
    (["plots", "RUN=a"], "plots charts a"),
    (["plots", "OUT=b"], "plots charts b"),
    (["report", "BASE=c"], "plots page results/local/tuesday --base c --program"),
    (["report", "OUT=b"], "plots page b --program"),
    (["compare", "OLD=d"], "compare d results/local/tuesday"),
    (["compare", "OLD=d", "NEW=e"], "compare d e")], ids=" ".join)
def test_a_target_takes_the_run_it_is_given_or_the_newest(make, words, expected):
    done = make(*words)
    assert done.stdout.startswith(expected)


def test_without_any_run_a_target_says_how_to_name_one(make):
    shutil.rmtree(make.root / "results")
    done = make("plots", status=2)
    assert done.stderr == "make plots: no run under results/local; name one with RUN=FOLDER\n"
    make("compare", status=2, error="name the older run with OLD=FOLDER")
