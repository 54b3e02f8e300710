"""One fit of one program on one data set, in this process: seconds, memory, objective, accuracy, work.

    python -m benchmarks.worker '{"case": "covtype", "program": "parablock", "rows": 20000}'

prints a `Measurement` as JSON. Every program fits a few rows first, so that what it compiles or starts once is not
counted, and reported apart.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import warnings
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from benchmarks.cases import CASES, PROGRAMS
from benchmarks.data import Dataset
from benchmarks.objective import hinge_dual, ridge_dual
from benchmarks.running import best_seconds, note, peak_megabytes, run_apart, seconds, warm_memory

# Enough rows for several blocks, so that every compiled loop is compiled before the clock starts.
WARM_UP_ROWS = 3_000


@dataclass(frozen=True)
class Task:
    """What to measure.

    Attributes
    ----------
    case, program : str
        Of `CASES` and `PROGRAMS`.
    rows, test_rows : int or None
        The first so many; None: all.
    share : float
        Take only this share of these rows, for a trial.
    options : dict
        Parameters of the estimator that differ from the program's.
    """

    case: str
    program: str
    rows: int | None = None
    test_rows: int | None = None
    share: float = 1.0
    options: dict[str, Any] = field(default_factory=dict)

    def load(self) -> Dataset:
        X, y, X_test, y_test = CASES[self.case].data(self.rows)
        n, m = (
            max(1, round(self.share * min(wanted or size, size)))
            for wanted, size in ((self.rows, len(y)), (self.test_rows, len(y_test)))
        )
        return Dataset(X[:n], y[:n], X_test[:m], y_test[:m])

    def model(self) -> Any:
        case, program = CASES[self.case], PROGRAMS[self.program]
        return program.make(**{"C": case.C, "gamma": case.gamma, **program.parameters, **self.options})


@dataclass(frozen=True)
class Measurement:
    """What one program reached on one data set.

    Attributes
    ----------
    data, program : str
    rows, features : int
        Of the training data.
    seconds : float
        To fit.
    warm_up_seconds : float
        The first fit in the process, on a few rows: compiling, loading what was compiled, starting threads.
    predict_seconds : float
        The test rows; the best of up to three times.
    predict_rows : int
    memory, memory_before : float
        The most megabytes that the process held until the end of the fit, and until its start.
    accuracy : float
        On the test rows; of a regression, R^2.
    support_vectors : int or None
        Rows whose coefficient is not zero.
    dual_objective : float or None
        The value to be maximised, computed here (see `benchmarks.objective`).
    infeasibility : float or None
        How far the coefficients are outside of 0 <= y c <= C, and with an intercept from the sum zero, relative to
        the sum of their sizes.
    iterations : int
        Outer ones of parablock; the program's own count otherwise.
    kernel_evaluations : int or None
    duality_gap, violation : float or None
        None where the program does not tell.
    history : list of (seconds, objective to be minimised) or None
        After every outer iteration of parablock.
    """

    data: str
    program: str
    rows: int
    features: int
    seconds: float
    warm_up_seconds: float
    predict_seconds: float
    predict_rows: int
    memory: float
    memory_before: float
    accuracy: float
    support_vectors: int | None
    dual_objective: float | None
    infeasibility: float | None
    iterations: int
    kernel_evaluations: int | None
    duality_gap: float | None
    violation: float | None
    history: list[tuple[float, float]] | None

    @property
    def work(self) -> float | None:
        """Kernel values computed, as a multiple of one a training row and support vector."""
        if self.kernel_evaluations is None or not self.support_vectors:
            return None
        return self.kernel_evaluations / (self.rows * self.support_vectors)


def measure(task: Task) -> Measurement:
    """Fit in this process."""
    if "max_iter" in task.options:  # not to converge is what is asked for
        warnings.simplefilter("ignore", ConvergenceWarning)
    X, y, X_test, y_test = task.load()
    model = task.model()
    warm_up_seconds = _warm_up(clone(model), X[:WARM_UP_ROWS], y[:WARM_UP_ROWS])
    warm_memory()
    memory_before = peak_megabytes()
    fit_seconds = seconds(lambda: model.fit(X, y))
    memory = peak_megabytes()
    start = time.perf_counter()
    accuracy = float(model.score(X_test, y_test))  # warms prediction up where it is slow enough to matter
    first_predict = time.perf_counter() - start
    predict_seconds = best_seconds(lambda: model.predict(X_test)) if first_predict < 30 else first_predict
    support, coef = expansion(model, len(y))
    history = getattr(model, "history_", None)
    return Measurement(
        data=task.case,
        program=task.program,
        rows=len(y),
        features=X.shape[1],
        seconds=fit_seconds,
        warm_up_seconds=warm_up_seconds,
        predict_seconds=predict_seconds,
        predict_rows=len(y_test),
        memory=memory,
        memory_before=memory_before,
        accuracy=accuracy,
        support_vectors=None if support is None else len(support),
        dual_objective=_dual_objective(task, X, y, support, coef),
        infeasibility=_infeasibility(task, y, model, support, coef),
        iterations=int(np.sum(getattr(model, "n_iter_", 0))),
        kernel_evaluations=getattr(model, "kernel_evaluations_", None),
        duality_gap=getattr(model, "duality_gap_", None),
        violation=getattr(model, "violation_", None),
        history=None if history is None else [(record.seconds, record.objective) for record in history],
    )


def _warm_up(model: Any, X: Any, y: Any) -> float:
    fit_seconds = seconds(lambda: model.fit(X, y))
    model.predict(X)
    return fit_seconds


def measure_apart(task: Task) -> Measurement | None:
    """Fit in a fresh process; None where that fails, so that the other measurements go on."""
    try:
        return Measurement(**run_apart("benchmarks.worker", json.dumps(asdict(task))))
    except subprocess.CalledProcessError as error:
        note(f"{task.case}, {task.program}: failed with exit status {error.returncode}")
        return None


def expansion(model: Any, n: int) -> tuple[NDArray[np.int64] | None, NDArray[np.float64]]:
    """Row numbers and coefficients, shape (n_outputs, rows), of a fitted model; None and empty if it has none."""
    if not hasattr(model, "dual_coef_"):
        return None, np.empty((0, 0))
    coef = model.dual_coef_.toarray() if sp.issparse(model.dual_coef_) else np.asarray(model.dual_coef_)
    return getattr(model, "support_", np.arange(n)), np.atleast_2d(coef).astype(np.float64)


def _dual_objective(task: Task, X: Any, y: Any, support: Any, coef: Any) -> float | None:
    loss, gamma = PROGRAMS[task.program].loss, CASES[task.case].gamma
    if support is None or loss is None:
        return None
    if loss == "squared error":
        return ridge_dual(X[support], coef, gamma, y[support], CASES[task.case].C)
    return hinge_dual(X[support], coef, gamma)


def _infeasibility(task: Task, y: Any, model: Any, support: Any, coef: Any) -> float | None:
    if support is None or PROGRAMS[task.program].loss != "hinge":
        return None
    # One output is for the larger of two labels against the other; otherwise output k is for class k.
    positive = model.classes_[1:] if len(coef) == 1 else model.classes_
    signed = np.where(y[support] == positive[:, None], coef, -coef)
    outside = np.maximum(-signed, 0).sum() + np.maximum(signed - CASES[task.case].C, 0).sum()
    unbalanced = np.abs(coef.sum(axis=1)).sum() if getattr(model, "fit_intercept", True) else 0.0
    return float((outside + unbalanced) / max(np.abs(coef).sum(), 1e-300))


def main() -> None:
    print(json.dumps(asdict(measure(Task(**json.loads(sys.argv[1]))))))


if __name__ == "__main__":
    main()
