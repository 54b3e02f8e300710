"""Overlaps of rows with a panel of columns (see `kernels.base`), compiled.

A *panel* is a few columns' features laid out feature by feature, so that one feature of a row meets all columns
of the panel at once in a vector instruction. For sparse rows it holds only the features that occur in those
columns: the data is never made dense as a whole. Where a feature is in the panel tells a table (-1 for nowhere) of all
features, or of very many a hash table of those that occur, which stays in the cache.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from parablock.compiling import njit

PRODUCT, MINIMUM, HARMONIC = 0, 1, 2
KINDS = {"product": PRODUCT, "minimum": MINIMUM, "harmonic": HARMONIC}
_FEATURES_OF_A_TABLE = 1 << 18  # of more, most would never be asked for, and all would have to be cleared
_SCATTER = 0x9E3779B1  # odd, so that no two of consecutive features get the same slot
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
def subtract(kind: int, X: Any, centre: Any, out: Any, own: Any) -> None:
    """out[i] = X[i] - centre, and own[i] its overlap with itself: one look at the data, without another copy of it."""
    for i in range(X.shape[0]):
        total = 0.0  # in double: its rounding is that of every distance from this row
        for f in range(X.shape[1]):
            value = X[i, f] - centre[f]
            out[i, f] = value
            wide = np.float64(value)
            total += wide * wide if kind == PRODUCT else abs(wide)
        own[i] = total


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
def sparse_row_products(data: Any, indices: Any, indptr: Any, rows: Any, direction: Any) -> Any:
    """The same of CSR rows."""
    out = np.empty(len(rows), dtype=data.dtype)
    for i in range(len(rows)):
        total = data.dtype.type(0)
        for entry in range(indptr[rows[i]], indptr[rows[i] + 1]):
            total += data[entry] * direction[indices[entry]]
        out[i] = total
    return out


def feature_table(n_features: int, entries: int, dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    """An empty table (keys, places) for the features of so many entries; without keys, features are their own."""
    if n_features <= _FEATURES_OF_A_TABLE:
        return np.empty(0, dtype=dtype), np.full(n_features, -1, dtype=np.int32)
    size = 1 << max(4, (2 * entries).bit_length())  # never more than half full
    return np.full(size, -1, dtype=dtype), np.full(size, -1, dtype=np.int32)


@njit(cache=True, nogil=True)
def _slot(feature: int, keys: Any) -> int:
    """Where the feature is in the table, or would be."""
    if len(keys) == 0:
        return feature
    mixed = feature ^ (feature >> 16)
    mixed ^= mixed >> 8
    last = len(keys) - 1
    slot = (mixed * _SCATTER) & last
    while keys[slot] >= 0 and keys[slot] != feature:
        slot = (slot + 1) & last
    return slot


@njit(cache=True, nogil=True)
def sparse_overlap(
    kind: int, data: Any, indices: Any, indptr: Any, keys: Any, places: Any, panel: Any, out: Any
) -> None:
    """out[i, j] = overlap of the i-th of the CSR rows that `indptr` spans with column j of panel."""
    for i in range(len(indptr) - 1):
        out[i] = 0
        for entry in range(indptr[i], indptr[i + 1]):
            place = places[_slot(indices[entry], keys)]
            if place >= 0 and data[entry] != 0:
                _accumulate(kind, data[entry], panel[place], out[i])


@njit(cache=True, nogil=True)
def sparse_panel(data: Any, indices: Any, indptr: Any, keys: Any, places: Any, panel: Any) -> int:
    """Lay CSR rows out as columns of `panel` (zeroed, with as many rows as features may occur); fill the table
    and return how many features occur."""
    features = 0
    for j in range(len(indptr) - 1):
        for entry in range(indptr[j], indptr[j + 1]):
            slot = _slot(indices[entry], keys)
            if places[slot] < 0:
                places[slot] = features
                if len(keys) > 0:
                    keys[slot] = indices[entry]
                features += 1
            panel[places[slot], j] = data[entry]
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
