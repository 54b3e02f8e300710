"""parablock beside its peers on a CPU: fit and prediction times, objectives, memory, work, growth.

    python -m benchmarks.cpu [sections...] [--quick] [--repeat N] [--write-docs] [--reference F]

    peers         fits beside scikit-learn-intelex's SVC and scikit-learn's (the default)
    prediction    of the test rows, by the same machines
    work          kernel values computed a training row and support vector, and kernel values a second
    growth        seconds against rows, with a picture
    logistic      logistic regression beside the hinge loss and Nystroem, ridge regression beside scikit-learn's
    classes       seven classes in one fit beside two
    compilation   of the first fit in a process
    sparse        text with 199,410 features
    covtype       all 464,810 rows without intercept, to a relative objective error of 1e-3
    all           all of these

Every fit runs in a fresh process, peers and parablock one after another. Each process fits 3,000 rows first, so that
compilation is not counted for anyone; that first fit's seconds are reported. Dual objectives are computed here for
all programs from their support vectors and coefficients, and a program that stopped early is marked.

Prints Markdown tables and writes all numbers, with a description of the machine, to
``benchmarks/results/cpu-<section>.json``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.cpu_runner import Runner
from benchmarks.cpu_sections import SECTIONS
from benchmarks.data import REPOSITORY
from benchmarks.running import described, machine, note, save_report

DOCUMENT = REPOSITORY / "docs" / "performance.md"
QUICK_SHARE = 0.1


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the sections; returns the exit status, 1 where a process failed."""
    options = _parse(arguments)
    runner = Runner(share=options.share, repeat=options.repeat, reference=options.reference)
    for name in options.sections:
        note(f"--- {name}")
        found, when = machine(), datetime.now(UTC)
        report = SECTIONS[name](runner)
        print(f"## {name}\n\n{report.text}\n", flush=True)
        trial = "" if options.share == 1 else "-trial"
        settings = {"section": name, "share": options.share, "repeat": options.repeat}
        note(f"All numbers: {save_report(f'cpu-{name}{trial}', {**settings, **report.numbers})}")
        if options.write_docs:
            write_document(name, f"{report.text}\n\n{described(found, when)}", DOCUMENT)
    return 1 if runner.failures else 0


def write_document(section: str, text: str, path: Path) -> None:
    """Put the text between the section's markers in a document.

    Raises
    ------
    ValueError
        Where the document has no such markers.
    """
    begin, end = f"<!-- measured: {section} -->", "<!-- end -->"
    before, found, rest = path.read_text(encoding="utf-8").partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise ValueError(f"{path} has no place for the section: it needs a line {begin!r} and after it {end!r}")
    path.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}", encoding="utf-8")


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", metavar="sections", help=f"some of {', '.join(SECTIONS)}, or all")
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows, to see that everything runs")
    parser.add_argument("--share", type=float, default=None, metavar="S", help="that share of the rows, likewise")
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="measure N times; the fastest counts")
    parser.add_argument("--reference", type=float, metavar="F", help="dual objective for section covtype")
    parser.add_argument("--write-docs", action="store_true", help="put the tables into docs/performance.md")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.sections) - set(SECTIONS) - {"all"})
    if unknown:
        parser.error(f"unknown section {', '.join(unknown)}; use some of {', '.join(SECTIONS)}, or all")
    if "all" in options.sections:
        options.sections = list(SECTIONS)
    options.sections = options.sections or ["peers"]
    if options.share is None:
        options.share = QUICK_SHARE if options.quick else 1.0
    if not 0 < options.share <= 1:
        parser.error(f"--share {options.share:g} was given; use a number above 0 and up to 1")
    if options.repeat < 1:
        parser.error(f"--repeat {options.repeat} was given; use 1 or more")
    if options.write_docs and options.share < 1:
        parser.error("--write-docs is for whole measurements: leave out --quick and --share")
    return options


if __name__ == "__main__":
    sys.exit(main())
