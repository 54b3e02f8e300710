"""Sparse matrices whose arrays make sense: compiled code, SciPy's as ours, reads and writes wherever these say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp


def checked_csr(data: Any, indices: Any, indptr: Any, shape: tuple[int, int], kind: Any = sp.csr_matrix) -> Any:
    """The CSR matrix (or array) of these arrays; a ValueError says what is wrong with them."""
    if not takes(data.dtype):
        raise ValueError(f"its values are {data.dtype.str}, which SciPy's matrices cannot hold")
    wrong = _compressed(data, indices, indptr, *shape, "row", "column")
    if wrong:
        raise ValueError(wrong)
    return kind((data, indices, indptr), shape=shape)


def takes(dtype: np.dtype) -> bool:
    """Whether SciPy's matrices take numbers of this type."""
    return dtype.kind in "biuf" and dtype.isnative and dtype != np.float16


def given(values: Any, name: str) -> Any:
    """What a user passed, as it is; refused where it hides something, or where its arrays contradict each other, as
    those of a sparse matrix do after some assignment to one of them.

    A sparse matrix comes back in another format where only that can be checked, and without room for more entries.
    """
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise ValueError(
            f"{name} is a masked array, and {int(np.ma.count_masked(values))} of its {values.size} values are masked. "
            "Fill them in (for instance with X.filled(0.0)), or leave the rows out: missing values are not accepted."
        )
    if not sp.issparse(values) or values.ndim != 2:
        return values
    format = values.format
    if format in ("lil", "dok", "dia"):
        values = _by_coordinates(values, name)
    wrong = _CHECKS[values.format](values)
    if wrong:
        raise _malformed(format, name, wrong)
    if values.format in ("csr", "csc") and values.indptr[-1] < len(values.data):
        used = slice(0, int(values.indptr[-1]))
        return type(values)((values.data[used], values.indices[used], values.indptr), shape=values.shape)
    return values


def _malformed(format: str, name: str, wrong: str) -> ValueError:
    return ValueError(
        f"{name} is no valid sparse matrix ({format}): {wrong}. Build it anew from its rows, columns and values."
    )


def _by_coordinates(values: Any, name: str) -> Any:
    """A matrix of one of the formats that SciPy converts without a look at what is in it, so that it can be checked."""
    if values.format == "lil" and list(map(len, values.rows)) != list(map(len, values.data)):
        raise _malformed("lil", name, "there are not as many values as column numbers")
    try:
        return values.tocsr() if values.format == "lil" else values.tocoo()
    except (ValueError, TypeError, IndexError, OverflowError) as error:
        raise _malformed(values.format, name, str(error)) from error


def _csr(X: Any) -> str | None:
    return _compressed(X.data, X.indices, X.indptr, X.shape[0], X.shape[1], "row", "column")


def _csc(X: Any) -> str | None:
    return _compressed(X.data, X.indices, X.indptr, X.shape[1], X.shape[0], "column", "row")


def _coo(X: Any) -> str | None:
    if not len(X.data) == len(X.row) == len(X.col):
        return f"there are {len(X.data)} values, {len(X.row)} row numbers and {len(X.col)} column numbers"
    return _range(X.row, X.shape[0], "row") or _range(X.col, X.shape[1], "column")


def _bsr(X: Any) -> str | None:
    high, wide = X.data.shape[1:] if X.data.ndim == 3 else (0, 0)
    if not (high and wide) or X.shape[0] % high or X.shape[1] % wide:
        return f"its blocks of shape {X.data.shape[1:]} do not fill its shape {X.shape}"
    one_each = np.empty(len(X.data))
    n_rows, n_columns = X.shape[0] // high, X.shape[1] // wide
    return _compressed(one_each, X.indices, X.indptr, n_rows, n_columns, "block row", "block column")


_CHECKS: dict[str, Callable[[Any], str | None]] = {"csr": _csr, "csc": _csc, "coo": _coo, "bsr": _bsr}


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


def _range(numbers: np.ndarray, below: int, of: str) -> str | None:
    if not len(numbers):
        return None
    low, high = int(numbers.min()), int(numbers.max())
    return (
        f"its {of} indices go from {low} to {high}, and there are {below} {of}s" if low < 0 or high >= below else None
    )
