"""The dual problem (paper, section 3) and what can be said of a point of it.

    minimise over coef   f(coef) = 1/2 coef' K coef + sum_i g_i(coef_i),   lower_i <= coef_i <= upper_i
    with an intercept    also sum_i coef_i = 0                             (LIBSVM's problem)

`coef` are the signed coefficients of the kernel expansion, so `decision = K coef` is the current prediction
on every training sample, without its intercept, and `decision_i + g_i'(coef_i)` the gradient. Labels, weights
and regression targets live only inside g_i. Several outputs (one-vs-rest classes) are several independent
problems over one kernel matrix: every array here has one row an output.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numba import njit

from parablock import vectors
from parablock.losses import Loss


@dataclass(frozen=True)
class Problem:
    """Losses, targets and bounds of all outputs; everything but the kernel.

    Attributes
    ----------
    loss : Loss
    target, weight : ndarray of shape (n_outputs, n)
        Label or regression target, and C times sample weight (positive), of each sample.
    lower, upper : ndarray of shape (n_outputs, n)
        The box.
    intercept : bool
        Whether the coefficients of an output must sum to zero.
    """

    loss: Loss
    target: np.ndarray
    weight: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    intercept: bool

    @classmethod
    def build(cls, loss: Loss, target: np.ndarray, weight: np.ndarray, intercept: bool) -> Problem:
        target = np.ascontiguousarray(np.atleast_2d(target), dtype=np.float64)
        weight = np.ascontiguousarray(np.broadcast_to(weight, target.shape), dtype=np.float64)
        lower, upper = np.empty_like(target), np.empty_like(target)
        for output in range(len(target)):
            _bounds(
                loss.compiled_bounds,
                loss.parameter,
                target[output],
                weight[output],
                lower[output],
                upper[output],
            )
        problem = cls(loss, target, weight, lower, upper, intercept)
        problem._refuse_nonsense()
        return problem

    @property
    def n_outputs(self) -> int:
        return self.target.shape[0]

    @property
    def n(self) -> int:
        return self.target.shape[1]

    def terms(self, output: int, rows: Any = slice(None)) -> tuple[Any, float, np.ndarray, np.ndarray]:
        """What the loops over samples need of the loss: slopes, parameter, target, weight."""
        return (
            self.loss.compiled_slopes,
            self.loss.parameter,
            self.target[output, rows],
            self.weight[output, rows],
        )

    def dual_sum(self, output: int, coef: np.ndarray, rows: Any = slice(None)) -> float:
        """sum_i g_i(coef_i) over the given rows."""
        _, parameter, target, weight = self.terms(output, rows)
        return _dual_sum(self.loss.compiled_dual, parameter, target, weight, coef)

    def slopes(
        self, output: int, coef: np.ndarray, rows: Any = slice(None)
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Left and right derivative of every g_i over the given rows, and its curvature."""
        slopes, parameter, target, weight = self.terms(output, rows)
        left, right, curvature = np.empty_like(coef), np.empty_like(coef), np.empty_like(coef)
        _slopes(slopes, parameter, target, weight, coef, left, right, curvature)
        return left, right, curvature

    def slope_along(
        self, output: int, rows: Any, coef: np.ndarray, direction: np.ndarray, ahead: bool
    ) -> tuple[float, float]:
        """Slope and curvature of the sum of the given rows' g_i along a direction; where the slope jumps, its value
        just ahead or just behind."""
        slopes, parameter, target, weight = self.terms(output, rows)
        return _slope_along(slopes, parameter, target, weight, coef, direction, ahead)

    def moved(self, output: int, rows: Any, coef: np.ndarray, direction: np.ndarray, beta: float) -> np.ndarray:
        """coef + beta d of the given rows, exactly on the bounds and kinks that it reaches."""
        lower, upper, weight = self.lower[output, rows], self.upper[output, rows], self.weight[output, rows]
        return _moved(coef, direction, beta, lower, upper, self.loss.kink, weight)

    def measure(self, output: int, coef: np.ndarray, decision: np.ndarray) -> Measure:
        """Objective, duality gap and violation of one output at a point with its `decision = K coef`."""
        slopes, parameter, target, weight = self.terms(output)
        upward, downward, free = np.empty_like(coef), np.empty_like(coef), np.empty_like(coef)
        count, highest, lowest = _wishes(slopes, parameter, target, weight, coef, decision, upward, downward, free)
        bias = balancing_bias(free[:count], highest, lowest) if self.intercept else 0.0
        if bias != 0.0:
            upward -= bias
            downward += bias
        gap, objective = _certificate(
            self.loss.compiled_dual, self.loss.compiled_primal, parameter, target, weight, coef, decision, bias
        )
        # With an intercept this is LIBSVM's stopping rule, the maximal violating pair, whatever the bias.
        violation = highest + lowest if self.intercept else max(highest, lowest)
        return Measure(objective, gap, max(violation, 0.0), bias, upward, downward)

    def take(self, rows: np.ndarray) -> Problem:
        """The problem of the given rows alone."""
        names = "target", "weight", "lower", "upper"
        return replace(self, **{name: vectors.columns(getattr(self, name), rows) for name in names})

    def feasible(self, coef: np.ndarray) -> np.ndarray:
        """The given coefficients moved into the box and, with an intercept, to sum zero.

        Clipping comes first; then the heavier sign is scaled down, which keeps every coefficient in its box
        because zero lies in every box.
        """
        coef = np.clip(coef, self.lower, self.upper)
        if self.intercept:
            positive = np.where(coef > 0, coef, 0.0).sum(axis=1, keepdims=True)
            negative = -np.where(coef < 0, coef, 0.0).sum(axis=1, keepdims=True)
            common = np.minimum(positive, negative)
            with np.errstate(invalid="ignore", divide="ignore"):
                scale = np.where(coef > 0, common / positive, common / negative)
            # A sum that is but rounding stays, and with it every coefficient that is exactly on its bound.
            balanced = np.abs(positive - negative) <= 1e-12 * (positive + negative)
            coef = np.where(balanced | (coef == 0), coef, coef * scale)
        return np.ascontiguousarray(coef)

    def _refuse_nonsense(self) -> None:
        name = type(self.loss).__name__
        if not (np.all(self.lower <= 0) and np.all(self.upper >= 0)):
            raise ValueError(
                f"{name}.bounds must return lower <= 0 <= upper for every sample, because training starts from "
                f"zero; got lower up to {np.max(self.lower)} and upper down to {np.min(self.upper)}."
            )
        zero = np.zeros(self.n)
        for output in range(self.n_outputs):
            left, right, _ = self.slopes(output, zero)
            if not np.all(left <= right):
                raise ValueError(
                    f"{name}.slopes must return left <= right (g is convex) and never nan; at coef=0 it returned "
                    "a left slope above the right one or nan. Check the loss's derivative."
                )
            if not np.isfinite(self.dual_sum(output, zero)):
                raise ValueError(f"{name}.dual must be finite at coef=0; got {self.dual_sum(output, zero)}.")


@dataclass(frozen=True)
class Measure:
    """How good a point of the problem is, for one output.

    Attributes
    ----------
    objective : float
        f, the minimised dual objective.
    duality_gap : float
        Primal minus dual value, never negative, zero at the optimum only: the certificate.
    violation : float
        Largest violation of the optimality conditions, which `tol` bounds.
    bias : float
        The intercept that fits the free variables; 0 without an intercept.
    upward, downward : ndarray of shape (n,)
        How much each variable wants to grow, and to shrink; -inf at the bound, not positive when satisfied.
    """

    objective: float
    duality_gap: float
    violation: float
    bias: float
    upward: np.ndarray
    downward: np.ndarray

    @property
    def free(self) -> np.ndarray:
        """Which variables are strictly inside their box and off every kink."""
        return self.upward == -self.downward


def fitting_bias(upward: np.ndarray, downward: np.ndarray) -> float:
    """The intercept at which the variables' wishes balance."""
    return balancing_bias(upward[upward == -downward], float(upward.max()), float(downward.max()))


def balancing_bias(free: np.ndarray, highest: float, lowest: float) -> float:
    """The same from the upward wishes of the free variables, and the largest wishes to grow and to shrink.

    At the optimum every free variable has upward = -downward = bias. The median is not moved by variables that
    are still far off. Without free variables any bias between the two extreme wishes will do.
    """
    if len(free):
        return float(np.median(free))
    if np.isfinite(highest) and np.isfinite(lowest):
        return 0.5 * (highest - lowest)
    return highest if np.isfinite(highest) else -lowest if np.isfinite(lowest) else 0.0


@njit(cache=True, nogil=True)
def _bounds(
    bounds: Any, parameter: float, target: np.ndarray, weight: np.ndarray, lower: np.ndarray, upper: np.ndarray
) -> None:
    for i in range(len(target)):
        lower[i], upper[i] = bounds(target[i], weight[i], parameter)


@njit(cache=True, nogil=True)
def _slopes(
    slopes: Any,
    parameter: float,
    target: np.ndarray,
    weight: np.ndarray,
    coef: np.ndarray,
    left: np.ndarray,
    right: np.ndarray,
    curvature: np.ndarray,
) -> None:
    for i in range(len(coef)):
        left[i], right[i], curvature[i] = slopes(coef[i], target[i], weight[i], parameter)


@njit(cache=True, nogil=True)
def _dual_sum(dual: Any, parameter: float, target: np.ndarray, weight: np.ndarray, coef: np.ndarray) -> float:
    total = 0.0
    for i in range(len(coef)):
        total += dual(coef[i], target[i], weight[i], parameter)
    return total


@njit(cache=True, nogil=True)
def _slope_along(
    slopes: Any,
    parameter: float,
    target: np.ndarray,
    weight: np.ndarray,
    coef: np.ndarray,
    direction: np.ndarray,
    ahead: bool,
) -> tuple[float, float]:
    slope, curvature = 0.0, 0.0
    for i in range(len(coef)):
        left, right, bend = slopes(coef[i], target[i], weight[i], parameter)
        slope += direction[i] * (right if (direction[i] > 0.0) == ahead else left)
        curvature += direction[i] * direction[i] * bend
    return slope, curvature


@njit(cache=True, nogil=True)
def _moved(
    coef: np.ndarray,
    direction: np.ndarray,
    beta: float,
    lower: np.ndarray,
    upper: np.ndarray,
    kink: float,
    weight: np.ndarray,
) -> np.ndarray:
    point = np.empty_like(coef)
    for i in range(len(coef)):
        value = min(max(coef[i] + beta * direction[i], lower[i]), upper[i])
        # Rounding must not leave a variable a hair away from a bound or kink that it has reached, nor must steps
        # shorter than 1 bring it nearer for ever.
        near = max(1e-12 * abs(direction[i]), 1e-13 * weight[i])
        for place in (lower[i], upper[i], kink):
            if abs(value - place) <= near:
                value = place
        point[i] = value
    return point


@njit(cache=True, nogil=True)
def _wishes(
    slopes: Any,
    parameter: float,
    target: np.ndarray,
    weight: np.ndarray,
    coef: np.ndarray,
    decision: np.ndarray,
    upward: np.ndarray,
    downward: np.ndarray,
    free: np.ndarray,
) -> tuple[int, float, float]:
    """Fill in how much each variable wants to grow and to shrink, and the wishes of the free ones; returns the number
    of these and the largest wishes."""
    count, highest, lowest = 0, -np.inf, -np.inf
    for i in range(len(coef)):
        left, right, _ = slopes(coef[i], target[i], weight[i], parameter)
        up, down = -(decision[i] + right), decision[i] + left
        upward[i], downward[i] = up, down
        highest, lowest = max(highest, up), max(lowest, down)
        if up == -down:
            free[count] = up
            count += 1
    return count, highest, lowest


@njit(cache=True, nogil=True)
def _certificate(
    dual: Any,
    primal: Any,
    parameter: float,
    target: np.ndarray,
    weight: np.ndarray,
    coef: np.ndarray,
    decision: np.ndarray,
    bias: float,
) -> tuple[float, float]:
    """The duality gap and the objective."""
    # Fenchel: primal(z) + g(c) + c z >= 0 for every sample, so the gap is a sum of non-negative terms and
    # rounding cannot make it negative.
    gap, objective = 0.0, 0.0
    for i in range(len(coef)):
        own, prediction = dual(coef[i], target[i], weight[i], parameter), decision[i] + bias
        objective += own + 0.5 * coef[i] * decision[i]
        gap += max(0.0, primal(prediction, target[i], weight[i], parameter) + own + coef[i] * prediction)
    return gap, objective
