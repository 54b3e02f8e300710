"""DC-SVM: divide and conquer (Hsieh, Si and Dhillon, ICML 2014).

    for every level, from many clusters (4^levels) to few (4):
        cluster the rows by kernel k-means on a sample: at the lowest level of all rows, later of the support vectors
        solve every cluster's problem, from the coefficients of the level below
    refine: solve the problem of the support vectors alone
    solve the problem of all rows, from there

Early prediction stops after a level and predicts every new row with the model of its cluster.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np

from benchmarks.rivals.base import Model, Stopwatch
from benchmarks.rivals.workshop import DualRival, Workshop
from parablock.partition.kernel_kmeans import KernelCentres

_ROUNDS = 20


@dataclass
class DCSVM(DualRival):
    """Multi-level divide and conquer, exact at the top level.

    Parameters
    ----------
    levels : int or None
        Below the top; None: as many as leave about 1,000 rows in a cluster of the lowest.
    branches : int
        Clusters of a level for each one of the level above.
    early : int or None
        Stop after this level (1 is the last before the top) and predict by clusters.
    sample : int
        Rows that are clustered.
    tol : float
        Largest violation of the optimality conditions.
    """

    levels: int | None = field(default=None, kw_only=True)
    branches: int = field(default=4, kw_only=True)
    early: int | None = field(default=None, kw_only=True)
    sample: int = field(default=1000, kw_only=True)
    tol: float = field(default=1e-3, kw_only=True)

    def _work(self, workshop: Workshop, clock: Stopwatch) -> Model:
        n = len(workshop.samples)
        levels = max(1, round(np.log(n / 1000) / np.log(self.branches))) if self.levels is None else self.levels
        if self.early is not None and not 1 <= self.early <= levels:
            raise ValueError(f"early={self.early} names no level; there are the levels 1 to {levels}.")
        coef = np.zeros(n)
        for level in range(levels, 0, -1):
            candidates = np.flatnonzero(coef) if coef.any() else np.arange(n)
            centres = self._cluster(workshop, candidates, self.branches**level)
            labels = centres.nearest(workshop.device, workshop.kernel, workshop.samples)
            groups = [np.flatnonzero(labels == number) for number in range(len(centres.weights))]
            starts = [workshop.problem.take(rows).feasible(coef[None, rows])[0] for rows in groups]
            solved = workshop.solve_apart(groups, starts, self.tol)
            model = partial(workshop.models.by_group, centres, groups, solved)
            if level == self.early:
                return model()
            clock.tell(model)
            for rows, (own, _) in zip(groups, solved, strict=True):
                coef[rows] = own
        support = np.flatnonzero(coef)
        coef[support], _ = workshop.taken(support).solve(coef[support], self.tol)
        return workshop.models.everywhere(*workshop.solve(coef, self.tol, clock))

    def _cluster(self, workshop: Workshop, candidates: np.ndarray, count: int) -> KernelCentres:
        """Kernel k-means on a sample of the candidates."""
        device, kernel, rng = workshop.device, workshop.kernel, workshop.rng
        size = min(len(candidates), max(self.sample, 4 * count))
        sample = workshop.samples.take(np.sort(rng.choice(candidates, size=size, replace=False)))
        count = min(count, size)
        labels = np.full(size, -1)
        labels[rng.choice(size, size=count, replace=False)] = np.arange(count)  # one row each: the first centres
        for _ in range(_ROUNDS):
            centres = KernelCentres.of(device, kernel, sample, labels, count)
            fresh = centres.nearest(device, kernel, sample)
            if np.array_equal(fresh, labels):
                break
            labels = fresh
            used = np.unique(labels)
            count, labels = len(used), np.searchsorted(used, labels)
        return centres
