"""Kernel columns that are kept from iteration to iteration.

The variables that move are nearly the same ones in every iteration: reading their columns again costs a few bytes a
value, computing them again a matrix product and an exponential. Columns stay in the order in which they first moved;
when the room is full, later ones are computed each time they are needed.
"""

from __future__ import annotations

import numpy as np

from parablock.devices.base import Rows, Samples
from parablock.devices.cpu.samples import CpuSamples, narrow, used_features
from parablock.devices.cpu.strips import Strips
from parablock.devices.cpu.tiles import Run, tiles
from parablock.devices.cpu.whole import WholeColumns
from parablock.kernels import Kernel

Chunk = list[tuple[int, int]]  # samples that follow each other, from the first of each pair to before the second
_COLUMNS_AT_ONCE = 2048  # that one task makes longer
_LEAST = 64  # columns for which there must be room: to compute fewer at a time takes longer than to do so again
_LOOK, _MOSTLY = 64, 0.8  # rows and samples whose kernel values tell whether most are zero, and which share is most
_FEW_TO_FORGET = 0.75  # to move the others together is not worth it when so many stay


class ColumnStore:
    """Columns of the matrix of kernel values of some samples with numbered rows.

    Parameters
    ----------
    samples : CpuSamples
        A column has one value for each.
    kernel : Kernel
    most : int
        Columns that may be asked for.
    room : int
        Bytes that the columns may take.
    length : int
        Samples for which there is to be room: some may follow (`watch`, `extend`).

    Attributes
    ----------
    slot : ndarray
        Where the column of a row is, by the row's number; -1 for none.
    used : int
        How many columns are kept.
    """

    def __init__(self, samples: CpuSamples, kernel: Kernel, most: int, room: int, length: int) -> None:
        self.kernel, self.length = kernel, length
        self._most, self._room = most, room
        self._memory: WholeColumns | Strips | None = None  # until it is known what columns are like
        self._starts: list[int] = []
        self.samples = samples.take(slice(0))
        self.watch(samples)
        self.slot = np.full(0, -1, dtype=np.int64)
        self.used = 0

    def watch(self, samples: CpuSamples) -> None:
        """Go on with these samples, which begin with the present ones; columns that are kept already have no values
        for the others."""
        self._starts.append(len(self.samples))
        if self._memory is not None:
            self._memory.follow(len(self.samples), len(samples))
        self.samples = samples
        self._features = used_features(samples)
        self._narrow = narrow(samples, self._features)

    def stretches(self, start: int = 0) -> Chunk:
        """Samples from start on (some stretch begins there) that came together. What is computed of them at a time
        does not depend on what other samples there are, so that the last digits do not either."""
        ends = [*self._starts[1:], len(self.samples)]
        return [(first, last) for first, last in zip(self._starts, ends, strict=True) if first >= start]

    def chunks(self, size: int, start: int = 0) -> list[Chunk]:
        """The stretches from start on, long ones in pieces of the given size, short ones together."""
        chunks: list[Chunk] = []
        room = 0
        for first, last in self.stretches(start):
            for begin in range(first, last, size):
                end = min(begin + size, last)
                if end - begin > room:
                    chunks.append([])
                    room = size
                chunks[-1].append((begin, end))
                room -= end - begin
        return chunks

    def rows(self) -> np.ndarray:
        """The rows whose columns are kept, by their places."""
        held = np.flatnonzero(self.slot >= 0)
        return held[np.argsort(self.slot[held])]

    def extend(self, samples: CpuSamples, columns: Samples, run: Run) -> None:
        """Go on with samples that begin with the present ones and for which there is room; the columns are `rows`."""
        before = len(self.samples)
        self.watch(samples)
        columns = self.narrowed(columns)

        def lengthen(first: int) -> None:
            self.fill(columns.take(slice(first, first + _COLUMNS_AT_ONCE)), first, before, len(samples))

        run(lengthen, range(0, self.used, _COLUMNS_AT_ONCE))

    def keep_only(self, rows: np.ndarray) -> None:
        """Forget the columns of all other rows, if they are many."""
        places = np.sort(self.slot[rows[self.holds(rows)]])
        if not self.used or len(places) > _FEW_TO_FORGET * self.used:
            return
        stay = self.rows()[places]
        self.memory.keep_only(places)
        self.slot[:] = -1
        self.slot[stay] = np.arange(len(places))
        self.used = len(places)

    def plan(self, rows: np.ndarray, sources: Rows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Which of the rows have their columns kept already, which get a place now, and which find none; as positions
        in `rows`. The places of new columns follow each other. There is room for these whatever their values are; if
        many turn out to be zero, there is room for others next time."""
        if self._memory is None and len(rows):
            self._memory = self._memory_for(sources.take(rows[:: -(-len(rows) // _LOOK)]))
        self._number(rows)
        kept = np.flatnonzero(self.slot[rows] >= 0)
        missing = np.flatnonzero(self.slot[rows] < 0)
        room = self.memory.room_for(self.used) if len(missing) else 0
        fresh = missing[: room if room >= min(_LEAST, len(missing)) else 0]
        self.slot[rows[fresh]] = np.arange(self.used, self.used + len(fresh))
        self.used += len(fresh)
        return kept, fresh, missing[len(fresh) :]

    @property
    def memory(self) -> WholeColumns | Strips:
        assert self._memory is not None, "no column has been planned"
        return self._memory

    def _memory_for(self, some: Samples) -> WholeColumns | Strips:
        """Strips, if most kernel values of some of the rows with the samples are zero."""
        assert isinstance(some, CpuSamples)
        kind: type[WholeColumns | Strips] = WholeColumns
        if np.isfinite(some.nanoseconds) and len(self.samples):  # a user's function is not asked for more than it must
            samples = self.samples.take(np.arange(0, len(self.samples), -(-len(self.samples) // _LOOK)))
            *_, values = next(tiles(self.kernel, some, samples))
            kind = Strips if np.mean(values == 0) > _MOSTLY else WholeColumns
        memory = kind(self._most, self.length, self._room, self.samples.dtype)
        for first, last in self.stretches():
            memory.follow(first, last)
        return memory

    def _number(self, rows: np.ndarray) -> None:
        most = int(rows.max(initial=-1)) + 1
        if most > len(self.slot):
            self.slot = np.concatenate((self.slot, np.full(most - len(self.slot), -1)))

    def narrowed(self, rows: Samples) -> CpuSamples:
        """Rows whose columns are to be computed, with what matters of them for the present samples."""
        assert isinstance(rows, CpuSamples)
        return narrow(rows, self._features)

    def fill(
        self,
        fresh: CpuSamples,
        place: int,
        start: int,
        stop: int,
        coef: np.ndarray | None = None,
        out: np.ndarray | None = None,
    ) -> None:
        """Compute the values from start to stop of new columns, whose places begin at the given one; and as long as
        they are in the cache, add them times coef (n_outputs, columns) to out."""
        for top, bottom, first, _, tile in tiles(self.kernel, fresh, self._narrow.take(slice(start, stop))):
            self.memory.write(tile, place + top, start + first)
            if coef is not None and out is not None:
                self.memory.add_new(tile, place + top, coef[:, top:bottom], start + first, out)

    def put(self, values: np.ndarray, place: int) -> None:
        """New columns that someone else has computed, whose places begin at the given one."""
        self.memory.write(values, place, 0)

    def holds(self, rows: np.ndarray) -> np.ndarray:
        """Which of the rows have their columns kept. Changes nothing: several threads may ask at once."""
        slot = self.slot
        known = rows < len(slot)
        return known & (slot[np.where(known, rows, 0)] >= 0) if len(slot) else known

    def copy(self, columns: np.ndarray, rows: np.ndarray, out: np.ndarray, places: np.ndarray) -> None:
        """Copy the values at the given samples of kept columns to the given places of out."""
        if len(columns):
            self.memory.read(self.slot[columns], rows, out, places)

    def dot(self, places: np.ndarray, coef: np.ndarray, start: int, stop: int, out: np.ndarray) -> None:
        """Add the kept columns times coef (n_outputs, columns) to the values from start to stop of out."""
        if len(places):
            self.memory.add(places, coef, start, stop, out)
