"""A compiler launcher that copies objects which another build folder has compiled already.

    reuse_objects.py COPY ORIGINAL BUILD compiler arguments…

COPY is a copy of the source tree ORIGINAL, and BUILD is a build folder of ORIGINAL. The object of a file that is
the same in both trees, and that BUILD compiled with the same command line, is copied. All others are compiled.
"""

import json
import os
import shlex
import shutil
import subprocess
import sys


def without_dependencies(command):
    """The command without the options that write a dependency file."""
    words = iter(command)
    kept = []
    for word in words:
        if word in ("-MF", "-MT", "-MQ"):
            next(words)
        elif word not in ("-MD", "-MMD"):
            kept.append(word)
    return kept


def compiled_object(copy, original, build, command):
    """The object that the other build folder has for this command, or None."""
    if "-c" not in command or "-o" not in command:
        return None
    here = os.getcwd()
    wanted = [word.replace(here, build).replace(copy, original) for word in without_dependencies(command)]
    source = command[command.index("-c") + 1]
    with open(os.path.join(build, "compile_commands.json")) as file:
        known = any(without_dependencies(shlex.split(entry["command"])) == wanted for entry in json.load(file))
    target = os.path.join(build, command[command.index("-o") + 1])
    if not known or not os.path.isfile(target):
        return None
    with open(source, "rb") as mine, open(wanted[wanted.index("-c") + 1], "rb") as theirs:
        return target if mine.read() == theirs.read() else None


def main():
    copy, original, build, *command = sys.argv[1:]
    found = compiled_object(copy, original, build, command)
    if found is None:
        sys.exit(subprocess.run(command, check=False).returncode)
    shutil.copy(found, command[command.index("-o") + 1])
    if "-MF" in command:
        with open(command[command.index("-MF") + 1], "w"):
            pass


main()
