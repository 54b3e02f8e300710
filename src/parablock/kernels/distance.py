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
from numba import njit

from parablock.kernels._exponential import exp_of_negative
from parablock.kernels.base import Kernel


class _DistanceKernel(Kernel):
    def __init__(self, gamma: float) -> None:
        self.gamma = float(gamma)

    def diagonal(self, self_overlap: np.ndarray) -> np.ndarray:
        return np.ones_like(self_overlap)


class RBF(_DistanceKernel):
    shift_invariant = True

    def transform(self, tile: np.ndarray, row_self: np.ndarray, column_self: np.ndarray) -> None:
        _exponential(tile, row_self, column_self, tile.dtype.type(self.gamma))


class Laplacian(RBF):
    overlap = "minimum"
    shift_invariant = False  # the overlap of equal signs depends on the origin


class Chi2(Laplacian):
    overlap = "harmonic"


class Matern32(_DistanceKernel):
    shift_invariant = True

    def transform(self, tile: np.ndarray, row_self: np.ndarray, column_self: np.ndarray) -> None:
        _matern(tile, row_self, column_self, tile.dtype.type(math.sqrt(6.0 * self.gamma)), tile.dtype.type(0.0))


class Matern52(_DistanceKernel):
    shift_invariant = True

    def transform(self, tile: np.ndarray, row_self: np.ndarray, column_self: np.ndarray) -> None:
        scale, quadratic = math.sqrt(10.0 * self.gamma), 1.0 / 3.0
        _matern(tile, row_self, column_self, tile.dtype.type(scale), tile.dtype.type(quadratic))


@njit(cache=True, nogil=True, fastmath={"contract", "nsz", "nnan"})
def _exponential(tile: np.ndarray, row_self: np.ndarray, column_self: np.ndarray, gamma: Any) -> None:
    zero = gamma - gamma  # of the tile's own type: a literal would turn the loop into float64
    for i in range(tile.shape[0]):
        row, own = tile[i], row_self[i]
        for j in range(len(row)):
            row[j] = exp_of_negative(-gamma * max(own + column_self[j] - (row[j] + row[j]), zero))


@njit(cache=True, nogil=True, fastmath={"contract", "nsz", "nnan"})
def _matern(tile: np.ndarray, row_self: np.ndarray, column_self: np.ndarray, scale: Any, quadratic: Any) -> None:
    zero = scale - scale
    one = zero + scale / scale
    for i in range(tile.shape[0]):
        row, own = tile[i], row_self[i]
        for j in range(len(row)):
            a = scale * np.sqrt(max(own + column_self[j] - (row[j] + row[j]), zero))
            row[j] = (one + a + quadratic * a * a) * exp_of_negative(-a)
