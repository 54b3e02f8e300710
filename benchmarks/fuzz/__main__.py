"""Read files that are changed at random, of every format; end with an error if anything but our own errors comes out.

    python -m benchmarks.fuzz --cases 2000 [--format csv npz ...] [--seed 0]
    python -m benchmarks.fuzz --format npz --keep 17 --into folder      writes the file of case 17

Every case is made from its number and the seed. A process of its own reads them, one after another, with 10 seconds and
1 GB of memory for each; what crashes it or takes longer is a failure of that case. A file that is read must hold what
can be used: a model that predicts, rows that have their labels, a checkpoint from which the fit ends at the optimum.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from benchmarks.fuzz.running import keep, run, work


def main() -> int:
    if sys.argv[1:2] == ["--worker"]:
        format, seed, first, stop, folder = sys.argv[2:]
        work(format, int(seed), int(first), int(stop), Path(folder))
        return 0
    from benchmarks.fuzz.formats import FORMATS

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=2000, help="of each format (2000)")
    parser.add_argument("--first", type=int, default=0, help="number of the first case (0)")
    parser.add_argument("--format", nargs="+", choices=FORMATS, default=list(FORMATS), help="all of them by default")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=int, metavar="CASE", help="write the file of a case and read nothing")
    parser.add_argument("--into", type=Path, default=Path(), help="the folder for that file")
    options = parser.parse_args()
    if options.keep is not None:
        print(*(keep(format, options.seed, options.keep, options.into) for format in options.format), sep="\n")
        return 0
    print(f"{'format':<18}{'cases':>8}{'accepted':>10}{'refused':>9}{'failed':>8}{'seconds':>9}")
    failed = False
    for format in options.format:
        started = time.perf_counter()
        outcome = run(format, options.cases, options.seed, options.first)
        seconds = time.perf_counter() - started
        counts = f"{outcome.cases:>8,}{outcome.accepted:>10,}{outcome.refused:>9,}{len(outcome.failures):>8,}"
        print(f"{format:<18}{counts}{seconds:>9.1f}", flush=True)
        for case, what in outcome.failures:
            print(f"    case {case}: {what}", flush=True)
        failed = failed or bool(outcome.failures)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
