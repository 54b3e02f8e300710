"""KernelSVC beside scikit-learn's SVC on the same rows: seconds, objectives, accuracy, work.

    python -m benchmarks.compare [names...] [--rows N]

Names are covtype10k, covtype20k and ijcnn1; all of them without any. Both programs solve LIBSVM's problem to the
same tolerance, one after the other, each in a process of its own, so that neither finds the other's threads or
memory in its way. Compilation is kept out of the time by a first fit on a few rows, and reported. The dual
objectives are computed here for both, in double precision, so that the comparison rests on neither's own word.

Prints a Markdown table and writes all numbers, with a description of the machine, to ``benchmarks/results``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime

from benchmarks.cases import TOL
from benchmarks.running import markdown_table, note, save_report
from benchmarks.worker import Measurement, Task, measure_apart

# Data set and rows; None: all of them.
CASES: dict[str, tuple[str, int | None]] = {
    "covtype10k": ("covtype", 10_000),
    "covtype20k": ("covtype", 20_000),
    "ijcnn1": ("ijcnn1", None),
}
HEAD = (
    "data", "rows", "parablock, s", "SVC, s", "ratio", "objectives' difference", "test accuracy", "SVC's",
    "support vectors", "SVC's", "kernel evaluations / (n n_sv)",
)  # fmt: skip

Pair = tuple[Measurement, Measurement]


def table(pairs: Sequence[Pair]) -> str:
    """The measurements as a Markdown table, parablock's and scikit-learn's of each data set in one row."""
    rows = []
    for own, peer in pairs:
        assert own.dual_objective is not None
        assert peer.dual_objective is not None
        difference = (own.dual_objective - peer.dual_objective) / abs(peer.dual_objective)
        cells = (
            own.data,
            f"{own.rows:,}",
            f"{own.seconds:.2f}",
            f"{peer.seconds:.2f}",
            f"{peer.seconds / own.seconds:.1f}",
            f"{difference:+.1e}",
            f"{own.accuracy:.2%}",
            f"{peer.accuracy:.2%}",
            f"{own.support_vectors:,}",
            f"{peer.support_vectors:,}",
            f"{own.work:.1f}",
        )
        rows.append(cells)
    return markdown_table(HEAD, rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the comparison; returns the exit status."""
    options = _parse(arguments)
    names = options.names or list(CASES)
    pairs: list[Pair] = []
    for name in names:
        pair = _pair(name, options.rows)
        if pair is None:
            continue
        own, peer = pair
        pairs.append(pair)
        note(f"{name}: parablock {own.seconds:.2f} s, after {own.warm_up_seconds:.1f} s of warming up and compiling")
        note(f"{name}: scikit-learn {peer.seconds:.2f} s")
    print(table(pairs))
    measurements = [{**asdict(one), "work": one.work} for pair in pairs for one in pair]
    report = {"tol": TOL, "results": measurements}
    note(f"All numbers: {save_report(f'compare-{datetime.now(UTC):%Y%m%d-%H%M%S}', report)}")
    return 0 if len(pairs) == len(names) else 1


def _pair(name: str, rows: int | None) -> Pair | None:
    """parablock and scikit-learn, one after the other; None where one of them fails."""
    data, most = CASES[name]
    limits = [limit for limit in (most, rows) if limit is not None]
    n = min(limits, default=None)
    # The library's own memory limit, as a user gets it.
    own = measure_apart(Task(data, "parablock", rows=n, options={"memory_limit": None}))
    peer = measure_apart(Task(data, "scikit-learn", rows=n))
    return None if own is None or peer is None else (own, peer)


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="names", help=f"data sets: {', '.join(CASES)} (default: all)")
    parser.add_argument("--rows", type=int, default=None, help="take at most this many training rows, for a trial")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.names) - set(CASES))
    if unknown:
        parser.error(f"unknown data set {', '.join(unknown)}; use some of {', '.join(CASES)}")
    if options.rows is not None and options.rows < 100:
        parser.error(f"--rows {options.rows} was given; use 100 or more")
    return options


if __name__ == "__main__":
    sys.exit(main())
