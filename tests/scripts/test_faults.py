"""scripts/faults.py on a throw-away repository: what is found, what is not, and what cannot be
judged."""

import shutil
import subprocess
import sys

import pytest

from faults import Fault
from tests.commands import ROOT, execute

HEADER = """Fault: {name}
Kind: test
Build: {build}
Check: {check}
Quick: {quick}
"""

DIFF = """
diff --git a/answer.txt b/answer.txt
--- a/answer.txt
+++ b/answer.txt
@@ -1 +1 @@
-{old}
+{new}
"""

PASSES_CLEAN = "grep -qx 42 answer.txt"


class Project:
    def __init__(self, folder):
        self.root = folder
        (folder / "scripts").mkdir(parents=True)
        (folder / "tests/faults").mkdir(parents=True)
        for name in ("faults.py", "reuse_objects.py"):
            shutil.copy(ROOT / "scripts" / name, folder / "scripts")
        (folder / "answer.txt").write_text("42\n")
        (folder / ".gitignore").write_text("build/\n")
        subprocess.run(["git", "init", "-q", folder], check=True)

    def fault(self, name, check=PASSES_CLEAN, build="none", quick="yes", old="42", new="43",
              sizes=""):
        header = HEADER.format(name=name, check=check, build=build, quick=quick)
        text = header + (f"Sizes: {sizes}\n" if sizes else "") + DIFF.format(old=old, new=new)
        (self.root / f"tests/faults/{name}.patch").write_text(text)

    def run(self, *arguments, **expected):
        return execute(sys.executable, "scripts/faults.py", *arguments, cwd=self.root, **expected)


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path / "project")


def line_of(done, name):
    line, = [line for line in done.stdout.splitlines() if line.startswith(name + " ")]
    return line


def test_a_fault_that_fails_its_check_is_found(project):
    project.fault("seen")
    done = project.run()
    assert "  found " in line_of(done, "seen") and line_of(done, "seen").endswith(PASSES_CLEAN)
    assert "1 of 1 faults found, 0 not found, 0 errors" in done.stdout
    assert (project.root / "answer.txt").read_text() == "42\n"


def test_a_check_that_passes_with_the_fault_has_not_found_it(project):
    project.fault("seen")
    project.fault("unseen", check="true")
    done = project.run(status=1)
    assert "NOT FOUND" in line_of(done, "unseen") and "  found " in line_of(done, "seen")


@pytest.mark.parametrize("options, message", [
    ({"old": "41"}, "the patch does not apply"),
    ({"check": "false"}, "the check fails without the patch"),
    ({"check": "no-such-command-here"}, "the check did not start"),
])
def test_what_cannot_be_judged_is_an_error_and_the_others_go_on(project, options, message):
    project.fault("broken", **options)
    project.fault("seen")
    done = project.run(status=2)
    assert "ERROR" in line_of(done, "broken") and message in done.stdout
    assert "  found " in line_of(done, "seen")


@pytest.mark.skipif(not shutil.which("cmake"), reason="no cmake")
def test_a_fault_that_does_not_build_is_an_error(project):
    (project.root / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\nproject(small LANGUAGES NONE)\n"
        f"add_custom_target(program COMMAND {PASSES_CLEAN}\n"
        "  WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})\n")
    project.fault("unbuildable", build="program")
    done = project.run(status=2)
    assert "ERROR" in line_of(done, "unbuildable") and "the patch does not build" in done.stdout


def test_the_floor_is_the_smallest_size_found_in_a_row(project):
    project.fault("sized", check="test $(cat answer.txt) -lt 50", new="@SIZE@",
                  sizes="90 70 50 49 60")
    done = project.run()
    assert done.stdout.splitlines()[-3].split()[-2:] == ["50", "49"]
    assert "smallest found" not in project.run("--quick").stdout


def test_faults_are_selected_by_name_and_cost(project):
    project.fault("quick-one")
    project.fault("slow-one", quick="no")
    assert "slow-one" not in project.run("--quick").stdout
    assert "quick-one" not in project.run("slow*").stdout
    project.run("other*", status=2)


def test_the_copy_has_changes_that_are_not_committed_and_no_faults_of_an_earlier_run(project):
    project.fault("seen")
    project.run()
    (project.root / "build/faults/tree/answer.txt").write_text("43\n")  # as after a kill
    (project.root / "added.txt").write_text("new\n")
    project.fault("seen", check=f"{PASSES_CLEAN} && test -e added.txt")
    project.run()
    (project.root / "added.txt").unlink()
    project.run(status=2)


@pytest.mark.parametrize("old, new", [
    ("Kind: test\n", ""), ("Kind:", "Kin:"), ("Quick: yes\n", "Quick: yes\nSizes: 1\n")])
def test_a_wrong_header_is_an_error_that_names_the_file(project, old, new):
    project.fault("wrong")
    path = project.root / "tests/faults/wrong.patch"
    path.write_text(path.read_text().replace(old, new))
    project.run(status=2, error="wrong.patch")


def test_the_faults_of_the_project_are_well_formed():
    """They apply to the tree, and their headers are complete."""
    faults = [Fault(path) for path in sorted((ROOT / "tests/faults").glob("*.patch"))]
    assert len(faults) >= 30
    assert 8 <= sum(fault.quick for fault in faults) <= 20
    for fault in faults:
        print(fault.name)
        execute("git", "apply", "--check", "-", input=fault.diff, cwd=ROOT)
