"""Kernel columns that are kept from iteration to iteration.

The variables that move are nearly the same ones in every iteration: reading their columns again costs a few bytes a
value, computing them again a matrix product and an exponential. Columns stay in the order in which they first moved;
when the room is full, later ones are computed each time they are needed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from parablock.devices.cpu.samples import CpuSamples, narrowed
from parablock.devices.cpu.tiles import Run, tiles
from parablock.kernels import Kernel

_COLUMNS_AT_ONCE = 2048  # that one task makes longer


class ColumnStore:
    """Columns of the kernel matrix of one set of samples.

    Parameters
    ----------
    samples : CpuSamples
    kernel : Kernel
    room : int
        Bytes that the columns may take.
    length : int, optional
        Rows for which there is to be room, if more than the samples: some may follow (`extended`).
    """

    def __init__(self, samples: CpuSamples, kernel: Kernel, room: int, length: int | None = None) -> None:
        n = len(samples)
        length = length or n
        self.samples, self.kernel = samples, kernel
        self._narrow, _ = narrowed(samples, samples)
        # Memory that is not written to yet costs nothing, so all of the room is asked for at once.
        self.columns = np.empty((min(length, room // max(1, length * samples.dtype.itemsize)), length), samples.dtype)
        self.slot = np.full(n, -1, dtype=np.int64)
        self.used = 0

    def extend(self, samples: CpuSamples, run: Run) -> None:
        """Go on with samples that begin with the present ones and for which there is room."""
        before, after = len(self.samples), len(samples)
        owner = np.flatnonzero(self.slot >= 0)
        owner = owner[np.argsort(self.slot[owner])]
        self.samples = samples
        self._narrow, _ = narrowed(samples, samples)
        self.slot = np.concatenate((self.slot, np.full(after - before, -1)))

        def lengthen(first: int) -> None:
            some = owner[first : first + _COLUMNS_AT_ONCE]
            self.fill(some, before, after)

        run(lengthen, range(0, len(owner), _COLUMNS_AT_ONCE))

    def plan(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Which of the rows are kept already, which get a place now, and which find none; as positions in `rows`."""
        kept = np.flatnonzero(self.slot[rows] >= 0)
        missing = np.flatnonzero(self.slot[rows] < 0)
        fresh = missing[: len(self.columns) - self.used]
        self.slot[rows[fresh]] = np.arange(self.used, self.used + len(fresh))
        self.used += len(fresh)
        return kept, fresh, missing[len(fresh) :]

    def fill(self, fresh: np.ndarray, start: int, stop: int) -> None:
        """Compute the rows from start to stop of the given columns, whose places follow each other."""
        if len(fresh):
            place = self.slot[fresh[0]]
            columns, everyone = self._narrow.take(fresh), self._narrow.take(slice(start, stop))
            for top, bottom, first, last, tile in tiles(self.kernel, columns, everyone):
                self.columns[place + top : place + bottom, start + first : start + last] = tile

    def copy(self, columns: np.ndarray, rows: np.ndarray, out: np.ndarray, places: np.ndarray) -> None:
        """Copy the given rows of kept columns to the given places of out."""
        _gather(self.columns, self.slot[columns], rows, out, places)

    def dot(self, places: np.ndarray, coef: np.ndarray, start: int, stop: int, out: np.ndarray) -> None:
        """Add the kept columns times coef (n_outputs, columns) to the rows from start to stop of out."""
        for output in range(len(coef)):
            _add_columns(self.columns, places, coef[output].astype(self.columns.dtype), start, stop, out[output])


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc", "nsz"})
def _add_columns(columns: Any, places: Any, coef: Any, start: int, stop: int, out: Any) -> None:
    # Eight columns at a time in their own precision, whose rounding they have already; the long sum in double.
    whole = len(places) // 8 * 8
    for g in range(0, whole, 8):
        a, b, c, d = columns[places[g]], columns[places[g + 1]], columns[places[g + 2]], columns[places[g + 3]]
        e, f, h, k = columns[places[g + 4]], columns[places[g + 5]], columns[places[g + 6]], columns[places[g + 7]]
        u, v, w, x = coef[g], coef[g + 1], coef[g + 2], coef[g + 3]
        p, q, r, s = coef[g + 4], coef[g + 5], coef[g + 6], coef[g + 7]
        for i in range(start, stop):
            out[i] += (u * a[i] + v * b[i] + w * c[i] + x * d[i]) + (p * e[i] + q * f[i] + r * h[i] + s * k[i])
    for g in range(whole, len(places)):
        column = columns[places[g]]
        for i in range(start, stop):
            out[i] += coef[g] * column[i]


@njit(cache=True, nogil=True)
def _gather(columns: Any, slots: Any, rows: Any, out: Any, places: Any) -> None:
    for c in range(len(slots)):
        source, target = columns[slots[c]], out[places[c]]
        for i in range(len(rows)):
            target[i] = source[rows[i]]
