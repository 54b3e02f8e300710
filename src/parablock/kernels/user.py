"""Kernel values that the user brings: a precomputed matrix, or a Python function of two sets of samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from parablock.kernels.base import Kernel


class Precomputed(Kernel):
    """The samples are rows of the kernel matrix itself.

    Examples
    --------
    >>> import numpy as np
    >>> from parablock import KernelSVC
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> model = KernelSVC(kernel="precomputed").fit(np.exp(-abs(X - X.T)), [0, 0, 1, 1])
    >>> model.predict(np.exp(-abs(np.array([[0.2], [2.9]]) - X.T)))
    array([0, 1])
    """

    overlap = "given"

    def transform(self, tile: np.ndarray, row_self: np.ndarray, column_self: np.ndarray) -> None:
        pass

    def diagonal(self, self_overlap: np.ndarray) -> np.ndarray:
        return self_overlap


class Called(Kernel):
    """``function(X, Z)`` returns the matrix of kernel values of the rows of X with the rows of Z, dense or sparse.

    Parameters
    ----------
    function : callable
        Should be symmetric; may be called from several threads at once.

    Examples
    --------
    >>> import numpy as np
    >>> from parablock import KernelSVC
    >>> def exponential(X, Z):
    ...     return np.exp(-abs(X - Z.T))
    >>> KernelSVC(kernel=exponential).fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]).predict([[0.2], [2.9]])
    array([0, 1])
    """

    overlap = "called"

    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        self.function = function

    def transform(self, tile: np.ndarray, row_self: np.ndarray, column_self: np.ndarray) -> None:
        pass

    def diagonal(self, self_overlap: np.ndarray) -> np.ndarray:
        return self_overlap

    def values(self, rows: Any, columns: Any) -> np.ndarray:
        name = getattr(self.function, "__name__", type(self.function).__name__)
        result = self.function(rows, columns)
        result = result.toarray() if sp.issparse(result) else np.asarray(result)
        expected = (rows.shape[0], columns.shape[0])
        if result.shape != expected:
            raise ValueError(
                f"The kernel function {name!r} must return an array of shape {expected} for inputs of "
                f"{expected[0]} and {expected[1]} rows; it returned shape {result.shape}."
            )
        if not np.issubdtype(result.dtype, np.number) or not np.all(np.isfinite(result)):
            raise ValueError(f"The kernel function {name!r} returned values that are not finite numbers.")
        return result
