"""Vectors with one value a row, wherever they are: what NumPy and other array libraries spell differently.

The solver's vectors are NumPy arrays, or tensors on a GPU; its code is the same for both. Operators, comparisons,
indexing, sums and maxima are too, so only the rest is here: for NumPy, and by `register` in a device's own folder for
what that device computes with. `like` is a vector in the place where the result shall be.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import Any

import numpy as np


@singledispatch
def to_host(values: Any) -> Any:
    """As a NumPy array; anything that is no vector as it is."""
    return values


@singledispatch
def place(like: Any, values: Any) -> Any:
    """The given values, from wherever they are."""
    return to_host(values)


@singledispatch
def zeros_like(values: Any) -> Any:
    return np.zeros_like(values)


@singledispatch
def nobody(like: Any, n: int) -> Any:
    """A mask of n rows that holds none of them."""
    return np.zeros(n, dtype=bool)


@singledispatch
def numbers(like: Any, start: int, stop: int) -> Any:
    """From start up to, but without, stop."""
    return np.arange(start, stop)


@singledispatch
def flatnonzero(values: Any) -> Any:
    """Where they are not zero."""
    return np.flatnonzero(values)


@singledispatch
def columns(values: Any, rows: Any) -> Any:
    """Those of the given rows, in a piece of memory of their own."""
    return np.take(values, rows, axis=1)


@singledispatch
def maximum(values: Any, others: Any) -> Any:
    """The larger of each two."""
    return np.maximum(values, others)


@singledispatch
def unique(values: Any) -> Any:
    """In ascending order, each once."""
    return np.unique(values)


@singledispatch
def largest(values: Any, count: int) -> Any:
    """Where the `count` largest values are, in any order."""
    count = min(count, len(values))
    return np.argpartition(values, -count)[-count:] if count > 0 else np.empty(0, dtype=np.intp)


@singledispatch
def exponential(like: Any, rng: np.random.Generator) -> Any:
    """As many draws from the exponential distribution."""
    return rng.exponential(size=len(like))


def concatenate(parts: Sequence[Any], axis: int = 0) -> Any:
    return _concatenate(parts[0], parts, axis)


@singledispatch
def _concatenate(first: Any, parts: Sequence[Any], axis: int) -> Any:
    return np.concatenate(parts, axis=axis)


def stack(parts: Sequence[Any]) -> Any:
    """As the rows of a matrix; a single one as it is, without a copy."""
    return parts[0][None] if len(parts) == 1 else _stack(parts[0], parts)


@singledispatch
def _stack(first: Any, parts: Sequence[Any]) -> Any:
    return np.stack(parts)


@singledispatch
def add_columns(values: Any, columns: Sequence[Any], parts: Sequence[Any]) -> None:
    """Add each part to those columns of the values, in place; no part has a column twice."""
    for those, part in zip(columns, parts, strict=True):
        values[:, those] += part
