"""What must hold of a solution before it is called converged, checked in float64 by other means than the solver's.

The solver keeps decisions up to date instead of computing them again, and moves coefficients to a bound that they have
nearly reached. That rounding may add up is seen by nothing that it measures itself.
"""

from __future__ import annotations

import numpy as np
from scipy.special import xlog1py, xlogy

from parablock.losses import Logistic
from parablock.problem import Problem
from parablock.solver.state import State

_ZERO_SUM = 1e-9  # of the coefficients' absolute sum
_LOST = {np.dtype(np.float32): 1e-5, np.dtype(np.float64): 1e-9}  # share of all terms that an objective may be off by
_HELD, _HELD_SHARE = 1e-12, 1e-3  # of C, where the logistic slopes are held; of the objective, that it may cost


def doubt_about(problem: Problem, state: State, K: np.ndarray | None) -> str | None:
    """Why a solution cannot be the optimum that it was taken for; None where all is well.

    K is the kernel matrix, of a problem that is small enough for it.
    """
    for output in range(problem.n_outputs):
        coef = state.coef[output]
        outside = np.maximum(problem.lower[output] - coef, coef - problem.upper[output]).max()
        if outside > 0:
            return f"a coefficient is {outside:.3g} outside of its bounds"
        total, size = float(coef.sum()), float(np.abs(coef).sum())
        if problem.intercept and abs(total) > _ZERO_SUM * size:
            return f"the coefficients sum to {total:.3g} instead of zero"
        told = None if K is None else _other_objective(problem, output, coef, state.measures[output].objective, K)
        told = told or _rows_on_held_slopes(problem, output, state)
        if told is not None:
            return told
    return None


def _other_objective(problem: Problem, output: int, coef: np.ndarray, claimed: float, K: np.ndarray) -> str | None:
    used = np.flatnonzero(coef)
    weights, own = coef[used], K[np.ix_(used, used)]
    decision = own.astype(np.float64) @ weights
    rest = problem.dual_sum(output, coef)
    objective, terms = 0.5 * float(weights @ decision) + rest, float(np.abs(weights) @ np.abs(own) @ np.abs(weights))
    if abs(objective - claimed) <= _LOST[K.dtype] * (terms + abs(rest)):
        return None
    return f"the dual objective is {-objective:.6g}, where the solver arrived at {-claimed:.6g}"


def _rows_on_held_slopes(problem: Problem, output: int, state: State) -> str | None:
    """The logistic loss has infinite slopes at its bounds, and near to them they are held at a finite value: what that
    costs grows with C."""
    if type(problem.loss) is not Logistic:
        return None
    target, weight, measure = problem.target[output], problem.weight[output], state.measures[output]
    inside = target * state.coef[output]
    held = (weight > 0) & ((inside < _HELD * weight) | (weight - inside < _HELD * weight))
    p, C = inside[held], weight[held]
    margin = (target * (state.decision[output] + measure.bias))[held]
    gap = float((C * np.logaddexp(0.0, -margin) + xlogy(p, p / C) + xlog1py(C - p, -p / C) + p * margin).sum())
    if not gap > _HELD_SHARE * abs(measure.objective):
        return None
    return (
        f"{len(p)} coefficients are below {_HELD:g} of their bound, where the logistic loss has no digits left, which "
        f"may cost {gap / abs(measure.objective):.2g} of the objective"
    )
