"""make cost-model: fits the model that predicts the fast rungs, and prints its regret.

Measures the rungs that are often the fastest on the suites layers, thin, deepbench and alexnet and
on problems of random sizes, fits the cost model, and checks it on other random problems. Variables:
OUT (the file; the runs stay in a folder beside it) COUNT (random products to fit, twice as many
convolutions) BUDGET THREADS RESUME BUILD (see make help).
"""

import json
import subprocess
import sys
import time
from pathlib import Path

import runner
from runner import PYTHON, Refused, variable

RUNGS = {"matmul": "simd openmp packed packed_openmp fused skinny short_k",
         "convolution": "packed openmp direct_tile direct_pixels fft pointwise winograd"}


def rungs_of(primitive, isa):
    return ",".join(f"{rung}_{isa}" for rung in RUNGS[primitive].split())


def main():
    program = runner.program_path()
    out = variable("OUT", "results/local/cost_model.json")
    runs = Path(f"{out.removesuffix('.json')}-runs")
    cores = runner.core_count()
    threads = variable("THREADS", f"1,{cores}" if cores > 1 else "1")
    count = runner.whole_number("COUNT", variable("COUNT", "200"), digits=5)
    if not out.endswith(".json"):
        raise Refused(f"OUT={out}: expected the name of a .json file")
    if runs.exists() and not variable("RESUME"):
        raise Refused(f"{runs} exists; RESUME=1 goes on in it, another OUT begins anew")
    runs.mkdir(parents=True, exist_ok=True)
    isa = json.loads(subprocess.run([program, "machine", "--json"], check=True,
                                    stdout=subprocess.PIPE).stdout)["isa"][-1]
    begun = time.monotonic()

    def announce(text):
        print(f"{text} (after {int(time.monotonic() - begun) // 60} min)")

    def measure(name, primitive, *options):
        folder, log = runs / name, runs / "bench.log"
        with log.open("wb") as output:
            status = runner.call(
                [program, "bench", primitive, *options, "--variant", rungs_of(primitive, isa),
                 "--threads", threads, "--budget", variable("BUDGET", "0.05"),
                 "--out", str(folder), *(["--resume"] if folder.is_dir() else [])], output)
        if status:
            print(*log.read_text(errors="replace").splitlines()[-5:], sep="\n", file=sys.stderr)
            raise Refused(f"measuring {primitive} failed; the output is in {log}")

    def measure_random(name, primitive, problems, seed):
        suite = runs / f"{primitive}-{name}.csv"
        with suite.open("wb") as output:
            subprocess.run([PYTHON, "scripts/draw_problems.py", primitive, "--count", str(problems),
                            "--seed", str(seed)], stdout=output, check=True)
        measure(name, primitive, "--suite-file", str(suite))

    for primitive in RUNGS:
        announce(f"{primitive}: suites")
        measure("fitted", primitive, "--suite", "layers,thin,deepbench,alexnet")  # some lack thin
        drawn = count if primitive == "matmul" else 2 * count
        announce(f"{primitive}: {drawn} random problems to fit")
        measure_random("fitted", primitive, drawn, 1001)
        announce(f"{primitive}: other random problems")
        measure_random("checked", primitive, (count + 3) // 4, 2002)
    model = [PYTHON, "scripts/cost_model.py"]
    subprocess.run([*model, "fit", str(runs / "fitted"), "--out", out], check=True)
    print(f"Model: {out}. Its regret on the problems that it was not fitted to:")
    return runner.call([*model, "check", out, str(runs / "checked")], None)


if __name__ == "__main__":
    runner.main("cost-model", main, status=1)
