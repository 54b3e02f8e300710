"""Kernel columns of one block: all of them when they fit, otherwise the most recently used."""

from __future__ import annotations

from typing import Any

import numpy as np

from parablock.compiling import njit
from parablock.devices.cpu.samples import CpuSamples
from parablock.devices.cpu.store import ColumnStore
from parablock.devices.cpu.tiles import Run, tiles
from parablock.kernels import Kernel

_BATCH = 64  # columns computed at once when one is missing: a matrix product instead of a vector's
AT_ONCE = 4096  # blocks up to this size get their whole kernel matrix at once: most of it will be needed
_STRIPE = 256  # columns that one thread computes where several share a block
_COPY, _COPY_LINE = 1.5, 5.5  # nanoseconds to copy a value, and those for each cache line of memory that it takes


class Columns:
    """Storage for kernel columns of a block of samples, or a given matrix of them that someone has computed already.

    Attributes
    ----------
    storage : ndarray of shape (capacity, size)
    slot : ndarray of shape (size,)
        Where in storage a sample's column is, -1 when it is not.
    stamp : ndarray of shape (capacity,)
        When a place was last used, by `clock`; the smallest stamp is the first to be given away.
    """

    def __init__(
        self,
        samples: CpuSamples,
        rows: np.ndarray,
        kernel: Kernel,
        capacity: int,
        store: ColumnStore | None,
        matrix: np.ndarray | None = None,
    ) -> None:
        size = len(rows)
        capacity = min(size, max(capacity, 4 * _BATCH)) if matrix is None else size
        self.samples, self.kernel = samples.take(rows), kernel
        self._rows, self._store = rows, store
        self.storage = np.empty((capacity, size), dtype=samples.dtype) if matrix is None else matrix
        self.slot = np.full(size, -1, dtype=np.int64)
        self.owner = np.full(capacity, -1, dtype=np.int64)
        self.stamp = np.full(capacity, -1, dtype=np.int64)
        self.clock = np.zeros(1, dtype=np.int64)
        self._given, self._evaluations = matrix is not None, 0
        if store is not None and samples.nanoseconds < self._copying_nanoseconds():
            self._store = None

    def fill(self, run: Run) -> None:
        """Where the block is small enough for its whole matrix: compute that at once."""
        size = len(self.slot)
        if self._given:
            self.slot[:] = self.owner[:] = np.arange(size)
        elif len(self.storage) == size <= AT_ONCE:
            work = self._half_stripe if self._store is None else self._stripe
            self._evaluations += sum(run(work, range(0, size, _STRIPE)))

    def _half_stripe(self, start: int) -> int:
        """Compute some columns from the diagonal on, and mirror them: the matrix is symmetric."""
        stop = min(start + _STRIPE, len(self.slot))
        self.slot[start:stop] = self.owner[start:stop] = np.arange(start, stop)
        some, others = self.samples.take(slice(start, stop)), self.samples.take(slice(start, None))
        for top, bottom, first, last, tile in tiles(self.kernel, some, others):
            self.storage[start + top : start + bottom, start + first : start + last] = tile
        _mirror(self.storage, start, stop)
        return len(some) * len(others)

    def _stripe(self, start: int) -> int:
        some = np.arange(start, min(start + _STRIPE, len(self.slot)))
        return self._put(some, some)

    def _is_kept(self, chosen: np.ndarray) -> np.ndarray:
        if self._store is None:
            return np.zeros(len(chosen), dtype=bool)
        return self._store.holds(self._rows[chosen])

    def _copying_nanoseconds(self) -> float:
        lines = np.count_nonzero(np.diff(self._rows * self.storage.itemsize // 64)) + 1
        return _COPY + _COPY_LINE * lines / len(self._rows)

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
        self._evaluations += self._put(chosen, places)
        self.clock[0] += 1
        self.stamp[places] = self.clock[0]

    def _put(self, chosen: np.ndarray, places: np.ndarray) -> int:
        """Copy or compute the chosen columns; how many values were computed."""
        self.slot[chosen], self.owner[places] = places, chosen
        kept = self._is_kept(chosen)
        if self._store is not None:
            self._store.copy(self._rows[chosen[kept]], self._rows, self.storage, places[kept])
        chosen, places = chosen[~kept], places[~kept]
        for start, stop, first, last, tile in tiles(self.kernel, self.samples.take(chosen), self.samples):
            self.storage[places[start:stop], first:last] = tile
        return len(chosen) * len(self.samples)


@njit(cache=True, nogil=True)
def _mirror(matrix: Any, start: int, stop: int) -> None:
    """Copy the rows from start to stop of a symmetric matrix to its columns, below the diagonal."""
    for j in range(stop, matrix.shape[1]):
        for i in range(start, stop):
            matrix[j, i] = matrix[i, j]
