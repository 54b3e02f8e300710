"""Memory for kernel columns that are mostly zero, in strips of which those that are all zero take none.

A narrow kernel is zero for most pairs of rows (`kernels._exponential`: what is less than rounding is zero). Rows lie
block after block, neighbours side by side, so the zeros of a column lie side by side too. Strips without a value that
is not zero are neither written nor read.
"""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from typing import Any

import numpy as np

from parablock.compiling import njit
from parablock.devices.cpu.streaming import LINE, copy_past_caches, empty_lines
from parablock.devices.cpu.whole import add_stretches

STRIP = 256  # values; shorter ones save little more, and reading them takes longer
_ARRIVALS = 32  # times that samples may follow: the last strip of each takes whole cache lines too
_SPARE = 8  # strips beyond those of one long stretch; more of them cost a copy of the table


class Strips:
    """Columns of kernel values, each of so many samples.

    Parameters
    ----------
    most : int
        Columns that there may be.
    length : int
        Samples that there may be.
    room : int
        Bytes that columns may take, and the table of where their strips are.
    dtype : dtype
    """

    def __init__(self, most: int, length: int, room: int, dtype: Any) -> None:
        self._most, self._length = most, length
        self._lanes = LINE // np.dtype(dtype).itemsize
        self._edges = np.zeros(1, dtype=np.int64)  # where every strip begins, and the last one ends
        self._size = np.empty(0, dtype=np.int64)  # of every strip, in cache lines
        lines = min(room // LINE, most * self._lines_to_come())
        # Memory that is not written to yet costs nothing, so all of it is asked for at once.
        self._memory = empty_lines(1, lines * self._lanes, dtype)[0]
        self._used, self._columns = 0, 0  # lines of it, and by how many columns
        # Of every strip and column: its first line in the memory, counted from 1; 0 where all is zero.
        self._line = np.zeros((length // STRIP + _SPARE, most), dtype=np.int32 if lines < 2**31 else np.int64)
        self._lock = threading.Lock()

    def _lines_to_come(self) -> int:
        """That samples which may follow may take of a column."""
        more = self._length - int(self._edges[-1])
        return -(-more // self._lanes) + _ARRIVALS if more > 0 else 0

    def room_for(self, columns: int) -> int:
        """How many more columns there is room for beside so many, even if none of their values is zero."""
        set_aside = self._lines_to_come() + -(-self._line[:, :1].nbytes // LINE)  # beside what it takes now
        free = len(self._memory) // self._lanes - self._used - columns * set_aside
        return min(self._most - columns, max(0, free) // (int(self._size.sum()) + set_aside))

    def follow(self, start: int, stop: int) -> None:
        """Samples from start to stop follow those that are there, in strips of their own."""
        self._edges = np.concatenate((self._edges[:-1], np.arange(start, stop, STRIP), [stop]))
        self._size = -(-np.diff(self._edges) // self._lanes)
        missing = len(self._size) - len(self._line)
        if missing > 0:
            more = np.zeros((missing + _SPARE, self._most), dtype=self._line.dtype)
            self._line = np.concatenate((self._line, more))

    def _between(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of the strips in which the samples from start to stop are: edges, sizes in lines, and first lines."""
        first, last = bisect_right(self._edges, start) - 1, bisect_left(self._edges, stop)
        return self._edges[first : last + 1], self._size[first:last], self._line[first:last]

    def write(self, values: np.ndarray, column: int, start: int) -> None:
        """Values of the columns from the given one on, of the samples from start on. Two threads must not write to the
        same strip."""
        edges, size, line = self._between(start, start + values.shape[1])
        line, last = line[:, column : column + len(values)], column + len(values)
        bits = values.view(np.int32 if values.itemsize == 4 else np.int64)
        new, lines = _new_strips(bits, start, edges, size, line)
        with self._lock:
            first, self._used, self._columns = self._used, self._used + lines, max(self._columns, last)
        if self._used * self._lanes > len(self._memory):
            raise RuntimeError("There are more kernel columns than there is room for.")
        _write(values, new, self._memory, first, start, edges, size, line, self._lanes)

    def add(self, columns: np.ndarray, coef: np.ndarray, start: int, stop: int, out: np.ndarray) -> None:
        """Add columns times coef (n_outputs, columns) to the values from start to stop of out."""
        edges, _, line = self._between(start, stop)
        for output, weights in enumerate(coef):
            moved = np.flatnonzero(weights)  # outputs share columns, but each moves variables of its own
            some = columns[moved], weights[moved]
            _add_kept(self._memory, *some, line, edges, self._lanes, start, stop, out[output])

    def add_new(self, values: np.ndarray, column: int, coef: np.ndarray, start: int, out: np.ndarray) -> None:
        """The same for values that have just been written, as long as they are in the cache."""
        edges, _, line = self._between(start, start + values.shape[1])
        for output, weights in enumerate(coef):
            moved = np.flatnonzero(weights)
            _add_new(values, moved, weights[moved], line[:, column : column + len(values)], edges, start, out[output])

    def read(self, columns: np.ndarray, samples: np.ndarray, out: np.ndarray, places: np.ndarray) -> None:
        """Copy the values at the given samples of columns to the given places of out."""
        strip = np.searchsorted(self._edges, samples, side="right") - 1
        inside = samples - self._edges[strip]
        _read(self._memory, self._line, self._lanes, columns, strip, inside, out, places)

    def keep_only(self, columns: np.ndarray) -> None:
        """Forget all other columns; these (in ascending order) are the first ones from now on."""
        line = self._line[: len(self._size), : self._columns]
        kept = line[:, columns]
        line[:] = 0
        line[:, : len(columns)] = kept
        strip, column = np.nonzero(kept)
        order = np.argsort(kept[strip, column])
        self._used = _move_together(self._memory, line, strip[order], column[order], self._size, self._lanes)
        self._columns = len(columns)


@njit(cache=True, nogil=True)
def _new_strips(bits: Any, start: int, edges: Any, size: Any, line: Any) -> Any:
    """Which strips of every row get their first value that is not zero, and how many lines they take."""
    new, lines = np.zeros(line.shape, dtype=np.bool_), 0
    for i in range(bits.shape[0]):
        for strip in range(len(line)):
            first, last = max(edges[strip] - start, 0), min(edges[strip + 1] - start, bits.shape[1])
            if line[strip, i] == 0 and (bits[i, first] != 0 or _has_any(bits[i, first:last])):
                new[strip, i] = True
                lines += size[strip]
    return new, lines


@njit(cache=True, nogil=True)
def _has_any(bits: Any) -> bool:
    found = bits.dtype.type(0)
    for i in range(len(bits)):
        found |= bits[i]
    return found != 0


@njit(cache=True, nogil=True)
def _write(
    values: Any, new: Any, memory: Any, free: int, start: int, edges: Any, size: Any, line: Any, lanes: int
) -> None:
    for i in range(values.shape[0]):
        for strip in range(len(line)):
            first, last = max(edges[strip] - start, 0), min(edges[strip + 1] - start, values.shape[1])
            if new[strip, i]:
                line[strip, i] = free + 1
                if last - first < edges[strip + 1] - edges[strip]:  # others of it come later, or were zero
                    memory[free * lanes : (free + size[strip]) * lanes] = 0
                free += size[strip]
            if line[strip, i] > 0:
                to = (line[strip, i] - 1) * lanes + start + first - edges[strip]
                copy_past_caches(values[i, first:last], memory, to)


@njit(cache=True, nogil=True)
def _add_kept(
    memory: Any, columns: Any, coef: Any, line: Any, edges: Any, lanes: int, start: int, stop: int, total: Any
) -> None:
    origin, weights = np.empty(len(columns), dtype=np.int64), np.empty(len(columns))
    for strip in range(len(line)):
        count = 0
        for g in range(len(columns)):
            place = line[strip, columns[g]]
            origin[count], weights[count] = (place - 1) * lanes - edges[strip], coef[g]
            count += place > 0
        begin, end = max(edges[strip], start), min(edges[strip + 1], stop)
        add_stretches(memory, origin[:count], weights[:count], begin, end, total)


@njit(cache=True, nogil=True)
def _add_new(values: Any, rows: Any, coef: Any, line: Any, edges: Any, start: int, total: Any) -> None:
    memory, width = values.reshape(-1), values.shape[1]
    origin, weights = np.empty(len(rows), dtype=np.int64), np.empty(len(rows))
    for strip in range(len(line)):
        count = 0
        for g in range(len(rows)):
            origin[count], weights[count] = rows[g] * width - start, coef[g]
            count += line[strip, rows[g]] > 0
        begin, end = max(edges[strip], start), min(edges[strip + 1], start + width)
        add_stretches(memory, origin[:count], weights[:count], begin, end, total)


@njit(cache=True, nogil=True)
def _read(memory: Any, line: Any, lanes: int, columns: Any, strip: Any, inside: Any, out: Any, places: Any) -> None:
    for c in range(len(columns)):
        target = out[places[c]]
        for i in range(len(strip)):
            place = line[strip[i], columns[c]]
            target[i] = memory[(place - 1) * lanes + inside[i]] if place > 0 else 0


@njit(cache=True, nogil=True)
def _move_together(memory: Any, line: Any, strip: Any, column: Any, size: Any, lanes: int) -> int:
    """Strips in the order in which they lie, to the beginning of the memory; how many lines they take."""
    used = 0
    for s in range(len(strip)):
        old, new = (line[strip[s], column[s]] - 1) * lanes, used * lanes
        line[strip[s], column[s]] = used + 1
        used += size[strip[s]]
        for i in range(used * lanes - new if old != new else 0):
            memory[new + i] = memory[old + i]
    return used
