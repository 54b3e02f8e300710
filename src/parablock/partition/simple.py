"""Partitions that need no geometry: random blocks, and blocks that the user gives."""

from __future__ import annotations

import numpy as np

from parablock import vectors
from parablock.devices.base import Device, Rows, Samples
from parablock.kernels import Kernel
from parablock.partition.base import Centres, Partitioner


class RandomPartitioner(Partitioner):
    """Rows dealt out at random into blocks of equal size (to one row)."""

    method = "random"

    def blocks(
        self, device: Device, kernel: Kernel, samples: Samples, n_blocks: int, rng: np.random.Generator
    ) -> tuple[list[np.ndarray], Centres | None]:
        parts = np.array_split(rng.permutation(len(samples)), min(n_blocks, len(samples)))
        return [np.sort(part) for part in parts], None


class GivenPartitioner(Partitioner):
    """The user's own blocks. Regrouping keeps them, without the rows that have nothing left to do."""

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
