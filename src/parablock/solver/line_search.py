"""How far to go along the direction that the blocks found (paper, section 4.2).

Along a direction d the objective of one output is

    phi(beta) = f(coef) + beta decision'd + beta^2/2 d'Kd + sum_i g_i(coef_i + beta d_i) - g_i(coef_i)

so with `decision` and `K d` at hand a step size costs no kernel values, only sums over the moved variables.
The bounds are lower <= coef + beta d <= upper; the objective never rises.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from parablock.problem import Problem

Vectors = tuple[np.ndarray, np.ndarray]  # of one output: coefficients, and the kernel matrix times them

SUFFICIENT_DECREASE = 1e-2  # sigma in the paper's condition
_HALVINGS = 60
_ZERO_SUM = 1e-9  # relative


@dataclass(frozen=True)
class Line:
    """One output's objective along a direction, restricted to the variables that move (no entry of it is zero)."""

    problem: Problem
    output: int
    rows: np.ndarray
    coef: np.ndarray
    direction: np.ndarray
    slope: float  # decision'd
    quadratic: float  # d'Kd

    @classmethod
    def along(cls, problem: Problem, output: int, point: Vectors, step: Vectors) -> Line:
        """The line from a point (coef, decision) along a step (d, K d)."""
        (coef, decision), (direction, product) = point, step
        rows = np.flatnonzero(direction)
        d = direction[rows]
        return cls(problem, output, rows, coef[rows], d, float(decision[rows] @ d), float(product[rows] @ d))

    def change(self, beta: float) -> float:
        """phi(beta) - phi(0)."""
        at = self.problem.dual_sum(self.output, self.point(beta), self.rows)
        start = self.problem.dual_sum(self.output, self.coef, self.rows)
        return beta * self.slope + 0.5 * beta * beta * self.quadratic + at - start

    def derivative(self, beta: float, ahead: bool = True) -> tuple[float, float]:
        """phi'(beta) and phi''(beta); where phi' jumps, its value just ahead of beta or just behind."""
        slopes, parameter, target, weight = self.problem.terms(self.output, self.rows)
        slope, curvature = _directional(slopes, parameter, target, weight, self.point(beta), self.direction, ahead)
        return self.slope + beta * self.quadratic + slope, self.quadratic + curvature

    def longest(self) -> float:
        """The largest beta inside the box (the paper's upper eta, with its division)."""
        lower, upper = self.problem.lower[self.output, self.rows], self.problem.upper[self.output, self.rows]
        room = np.where(self.direction > 0, upper - self.coef, self.coef - lower)
        return float(np.min(room / np.abs(self.direction)))

    def breaks(self, longest: float) -> np.ndarray:
        """Where phi' jumps before the longest step."""
        beta = (self.problem.loss.kink - self.coef) / self.direction
        return np.unique(beta[(beta > 0) & (beta < longest)])

    def point(self, beta: float) -> np.ndarray:
        """coef + beta d, exactly on the bounds and kinks that it reaches."""
        return _along(
            self.coef,
            self.direction,
            beta,
            self.problem.lower[self.output, self.rows],
            self.problem.upper[self.output, self.rows],
            self.problem.loss.kink,
            self.problem.weight[self.output, self.rows],
        )


def exact_step(line: Line) -> float:
    """The minimiser where g is piecewise quadratic: in closed form on the piece that holds it.

    Where g is linear in its box (hinge, quantile) there is one piece, and this is the paper's formula.
    """
    longest = line.longest()
    ends = np.append(line.breaks(longest), longest)
    # phi' rises, so the piece that holds its zero is the first whose far end is not downhill.
    low, high = 0, len(ends) - 1
    while low < high:
        middle = (low + high) // 2
        if line.derivative(float(ends[middle]), ahead=True)[0] < 0:
            low = middle + 1
        else:
            high = middle
    start, end = float(ends[low - 1]) if low else 0.0, float(ends[low])
    slope, curvature = line.derivative(start)
    if not slope < 0:
        return start
    best = start - slope / curvature if curvature > 0 else end
    best = min(best, end)
    return best if np.isfinite(best) and line.change(best) <= 0 else 0.0


def armijo_step(line: Line, n_blocks: int) -> float:
    """1, 1/2, 1/4, ... until the decrease is sufficient; never worse than 1/k, as the paper's proof asks."""
    promised, _ = line.derivative(0.0)
    if not promised < 0:
        return 0.0
    longest = line.longest()
    beta = min(1.0, longest)
    for _ in range(_HALVINGS):
        change = line.change(beta)
        if change <= SUFFICIENT_DECREASE * beta * promised:
            safe = min(1.0 / n_blocks, longest)
            return safe if line.change(safe) < change else beta
        beta *= 0.5
    return 0.0


def plane_step(
    problem: Problem, output: int, point: Vectors, step: Vectors, last: Vectors
) -> tuple[float, float] | None:
    """How far to go along the blocks' direction and along the last iteration's step to the minimum over their plane.

    It costs no kernel values, because the kernel products of both are known. To second order and only where every
    moved variable is free, which for ridge and logistic regression is always; there it makes of the blocks a
    preconditioner of conjugate gradients.
    """
    (coef, decision), (direction, product), (last_direction, last_product) = point, step, last
    # Of a step that is but rounding, the sum is not zero; a mixture that makes much of it would leave the constraint.
    if problem.intercept and abs(float(last_direction.sum())) > _ZERO_SUM * float(abs(last_direction).sum()):
        return None
    rows = np.flatnonzero((direction != 0) | (last_direction != 0))
    left, right, curvature = problem.slopes(output, coef[rows], rows)
    if not np.array_equal(left, right):
        return None
    plane = np.stack((direction[rows], last_direction[rows]))
    products = np.stack((product[rows], last_product[rows]))
    hessian = plane @ products.T + (plane * curvature) @ plane.T
    determinant = hessian[0, 0] * hessian[1, 1] - hessian[0, 1] * hessian[1, 0]
    if not determinant > 1e-12 * hessian[0, 0] * hessian[1, 1]:
        return None  # the two directions are one
    first, second = np.linalg.solve(hessian, -(plane @ (decision[rows] + left)))
    return float(first), float(second)


def combined(step: Vectors, last: Vectors, first: float, second: float) -> Vectors:
    """So far along each of the two."""
    return first * step[0] + second * last[0], first * step[1] + second * last[1]


@njit(cache=True, nogil=True)
def _directional(
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
def _along(
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
