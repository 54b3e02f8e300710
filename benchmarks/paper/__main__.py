"""The paper's experiments, one command each.

    python -m benchmarks.paper table1 --scale small
    python -m benchmarks.paper all                          # every experiment at the small scale: make paper
    python -m benchmarks.paper table2 --scale full --device cuda --only parablock dcsvm
    python -m benchmarks.paper table2 --draw                # tables and figures again, of the numbers that are there
    python -m benchmarks.paper comparison --scale full --draw --take table2-full.json    # of another experiment's

    table1      the data sets
    table2      every solver, time and accuracy, support vector machine
    partition   k-means and random blocks, local and global prediction, and our own blocks
    comparison  test accuracy over time, all solvers
    scaling     relative error against seconds x workers
    dcsvm       objective and accuracy over time, beside DC-SVM
    logistic    every solver that can, logistic regression
    rate        the theorem: measured rates of convergence
    kdda        rows like kdda's: the first step, and a forecast for 32 machines

Each writes ``docs/paper/<name>.json``, a figure ``<name>.png`` where it has one, and its section of
``docs/paper/index.md``; at the full scale the names end in ``-full``.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

# Before any library starts threads: those that wait by spinning take the cores from those that work.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

EXPERIMENTS = ("table1", "table2", "partition", "comparison", "scaling", "dcsvm", "logistic", "rate", "kdda")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run experiments; returns the exit status."""
    from benchmarks.paper.courses import Request
    from benchmarks.paper.solvers import Place
    from benchmarks.running import note

    options = _parse(arguments)
    own = ("only", "draw", "rows", "sets", "limit", "take", "folder")
    asked = {name: getattr(options, name) for name in own if getattr(options, name) is not None}
    request = Request(Place(options.scale, options.device), **asked)
    for name in EXPERIMENTS if options.experiment == "all" else (options.experiment,):
        start = time.perf_counter()
        note(f"--- {name}, {options.scale}")
        try:
            importlib.import_module(f"benchmarks.paper.{name}").run(request)
        except (ValueError, FileNotFoundError) as error:
            note(str(error))
            return 2
        except ModuleNotFoundError as error:
            if error.name != "matplotlib":
                raise
            note(f"{name}: the numbers are kept; matplotlib is not installed: draw them elsewhere with --draw")
        note(f"--- {name}: {time.perf_counter() - start:.0f} s")
    return 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.paper", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("experiment", choices=[*EXPERIMENTS, "all"])
    parser.add_argument("--scale", choices=["small", "full"], default="small")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="what computes kernel values")
    parser.add_argument("--only", nargs="+", metavar="SOLVER", help="measure these, in this order; the others stay")
    parser.add_argument("--sets", nargs="+", metavar="SET", help="measure these data sets; the others stay")
    parser.add_argument("--limit", type=float, metavar="SECONDS", help="stop a rival that takes longer")
    parser.add_argument(
        "--take", nargs="+", type=Path, metavar="FILE", help="take in the numbers of other runs of the same solvers"
    )
    parser.add_argument("--draw", action="store_true", help="measure nothing, draw what is there")
    parser.add_argument("--rows", type=int, help="training rows, for a trial; use with --docs")
    parser.add_argument("--docs", type=Path, dest="folder", help="folder for results (default: docs/paper)")
    options = parser.parse_args(arguments)
    if options.rows is not None and options.rows < 100:
        parser.error(f"--rows {options.rows} was given; use 100 or more")
    if options.rows is not None and options.folder is None:
        parser.error("--rows is for a trial: name another folder for its results with --docs")
    return options


if __name__ == "__main__":
    sys.exit(main())
