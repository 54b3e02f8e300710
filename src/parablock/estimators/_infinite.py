"""C=inf: every loss must be zero, which is the hard margin of a classifier and interpolation of a regressor.

A penalty that grows in proportion to how far a row is off is exact: from some finite C on, the solution is that for an
infinite one, and no coefficient is on its bound any more. So C grows until that is so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from parablock.kernels import Kernel
from parablock.losses import EpsilonInsensitive, Hinge, Loss, Quantile, SquaredError, SquaredHinge
from parablock.precision import rows_in
from parablock.problem import Problem
from parablock.settings import Settings
from parablock.solver import State
from parablock.training import Trained, Watch

_FACTOR, _MOST = 100.0, 20  # from one C to the next, and how many are tried
_ROUNDED = 1e6  # beyond so many times the largest coefficient, what is rounding for C is more than that for it
_FAR = 1e10  # a solution whose squared norm must be so many times that of the first C's is none in practice
_PENALTIES: dict[type[Loss], Callable[[Loss], Loss]] = {
    Hinge: lambda loss: loss,
    SquaredHinge: lambda loss: Hinge(),
    EpsilonInsensitive: lambda loss: loss,
    Quantile: lambda loss: Quantile(0.5),
    SquaredError: lambda loss: Quantile(0.5),
}


def train_infinite(
    train: Callable[..., Trained],
    X: Any,
    kernel: Kernel,
    loss: Loss,
    target: np.ndarray,
    fit_intercept: bool,
    settings: Settings,
    rng: np.random.Generator,
    start: np.ndarray | None,
    watch: Watch | None,
) -> Trained:
    """What `train` gives for an infinite C, whatever the weights of the rows. It must have the parameters of
    `parablock.training.train`."""
    if type(loss) not in _PENALTIES:
        raise ValueError(
            f"C=inf needs a loss that can be zero, one of {', '.join(kind.__name__ for kind in _PENALTIES)}; "
            f"{type(loss).__name__} is not known to be. Use a finite C, such as 1e6."
        )
    if settings.checkpoint is not None:
        raise ValueError("C=inf is solved by several fits, which have no checkpoint. Leave checkpoint=None.")
    penalty = _PENALTIES[type(loss)](loss)
    C, least = float(np.abs(target).max(initial=0.0)) or 1.0, None
    for _ in range(_MOST):
        problem = Problem.build(penalty, target, np.full(target.shape, C), fit_intercept)
        trained = train(X, kernel, problem, settings, rng, start, watch)
        X, solution = rows_in(X, trained.dtype), trained.solution
        coef = start = solution.state.coef
        inside = not np.any((coef != 0) & ((coef == problem.lower) | (coef == problem.upper)))
        if solution.reason in ("interrupted", "stopped"):
            return trained
        if inside and solution.reason == "converged":
            largest = float(np.abs(coef).max(initial=0.0))
            if largest == 0.0 or largest >= C / _ROUNDED:
                return trained
            C = _FACTOR * largest
            continue
        reach = _least_value(problem, solution.state)
        least = reach if least is None else least
        if solution.reason != "converged" or np.any(reach > _FAR * least):
            break
        C *= _FACTOR
    margin = isinstance(penalty, Hinge)
    off = penalty.parameter if isinstance(penalty, EpsilonInsensitive) else 0.0
    must = "be within the margin" if margin else f"be off by more than {off:g}"
    raise ValueError(
        f"No solution for C=inf was found: no training row may {must}, and with C={C:g} some still is "
        f"({solution.reason} after {solution.state.iteration} iterations). There is none where rows with equal "
        f"features have different {'classes' if margin else 'targets'}, or where the kernel fits too little. Use a "
        "finite C, or a kernel that fits more closely (a larger gamma)."
    )


def finite_penalty(loss: Loss, coef: np.ndarray) -> tuple[Loss, np.ndarray, str]:
    """The loss and the weights, of the coefficients' shape, of a finite problem with the same solution; and a note."""
    C = 4.0 * float(np.abs(coef).max(initial=0.0)) or 1.0  # far from where the largest coefficient is on its bound
    told = f"C=inf: of the problem with C={C:.4g}, beyond which the solution does not change."
    return _PENALTIES[type(loss)](loss), np.full(coef.shape, C), told


def _least_value(problem: Problem, state: State) -> np.ndarray:
    """What the dual value for an infinite C is at least, for every output: its largest value along the ray from zero
    through the coefficients, on which there is no bound."""
    values = []
    for output, (coef, decision) in enumerate(zip(state.coef, state.decision)):
        gain, square = -problem.dual_sum(output, coef), float(coef @ decision)
        values.append(gain**2 / (2.0 * square) if square > 0.0 else np.inf if gain > 0.0 else 0.0)
    return np.array(values)
