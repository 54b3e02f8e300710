"""Kernel columns that are kept from iteration to iteration.

The variables that move are nearly the same ones in every iteration: reading their columns again costs a few bytes a
value, computing them again a matrix product and an exponential. Columns stay in the order in which they first moved;
when the room is full, later ones are computed each time they are needed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from parablock.devices.cpu.samples import CpuSamples
from parablock.devices.cpu.tiles import tiles
from parablock.kernels import Kernel


class ColumnStore:
    """Columns of the kernel matrix of one set of samples.

    Parameters
    ----------
    samples : CpuSamples
    kernel : Kernel
    room : int
        Bytes that the columns may take.
    """

    def __init__(self, samples: CpuSamples, kernel: Kernel, room: int) -> None:
        n = len(samples)
        self.samples, self.kernel = samples, kernel
        # Memory that is not written to yet costs nothing, so all of the room is asked for at once.
        self.columns = np.empty((min(n, room // max(1, n * samples.dtype.itemsize)), n), dtype=samples.dtype)
        self.slot = np.full(n, -1, dtype=np.int64)
        self.used = 0

    def plan(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Which of the rows are kept already, which get a place now, and which find none; as positions in `rows`."""
        kept = np.flatnonzero(self.slot[rows] >= 0)
        missing = np.flatnonzero(self.slot[rows] < 0)
        fresh = missing[: len(self.columns) - self.used]
        self.slot[rows[fresh]] = np.arange(self.used, self.used + len(fresh))
        self.used += len(fresh)
        return kept, fresh, missing[len(fresh) :]

    def fill(self, fresh: CpuSamples, places: np.ndarray, start: int, stop: int) -> None:
        """Compute the rows from start to stop of the columns that got a place."""
        everyone = self.samples.take(slice(start, stop))
        for top, bottom, first, last, tile in tiles(self.kernel, fresh, everyone):
            self.columns[places[top] : places[top] + bottom - top, start + first : start + last] = tile

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
