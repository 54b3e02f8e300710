"""Tiles: pieces of a kernel matrix that are computed, used and forgotten inside one core's L2 cache."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from parablock.devices.cpu.samples import CpuSamples
from parablock.kernels import Kernel

TILE_ROWS = 256


def panels(columns: CpuSamples) -> Iterator[tuple[int, int, Any]]:
    """The columns in panels of a tile's width: (first, last, panel)."""
    for first in range(0, len(columns), columns.panel_width):
        last = min(first + columns.panel_width, len(columns))
        yield first, last, columns.panel(first, last)


def row_tiles(start: int, stop: int) -> Iterator[tuple[int, int]]:
    for first in range(start, stop, TILE_ROWS):
        yield first, min(first + TILE_ROWS, stop)


def tiles(kernel: Kernel, rows: CpuSamples, columns: CpuSamples) -> Iterator[tuple[int, int, int, int, np.ndarray]]:
    """Every tile of the kernel matrix of rows with columns: (start, stop, first, last, values).

    The values are overwritten by the next tile.
    """
    buffer = TileBuffer(rows.dtype)
    for first, last, panel in panels(columns):
        for start, stop in row_tiles(0, len(rows)):
            tile = buffer.shaped(stop - start, last - first)
            rows.overlap(start, stop, panel, tile)
            kernel.transform(tile, rows.self_overlap[start:stop], columns.self_overlap[first:last])
            yield start, stop, first, last, tile


class TileBuffer:
    """Memory for one tile, reused so that it stays in the cache."""

    def __init__(self, dtype: Any) -> None:
        self._memory = np.empty(0, dtype=dtype)

    def shaped(self, rows: int, columns: int) -> np.ndarray:
        if self._memory.size < rows * columns:
            self._memory = np.empty(rows * columns, dtype=self._memory.dtype)
        return self._memory[: rows * columns].reshape(rows, columns)
