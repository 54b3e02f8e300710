"""Kernels of the inner product.

linear       x'z
polynomial   (gamma x'z + coef0)^degree
sigmoid      tanh(gamma x'z + coef0)          (not positive semi-definite in general)
cosine       x'z / (|x| |z|), 0 where either is zero
"""

from __future__ import annotations

import numpy as np

from parablock.kernels.base import Kernel


class Linear(Kernel):
    """The inner product, ``x'z``.

    Examples
    --------
    >>> import numpy as np
    >>> from parablock.kernels import Linear
    >>> X = np.array([[1.0, 0.0], [1.0, 2.0]])
    >>> values = X @ X.T
    >>> Linear().transform(values, np.diag(values).copy(), np.diag(values).copy())
    >>> values.round(4)
    array([[1., 1.],
           [1., 5.]])
    """

    def transform(self, tile: np.ndarray, row_self: np.ndarray, column_self: np.ndarray) -> None:
        pass

    def diagonal(self, self_overlap: np.ndarray) -> np.ndarray:
        return self_overlap


class Polynomial(Kernel):
    """``(gamma x'z + coef0)^degree``.

    Parameters
    ----------
    gamma, coef0 : float
    degree : int

    Examples
    --------
    >>> import numpy as np
    >>> from parablock.kernels import Polynomial
    >>> X = np.array([[1.0, 0.0], [1.0, 2.0]])
    >>> values = X @ X.T
    >>> Polynomial(1.0, 1.0, 2).transform(values, np.diag(values).copy(), np.diag(values).copy())
    >>> values.round(4)
    array([[ 4.,  4.],
           [ 4., 36.]])
    """

    def __init__(self, gamma: float, coef0: float, degree: int) -> None:
        self.gamma, self.coef0, self.degree = float(gamma), float(coef0), int(degree)

    def transform(self, tile: np.ndarray, row_self: np.ndarray, column_self: np.ndarray) -> None:
        tile[...] = self.diagonal(tile)

    def diagonal(self, self_overlap: np.ndarray) -> np.ndarray:
        base = self_overlap * self_overlap.dtype.type(self.gamma) + self_overlap.dtype.type(self.coef0)
        power = np.ones_like(base)
        left = self.degree
        while left:  # by squares: numpy's power calls the slow general function
            if left & 1:
                power *= base
            left >>= 1
            if left:
                base *= base
        return power


class Sigmoid(Kernel):
    """``tanh(gamma x'z + coef0)``, which is not positive semi-definite in general.

    Parameters
    ----------
    gamma, coef0 : float

    Examples
    --------
    >>> import numpy as np
    >>> from parablock.kernels import Sigmoid
    >>> X = np.array([[1.0, 0.0], [1.0, 2.0]])
    >>> values = X @ X.T
    >>> Sigmoid(0.5, 0.0).transform(values, np.diag(values).copy(), np.diag(values).copy())
    >>> values.round(4)
    array([[0.4621, 0.4621],
           [0.4621, 0.9866]])
    """

    def __init__(self, gamma: float, coef0: float) -> None:
        self.gamma, self.coef0 = float(gamma), float(coef0)

    def transform(self, tile: np.ndarray, row_self: np.ndarray, column_self: np.ndarray) -> None:
        tile[...] = self.diagonal(tile)

    def diagonal(self, self_overlap: np.ndarray) -> np.ndarray:
        return np.tanh(self_overlap * self_overlap.dtype.type(self.gamma) + self_overlap.dtype.type(self.coef0))


class Cosine(Kernel):
    """``x'z / (|x| |z|)``, and 0 where either is zero.

    Examples
    --------
    >>> import numpy as np
    >>> from parablock.kernels import Cosine
    >>> X = np.array([[1.0, 0.0], [1.0, 2.0]])
    >>> values = X @ X.T
    >>> Cosine().transform(values, np.diag(values).copy(), np.diag(values).copy())
    >>> values.round(4)
    array([[1.    , 0.4472],
           [0.4472, 1.    ]])
    """

    def transform(self, tile: np.ndarray, row_self: np.ndarray, column_self: np.ndarray) -> None:
        tile *= _inverse_root(row_self)[:, None]
        tile *= _inverse_root(column_self)

    def diagonal(self, self_overlap: np.ndarray) -> np.ndarray:
        return np.where(self_overlap > 0, self_overlap.dtype.type(1), self_overlap.dtype.type(0))


def _inverse_root(self_overlap: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.where(self_overlap > 0, 1 / np.sqrt(self_overlap), self_overlap.dtype.type(0))
