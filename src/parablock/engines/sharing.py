"""Rows that are spread over machines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from parablock.devices.base import Device, ReadableRows, Samples
from parablock.engines.talk import Talk
from parablock.hashing import hash_of_rows
from parablock.kernels import Kernel
from parablock.mapped import in_precision, some_rows, stretches
from parablock.tensors import TensorRows

TOGETHER = 256  # neighbours that stay with one rank: as many as a strip has (`devices.cpu.strips`)


class Shard:
    """One rank's rows of data that all ranks have together; rank after rank they are numbered through.

    Attributes
    ----------
    own : array or CSR matrix
        This rank's rows.
    starts : ndarray of shape (ranks + 1,)
        Where each rank's numbers begin.
    """

    def __init__(self, own: Any, starts: np.ndarray, talk: Talk) -> None:
        self.own, self.starts, self.talk = own, starts, talk
        self.shape = (int(starts[-1]), own.shape[1])
        self.dtype = own.dtype

    def moments(self, share: np.ndarray) -> tuple[float, float]:
        """Weighted sums of all values and of their squares."""
        sums = self.talk.share(moments(self.own, share[self.starts[self.talk.rank] : self.starts[self.talk.rank + 1]]))
        return sum(first for first, _ in sums), sum(second for _, second in sums)

    def hash_of_rows(self, columns: Sequence[np.ndarray]) -> np.ndarray:
        """Of all ranks' rows together, and of columns that every rank has in full."""
        first, last = self.starts[self.talk.rank], self.starts[self.talk.rank + 1]
        own = self.talk.share(hash_of_rows(self.own, [column[first:last] for column in columns], int(first)))
        total: np.ndarray = np.add.reduce(own)
        return total

    def in_precision(self, dtype: Any) -> Shard:
        """The same rows in another type."""
        return Shard(in_precision(self.own, dtype), self.starts, self.talk)

    def keep(self, rows: np.ndarray) -> Shard:
        """The given rows (sorted) of all ranks, where they are."""
        starts = np.searchsorted(rows, self.starts)
        if np.any(np.diff(starts) == 0):
            raise ValueError(
                f"All sample weights of rank {int(np.argmin(np.diff(starts)))} are zero: every rank needs rows that "
                "take part. Divide the rows in another way, or leave those without weight out."
            )
        first, last = self.starts[self.talk.rank], self.starts[self.talk.rank + 1]
        own = rows[(rows >= first) & (rows < last)] - first
        return Shard(some_rows(self.own, own), starts, self.talk)

    def __getitem__(self, rows: np.ndarray) -> Any:
        """The given rows, on every rank."""
        return fetch(self.talk, lambda own: self.own[own], self.starts, rows)


class ShardedRows:
    """Samples by number, as far as this rank has them: its own, and those that have travelled.

    Parameters
    ----------
    samples : Samples
        This rank's own.
    starts : ndarray of shape (ranks + 1,)
        Where each rank's numbers begin.
    """

    at_hand = False

    def __init__(self, device: Device, kernel: Kernel, samples: Samples, starts: np.ndarray, talk: Talk) -> None:
        self.device, self.kernel, self.own, self.starts, self.talk = device, kernel, samples, starts, talk
        self._travelled: list[Any] = []  # features, as they came
        self._place = np.full(len(self), -1, dtype=np.int64)  # of every row among all that have travelled
        self._count = 0

    def __len__(self) -> int:
        return int(self.starts[-1])

    def owner(self, rows: np.ndarray) -> np.ndarray:
        """Which rank has each of the rows."""
        return np.searchsorted(self.starts, rows, side="right") - 1

    def bring(self, rows: np.ndarray) -> None:
        """See to it that every rank has the given rows, which all ranks must ask for."""
        missing = np.unique(rows[self._place[rows] < 0])
        if len(missing) and self.talk.size > 1:
            self._travelled.append(fetch(self.talk, self.own.features, self.starts, missing))
            self._place[missing] = np.arange(self._count, self._count + len(missing))
            self._count += len(missing)
            if len(self._travelled) > 1:
                stack = sp.vstack if sp.issparse(self._travelled[0]) else np.concatenate
                self._travelled = [stack(self._travelled)]

    def take(self, rows: np.ndarray) -> Samples:
        """Samples of rows that are here."""
        first, last = self.starts[self.talk.rank], self.starts[self.talk.rank + 1]
        mine = (rows >= first) & (rows < last)
        if mine.all():
            return self.own.take(rows - first)
        there = rows[~mine]
        if np.any(self._place[there] < 0):
            raise RuntimeError("A row was asked for that has not travelled here.")
        came = self._travelled[0][self._place[there]]
        if sp.issparse(came):
            features = sp.vstack((self.own.features(rows[mine] - first), came)).tocsr()
            order = np.empty(len(rows), dtype=np.intp)
            order[np.concatenate((np.flatnonzero(mine), np.flatnonzero(~mine)))] = np.arange(len(rows))
            features = sp.csr_matrix(features[order])
        else:
            features = np.empty((len(rows), came.shape[1]), dtype=self.own.dtype)
            features[mine], features[~mine] = self.own.features(rows[mine] - first), came
        return self.device.samples(features, self.kernel)

    def features(self, rows: np.ndarray) -> Any:
        return self.take(rows).features()

    def project(self, rows: np.ndarray, direction: np.ndarray) -> np.ndarray:
        return self.take(rows).project(np.arange(len(rows)), direction)

    def nearby(self, rows: np.ndarray) -> Samples | None:
        return self.take(rows)

    def ordered(self, order: np.ndarray) -> ShardedRows:
        """With row order[i] called i, where rows stay with their ranks."""
        first, last = self.starts[self.talk.rank], self.starts[self.talk.rank + 1]
        return ShardedRows(self.device, self.kernel, self.own.take(order[first:last] - first), self.starts, self.talk)


class PartRows:
    """Some of numbered rows, numbered anew."""

    def __init__(self, rows: ReadableRows, numbers: np.ndarray) -> None:
        self.rows, self.numbers = rows, numbers

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, rows: Any) -> Samples:
        return self.rows.take(self.numbers[rows])

    def features(self, rows: Any) -> Any:
        return self.rows.features(self.numbers[rows])

    def project(self, rows: np.ndarray, direction: np.ndarray) -> np.ndarray:
        return self.rows.project(self.numbers[rows], direction)

    def nearby(self, rows: np.ndarray) -> Samples | None:
        return self.rows.nearby(self.numbers[rows])

    @property
    def at_hand(self) -> bool:
        return self.rows.at_hand


def moments(X: Any, share: np.ndarray) -> tuple[float, float]:
    """Weighted sums of all values and of their squares, with one weight a row."""
    if isinstance(X, TensorRows):
        return X.moments(share)
    first = second = 0.0
    for start, stop in stretches(X):  # the squares of all rows would be a copy of them
        part, weight = X[start:stop], share[start:stop]
        if sp.issparse(part):
            part, weight = part.data, np.repeat(weight, np.diff(part.indptr))
        first += float((part.T @ weight).sum())
        second += float((np.square(part, dtype=np.float64).T @ weight).sum())
    return first, second


def fetch(talk: Talk, own: Callable[[np.ndarray], Any], starts: np.ndarray, rows: np.ndarray) -> Any:
    """The given rows of features that are spread over ranks, on every rank; `own` gives rows of this rank's."""
    first, last = starts[talk.rank], starts[talk.rank + 1]
    mine = own(rows[(rows >= first) & (rows < last)] - first)
    # As they come: the first rank's rows before the second's.
    came = np.argsort(np.searchsorted(starts, rows, side="right"), kind="stable")
    back = np.empty(len(rows), dtype=np.intp)
    back[came] = np.arange(len(rows))
    if sp.issparse(mine):
        return sp.csr_matrix(sp.vstack(talk.share(sp.csr_matrix(mine))).tocsr()[back])
    parts = talk.share_array(np.ascontiguousarray(mine).ravel())
    return np.concatenate(parts).reshape(len(rows), mine.shape[1])[back]


def even_parts(count: int, parts: int) -> np.ndarray:
    """Where stretches of equal length (to one) begin."""
    return np.arange(parts + 1) * count // parts


def interleaved(count: int, parts: int) -> list[np.ndarray]:
    """Even shares of so many rows, each in short stretches from everywhere. Neighbours are alike also in the work that
    they are: their kernel columns are zero, or not, at the same rows."""
    whole = count // (parts * TOGETHER) * parts * TOGETHER
    stretches = np.arange(whole).reshape(-1, parts, TOGETHER)
    rest = np.split(np.arange(whole, count), even_parts(count - whole, parts)[1:-1])
    return [np.concatenate((stretches[:, part].ravel(), rest[part])) for part in range(parts)]


def assigned(blocks: Sequence[np.ndarray], homes: Sequence[np.ndarray] | None, size: int) -> np.ndarray:
    """Which rank solves each block: the one that has most of its rows, as long as there is room; the largest blocks
    are placed first.

    Parameters
    ----------
    homes : sequence of arrays, or None
        For every block, how many of its rows each rank has; None where every rank has all rows.
    """
    work = np.array([float(len(block)) ** 2 for block in blocks])
    room = max(1.25 * work.sum() / size, work.max())
    load, chosen = np.zeros(size), np.empty(len(blocks), dtype=np.intp)
    for number in np.argsort(-work, kind="stable"):
        best = int(load.argmin())
        if homes is not None:
            with_room = np.flatnonzero(load + work[number] <= room)
            if len(with_room):
                best = int(with_room[np.argmax(homes[number][with_room])])
        chosen[number] = best
        load[best] += work[number]
    return chosen
