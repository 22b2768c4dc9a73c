"""A compiler launcher that copies objects which another build folder has compiled already.

    reuse_objects.py TREE SOURCE BUILD compiler arguments…

TREE is a copy of the source tree SOURCE, and BUILD is a build folder of SOURCE (of Ninja). An
object is copied that BUILD compiled with the same command from files that are the same in both
trees. All others are compiled. write_index() comes first, into the folder where the compiler runs.
"""

import filecmp
import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

INDEX = "reusable"


def dependencies_of(build):
    """The files of which each object was made, as Ninja has written them down."""
    try:
        done = subprocess.run(["ninja", "-t", "deps"], cwd=build, capture_output=True, text=True,
                              check=False)
    except OSError:
        return {}
    found = {}
    for block in done.stdout.split("\n\n") if done.returncode == 0 else []:
        first, *files = block.strip().splitlines() or [""]
        if first.endswith("(VALID)"):
            found[first.partition(":")[0]] = [file.strip() for file in files]
    return found


def index_file(folder, target):
    return folder / INDEX / target.replace("/", "%")


def write_index(build, folder):
    """A file in FOLDER/reusable for each object of BUILD: its command, and the files it is made
    of."""
    shutil.rmtree(folder / INDEX, ignore_errors=True)
    (folder / INDEX).mkdir(parents=True)
    try:
        entries = json.loads((build / "compile_commands.json").read_text())
    except OSError:
        return
    dependencies = dependencies_of(build)
    for entry in entries:
        command = shlex.split(entry["command"])
        target = command[command.index("-o") + 1]
        needs = [name for name in dependencies.get(target, ()) if "cmake_pch" not in name]
        if needs and "cmake_pch" not in target and (build / target).is_file():
            index_file(folder, target).write_text(json.dumps([command, needs]))


def comparable(words):
    """The command without a launcher and the options that differ between copies."""
    while not words[0].endswith(("c++", "g++", "clang++", "cc", "gcc", "clang", "nvcc")):
        words = words[1:]
    kept = iter(words)
    return [word for word in kept if word not in ("-MD", "-MMD", "-Werror")
            and (word not in ("-MF", "-MT", "-MQ") or not next(kept))]


def is_same(mine, path, tree, source):
    """A file of CMake that includes the sources of a folder names their tree."""
    if not mine.is_file():
        return False
    if mine.parent.name == "Unity":
        return mine.read_text().replace(str(tree), str(source)) == path.read_text()
    return filecmp.cmp(mine, path, shallow=False)


def reusable(tree, source, build, target, command):
    """The object of BUILD and the files in TREE that it needs, or None."""
    try:
        known, dependencies = json.loads(index_file(Path.cwd(), target).read_text())
    except OSError:
        return None
    here = [word.replace(os.getcwd(), str(build)).replace(str(tree), str(source))
            for word in comparable(command)]
    if here != comparable(known) or "STEPLADDER_SOURCE_DIR" in " ".join(here):
        return None
    made = build / target
    needs = []
    for name in dependencies:
        path = Path(os.path.normpath(build / name))
        mine = tree / path.relative_to(source) if path.is_relative_to(source) else path
        if not path.is_file() or path.stat().st_mtime > made.stat().st_mtime or (
                mine != path and not is_same(mine, path, tree, source)):
            return None
        needs.append(str(mine))
    return made, needs


def main():
    tree, source, build = map(Path, sys.argv[1:4])
    command = sys.argv[4:]
    target = command[command.index("-o") + 1] if "-o" in command and "-MF" in command else None
    found = reusable(tree, source, build, target, command) if target else None
    if found is None:
        compiler_cache = [shutil.which("ccache")] if shutil.which("ccache") else []
        return subprocess.run([*compiler_cache, *command], check=False).returncode
    shutil.copyfile(found[0], target)
    needs = " \\\n ".join(found[1])
    Path(command[command.index("-MF") + 1]).write_text(f"{target}: {needs}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
