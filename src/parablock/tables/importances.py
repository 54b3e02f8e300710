"""How much each column of a table is worth: what the honest score loses when its values are shuffled.

The machines that judged the rows judge some of them again with values of other rows in one column, each row by the
machines without it, in closed form. Columns that tell the same share what they tell, and may both look worth little.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from parablock.tables import honest
from parablock.tables.columns import View
from parablock.tables.intervals import JudgeFit, Trial

_ROWS = 256  # of each judge
_SHUFFLES = 3

Score = Callable[[np.ndarray, np.ndarray, np.ndarray], float]


def importances(trial: Trial, score: Score, n_threads: int) -> np.ndarray:
    """Falls of the score, by column. The score is of decisions, targets and weights of distinct rows."""
    n, width = trial.values.shape
    if not trial.judges:
        return np.zeros(width)
    chosen = [judge.rows[:_ROWS] for judge in trial.judges]
    rows = np.concatenate(chosen)
    fits = [[_Without(fit, own) for fit in both] for both, own in zip(trial.fits(), chosen, strict=True)]
    target, weight = trial.target[rows], trial.weight[rows]
    rng = np.random.default_rng(0)
    orders = [rng.permutation(n) for _ in range(_SHUFFLES)]

    def score_of(values: np.ndarray) -> float:
        """Of the rows with other values."""
        found, first = [], 0
        for judge, both in zip(trial.judges, fits, strict=True):
            view = judge.columns.view(values[first : first + len(both[0].rows)])
            found.append(np.mean([one.decisions(view) for one in both], axis=0))
            first += len(view)
        return score(np.vstack(found), target, weight)

    def score_without(column: int) -> float:
        scores = []
        for order in orders:
            values = trial.values[rows].copy()
            values[:, column] = trial.values[order[rows], column]
            scores.append(score_of(values))
        return float(np.mean(scores))

    with ThreadPoolExecutor(n_threads) as pool:
        return score_of(trial.values[rows]) - np.array(list(pool.map(score_without, range(width))))


class _Without:
    """Decisions on some rows of the fit, with other values, by the machine without each."""

    def __init__(self, fit: JudgeFit, rows: np.ndarray) -> None:
        self.fit, self.rows = fit, rows
        self._groups = fit.members(rows)
        together = np.concatenate(self._groups)
        # Whole rows of a matrix of which the lower triangle is known.
        below = together[:, None] >= np.arange(len(fit.inverse))
        self._inverse = np.where(below, fit.inverse[together], fit.inverse[:, together].T)
        self._starts = np.cumsum([0, *map(len, self._groups)])[:-1]
        self._own = np.repeat(np.arange(len(rows)), list(map(len, self._groups)))
        self._residual = fit.residual[together]

    def decisions(self, view: View) -> np.ndarray:
        K = self.fit.overlap(view)
        moved = np.einsum("ij,ij->i", self._inverse, K[self._own])[:, None] * self._residual
        return K @ self.fit.alpha - np.add.reduceat(moved, self._starts, axis=0)


def r_squared(decision: np.ndarray, target: np.ndarray, weight: np.ndarray) -> float:
    """Of distinct rows."""
    return honest.r_squared(target, decision, weight)


def accuracy(decision: np.ndarray, target: np.ndarray, weight: np.ndarray) -> float:
    """Of distinct rows, which may be of several classes: the share that the winning one has of each."""
    won = honest.labels(decision)
    positive = (target + 1) / 2
    if target.shape[1] == 1:
        positive = np.hstack([1 - positive, positive])
    share = positive[np.arange(len(won)), won]
    return float(np.average(share, weights=weight))
