"""Measures all-reduce in other communication libraries and in stepladder, in turns, on the same
sizes, ranks and buffers.

A round runs each library once over all sizes, in a process group of its own, and the next round
begins with another library: drift of the machine affects all equally. Written after each
measurement, to OUT:

    peers_all_reduce.csv          medians and 95 % intervals over the repetitions of all rounds;
                                  what does not run is a row with status and reason
    peers_all_reduce_samples.csv  every repetition
    columns.json                  names and types of the columns
    environment.json              machine and commit, unless OUT has one of its own
"""

import argparse
import contextlib
import csv
import os
import re
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from shared import (
    interval,
    last_line,
    machine_of,
    write_columns,
    write_environment,
    write_rows,
)

HERE = Path(__file__).resolve().parent
SOURCE = HERE / "all_reduce_mpi.c"
COLUMNS = {
    "peers_all_reduce": {
        "library": "text", "version": "text", "ranks": "integer", "count": "integer",
        "bytes": "integer", "median_s": "number", "ci_low_s": "number", "ci_high_s": "number",
        "repetitions": "integer", "verified": "text", "status": "text", "reason": "text",
        "command": "text"},
    "peers_all_reduce_samples": {
        "library": "text", "count": "integer", "round": "integer", "iterations": "integer",
        "seconds": "number"},
}
FLOAT = 4  # bytes
MOST_MPI_COUNT = 2**31 - 1


class Unavailable(Exception):
    """The reason that a library cannot be measured."""


@dataclass
class Library:
    name: str
    compile: list[list[str]] = field(default_factory=list)  # commands
    run: list[str] = field(default_factory=list)            # the launcher and the program
    variables: dict[str, str] = field(default_factory=dict)  # may name others: $PATH
    unavailable: str = ""

    def command(self, arguments):
        """For a shell in the root of the project."""
        assignments = [f'{name}="{value}"' if "$" in value else shlex.quote(f"{name}={value}")
                       for name, value in self.variables.items()]
        text = " ".join([*(["env"] if assignments else []), *assignments,
                         shlex.join([*self.run, *map(str, arguments)])])
        return text.replace(f"{Path.cwd()}/", "")

    def environment(self):
        return os.environ | {name: os.path.expandvars(value)
                             for name, value in self.variables.items()}


def libraries(folder, build, ranks, cores):
    """All libraries, those that are not installed with the reason. `folder`: of the packages."""
    oversubscribed = ranks > cores
    openmpi = ["-np", ranks, *(["--oversubscribe"] if oversubscribed else ["--bind-to", "core"])]
    mpich = ["-np", ranks, *([] if oversubscribed else ["-bind-to", "core"])]
    root = as_root()

    def compiled(name, compiler, launcher, options, variables, reason):
        program = build / re.sub(r"\W+", "_", name.lower())
        if shutil.which(compiler) is None or shutil.which(launcher) is None:
            return Library(name, unavailable=reason)
        return Library(name, [[compiler, "-O3", str(SOURCE), "-o", str(program)]],
                       [launcher, *map(str, options), str(program)], variables)

    def packaged(name, sub, launcher, options, variables):
        at = folder / sub
        return compiled(name, str(at / "bin/mpicc"), str(at / "bin" / launcher), options,
                        variables(at), why_not_installed(at))

    def system(name, suffix, options, variables, package):
        return compiled(name, f"mpicc.{suffix}", f"mpirun.{suffix}", options, variables,
                        f"not installed (Debian: {package})")

    pinned = {"I_MPI_PIN": "0" if oversubscribed else "1", "I_MPI_FABRICS": "shm"}
    all_libraries = [
        system("Open MPI (system)", "openmpi", openmpi, root, "openmpi-bin libopenmpi-dev"),
        packaged("Open MPI 5", "openmpi", "mpirun", openmpi, lambda at: root | {
            "OPAL_PREFIX": str(at), "PATH": f"{at / 'bin'}:$PATH"}),
        system("MPICH (system)", "mpich", mpich, {}, "mpich libmpich-dev"),
        packaged("MPICH 5", "mpich", "mpirun", mpich, lambda at: {}),
        packaged("Intel MPI", "intel", "mpiexec.hydra", ["-n", ranks],
                 lambda at: pinned | {"I_MPI_ROOT": str(at)}),
    ]

    at = folder / "oneccl"
    oneccl = Library("oneCCL", unavailable=why_not_installed(at))
    if (at / "lib/libccl.so").exists():
        program, main = build / "oneccl", build / "oneccl_main.o"
        oneccl = Library(
            "oneCCL",
            [["gcc", "-O3", "-DONECCL", "-c", f"-I{at / 'include'}", str(SOURCE), "-o", str(main)],
             ["g++", "-O3", "-std=c++17", f"-I{at / 'include'}",
              str(HERE / "all_reduce_oneccl.cpp"), str(main), f"-L{at / 'lib'}", "-lccl", "-lmpi",
              f"-Wl,-rpath,{at / 'lib'}", "-o", str(program)]],
            [str(at / "bin/mpiexec.hydra"), "-n", str(ranks), str(program)],
            pinned | {"I_MPI_ROOT": str(at), "CCL_ROOT": str(at), "CCL_ATL_TRANSPORT": "mpi",
                      "CCL_LOG_LEVEL": "error", "LD_LIBRARY_PATH": str(at / "lib")})
    python = folder.parent / "bin/python"
    gloo = Library("gloo", unavailable=why_not_installed(folder.parent))
    if python.exists() and not gloo_reason(python):
        gloo = Library("gloo", [], [str(python), str(HERE / "all_reduce_gloo.py"), str(ranks)],
                       {"GLOO_SOCKET_IFNAME": "lo"})
    return [*all_libraries, oneccl, gloo]


def why_not_installed(folder):
    """What scripts/run_peers.py wrote down."""
    try:
        return (folder / "unavailable").read_text().strip()
    except OSError:
        return f"not installed in {folder} (scripts/run_peers.py installs it)"


def gloo_reason(python):
    code = "import torch.distributed as d; assert d.is_gloo_available(), 'built without gloo'"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True)
    return "" if done.returncode == 0 else last_line(done.stderr)


def build_library(library):
    """Compiles its program; throws Unavailable."""
    if library.unavailable:
        raise Unavailable(library.unavailable)
    for command in library.compile:
        done = subprocess.run(command, env=library.environment(), capture_output=True,
                              text=True)
        if done.returncode != 0:
            raise Unavailable(f"does not compile: {last_line(done.stderr)}")


def parse(text):
    """Version, and per count: verified and the repetitions, from the output of a program."""
    version, results = "", {}
    for line in text.splitlines():
        fields = line.split(",")
        if fields[0] == "version" and len(fields) >= 3:
            version = fields[2]
        elif len(fields) == 4 and fields[0].isdigit():
            seconds = [float(s) for s in fields[3].split(";")]
            results[int(fields[0])] = (fields[1] == "yes", int(fields[2]), seconds)
    return version, results


def short_version(text):
    """'Open MPI v4.1.4  package: …' -> 4.1.4, 'gloo in torch 2.5' -> torch 2.5."""
    found = re.search(r"(torch )?\d+(\.\d+)+", text)
    return found.group(0) if found else text.strip()[:40]


def end(process):
    """Ends a program and the ranks that it has started, which share its session; a launcher ends
    those that do not. Returns what it has printed."""
    for signal_, seconds in ((signal.SIGTERM, 10), (signal.SIGKILL, None)):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal_)
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.communicate(timeout=seconds)[0]


def run_library(library, counts, options):
    """Version, results per count, and a reason if the program did not end well."""
    arguments = [options.cache, options.repetitions, options.budget, *counts]
    process = subprocess.Popen([*library.run, *map(str, arguments)], text=True,
                               env=library.environment(), stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               start_new_session=True)
    reason = ""
    try:
        shown, errors = process.communicate(timeout=options.timeout)
        if process.returncode != 0:
            reason = f"exit status {process.returncode}: {last_line(errors or shown)}"
    except subprocess.TimeoutExpired:
        shown = end(process)
        reason = f"not finished after {options.timeout:g} s"
    except BaseException:
        end(process)
        raise
    version, results = parse(shown)
    return short_version(version), results, reason


def mpirun(ranks, cores):
    """The launcher of stepladder: each rank on a core of its own while there are enough."""
    how = ["--oversubscribe"] if ranks > cores else ["--bind-to", "core"]
    launcher = "mpirun.openmpi" if shutil.which("mpirun.openmpi") else "mpirun"
    return [launcher, "-np", str(ranks), *how]


def as_root():
    """What Open MPI 4 and 5 ask for where they run as root."""
    return {} if os.geteuid() else {
        f"{prefix}_ALLOW_RUN_AS_ROOT{suffix}": "1"
        for prefix in ("OMPI", "PRTE") for suffix in ("", "_CONFIRM")}


def mpi_environment():
    return os.environ | as_root()


def run_stepladder(options, counts, folder, cores):
    """Per rung: results per count as of parse(); reasons of those that did not run; the names of
    those that send fewer bytes than the fp32 vector."""
    suite = folder / "all_reduce.csv"
    suite.write_text("suite,name,count,source\n"
                     + "".join(f"peers,count.{count},{count},\n" for count in counts))
    out, ceilings = folder / "run", folder / "ceilings.json"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    if ceilings.exists():
        shutil.copy(ceilings, out)  # measuring them takes seconds
    selected = ["--variant", options.variant] if options.variant else []
    command = [*mpirun(options.ranks, cores), options.program, "bench", "all_reduce",
               "--cold", "--place", "cpu", "--direction", "sum", *selected, "--suite-file", suite,
               "--repetitions", str(options.repetitions), "--budget", str(options.budget),
               "--out", out]
    done = subprocess.run(command, capture_output=True, text=True, env=mpi_environment(),
                          stdin=subprocess.DEVNULL)
    if not (out / "summary.csv").exists():
        raise Unavailable(last_line(done.stderr))
    shutil.copy(out / "ceilings.json", ceilings)
    if not (options.out / "environment.json").exists():
        write_environment(options.out, machine_of(out))
    count_of = {f"count.{count}": count for count in counts}
    results, reasons, compressed = {}, {}, set()
    with (out / "summary.csv").open() as file:
        for row in csv.DictReader(file):
            count = count_of.get(row["problem"])
            if count is None:
                continue
            if row.get("message_share"):
                compressed.add(row["variant"])
            if row["status"] == "ok":
                verified = row["verified"] == "yes"
                results.setdefault(row["variant"], {})[count] = (verified, 0, [])
            else:
                reasons[row["variant"], count] = (row["status"], row["reason"])
    with (out / "samples.csv").open() as file:
        for row in csv.DictReader(file):
            found = results.get(row["variant"], {}).get(count_of.get(row["problem"]))
            if found is not None:
                found[2].append(float(row["seconds"]))
    return results, reasons, compressed


class Results:
    """What has been measured; writes the files."""

    def __init__(self, out, ranks):
        self.out, self.ranks = out, ranks
        self.rows = {}     # (library, count) -> fields of the row
        self.samples = []  # rows of the samples file
        self.seconds = {}  # (library, count) -> all repetitions

    def set(self, library, count, **fields):
        row = self.rows.setdefault((library, count), {
            "library": library, "ranks": self.ranks, "count": count, "bytes": FLOAT * count})
        row.update(fields)

    def add(self, library, count, round_number, found, **fields):
        verified, iterations, seconds = found
        if not seconds or not verified:
            self.set(library, count, verified="no" if not verified else "yes", status="failed",
                     reason="wrong result" if not verified else "no repetition", **fields)
            self.seconds.pop((library, count), None)
            return
        if self.rows.get((library, count), {}).get("status") == "failed":
            return
        self.seconds.setdefault((library, count), []).extend(seconds)
        self.samples += [{"library": library, "count": count, "round": round_number,
                          "iterations": iterations or "", "seconds": s} for s in seconds]
        self.set(library, count, verified="yes", status="ok", reason="", **fields)

    def median(self, library, count):
        seconds = self.seconds.get((library, count))
        return statistics.median(seconds) if seconds else None

    def write(self):
        for (library, count), row in self.rows.items():
            row.update(median_s="", ci_low_s="", ci_high_s="", repetitions="")
            seconds = self.seconds.get((library, count))
            if row.get("status") == "ok" and seconds:
                low, high = interval(seconds)
                row.update(median_s=statistics.median(seconds), ci_low_s=low, ci_high_s=high,
                           repetitions=len(seconds))
        for name, rows in (("peers_all_reduce", self.rows.values()),
                           ("peers_all_reduce_samples", self.samples)):
            write_rows(self.out / f"{name}.csv", COLUMNS[name], rows)


def size_text(size):
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size >= factor:
            return f"{size / factor:.4g} {unit}"
    return f"{size} B"


def print_table(results, names, own, counts):
    """Median microseconds of each library and of the fastest rung of stepladder that sends whole
    vectors, and the fastest of all by name."""
    titles = [*names, "stepladder"]
    widths = [max(len(title), 8) for title in titles]
    print("".join([f"{'size':>10}", *(f"  {t:>{w}}" for t, w in zip(titles, widths)),
                   "  fastest"]))
    for count in counts:
        medians = {name: results.median(name, count) for name in [*names, *own]}
        known = {name: m for name, m in medians.items() if m is not None}
        rungs = [known[name] for name in own if name in known]
        cells = [medians[name] for name in names] + [min(rungs, default=None)]
        texts = [f"  {'-' if cell is None else format(1e6 * cell, '.4g'):>{width}}"
                 for cell, width in zip(cells, widths)]
        print("".join([f"{size_text(FLOAT * count):>10}", *texts,
                       f"  {min(known, key=known.get) if known else '-'}"]))


def last_level_cache():
    try:
        text = Path("/sys/devices/system/cpu/cpu0/cache/index3/size").read_text().strip()
        return int(text.rstrip("KM")) * {"K": 2**10, "M": 2**20}.get(text[-1], 1)
    except (OSError, ValueError):
        done = subprocess.run(["getconf", "LEVEL3_CACHE_SIZE"], capture_output=True, text=True)
        return int(done.stdout.strip() or 0) or 32 * 2**20


def counts_of(suite_file, suite):
    with open(suite_file, newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["suite"] == suite]
    if not rows:
        raise SystemExit(f"peers: {suite_file} has no suite '{suite}'")
    return sorted({int(row["count"]) for row in rows})


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=Path, default=Path("build/stepladder"))
    parser.add_argument("--libraries", type=Path, default=Path(".venv-peers/libraries"))
    parser.add_argument("--build", type=Path, default=Path("build/peers"))
    parser.add_argument("--suite", default="sweep")
    parser.add_argument("--suite-file", default="bench/suites/all_reduce.csv")
    parser.add_argument("--variant", default="", help="rungs of stepladder; all by default")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repetitions", type=int, default=11, help="in each round")
    parser.add_argument("--budget", type=float, default=0.08, help="seconds of each size")
    parser.add_argument("--timeout", type=float, default=300, help="seconds of each process")
    parser.add_argument("--cache", type=int, default=last_level_cache(), help="bytes")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    if (options.out / "peers_all_reduce.csv").exists():
        raise SystemExit(f"{options.out}: holds these peers already; choose another folder with "
                         "--out")
    counts = counts_of(options.suite_file, options.suite)
    cores = len(os.sched_getaffinity(0))
    for folder in (options.out, options.build):
        folder.mkdir(parents=True, exist_ok=True)
    write_columns(options.out, COLUMNS)
    results = Results(options.out, options.ranks)

    running, versions = [], {}
    for library in libraries(options.libraries.absolute(), options.build.absolute(), options.ranks,
                             cores):
        try:
            build_library(library)
            running.append(library)
        except Unavailable as error:
            for count in counts:
                results.set(library.name, count, status="unavailable", reason=str(error))
    results.write()
    names = [library.name for library in running]
    print(f"peers: {', '.join(names) or 'no library'} and stepladder", file=sys.stderr)

    own = []  # rungs, in the order of the ladder
    with tempfile.TemporaryDirectory() as folder:
        for round_number in range(1, options.rounds + 1):
            turns = [*running, None]  # None: stepladder
            shift = (round_number - 1) % len(turns)
            for library in turns[shift:] + turns[:shift]:
                print(f"peers: round {round_number} of {options.rounds}, "
                      f"{library.name if library else 'stepladder'}", file=sys.stderr, flush=True)
                if library is None:
                    measure_own(results, own, options, counts, Path(folder), cores, round_number)
                else:
                    measure_library(results, library, versions, options, counts, round_number)
                results.write()

    unavailable = {row["library"]: row["reason"] for row in results.rows.values()
                   if row["status"] == "unavailable"
                   and not row["library"].startswith("stepladder ")}
    failed = {(row["library"], row["reason"]) for row in results.rows.values()
              if row["status"] == "failed"}
    print(f"\nAll-reduce of floats, {options.ranks} ranks, {options.rounds} rounds in turns; "
          "median microseconds")
    print_table(results, names, own, counts)
    for name, reason in unavailable.items():
        print(f"  unavailable: {name}: {reason}")
    for name, reason in sorted(failed):
        print(f"  FAILED {name}: {reason}")
    print(f"\n{options.out / 'peers_all_reduce.csv'}")
    return 1 if failed else 0


def measure_library(results, library, versions, options, counts, round_number):
    fitting = [count for count in counts if count <= MOST_MPI_COUNT]
    version, found, reason = run_library(library, fitting, options)
    versions.setdefault(library.name, version)
    for count in counts:
        about = {"version": versions[library.name],
                 "command": library.command([options.cache, options.repetitions, options.budget,
                                             count])}
        if count in found:
            results.add(library.name, count, round_number, found[count], **about)
        else:
            results.seconds.pop((library.name, count), None)
            results.set(library.name, count, status="failed", verified="",
                        reason=reason or "no result", **about)


def version_of(program):
    done = subprocess.run([program, "--version"], capture_output=True, text=True)
    return short_version(done.stdout)


def measure_own(results, own, options, counts, folder, cores, round_number):
    try:
        found, reasons, compressed = run_stepladder(options, counts, folder, cores)
    except Unavailable as error:
        for count in counts:
            results.set("stepladder", count, status="failed", reason=str(error))
        return
    version = version_of(options.program)
    for variant, of_count in found.items():
        name = f"stepladder {variant}"
        if name not in own and variant not in compressed:
            own.append(name)
        for count, values in of_count.items():
            results.add(name, count, round_number, values, version=version, command=shlex.join(
                ["mpirun", "-np", str(options.ranks), str(options.program), "bench", "all_reduce",
                 "--variant", variant, "--suite", options.suite, "--direction", "sum", "--cold"]))
    for (variant, count), (status, reason) in reasons.items():
        results.set(f"stepladder {variant}", count, status=status, reason=reason)


if __name__ == "__main__":
    sys.exit(main())
