"""Work that goes to whoever has time for it.

Ranks of one machine are not equally fast: cores share power, caches and memory, and those of a virtual machine may be
two halves of one. So each begins with most of its even share, and the rest is dealt out in pieces, by a counter in the
memory that they share. Which rank draws a piece changes nothing in the results.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from parablock.engines.sharing import TOGETHER, interleaved

# Of an even share: what a rank has for its own where columns are kept, because a piece's are short, and take longer;
# what it has where nothing is kept; and the most that it can come to have, because who computes fast may read slowly.
KEPT_SHARE, SEEN_SHARE, LARGEST_SHARE = 0.8, 0.6, 1.15
_LEAST_SHARE, _LEAST_PIECE = 512, 128  # rows below which the trouble of dealing costs more than waiting
_PIECES = 4  # at least, that a rank draws


def pieces_of(count: int, ranks: int, own: float) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Which of so many rows the ranks have for their own, about this part of an even share, and the rest in pieces to
    be dealt out: smaller and smaller ones, so that all end together.

    Ranks of one machine can come to have an even share and a piece on average, if their machine's pieces are the
    larger ones. Whoever has no more than that can draw another piece and stay within the largest share. As there is
    always such a rank, all pieces find one.
    """
    if ranks == 1 or count < ranks * _LEAST_SHARE:
        return interleaved(count, ranks), []
    kept = int(own * count) // (ranks * TOGETHER) * ranks * TOGETHER
    rest = np.arange(kept, count)
    largest = int(0.5 * (LARGEST_SHARE - 1.0) * count / ranks)
    pieces = []
    while len(rest):
        size = min(largest, max(_LEAST_PIECE, len(rest) // (_PIECES * ranks)))
        pieces.append(rest[:size])
        rest = rest[size:]
    return interleaved(kept, ranks), pieces


class Draws:
    """The pieces that a rank draws, one after the other, as long as it has room for their rows.

    Attributes
    ----------
    drawn : list of int
        Their numbers so far.
    """

    def __init__(self, numbers: Iterator[int], pieces: Sequence[np.ndarray], room: float = np.inf) -> None:
        self._numbers, self._pieces, self._room = numbers, pieces, room
        self.drawn: list[int] = []

    def __iter__(self) -> Iterator[np.ndarray]:
        size, room = max(map(len, self._pieces), default=0), self._room
        while size <= room:
            number = next(self._numbers, None)
            if number is None:
                return
            self.drawn.append(number)
            yield self._pieces[number]
            size = len(self._pieces[number])  # the next one has no more
            room -= size


def with_drawn(own: np.ndarray, pieces: Sequence[np.ndarray], drawn: Sequence[int]) -> np.ndarray:
    """A rank's own rows and those of the pieces that it has drawn."""
    return np.concatenate((own, *(pieces[number] for number in drawn)))


def numbers_of(machine: np.ndarray, count: int) -> list[int]:
    """Those of the numbers below the count that a machine with these ranks deals out: one for each of them, in turns
    with the others."""
    return np.flatnonzero(np.resize(machine, count)).tolist()


class Dealer:
    """Deals numbers out to the ranks of an MPI communicator. Those of one machine draw from a counter in the memory
    that they share; each machine has numbers of its own, as many as ranks.

    There are two counters. While one is in use the other is set back: all ranks meet between two deals, so nobody draws
    from it any more, nor does anyone yet.
    """

    def __init__(self, comm: Any, neighbours: Any, window: Any) -> None:
        from mpi4py import MPI

        self._window, self._first = window, neighbours.Get_rank() == 0
        self._counters = np.asarray(window.Shared_query(0)[0]).view(np.int64)
        window.Lock_all()
        self._sum, self._one, self._drawn = MPI.SUM, np.ones(1, dtype=np.int64), np.empty(1, dtype=np.int64)
        self._deals = 0
        self._set_back(0)
        heads = comm.allgather(neighbours.bcast(comm.Get_rank()))  # of every rank's machine
        self._here = np.array(heads) == heads[comm.Get_rank()]

    @classmethod
    def of(cls, comm: Any) -> Dealer | None:
        """The dealer of a communicator, which all of its ranks must make together; None where some of them have no
        memory to share."""
        from mpi4py import MPI

        neighbours = comm.Split_type(MPI.COMM_TYPE_SHARED)
        try:
            window = MPI.Win.Allocate_shared(16 if neighbours.Get_rank() == 0 else 0, 8, comm=neighbours)
        except MPI.Exception:
            window = None
        everywhere = comm.allreduce(window is not None, op=MPI.LAND)
        return cls(comm, neighbours, window) if everywhere else None

    def deal(self, count: int) -> Iterator[int]:
        """Numbers below the count, each on one rank. All ranks must call this, and meet before they call it again."""
        counter, self._deals = self._deals % 2, self._deals + 1
        self._set_back(1 - counter)
        return self._draw(counter, numbers_of(self._here, count))

    def _draw(self, counter: int, numbers: list[int]) -> Iterator[int]:
        while (place := self._next(counter)) < len(numbers):
            yield numbers[place]

    def _next(self, counter: int) -> int:
        self._window.Fetch_and_op(self._one, self._drawn, 0, counter, self._sum)
        self._window.Flush(0)
        return int(self._drawn[0])

    def _set_back(self, counter: int) -> None:
        if self._first:
            self._counters[counter] = 0
            self._window.Sync()
