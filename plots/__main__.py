"""Command line: python -m plots charts|table|network|modes|tables|page|report RUN_DIR,
spread RUN_DIR RUN_DIR…, or site RESULTS_DIR SITE_DIR."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path

from plots.data import modes, spread
from plots.data.errors import InputError
from plots.data.numbers import number_in, plural
from plots.data.reading import load_run
from plots.screen import bench_screen, modes_screen, network_screen
from plots.screen.next_commands import shown_path
from plots.tables import report, tables_md


def parse_arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m plots", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)

    def command(run: Callable, what: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(run.__name__.removeprefix("run_"), help=what)
        sub.set_defaults(run=run)
        return sub

    def of_one_run(run: Callable, what: str) -> argparse.ArgumentParser:
        sub = command(run, what)
        sub.add_argument("run_dir", metavar="RUN_DIR", type=Path, help="folder of one run")
        return sub

    of_one_run(run_charts, "draw RUN_DIR/charts/*.{svg,pdf,png}")
    of_one_run(run_table, "print the main results on one screen")
    of_one_run(run_network, "print the fastest all-reduce between hosts at each size")
    of_one_run(run_modes, "write RUN_DIR/modes.csv and modes.json, and print the training modes "
                          "side by side").add_argument(
        "--target", type=accuracy, metavar="A",
        help="held-out accuracy whose time is compared (default: that of modes.json, "
             f"else {modes.DEFAULT_TARGET})")
    of_one_run(run_tables, "write every table to RUN_DIR/tables.md")
    page = of_one_run(run_page, "write RUN_DIR/report.html, and its figures and tables for papers")
    page.add_argument("--base", metavar="RUN_DIR", type=Path,
                      help="an earlier run, to which rows are compared")
    report_parser = of_one_run(
        run_report, "rewrite the result blocks of README.md and kernels/*/README.md")
    command(run_spread, "write RUN_DIR/spread.json: how far the ratios of two rungs repeat in "
                        "further runs").add_argument(
        "runs", metavar="RUN_DIR", type=Path, nargs="+",
        help="two runs or more of one machine; the first is the published one")
    site = command(run_site,
                   "write the pages of all published runs, and an index, for a static web server")
    site.add_argument("results", metavar="RESULTS_DIR", type=Path, help="folder of the runs")
    site.add_argument("site", metavar="SITE_DIR", type=Path, help="new folder, or an earlier site")
    for sub in (page, site):
        sub.add_argument("--program", metavar="FILE", type=Path,
                         help="stepladder in its build folder, which holds the instructions of "
                              "the rungs; it judges comparisons (default: build/stepladder)")
    for sub in (page, report_parser, site):
        sub.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent,
                         help="folder that holds README.md and kernels/ (default: this repository)")
    return parser.parse_args(arguments)


def accuracy(text: str) -> float:
    value = number_in(text)
    if value is None or not 0 < value <= 1:
        raise argparse.ArgumentTypeError(f"'{text}': expected an accuracy above 0 and at most 1")
    return value


def run_charts(options: argparse.Namespace) -> list[str]:
    # Only charts import Matplotlib, which takes a second.
    from plots.charts import draw

    run = load_run(options.run_dir)
    outcome = draw.write_all(run)
    print(f"{plural(len(outcome.written), 'chart')} (svg, pdf, png) in {run.folder / 'charts'}:")
    for name in outcome.written:
        print(f"  {name}")
    for name, reason in outcome.not_drawn:
        print(f"  not drawn: {name}: {reason}")
    return run.warnings


def run_table(options: argparse.Namespace) -> list[str]:
    run = load_run(options.run_dir, ("environment", "summary", "step", "samples", "attribution"))
    print(bench_screen.render(run), flush=True)
    return run.warnings


def run_network(options: argparse.Namespace) -> list[str]:
    run = load_run(options.run_dir, ("environment", "summary"))
    print(network_screen.render(run), flush=True)
    return run.warnings


def run_modes(options: argparse.Namespace) -> list[str]:
    run = load_run(options.run_dir, ("environment", "train"))
    found = modes.compare(run, options.target)
    modes.write(run, found)
    print(modes_screen.render(run, found), flush=True)
    return run.warnings


def run_tables(options: argparse.Namespace) -> list[str]:
    run = load_run(options.run_dir)
    print(f"wrote {tables_md.write(run)}")
    return run.warnings


def run_spread(options: argparse.Namespace) -> list[str]:
    if len({folder.resolve() for folder in options.runs}) < max(2, len(options.runs)):
        raise InputError("spread: expected two different runs or more")
    runs = [load_run(folder, ("environment", "summary")) for folder in options.runs]
    path, content = spread.write(runs)
    print(f"{spread.sentence(content)}\nwrote {path}")
    return [warning for run in runs for warning in run.warnings]


def run_page(options: argparse.Namespace) -> list[str]:
    # Only the page imports Jinja2, Pygments and Matplotlib.
    from plots.page import write

    run = load_run(options.run_dir)
    base = load_run(options.base, ("environment", "summary")) if options.base else None
    outcome = write.write(run, base, options.root, program_of(options))
    print(f"Report: {shown_path(outcome.page)} ({outcome.size / 1e6:.1f} MB)\n"
          f"Figures: {shown_path(run.folder / write.FIGURES)} ({outcome.figures}); "
          f"tables: {shown_path(run.folder / write.TABLES)} ({outcome.tables})")
    return run.warnings + outcome.warnings


def run_site(options: argparse.Namespace) -> list[str]:
    from plots.page import site

    outcome = site.write_site(options.results, options.site, options.root, program_of(options))
    print(f"Index: {shown_path(outcome.index)}, with the pages of {plural(outcome.runs, 'run')}")
    return outcome.warnings


def program_of(options: argparse.Namespace) -> Path:
    return options.program or options.root / (os.environ.get("BUILD") or "build") / "stepladder"


def run_report(options: argparse.Namespace) -> list[str]:
    run = load_run(options.run_dir, ("environment", "summary", "step", "train", "samples",
                                     "attribution"))
    outcome = report.rewrite(run, options.root)
    for path in outcome.changed:
        print(f"rewrote {path}")
    if not outcome.changed:
        print("every result block was up to date")
    return run.warnings + outcome.warnings


def main(arguments: list[str] | None = None) -> int:
    options = parse_arguments(arguments)
    try:
        warnings = options.run(options)
        sys.stdout.flush()  # a full disk is an error
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader, for example head, has ended
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for warning in warnings:
        print(f"warning: {warning}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
