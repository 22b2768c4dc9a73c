"""A compiler launcher that copies objects which another build folder has compiled already.

    reuse_objects.py TREE SOURCE BUILD compiler arguments…

TREE is a copy of the source tree SOURCE, and BUILD is a build folder of SOURCE (of Ninja). An
object is copied that BUILD compiled with the same command from files that are the same in both
trees. All others are compiled.
"""

import filecmp
import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path


def comparable(words):
    """The command without a launcher and the options that differ between copies."""
    while not words[0].endswith(("c++", "g++", "clang++", "cc", "gcc", "clang", "nvcc")):
        words = words[1:]
    kept = iter(words)
    return [word for word in kept if word not in ("-MD", "-MMD", "-Werror")
            and (word not in ("-MF", "-MT", "-MQ") or not next(kept))]


def known_command(target, build):
    """The words of the command that made the object, or None."""
    for entry in json.loads((build / "compile_commands.json").read_text()):
        if f" -o {target} " in entry["command"]:
            return shlex.split(entry["command"])
    return None


def needs_of(target, build):
    """The files of which the object was made, or none if they are not known."""
    done = subprocess.run(["ninja", "-t", "deps", target], cwd=build, capture_output=True,
                          text=True, check=False)
    first, *files = done.stdout.strip().splitlines() or [""]
    names = [file.strip() for file in files] if first.endswith("(VALID)") else []
    return [build / name for name in names if "cmake_pch" not in name]


def reusable(tree, source, build, target, command):
    """The object of BUILD and the files in TREE that it needs, or None."""
    made = build / target
    known = known_command(target, build) if made.is_file() and "cmake_pch" not in target else None
    if known is None:
        return None
    here = [word.replace(os.getcwd(), str(build)).replace(str(tree), str(source))
            for word in comparable(command)]
    if here != comparable(known) or "STEPLADDER_SOURCE_DIR" in " ".join(here):
        return None
    needs = []
    for path in needs_of(target, build):
        path = Path(os.path.normpath(path))
        mine = tree / path.relative_to(source) if path.is_relative_to(source) else path
        if not path.is_file() or path.stat().st_mtime > made.stat().st_mtime or (
                mine != path and not (mine.is_file() and filecmp.cmp(mine, path, shallow=False))):
            return None
        needs.append(str(mine))
    return (made, needs) if needs else None


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
