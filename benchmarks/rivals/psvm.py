"""PSVM: incomplete Cholesky factorisation and an interior point method (Chang and others, NIPS 2007).

The kernel matrix is replaced by ``H H'`` of a small rank p, by Cholesky's method with the largest remaining diagonal
element as the next pivot. With it every Newton step of a primal-dual interior point method costs n p^2 instead of n^3,
by the formula of Sherman, Morrison and Woodbury. Rows that come out with a coefficient predict with the true kernel.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from benchmarks.rivals.base import Model, Stopwatch
from benchmarks.rivals.low_rank import LowRank
from benchmarks.rivals.workshop import DualRival, Workshop

_ITERATIONS = 200
_TO_THE_EDGE = 0.995  # of the way to the nearest bound
_ON_BOUND = 1e-6  # of C: a coefficient that is so near to a bound is on it


@dataclass
class PSVM(DualRival):
    """Low rank and an interior point method.

    Parameters
    ----------
    power : float
        The rank is n to this power; the paper's are 0.5 and 0.6.
    tol : float
        Duality gap to stop at, as a share of the objective; of the problem with the low rank.

    Attributes
    ----------
    rank_ : int
    iterations_ : int
        Of the interior point method.
    """

    power: float = field(default=0.5, kw_only=True)
    tol: float = field(default=1e-4, kw_only=True)

    def _work(self, workshop: Workshop, clock: Stopwatch) -> Model:
        if not 0.0 < self.power <= 1.0:
            raise ValueError(f"power={self.power:g} was given; the rank is n to this power: use 0 to 1.")
        factor = incomplete_cholesky(workshop, round(len(workshop.samples) ** self.power))
        self.rank_ = factor.shape[1]
        y = workshop.problem.target[0]
        signs = y if self.fit_intercept else np.zeros_like(y)
        point, self.iterations_ = interior_point(factor.scaled(y), signs, self.C, self.tol)
        alpha = point.a
        alpha = np.where(alpha < _ON_BOUND * self.C, 0.0, np.where(alpha > (1 - _ON_BOUND) * self.C, self.C, alpha))
        return workshop.models.everywhere(y * alpha, point.nu)


def incomplete_cholesky(workshop: Workshop, rank: int) -> LowRank:
    """``H`` of shape (n, rank) with ``H H'`` near the kernel matrix; fewer columns where that is exact already."""
    samples, kernel = workshop.samples, workshop.kernel
    factor = LowRank.zeros(len(samples), rank, workshop.device)
    known, left = factor.values, factor.near(kernel.diagonal(samples.self_overlap).astype(np.float64))
    precision = 10 * np.finfo(samples.dtype).eps
    for column in range(rank):
        pivot = int(left.argmax())
        if left[pivot] <= precision:
            return factor.first(column)
        values = factor.near(workshop.device.gram(kernel, samples, samples.take(np.array([pivot])))[:, 0])
        own = (values - known[:, :column] @ known[pivot, :column]) / left[pivot] ** 0.5
        known[:, column] = own
        left -= own * own
        left[pivot] = 0.0
    return factor


class Point(NamedTuple):
    """Of the interior point method: the variables, the multipliers of 0 <= a and a <= C, and that of the sum."""

    a: np.ndarray
    low: np.ndarray
    high: np.ndarray
    nu: float

    def plus(self, length: float, step: Point) -> Point:
        return Point(
            self.a + length * step.a,
            self.low + length * step.low,
            self.high + length * step.high,
            self.nu + length * step.nu,
        )

    def gap(self, C: float) -> float:
        """What the products of slacks and multipliers sum up to; zero at the optimum."""
        return float(self.low @ self.a + self.high @ (C - self.a))

    def reach(self, step: Point, C: float) -> float:
        """How far along the step all slacks and multipliers stay positive."""
        pairs = ((self.a, step.a), (C - self.a, -step.a), (self.low, step.low), (self.high, step.high))
        shares = [(value / np.where(change < 0, -change, np.nan)) for value, change in pairs]
        return min([float(np.nanmin(share)) for share in shares if not np.isnan(share).all()], default=np.inf)


def interior_point(V: LowRank, signs: np.ndarray, C: float, tol: float) -> tuple[Point, int]:
    """Minimise ``1/2 a'VV'a - sum a`` for 0 <= a <= C and ``signs'a = 0`` by Mehrotra's predictor and corrector.

    Signs that are all zero mean no constraint. Returns the point and the number of iterations.
    """
    n = V.shape[0]
    point = Point(np.full(n, 0.5 * C), np.ones(n), np.ones(n), 0.0)
    for iteration in range(_ITERATIONS):
        product, gap = V.dot(V.dot_transposed(point.a)), point.gap(C)
        residual = product - 1.0 - point.low + point.high + point.nu * signs
        small = tol * max(1.0, abs(0.5 * point.a @ product - point.a.sum()))
        if max(gap, C * np.abs(residual).sum(), C * abs(signs @ point.a)) <= small:
            return point, iteration
        newton = _Newton(V, signs, C, point, residual)
        ahead = newton.step(np.zeros(n), np.zeros(n))
        far = point.plus(min(1.0, point.reach(ahead, C)), ahead).gap(C)
        centre = (far / gap) ** 3 * gap / (2 * n)
        step = newton.step(centre - ahead.a * ahead.low, centre + ahead.a * ahead.high)
        point = point.plus(min(1.0, _TO_THE_EDGE * point.reach(step, C)), step)
    return point, _ITERATIONS


class _Newton:
    """The linear system of a Newton step, factorised once."""

    def __init__(self, V: LowRank, signs: np.ndarray, C: float, point: Point, residual: np.ndarray) -> None:
        self.V, self.signs, self.point, self.residual, self.room = V, signs, point, residual, C - point.a
        self.diagonal = point.low / point.a + point.high / self.room
        core = np.eye(V.shape[1]) + V.gram(1.0 / self.diagonal)
        self.core = cho_factor(core, overwrite_a=True, check_finite=False)
        self.across = self._inverse(signs)

    def _inverse(self, b: np.ndarray) -> np.ndarray:
        """(D + VV')^-1 b, by Sherman, Morrison and Woodbury."""
        scaled = b / self.diagonal
        inner = cho_solve(self.core, self.V.dot_transposed(scaled), check_finite=False)
        return scaled - self.V.dot(inner) / self.diagonal

    def step(self, low_goal: np.ndarray, high_goal: np.ndarray) -> Point:
        """To where a * low and (C - a) * high are the goals, to first order."""
        a, low, high, _ = self.point
        plain = self._inverse(low_goal / a - low - high_goal / self.room + high - self.residual)
        nu = float(self.signs @ (plain + a) / (self.signs @ self.across)) if self.signs.any() else 0.0
        change = plain - nu * self.across
        return Point(
            change,
            low_goal / a - low * (1.0 + change / a),
            high_goal / self.room - high * (1.0 - change / self.room),
            nu,
        )
