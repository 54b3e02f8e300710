"""Kernels of a distance `s(x, x) + s(z, z) - 2 s(x, z)`.

    rbf         exp(-gamma |x - z|^2)
    laplacian   exp(-gamma |x - z|_1)
    chi2        exp(-gamma sum (x_f - z_f)^2 / (x_f + z_f))
    matern32    (1 + a) exp(-a),            a = sqrt(3) |x - z| / length
    matern52    (1 + a + a^2 / 3) exp(-a),  a = sqrt(5) |x - z| / length,    length = 1 / sqrt(2 gamma)

The Matern length is the one that the rbf kernel of the same gamma has.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from parablock.compiling import njit
from parablock.kernels._exponential import exp_of_negative
from parablock.kernels.base import Kernel

_LOOP = {"contract", "nsz"}  # what is not a number must stay so, to be found


class DistanceKernel(Kernel):
    def __init__(self, gamma: float) -> None:
        self.gamma = float(gamma)

    def diagonal(self, self_overlap: np.ndarray) -> np.ndarray:
        return np.ones_like(self_overlap)


class RBF(DistanceKernel):
    """The Gaussian kernel, ``exp(-gamma |x - z|^2)``.

    Parameters
    ----------
    gamma : float

    Examples
    --------
    >>> import numpy as np
    >>> from parablock.kernels import RBF
    >>> X = np.array([[1.0, 0.0], [1.0, 2.0]])
    >>> values = X @ X.T
    >>> RBF(0.25).transform(values, np.diag(values).copy(), np.diag(values).copy())
    >>> values.round(4)
    array([[1.    , 0.3679],
           [0.3679, 1.    ]])
    """

    shift_invariant = True

    def transform(self, tile: np.ndarray, row_self: np.ndarray, column_self: np.ndarray) -> None:
        _exponential(tile, row_self, column_self, tile.dtype.type(self.gamma))


class Laplacian(RBF):
    """``exp(-gamma sum_f |x_f - z_f|)``.

    Peaked where the Gaussian kernel is round: for targets with jumps and features with outliers.

    Parameters
    ----------
    gamma : float

    Examples
    --------
    >>> import numpy as np
    >>> from parablock.kernels import Laplacian
    >>> X = np.array([[1.0, 0.0], [1.0, 2.0]])
    >>> values = np.minimum(X[:, None], X).sum(axis=2)
    >>> Laplacian(0.5).transform(values, np.diag(values).copy(), np.diag(values).copy())
    >>> values.round(4)
    array([[1.    , 0.3679],
           [0.3679, 1.    ]])
    """

    overlap = "minimum"
    shift_invariant = False  # the overlap of equal signs depends on the origin


class Chi2(Laplacian):
    """``exp(-gamma sum_f (x_f - z_f)^2 / (x_f + z_f))``.

    For histograms and other features that are not negative.

    Parameters
    ----------
    gamma : float

    Examples
    --------
    >>> import numpy as np
    >>> from parablock.kernels import Chi2
    >>> X = np.array([[1.0, 0.0], [1.0, 2.0]])
    >>> values = np.array([[1.0, 1.0], [1.0, 3.0]])  # sum of 2 x z / (x + z) over the features
    >>> Chi2(0.5).transform(values, np.diag(values).copy(), np.diag(values).copy())
    >>> values.round(4)
    array([[1.    , 0.3679],
           [0.3679, 1.    ]])
    """

    overlap = "harmonic"


class Matern32(DistanceKernel):
    """``(1 + a) exp(-a)`` with ``a = sqrt(3) |x - z| / length`` and ``length = 1 / sqrt(2 gamma)``.

    For functions with one derivative.

    Parameters
    ----------
    gamma : float

    Examples
    --------
    >>> import numpy as np
    >>> from parablock.kernels import Matern32
    >>> X = np.array([[1.0, 0.0], [1.0, 2.0]])
    >>> values = X @ X.T
    >>> Matern32(0.25).transform(values, np.diag(values).copy(), np.diag(values).copy())
    >>> values.round(4)
    array([[1.    , 0.2978],
           [0.2978, 1.    ]])
    """

    shift_invariant = True

    def transform(self, tile: np.ndarray, row_self: np.ndarray, column_self: np.ndarray) -> None:
        _matern(tile, row_self, column_self, tile.dtype.type(math.sqrt(6.0 * self.gamma)), tile.dtype.type(0.0))


class Matern52(DistanceKernel):
    """``(1 + a + a^2 / 3) exp(-a)`` with ``a = sqrt(5) |x - z| / length`` and ``length = 1 / sqrt(2 gamma)``.

    For functions with two derivatives.

    Parameters
    ----------
    gamma : float

    Examples
    --------
    >>> import numpy as np
    >>> from parablock.kernels import Matern52
    >>> X = np.array([[1.0, 0.0], [1.0, 2.0]])
    >>> values = X @ X.T
    >>> Matern52(0.25).transform(values, np.diag(values).copy(), np.diag(values).copy())
    >>> values.round(4)
    array([[1.    , 0.3173],
           [0.3173, 1.    ]])
    """

    shift_invariant = True

    def transform(self, tile: np.ndarray, row_self: np.ndarray, column_self: np.ndarray) -> None:
        scale, quadratic = math.sqrt(10.0 * self.gamma), 1.0 / 3.0
        _matern(tile, row_self, column_self, tile.dtype.type(scale), tile.dtype.type(quadratic))


@njit(cache=True, nogil=True, fastmath=_LOOP)
def _exponential(tile: np.ndarray, row_self: np.ndarray, column_self: np.ndarray, gamma: Any) -> None:
    zero = gamma - gamma  # of the tile's own type: a literal would turn the loop into float64
    for i in range(tile.shape[0]):
        row, own = tile[i], row_self[i]
        for j in range(len(row)):
            row[j] = exp_of_negative(-gamma * max(own + column_self[j] - (row[j] + row[j]), zero))


@njit(cache=True, nogil=True, fastmath=_LOOP)
def _matern(tile: np.ndarray, row_self: np.ndarray, column_self: np.ndarray, scale: Any, quadratic: Any) -> None:
    zero = scale - scale
    one = zero + scale / scale
    for i in range(tile.shape[0]):
        row, own = tile[i], row_self[i]
        for j in range(len(row)):
            a = scale * np.sqrt(max(own + column_self[j] - (row[j] + row[j]), zero))
            row[j] = (one + a + quadratic * a * a) * exp_of_negative(-a)
