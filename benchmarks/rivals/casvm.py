"""CA-SVM: communication-avoiding support vector machines (You, Demmel, Czechowski, Song and Vuduc, IPDPS 2015).

Balanced k-means gives every machine as many rows; each trains on its own and no machine ever hears of another. A new
row is predicted by the machine of its nearest centre. What is gained in balance is lost at borders: the problem of all
rows is never solved.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from benchmarks.rivals.base import Model, Stopwatch
from benchmarks.rivals.workshop import DualRival, Workshop
from parablock.partition.base import FeatureCentres, chunks
from parablock.partition.kmeans import fitted_centres

SAMPLE = 20_000  # rows that k-means sees, as for parablock


@dataclass
class CASVM(DualRival):
    """Balanced clusters, local models only.

    Parameters
    ----------
    clusters : int
        Machines.
    tol : float
        Largest violation of the optimality conditions of a cluster.

    Attributes
    ----------
    groups_ : list of ndarray of int
        The rows of each cluster; their numbers differ by one at most.
    """

    clusters: int = field(default=8, kw_only=True)
    tol: float = field(default=1e-3, kw_only=True)

    def _work(self, workshop: Workshop, clock: Stopwatch) -> Model:
        n, samples, rng = len(workshop.samples), workshop.samples, workshop.rng
        count = min(self.clusters, n)
        chosen = np.sort(rng.choice(n, size=min(n, SAMPLE), replace=False))
        kmeans = KMeans(count, n_init=1, max_iter=50, random_state=int(rng.integers(2**31)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct rows than clusters
            points = fitted_centres(kmeans, samples.features(chosen))
        centres = FeatureCentres(points, np.zeros(count))
        parts = [centres.distances(workshop.device, workshop.kernel, part) for part in chunks(samples)]
        labels = balanced(np.concatenate(parts))
        self.groups_ = [np.flatnonzero(labels == number) for number in range(count)]
        # The centres are those of the rows that the machines have got in the end.
        centres = FeatureCentres.means(samples, self.groups_)
        zero = [np.zeros(len(rows)) for rows in self.groups_]
        return workshop.models.by_group(centres, self.groups_, workshop.solve_apart(self.groups_, zero, self.tol))


def balanced(distances: np.ndarray) -> np.ndarray:
    """The cluster of every row, given its distances to all centres: the nearest that still has room.

    Rows ask their nearest open centre; it takes the nearest of them as far as it has room; the others ask again.
    """
    n, count = distances.shape
    room = np.full(count, n // count)
    room[: n % count] += 1
    labels, waiting = np.full(n, -1), np.arange(n)
    while len(waiting):
        open_distances = np.where(room > 0, distances[waiting], np.inf)
        wish = open_distances.argmin(axis=1)
        order = np.lexsort((open_distances[np.arange(len(wish)), wish], wish))
        rank = np.empty(len(wish), dtype=np.intp)
        rank[order] = np.arange(len(wish)) - np.searchsorted(wish[order], wish[order])
        accepted = rank < room[wish]
        labels[waiting[accepted]] = wish[accepted]
        room -= np.bincount(wish[accepted], minlength=count)
        waiting = waiting[~accepted]
    return labels
