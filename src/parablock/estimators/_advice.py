"""Warnings about fits that have converged, and yet are not what their user may think."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from parablock.losses import EpsilonInsensitive, SquaredError
from parablock.problem import Problem
from parablock.solver import Solution
from parablock.solver.units import Units, spread_of

_ROWS = 256  # whose decisions are computed again
_LARGEST = 5.0  # of very many errors, beside their root mean square
_SHARE = 0.5  # of the targets' spread, by which no prediction of least squares should be off


def rough_predictions(
    problem: Problem, solution: Solution, largest_value: Callable[[], float], tol: float
) -> str | None:
    """Of least squares in blocks, where the certificate allows predictions to be far off.

    The primal objective is quadratic. Where a function f = w + b is within `gap` of its minimum at f*,

        1/2 |w - w*|^2 + sum_i C_i (f(x_i) - f*(x_i))^2 <= gap

    so that |w(x) - w*(x)| <= sqrt(2 gap K(x, x)); and the mean over the rows of what is squared in the sum bounds what
    the intercept adds.
    """
    if type(problem.loss) is not SquaredError or (solution.history[-1:] and solution.history[-1].kind == "cholesky"):
        return None
    gap = np.array([measure.duality_gap for measure in solution.state.measures])
    spread = np.array([spread_of(problem, output) for output in range(problem.n_outputs)])
    value = largest_value()
    factor = 8.0 * value + 1.0 / problem.weight.sum(axis=1) if problem.intercept else 2.0 * value
    with np.errstate(invalid="ignore", divide="ignore"):
        off = np.sqrt(gap) * np.sqrt(factor)
        shares = np.where(spread > 0, off / spread, 0.0)
    worst = int(np.argmax(shares))
    if not shares[worst] > _SHARE:
        return None
    return (
        f"Converged to tol={tol:g}, but the duality gap of {gap[worst]:.3g} allows predictions to be off by up to "
        f"{off[worst]:.3g}, where the spread of the targets is {spread[worst]:.3g}. If that matters, fit again with "
        f"tol={tol * _SHARE / shares[worst]:.0e}, or lower C"
    )


def hidden_by_rounding(problem: Problem, decision: np.ndarray, exact: np.ndarray, tol: float) -> str | None:
    """Of kernel values in float32 whose rounding hides violations that are larger than `tol`.

    Parameters
    ----------
    problem : Problem
    decision, exact : ndarray of shape (n_outputs, some)
        Without their intercepts, of some rows: as training ended with them, and in float64.
    """
    units, error = Units.of(problem), exact - decision
    if problem.intercept:
        error -= error.mean(axis=1, keepdims=True)  # what all have in common is a matter of the intercept
    sizes = _LARGEST * np.sqrt(np.square(error).mean(axis=1))
    worst = int(np.argmax(sizes / units.scale))
    least = float(sizes[worst] / (units.scale[worst] * units.spread))
    if not least > tol:
        return None
    digit = 10.0 ** np.floor(np.log10(least))
    return (
        f"Converged to tol={tol:g}, but rounding of kernel values in float32 alone changes decision values by up to "
        f"{sizes[worst]:.1g}, so that the violation and the duality gap may be larger than they are said to be. The "
        f"smallest meaningful tol is {np.ceil(least / digit) * digit:.0e}"
    )


def some_rows_of(n: int) -> np.ndarray:
    """Those whose decisions `hidden_by_rounding` looks at."""
    return np.unique(np.linspace(0, n - 1, _ROWS).astype(np.intp))


def constant_model(problem: Problem, solution: Solution, tol: float) -> str | None:
    """Of support vector regression, where nothing but an intercept is left of the model: epsilon and `tol` hide all."""
    if type(problem.loss) is not EpsilonInsensitive:
        return None
    for output in np.flatnonzero(~solution.state.coef.any(axis=1)).tolist():
        target = problem.target[output]
        size = np.ptp(target) if problem.intercept else np.abs(target).max()
        if size > 0:
            what = "differ by at most" if problem.intercept else "are no larger than"
            of_several = f" for target {output}" if problem.n_outputs > 1 else ""
            return (
                f"The model is constant{of_several}: its targets {what} {size:.3g}, and with epsilon="
                f"{problem.loss.parameter:g} and tol={tol:g} no error of that size counts. Lower epsilon (and tol), or "
                "scale the targets."
            )
    return None
