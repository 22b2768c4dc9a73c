#!/usr/bin/env python3
"""Plants faults and expects that the checks of the project find them.

Each file tests/faults/NAME.patch is one fault: a header, then a diff. In a copy of the tree with a
build folder of its own, the check of each fault must pass without the patch and fail with it. Exit
status: 0 all found, 1 some not found, 2 a patch that does not apply or build, or a check that fails
without it.

    Fault: what is wrong                      Kind: a word or two
    Build: targets, or none                   Check: a command that a user or the CI runs
    Quick: yes or no                          Sizes: from the largest to the smallest (optional)

`@SIZE@` in the diff stands for a size. The first of Sizes decides; the others show the floor: the
smallest found.
"""

import argparse
import filecmp
import fnmatch
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import reuse_objects

ROOT = Path(__file__).resolve().parents[1]
FIELDS = ("Fault", "Kind", "Build", "Check", "Quick", "Sizes")
REQUIRED = FIELDS[:5]
CHECK_LIMIT = 300  # seconds; a check that takes longer hangs, which finds the fault
NO_COMMAND = (126, 127)  # exit statuses of the shell


class Broken(Exception):
    """The fault cannot be judged."""


class Fault:
    def __init__(self, path):
        self.name = path.stem
        header, separator, diff = path.read_text().partition("diff --git ")
        self.diff = separator + diff
        entries = dict(re.findall(r"^(\w+): *(.*?) *$", header, re.MULTILINE))
        wrong = [name for name in REQUIRED if not entries.get(name)]
        wrong += [name for name in entries if name not in FIELDS]
        if wrong or not diff:
            raise Broken(
                f"{path}: the header lacks or misspells {', '.join(wrong) or 'the diff'}")
        self.kind, self.check = entries["Kind"], entries["Check"]
        self.targets = [] if entries["Build"] == "none" else entries["Build"].split()
        self.quick = entries["Quick"] == "yes"
        self.sizes = entries.get("Sizes", "").split()
        if bool(self.sizes) != ("@SIZE@" in diff):
            raise Broken(f"{path}: Sizes and @SIZE@ belong together")

    def files(self):
        return sorted(set(re.findall(r"^(?:---|\+\+\+) [ab]/(\S+)", self.diff, re.MULTILINE)))


def run(command, cwd, limit=None, text=None, **variables):
    """Exit status and output; the status is None after `limit` seconds."""
    process = subprocess.Popen(
        command, cwd=cwd, shell=isinstance(command, str), text=True, start_new_session=True,
        stdin=subprocess.DEVNULL if text is None else subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, env={**os.environ, **variables})
    try:
        output, _ = process.communicate(text, timeout=limit)
        return process.returncode, output
    except BaseException as reason:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        if isinstance(reason, subprocess.TimeoutExpired):
            return None, output
        raise


def last_lines(output, count=15):
    return "\n".join("    " + line for line in output.strip().splitlines()[-count:])


def cache_of(build):
    path = build / "CMakeCache.txt"
    text = path.read_text() if path.is_file() else ""
    return dict(re.findall(r"^(\w+):\w+=(.*)$", text, re.MULTILINE))


def files_of_the_tree():
    """Including changes that are not committed."""
    if (ROOT / ".git").exists():
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
            capture_output=True, text=True, check=True)
        return listed.stdout.split("\0")
    ignored = {"build", "data", ".venv", "results"}
    return [path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*")
            if path.relative_to(ROOT).parts[0] not in ignored]


class Copy:
    """A copy of the tree, with changes that are not committed, and its build folder `build`."""

    def __init__(self, folder, build, jobs):
        self.tree, self.original, self.jobs = folder / "tree", build, jobs
        self.build = self.tree / "build"
        self.faulty = set()  # targets that the fault before was built into
        self.variables = {
            "STEPLADDER": str(self.build / "stepladder"), "PYTHONDONTWRITEBYTECODE": "1",
            "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "GIT_CEILING_DIRECTORIES": str(folder),  # git apply must not see the repository here
            "CCACHE_BASEDIR": os.environ.get("CCACHE_BASEDIR", str(self.tree)),
            "CCACHE_SLOPPINESS": os.environ.get(
                "CCACHE_SLOPPINESS",
                "pch_defines,time_macros,include_file_mtime,include_file_ctime")}

    def synchronize(self):
        """Files that have not changed keep their times, so that nothing of them is built again."""
        names = {name for name in files_of_the_tree() if (ROOT / name).is_file()}
        for name in names:
            source, target = ROOT / name, self.tree / name
            if not target.is_file() or not filecmp.cmp(source, target, shallow=False):
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target)
                shutil.copymode(source, target)
        ignored = {"build", "data", ".venv"}
        for path in self.tree.rglob("*"):
            name = path.relative_to(self.tree)
            if name.parts[0] not in ignored and path.is_file() and name.as_posix() not in names:
                path.unlink()
        for name in ("data", ".venv"):
            if (ROOT / name).exists() and not (self.tree / name).exists():
                (self.tree / name).symlink_to((ROOT / name).resolve())

    def configure(self, **options):
        """With the compiler and the options of the original build folder, but for `options`."""
        cache = cache_of(self.original)
        generator = cache.get("CMAKE_GENERATOR",
                              "Ninja" if shutil.which("ninja") else "Unix Makefiles")
        names = ["CMAKE_BUILD_TYPE", "CMAKE_CXX_COMPILER", "CMAKE_CXX_FLAGS", "CMAKE_PREFIX_PATH",
                 "CMAKE_CUDA_COMPILER", *(name for name in cache if name.startswith("STEPLADDER_"))]
        options = {name: cache[name] for name in names if cache.get(name)} | options
        words = [sys.executable, "-S", "-E", ROOT / "scripts/reuse_objects.py", self.tree,
                 cache.get("CMAKE_HOME_DIRECTORY", ROOT), self.original]
        for language in ("CXX", "CUDA"):
            options[f"CMAKE_{language}_COMPILER_LAUNCHER"] = ";".join(map(str, words))
        reuse_objects.write_index(self.original, self.build)
        status, output = run(["cmake", "-S", ".", "-B", "build", "-G", generator,
                              *(f"-D{name}={value}" for name, value in options.items())],
                             self.tree, **self.variables)
        if status != 0:
            raise Broken(f"configuring {self.tree} failed:\n{last_lines(output, 40)}")

    def make(self, targets):
        """Exit status and output."""
        if not targets:
            return 0, ""
        return run(["cmake", "--build", "build", "--parallel", str(self.jobs), "--target",
                    *targets], self.tree, **self.variables)

    def build_clean(self, targets):
        if not targets:
            return
        self.configure(CMAKE_BUILD_TYPE="Release", STEPLADDER_WERROR="OFF", STEPLADDER_ISAS="all",
                       STEPLADDER_SANITIZE="",
                       CMAKE_EXPORT_COMPILE_COMMANDS="ON")
        status, output = self.make(targets)
        if status != 0:
            raise Broken(f"the tree does not build without a patch:\n{last_lines(output, 40)}")

    def apply(self, diff):
        status, output = run(["git", "apply", "-"], self.tree, text=diff, **self.variables)
        if status != 0:
            raise Broken(f"the patch does not apply:\n{last_lines(output)}")

    def passes(self, check):
        """Whether the check passes, and its output."""
        status, output = run(check, self.tree, CHECK_LIMIT, **self.variables)
        if status in NO_COMMAND:
            raise Broken(f"the check did not start:\n{last_lines(output)}")
        return status == 0, output


def is_found(copy, fault, size=None):
    """Whether the check fails with the fault. Its files are restored, and the next call builds what
    was built of them."""
    paths = [copy.tree / name for name in fault.files()]
    kept = {path: path.read_bytes() if path.is_file() else None for path in paths}
    try:
        copy.apply(fault.diff.replace("@SIZE@", size or ""))
        copy.faulty |= set(fault.targets)
        status, output = copy.make(sorted(copy.faulty))
        if status != 0:
            raise Broken(f"the patch does not build:\n{last_lines(output, 40)}")
        copy.faulty = set(fault.targets)
        return not copy.passes(fault.check)[0]
    finally:
        for path, content in kept.items():
            path.unlink(missing_ok=True)
            if content is not None:
                path.write_bytes(content)


def floor(copy, fault):
    """The sizes found in a row from the largest on, and the first that is not."""
    found = [fault.sizes[0]]
    for size in fault.sizes[1:]:
        if not is_found(copy, fault, size):
            return found, size
        found.append(size)
    return found, "none tried"


def judge(copy, faults, with_floor):
    """Prints a line per fault. The numbers of faults not found and of errors."""
    missed = errors = 0
    clean, floors = {}, []
    wide = max(len(fault.name) for fault in faults)
    kinds = max(len(fault.kind) for fault in faults)
    for fault in faults:  # all before the first fault is built
        try:
            if fault.check not in clean:
                passed, output = copy.passes(fault.check)
                clean[fault.check] = "" if passed else (
                    f"the check fails without the patch:\n{last_lines(output)}")
        except Broken as reason:
            clean[fault.check] = str(reason)
    for fault in faults:
        start = time.monotonic()
        detail = ""
        try:
            if clean[fault.check]:
                raise Broken(clean[fault.check])
            found = is_found(copy, fault, fault.sizes[0] if fault.sizes else None)
            verdict = "found" if found else "NOT FOUND"
            missed += not found
            if found and fault.sizes and with_floor:
                floors.append((fault, *floor(copy, fault)))
        except Broken as reason:
            verdict, detail = "ERROR", str(reason)
            errors += 1
        seconds = time.monotonic() - start
        print(f"{fault.name:{wide}}  {fault.kind:{kinds}}  {verdict:9}  {seconds:6.1f} s  "
              f"{fault.check}", flush=True)
        if detail:
            print(detail, flush=True)
    if floors:
        print(f"\n{'fault':{wide}}  {'kind':{kinds}}  {'smallest found':>14}  first not found")
        for fault, sizes, not_found in floors:
            print(f"{fault.name:{wide}}  {fault.kind:{kinds}}  {sizes[-1]:>14}  {not_found}")
    return missed, errors


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("faults", nargs="*", default=["*"], help="globs of names of faults (all)")
    parser.add_argument("--quick", action="store_true",
                        help="the quick faults alone, without the floor")
    parser.add_argument("--build", default="build",
                        help="build folder whose objects and options are reused")
    parser.add_argument("--folder", help="where the copy is kept (faults in the build folder)")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)),
                        help="compilers at the same time")
    options = parser.parse_args()
    start = time.monotonic()
    folder = Path(options.folder or Path(options.build) / "faults").resolve()
    try:
        paths = [path for path in sorted((ROOT / "tests/faults").glob("*.patch"))
                 if any(fnmatch.fnmatchcase(path.stem, glob) for glob in options.faults)]
        faults = list(map(Fault, paths))
        faults = [fault for fault in faults if fault.quick or not options.quick]
        if not faults:
            raise Broken(f"no fault is called {' or '.join(options.faults)}")
        folder.mkdir(parents=True, exist_ok=True)
        copy = Copy(folder, Path(options.build).resolve(), options.jobs)
        copy.synchronize()
        copy.build_clean(sorted({target for fault in faults for target in fault.targets}))
    except Broken as reason:
        print(reason, file=sys.stderr)
        return 2
    print(f"{len(faults)} faults; the copy was built in {time.monotonic() - start:.0f} s",
          flush=True)
    missed, errors = judge(copy, faults, not options.quick)
    print(f"\n{len(faults) - missed - errors} of {len(faults)} faults found, {missed} not found, "
          f"{errors} errors, in {time.monotonic() - start:.0f} s")
    return 2 if errors else 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
