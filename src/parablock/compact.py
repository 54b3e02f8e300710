"""Rows, dense or CSR: what takes memory of their entries only, however many columns there are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from parablock.compiling import njit

_DENSE_IS_WORTH = 1 / 8  # of the entries not zero: dense rows take up to 4 times the memory, and are much faster


def without_unused(X: Any) -> tuple[sp.csr_matrix, np.ndarray]:
    """The columns that have entries, and their numbers in order."""
    used, places = np.unique(X.indices, return_inverse=True)
    return sp.csr_matrix((X.data, places, X.indptr), shape=(X.shape[0], len(used))), used


def with_columns(X: Any, columns: np.ndarray) -> sp.csr_matrix:
    """The given columns (in order) alone, numbered anew; SciPy's own way takes memory for every column of X."""
    places = np.searchsorted(columns, X.indices)
    places[places == len(columns)] = 0
    kept = columns[places] == X.indices if len(columns) else np.zeros(len(places), dtype=bool)
    ends = np.concatenate(([0], np.cumsum(kept)))[X.indptr]
    return sp.csr_matrix((X.data[kept], places[kept], ends), shape=(X.shape[0], len(columns)))


def widened(rows: Any, used: np.ndarray, n_columns: int) -> sp.csr_matrix:
    """Rows whose columns have the given numbers (in order) among so many that are zero otherwise."""
    narrow = sp.csr_matrix(rows)
    return sp.csr_matrix((narrow.data, used[narrow.indices], narrow.indptr), shape=(rows.shape[0], n_columns))


def sum_of_rows(X: Any) -> sp.csr_matrix:
    """One row, in float64."""
    if X.nnz >= X.shape[1]:
        return sp.csr_matrix(np.bincount(X.indices, weights=X.data, minlength=X.shape[1])[None])
    narrow, used = without_unused(X)
    return widened(np.bincount(narrow.indices, weights=narrow.data, minlength=len(used))[None], used, X.shape[1])


def rows_of(X: np.ndarray, rows: Any) -> np.ndarray:
    """The same as X[rows] of a dense array; by number in half the time."""
    numbers = isinstance(rows, np.ndarray) and rows.dtype == np.intp
    return np.take(X, rows, axis=0) if numbers else X[rows]


@njit(cache=True, nogil=True)
def column_sums(X: np.ndarray) -> np.ndarray:
    """Of dense rows, in float64; NumPy takes many times as long where it has to convert them."""
    total = np.zeros(X.shape[1])
    for i in range(X.shape[0]):
        for f in range(X.shape[1]):
            total[f] += X[i, f]
    return total


def dense_if_full(X: Any) -> Any:
    """A CSR matrix as a dense array, where that is worth its memory; a dense one as it is."""
    return X.toarray() if sp.issparse(X) and X.nnz > _DENSE_IS_WORTH * X.shape[0] * X.shape[1] else X


def stacked(rows: Sequence[Any]) -> Any:
    """Rows, dense ones and CSR matrices, as one array or, if few of its entries are not zero, one CSR matrix."""
    if any(sp.issparse(row) for row in rows):
        return dense_if_full(sp.vstack([sp.csr_matrix(row) for row in rows], format="csr"))
    return np.concatenate([np.atleast_2d(row) for row in rows])


def squared_norms(X: Any) -> np.ndarray:
    """Of every row, dense or CSR."""
    if not sp.issparse(X):
        return np.einsum("ij,ij->i", X, X)
    X = sp.csr_matrix(X)
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))  # SciPy's sums take memory for every column
    squares = np.square(X.data, dtype=np.float64)
    return np.bincount(rows, weights=squares, minlength=X.shape[0]).astype(X.dtype)
