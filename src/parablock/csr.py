"""Sparse matrices whose arrays make sense: compiled code, SciPy's as ours, reads and writes wherever they say."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp


def checked_csr(data: Any, indices: Any, indptr: Any, shape: tuple[int, int]) -> sp.csr_matrix:
    """The CSR matrix of these arrays; a ValueError says what is wrong with them."""
    if not takes(data.dtype):
        raise ValueError(f"its values are {data.dtype.str}, which SciPy's matrices cannot hold")
    wrong = _compressed(data, indices, indptr, *shape, "row", "column")
    if wrong:
        raise ValueError(wrong)
    return sp.csr_matrix((data, indices, indptr), shape=shape)


def takes(dtype: np.dtype) -> bool:
    """Whether SciPy's matrices take numbers of this type."""
    return dtype.kind in "biuf" and dtype.isnative and dtype != np.float16


def refuse_malformed(X: Any, name: str = "X") -> Any:
    """A sparse matrix as it is, or in CSR format where only that can be checked; anything else than a sparse matrix as
    it is. One whose arrays contradict each other, as they do after some assignment to one of them, is refused."""
    if not sp.issparse(X) or X.ndim != 2:
        return X
    if X.format in ("lil", "dok", "dia"):  # made of objects, or converted by NumPy
        X = X.tocsr()
    rows, columns = X.shape
    if X.format == "csr":
        wrong = _compressed(X.data, X.indices, X.indptr, rows, columns, "row", "column")
    elif X.format == "csc":
        wrong = _compressed(X.data, X.indices, X.indptr, columns, rows, "column", "row")
    elif X.format == "coo":
        wrong = _coordinates(X.data, X.row, X.col, rows, columns)
    else:
        wrong = _blocks(X)
    if wrong:
        raise ValueError(
            f"{name} is no valid sparse matrix ({X.format}): {wrong}. Build it anew from its rows, columns and values; "
            "X.check_format() of SciPy checks it."
        )
    return X


def _compressed(data: Any, indices: Any, indptr: Any, n_major: int, n_minor: int, major: str, minor: str) -> str | None:
    """What is wrong with the arrays of a CSR or CSC matrix, or None."""
    for name, array in (("data", data), ("indices", indices), ("indptr", indptr)):
        if not isinstance(array, np.ndarray) or array.ndim != 1:
            return f"{name} is no array of one dimension"
        if name != "data" and (array.dtype.kind not in "iu" or not array.dtype.isnative):
            return f"{name} holds {array.dtype} instead of whole numbers"
    if n_major < 0 or n_minor < 0:
        return f"its shape ({n_major}, {n_minor}) is negative"
    if len(indptr) != n_major + 1:
        return f"indptr has {len(indptr)} numbers, and {n_major} {major}s need {n_major + 1}"
    if len(indices) != len(data):
        return f"there are {len(data)} values and {len(indices)} indices"
    if indptr[0] != 0 or indptr[-1] > len(data) or np.any(indptr[1:] < indptr[:-1]):
        return f"indptr must rise from 0 to at most {len(data)}, the number of values, and does not"
    return _range(indices[: indptr[-1]], n_minor, minor)


def _coordinates(data: Any, row: Any, column: Any, n_rows: int, n_columns: int) -> str | None:
    if not len(data) == len(row) == len(column):
        return f"there are {len(data)} values, {len(row)} row numbers and {len(column)} column numbers"
    return _range(row, n_rows, "row") or _range(column, n_columns, "column")


def _blocks(X: Any) -> str | None:
    """Of a BSR matrix, the only other format that SciPy has."""
    high, wide = X.data.shape[1:] if X.data.ndim == 3 else (0, 0)
    if not (high and wide) or X.shape[0] % high or X.shape[1] % wide:
        return f"its blocks of shape {X.data.shape[1:]} do not fill its shape {X.shape}"
    one_each = np.empty(len(X.data))
    n_rows, n_columns = X.shape[0] // high, X.shape[1] // wide
    return _compressed(one_each, X.indices, X.indptr, n_rows, n_columns, "row of block", "block")


def _range(numbers: np.ndarray, below: int, of: str) -> str | None:
    if not len(numbers):
        return None
    low, high = int(numbers.min()), int(numbers.max())
    return (
        f"its {of} indices go from {low} to {high}, and there are {below} {of}s" if low < 0 or high >= below else None
    )
