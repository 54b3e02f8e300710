"""A fast hash of rows of data, by their values alone.

Every row is hashed with its number, and the hashes are added up: so it does not matter which machine hashes which rows,
and any stretch of a file can be hashed by itself. A row's hash is a sum over the features that are not zero, so that an
array and a CSR matrix of the same values have the same one, in float32 and in float64. It tells apart what was given by
mistake; it is no proof against intent.

The sum over a row is NH (Black et al., UMASH and XXH3 use it too): two 32-bit additions and a multiplication for each
value, which vectorises. Two lanes with other keys make 128 bits.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from parablock.compiling import njit
from parablock.mapped import is_sparse, stretch_of_csr, stretches

_LANES = 2
_MOST_KEYS = 1 << 16  # of sparse rows with more features than that, keys are computed for every entry


def hash_of_rows(X: Any, columns: Sequence[np.ndarray] = (), first: int = 0, dtype: Any = None) -> np.ndarray:
    """Of an array, CSR matrix, mapped file or tensor, which is read a stretch of rows at a time.

    Parameters
    ----------
    X : rows of shape (n, n_features)
    columns : sequence of arrays of shape (n,)
        What else belongs to every row.
    first : int, default=0
        The number of the first of the rows among all of them.
    dtype : dtype, optional
        Of the values that are hashed: theirs by default.

    Returns
    -------
    ndarray of uint64, shape (2,)
        To be added (modulo 2^64) to those of other rows.
    """
    n_features = X.shape[1]
    total = np.zeros(_LANES, dtype=np.uint64)
    own_keys = _keys(0, n_features if n_features <= _MOST_KEYS or not is_sparse(X) else 0)
    keys_of_columns = _keys(n_features, len(columns))
    for start, stop in stretches(X):
        part = stretch_of_csr(X, slice(start, stop)) if sp.issparse(X) else X[start:stop]
        hashes = np.zeros((_LANES, stop - start), dtype=np.uint64)
        part = part if dtype is None else part.astype(dtype, copy=False)
        if sp.issparse(part):
            _add_csr(part.data, part.indices, part.indptr, own_keys, hashes)
        else:
            _add_dense(np.ascontiguousarray(part), own_keys, hashes)
        if len(columns):
            beside = np.column_stack([column[start:stop] for column in columns])
            _add_dense(beside.astype(np.float64, copy=False), keys_of_columns, hashes)
        _add_up(hashes, first + start, total)
    return total


def digest_of(X: Any, columns: Sequence[np.ndarray]) -> str:
    """Of all the data and of columns beside it, with their types. It differs wherever two machines were not given the
    same by mistake."""
    digest = hashlib.sha256(str((X.shape, X.dtype)).encode())
    digest.update(hash_of_rows(X).tobytes())
    for column in columns:
        digest.update(str((column.shape, column.dtype)).encode())
        if column.dtype == object:
            digest.update(repr(column.tolist()).encode())
        else:
            digest.update(np.ascontiguousarray(column).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def _keys(first: int, count: int) -> np.ndarray:
    """One a lane for each of so many features."""
    keys = np.empty((_LANES, count), dtype=np.uint64)
    _fill(keys, first)
    return keys


@njit(cache=True)
def _fill(keys: np.ndarray, first: int) -> None:
    for lane in range(keys.shape[0]):
        for feature in range(keys.shape[1]):
            keys[lane, feature] = _key(np.uint64(first + feature), np.uint64(lane))


@njit(cache=True, inline="always")
def _mixed(z: Any) -> Any:
    """The last step of SplitMix64: each bit of the result depends on all bits."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@njit(cache=True, inline="always")
def _key(number: Any, lane: Any) -> Any:
    return _mixed((np.uint64(2) * number + lane + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15))


@njit(cache=True, inline="always")
def _term(value: Any, key: Any) -> Any:
    """What a value adds to the hash of its row; zero adds nothing, whatever its sign."""
    bits, half, low = value.view(np.uint64), np.uint64(32), np.uint64(0xFFFFFFFF)
    return ((bits + key) & low) * (((bits >> half) + (key >> half)) & low) * np.uint64(value != 0.0)


@njit(cache=True, nogil=True)
def _add_dense(X: np.ndarray, keys: np.ndarray, hashes: np.ndarray) -> None:
    for i in range(X.shape[0]):
        first, second = np.uint64(0), np.uint64(0)
        for f in range(X.shape[1]):
            value = np.float64(X[i, f])
            first += _term(value, keys[0, f])
            second += _term(value, keys[1, f])
        hashes[0, i] += first
        hashes[1, i] += second


@njit(cache=True, nogil=True)
def _add_csr(data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, keys: np.ndarray, hashes: np.ndarray) -> None:
    """Where there are keys, of all features."""
    known = keys.shape[1] > 0
    for i in range(len(indptr) - 1):
        first, second = np.uint64(0), np.uint64(0)
        for entry in range(indptr[i], indptr[i + 1]):
            value, feature = np.float64(data[entry]), indices[entry]
            if known:
                first += _term(value, keys[0, feature])
                second += _term(value, keys[1, feature])
            else:
                first += _term(value, _key(np.uint64(feature), np.uint64(0)))
                second += _term(value, _key(np.uint64(feature), np.uint64(1)))
        hashes[0, i] += first
        hashes[1, i] += second


@njit(cache=True, nogil=True)
def _add_up(hashes: np.ndarray, first: int, total: np.ndarray) -> None:
    """The hashes of rows, each mixed with its row's number."""
    for lane in range(hashes.shape[0]):
        for i in range(hashes.shape[1]):
            total[lane] += _mixed(hashes[lane, i] ^ _key(np.uint64(first + i), np.uint64(lane)))
