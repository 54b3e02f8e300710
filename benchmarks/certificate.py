"""Whether what the fits and `certify` say is true: every data set, in float32 and float64, scaled and not.

    python -m benchmarks.certificate                      # every bundled and shared data set, at most 20,000 rows of it
    python -m benchmarks.certificate covtype magic        # some
    python -m benchmarks.certificate --rows 1000          # a quick look

Every set is trained on as it is (dense features with mean 0 and variance 1), with one feature times 1000, and with
1000 added to its features (of a sparse set, to one of them): in float32, and in float64 with the very same values.
Primal and dual value of each model are computed from the formulas by NumPy in float64 (`benchmarks.exact`). The program
ends with an error where

- a float32 fit is worse than the float64 fit of the same values, in its primal or dual value, by more than 1e-3 of the
  objective;
- `certify` differs from NumPy in primal value, dual value or gap by more than 1e-6 of the objective.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.cases import CASES
from benchmarks.data import ORIGINS, folders, load
from benchmarks.exact import Values, values_of
from benchmarks.tables import BUNDLED as SMALL
from benchmarks.tables import TABLES, load_table
from parablock import Certificate, KernelSVC, KernelSVR
from parablock.datasets import load_covtype_sample

WORSE, OFF = 1e-3, 1e-6  # shares of the objective
BUNDLED = ("covtype", "covtype7")
# Where nothing else is known: C, and gamma as "scale" chooses it for features of variance 1.
_C, _REGRESSION = 10.0, ("cadata", "cpusmall", "abalone", "kin40k")
_FACTOR = _OFFSET = 1000.0


@dataclass(frozen=True)
class Problem:
    """Rows in float32, labels or targets, and the machine for them."""

    X: Any
    y: Any
    regression: bool
    C: float
    gamma: float

    def machine(self, tol: float, kernel: str) -> Any:
        shared: dict[str, Any] = {"gamma": self.gamma, "kernel": kernel, "tol": tol, "random_state": 0}
        return KernelSVR(C=self.C, **shared) if self.regression else KernelSVC(C=self.C, **shared)


@dataclass(frozen=True)
class Line:
    """What a fit has claimed and what is true of it."""

    claimed_dual: float
    claimed_gap: float
    true: Values
    certificate: Certificate
    trained_in: str


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.certificate", description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help="data sets; all that are here by default")
    parser.add_argument("--rows", type=int, default=20_000, help="at most so many of each (20,000)")
    parser.add_argument("--kernel", default="rbf", choices=["rbf", "laplacian", "matern32", "matern52"])
    parser.add_argument("--tol", type=float, default=1e-4)
    options = parser.parse_args(arguments)
    here = available()
    unknown = [name for name in options.names if name not in here]
    if unknown:
        parser.error(f"{', '.join(unknown)}: no such data set here; there are {', '.join(here)}")
    wrong: list[str] = []
    print(
        f"{'data':<28}{'rows':>6}  {'fit':<9}{'dual':>17}{'true dual':>17}{'gap':>10}{'true gap':>10}{'certify':>9}  s"
    )
    for name in options.names or here:
        problem = here[name](options.rows)
        for variant, X in variants(problem.X):
            lines = []
            for dtype in (np.float64, np.float32):
                started = time.perf_counter()
                line = measured(problem, X.astype(dtype), options.tol, options.kernel)
                print(_row(f"{name}{variant}", len(problem.y), np.dtype(dtype).name, line, started), flush=True)
                lines.append(line)
            wrong += faults(f"{name}{variant}", *lines)
    for fault in wrong:
        print(f"WRONG: {fault}", file=sys.stderr)
    print(f"{len(wrong)} wrong" if wrong else "nothing is wrong")
    return 1 if wrong else 0


def available() -> dict[str, Callable[[int], Problem]]:
    """The data sets that are here, each with what loads its first rows."""
    files = {path.stem for folder in folders() for path in (*folder.glob("*.npz"), *folder.glob("tables/*.npz"))}
    sets = [*BUNDLED, *(name for name in ORIGINS if name in files and name not in BUNDLED)]
    tables = [*SMALL, *(name for name in TABLES if name in files)]
    return {**{name: partial(_named, name) for name in sets}, **{name: partial(_table, name) for name in tables}}


def _named(name: str, rows: int) -> Problem:
    if name in BUNDLED:
        X, y, _, _ = load_covtype_sample(classes=7 if name == "covtype7" else 2)
    else:
        name = {"news20_bigram_tfidf": "news20"}.get(name, name)
        X, y, _, _ = CASES[name].data(rows) if name in CASES else load(name)
    case = CASES.get(name)
    if case is not None:
        regression = name in _REGRESSION
        return Problem(X[:rows].astype(np.float32), y[:rows], regression, case.C, case.gamma)
    return _prepared(X, y, name in _REGRESSION, rows)


def _table(name: str, rows: int) -> Problem:
    X, y, task = load_table(name)
    return _prepared(X, y, task == "r", rows)


def _prepared(X: Any, y: Any, regression: bool, rows: int) -> Problem:
    """Rows drawn at random, dense features and targets with mean 0 and variance 1."""
    chosen = np.random.default_rng(0).permutation(X.shape[0])[:rows]
    X, y = X[chosen], y[chosen]
    if not sp.issparse(X):
        X = np.asarray(X, dtype=np.float64)
        X = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
    X = X.astype(np.float32)
    y = (y - y.mean()) / y.std() if regression else y
    squares = X.multiply(X).mean() if sp.issparse(X) else np.square(X, dtype=np.float64).mean()
    mean = X.mean(dtype=np.float64)
    return Problem(X, y, regression, _C, float(1.0 / (X.shape[1] * (squares - mean * mean))))


def variants(X: Any) -> Iterator[tuple[str, Any]]:
    """The rows as they are, and in other units, each rounded to float32."""
    yield "", X
    widest = int(np.argmax(_spread(X)))
    scale, shift = np.ones(X.shape[1]), np.zeros(X.shape[1])
    scale[widest] = _FACTOR
    if sp.issparse(X):
        shift[widest] = _OFFSET
        yield f", x {_FACTOR:g}", sp.csr_matrix(X.multiply(scale)).astype(np.float32)
        yield f", + {_OFFSET:g}", sp.csr_matrix(X + sp.csr_matrix(np.broadcast_to(shift, X.shape))).astype(np.float32)
    else:
        yield f", x {_FACTOR:g}", (X * scale).astype(np.float32)
        yield f", + {_OFFSET:g}", (X.astype(np.float64) + _OFFSET).astype(np.float32)


def _spread(X: Any) -> Any:
    if not sp.issparse(X):
        return X.std(axis=0)
    mean = np.asarray(X.mean(axis=0)).ravel()
    return np.asarray(X.multiply(X).mean(axis=0)).ravel() - mean * mean


def measured(problem: Problem, X: Any, tol: float, kernel: str) -> Line:
    """A fit, what it says, what `certify` says, and what is true."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # also that a fit was made in float64
        model = problem.machine(tol, kernel).fit(X, problem.y)
    certificate = model.certify(X, problem.y)
    true = values_of(model, X, problem.y)
    return Line(model.dual_objective_, model.duality_gap_, true, certificate, str(model._dtype))


def faults(name: str, double: Line, single: Line) -> Iterator[str]:
    """What is wrong with the fits of the same values in float64 and in float32."""
    scale = max(abs(double.true.primal), abs(double.true.dual))
    if single.true.dual < double.true.dual - WORSE * scale:
        yield f"{name}: the dual value in float32 is {single.true.dual:.8g}, in float64 {double.true.dual:.8g}"
    if single.true.primal > double.true.primal + WORSE * scale:
        yield f"{name}: the primal value in float32 is {single.true.primal:.8g}, in float64 {double.true.primal:.8g}"
    for dtype, line in (("float64", double), ("float32", single)):
        off = error_of(line)
        if not off <= OFF:
            yield f"{name}, {dtype}: certify is off by {off:.1e} of the objective: {line.certificate}; {line.true}"


def error_of(line: Line) -> float:
    """Of `certify`, as a share of the objective; infinite where it refuses to say."""
    said, true = line.certificate, line.true
    if said.duality_gap is None:
        return float("inf")
    pairs = (
        (said.primal_objective, true.primal),
        (said.dual_objective, true.dual),
        (said.duality_gap, true.primal - true.dual),
    )
    scale = max(abs(true.primal), abs(true.dual))
    return max(abs(one - other) for one, other in pairs) / scale


def _row(name: str, rows: int, dtype: str, line: Line, started: float) -> str:
    mark = "" if line.trained_in == dtype else "*"  # trained in float64 instead
    return (
        f"{name:<28}{rows:>6}  {dtype + mark:<9}{line.claimed_dual:>17.8g}{line.true.dual:>17.8g}"
        f"{line.claimed_gap:>10.2g}{line.true.primal - line.true.dual:>10.2g}{error_of(line):>9.0e}"
        f"  {time.perf_counter() - started:.1f}"
    )


if __name__ == "__main__":
    sys.exit(main())
