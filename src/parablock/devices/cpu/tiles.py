"""Tiles: pieces of a kernel matrix that are computed, used and forgotten inside one core's L2 cache."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from parablock.devices.cpu.samples import CpuSamples
from parablock.kernels import Kernel

Run = Callable[[Callable[[int], Any], Iterable[int]], Any]  # calls a function with every item, on some threads
TILE_ROWS = 256


def panels(columns: CpuSamples) -> Iterator[tuple[int, int, Any]]:
    """The columns in panels of a tile's width: (first, last, panel)."""
    for first in range(0, len(columns), columns.panel_width):
        last = min(first + columns.panel_width, len(columns))
        yield first, last, columns.panel(first, last)


def row_tiles(start: int, stop: int, height: int = TILE_ROWS) -> Iterator[tuple[int, int]]:
    for first in range(start, stop, height):
        yield first, min(first + height, stop)


def tiles(
    kernel: Kernel, rows: CpuSamples, columns: CpuSamples, turns: Iterator[bool] | None = None
) -> Iterator[tuple[int, int, int, int, np.ndarray]]:
    """Every tile of the kernel matrix of rows with columns: (start, stop, first, last, values); where others share the
    work, those for which it is one's turn.

    The values are overwritten by the next tile.
    """
    maker = TileMaker(kernel, rows, columns)
    for first, last, panel in panels(columns):
        # Of few columns many rows: a call takes longer than so few values.
        for start, stop in row_tiles(0, len(rows), TILE_ROWS * max(1, columns.panel_width // (last - first))):
            if turns is None or next(turns):
                yield start, stop, first, last, maker.tile(start, stop, first, last, panel)


class TileMaker:
    """Computes tiles of the kernel matrix of rows with columns, all in one piece of memory that stays in the cache."""

    def __init__(self, kernel: Kernel, rows: CpuSamples, columns: CpuSamples) -> None:
        self.kernel, self.rows, self.columns = kernel, rows, columns
        self._memory = np.empty(0, dtype=rows.dtype)

    def tile(self, start: int, stop: int, first: int, last: int, panel: Any) -> np.ndarray:
        """Kernel values of the rows from start to stop with the panel of the columns from first to last."""
        shape = stop - start, last - first
        size = shape[0] * shape[1]
        if self._memory.size < size:
            self._memory = np.empty(size, dtype=self._memory.dtype)
        tile = self._memory[:size].reshape(shape)
        self.rows.overlap(start, stop, panel, tile)
        self.kernel.transform(tile, self.rows.self_overlap[start:stop], self.columns.self_overlap[first:last])
        return tile
