"""Kernel columns of one block: all of them when they fit, otherwise the most recently used."""

from __future__ import annotations

import numpy as np

from parablock.devices.cpu.samples import CpuSamples
from parablock.devices.cpu.tiles import tiles
from parablock.kernels import Kernel

_BATCH = 64  # columns computed at once when one is missing: a matrix product instead of a vector's
_AT_ONCE = 4096  # blocks up to this size get their whole kernel matrix at once: most of it will be needed


class Columns:
    """Storage for kernel columns of a block of samples.

    Attributes
    ----------
    storage : ndarray of shape (capacity, size)
    slot : ndarray of shape (size,)
        Where in storage a sample's column is, -1 when it is not.
    stamp : ndarray of shape (capacity,)
        When a place was last used, by `clock`; the smallest stamp is the first to be given away.
    """

    def __init__(self, samples: CpuSamples, kernel: Kernel, capacity: int) -> None:
        size = len(samples)
        capacity = min(size, max(capacity, 4 * _BATCH))
        self.samples, self.kernel = samples, kernel
        self.storage = np.empty((capacity, size), dtype=samples.dtype)
        self.slot = np.full(size, -1, dtype=np.int64)
        self.owner = np.full(capacity, -1, dtype=np.int64)
        self.stamp = np.full(capacity, -1, dtype=np.int64)
        self.clock = np.zeros(1, dtype=np.int64)
        self._evaluations = 0
        if capacity == size <= _AT_ONCE:
            self._put(np.arange(size), np.arange(size))

    def count(self) -> int:
        """Kernel values computed since this was last asked."""
        evaluations, self._evaluations = self._evaluations, 0
        return evaluations

    def fetch(self, wanted: int, urgency: np.ndarray) -> None:
        """Bring the wanted column in, and as far as there is empty room the most urgent of the others with it.

        When the room is full, columns that nobody asked for would drive out those that are in use.
        """
        others = min(_BATCH - 1, int((self.owner < 0).sum()) - 1)
        missing = np.flatnonzero(self.slot < 0)
        if others <= 0:
            chosen = np.array([wanted])
        elif others < len(missing):
            chosen = np.union1d(missing[np.argpartition(urgency[missing], -others)[-others:]], [wanted])
        else:
            chosen = missing
        places = np.argpartition(self.stamp, len(chosen) - 1)[: len(chosen)]
        evicted = self.owner[places]
        self.slot[evicted[evicted >= 0]] = -1
        self._put(chosen, places)
        self.clock[0] += 1
        self.stamp[places] = self.clock[0]

    def _put(self, chosen: np.ndarray, places: np.ndarray) -> None:
        rows = self.samples.take(chosen)
        for start, stop, first, last, tile in tiles(self.kernel, rows, self.samples):
            self.storage[places[start:stop], first:last] = tile
        self.slot[chosen], self.owner[places] = places, chosen
        self._evaluations += len(chosen) * len(self.samples)
