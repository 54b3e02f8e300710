"""Samples made ready for tiles: dense, CSR, rows of a given kernel matrix, or whatever the user's function takes.

Each kind fills a tile with the overlaps of some of its rows with a panel of columns; `kernels` turns them into
kernel values.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from parablock.compact import rows_of
from parablock.devices.base import Samples
from parablock.devices.cpu.overlaps import (
    KINDS,
    dense_overlap,
    feature_table,
    row_products,
    self_overlap,
    sparse_overlap,
    sparse_panel,
    sparse_row_products,
    subtract,
)
from parablock.kernels import Called, Kernel

_PANEL_BYTES = 1 << 20  # of a panel that is laid out feature by feature: about one core's L2 cache
MAX_PANEL = 1024  # columns of a tile
_FEW_FEATURES = 0.03  # to leave out so small a share of them is not worth a copy


class CpuSamples(Samples):
    """Rows of data on the CPU.

    Attributes
    ----------
    panel_width : int
        How many columns a tile should have.
    """

    panel_width: int = MAX_PANEL

    @property
    def panels_at_once(self) -> int:
        """Panels that may be kept ready at a time: a bound on the memory of those that are copies."""
        return 64

    @property
    def bytes_on_disk(self) -> int:
        """Of rows that would come into memory when they are taken."""
        return 0

    @property
    def reading_order(self) -> np.ndarray | None:
        """The order in which to read rows that are on disk, where it is not this one."""
        return None

    @property
    @abstractmethod
    def nanoseconds(self) -> float:
        """What a kernel value costs about on one core of today."""

    @abstractmethod
    def take(self, rows: Any) -> CpuSamples: ...

    @abstractmethod
    def panel(self, start: int, stop: int) -> Any:
        """The samples from start to stop as columns of tiles."""

    @abstractmethod
    def overlap(self, start: int, stop: int, panel: Any, out: np.ndarray) -> None:
        """Fill `out` with the overlaps of the rows from start to stop with the panel's columns."""

    def with_features(self, features: np.ndarray) -> CpuSamples:
        """The samples with the given features only, where they are dense."""
        raise TypeError(f"{type(self).__name__} have no features to leave out.")


class DenseSamples(CpuSamples):
    def __init__(self, X: np.ndarray, kind: str, own: np.ndarray | None = None) -> None:
        self.X = X
        self.kind = kind
        self.dtype = X.dtype
        self.self_overlap = self_overlap(kind, X) if own is None else own
        if kind != "product":
            self.panel_width = _width(X.shape[1], X.dtype.itemsize)

    @property
    def nanoseconds(self) -> float:
        return 1.6 + 0.04 * self.X.shape[1] * (1 if self.kind == "product" else 4)

    def take(self, rows: Any) -> DenseSamples:
        return DenseSamples(rows_of(self.X, rows), self.kind, self.self_overlap[rows])

    def project(self, rows: np.ndarray, direction: np.ndarray) -> np.ndarray:
        return row_products(self.X, rows, direction.astype(self.dtype))

    def panel(self, start: int, stop: int) -> np.ndarray:
        columns = self.X[start:stop].T
        return columns if self.kind == "product" else np.ascontiguousarray(columns)

    def overlap(self, start: int, stop: int, panel: np.ndarray, out: np.ndarray) -> None:
        if self.kind == "product":
            np.dot(self.X[start:stop], panel, out=out)
        else:
            dense_overlap(KINDS[self.kind], self.X[start:stop], panel, out)

    def features(self, rows: Any = slice(None)) -> Any:
        return rows_of(self.X, rows)

    @cached_property
    def used(self) -> np.ndarray:
        """The features that some row has. Looking takes a while, and many short products ask again."""
        return np.flatnonzero(self.X.any(axis=0))

    def with_features(self, features: np.ndarray) -> DenseSamples:
        return DenseSamples(np.take(self.X, features, axis=1), self.kind, self.self_overlap)


class SparseSamples(CpuSamples):
    def __init__(self, X: sp.csr_matrix, kind: str, own: np.ndarray | None = None) -> None:
        self.X = X
        self.kind = kind
        self.dtype = X.dtype
        self.self_overlap = self_overlap(kind, X.data, X.indptr) if own is None else own
        row = X.nnz / max(1, X.shape[0])
        width = MAX_PANEL
        while width > 16 and _panel_rows(X.shape[1], row * width) * width * X.dtype.itemsize > _PANEL_BYTES:
            width //= 2
        self.panel_width = width

    @property
    def nanoseconds(self) -> float:
        return 1.2 + 0.2 * self.X.nnz / max(1, self.X.shape[0])

    def take(self, rows: Any) -> SparseSamples:
        taken = SparseSamples(self.X[rows], self.kind, self.self_overlap[rows])
        taken.panel_width = self.panel_width
        return taken

    def project(self, rows: np.ndarray, direction: np.ndarray) -> np.ndarray:
        X = self.X
        return sparse_row_products(X.data, X.indices, X.indptr, rows, direction.astype(self.dtype, copy=False))

    def panel(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        X = self.X
        entries = int(X.indptr[stop] - X.indptr[start])
        keys, places = feature_table(X.shape[1], entries, X.indices.dtype)
        columns = np.zeros((_panel_rows(X.shape[1], entries), stop - start), dtype=self.dtype)
        features = sparse_panel(X.data, X.indices, X.indptr[start : stop + 1], keys, places, columns)
        return keys, places, columns[:features]

    def overlap(self, start: int, stop: int, panel: tuple[np.ndarray, np.ndarray, np.ndarray], out: np.ndarray) -> None:
        X = self.X
        sparse_overlap(KINDS[self.kind], X.data, X.indices, X.indptr[start : stop + 1], *panel, out)

    def features(self, rows: Any = slice(None)) -> Any:
        return self.X[rows]


class GivenSamples(CpuSamples):
    """Rows of a precomputed kernel matrix; as columns they are the matrix's columns of the given numbers."""

    def __init__(self, matrix: np.ndarray, rows: np.ndarray, columns: np.ndarray | None, own: np.ndarray) -> None:
        self.matrix, self.rows, self.columns = matrix, rows, columns
        self.dtype = matrix.dtype
        self.self_overlap = own

    @classmethod
    def square(cls, matrix: np.ndarray) -> GivenSamples:
        everyone = np.arange(len(matrix))
        return cls(matrix, everyone, everyone, np.diagonal(matrix).copy())

    @classmethod
    def rows_only(cls, matrix: np.ndarray) -> GivenSamples:
        return cls(matrix, np.arange(len(matrix)), None, np.zeros(len(matrix), matrix.dtype))

    @classmethod
    def columns_only(cls, columns: np.ndarray, dtype: Any) -> GivenSamples:
        return cls(np.empty((0, 0), dtype), columns, columns, np.zeros(len(columns), dtype))

    @property
    def nanoseconds(self) -> float:
        return 0.0

    def take(self, rows: Any) -> GivenSamples:
        columns = None if self.columns is None else self.columns[rows]
        return GivenSamples(self.matrix, self.rows[rows], columns, self.self_overlap[rows])

    def panel(self, start: int, stop: int) -> np.ndarray:
        assert self.columns is not None
        return self.columns[start:stop]

    def overlap(self, start: int, stop: int, panel: np.ndarray, out: np.ndarray) -> None:
        out[...] = self.matrix[self.rows[start:stop, None], panel]

    def features(self, rows: Any = slice(None)) -> np.ndarray:
        return self.matrix[self.rows[rows]]


class CalledSamples(CpuSamples):
    """Samples whose kernel values come from the user's function."""

    def __init__(self, X: Any, kernel: Called, own: np.ndarray | None = None) -> None:
        self.X, self.kernel = X, kernel
        self.dtype = X.dtype
        self.self_overlap = own if own is not None else self._diagonal()

    def _diagonal(self) -> np.ndarray:
        X = self.X
        parts = [X[s : s + 64] for s in range(0, X.shape[0], 64)]
        values = [np.diagonal(self.kernel.values(part, part)) for part in parts]
        return np.concatenate(values).astype(self.dtype)

    @property
    def nanoseconds(self) -> float:
        return np.inf

    def take(self, rows: Any) -> CalledSamples:
        return CalledSamples(self.X[rows], self.kernel, self.self_overlap[rows])

    def panel(self, start: int, stop: int) -> Any:
        return self.X[start:stop]

    def overlap(self, start: int, stop: int, panel: Any, out: np.ndarray) -> None:
        out[...] = self.kernel.values(self.X[start:stop], panel)

    def features(self, rows: Any = slice(None)) -> Any:
        return self.X[rows]


def make_samples(X: Any, kernel: Kernel, centre: np.ndarray | None = None, own: np.ndarray | None = None) -> CpuSamples:
    """Samples of the right kind for the data and the kernel.

    `centre` is subtracted where the kernel allows it: float32 tiles then keep the digits that large common
    offsets would take. `own` are the self-overlaps, where they are known.
    """
    if isinstance(kernel, Called):
        return CalledSamples(X, kernel, own)
    if kernel.overlap == "given":
        return GivenSamples.square(X) if X.shape[0] == X.shape[1] else GivenSamples.rows_only(X)
    if sp.issparse(X):
        X = sp.csr_matrix(X)
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        return SparseSamples(X, kernel.overlap, own)
    X = np.ascontiguousarray(X)
    if kernel.shift_invariant and centre is not None:
        given, X, own = X, np.empty_like(X), np.empty(len(X), X.dtype)
        subtract(KINDS[kernel.overlap], given, centre.astype(X.dtype), X, own)
    return DenseSamples(X, kernel.overlap, own)


def used_features(samples: CpuSamples) -> np.ndarray | None:
    """The features that are not zero in all of the samples: the others add nothing to their overlap with any sample.
    Pixels at the border of pictures are such features, once the data is centred. None where it is nearly all of them.
    """
    if not isinstance(samples, DenseSamples):
        return None
    used = samples.used
    return used if len(used) < (1.0 - _FEW_FEATURES) * samples.X.shape[1] else None


def narrow(samples: CpuSamples, features: np.ndarray | None) -> CpuSamples:
    """The samples with the given features only; None means all."""
    return samples if features is None else samples.with_features(features)


def _width(features: int, itemsize: int) -> int:
    return int(np.clip(_PANEL_BYTES // max(1, features * itemsize), 16, MAX_PANEL))


def _panel_rows(n_features: int, entries: float) -> int:
    return max(1, min(n_features, int(np.ceil(entries))))
