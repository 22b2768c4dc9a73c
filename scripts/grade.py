"""Grades one lab: what make grade calls.

    grade.py LAB [--file student.cpp | --rung NAME] [--student NAME] [--out FILE]
             [--program build/stepladder]

Compiles the stub and the student's file as plugins, verifies the student's, measures both in turns
with the reference rung, and prints the points with a hint. Points are the share of the way from the
stub to the reference, on a logarithmic scale: 1 for the stub, 10 from 90 % of the way on. A wrong
result, a crash or a cheat gets 0. Where the intervals leave the points open by more than two, the
machine was too noisy: "measure again", and no points.

Lab 10 has no times: the emulator counts the sectors of global memory that a kernel's warps move.

Exit status: 0 graded, 1 no points, 2 wrong arguments or a file that does not compile, 3 measure
again.
"""

import argparse
import csv
import fcntl
import getpass
import json
import math
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import runner

ROOT = Path(__file__).resolve().parents[1]
MOST = 10              # points
ENOUGH = 0.9           # of the way: all points
TOO_UNCERTAIN = 2      # points between the ends of the interval
BUDGETS = [0.3, 1.5]   # seconds a row; the second where the first left the points open
RANDOM_PROBLEMS = 40
COMPILE_LIMIT, VERIFY_LIMIT, MEASURE_LIMIT = 120, 180, 600  # seconds
Z = 1.96
# As the kernels of the program are built: docs/measuring.md, "Where code lies".
ALIGNED = ["-falign-functions=64", "-falign-loops=64"]
ISA = "(_sse42|_avx2|_avx512)?"


class NoPoints(Exception):
    """Why the solution gets none."""


class MeasureAgain(Exception):
    """Why the times say too little."""


def find_lab(text):
    labs = sorted(path.parent for path in (ROOT / "labs").glob("[0-9][0-9]-*/lab.json"))
    found = [lab for lab in labs if text in (lab.name, str(int(lab.name[:2])), lab.name[:2])]
    if not found:
        names = ", ".join(lab.name for lab in labs)
        raise runner.Refused(
            f"LAB={text}: expected a number from 1 to {len(labs)} or one of {names}")
    return found[0]


def compile_plugin(lab, description, source, name, folder):
    """The shared object; its rung has this name."""
    target = folder / f"lib{name}.so"
    run_compiler(lab, source, description.get("compiler"),
                 ["-fopenmp", "-shared", "-fPIC", "-Wall", *ALIGNED, *description["flags"],
                  f"-I{ROOT / 'bench'}", str(source.resolve()), "-o", str(target.resolve())])
    return target


def run_compiler(lab, source, compiler, options):
    command = [*shlex.split(compiler or os.environ.get("CXX", "c++")), "-std=c++20", *options]
    if shutil.which(command[0]) is None:
        raise runner.Refused(f"{lab.name} needs {command[0]}, which is not installed")
    done = run_limited(command, COMPILE_LIMIT)
    if done.returncode != 0:
        raise runner.Refused(f"{source} does not compile:\n{done.stderr.strip()}")


class Measurement:
    """The rows of one problem: stub, own solution, reference."""

    def __init__(self, rows, problem, own):
        self.problem = problem
        self.own = one_row(rows, own, NoPoints)
        self.stub = one_row(rows, "stub", runner.Refused)
        self.reference = one_row(rows, problem["reference"], runner.Refused)

    def logs(self):
        """Logarithms of the times and their standard errors, for stub, own, reference."""
        rows = [self.stub, self.own, self.reference]
        times = [math.log(float(row["median_s"])) for row in rows]
        errors = [math.log(float(row["ci_high_s"]) / float(row["ci_low_s"])) / (2 * Z)
                  for row in rows]
        return times, errors

    def way(self):
        """Share of the way from the stub to the reference: the value, and its standard error."""
        (stub, own, reference), (e_stub, e_own, e_reference) = self.logs()
        whole = stub - reference
        if whole <= Z * math.hypot(e_stub, e_reference):
            raise MeasureAgain(f"the reference {self.reference['variant']} was not measurably "
                               f"faster than the stub ({time_text(math.exp(stub))})")
        if self.own is self.reference:
            return 1.0, 0.0
        share = (stub - own) / whole
        # d share = ((1 - share) d stub - d own + share d reference) / whole
        return share, math.hypot((1 - share) * e_stub, e_own, share * e_reference) / whole

    def facts(self):
        share, error = self.way()
        return {"primitive": self.problem["primitive"], "shape": self.own["shape"],
                "direction": self.own["direction"], "reference": self.reference["variant"],
                "stub_s": float(self.stub["median_s"]), "own_s": float(self.own["median_s"]),
                "reference_s": float(self.reference["median_s"]), "way": round(share, 4),
                "way_low": round(share - Z * error, 4), "way_high": round(share + Z * error, 4),
                "percent_of_roof": float(self.own["percent_of_roof"] or 0) or None}


def one_row(rows, rung, error):
    """The fastest of the rung's builds, on the most threads. Raises `error` where it failed."""
    own = [row for row in rows if re.fullmatch(re.escape(rung) + ISA, row["variant"])]
    for row in own:
        if row["status"] == "failed":
            raise error(f"{row['variant']} failed on {row['shape']}: {row['reason']}")
    ok = [row for row in own if row["status"] == "ok"]
    if not ok:
        why = own[0]["reason"] if own else "it has no row"
        raise error(f"{rung} did not run: {why}")
    return min(ok, key=lambda row: (-int(row["threads"]), float(row["median_s"])))


def points_of(way):
    return 1 + (MOST - 1) * min(max(way / ENOUGH, 0), 1)


def time_text(seconds):
    for unit, size in (("s", 1), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def run_limited(command, timeout):
    """The ended process. Raises NoPoints where it does not end."""
    try:
        return subprocess.run([str(word) for word in command], text=True, errors="replace",
                              capture_output=True, check=False, timeout=timeout)
    except subprocess.TimeoutExpired as error:
        raise NoPoints(f"{Path(command[0]).name} did not end within {timeout} s") from error
    except OSError as error:
        raise runner.Refused(f"{command[0]}: {error.strerror}") from error


def left_out(said):
    """How many problems verify could not give to the variant: of a rung that is built for several
    instruction sets, to one of its builds."""
    found = re.search(r"(\d+) variants?: .* (\d+) unavailable", said)
    return int(found[2]) / int(found[1]) if found else 0


class Grader:
    def __init__(self, arguments):
        self.arguments = arguments
        self.lab = find_lab(arguments.lab)
        self.description = json.loads((self.lab / "lab.json").read_text())
        self.folder = Path(arguments.folder).resolve() / self.lab.name
        self.folder.mkdir(parents=True, exist_ok=True)
        # The lock of one grader at a time, held as long as the file is open.
        self.lock = open(self.folder / "lock", "w", encoding="utf-8")  # noqa: SIM115
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        self.own = arguments.rung or "student"
        self.counted = self.description.get("counted")
        self.stub = self.lab / ("stub.cu" if self.counted else "stub.cpp")
        self.plugins = []

    def compile(self):
        files = [("stub", self.stub)]
        if not self.arguments.rung:
            files.append(("student", self.students_file()))
        for name, source in files:
            plugin = compile_plugin(self.lab, self.description, source, name, self.folder)
            self.plugins += ["--plugin", plugin]

    def students_file(self):
        if self.arguments.file:
            file = Path(self.arguments.file)
            if not file.is_file():
                raise runner.Refused(f"FILE={file}: no such file")
            return file
        file = self.stub.with_stem("student")
        if not file.exists():
            shutil.copy(self.stub, file)
            print(f"{file.relative_to(ROOT)} is new, a copy of the stub: "
                  "change it, then grade again.")
        return file

    def command(self, name, problem, *options):
        ranks = self.description.get("ranks", 1)
        if ranks > 1:
            runner.allow_mpi_as_root()
        return [*(runner.mpirun(ranks) if ranks > 1 else []), self.arguments.program, name,
                problem["primitive"], *map(str, self.plugins), *map(str, options)]

    def threads(self):
        """By default the program takes one, and all that it may use."""
        return [] if self.description.get("threads") == "all" else ["--threads", 1]

    def verify(self):
        for problem in self.description["problems"]:
            done, stub = (self.verified(problem, variant) for variant in (self.own, "stub"))
            if done.returncode != 0:
                said = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
                wrong = [line for line in said if line.startswith("FAIL")]
                how = "the results are wrong" if wrong else \
                    f"verification ended with exit status {done.returncode}"
                raise NoPoints("\n  ".join([how + ":", *(wrong[:3] or said[-3:])]))
            if left_out(done.stdout) > left_out(stub.stdout):
                raise NoPoints("it does not support problems that the stub computes: "
                               f"stepladder_supports_{problem['primitive']} is too narrow")

    def verified(self, problem, variant):
        """The same problems for each variant, until enough are supported."""
        return run_limited(self.command("verify", problem, "--variant", variant, "--random",
                                        RANDOM_PROBLEMS, *self.threads()), VERIFY_LIMIT)

    def measure(self, problem, number, budget):
        out = self.folder / f"run-{number}"
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        # 20 s, measured once; ranks measure theirs together, which are other ones.
        ceilings = self.folder.parent / f"ceilings-{self.description.get('ranks', 1)}.json"
        if ceilings.exists():
            shutil.copy(ceilings, out / "ceilings.json")
        variants = ",".join(dict.fromkeys(["stub", self.own, problem["reference"]]))
        direction = ["--direction", problem["direction"]] if "direction" in problem else []
        done = run_limited(
            self.command("bench", problem, "--shape", problem["shape"], *direction,
                         "--variant", variants, *self.threads(), "--budget", budget,
                         "--quiet", "--resume", "--out", out), MEASURE_LIMIT)
        table = out / "summary.csv"
        if not table.exists():
            raise runner.Refused(f"{self.lab.name} could not be measured: {done.stderr.strip()}")
        if (out / "ceilings.json").exists():
            shutil.copy(out / "ceilings.json", ceilings.with_suffix(".new"))
            os.replace(ceilings.with_suffix(".new"), ceilings)
        with open(table, newline="", encoding="utf-8") as file:
            return Measurement(list(csv.DictReader(file)), problem, self.own)

    def sectors(self, source):
        """What the kernel moves. Raises NoPoints with what is wrong."""
        simt = ROOT / "tests/simt"
        newest = max(file.stat().st_mtime for file in simt.rglob("*.[ch]pp"))
        objects = []
        for name in ("multiprocessor", "fiber", "hopper"):
            objects.append(self.folder / f"{name}.o")
            if not objects[-1].exists() or objects[-1].stat().st_mtime < newest:
                self.compile_emulated(source, [simt / f"{name}.cpp", "-c", "-o", objects[-1]])
        kernel = self.folder / source.stem
        self.compile_emulated(source, [f'-DSOURCE="{source.resolve()}"', self.lab / "driver.cpp",
                                       *objects, "-o", kernel, "-lfmt"])
        done = run_limited([kernel, self.counted["size"]], VERIFY_LIMIT)
        found = re.fullmatch(r"sectors: (\d+)", done.stdout.strip())
        if done.returncode != 0 or not found:
            raise NoPoints(done.stdout.strip() or f"the kernel ended with status {done.returncode}")
        return int(found[1])

    def compile_emulated(self, source, options):
        run_compiler(self.lab, source, None,
                     ["-O1", "-w", f"-I{ROOT / 'tests/simt/include'}", f"-I{ROOT}",
                      f"-I{self.lab}", *map(str, options)])

    def count(self):
        if self.arguments.rung:
            raise runner.Refused(
                f"VARIANT={self.arguments.rung}: {self.lab.name} takes files alone")
        stub, own = self.sectors(self.stub), self.sectors(self.students_file())
        way = math.log(stub / own) / math.log(stub / self.counted["reference_sectors"])
        size = self.counted["size"]
        return [{"primitive": "matmul", "shape": f"{size}x{size}x{size}", "stub_sectors": stub,
                 "own_sectors": own, "reference_sectors": self.counted["reference_sectors"],
                 "way": round(way, 4)}], round(points_of(way), 1)

    def grade(self, budget):
        """The facts of each problem and the points. Raises MeasureAgain."""
        facts = [self.measure(problem, i + 1, budget).facts()
                 for i, problem in enumerate(self.description["problems"])]
        points = sum(points_of(fact["way"]) for fact in facts) / len(facts)
        # Intervals of several problems are independent.
        below, above = (
            math.hypot(*(points_of(fact[end]) - points_of(fact["way"]) for fact in facts))
            / len(facts) for end in ("way_low", "way_high"))
        if below + above > TOO_UNCERTAIN:
            raise MeasureAgain(
                f"the times leave {points - below:.1f} to {points + above:.1f} points open")
        return facts, round(points, 1)

    def hint(self, way):
        """The first where a third of the way is missing, and so on; nothing from 90 % on."""
        text = (self.lab / "README.md").read_text(encoding="utf-8")
        hints = re.findall(r"^\d\. ((?:.|\n(?!\d\.|\n))+)", text.partition("## Hints")[2], re.M)
        if way >= ENOUGH or not hints:
            return ""
        return " ".join(hints[min(int(max(way, 0) / ENOUGH * len(hints)), len(hints) - 1)].split())

    def result(self):
        """What the JSON file holds."""
        result = {"lab": self.lab.name, "title": self.description["title"], "of": MOST,
                  "name": self.arguments.student or user_name(), "handed_in": self.own,
                  "points": None, "problems": []}
        try:
            if self.counted:
                result["problems"], result["points"] = self.count()
                return result | {"verdict": "graded"}
            self.compile()
            self.verify()
            for budget in BUDGETS:
                try:
                    result["problems"], result["points"] = self.grade(budget)
                    result["verdict"] = "graded"
                    result.pop("reason", None)
                    break
                except MeasureAgain as again:
                    result["verdict"], result["reason"] = "measure again", str(again)
        except NoPoints as why:
            result |= {"verdict": "no points", "points": 0, "reason": str(why)}
        return result


def show(result, hint):
    print(f"\nLab {result['lab'][:2].lstrip('0')}, {result['title']}: ", end="")
    if result["verdict"] == "measure again":
        print(f"measure again. The machine was too busy: {result['reason']}.\n"
              "Close what else runs. Nothing is lost.")
        return
    if result["verdict"] == "no points":
        print(f"0 of {result['of']} points\n  {result['reason']}")
        return
    print(f"{result['points']:g} of {result['of']} points")
    for fact in result["problems"]:
        way = f"{max(fact['way'], 0):.0%}"
        if "own_sectors" in fact:
            print(f"  {fact['own_sectors']:,} sectors of 32 bytes in global memory; "
                  f"the stub {fact['stub_sectors']:,},\n"
                  f"    tiles of 32 x 32 {fact['reference_sectors']:,}: {way} of the way")
            continue
        faster = fact["stub_s"] / fact["own_s"]
        roof = f", {fact['percent_of_roof']:.0f} % of the roof" if fact["percent_of_roof"] else ""
        print(f"  {fact['primitive']} {fact['shape']}: {time_text(fact['own_s'])}{roof}; "
              f"{faster:.2f}x as fast as the stub ({time_text(fact['stub_s'])}),\n"
              f"    {way} of the way to {fact['reference']} ({time_text(fact['reference_s'])})")
    if hint:
        print(f"  Hint: {hint}")


def user_name():
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container without such a user
        return str(os.getuid())


def parse():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lab")
    parser.add_argument("--file")
    parser.add_argument("--rung")
    parser.add_argument("--student")
    parser.add_argument("--out")
    parser.add_argument("--program", default="build/stepladder")
    parser.add_argument("--folder", default=str(ROOT / "build/labs"))
    return parser.parse_args()


def grade():
    arguments = parse()
    grader = Grader(arguments)
    result = grader.result()
    least = min((fact["way"] for fact in result["problems"]), default=0)
    show(result, grader.hint(least))
    out = Path(arguments.out or grader.folder / "grade.json")
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return {"graded": 0, "no points": 1, "measure again": 3}[result["verdict"]]


if __name__ == "__main__":
    runner.main("grade", grade)
