"""Samples whose rows stay on disk: every tile reads its own.

A tile of 256 rows and 1,024 columns costs a thousand times as many operations as reading its rows from memory, so
nothing is lost as long as the system still has them there; otherwise a kernel product reads the file once for each
group of panels.
"""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

from parablock.devices.cpu.samples import CpuSamples, make_samples, narrow
from parablock.kernels import Kernel
from parablock.mapped import MappedRows, reading_order, stretches


def stored_samples(X: Any, kernel: Kernel, centre: np.ndarray | None, most: int) -> CpuSamples:
    """Samples of mapped data: in memory, if it takes no more than so many bytes, and on disk otherwise."""
    rows = X if isinstance(X, MappedRows) else MappedRows(X)
    if rows.nbytes <= most:
        return make_samples(rows[:], kernel, centre)
    return StoredSamples(rows, kernel, centre, most)


class StoredSamples(CpuSamples):
    """Rows that stay on disk.

    Parameters
    ----------
    rows : MappedRows
    kernel, centre
        As `make_samples` takes them.
    most : int
        Samples of at most so many bytes are taken into memory.
    """

    at_hand = False

    def __init__(self, rows: MappedRows, kernel: Kernel, centre: np.ndarray | None, most: int) -> None:
        self.rows, self.kernel, self.centre, self.most = rows, kernel, centre, most
        self.dtype = rows.dtype
        self._features: np.ndarray | None = None
        own = []
        for start, stop in stretches(rows):
            part = make_samples(rows[start:stop], kernel, centre)
            own.append(part.self_overlap)
            if start == 0:
                self._at_once, self._nanoseconds = stop, part.nanoseconds
                self.panel_width = min(part.panel_width, max(16, stop))  # a panel is a copy here, and no long one
        self.self_overlap = np.concatenate(own)

    @property
    def nanoseconds(self) -> float:
        return self._nanoseconds

    @property
    def bytes_on_disk(self) -> int:
        return self.rows.nbytes

    @property
    def panels_at_once(self) -> int:
        panel = self.panel_width * self.rows.nbytes // max(1, len(self))
        return int(np.clip(self.most // max(1, panel), 1, super().panels_at_once))

    @property
    def reading_order(self) -> np.ndarray | None:
        return None if self.rows.numbers is None else reading_order(self.rows.numbers)

    def take(self, rows: Any) -> CpuSamples:
        there = self.rows.take(rows)
        if there.nbytes <= self.most:
            return self._read(rows)
        samples = copy(self)
        samples.rows, samples.self_overlap = there, self.self_overlap[rows]
        return samples

    def nearby(self, rows: np.ndarray) -> CpuSamples | None:
        samples = self.take(rows)
        return None if isinstance(samples, StoredSamples) else samples

    def with_features(self, features: np.ndarray) -> StoredSamples:
        samples = copy(self)
        samples._features = features if self._features is None else self._features[features]
        return samples

    def project(self, rows: np.ndarray, direction: np.ndarray) -> np.ndarray:
        order = np.argsort(self.rows.places(rows), kind="stable")
        out = np.empty(len(rows), dtype=self.dtype)
        for start in range(0, len(rows), self._at_once):
            some = order[start : start + self._at_once]
            out[some] = self._read(rows[some]).project(np.arange(len(some)), direction)
        return out

    def panel(self, start: int, stop: int) -> Any:
        return self._read(slice(start, stop)).panel(0, stop - start)

    def overlap(self, start: int, stop: int, panel: Any, out: np.ndarray) -> None:
        self._read(slice(start, stop)).overlap(0, stop - start, panel, out)

    def features(self, rows: Any = slice(None)) -> Any:
        return self._read(rows).features()

    def _read(self, rows: Any) -> CpuSamples:
        samples = make_samples(self.rows[rows], self.kernel, self.centre, self.self_overlap[rows])
        samples.panel_width = self.panel_width
        return narrow(samples, self._features)
