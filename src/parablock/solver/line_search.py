"""How far to go along the direction that the blocks found (paper, section 4.2).

Along a direction d the objective of one output is

    phi(beta) = f(coef) + beta decision'd + beta^2/2 d'Kd + sum_i g_i(coef_i + beta d_i) - g_i(coef_i)

so with `decision` and `K d` at hand a step size costs no kernel values, only sums over the moved variables.
The bounds are lower <= coef + beta d <= upper; the objective never rises.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from parablock import vectors
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
        rows = vectors.flatnonzero(direction != 0)
        d = direction[rows]
        return cls(problem, output, rows, coef[rows], d, float(decision[rows] @ d), float(product[rows] @ d))

    @cached_property
    def _own(self) -> Problem:
        """The problem of the moved variables alone, which every question about the line asks."""
        return self.problem.take(self.rows, slice(self.output, self.output + 1))

    @cached_property
    def _start(self) -> float:
        return self._own.dual_sum(0, self.coef)

    def starts_free(self) -> bool:
        """Whether no variable that moves is on a bound or kink at the start."""
        left, right, _ = self._own.slopes(0, self.coef)
        return bool((left == right).all())

    def change(self, beta: float) -> float:
        """phi(beta) - phi(0)."""
        at = self._own.dual_sum(0, self.point(beta))
        return beta * self.slope + 0.5 * beta * beta * self.quadratic + at - self._start

    def derivative(self, beta: float, ahead: bool = True) -> tuple[float, float]:
        """phi'(beta) and phi''(beta); where phi' jumps, its value just ahead of beta or just behind."""
        slope, curvature = self._own.slope_along(0, self.point(beta), self.direction, ahead)
        return self.slope + beta * self.quadratic + slope, self.quadratic + curvature

    def longest(self) -> float:
        """The largest beta inside the box (the paper's upper eta, with its division)."""
        lower, upper = self._own.lower[0], self._own.upper[0]
        up, down = (upper - self.coef) / self.direction, (lower - self.coef) / self.direction
        return float(vectors.maximum(up, down).min())

    def breaks(self, longest: float) -> np.ndarray:
        """Where phi' jumps before the longest step."""
        kink = self.problem.loss.kink
        if math.isnan(kink):
            return self.coef[:0]
        beta = (kink - self.coef) / self.direction
        return vectors.unique(beta[(beta > 0) & (beta < longest)])

    def point(self, beta: float) -> np.ndarray:
        """coef + beta d, exactly on the bounds and kinks that it reaches."""
        return self._own.moved(0, self.coef, self.direction, beta)


def exact_step(line: Line) -> float:
    """The minimiser where g is piecewise quadratic: in closed form on the piece that holds it.

    Where g is linear in its box (hinge, quantile) there is one piece, and this is the paper's formula.
    """
    longest = line.longest()
    breaks = line.breaks(longest)
    # phi' rises, so the piece that holds its zero is the first whose far end is not downhill.
    low, high = 0, len(breaks)
    while low < high:
        middle = (low + high) // 2
        if line.derivative(float(breaks[middle]), ahead=True)[0] < 0:
            low = middle + 1
        else:
            high = middle
    start, end = float(breaks[low - 1]) if low else 0.0, float(breaks[low]) if low < len(breaks) else longest
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
    rows = vectors.flatnonzero((direction != 0) | (last_direction != 0))
    left, right, curvature = problem.take(rows, slice(output, output + 1)).slopes(0, coef[rows])
    if not (left == right).all():
        return None
    plane = vectors.stack((direction[rows], last_direction[rows]))
    products = vectors.stack((product[rows], last_product[rows]))
    hessian = vectors.to_host(plane @ products.T + (plane * curvature) @ plane.T)
    determinant = hessian[0, 0] * hessian[1, 1] - hessian[0, 1] * hessian[1, 0]
    if not determinant > 1e-12 * hessian[0, 0] * hessian[1, 1]:
        return None  # the two directions are one
    first, second = np.linalg.solve(hessian, vectors.to_host(-(plane @ (decision[rows] + left))))
    return float(first), float(second)


def combined(step: Vectors, last: Vectors, first: float, second: float) -> Vectors:
    """So far along each of the two."""
    return first * step[0] + second * last[0], first * step[1] + second * last[1]
