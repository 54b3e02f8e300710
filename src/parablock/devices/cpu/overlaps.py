"""Overlaps of rows with a panel of columns (see `kernels.base`), compiled.

A *panel* is a few columns' features laid out feature by feature, so that one feature of a row meets all columns
of the panel at once in a vector instruction. For sparse rows it holds only the features that occur in those
columns, found through `position` (-1 where a feature does not occur): the data is never made dense as a whole.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

PRODUCT, MINIMUM, HARMONIC = 0, 1, 2
KINDS = {"product": PRODUCT, "minimum": MINIMUM, "harmonic": HARMONIC}
_VECTORISE = {"nnan", "nsz", "reassoc", "contract", "arcp"}


@njit(cache=True, nogil=True)
def dense_overlap(kind: int, rows: Any, panel: Any, out: Any) -> None:
    """out[i, j] = overlap of rows[i] with column j of panel (features, columns)."""
    for i in range(rows.shape[0]):
        out[i] = 0
        for f in range(rows.shape[1]):
            if rows[i, f] != 0:
                _accumulate(kind, rows[i, f], panel[f], out[i])


@njit(cache=True, nogil=True, fastmath=_VECTORISE)
def row_products(X: Any, rows: Any, direction: Any) -> Any:
    """The inner product of some rows with a direction, without a copy of the rows."""
    out = np.empty(len(rows), dtype=X.dtype)
    for i in range(len(rows)):
        row, total = X[rows[i]], X.dtype.type(0)
        for f in range(len(direction)):
            total += row[f] * direction[f]
        out[i] = total
    return out


@njit(cache=True, nogil=True)
def sparse_overlap(kind: int, data: Any, indices: Any, indptr: Any, position: Any, panel: Any, out: Any) -> None:
    """The same for the CSR rows that `indptr` spans."""
    for i in range(len(indptr) - 1):
        out[i] = 0
        for entry in range(indptr[i], indptr[i + 1]):
            place = position[indices[entry]]
            if place >= 0 and data[entry] != 0:
                _accumulate(kind, data[entry], panel[place], out[i])


@njit(cache=True, nogil=True)
def sparse_panel(data: Any, indices: Any, indptr: Any, position: Any, panel: Any) -> int:
    """Lay CSR rows out as columns of `panel` (zeroed, with as many rows as features may occur); fill `position`
    and return how many features occur."""
    features = 0
    for j in range(len(indptr) - 1):
        for entry in range(indptr[j], indptr[j + 1]):
            f = indices[entry]
            if position[f] < 0:
                position[f] = features
                features += 1
            panel[position[f], j] = data[entry]
    return features


@njit(cache=True, nogil=True, fastmath=_VECTORISE, error_model="numpy")
def _accumulate(kind: int, value: Any, features: Any, out: Any) -> None:
    zero = value - value
    if kind == PRODUCT:
        for j in range(len(out)):
            out[j] += value * features[j]
    elif kind == MINIMUM:
        if value > 0:
            for j in range(len(out)):
                out[j] += max(min(value, features[j]), zero)
        else:
            for j in range(len(out)):
                out[j] += max(min(-value, -features[j]), zero)
    else:
        for j in range(len(out)):
            out[j] += (value + value) * features[j] / (value + features[j])


def self_overlap(kind: str, values: np.ndarray, segments: np.ndarray | None = None) -> np.ndarray:
    """s(x, x) of every row, of a dense array or of CSR values with their `indptr`."""
    terms = values * values if kind == "product" else np.abs(values)
    if segments is None:
        return terms.sum(axis=1)
    # Row by row: differences of a running total would take the digits of all rows that follow a large one.
    sums = np.add.reduceat(np.append(terms, 0), segments[:-1], dtype=np.float64)
    return np.where(np.diff(segments) > 0, sums, 0.0).astype(values.dtype)
