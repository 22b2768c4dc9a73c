#!/usr/bin/env python3
"""Mutation testing of the code that decides whether a number is believed: verifier, statistics and
compare.

Small changes of the source ("mutants") are drawn at random from the files below. Each is compiled,
linked with the objects of a finished build, and the tests of that code run. A mutant is killed when
a test fails twice, crashes or hangs; otherwise it survives: a missing test, or a change that
changes nothing. Changes that leave the machine code as it was are left out, and so are those of
tests/mutants/equivalent.txt, which gives the reason of each, and lines that use the GPU of the
machine. The sources are never touched: mutants are compiled from build/mutants.

Exit status: 0 when at least 90 % are killed, 1 when fewer, 2 when the tests fail without a mutant.
"""

import argparse
import hashlib
import json
import os
import random
import re
import shlex
import shutil
import signal
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

import faults
import reuse_objects
from faults import ROOT, Broken

GOAL = 90  # per cent
EQUIVALENT = ROOT / "tests/mutants/equivalent.txt"
# Lines that run on a machine with a GPU alone; tests/simt has the others.
GPU = re.compile(r"\bdevice\(\)|\bClock::device\b")

# clang-format writes spaces around operators of two operands, and none around those of templates.
REPLACED = re.compile(r"(?<= )[-+*/<>=!&|]{1,2}(?= )|\b(?:true|false|std::min|std::max)\b|"
                      r"\bif \(|(?<=[ (])!(?=[\w(])|(?<![\w.'])(?<!e[-+])\d+(?:\.\d+)?(?![\w.'])")
REPLACEMENTS = {
    "<": ("<=", ">"), ">": (">=", "<"), "<=": ("<",), ">=": (">",), "==": ("!=",), "!=": ("==",),
    "&&": ("||",), "||": ("&&",), "+": ("-",), "-": ("+",), "*": ("/",), "/": ("*",),
    "+=": ("-=",), "-=": ("+=",), "true": ("false",), "false": ("true",), "!": ("",),
    "std::min": ("std::max",), "std::max": ("std::min",),
    "if (": ("if (true || ", "if (false && ")}
STATEMENT = re.compile(r"\s+(?!return\b|throw\b|using\b)[\w:.\->\[\]*+()]+(\(.*| [-+*/|&]?= .*|);")


class Check(NamedTuple):
    """A test: a program of the build, the sources that are compiled again where they include the
    mutant, and a command. The quickest is the first."""
    program: str
    units: tuple
    command: str


def tests(names, units):
    return Check("stepladder_tests", units,
                 f"{{program}} --gtest_brief=1 --gtest_fail_fast --gtest_filter={names}")


def mpi(program, ranks, units, arguments=""):
    return Check(program, units, f"mpirun --oversubscribe -np {ranks} {{program}}{arguments}")


MEASURE = ("harness/measure/*", "harness/results/comparison.cpp", "bench/compare.cpp",
           "tests/harness/measure/*", "tests/harness/results/comparison_test.cpp")
QUICK = ("harness/verify/*", "harness/problem/guarded_buffer.cpp",
         "tests/harness/verify/verifier_test.cpp", "tests/harness/adapters/filling_test.cpp",
         "tests/harness/problem/guarded_buffer_test.cpp")
VERIFIER = (*QUICK, "harness/adapters/matmul.cpp", "harness/adapters/max_pool.cpp",
            "harness/adapters/all_reduce.cpp", "harness/adapters/sgd_update.cpp",
            "tests/harness/adapters/*")
# Files, and the tests of their mutants, the quickest first.
GROUPS = {
    ("harness/measure/statistics.*", "harness/measure/noise.*", "harness/measure/measure.*",
     "harness/measure/counters.hpp", "harness/measure/drift.*", "harness/results/comparison.*",
     "bench/compare.cpp"): (
        tests("CounterValues.*:Summarize*:PairedRatio.*:Drift.*:Disturbance.*:Measured.*:"
              "MeasureRepeats.*:Noise*:Stat*:Energy.*", MEASURE),
        tests("Measure.*:*Neighbour*:Compare*", MEASURE),
        Check("stepladder", MEASURE, f"{sys.executable} -m pytest -q -x -p no:cacheprovider "
                                     "tests/cli/test_compare.py"),
        mpi("mpi_watch", 3, MEASURE, " loops_in_warm_up 2>&1 | grep -q 'in the rung ring'")),
    ("harness/verify/*.cpp", "harness/adapters/typed_case.hpp", "harness/adapters/filling.hpp",
     "harness/adapters/operand_block.hpp", "harness/problem/guarded_buffer.*"): (
        tests("Verifier*:Filling.*:GuardedBuffer.*", QUICK),
        tests("Verif*:Filling.*:BenchCheats.*", VERIFIER),
        mpi("all_reduce_mpi_test", 3, VERIFIER), mpi("sgd_update_mpi_test", 2, VERIFIER),
        mpi("matmul_mpi_test", 2, VERIFIER))}


class Mutant(NamedTuple):
    file: str
    line: int
    before: str
    after: str

    def key(self):
        return self.file, self.before.strip(), self.after.strip()


def changes(line):
    """The changed forms of a line: operators and constants replaced, conditions decided, statements
    left out. The compiler decides which of them are C++."""
    code = re.sub(r'"(\\.|[^"\\])*"', lambda text: "s" * len(text[0]), line.partition("//")[0])
    if not code.lstrip().startswith("#"):
        for match in REPLACED.finditer(code):
            old = match[0]
            others = REPLACEMENTS.get(old, ())
            if old[0].isdigit():
                others = (str(int(old) + 1), "0") if old.isdigit() else (f"1{old}",)
            for new in others:
                if new != old:
                    yield line[:match.start()] + new + line[match.end():]
        if STATEMENT.fullmatch(code.rstrip()) and code.count("(") == code.count(")"):
            yield code[:len(code) - len(code.lstrip())] + ";\n"


def lines_for_gpu(lines):
    """The numbers of lines that use the GPU of the machine, and of the blocks that they begin."""
    found, end = set(), None
    for number, line in enumerate(lines, 1):
        if end is None and GPU.search(line.partition("//")[0]):
            found.add(number)
            if line.rstrip().endswith("{"):
                end = line[:len(line) - len(line.lstrip())] + "}"
        elif end is not None:
            found.add(number)
            if line.startswith(end):
                end = None
    return found


def mutants_of(file):
    """The mutants of each line that has any."""
    lines = (ROOT / file).read_text().splitlines(keepends=True)
    gpu = lines_for_gpu(lines)
    found = [[Mutant(file, number, line, after) for after in changes(line)]
             for number, line in enumerate(lines, 1) if number not in gpu]
    return filter(None, found)


def drawn(files, seed):
    """All mutants in a random order in which lines take turns, so that a long line has no more."""
    dice = random.Random(seed)
    lines = [line for file in files for line in mutants_of(file)]
    for line in (dice.shuffle(lines), *lines)[1:]:
        dice.shuffle(line)
    while lines:
        yield from (line.pop() for line in lines)
        lines = [line for line in lines if line]


def known_equivalents():
    """The reasons of tests/mutants/equivalent.txt by (file, before, after)."""
    text = re.sub(r"^#.*\n", "", EQUIVALENT.read_text(), flags=re.MULTILINE)
    found = re.findall(r"^(\S+)\n- (.*)\n\+ (.*)\n  (\S.*)$", text, re.MULTILINE)
    if len(found) != len([block for block in re.split(r"\n\s*\n", text) if block.strip()]):
        raise Broken(f"{EQUIVALENT} holds an entry that is not file, - before, + after, reason")
    return {(file, before.strip(), after.strip()): reason for file, before, after, reason in found}


class Build:
    """Compiles what a mutant is in, and links it with the other objects of a finished build."""

    def __init__(self, build):
        self.build, self.folder = build, build / "mutants"
        self.needs = reuse_objects.dependencies_of(build)
        if not self.needs:
            raise Broken(f"{build} is not a build folder of Ninja")
        self.commands, self.links = {}, {}
        for entry in json.loads((build / "compile_commands.json").read_text()):
            words = shlex.split(entry["command"])
            source = os.path.relpath(entry["file"], ROOT)
            self.commands[words[words.index("-o") + 1]] = words, source
            if "/Unity/" in source:
                raise Broken(f"{build} compiles several files at once; build it by "
                             f"make test UNITY=OFF BUILD={build}")

    def link_words(self, program):
        if program not in self.links:
            _, output = faults.run(["ninja", "-t", "commands", program], self.build)
            line = output.strip().splitlines()[-1]
            if f" -o {program} " not in line:
                raise Broken(f"{self.build} has no program {program}")
            self.links[program] = shlex.split(line.split(" && ")[1])
        return self.links[program]

    def objects(self, check, file):
        """The objects of the program that are compiled again."""
        path = str(ROOT / file)
        return [word for word in self.link_words(check.program)
                if word in self.commands and path in self.needs.get(word, ())
                and any(fnmatch(self.commands[word][1], unit) for unit in check.units)]

    def compile(self, objects, file, text, folder):
        """The new objects by name, with `text` in place of a file. What is no C++ is Broken."""
        overlay = self.folder / "source"
        path = overlay / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

        def one(made):
            words, source = self.commands[made]
            first = next(i for i, word in enumerate(words) if word[0] == "-")
            words = [*words[:first], f"-I{overlay}", *words[first:], "-O1", "-w"]
            out = self.folder / folder / made.replace("/", "_")
            words[words.index("-o") + 1] = str(out)
            words[words.index("-c") + 1] = str(path if source == file else ROOT / source)
            status, output = faults.run(words, self.build, 600)
            if status != 0:
                raise Broken(f"{file} does not compile:\n{faults.last_lines(output)}")
            return made, out

        with ThreadPoolExecutor(min(2, os.cpu_count() or 1)) as pool:
            return dict(pool.map(one, objects))

    def link(self, name, new):
        """The program with new objects, which come first: their inline functions are taken."""
        words = [word for word in self.link_words(name) if word not in new]
        program = self.folder / name
        words[words.index("-o") + 1] = str(program)
        linker = ["-fuse-ld=lld"] if shutil.which("ld.lld") else []
        status, output = faults.run([words[0], *linker, *map(str, new.values()), *words[1:]],
                                    self.build, 300)
        if status != 0:
            raise Broken(f"{name} cannot be linked with a mutant:\n{faults.last_lines(output)}")
        return program


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


class Judge:
    def __init__(self, build):
        self.build, self.limits, self.clean = build, {}, {}

    def run(self, check, program, limit=None):
        return faults.run(
            check.command.format(program=program), ROOT, limit, STEPLADDER=str(program),
            OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMP_NUM_THREADS="2",
            PYTHONDONTWRITEBYTECODE="1", STEPLADDER_FINISHED_RUN=str(self.build.folder / "run"))

    def limit(self, check):
        """Seconds, from the time of the test with the program of the build, where it must pass."""
        if check not in self.limits:
            start = time.monotonic()
            status, output = self.run(check, self.build.build / check.program)
            if status != 0:
                raise Broken(f"without a mutant this fails:\n  {check.command}\n"
                             f"{faults.last_lines(output)}")
            self.limits[check] = 10 + 5 * (time.monotonic() - start)
        return self.limits[check]

    def clean_code(self, objects, file):
        missing = [made for made in objects if (made, file) not in self.clean]
        new = self.build.compile(missing, file, (ROOT / file).read_text(), "clean")
        self.clean |= {(made, file): digest(path) for made, path in new.items()}
        return [self.clean[made, file] for made in objects]

    def test(self, check, new):
        program, limit = self.build.link(check.program, new), self.limit(check)
        for _ in range(2):  # a neighbour may disturb a test that measures
            status, _ = self.run(check, program, limit)
            if status in (0, None):
                break
        return "SURVIVED" if status == 0 else "timed out" if status is None else "killed"

    def verdict(self, checks, mutant):
        """The verdict, and the test that killed the mutant."""
        lines = (ROOT / mutant.file).read_text().splitlines(keepends=True)
        lines[mutant.line - 1] = mutant.after
        new, verdict = {}, "same code"
        for check in checks:
            objects = self.build.objects(check, mutant.file)
            clean = self.clean_code(objects, mutant.file)
            missing = [made for made in objects if made not in new]
            try:
                new |= self.build.compile(missing, mutant.file, "".join(lines), "mutant")
            except Broken:
                return "did not compile", ""
            if [digest(new[made]) for made in objects] != clean:
                verdict = self.test(check, {made: new[made] for made in objects})
                if verdict != "SURVIVED":
                    return verdict, check.command
        return verdict, ""


def selected(globs):
    """The files that a glob names, with their tests."""
    paths = {path.relative_to(ROOT).as_posix(): checks for files, checks in GROUPS.items()
             for glob in files for path in sorted(ROOT.glob(glob))}
    found = {name: checks for name, checks in paths.items()
             if any(fnmatch(name, glob) for glob in globs)}
    if not found:
        raise Broken(f"no file is called {' or '.join(globs)}")
    return found


def report(counts, survivors):
    killed = counts["killed"] + counts["timed out"]
    judged = killed + len(survivors)
    for mutant in survivors:
        print(f"\nsurvived: {shown(mutant)}")
    print("\n" + ", ".join(f"{count} {what}" for what, count in sorted(counts.items())))
    score = 100 * killed / judged if judged else 100
    print(f"{killed} of {judged} mutants were killed: {score:.1f} %")
    return 0 if score >= GOAL else 1


def shown(mutant):
    file, before, after = mutant.key()
    return f"{file}:{mutant.line}\n    - {before}\n    + {after}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("files", nargs="*", default=["*"], help="globs of the files (all)")
    parser.add_argument("--mutants", type=int, default=200, help="how many are judged")
    parser.add_argument("--seed", type=int, default=1, help="of the draw")
    parser.add_argument("--survivors", action="store_true",
                        help="those that survived the last time, instead of a draw")
    parser.add_argument("--build", default="build", help="finished build folder (of make test)")
    options = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM):  # in the background too, where Ctrl-C is ignored
        signal.signal(number, signal.default_int_handler)
    build = Path(options.build).resolve()
    saved = build / "mutants/survivors.json"
    counts, survivors = Counter(), []
    try:
        for name in ("clean", "mutant"):
            (build / "mutants" / name).mkdir(parents=True, exist_ok=True)
        shutil.rmtree(build / "mutants/run", ignore_errors=True)  # of pytest, made without a mutant
        files, known, judge = selected(options.files), known_equivalents(), Judge(Build(build))
        for mutant in (drawn(files, options.seed) if not options.survivors else
                       [Mutant(*entry) for entry in json.loads(saved.read_text())
                        if entry[0] in files]):
            start = time.monotonic()
            verdict, test = ("equivalent", "") if mutant.key() in known else judge.verdict(
                files[mutant.file], mutant)
            counts[verdict] += 1
            if verdict == "SURVIVED":
                survivors.append(mutant)
            if verdict in ("SURVIVED", "killed", "timed out"):
                place = f"{mutant.file}:{mutant.line}" if test else shown(mutant)
                print(f"{verdict:9}  {time.monotonic() - start:5.1f} s  {place}  {test[-60:]}",
                      flush=True)
            if counts["killed"] + counts["timed out"] + len(survivors) >= options.mutants:
                break
    except KeyboardInterrupt:
        print("interrupted; so far:")
    except Broken as reason:
        print(reason, file=sys.stderr)
        return 2
    saved.write_text(json.dumps(survivors))
    return report(counts, survivors)


if __name__ == "__main__":
    sys.exit(main())
