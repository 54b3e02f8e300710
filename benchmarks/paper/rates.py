"""How fast Algorithm 1 converges, and the constants of the paper's theorem along the way.

    f(t+1) - f* <= (1 - (1 - eta) R_min / (k B L kappa^2)) (f(t) - f*)

The paper's proof loses a factor of two on its way (the one-variable problem gives 1/2 R_min d^2); it is put back here,
which makes the bound weaker and the proof right.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks.rivals import Parablock
from parablock import BlockSolver, KernelLogisticRegression, KernelSVC

ESTIMATORS = {"hinge": KernelSVC, "logistic": KernelLogisticRegression}
END = 1e-8  # the tolerance of a run: by then its error is below what double precision resolves
BEST = 1e-10  # the tolerance of what is taken for the optimum
EXACT = BlockSolver(fraction=1e-6, floor=0.0)  # as exact as makes no difference to an iteration
RESOLVED = 1e-10  # relative errors below this are rounding
_LEAST_POINTS = 6


@dataclass(frozen=True)
class Rate:
    """Of a run of Algorithm 1.

    Attributes
    ----------
    rate : float or None
        By which the error shrinks in an iteration, in the second half of the run; None where there were too few.
    fit : float or None
        How well a straight line fits the logarithm of the error there: the share of its variance that is explained.
    iterations : int
        Made, or until the error was below what double precision resolves.
    errors : list of float
        Relative, after each of them.
    ended : bool
        Whether the next error was below what double precision resolves.
    """

    rate: float | None
    fit: float | None
    iterations: int
    errors: list[float]
    ended: bool

    @classmethod
    def of(cls, objectives: np.ndarray, optimum: float) -> Rate:
        errors = (objectives - optimum) / abs(optimum)
        small = np.flatnonzero(errors <= RESOLVED)
        errors = errors[: small[0]] if len(small) else errors
        half = len(errors) // 2
        if len(errors) - half < _LEAST_POINTS:
            return cls(None, None, len(errors), errors.tolist(), len(small) > 0)
        times, logs = np.arange(half, len(errors)), np.log(errors[half:])
        slope, start = np.polyfit(times, logs, 1)
        spread = logs.var()
        fit = 1.0 - np.var(logs - slope * times - start) / spread if spread > 0 else 1.0
        return cls(float(np.exp(slope)), float(fit), len(errors), errors.tolist(), len(small) > 0)

    def until(self, error: float) -> int | None:
        """Iterations to a relative error."""
        at_the_end = self.iterations + 1 if self.ended else None
        return next((number for number, one in enumerate(self.errors, start=1) if one <= error), at_the_end)


def run_algorithm_1(
    X: np.ndarray,
    y: np.ndarray,
    loss: str,
    kernel: dict[str, Any],
    iterations: int,
    solver: BlockSolver,
    **options: Any,
) -> np.ndarray:
    """The objective after every iteration."""
    shared = {"fit_intercept": False, "tol": END, "regroup": False, "n_jobs": 1, "random_state": 0}
    model = ESTIMATORS[loss](**{**shared, **kernel, **options}, max_iter=iterations, block_solver=solver)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    return np.array([record.objective for record in model.history_])


def best_objective(X: np.ndarray, y: np.ndarray, loss: str, kernel: dict[str, Any]) -> float:
    """The optimum as well as double precision allows: all rows in one block."""
    return float(run_algorithm_1(X, y, loss, kernel, 20, BlockSolver(), tol=BEST, n_blocks=1).min())


@dataclass(frozen=True)
class Constants:
    """What the theorem needs of a run with the hinge loss and exactly solved blocks, and what it promises.

    Attributes
    ----------
    kappa, lipschitz : float
        The least values with which the theorem's two assumptions hold at every iterate.
    largest_block, blocks : int
        B and k.
    promised : float
        The theorem's bound on the rate.
    worst : float
        The largest factor by which the error shrank in an iteration.
    """

    kappa: float
    lipschitz: float
    largest_block: int
    blocks: int
    promised: float
    worst: float


def constants(
    X: np.ndarray, y: np.ndarray, C: float, gamma: float, blocks: int, partition: str, iterations: int
) -> Constants:
    """Of a run with the Gaussian kernel, whose diagonal is 1."""
    alone = Parablock(C, gamma, n_jobs=1, options={"tol": BEST, "n_blocks": 1, "max_iter": 20}).fit(X, y).model_
    moments: list[Any] = []
    options = {"tol": END, "block_solver": EXACT, "regroup": False, "partition": partition, "n_blocks": blocks}
    options["max_iter"] = iterations
    solver = Parablock(C, gamma, n_jobs=1, options=options).fit(X, y, watch=moments.append)
    assert alone.coef is not None
    best, optimum = alone.coef, float(alone.objective or 0.0)
    squares = (X * X).sum(axis=1)
    K = np.exp(-gamma * np.maximum(squares[:, None] + squares - 2 * X @ X.T, 0))
    kappa, lipschitz, errors = 0.0, 0.0, []
    for moment in moments:
        coef = moment.model.coef
        error = float(moment.model.objective) - optimum
        if error <= RESOLVED * abs(optimum):
            break
        errors.append(error)
        wanted = np.clip(y * (coef - (K @ coef - y)), 0, C)  # of every variable, the others fixed
        distance = float(np.linalg.norm(coef - best))
        kappa = max(kappa, distance / float(np.linalg.norm(wanted - y * coef)))
        lipschitz = max(lipschitz, error / distance**2)
    largest = int(solver.estimator_.partition_.sizes.max())
    promised = 1 - 1 / (2 * blocks * largest * lipschitz * kappa**2)
    worst = max(after / before for before, after in pairwise(errors))
    return Constants(kappa, lipschitz, largest, blocks, promised, worst)
