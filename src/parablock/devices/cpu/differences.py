"""Samples whose distances are sums over differences of features, in float64: what no offset and no scale of the
features can spoil, as it can ``s(x, x) + s(z, z) - 2 s(x, z)``. Several times slower than that; for certificates.

A tile gets minus half of the distance instead of the overlap, and self-overlaps are zero: then the kernel finds the
distance itself where it looks for the sum of the three.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from parablock.compact import rows_of
from parablock.compiling import njit
from parablock.devices.cpu.overlaps import HARMONIC, KINDS, MINIMUM, PRODUCT
from parablock.devices.cpu.samples import MAX_PANEL, CpuSamples

_PANEL_FEATURES = 1 << 17  # of all columns of a panel together: about one core's L2 cache


class DenseDifferences(CpuSamples):
    def __init__(self, X: np.ndarray, kind: str) -> None:
        self.X, self.kind = X, kind
        self.dtype = X.dtype
        self.self_overlap = np.zeros(len(X), dtype=X.dtype)
        self.panel_width = int(np.clip(_PANEL_FEATURES // max(1, X.shape[1]), 16, MAX_PANEL))

    @property
    def nanoseconds(self) -> float:
        return 2.0 + 0.3 * self.X.shape[1]

    def take(self, rows: Any) -> DenseDifferences:
        return DenseDifferences(rows_of(self.X, rows), self.kind)

    def panel(self, start: int, stop: int) -> np.ndarray:
        return np.ascontiguousarray(self.X[start:stop].T)

    def overlap(self, start: int, stop: int, panel: np.ndarray, out: np.ndarray) -> None:
        _dense(KINDS[self.kind], self.X[start:stop], panel, out)

    def features(self, rows: Any = slice(None)) -> Any:
        return rows_of(self.X, rows)


class SparseDifferences(CpuSamples):
    """Of CSR rows whose features are in order, each once."""

    def __init__(self, X: sp.csr_matrix, kind: str) -> None:
        self.X, self.kind = X, kind
        self.dtype = X.dtype
        self.self_overlap = np.zeros(X.shape[0], dtype=X.dtype)

    @property
    def nanoseconds(self) -> float:
        return 2.0 + 2.0 * self.X.nnz / max(1, self.X.shape[0])

    def take(self, rows: Any) -> SparseDifferences:
        return SparseDifferences(self.X[rows], self.kind)

    def panel(self, start: int, stop: int) -> sp.csr_matrix:
        return self.X[start:stop]

    def overlap(self, start: int, stop: int, panel: sp.csr_matrix, out: np.ndarray) -> None:
        X, Z = self.X, panel
        kind = KINDS[self.kind]
        _sparse(kind, X.data, X.indices, X.indptr[start : stop + 1], Z.data, Z.indices, Z.indptr, out)

    def features(self, rows: Any = slice(None)) -> Any:
        return self.X[rows]


@njit(cache=True, nogil=True, error_model="numpy")
def _dense(kind: int, rows: Any, panel: Any, out: Any) -> None:
    for i in range(rows.shape[0]):
        distance = out[i]
        distance[:] = 0
        for f in range(rows.shape[1]):
            value, column = rows[i, f], panel[f]
            if kind == PRODUCT:
                for j in range(len(distance)):
                    distance[j] += (value - column[j]) * (value - column[j])
            elif kind == MINIMUM:
                for j in range(len(distance)):
                    distance[j] += abs(value - column[j])
            elif kind == HARMONIC:
                for j in range(len(distance)):
                    total = value + column[j]
                    distance[j] += (value - column[j]) * ((value - column[j]) / total) if total > 0 else 0.0
        for j in range(len(distance)):
            distance[j] *= -0.5


@njit(cache=True, nogil=True, error_model="numpy")
def _sparse(
    kind: int, data: Any, indices: Any, indptr: Any, column_data: Any, column_indices: Any, ends: Any, out: Any
) -> None:
    for i in range(len(indptr) - 1):
        for j in range(len(ends) - 1):
            here, last, there, end = indptr[i], indptr[i + 1], ends[j], ends[j + 1]
            total = 0.0
            while here < last or there < end:
                left = here < last and (there == end or indices[here] <= column_indices[there])
                right = there < end and (here == last or column_indices[there] <= indices[here])
                value, other = data[here] if left else 0.0, column_data[there] if right else 0.0
                here, there = here + left, there + right
                difference = value - other
                if kind == PRODUCT:
                    total += difference * difference
                elif kind == MINIMUM:
                    total += abs(difference)
                elif value + other > 0:
                    total += difference * (difference / (value + other))
            out[i, j] = -0.5 * total
