"""Partitions that need no geometry: random blocks, and blocks that the user gives."""

from __future__ import annotations

import numpy as np

from parablock import vectors
from parablock.devices.base import Device, Rows, Samples
from parablock.kernels import Kernel
from parablock.partition.base import Centres, Partitioner


class RandomPartitioner(Partitioner):
    """Rows dealt out at random into blocks of equal size (to one row).

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from parablock import KernelSVC
    >>> X, y = make_blobs(200, centers=4, random_state=0)
    >>> model = KernelSVC(partition="random", n_blocks=4, random_state=0).fit(X, y % 2)
    >>> print(model.partition_.report())  # doctest: +ELLIPSIS
    random partition: 4 blocks of 50 to 50 rows (mean 50), ...% of the kernel's squared mass inside
    """

    method = "random"

    def blocks(
        self, device: Device, kernel: Kernel, samples: Samples, n_blocks: int, rng: np.random.Generator
    ) -> tuple[list[np.ndarray], Centres | None]:
        parts = np.array_split(rng.permutation(len(samples)), min(n_blocks, len(samples)))
        return [np.sort(part) for part in parts], None


class GivenPartitioner(Partitioner):
    """The user's own blocks. Regrouping keeps them, without the rows that have nothing left to do.

    Parameters
    ----------
    labels : ndarray of shape (n,)
        The block of every row; any numbers or text.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_blobs
    >>> from parablock import KernelSVC
    >>> X, y = make_blobs(200, centers=4, random_state=0)
    >>> east = np.where(X[:, 0] > 0, "east", "west")
    >>> KernelSVC(partition=east, random_state=0).fit(X, y % 2).partition_.sizes.sum()
    np.int64(200)
    """

    method = "given"

    def __init__(self, labels: np.ndarray) -> None:
        self.labels = labels

    def blocks(
        self, device: Device, kernel: Kernel, samples: Samples, n_blocks: int, rng: np.random.Generator
    ) -> tuple[list[np.ndarray], Centres | None]:
        return [np.flatnonzero(self.labels == label) for label in np.unique(self.labels)], None

    def restricted(self, rows: np.ndarray) -> GivenPartitioner:
        return GivenPartitioner(self.labels[vectors.to_host(rows)])

    def regroup(
        self,
        device: Device,
        kernel: Kernel,
        samples: Rows,
        rows: np.ndarray,
        n_blocks: int,
        rng: np.random.Generator,
    ) -> list[np.ndarray]:
        labels = self.labels[vectors.to_host(rows)]
        return [rows[vectors.place(rows, labels == label)] for label in np.unique(labels)]
