"""Memory for kernel columns, each of which lies in one piece; and how columns are added up, wherever they lie."""

from __future__ import annotations

from typing import Any

import numpy as np

from parablock.compiling import njit
from parablock.devices.cpu.streaming import copy_past_caches, empty_lines


class WholeColumns:
    """Columns of kernel values, each of so many samples.

    Parameters
    ----------
    most : int
        Columns that there may be.
    length : int
        Samples that there may be.
    room : int
        Bytes that columns may take.
    dtype : dtype
    """

    def __init__(self, most: int, length: int, room: int, dtype: Any) -> None:
        self._samples = 0
        capacity = min(most, room // max(1, length * np.dtype(dtype).itemsize))
        # Memory that is not written to yet costs nothing, so all of it is asked for at once.
        self._columns = empty_lines(capacity, length, dtype)

    def room_for(self, columns: int) -> int:
        """How many more columns there is room for beside so many, whatever their values are."""
        return len(self._columns) - columns

    def follow(self, start: int, stop: int) -> None:
        """Samples from start to stop follow those that are there."""
        self._samples = stop

    def write(self, values: np.ndarray, column: int, start: int) -> None:
        """Values of the columns from the given one on, of the samples from start on."""
        _write(values, self._columns, column, start)

    def add(self, columns: np.ndarray, coef: np.ndarray, start: int, stop: int, out: np.ndarray) -> None:
        """Add columns times coef (n_outputs, columns) to the values from start to stop of out."""
        for weights, total in zip(coef, out, strict=True):
            moved = np.flatnonzero(weights)  # outputs share columns, but each moves variables of its own
            origin = columns[moved] * self._columns.shape[1]
            add_stretches(self._columns.reshape(-1), origin, weights[moved], start, stop, total)

    def add_new(self, values: np.ndarray, column: int, coef: np.ndarray, start: int, out: np.ndarray) -> None:
        """The same for values that have just been written, as long as they are in the cache."""
        for weights, total in zip(coef, out, strict=True):
            moved = np.flatnonzero(weights)
            origin, stop = moved * values.shape[1] - start, start + values.shape[1]
            add_stretches(values.reshape(-1), origin, weights[moved], start, stop, total)

    def read(self, columns: np.ndarray, samples: np.ndarray, out: np.ndarray, places: np.ndarray) -> None:
        """Copy the values at the given samples of columns to the given places of out."""
        _read(self._columns, columns, samples, out, places)

    def keep_only(self, columns: np.ndarray) -> None:
        """Forget all other columns; these (in ascending order) are the first ones from now on."""
        for column, old in enumerate(columns.tolist()):
            if column != old:
                self._columns[column, : self._samples] = self._columns[old, : self._samples]


@njit(cache=True, nogil=True)
def _write(values: Any, columns: Any, first: int, start: int) -> None:
    for i in range(values.shape[0]):
        copy_past_caches(values[i], columns[first + i], start)


@njit(cache=True, nogil=True)
def _read(memory: Any, columns: Any, samples: Any, out: Any, places: Any) -> None:
    for c in range(len(columns)):
        source, target = memory[columns[c]], out[places[c]]
        for i in range(len(samples)):
            target[i] = source[samples[i]]


@njit(cache=True, nogil=True, fastmath={"contract"})
def add_stretches(memory: Any, origin: Any, coef: Any, start: int, stop: int, total: Any) -> None:
    """Add coef[g] * memory[origin[g] + i] to total[i], for all i from start to stop.

    One column after the other and in double, so that to leave one out that is zero changes no digit: whoever has a
    sample, and whatever else it has, finds the same sum. Eight at a time, because the total is read and written too.
    """
    total, whole = total[start:stop], len(origin) // 8 * 8
    for g in range(0, whole, 8):
        a, b = _part(memory, origin[g], start, stop), _part(memory, origin[g + 1], start, stop)
        c, d = _part(memory, origin[g + 2], start, stop), _part(memory, origin[g + 3], start, stop)
        e, f = _part(memory, origin[g + 4], start, stop), _part(memory, origin[g + 5], start, stop)
        h, k = _part(memory, origin[g + 6], start, stop), _part(memory, origin[g + 7], start, stop)
        u, v, w, x = coef[g], coef[g + 1], coef[g + 2], coef[g + 3]
        p, q, r, s = coef[g + 4], coef[g + 5], coef[g + 6], coef[g + 7]
        for i in range(len(total)):
            at = total[i] + u * a[i] + v * b[i] + w * c[i] + x * d[i]
            total[i] = at + p * e[i] + q * f[i] + r * h[i] + s * k[i]
    for g in range(whole, len(origin)):
        values = _part(memory, origin[g], start, stop)
        for i in range(len(total)):
            total[i] += coef[g] * values[i]


@njit(cache=True, nogil=True)
def _part(memory: Any, origin: int, start: int, stop: int) -> Any:
    return memory[origin + start : origin + stop]
