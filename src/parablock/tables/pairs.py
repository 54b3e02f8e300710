"""Compiled loops over pairs of rows.

Where rows meet themselves, only pairs k <= i are visited, and only the lower triangle of a matrix is written. Other
rows come column after column (`B` of shape (d, n)), so that the innermost loops read contiguous numbers. Each loop is
the work of one thread, in one order, so that the same numbers come out with any number of threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from parablock.compiling import njit

_LOOP: dict[str, Any] = {
    "cache": True,
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"contract", "reassoc", "nsz", "nnan"},
}
NEAREST = 1e-12  # below, D^(p-1) is taken to be zero: rows that are equal stay equal


@njit(**_LOOP)
def absolute_distances(A: np.ndarray, B: np.ndarray, w: np.ndarray, half: bool, D: np.ndarray) -> None:
    """D_ik = sum_j w_j |A_ij - B_jk|."""
    for i in range(A.shape[0]):
        size = i + 1 if half else B.shape[1]
        row = D[i, :size]
        row[:] = 0.0
        for j in range(A.shape[1]):
            a, c, b = A[i, j], w[j], B[j]
            for k in range(size):
                row[k] += c * abs(a - b[k])


@njit(**_LOOP)
def squared_distances(A: np.ndarray, B: np.ndarray, w: np.ndarray, half: bool, D: np.ndarray) -> None:
    """D_ik = sum_j w_j (A_ij - B_jk)^2, from differences: rows that are near keep their digits."""
    for i in range(A.shape[0]):
        size = i + 1 if half else B.shape[1]
        row = D[i, :size]
        row[:] = 0.0
        for j in range(A.shape[1]):
            a, c, b = A[i, j], w[j], B[j]
            for k in range(size):
                t = a - b[k]
                row[k] += c * t * t


@njit(**_LOOP)
def absolute_sums(A: np.ndarray, B: np.ndarray, S: np.ndarray, out: np.ndarray) -> None:
    """out_j = sum over k < i of S_ik |A_ij - B_jk|."""
    out[:] = 0.0
    for i in range(A.shape[0]):
        s = S[i]
        for j in range(A.shape[1]):
            a, b, total = A[i, j], B[j], 0.0
            for k in range(i):
                total += s[k] * abs(a - b[k])
            out[j] += total


@njit(**_LOOP)
def squared_sums(A: np.ndarray, B: np.ndarray, S: np.ndarray, out: np.ndarray) -> None:
    """out_j = sum over k < i of S_ik (A_ij - B_jk)^2."""
    out[:] = 0.0
    for i in range(A.shape[0]):
        s = S[i]
        for j in range(A.shape[1]):
            a, b, total = A[i, j], B[j], 0.0
            for k in range(i):
                t = a - b[k]
                total += s[k] * t * t
            out[j] += total


@njit(**_LOOP)
def exponential(D: np.ndarray, factor: float, p: float, half: bool, K: np.ndarray) -> None:
    """K = exp(-(factor D)^p); K may be D itself."""
    for i in range(D.shape[0]):
        for k in range(i + 1 if half else D.shape[1]):
            d = factor * D[i, k]
            K[i, k] = np.exp(-d if p == 1.0 else -(d**p))


@njit(**_LOOP)
def through_exponential(G: np.ndarray, p: float, D: np.ndarray) -> float:
    """For K = exp(-D^p): D becomes dL/dD for both orders of a pair, where G = dL/dK; gives back dL/dp."""
    slope = 0.0
    for i in range(D.shape[0]):
        total = 0.0
        for k in range(i):
            d, s = D[i, k], 0.0
            if p == 1.0:
                s = -2.0 * G[i, k] * np.exp(-d)
            elif d > NEAREST:  # the slope of D^p has a pole where two rows are equal, and nothing moves there
                log = np.log(d)
                e = np.exp(p * log)
                s = -2.0 * G[i, k] * np.exp(-e) * e
                total += s * log
                s *= p / d
            D[i, k] = s
        D[i, i] = 0.0
        slope += total
    return slope


@njit(**_LOOP)
def add_column_kernels(
    up: np.ndarray, down: np.ndarray, Up: np.ndarray, Down: np.ndarray, v: np.ndarray, half: bool, K: np.ndarray
) -> None:
    """K_ik += sum_j v_j exp(-t_j |x_ij - x_kj|), where up = exp(t x) and down = exp(-t x): the kernel is the smaller
    one of up_i down_k and down_i up_k, so that no exponential is left for pairs."""
    for i in range(up.shape[0]):
        size = i + 1 if half else Up.shape[1]
        row = K[i, :size]
        for j in range(up.shape[1]):
            a, c, e, f = v[j] * up[i, j], v[j] * down[i, j], Down[j], Up[j]
            for k in range(size):
                row[k] += min(a * e[k], c * f[k])


@njit(**_LOOP)
def column_kernel_sums(
    A: np.ndarray, up: np.ndarray, down: np.ndarray, B: np.ndarray, Up: np.ndarray, Down: np.ndarray, G: np.ndarray,
    value: np.ndarray, slope: np.ndarray,
) -> None:  # fmt: skip
    """value_j = sum over k < i of G_ik k_j(i, k), and slope_j that of G_ik k_j(i, k) |A_ij - B_jk|."""
    value[:] = 0.0
    slope[:] = 0.0
    for i in range(up.shape[0]):
        g = G[i]
        for j in range(up.shape[1]):
            x, y, a, c, e, f = A[i, j], B[j], up[i, j], down[i, j], Down[j], Up[j]
            s = t = 0.0
            for k in range(i):
                q = g[k] * min(a * e[k], c * f[k])
                s += q
                t += q * abs(x - y[k])
            value[j] += s
            slope[j] += t


@njit(**_LOOP)
def mirrored(C: np.ndarray, s: np.ndarray, W: np.ndarray) -> None:
    """W = C diag(s), whole; in squares, because the mirror image is written down columns."""
    n, side = len(C), 64
    for first in range(0, n, side):
        for left in range(0, first + 1, side):
            for i in range(first, min(first + side, n)):
                for k in range(left, min(left + side, i + 1)):
                    W[i, k] = C[i, k] * s[k]
                    W[k, i] = C[i, k] * s[i]


@njit(**_LOOP)
def row_squares(R: np.ndarray, out: np.ndarray) -> None:
    """out_k = sum over i >= k of R_ik^2, of a lower triangle."""
    out[:] = 0.0
    for i in range(R.shape[0]):
        for k in range(i + 1):
            out[k] += R[i, k] * R[i, k]
