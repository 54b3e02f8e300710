"""Which rows each rank computes the kernel products of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from parablock.engines.dealing import KEPT_SHARE, LARGEST_SHARE, pieces_of, with_drawn


class Shares:
    """The rows of a problem that each rank has for its own, and those that are still to be dealt out.

    Parameters
    ----------
    rows : list of ndarray
        Those of every rank.
    pieces : list of ndarray, optional
        Rows that are nobody's yet.
    most : int
        For how many rows each rank has room, where they are dealt out; otherwise 0.
    ends : list of lists of int, optional
        Of every rank: how many rows it had each time that it got some.
    """

    def __init__(
        self,
        rows: list[np.ndarray],
        pieces: Sequence[np.ndarray] = (),
        most: int = 0,
        ends: list[list[int]] | None = None,
    ) -> None:
        self.rows, self.pieces, self.most = rows, pieces, most
        self.ends = [[len(own)] for own in rows] if ends is None else ends

    @classmethod
    def dealt(cls, count: int, ranks: int, most: int) -> Shares:
        """Of so many rows, where each rank has room for `most`."""
        return cls(*pieces_of(count, ranks, KEPT_SHARE), most)

    @staticmethod
    def most_of(count: int, room: int, ranks: int) -> int:
        """For how many rows each rank must have room, where so many are dealt out now and there may be `room` later."""
        return int((room + (LARGEST_SHARE - 1.0) * count) / ranks)

    def __len__(self) -> int:
        return sum(map(len, self.rows)) + sum(map(len, self.pieces))

    @property
    def same_columns(self) -> bool:
        """Whether all ranks keep the columns of the same rows, so that to the last digit it does not matter who has
        which."""
        return self.most > 0 and not self.pieces

    def fastest(self) -> np.ndarray:
        """The ranks, first who was fast enough to draw most rows."""
        return np.argsort([-len(own) for own in self.rows], kind="stable")

    def room(self, rank: int) -> float:
        """For how many more rows there is room with a rank in the first product, which deals the pieces out."""
        return LARGEST_SHARE * len(self) / len(self.rows) - len(self.rows[rank])

    def settle(self, drawn: Sequence[Sequence[int]]) -> None:
        """The pieces that each rank has drawn are its own from now on."""
        if self.pieces:
            self.rows = [with_drawn(own, self.pieces, numbers) for own, numbers in zip(self.rows, drawn, strict=True)]
            for ends, numbers in zip(self.ends, drawn, strict=True):
                ends += np.cumsum([ends[-1], *(len(self.pieces[number]) for number in numbers)]).tolist()[1:]
            self.pieces = []

    def longer(self, divided: Sequence[np.ndarray]) -> Shares:
        """Those of more rows, which begin with the present ones: everyone goes on with what it has, and gets a share of
        the others. They are dealt out, if there is room; otherwise divided as given, counted from the first of them."""
        ranks, known, more = len(self.rows), len(self), sum(map(len, divided))
        self.settle([range(rank, len(self.pieces), ranks) for rank in range(ranks)])
        new, most = divided, self.most
        pieces: list[np.ndarray] = []
        if most:
            own, pieces = pieces_of(more, ranks, KEPT_SHARE)
            piece = max(map(len, pieces), default=0)
            # Ranks of one machine may have a piece more than others of those that were dealt out before, and of these.
            if (known + more + 0.5 * (LARGEST_SHARE - 1.0) * known) / ranks + 2 * piece <= most:
                new = own
            else:
                pieces, most = [], 0
        rows = [np.concatenate((old, known + own)) for old, own in zip(self.rows, new, strict=True)]
        ends = [before + [len(now)] for before, now in zip(self.ends, rows, strict=True)]
        return Shares(rows, [known + piece for piece in pieces], most, ends)
