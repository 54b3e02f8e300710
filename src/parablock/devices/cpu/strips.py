"""Memory for kernel columns, in strips of which those that are all zero are neither written nor read.

A narrow kernel is zero for most pairs of rows (`kernels._exponential`: what is less than rounding is zero). Rows lie
block after block, neighbours side by side, so the zeros of a column lie side by side too. Columns of a wide kernel have
no such strips, and lose nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from parablock.devices.cpu.streaming import copy_past_caches, empty_lines

STRIP = 256  # values; shorter ones save little more, and reading them takes longer
_SPARE = 32  # strips that there may be beyond those of one long stretch


class Strips:
    """Columns, each of so many samples.

    Parameters
    ----------
    capacity : int
        Columns.
    length : int
        Samples for which there is to be room.
    dtype : dtype
    """

    def __init__(self, capacity: int, length: int, dtype: Any) -> None:
        # Memory that is not written to yet costs nothing, so all of it is asked for at once.
        self._columns = empty_lines(capacity, length, dtype)
        self._edges = np.zeros(1, dtype=np.int64)  # where every strip begins, and the last one ends
        self._written = np.zeros((length // STRIP + _SPARE, capacity), dtype=np.bool_)  # others are all zero

    @property
    def capacity(self) -> int:
        return len(self._columns)

    @property
    def length(self) -> int:
        return self._columns.shape[1]

    def follow(self, start: int, stop: int) -> None:
        """Samples from start to stop follow those that are there, in strips of their own."""
        self._edges = np.concatenate((self._edges[:-1], np.arange(start, stop, STRIP), [stop]))
        missing = len(self._edges) - 1 - len(self._written)
        if missing > 0:
            more = np.zeros((missing + _SPARE, self.capacity), dtype=np.bool_)
            self._written = np.concatenate((self._written, more))

    def write(self, values: np.ndarray, place: int, start: int) -> None:
        """Values of new columns, whose places begin at the given one, of the samples from start on. Two threads must
        not write to the same strip."""
        bits = values.view(np.int32 if values.itemsize == 4 else np.int64)
        _write(values, bits, self._columns, place, start, self._edges, self._written)

    def add(self, places: np.ndarray, coef: np.ndarray, start: int, stop: int, out: np.ndarray) -> None:
        """Add columns times coef (n_outputs, columns) to the values from start to stop of out."""
        _add(self._columns, 0, places, self._written, coef, self._edges, start, stop, out)

    def add_new(self, values: np.ndarray, place: int, coef: np.ndarray, start: int, out: np.ndarray) -> None:
        """The same for values that have just been written, as long as they are in the cache."""
        places, written = np.arange(len(values)), self._written[:, place : place + len(values)]
        _add(values, start, places, written, coef, self._edges, start, start + values.shape[1], out)

    def read(self, columns: np.ndarray, samples: np.ndarray, out: np.ndarray, places: np.ndarray) -> None:
        """Copy the values at the given samples of columns to the given places of out."""
        strip = np.searchsorted(self._edges, samples, side="right") - 1
        _read(self._columns, self._written, columns, strip, samples, out, places)

    def keep_only(self, places: np.ndarray) -> None:
        """Move the columns of these places (sorted) together, and forget the others."""
        _move(self._columns, self._written, self._edges, places)
        self._written[:, : len(places)] = self._written[:, places]
        self._written[:, len(places) :] = False


def _add(
    columns: np.ndarray,
    origin: int,
    places: np.ndarray,
    written: np.ndarray,
    coef: np.ndarray,
    edges: np.ndarray,
    start: int,
    stop: int,
    out: np.ndarray,
) -> None:
    for output, weights in enumerate(coef):
        moved = np.flatnonzero(weights)  # outputs share columns, but each moves variables of its own
        _add_strips(columns, origin, places[moved], written, weights[moved], edges, start, stop, out[output])


@njit(cache=True, nogil=True)
def _write(values: Any, bits: Any, columns: Any, place: int, start: int, edges: Any, written: Any) -> None:
    stop = start + values.shape[1]
    strips = range(np.searchsorted(edges, start, side="right") - 1, np.searchsorted(edges, stop))
    for i in range(values.shape[0]):
        column, begin = columns[place + i], start  # strips that follow each other are copied together
        for strip in strips:
            first, last = max(edges[strip], start), min(edges[strip + 1], stop)
            if not written[strip, place + i]:
                if bits[i, first - start] != 0 or _has_any(bits[i, first - start : last - start]):
                    written[strip, place + i] = True
                    for j in range(edges[strip], first):
                        column[j] = 0
                    for j in range(last, edges[strip + 1]):
                        column[j] = 0
                else:
                    if begin < first:
                        copy_past_caches(values[i, begin - start : first - start], column, begin)
                    begin = last
        if begin < stop:
            copy_past_caches(values[i, begin - start :], column, begin)


@njit(cache=True, nogil=True)
def _has_any(bits: Any) -> bool:
    found = bits.dtype.type(0)
    for i in range(len(bits)):
        found |= bits[i]
    return found != 0


@njit(cache=True, nogil=True)
def _add_strips(
    columns: Any, origin: int, places: Any, written: Any, coef: Any, edges: Any, start: int, stop: int, total: Any
) -> None:
    chosen, weights = np.empty(len(places), dtype=np.int64), np.empty(len(places))
    strip, begin = np.searchsorted(edges, start, side="right") - 1, start
    while begin < stop:
        count = 0
        for g in range(len(places)):
            chosen[count], weights[count] = places[g], coef[g]
            count += written[strip, places[g]]
        strip += 1
        while count == len(places) and edges[strip] < stop and written[strip][places].all():
            strip += 1  # memory is read faster in long stretches
        end = min(edges[strip], stop)
        _add_columns(columns, chosen[:count], weights[:count], begin - origin, end - origin, total[begin:end])
        begin = end


@njit(cache=True, nogil=True, fastmath={"contract"})
def _add_columns(columns: Any, places: Any, coef: Any, start: int, stop: int, total: Any) -> None:
    # One column after the other and in double, so that to leave one out that is zero changes no digit: which strips
    # there are depends on who has the samples. Eight at a time, because the total is read and written too.
    whole = len(places) // 8 * 8
    for g in range(0, whole, 8):
        a, b = columns[places[g], start:stop], columns[places[g + 1], start:stop]
        c, d = columns[places[g + 2], start:stop], columns[places[g + 3], start:stop]
        e, f = columns[places[g + 4], start:stop], columns[places[g + 5], start:stop]
        h, k = columns[places[g + 6], start:stop], columns[places[g + 7], start:stop]
        u, v, w, x = coef[g], coef[g + 1], coef[g + 2], coef[g + 3]
        p, q, r, s = coef[g + 4], coef[g + 5], coef[g + 6], coef[g + 7]
        for i in range(len(total)):
            at = total[i] + u * a[i] + v * b[i] + w * c[i] + x * d[i]
            total[i] = at + p * e[i] + q * f[i] + r * h[i] + s * k[i]
    for g in range(whole, len(places)):
        column = columns[places[g], start:stop]
        for i in range(len(total)):
            total[i] += coef[g] * column[i]


@njit(cache=True, nogil=True)
def _read(columns: Any, written: Any, chosen: Any, strip: Any, samples: Any, out: Any, places: Any) -> None:
    for c in range(len(chosen)):
        source, is_written, target = columns[chosen[c]], written[:, chosen[c]], out[places[c]]
        for i in range(len(samples)):
            target[i] = source[samples[i]] if is_written[strip[i]] else 0


@njit(cache=True, nogil=True)
def _move(columns: Any, written: Any, edges: Any, places: Any) -> None:
    for place in range(len(places)):
        old = places[place]
        for strip in range(len(edges) - 1):
            if old != place and written[strip, old]:
                columns[place, edges[strip] : edges[strip + 1]] = columns[old, edges[strip] : edges[strip + 1]]
