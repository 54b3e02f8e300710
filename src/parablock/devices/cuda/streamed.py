"""Dense rows that have no room on the card: they stay where they are, and are made ready each time they are needed.

    a product        the columns, as many as have room at once; then all rows go past them, tile after tile
    block matrices   the rows of as many blocks as have room
    some rows        become an ordinary operand where they have room: the columns that moved, the rows that are watched

One grid (see `operands`) is chosen for all rows, so a row has the same parts whenever it comes: the results are those
of rows that are on the card.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch

from parablock.devices.cuda.operands import Grid, Operand, operand_bytes, padded_features, split
from parablock.devices.cuda.sources import Places, Source

_TILES = 4  # of rows that go past: this one, the next one, and copies of each
LEAST_ROWS = 16  # at once; with room for fewer there is no way


@dataclass(frozen=True)
class StreamedOperand:
    """Rows elsewhere, as products read them.

    Attributes
    ----------
    source : Source
    grid : Grid
    room : int
        Bytes on the card that rows may take at once.
    """

    source: Source
    grid: Grid
    room: int

    def __len__(self) -> int:
        return len(self.source)

    @property
    def shape(self) -> tuple[int, int]:
        return self.source.shape

    @property
    def device(self) -> torch.device:
        return self.source.device

    @property
    def kind(self) -> str:
        return self.grid.kind

    @property
    def features(self) -> int:
        """With padding."""
        return padded_features(self.shape[1])

    @property
    def squares(self) -> torch.Tensor:
        """Squared norms, float64."""
        out = torch.empty(len(self), dtype=torch.float64, device=self.device)
        for places, tile in self.tiles():
            out[places] = tile.squares
        return out

    @property
    def rows_at_once(self) -> int:
        """That have room."""
        return max(LEAST_ROWS, self.room // operand_bytes(1, self.shape[1]))

    def take(self, rows: Any) -> Operand | StreamedOperand:
        """The given rows: on the card, if they have room."""
        some = replace(self, source=self.source.take(rows))
        return some.brought() if len(some) <= self.rows_at_once else some

    def brought(self) -> Operand:
        """All of the rows on the card."""
        return split(self.source, self.grid)

    def __getitem__(self, rows: Any) -> torch.Tensor:
        """The given rows as float32 numbers, as those of `Operand`."""
        if isinstance(rows, slice):
            return self.source.take(rows).values()
        numbers = torch.as_tensor(rows)
        return self.source.take(numbers.reshape(-1)).values().reshape(*numbers.shape, -1)

    def tiles(self) -> Iterator[tuple[Places, Operand]]:
        """All rows, few at a time, and where they belong."""
        for places, part in self.source.parts(max(LEAST_ROWS, self.rows_at_once // _TILES)):
            yield places, split(Source(part, self.device, on_card=True), self.grid)

    def stretches(self) -> Iterator[tuple[slice, Operand]]:
        """All rows in order, as many at a time as have room."""
        for start in range(0, len(self), self.rows_at_once):
            places = slice(start, min(start + self.rows_at_once, len(self)))
            yield places, split(self.source.take(places), self.grid)
