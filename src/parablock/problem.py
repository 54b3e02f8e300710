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

from parablock import vectors
from parablock.compiling import njit
from parablock.losses import Loss

# Sums may be taken in any order. Nan and infinity keep their meaning: bounds and refusals rest on them.
_CHUNK = 1024  # rows of which what lies between two steps stays in the cache
_LOOP: dict[str, Any] = {"cache": True, "nogil": True, "fastmath": {"reassoc", "contract", "nsz"}}


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
        weight = np.array(np.broadcast_to(weight, target.shape), dtype=np.float64, order="C")
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
        """What coordinate descent needs of the loss: slopes, parameter, target, weight."""
        return (
            self.loss.compiled_slopes,
            self.loss.parameter,
            self.target[output, rows],
            self.weight[output, rows],
        )

    def dual_sum(self, output: int, coef: np.ndarray) -> float:
        """sum_i g_i(coef_i)."""
        return _sum_of_rows(self.loss.dual_of_rows, *self._given(output, coef))

    def primal_sum(self, output: int, prediction: np.ndarray) -> float:
        """The losses of all rows at these predictions, intercept included."""
        return _sum_of_rows(self.loss.primal_of_rows, *self._given(output, prediction))

    def slopes(self, output: int, coef: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Left and right derivative of every g_i, and its curvature."""
        return _slopes(self.loss.slopes_of_rows, *self._given(output, coef))

    def slope_along(self, output: int, coef: np.ndarray, direction: np.ndarray, ahead: bool) -> tuple[float, float]:
        """Slope and curvature of the sum of all g_i along a direction; where the slope jumps, its value just ahead or
        just behind."""
        return _slope_along(self.loss.slopes_of_rows, *self._given(output, coef, direction), ahead)

    def moved(self, output: int, coef: np.ndarray, direction: np.ndarray, beta: float) -> np.ndarray:
        """coef + beta d, exactly on the bounds and kinks that it reaches."""
        lower, upper, weight = self.lower[output], self.upper[output], self.weight[output]
        coef, direction = np.ascontiguousarray(coef), np.ascontiguousarray(direction)
        return _moved(coef, direction, beta, lower, upper, self.loss.kink, weight)

    def measure(self, output: int, coef: np.ndarray, decision: np.ndarray, bias: float | None = None) -> Measure:
        """Objective, duality gap and violation of one output at a point with its `decision = K coef`; the gap at the
        given intercept, or at the one that fits the free variables."""
        given = self._given(output, coef, decision)
        upward, downward, free, highest, lowest = _wishes(self.loss.slopes_of_rows, *given)
        if bias is None:
            bias = balancing_bias(free, highest, lowest) if self.intercept else 0.0
        gap, objective = _certificate(self.loss.dual_of_rows, self.loss.primal_of_rows, *given, bias, upward, downward)
        if not np.isfinite(objective):
            raise out_of_range(objective)
        # With an intercept this is LIBSVM's stopping rule, the maximal violating pair, whatever the bias.
        violation = highest + lowest if self.intercept else max(highest, lowest)
        return Measure(objective, gap, max(violation, 0.0), bias, upward, downward)

    def take(self, rows: np.ndarray, outputs: slice = slice(None)) -> Problem:
        """The problem of the given rows alone, and of the given outputs."""
        names = "target", "weight", "lower", "upper"
        return replace(self, **{name: vectors.columns(getattr(self, name)[outputs], rows) for name in names})

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

    def _given(self, output: int, *values: np.ndarray) -> tuple[Any, ...]:
        """What the loops over rows are given of an output: parameter, target, weight and the given values."""
        arrays = self.target[output], self.weight[output], *values
        return self.loss.parameter, *(np.ascontiguousarray(array) for array in arrays)

    def _refuse_nonsense(self) -> None:
        name = type(self.loss).__name__
        unbounded = np.any(np.isinf(self.lower) & np.isinf(self.upper))
        with np.errstate(over="ignore"):
            largest, weights = np.abs(self.target).max(initial=1.0), self.weight.sum(axis=1).max(initial=1.0)
            size = weights * (largest**2 if unbounded else largest)
        if not np.isfinite(size) and np.isfinite(weights):
            them = "their squares" if unbounded else "them"
            raise ValueError(
                f"y has values up to {largest:.3g}, and the objective is a sum of {them}, times C: it leaves the range "
                "of numbers. Divide y by a constant, and multiply what is predicted."
            )
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
        The intercept: the given one, or the one that fits the free variables; 0 without an intercept.
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


def out_of_range(objective: float) -> ValueError:
    """For a point whose objective is infinite or not a number."""
    if np.isnan(objective):
        return not_numbers()
    return ValueError(
        "The objective left the range of numbers: targets, C or kernel values are too large. Divide the targets by "
        "their size, lower C, or scale the data."
    )


def not_numbers() -> ValueError:
    """For a point that holds nan: every comparison with it is false, so that it would look like the optimum."""
    return ValueError(
        "The kernel gave values that are not numbers. Check what it computes for rows with extreme values, and scale "
        "the data."
    )


def fitting_bias(upward: np.ndarray, downward: np.ndarray) -> float:
    """The intercept at which the variables' wishes balance."""
    return balancing_bias(upward[upward == -downward], float(upward.max()), float(downward.max()))


def balancing_bias(free: np.ndarray, highest: float, lowest: float) -> float:
    """The same from the upward wishes of the free variables, and the largest wishes to grow and to shrink.

    At the optimum every free variable has upward = -downward = bias. The median is not moved by variables that
    are still far off. Without free variables any bias between the two extreme wishes will do.
    """
    if len(free):
        # np.median looks for nan too, which no free variable's wish is, and takes six times as long.
        middle = len(free) // 2
        ordered = np.partition(free, middle)
        return float(ordered[middle] if len(free) % 2 else 0.5 * (ordered[:middle].max() + ordered[middle]))
    if np.isfinite(highest) and np.isfinite(lowest):
        return 0.5 * (highest - lowest)
    return highest if np.isfinite(highest) else -lowest if np.isfinite(lowest) else 0.0


@njit(**_LOOP)
def _bounds(
    bounds: Any, parameter: float, target: np.ndarray, weight: np.ndarray, lower: np.ndarray, upper: np.ndarray
) -> None:
    for i in range(len(target)):
        lower[i], upper[i] = bounds(target[i], weight[i], parameter)


@njit(**_LOOP)
def _slopes(
    slopes: Any, parameter: float, target: np.ndarray, weight: np.ndarray, coef: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    left, right, curvature = np.empty(len(coef)), np.empty(len(coef)), np.empty(len(coef))
    slopes(coef, target, weight, parameter, left, right, curvature)
    return left, right, curvature


@njit(**_LOOP)
def _sum_of_rows(function: Any, parameter: float, target: np.ndarray, weight: np.ndarray, values: np.ndarray) -> float:
    each, total = np.empty(len(values)), 0.0
    function(values, target, weight, parameter, each)
    for value in each:
        total += value
    return total


@njit(**_LOOP)
def _slope_along(
    slopes: Any,
    parameter: float,
    target: np.ndarray,
    weight: np.ndarray,
    coef: np.ndarray,
    direction: np.ndarray,
    ahead: bool,
) -> tuple[float, float]:
    left, right, bend = _slopes(slopes, parameter, target, weight, coef)
    slope, curvature = 0.0, 0.0
    for i in range(len(coef)):
        slope += direction[i] * (right[i] if (direction[i] > 0.0) == ahead else left[i])
        curvature += direction[i] * direction[i] * bend[i]
    return slope, curvature


@njit(**_LOOP)
def _moved(
    coef: np.ndarray,
    direction: np.ndarray,
    beta: float,
    lower: np.ndarray,
    upper: np.ndarray,
    kink: float,
    weight: np.ndarray,
) -> np.ndarray:
    point, size = np.empty_like(coef), 0.0
    for i in range(len(coef)):
        point[i] = min(max(coef[i] + beta * direction[i], lower[i]), upper[i])
        size = max(size, abs(coef[i]), abs(point[i]))
    for i in range(len(coef)):
        value = point[i]
        # Rounding must not leave a variable a hair away from a bound or kink that it has reached, nor must steps
        # shorter than 1 bring it nearer for ever. What is near is measured by the coefficients that there are: of a
        # very large C hardly any use is made, and what is little beside it is not little beside them.
        near = max(1e-12 * abs(direction[i]), 1e-13 * min(weight[i], size))
        value = lower[i] if abs(value - lower[i]) <= near else value
        value = upper[i] if abs(value - upper[i]) <= near else value
        point[i] = kink if abs(value - kink) <= near else value
    return point


@njit(**_LOOP)
def _wishes(
    slopes: Any, parameter: float, target: np.ndarray, weight: np.ndarray, coef: np.ndarray, decision: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float, float]:
    """How much each variable wants to grow and to shrink, the wishes of the free ones, and the largest wishes."""
    n = len(coef)
    upward, downward, free, bend = np.empty(n), np.empty(n), np.empty(n), np.empty(_CHUNK)
    count, highest, lowest = 0, -np.inf, -np.inf
    for start in range(0, n, _CHUNK):
        some = slice(start, min(start + _CHUNK, n))
        now, left, right = decision[some], downward[some], upward[some]  # the wishes take the place of the slopes
        slopes(coef[some], target[some], weight[some], parameter, left, right, bend[: len(now)])
        for i in range(len(now)):
            up, down = -(now[i] + right[i]), now[i] + left[i]
            right[i], left[i] = up, down
            highest, lowest = max(highest, up), max(lowest, down)
            # Without a branch, which could not be predicted; what is not free is overwritten.
            free[count] = up
            count += up == -down
    return upward, downward, free[:count], highest, lowest


@njit(**_LOOP)
def _certificate(
    dual: Any,
    primal: Any,
    parameter: float,
    target: np.ndarray,
    weight: np.ndarray,
    coef: np.ndarray,
    decision: np.ndarray,
    bias: float,
    upward: np.ndarray,
    downward: np.ndarray,
) -> tuple[float, float]:
    """The duality gap and the objective; the wishes become those at the bias."""
    n = len(coef)
    prediction, own, paid = np.empty(_CHUNK), np.empty(_CHUNK), np.empty(_CHUNK)
    gap, objective = 0.0, 0.0
    for start in range(0, n, _CHUNK):
        some = slice(start, min(start + _CHUNK, n))
        here, now, up, down = coef[some], decision[some], upward[some], downward[some]
        size = len(here)
        for i in range(size):
            prediction[i] = now[i] + bias
        dual(here, target[some], weight[some], parameter, own[:size])
        primal(prediction[:size], target[some], weight[some], parameter, paid[:size])
        # Fenchel: primal(z) + g(c) + c z >= 0 for every sample, so the gap is a sum of non-negative terms and
        # rounding cannot make it negative.
        for i in range(size):
            objective += own[i] + 0.5 * here[i] * now[i]
            gap += max(0.0, paid[i] + own[i] + here[i] * prediction[i])
        for i in range(size):
            up[i] -= bias
            down[i] += bias
    return gap, objective
