"""DC-SVM: divide and conquer (Hsieh, Si and Dhillon, ICML 2014).

    for every level, from many clusters (4^levels) to few (4):
        cluster the rows by k-means on a sample: at the lowest level of all rows, later of the support vectors
        solve every cluster's problem, from the coefficients of the level below
    refine: solve the problem of the support vectors alone
    solve the problem of all rows, from there

Early prediction stops after a level and predicts every new row with the model of its cluster.

The clusters may be those of kernel k-means, as in the paper. For a narrow kernel these are no use: a row that is far
from all centres is nearest to the one of the largest cluster, because that is nearest to the origin. Of 10,000 rows of
covtype (gamma = 32) one of 16 clusters gets 8,424. For kernels of a distance the authors allow k-means on the features,
which is the default here.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from benchmarks.rivals.base import Model, Stopwatch
from benchmarks.rivals.workshop import DualRival, Workshop
from parablock.devices.base import Samples
from parablock.partition import Centres
from parablock.partition.base import FeatureCentres
from parablock.partition.kernel_kmeans import KernelCentres
from parablock.partition.kmeans import fitted_centres

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
    kernel_space : bool
        Whether to cluster by kernel k-means.
    sample : int
        Rows that are clustered; no fewer than four for each cluster.
    tol : float
        Largest violation of the optimality conditions.
    """

    levels: int | None = field(default=None, kw_only=True)
    branches: int = field(default=4, kw_only=True)
    early: int | None = field(default=None, kw_only=True)
    kernel_space: bool = field(default=False, kw_only=True)
    sample: int = field(default=2000, kw_only=True)
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
            groups = [np.flatnonzero(labels == number) for number in range(self.branches**level)]
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

    def _cluster(self, workshop: Workshop, candidates: np.ndarray, count: int) -> Centres:
        """The centres of so many clusters, found on a sample of the candidates; some may be empty."""
        size = min(len(candidates), max(self.sample, 4 * count))
        sample = workshop.samples.take(np.sort(workshop.rng.choice(candidates, size=size, replace=False)))
        find = kernel_kmeans if self.kernel_space else kmeans
        return find(workshop, sample, min(count, size))


def kmeans(workshop: Workshop, sample: Samples, count: int) -> Centres:
    """k-means on the features of a sample."""
    clusters = KMeans(count, init="random", n_init=1, max_iter=_ROUNDS, random_state=int(workshop.rng.integers(2**31)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct rows than clusters
        return FeatureCentres(fitted_centres(clusters, sample.features()), np.zeros(count))


def kernel_kmeans(workshop: Workshop, sample: Samples, count: int) -> Centres:
    """Kernel k-means on a sample, from one row for each cluster."""
    device, kernel = workshop.device, workshop.kernel
    labels = np.full(len(sample), -1)
    labels[workshop.rng.choice(len(sample), size=count, replace=False)] = np.arange(count)
    for _ in range(_ROUNDS):
        centres = KernelCentres.of(device, kernel, sample, labels, count)
        fresh = centres.nearest(device, kernel, sample)
        if np.array_equal(fresh, labels):
            break
        used = np.unique(fresh)
        count, labels = len(used), np.searchsorted(used, fresh)
    return centres
