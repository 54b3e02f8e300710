"""Rows that are not numbers, such as texts or graphs, for kernels that are Python functions.

Training knows a row by its place in a list, which is its only feature; the function is given the rows themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from parablock.engines import LocalEngine, make_engine
from parablock.kernels import Called, Kernel, make_kernel


class ByPlace:
    """A kernel function for places in a list of rows.

    Parameters
    ----------
    function : callable
        Of the rows themselves.
    rows : ndarray of object
    """

    def __init__(self, function: Callable[[Any, Any], Any], rows: np.ndarray) -> None:
        self.function, self.rows = function, rows
        self.__name__ = getattr(function, "__name__", type(function).__name__)

    def __call__(self, X: np.ndarray, Z: np.ndarray) -> Any:
        return self.function(self.rows[numbers_of(X)], self.rows[numbers_of(Z)])


def by_place(kernel: Kernel, rows: np.ndarray) -> Kernel:
    """The kernel for places in a list of rows, from that for the rows themselves."""
    assert isinstance(kernel, Called)
    return Called(ByPlace(kernel.function, rows))


def places(start: int, count: int) -> np.ndarray:
    """As rows of one feature."""
    return np.arange(start, start + count, dtype=np.float64)[:, None]


def numbers_of(places: np.ndarray) -> np.ndarray:
    return places[:, 0].astype(np.intp)


def as_objects(X: Any) -> np.ndarray | None:
    """Rows that are not numbers as an array of objects; None for anything else."""
    if not isinstance(X, (list, tuple)) and type(X).__module__.split(".")[0] not in ("numpy", "pandas", "polars"):
        return None
    try:
        rows = np.asarray(X)
    except ValueError:  # rows of different lengths
        rows = np.fromiter(X, dtype=object, count=len(X))
    if rows.dtype.kind not in "OUST" or rows.ndim == 0:
        return None
    rows = rows.astype(object)
    if not any(isinstance(value, (str, bytes)) for value in rows.flat):
        try:
            rows.astype(np.float64)
        except (TypeError, ValueError):
            return rows
        return None
    return rows


def training_objects(estimator: Any, X: Any) -> np.ndarray | None:
    """The rows to train on, where they are not numbers and the kernel is a function, which may know what to do."""
    rows = as_objects(X) if isinstance(make_kernel(estimator.kernel), Called) else None
    if rows is None:
        return None
    unable = {
        "engine": not isinstance(make_engine(estimator.engine), LocalEngine),
        "checkpoint": estimator.checkpoint is not None,
        "prediction": estimator.prediction != "global",
    }
    for name in (name for name, is_so in unable.items() if is_so):
        raise ValueError(
            f"{name}={getattr(estimator, name)!r} needs rows of numbers; the rows of X are of type "
            f"{type(rows.flat[0]).__name__}. Leave {name} as it is by default."
        )
    return rows


def new_objects(known: np.ndarray, X: Any) -> np.ndarray:
    """Rows to predict of a model that was trained on others that are not numbers."""
    rows = as_objects(X)
    if rows is None or rows.shape[1:] != known.shape[1:]:
        given = type(X).__name__ if rows is None else f"rows of shape {rows.shape[1:]}"
        raise ValueError(
            f"This model was trained on rows that are not numbers, of shape {known.shape[1:]}, and predicts rows of "
            f"the same kind; got {given}."
        )
    return rows
