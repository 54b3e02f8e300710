"""k-means on a sample of the rows, then balanced assignment of all: the paper's choice for shift-invariant kernels."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from parablock.compact import dense_if_full, widened, without_unused
from parablock.devices.base import Device, Samples
from parablock.kernels import Kernel
from parablock.partition.balanced import balanced_blocks, balancing_offsets
from parablock.partition.base import Centres, FeatureCentres, Partitioner

SAMPLE = 20_000  # the paper's


class KMeansPartitioner(Partitioner):
    """Blocks around k-means centres, none larger than 1.25 times the mean.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from parablock import KernelSVC
    >>> X, y = make_blobs(200, centers=4, random_state=0)
    >>> model = KernelSVC(partition="kmeans", n_blocks=4, random_state=0).fit(X, y % 2)
    >>> print(model.partition_.report())  # doctest: +ELLIPSIS
    kmeans partition: 4 blocks of ... rows (mean 50), ...% of the kernel's squared mass inside
    """

    method = "kmeans"

    def blocks(
        self, device: Device, kernel: Kernel, samples: Samples, n_blocks: int, rng: np.random.Generator
    ) -> tuple[list[np.ndarray], Centres | None]:
        from sklearn.cluster import KMeans  # takes a while

        n = len(samples)
        n_blocks = min(n_blocks, n)
        chosen = np.sort(rng.choice(n, size=min(n, SAMPLE), replace=False))
        kmeans = KMeans(min(n_blocks, len(chosen)), n_init=1, max_iter=50, random_state=int(rng.integers(2**31)))
        with warnings.catch_warnings():
            # Fewer distinct rows than blocks make fewer blocks here, and no trouble.
            warnings.simplefilter("ignore", ConvergenceWarning)
            points = fitted_centres(kmeans, samples.features(chosen))
        count = points.shape[0]
        plain = FeatureCentres(points, np.zeros(count))
        offsets = balancing_offsets(plain.distances(device, kernel, samples.take(chosen)))
        blocks = balanced_blocks(device, kernel, samples, FeatureCentres(points, offsets), count)
        full = [number for number, block in enumerate(blocks) if len(block)]
        return [blocks[number] for number in full], FeatureCentres(points[full], offsets[full])


def fitted_centres(kmeans: Any, X: Any) -> Any:
    """Centres of the rows. Those of sparse rows are found on the features that the rows have: scikit-learn keeps them
    dense, and copies of them for every thread."""
    if not sp.issparse(X):
        return kmeans.fit(X).cluster_centers_
    narrow, used = without_unused(X)
    if len(used) == 0:  # which scikit-learn refuses
        return sp.csr_matrix((kmeans.n_clusters, X.shape[1]), dtype=X.dtype)
    # scikit-learn multiplies the tolerance by the mean variance of the features, to which the others belong.
    kmeans.set_params(tol=kmeans.tol * len(used) / X.shape[1])
    return dense_if_full(widened(kmeans.fit(narrow).cluster_centers_, used, X.shape[1]))
