"""Kernel k-means on a sample of the rows, then balanced assignment: for kernels that know no distance of features.

A cluster's centre is the mean of its sampled rows in the kernel's own space, at squared distance

    K(x, x) - 2/|S| sum_{j in S} K(x, x_j) + 1/|S|^2 sum_{i, j in S} K(x_i, x_j)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from parablock.devices.base import Device, Samples
from parablock.kernels import Kernel
from parablock.partition.balanced import balanced_blocks, balancing_offsets
from parablock.partition.base import Centres, Partitioner

SAMPLE = 4_000  # each round and each assignment costs a kernel value for every row and sampled row
_ROUNDS = 20


@dataclass(frozen=True)
class KernelCentres(Centres):
    """Means, in the kernel's space, of groups of sampled rows."""

    sample: Samples
    weights: np.ndarray  # (k, sample): 1/|S| at the members of each group
    squares: np.ndarray  # (k,): squared norm of each centre, plus its offset

    @classmethod
    def of(cls, device: Device, kernel: Kernel, sample: Samples, labels: np.ndarray, k: int) -> KernelCentres:
        members = (labels == np.arange(k)[:, None]).astype(np.float64)
        weights = members / np.maximum(1.0, members.sum(axis=1, keepdims=True))
        squares = np.einsum("ki,ki->k", device.kernel_dot(kernel, sample, sample, weights), weights)
        return cls(sample, weights, squares)

    def distances(self, device: Device, kernel: Kernel, samples: Samples) -> np.ndarray:
        if samples.dtype != self.sample.dtype:
            samples = device.samples(samples.features().astype(self.sample.dtype), kernel)
        own = kernel.diagonal(samples.self_overlap)[:, None]
        return own - 2.0 * device.kernel_dot(kernel, samples, self.sample, self.weights).T + self.squares


class KernelKMeansPartitioner(Partitioner):
    """Blocks around kernel k-means centres, none larger than 1.25 times the mean.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from parablock import KernelSVC
    >>> X, y = make_blobs(200, centers=4, random_state=0)
    >>> model = KernelSVC(partition="kernel_kmeans", n_blocks=4, random_state=0).fit(X, y % 2)
    >>> print(model.partition_.report())  # doctest: +ELLIPSIS
    kernel_kmeans partition: 4 blocks of ... rows (mean 50), ...% of the kernel's squared mass inside
    """

    method = "kernel_kmeans"

    def blocks(
        self, device: Device, kernel: Kernel, samples: Samples, n_blocks: int, rng: np.random.Generator
    ) -> tuple[list[np.ndarray], Centres | None]:
        n = len(samples)
        n_blocks = min(n_blocks, n)
        sample = samples.take(np.sort(rng.choice(n, size=min(n, SAMPLE), replace=False)))
        centres = _kernel_kmeans(device, kernel, sample, n_blocks, rng)
        offsets = balancing_offsets(centres.distances(device, kernel, sample))
        centres = KernelCentres(centres.sample, centres.weights, centres.squares + offsets)
        blocks = balanced_blocks(device, kernel, samples, centres, n_blocks)
        full = np.array([number for number, block in enumerate(blocks) if len(block)])
        centres = KernelCentres(centres.sample, centres.weights[full], centres.squares[full])
        return [blocks[number] for number in full], centres


def _kernel_kmeans(device: Device, kernel: Kernel, sample: Samples, k: int, rng: np.random.Generator) -> KernelCentres:
    size = len(sample)
    labels = np.full(size, -1)
    labels[rng.choice(size, size=k, replace=False)] = np.arange(k)  # one row each: the first centres
    centres = KernelCentres.of(device, kernel, sample, labels, k)
    for _ in range(_ROUNDS):
        distances = centres.distances(device, kernel, sample)
        fresh = distances.argmin(axis=1)
        empty = np.setdiff1d(np.arange(k), fresh)
        # An empty group starts again from the rows that are worst served.
        fresh[np.argsort(distances.min(axis=1))[::-1][: len(empty)]] = empty
        if np.array_equal(fresh, labels):
            break
        labels = fresh
        centres = KernelCentres.of(device, kernel, sample, labels, k)
    return centres
