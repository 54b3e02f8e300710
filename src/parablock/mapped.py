"""Data on disk: mapped arrays, and some of their rows, which are read when they are asked for.

A mapped file (``np.load(path, mmap_mode="r")``) looks like an array. The system reads its pages when they are touched
and drops them when memory is short, so data larger than memory needs no more than this: touch one stretch of rows at a
time, in the order of the file where that is possible, and never make a copy of all rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from mmap import mmap
from typing import Any

import numpy as np
import scipy.sparse as sp

from parablock.compact import column_sums
from parablock.tensors import TensorRows

_STRETCH = 8 << 20  # bytes: large enough for a disk, small beside any memory


class MappedRows:
    """Rows of a mapped array or CSR matrix, numbered anew. An index brings rows into memory; `take` leaves them.

    Parameters
    ----------
    X : array or CSR matrix
    numbers : ndarray of int, optional
        Which rows of X, in which order; all of them by default.
    dtype : dtype, optional
        What values become when they are read; by default they stay what they are.
    """

    def __init__(self, X: Any, numbers: np.ndarray | None = None, dtype: Any = None) -> None:
        self.X: Any = X if sp.issparse(X) else np.asarray(X)
        self.numbers = numbers
        self.shape = (X.shape[0] if numbers is None else len(numbers), X.shape[1])
        self.dtype = np.dtype(X.dtype if dtype is None else dtype)

    @property
    def nbytes(self) -> int:
        if not sp.issparse(self.X):
            return self.shape[0] * self.shape[1] * self.dtype.itemsize
        if self.numbers is None:
            return self.X.data.size * self.dtype.itemsize + self.X.indices.nbytes
        entries = int((self.X.indptr[self.numbers + 1] - self.X.indptr[self.numbers]).sum(dtype=np.int64))
        return entries * (self.dtype.itemsize + self.X.indices.itemsize)

    def places(self, rows: Any) -> np.ndarray:
        """Where in the file the given rows are."""
        return np.arange(self.shape[0])[rows] if self.numbers is None else self.numbers[rows]

    def take(self, rows: Any) -> MappedRows:
        if self.numbers is None and isinstance(rows, slice):
            some = stretch_of_csr(self.X, rows) if sp.issparse(self.X) else self.X[rows]
            return MappedRows(some, dtype=self.dtype)
        return MappedRows(self.X, self.places(rows), self.dtype)

    def __getitem__(self, rows: Any) -> Any:
        if self.numbers is None and isinstance(rows, slice):
            return self.X[rows].astype(self.dtype)
        places = self.places(rows)
        order = reading_order(places)
        if order is None:
            return self.X[places].astype(self.dtype, copy=False)
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        return self.X[places[order]][back].astype(self.dtype, copy=False)


def is_mapped(X: Any) -> bool:
    """Whether X is an array, or a CSR matrix of arrays, whose values are in a file."""
    if isinstance(X, MappedRows):
        return True
    if sp.issparse(X):
        return X.format == "csr" and (is_mapped(X.data) or is_mapped(X.indices))
    while isinstance(X, np.ndarray):  # np.asarray forgets np.memmap, but not whose memory it is
        X = X.base
    return isinstance(X, mmap)


def is_sparse(X: Any) -> bool:
    return sp.issparse(X.X if isinstance(X, MappedRows) else X)


def data_bytes(X: Any) -> int:
    """What the values take, and for a CSR matrix their columns."""
    return X.data.nbytes + X.indices.nbytes if sp.issparse(X) else X.nbytes


def stretches(X: Any, most: int = _STRETCH) -> Iterator[tuple[int, int]]:
    """All rows in stretches of about so many bytes: (start, stop)."""
    n = X.shape[0]
    size = max(1, most * n // max(1, data_bytes(X)))
    for start in range(0, n, size):
        yield start, min(start + size, n)


def in_precision(X: Any, dtype: Any) -> Any:
    """X in another type; mapped data gets it when it is read."""
    if X.dtype == dtype:
        return X
    if isinstance(X, MappedRows):
        return MappedRows(X.X, X.numbers, dtype)
    return MappedRows(X, dtype=dtype) if is_mapped(X) else X.astype(dtype, copy=False)


def some_rows(X: Any, rows: np.ndarray) -> Any:
    """The given rows; of mapped data none is read yet, and those of a tensor stay on their device."""
    if isinstance(X, TensorRows):
        return X.take(rows)
    return MappedRows(X, rows) if is_mapped(X) else X[rows]


def column_means(X: Any) -> np.ndarray:
    """The mean of every feature of dense data."""
    return X.means() if isinstance(X, TensorRows) else column_totals(X, 0, X.shape[0]) / X.shape[0]


def column_totals(X: Any, first: int, last: int) -> np.ndarray:
    """The sum of every feature of dense data over the rows from first to before last."""
    total = np.zeros(X.shape[1])
    for start, stop in stretches(X):
        start, stop = max(start, first), min(stop, last)
        if start < stop:
            total += column_sums(np.ascontiguousarray(X[start:stop]))
    return total


def reading_order(places: np.ndarray) -> np.ndarray | None:
    """The order in which a file is read from its beginning to its end; None where that is the given one."""
    return None if np.all(places[1:] >= places[:-1]) else np.argsort(places, kind="stable")


def csr_over(data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, n_columns: int) -> sp.csr_matrix:
    """A CSR matrix over these very arrays; SciPy's constructor copies 64-bit indices that would fit into 32 bits."""
    matrix = sp.csr_matrix((len(indptr) - 1, n_columns), dtype=data.dtype)
    matrix.data, matrix.indices, matrix.indptr = data, indices, indptr
    return matrix


def stretch_of_csr(X: sp.csr_matrix, rows: slice) -> sp.csr_matrix:
    """Consecutive rows, over the memory of the matrix."""
    start, stop, _ = rows.indices(X.shape[0])
    indptr = X.indptr[start : max(start, stop) + 1]
    entries = slice(int(indptr[0]), int(indptr[-1]))
    return csr_over(X.data[entries], X.indices[entries], indptr - indptr[0], X.shape[1])
