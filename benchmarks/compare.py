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
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from benchmarks.data import REPOSITORY, Dataset, load
from parablock import KernelSVC
from parablock.datasets import load_covtype_sample

RESULTS = REPOSITORY / "benchmarks" / "results"
PACKAGES = ("parablock", "numpy", "scipy", "scikit-learn", "numba", "threadpoolctl")

TOL = 1e-3
SVC_CACHE_MB = 2000
# Enough rows for several blocks, so that every compiled loop is compiled before the clock starts.
WARM_UP_ROWS = 3_000


@dataclass(frozen=True)
class Case:
    """A data set with the parameters of its Gaussian kernel machine."""

    data: Callable[[], Dataset]
    C: float
    gamma: float
    rows: int | None = None

    def load(self, rows: int | None) -> Dataset:
        """The data, cut to the case's training rows or to fewer."""
        everything = self.data()
        limits = [limit for limit in (self.rows, rows) if limit is not None]
        n = min(limits, default=len(everything.y_train))
        return everything._replace(X_train=everything.X_train[:n], y_train=everything.y_train[:n])


def _covtype_sample() -> Dataset:
    # The bundled rows are the first ones of load("covtype"), and there without any download.
    return Dataset(*load_covtype_sample())


CASES = {
    "covtype10k": Case(_covtype_sample, C=32, gamma=32, rows=10_000),
    "covtype20k": Case(_covtype_sample, C=32, gamma=32, rows=20_000),
    "ijcnn1": Case(lambda: load("ijcnn1"), C=32, gamma=2),
}

PROGRAMS: dict[str, Callable[[Case], Any]] = {
    "parablock": lambda case: KernelSVC(C=case.C, gamma=case.gamma, tol=TOL, random_state=0),
    "scikit-learn": lambda case: SVC(C=case.C, gamma=case.gamma, tol=TOL, cache_size=SVC_CACHE_MB),
}


@dataclass(frozen=True)
class Measurement:
    """What one program reached on one data set.

    Attributes
    ----------
    data, program : str
    rows : int
        Training rows.
    seconds : float
        To fit.
    compile_seconds : float or None
        The first fit, on a few rows; None for a program that compiles nothing.
    dual_objective : float
        The value to be maximised.
    accuracy : float
        On the test rows.
    support_vectors : int
    iterations : int
        Outer ones of parablock; updates of pairs of scikit-learn.
    kernel_evaluations, duality_gap : float or None
        None where the program does not tell.
    """

    data: str
    program: str
    rows: int
    seconds: float
    compile_seconds: float | None
    dual_objective: float
    accuracy: float
    support_vectors: int
    iterations: int
    kernel_evaluations: int | None
    duality_gap: float | None

    @property
    def work(self) -> float | None:
        """Kernel values computed, as a multiple of one a training row and support vector."""
        if self.kernel_evaluations is None:
            return None
        return self.kernel_evaluations / (self.rows * self.support_vectors)


def measure(name: str, program: str, rows: int | None = None) -> Measurement:
    """Fit one program on one data set, in this process.

    Parameters
    ----------
    name : str
        One of `CASES`.
    program : str
        One of `PROGRAMS`.
    rows : int, optional
        Take at most this many training rows.
    """
    case = CASES[name]
    X, y, X_test, y_test = case.load(rows)
    model = PROGRAMS[program](case)
    compiles = program == "parablock"
    compile_seconds = _seconds(lambda: clone(model).fit(X[:WARM_UP_ROWS], y[:WARM_UP_ROWS])) if compiles else None
    seconds = _seconds(lambda: model.fit(X, y))
    return Measurement(
        data=name,
        program=program,
        rows=len(y),
        seconds=seconds,
        compile_seconds=compile_seconds,
        dual_objective=dual_objective(X[model.support_], np.ravel(model.dual_coef_), case.gamma),
        accuracy=float(np.mean(model.predict(X_test) == y_test)),
        support_vectors=len(model.support_),
        iterations=int(np.sum(model.n_iter_)),
        kernel_evaluations=getattr(model, "kernel_evaluations_", None),
        duality_gap=getattr(model, "duality_gap_", None),
    )


def measure_apart(name: str, program: str, rows: int | None = None) -> Measurement:
    """The same in a fresh process."""
    command = [sys.executable, "-m", "benchmarks.compare", name, "--program", program]
    command += [] if rows is None else ["--rows", str(rows)]
    # Threads that wait by spinning take the cores from those that work.
    environment = {"OMP_WAIT_POLICY": "PASSIVE", **os.environ}
    done = subprocess.run(command, cwd=REPOSITORY, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return Measurement(**json.loads(done.stdout.splitlines()[-1]))


def dual_objective(vectors: NDArray[Any], coef: NDArray[Any], gamma: float, tile: int = 1_000) -> float:
    """The support vector machine's dual value, sum |coef| - 1/2 coef' K coef, in double precision and in tiles."""
    vectors, coef = vectors.astype(np.float64), coef.astype(np.float64)
    quadratic = 0.0
    for start in range(0, len(vectors), tile):
        rows = slice(start, start + tile)
        quadratic += coef[rows] @ (rbf_kernel(vectors[rows], vectors, gamma=gamma) @ coef)
    return float(np.abs(coef).sum() - 0.5 * quadratic)


def machine() -> dict[str, Any]:
    """What the numbers were measured on."""
    return {
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {package: version(package) for package in PACKAGES},
    }


def table(pairs: Sequence[tuple[Measurement, Measurement]]) -> str:
    """The measurements as a Markdown table, parablock's and scikit-learn's of each data set in one row."""
    head = (
        "| data | rows | parablock, s | SVC, s | ratio | objectives' difference | test accuracy | SVC's "
        "| support vectors | SVC's | kernel evaluations / (n n_sv) |"
    )
    lines = [head, "|---|" + "---:|" * (head.count("|") - 2)]
    for own, peer in pairs:
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
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the comparison; returns the exit status."""
    options = _parse(arguments)
    names = options.names or list(CASES)
    if options.program is not None:
        for name in names:
            print(json.dumps(asdict(measure(name, options.program, options.rows))))
        return 0
    pairs = []
    for name in names:
        own, peer = (measure_apart(name, program, options.rows) for program in ("parablock", "scikit-learn"))
        pairs.append((own, peer))
        _note(f"{name}: parablock {own.seconds:.2f} s, after {own.compile_seconds:.1f} s of warming up and compiling")
        _note(f"{name}: scikit-learn {peer.seconds:.2f} s")
    print(table(pairs))
    _note(f"All numbers: {_save(pairs)}")
    return 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="names", help=f"data sets: {', '.join(CASES)} (default: all)")
    parser.add_argument("--rows", type=int, default=None, help="take at most this many training rows, for a trial")
    parser.add_argument("--program", choices=PROGRAMS, help="measure this one alone, here, and print it as JSON")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.names) - set(CASES))
    if unknown:
        parser.error(f"unknown data set {', '.join(unknown)}; use some of {', '.join(CASES)}")
    if options.rows is not None and options.rows < 100:
        parser.error(f"--rows {options.rows} was given; use 100 or more")
    return options


def _save(pairs: Sequence[tuple[Measurement, Measurement]]) -> Path:
    now = datetime.now(UTC)
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"compare-{now:%Y%m%d-%H%M%S}.json"
    measurements = [{**asdict(one), "work": one.work} for pair in pairs for one in pair]
    report = {"time": now.isoformat(timespec="seconds"), "machine": machine(), "tol": TOL, "results": measurements}
    path.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    return path


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:  # not Linux
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
