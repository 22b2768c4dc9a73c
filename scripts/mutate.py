#!/usr/bin/env python3
"""Mutation testing of the code that decides whether a number is believed: verifier, statistics and compare.

Small changes of the source ("mutants", by the rules of universalmutator) are drawn at random from the files below.
Each is compiled, linked with the objects of a finished build, and the tests of that code run. A mutant is killed when
a test fails twice, crashes or hangs; otherwise it survives: a missing test, or a change that changes nothing. Changes
that leave the machine code as it was are left out, and so are those of tests/mutants/equivalent.txt, which gives the
reason of each, and lines that use the GPU of the machine. The sources are never touched: mutants are compiled from
build/mutants.

Exit status: 0 when at least 90 % are killed, 1 when fewer, 2 when the tests fail without a mutant.
"""

import argparse
import contextlib
import fcntl
import fnmatch
import hashlib
import io
import json
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import faults
from faults import ROOT, Broken

RULES = ["universal.rules", "c_like.rules", "cpp.rules"]
GOAL = 90  # per cent
EQUIVALENT = ROOT / "tests/mutants/equivalent.txt"
GPU = re.compile(r"\bdevice\(\)|\bClock::device\b")  # lines that run on a machine with a GPU; tests/simt has the others
MPI = "mpirun --oversubscribe -np {} "
PYTEST = f"{sys.executable} -m pytest -q -x -p no:cacheprovider tests/cli/"


class Group:
    """Files, the sources that are compiled again where they include one, and the tests, the quickest first.

    `first` are sources that the first test is tried with alone where templates are in several. A test is a program of
    the build, the sources of it that are needed (all without), and a command.
    """

    def __init__(self, files, units, checks, first=()):
        self.files, self.units, self.checks, self.first = files, units, checks, first


def tests(names, sources):
    return "stepladder_tests", sources, f"{{program}} --gtest_brief=1 --gtest_fail_fast --gtest_filter={names}"


MEASURE_TESTS = ["tests/harness/measure/*", "tests/harness/results/comparison_test.cpp"]
VERIFIER_TESTS = ["tests/harness/verify/v*", "tests/harness/adapters/*", "tests/harness/problem/guarded_buffer_test.cpp"]
GROUPS = [
    Group(["harness/measure/statistics.*", "harness/measure/noise.*", "harness/measure/measure.*",
           "harness/measure/counters.hpp"],
          ["harness/measure/*", "harness/results/comparison.cpp", "tests/*"],
          [tests("CounterValues.*:Summarize.*:PairedRatio.*:Drift.*:Disturbance.*:Measured.*:MeasureRepeats.*:NoiseTally.*:NoiseProcStat.*",
                 MEASURE_TESTS),
           tests("Stat*:SummarizeVisits.*:Energy.*:Noise*", MEASURE_TESTS), tests("Measure.*:*Neighbour*:Compare.*", MEASURE_TESTS),
           ("mpi_watch", None, "STEPLADDER_RANK_TIMEOUT=1 " + MPI.format(3) +
            "{program} loops_in_warm_up 2>&1 | grep -q 'in the rung ring'")]),
    Group(["harness/measure/drift.*", "harness/results/comparison.*", "bench/compare.cpp"],
          ["harness/measure/drift.cpp", "harness/results/comparison.cpp", "bench/compare.cpp", "tests/*"],
          [tests("Drift.*:Compare*", MEASURE_TESTS), ("stepladder", None, PYTEST + "test_compare.py")]),
    Group(["harness/verify/*.cpp", "harness/adapters/typed_case.hpp", "harness/adapters/filling.hpp",
           "harness/adapters/operand_block.hpp", "harness/problem/guarded_buffer.*"],
          ["harness/verify/*", "harness/problem/guarded_buffer.cpp", "harness/adapters/matmul.cpp",
           "harness/adapters/max_pool.cpp", "harness/adapters/all_reduce.cpp", "harness/adapters/sgd_update.cpp",
           "tests/harness/verify/verifier_test.cpp", "tests/harness/problem/guarded_buffer_test.cpp",
           "tests/harness/adapters/*"],
          [tests("Verifier*:Verified.*:Filling.*:GuardedBuffer.*", VERIFIER_TESTS), tests("Verif*", VERIFIER_TESTS),
           ("all_reduce_mpi_test", None, MPI.format(3) + "{program}"),
           ("sgd_update_mpi_test", None, MPI.format(2) + "{program}"),
           ("matmul_mpi_test", None, MPI.format(2) + "{program}")],
          first=["tests/harness/verify/verifier_test.cpp", "tests/harness/adapters/filling_test.cpp",
                 "tests/harness/problem/guarded_buffer_test.cpp"]),
]


class Mutant:
    def __init__(self, file, line, before, after):
        self.file, self.line, self.before, self.after = file, line, before, after

    def texts(self):
        return self.before.strip(), " ⏎ ".join(part.strip() for part in self.after.strip().split("\n"))

    def key(self):
        return (self.file, *self.texts())

    def __str__(self):
        before, after = self.texts()
        return f"{self.file}:{self.line}\n    - {before}\n    + {after}"


def mutants_of(file):
    from universalmutator import mutator  # pylint: disable=import-outside-toplevel
    lines = (ROOT / file).read_text().splitlines(keepends=True)
    with contextlib.redirect_stdout(io.StringIO()):
        found = mutator.mutants_regexp(lines, RULES, ignorePatterns=[])
    gpu = lines_for_gpu(lines)
    return [Mutant(file, line, lines[line - 1], after) for line, after, *_ in found
            if line not in gpu and may_compile(lines[line - 1], after) and not continues_anyway(lines, line, after)
            and not is_outside_loops(lines, line, after)]


def indent(line):
    return len(line) - len(line.lstrip())


def is_outside_loops(lines, line, after):
    """Whether `break` or `continue` was inserted where no loop is, which no compiler takes."""
    if not re.search(r"\n\s*(break|continue);\s*$", after):
        return False
    least = indent(lines[line - 1]) + lines[line - 1].rstrip().endswith("{")
    for text in reversed(lines[:line]):
        if text.strip() and indent(text) < least:
            least = indent(text)
            if re.match(r"\s*(for|while|do|switch)\b", text):
                return False
    return True


def lines_for_gpu(lines):
    """The numbers of lines that use the GPU of the machine, and of the blocks that they begin."""
    found, end = set(), None
    for number, line in enumerate(lines, 1):
        if end is None and GPU.search(line.partition("//")[0]):
            found.add(number)
            if line.rstrip().endswith("{"):
                end = line[:indent(line)] + "}"
        elif end is not None:
            found.add(number)
            if line.startswith(end):
                end = None
    return found


def continues_anyway(lines, line, after):
    """Whether `continue` was inserted at the end of the body of a loop, where it changes nothing.

    clang-format puts the bracket that ends the body below the beginning of the line that has the loop.
    """
    end = lines[line].rstrip() if line < len(lines) else ""
    if not re.search(r"\n\s*continue;\s*$", after) or end.strip() != "}":
        return False
    opening = (text for text in reversed(lines[:line]) if text.strip() and indent(text) < len(end))
    return re.match(r"\s*(for|while) \(", next(opening, "")) is not None


def may_compile(before, after):
    """False for most changes that no compiler takes; the compiler decides about the rest.

    clang-format writes spaces around operators of two operands, and none around brackets of templates.
    """
    code = before.partition("//")[0].strip()
    if not code or after.strip() in ("", "break;", "continue;"):
        return False
    if "\n" in after.strip():  # an inserted statement
        return code[-1] == ";" or (code[-1] == "{" and re.search(r"\b(for|while|if|else)\b", code) is not None)
    if after.lstrip().startswith("/*"):
        return all(code.count(left) == code.count(right) for left, right in ("()", "{}")) and not re.fullmatch(
            r"(public|protected|private):|#pragma once", code)
    if re.search(r"[=!<>]==|std::(min|max) \(", after):  # their arguments exchanged give the same value
        return False
    at = len(os.path.commonprefix([before, after]))
    at -= before[at - 1:at] in ("<", ">") and after[at:at + 1] == "="
    previous, changed = before[at - 1:at], before[at:at + 1]
    if changed and changed in "<>&*":
        return re.match(r"(<=?|>=?|&&?|\*) ", before[at:]) is not None and previous == " "
    return not ((changed.isalnum() or changed == "_") and (previous.isalpha() or previous == "_"))  # within a name


def drawn(files, seed):
    """All mutants in a random order in which lines take turns: a long line has no more at first than a short one."""
    by_line = {}
    for file in files:
        for mutant in mutants_of(file):
            by_line.setdefault((file, mutant.line), []).append(mutant)
    dice = random.Random(seed)
    lines = list(by_line)
    dice.shuffle(lines)
    for line in lines:
        dice.shuffle(by_line[line])
    while lines:
        for line in lines:
            yield by_line[line].pop()
        lines = [line for line in lines if by_line[line]]


def known_equivalents():
    """The reasons of tests/mutants/equivalent.txt by (file, before, after)."""
    text = re.sub(r"^#.*\n", "", EQUIVALENT.read_text(), flags=re.MULTILINE)
    found = re.findall(r"^(\S+)\n- (.*)\n\+ (.*)\n  (\S.*)$", text, re.MULTILINE)
    if len(found) != len([block for block in re.split(r"\n\s*\n", text) if block.strip()]):
        raise Broken(f"{EQUIVALENT} holds an entry that is not file, - before, + after, reason")
    return {(file, before.strip(), after.strip()): reason for file, before, after, reason in found}


class Builder:
    """Compiles mutants, and links them with the objects of a finished build."""

    def __init__(self, build, folder):
        self.build, self.folder, self.overlay = build, folder, folder / "source"
        if faults.cache_of(build).get("CMAKE_GENERATOR") != "Ninja":
            raise Broken(f"{build} is not a build folder of Ninja")
        self.commands = {}
        for entry in json.loads((build / "compile_commands.json").read_text()):
            words = shlex.split(entry["command"])
            self.commands[words[words.index("-o") + 1]] = words, os.path.relpath(entry["file"], ROOT)
        self.needs = {made: {os.path.relpath(build / file, ROOT) for file in files}
                      for made, files in faults.dependencies_of(build).items()}
        self.headers, self.links, self.clean, self.seen = {}, {}, {}, {}
        self.mutant, self.made, self.linker = None, {}, ["-fuse-ld=lld"] if shutil.which("ld.lld") else []

    def link_words(self, program):
        if program not in self.links:
            status, output = faults.run(["ninja", "-t", "commands", program], self.build)
            line = [line for line in output.splitlines() if f" -o {program} " in line or f"/{program} " in line]
            if status != 0 or not line:
                raise Broken(f"{self.build} has no program {program}")
            self.links[program] = shlex.split(line[-1].split(" && ")[1])
        return self.links[program]

    def objects(self, group, file, check):
        """The objects of the program that are linked, and those of them that the mutated file is in."""
        program, sources, _ = check
        linked, again = [], []
        for word in self.link_words(program):
            if word not in self.commands:
                continue
            source = self.commands[word][1]
            if source.startswith("tests/") and sources and not any(fnmatch.fnmatch(source, glob) for glob in sources):
                continue
            linked.append(word)
            if file in self.needs.get(word, ()) and any(fnmatch.fnmatch(source, glob) for glob in group.units):
                again.append(word)
        return linked, again

    def command(self, made, out, file=None):
        """Compiles the source of an object at -O1 with `file` from the overlay."""
        words, source = self.commands[made]
        while not words[0].endswith(("c++", "g++", "clang++")):
            words = words[1:]  # a launcher
        words = [word for word in words if word not in ("-Werror", "-O3", "-Wall", "-Wextra")]
        if "-include" in words:
            at = words.index("-include") + 1
            words[at] = self.header(words[at], words)
        words[words.index("-o") + 1] = str(out)
        words[words.index("-c") + 1] = str((self.overlay if source == file else ROOT) / source)
        return [words[0], "-O1", "-w", "-fmax-errors=1", f"-I{self.overlay}", *words[1:]]

    def header(self, header, words):
        if header not in self.headers:
            copy = self.folder / f"header{len(self.headers)}" / "cmake_pch.hxx"
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(header, copy)
            words = words[:words.index("-include")] + words[words.index("-include") + 2:]
            words = words[:words.index("-o")]
            status, output = faults.run([words[0], "-O1", "-w", *words[1:], "-x", "c++-header", str(copy), "-o",
                                         f"{copy}.gch"], self.build)
            if status != 0:
                raise Broken(f"the header does not compile:\n{faults.last_lines(output)}")
            self.headers[header] = str(copy)
        return self.headers[header]

    def write(self, file, text):
        path = self.overlay / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def compiled(self, objects, file, folder):
        """The new objects by their names, with None for one that does not compile."""
        paths = {made: folder / made.replace("/", "_") for made in objects}
        commands = [(made, self.command(made, path, file)) for made, path in paths.items()]
        failed = []

        def run(entry):
            made, command = entry
            if failed:  # one is enough
                return
            status, output = faults.run(command, self.build, 300)
            if status != 0:
                paths[made] = None
                failed.append(f"{made} does not compile:\n{faults.last_lines(output)}")

        with ThreadPoolExecutor(min(2, os.cpu_count() or 1)) as pool:
            list(pool.map(run, commands))
        if failed and folder.name == "clean":
            raise Broken(failed[0])
        return paths

    def digests_of_clean(self, objects, file):
        missing = [made for made in objects if (made, file) not in self.clean]
        for made, path in self.compiled(missing, file, self.folder / "clean").items():
            self.clean[made, file] = digest(path)
        return [self.clean[made, file] for made in objects]

    def compile(self, file, text, objects):
        """The new objects and their digests, or why the mutant does not count."""
        self.write(file, (ROOT / file).read_text())
        clean = self.digests_of_clean(objects, file)
        self.write(file, text)
        try:
            if self.mutant != (file, text):
                self.mutant, self.made = (file, text), {}
            self.made.update(self.compiled([made for made in objects if made not in self.made], file,
                                           self.folder / "mutant"))
        finally:
            (self.overlay / file).unlink()
        new = {made: self.made[made] for made in objects}
        if None in new.values():
            return "did not compile", None
        digests = [digest(path) for path in new.values()]
        if digests == clean:
            return "same code", None
        return new, (file, *digests)

    def link(self, check, linked, new):
        program = self.folder / "mutant" / check[0]
        words, objects = self.link_words(check[0]), set(linked)
        command = []
        for word in words:
            if word in new:
                command.append(str(new[word]))
            elif word not in self.commands or word in objects:
                command.append(word)
        command[command.index("-o") + 1] = str(program)
        # New objects come first: their copies of inline functions are taken.
        front = [str(path) for made, path in new.items() if made in objects]
        command = [command[0], *self.linker, *front, *(word for word in command[1:] if word not in front)]
        status, _ = faults.run(command, self.build, 300)
        return program if status == 0 else None


class Judge:
    def __init__(self, builder):
        self.builder, self.limits = builder, {}
        self.variables = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMP_NUM_THREADS": "2",
                          "PYTHONDONTWRITEBYTECODE": "1", "STEPLADDER_FINISHED_RUN": str(builder.folder / "run")}

    def run_check(self, check, program, limit=None):
        return faults.run(check[2].format(program=program), ROOT, limit, STEPLADDER=str(program), **self.variables)

    def limit(self, check):
        """Seconds, from the time that the test takes with the program of the build, where it must pass."""
        if check not in self.limits:
            start = time.monotonic()
            program = self.builder.build / check[0]
            status, output = self.run_check(check, program)
            if status != 0:
                raise Broken(f"without a mutant this fails:\n  {check[2]}\n{faults.last_lines(output)}")
            self.limits[check] = 10 + 5 * (time.monotonic() - start)
        return self.limits[check]

    def verdict(self, group, mutant):
        plans = [(check, *self.builder.objects(group, mutant.file, check)) for check in map(freeze, group.checks)]
        again = list(dict.fromkeys(made for _, _, objects in plans for made in objects))
        if not again:
            raise Broken(f"{mutant.file} is in no program of its tests")
        first = [made for made in again if self.builder.commands[made][1] in group.first]
        if first and len(again) > len(first):
            verdict, detail = self.stage(mutant, first, plans[:1], is_last=False)
            if verdict not in ("SURVIVED", "same code"):
                return verdict, detail
        return self.stage(mutant, again, plans)

    def stage(self, mutant, again, plans, is_last=True):
        lines = (ROOT / mutant.file).read_text().splitlines(keepends=True)
        lines[mutant.line - 1] = mutant.after
        new, code = self.builder.compile(mutant.file, "".join(lines), again)
        if isinstance(new, str):
            return new, ""
        if code in self.builder.seen:
            known = self.builder.seen[code]
            return ("SURVIVED" if known == "SURVIVED" and not is_last else "same as another"), ""
        verdict, detail = self.tested(new, plans)
        self.builder.seen[code] = verdict
        return verdict, detail

    def tested(self, new, plans):
        kind, program = None, None
        for check, linked, objects in plans:
            if not any(made in new for made in objects):
                continue
            if kind != check[:2]:
                kind, program = check[:2], self.builder.link(check, linked, new)
            if program is None:
                return "did not compile", ""
            for _ in range(2):  # a neighbour may disturb a test that measures
                status, _ = self.run_check(check, program, self.limit(check))
                if status in (0, None):
                    break
            if status is None:
                return "timed out", check[2]
            if status != 0:
                return "killed", check[2]
        return "SURVIVED", ""


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def freeze(check):
    return check[0], tuple(check[1]) if check[1] else None, check[2]


class Lock:
    """A file that others of this machine may wait for; held for about a minute at a time."""

    def __init__(self, path):
        self.file = open(path, "a", encoding="utf-8") if path else None  # pylint: disable=consider-using-with
        self.since = None

    def hold(self):
        if self.file and self.since is not None and time.monotonic() - self.since > 50:
            fcntl.flock(self.file, fcntl.LOCK_UN)
            time.sleep(0.1)
            self.since = None
        if self.file and self.since is None:
            fcntl.flock(self.file, fcntl.LOCK_EX)
            self.since = time.monotonic()


def selected(globs):
    status = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    names = status.stdout.splitlines()
    found = {}
    for group in GROUPS:
        for name in names:
            if any(fnmatch.fnmatch(name, glob) for glob in group.files) and any(fnmatch.fnmatch(name, g) for g in globs):
                found[name] = group
    if not found:
        raise Broken(f"no file is called {' or '.join(globs)}")
    return found


def candidates(files, options, survivors):
    if not options.survivors:
        return drawn(list(files), options.seed)
    return [Mutant(*entry) for entry in json.loads(survivors.read_text()) if entry[0] in files]


def report(counts, survivors, known):
    killed = counts["killed"] + counts["timed out"]
    judged = killed + len(survivors)
    for mutant in survivors:
        print(f"\nsurvived: {mutant}")
    if known:
        print("\nequivalent, by tests/mutants/equivalent.txt:", len(known))
    print("\n" + ", ".join(f"{count} {what}" for what, count in sorted(counts.items())))
    score = 100 * killed / judged if judged else 100
    print(f"{killed} of {judged} mutants were killed: {score:.1f} %")
    return 0 if score >= GOAL else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", default=["*"], help="globs of the files (all of verifier, statistics, compare)")
    parser.add_argument("--mutants", type=int, default=200, help="how many are judged")
    parser.add_argument("--seed", type=int, default=1, help="of the draw")
    parser.add_argument("--survivors", action="store_true", help="those that survived the last time, instead of a draw")
    parser.add_argument("--build", default="build", help="finished build folder (of make test)")
    parser.add_argument("--lock", help="file that is locked while a mutant is judged")
    options = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM):  # in the background too, where Ctrl-C is ignored
        signal.signal(number, signal.default_int_handler)
    build = Path(options.build).resolve()
    folder = build / "mutants"
    saved = folder / "survivors.json"
    counts, survivors, used, lock = Counter(), [], [], Lock(options.lock)
    try:
        for name in ("clean", "mutant"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        shutil.rmtree(folder / "run", ignore_errors=True)  # of pytest, made without a mutant
        files, known = selected(options.files), known_equivalents()
        judge = Judge(Builder(build, folder))
        for mutant in candidates(files, options, saved):
            if mutant.key() in known:
                used.append(mutant.key())
                counts["equivalent"] += 1
                continue
            lock.hold()
            start = time.monotonic()
            verdict, detail = judge.verdict(files[mutant.file], mutant)
            seconds = time.monotonic() - start
            counts[verdict] += 1
            if verdict == "SURVIVED":
                survivors.append(mutant)
            if verdict in ("SURVIVED", "killed", "timed out"):
                print(f"{verdict:9}  {seconds:5.1f} s  {mutant.file}:{mutant.line}  {detail[-60:]}", flush=True)
            if verdict == "SURVIVED":
                print(str(mutant).partition("\n")[2], flush=True)
            if counts["killed"] + counts["timed out"] + len(survivors) >= options.mutants:
                break
    except KeyboardInterrupt:
        print("interrupted; so far:")
    except Broken as reason:
        print(reason, file=sys.stderr)
        return 2
    saved.write_text(json.dumps([[m.file, m.line, m.before, m.after] for m in survivors]))
    return report(counts, survivors, used)


if __name__ == "__main__":
    sys.exit(main())
