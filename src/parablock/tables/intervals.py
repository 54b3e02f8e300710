"""Prediction intervals by jackknife+.

Every judged row i has an honest residual R_i. For a new row x, the machines that judged row i, fitted without it,
predict `f(x) - (C k(x))_i alpha_i / C_ii`; of these predictions, each with its |R_i| added or taken away, the interval
is a quantile above and one below. Where that makes intervals narrower, a residual counts in units of the deviation that
the kernels give to its row, and is taken in those of x. The factors C are computed when they are asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from parablock.tables import lapack
from parablock.tables.columns import Columns, View
from parablock.tables.kernels import MetricKernel
from parablock.tables.leave_one_out import solve_block

_AT_ONCE = 1 << 22  # predictions of machines without a row


@dataclass(frozen=True)
class Judge:
    """The metric of some rows, that judges others.

    Attributes
    ----------
    columns : Columns
        With codes of the rows it was learned on.
    machines : sequence of (kernel, ndarray)
        Kernels with parameters and log ridge.
    rows : ndarray
        Numbers of the rows it judges.
    """

    columns: Columns
    machines: Sequence[tuple[MetricKernel, np.ndarray]]
    rows: np.ndarray


@dataclass(frozen=True)
class Trial:
    """What judges were fitted with: distinct rows, their targets and weights, and groups, if any."""

    judges: list[Judge]
    values: np.ndarray
    target: np.ndarray
    weight: np.ndarray
    group: np.ndarray | None

    def bytes(self) -> int:
        """Of the matrices of all pairs of rows that are held at a time."""
        return 8 * len(self.values) ** 2 * sum(len(judge.machines) for judge in self.judges)

    def means_without(self) -> np.ndarray:
        """The mean target of all rows but each one; nan where there is no other."""
        n = len(self.values)
        if n < 2:
            return np.full(self.target.shape, np.nan)
        share = (self.weight / self.weight.sum())[:, None]
        return (share.T @ self.target - share * self.target) / (1 - share)

    def fits(self) -> list[list[JudgeFit]]:
        """The machines of each judge, fitted with all rows."""
        return [[_fit(self, judge, *machine) for machine in judge.machines] for judge in self.judges]

    def left_out(self, values: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """For some new rows at a time: predictions by the machines without row i, of shape (n_new, n_rows, n_outputs);
        the deviations of the new rows, as each row's judge has them, of shape (n_new, n_judges); and those of the rows,
        (n_rows,)."""
        fits = self.fits()
        n, outputs = self.target.shape
        deviation = np.ones(n)
        for judge, both in zip(self.judges, fits, strict=True):
            deviation[judge.rows] = np.sqrt(np.mean([one.variance for one in both], axis=0))[judge.rows]
        step = max(1, _AT_ONCE // (n * outputs))
        for first in range(0, len(values), step):
            some = values[first : first + step]
            found = np.tile(self.means_without(), (len(some), 1, 1))  # where there is no machine
            there = np.ones((len(some), max(1, len(fits))))
            for number, (judge, both) in enumerate(zip(self.judges, fits, strict=True)):
                predicted = [one.at(judge.columns.view(some)) for one in both]
                found[:, judge.rows] = np.mean([left for left, _ in predicted], axis=0)[:, judge.rows]
                there[:, number] = np.sqrt(np.mean([variance for _, variance in predicted], axis=0))
            yield found, there, deviation


@dataclass(frozen=True)
class JudgeFit:
    """One machine of a judge, fitted with all rows."""

    kernel: MetricKernel
    z: np.ndarray  # without the ridge
    train: View
    inverse: np.ndarray
    alpha: np.ndarray
    residual: np.ndarray  # of each row, where it (or its group) is left out
    starts: np.ndarray | None  # of groups
    ridge: float
    variance: np.ndarray  # of each row, by the machine without it, with the noise of a row of weight one

    def overlap(self, view: View) -> np.ndarray:
        """Kernel values of new rows with those of the fit."""
        K = np.empty((len(view), len(self.train)))
        self.kernel.value(self.z, view, self.train, K, K)
        return K

    def members(self, rows: np.ndarray) -> list[np.ndarray]:
        """For each of some rows of the fit those that are left out with it."""
        if self.starts is None:
            return [np.array([row]) for row in rows]
        ends = np.append(self.starts[1:], len(self.train))
        groups = np.searchsorted(self.starts, rows, side="right") - 1
        return [np.arange(self.starts[g], ends[g]) for g in groups]

    def at(self, view: View) -> tuple[np.ndarray, np.ndarray]:
        """Predictions without each row, and variances with all."""
        K = self.overlap(view)
        CK = lapack.symmetric_times(self.inverse, K.T)
        moved = CK.T[:, :, None] * self.residual
        if self.starts is not None:
            sizes = np.diff(np.append(self.starts, len(self.train)))
            moved = np.repeat(np.add.reduceat(moved, self.starts, axis=1), sizes, axis=1)
        variance = self.kernel.diagonal(self.z, view) - (K * CK.T).sum(axis=1) + self.ridge
        return (K @ self.alpha)[:, None, :] - moved, np.maximum(variance, self.ridge)


def _fit(trial: Trial, judge: Judge, kernel: MetricKernel, z: np.ndarray) -> JudgeFit:
    view, ridge, n = judge.columns.view(trial.values), float(np.exp(z[-1])), len(trial.values)
    C = np.empty((n, n))
    kernel.value(z[:-1], view, None, C, C)
    C.flat[:: n + 1] += ridge / trial.weight
    if not lapack.cholesky(C):
        raise ValueError("The kernel matrix is not positive definite: the model's intervals cannot be computed.")
    lapack.inverse_of_factor(C)
    alpha = lapack.symmetric_times(C, trial.target)
    diagonal = C.diagonal()
    starts = None
    if trial.group is None:
        residual = alpha / diagonal[:, None]
    else:
        starts = np.flatnonzero(np.diff(trial.group, prepend=-1))
        residual = np.empty_like(alpha)
        for a, b in zip(starts, [*starts[1:], n], strict=True):
            residual[a:b] = solve_block(C[a:b, a:b], alpha[a:b])
    variance = np.maximum(1 / diagonal - ridge / trial.weight, 0) + ridge
    return JudgeFit(kernel, z[:-1], view, C, alpha, residual, starts, ridge, variance)


@dataclass(frozen=True)
class Jackknife:
    """Intervals from the honest residuals of the given rows.

    Attributes
    ----------
    trial : Trial
    place : ndarray of shape (n_given,)
        The distinct row that each given row is part of.
    residual : ndarray of shape (n_given, n_outputs)
        Sizes of the honest residuals.
    weight : ndarray of shape (n_given,)
    """

    trial: Trial
    place: np.ndarray
    residual: np.ndarray
    weight: np.ndarray

    def intervals(self, values: np.ndarray, coverage: float) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends, of shape (n_new, n_outputs)."""
        n, outputs = len(self.trial.values), self.residual.shape[1]
        if not len(self.place):
            ends = np.full((len(values), outputs), np.inf)
            return -ends, ends
        share = self.weight / self.weight.sum() * n
        judge_of = np.zeros(n, dtype=np.intp)
        for number, judge in enumerate(self.trial.judges):
            judge_of[judge.rows] = number
        found: list[list[np.ndarray]] = []
        for left, there, deviation in self.trial.left_out(values):
            here = deviation[self.place]
            ratio = there[:, judge_of[self.place]] / here  # of deviations
            low, high = np.empty((2, len(left), outputs))
            for o in range(outputs):
                size, centre = self.residual[:, o], left[:, self.place, o]
                spread = size * ratio if self._follows(size / here, size, here, share, coverage) else size
                high[:, o] = _upper(centre + spread, share, coverage, n)
                low[:, o] = -_upper(spread - centre, share, coverage, n)
            found.append([low, high])
        lower, upper = (np.vstack(parts) for parts in zip(*found, strict=True))
        # Of rows whose machines disagree by more than their residuals, ends may be in the wrong order.
        return np.minimum(lower, upper), np.maximum(lower, upper)

    @staticmethod
    def _follows(relative: np.ndarray, size: np.ndarray, here: np.ndarray, share: np.ndarray, coverage: float) -> bool:
        """Whether widths that follow the deviations are narrower in the mean, over the rows themselves."""
        n = round(share.sum())
        widths = [float(_upper(x[None], share, coverage, n)[0]) for x in (relative, size)]
        return widths[0] * float(np.average(here, weights=share)) < widths[1]


def _upper(x: np.ndarray, share: np.ndarray, coverage: float, n: int) -> np.ndarray:
    """In each row of x the least value at or below which lies a share of `coverage` of the weights and of that of one
    row more, which is infinite; the weights sum to n."""
    order = np.argsort(x, axis=1, kind="stable")
    sums = np.cumsum(share[order], axis=1)
    wanted = coverage * (n + 1)
    at = (sums < wanted * (1 - 1e-12)).sum(axis=1)
    beyond = np.column_stack([np.take_along_axis(x, order, axis=1), np.full(len(x), np.inf)])
    return beyond[np.arange(len(x)), at]
