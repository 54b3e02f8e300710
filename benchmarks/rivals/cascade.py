"""Cascade SVM (Graf, Cosatto, Bottou, Dourdanovic and Vapnik, NIPS 2004).

The rows are dealt out at random. Each part is solved, and its support vectors go on: those of two parts together are
the next problem, up a binary tree to a single one. Its support vectors are then given to every first part, and the tree
is climbed again, until nothing changes: that is the optimum of all rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np

from benchmarks.rivals.base import Model, Stopwatch
from benchmarks.rivals.workshop import DualRival, Workshop


@dataclass
class CascadeSVM(DualRival):
    """Support vectors merged up a binary tree, with feedback.

    Parameters
    ----------
    parts : int
        Of the first layer; a power of two.
    loops : int
        At most so many climbs; the first is the one without feedback.
    tol : float
        Largest violation of the optimality conditions, of every problem on the way and of all rows.

    Attributes
    ----------
    loops_ : int
        Climbs made.
    """

    parts: int = field(default=8, kw_only=True)
    loops: int = field(default=10, kw_only=True)
    tol: float = field(default=1e-3, kw_only=True)

    def _work(self, workshop: Workshop, clock: Stopwatch) -> Model:
        if self.parts < 1 or self.parts & (self.parts - 1):
            raise ValueError(f"parts={self.parts} was given; the tree is binary, so use a power of two.")
        n = len(workshop.samples)
        if self.parts > n:
            raise ValueError(f"parts={self.parts} was given for {n} rows; use no more parts than rows.")
        dealt = np.array_split(workshop.rng.permutation(n), self.parts)
        coef = np.zeros(n)
        for loop in range(1, self.loops + 1):
            self.loops_ = loop
            coef, intercept = self._climb(workshop, dealt, coef)
            violation = workshop.problem.measure(0, coef, workshop.product(coef)).violation
            if violation <= self.tol or loop == self.loops:
                break
            clock.tell(partial(workshop.models.everywhere, coef, intercept))
        return workshop.models.everywhere(coef, intercept)

    def _climb(self, workshop: Workshop, dealt: list[np.ndarray], fed_back: np.ndarray) -> tuple[np.ndarray, float]:
        """Up the tree once; the root's coefficients and intercept."""
        layer = [np.union1d(part, np.flatnonzero(fed_back)) for part in dealt]
        starts = [fed_back[rows] for rows in layer]
        while True:
            solved = workshop.solve_apart(layer, starts, self.tol)
            found = np.zeros((len(layer), len(fed_back)))
            for own, rows, (coef, _) in zip(found, layer, solved, strict=True):
                own[rows] = coef
            if len(layer) == 1:
                return found[0], solved[0][1]
            pairs = found.reshape(len(layer) // 2, 2, -1)
            # What was fed back both children have an opinion on: between the two.
            both = (pairs != 0).sum(axis=1)
            merged = pairs.sum(axis=1) / np.maximum(both, 1)
            layer = [np.flatnonzero(row) for row in both]
            starts = [
                workshop.problem.take(rows).feasible(own[None, rows])[0]
                for rows, own in zip(layer, merged, strict=True)
            ]
