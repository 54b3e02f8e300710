"""Dual objectives of Gaussian kernel machines, computed from nothing but rows and coefficients.

    hinge    sum |c_i| - 1/2 c'Kc                          (y_i c_i >= 0)
    ridge    sum (y_i c_i - c_i^2 / (4C)) - 1/2 c'Kc

Both are to be maximised. No program's own word is taken for them, and all programs are judged by the same sums.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

TILE = 1_000
# Up to this many vectors everything is float64; beyond it, products and exponentials are float32, sums float64.
EXACT_UP_TO = 25_000
# Sparse vectors with no more features than this are made dense, which is faster.
NARROW = 2_000


def hinge_dual(vectors: Any, coef: NDArray[Any], gamma: float) -> float:
    """Of support vectors and their signed coefficients, shape (n,) or (n_outputs, n); summed over outputs."""
    return float(np.abs(coef).sum()) - 0.5 * quadratic_form(vectors, coef, gamma)


def ridge_dual(vectors: Any, coef: NDArray[Any], gamma: float, target: NDArray[Any], C: float) -> float:
    """Of all training rows, their coefficients and their targets."""
    coef = coef.astype(np.float64)
    return float(np.sum(target * coef - coef * coef / (4 * C))) - 0.5 * quadratic_form(vectors, coef, gamma)


def quadratic_form(vectors: Any, coef: NDArray[Any], gamma: float) -> float:
    """c'Kc, summed over outputs, in tiles; tiles below the diagonal equal those above it."""
    coef = np.atleast_2d(coef).astype(np.float64)
    n = vectors.shape[0]
    kernel = _tiles(vectors, gamma, np.float64 if n <= EXACT_UP_TO else np.float32)
    total = 0.0
    for start in range(0, n, TILE):
        for first in range(start, n, TILE):
            rows, columns = slice(start, start + TILE), slice(first, first + TILE)
            part = float(np.sum(coef[:, rows] * (kernel(rows, columns) @ coef[:, columns].T).T))
            total += part if start == first else 2 * part
    return total


def _tiles(vectors: Any, gamma: float, dtype: Any) -> Callable[[slice, slice], NDArray[Any]]:
    """A function that gives tiles of the kernel matrix."""
    sparse = sp.issparse(vectors) and vectors.shape[1] > NARROW
    if sparse:
        X = vectors.astype(dtype)
        own = np.asarray(X.multiply(X).sum(axis=1)).ravel()
    else:
        dense = np.asarray(vectors.toarray() if sp.issparse(vectors) else vectors, dtype=np.float64)
        # Distances do not change, and smaller numbers lose fewer digits.
        X = (dense - dense.mean(axis=0)).astype(dtype)
        own = np.einsum("ij,ij->i", X, X)

    def tile(rows: slice, columns: slice) -> NDArray[Any]:
        product = (X[rows] @ X[columns].T).toarray() if sparse else X[rows] @ X[columns].T
        product *= -2
        product += own[rows, None]
        product += own[columns]
        np.maximum(product, 0, out=product)
        product *= -gamma
        return np.exp(product, out=product)

    return tile
