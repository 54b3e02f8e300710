"""LAPACK and BLAS on one triangle, in place, while other threads of the interpreter run.

SciPy's own wrappers hold the interpreter's lock, so the same functions are called through their addresses. Arrays are
in C order and hold their lower triangle, which is the upper one to Fortran; the other triangle is neither read nor
written. They are of float32 or float64.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba.extending import get_cython_function_address

_REAL: dict[Any, tuple[Any, str]] = {
    np.dtype(np.float32): (ctypes.c_float, "s"),
    np.dtype(np.float64): (ctypes.c_double, "d"),
}
_LOWER, _PLAIN, _TRANSPOSED, _RIGHT = b"U", b"N", b"T", b"R"


def cholesky(A: np.ndarray) -> bool:
    """A becomes its factor; False where it is not positive definite."""
    info = _call("lapack", "potrf", _LOWER, len(A), A, len(A), 0)
    return info[-1].value == 0


def invert_factor(R: np.ndarray) -> None:
    """A factor becomes its inverse."""
    _call("lapack", "trtri", _LOWER, _PLAIN, len(R), R, len(R), 0)


def inverse_of_factor(R: np.ndarray) -> None:
    """The factor of A becomes the inverse of A."""
    _call("lapack", "potri", _LOWER, len(R), R, len(R), 0)


def solve_factored(R: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """A^-1 Y by the factor of A."""
    X = np.array(Y, dtype=R.dtype, order="F")
    _call("lapack", "potrs", _LOWER, len(R), X.shape[1], R, len(R), X, len(R), 0)
    return np.ascontiguousarray(X, dtype=np.float64)


def symmetric_times(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """A B for a symmetric A, in float64."""
    B = np.ascontiguousarray(B, dtype=A.dtype)
    out = np.empty_like(B)
    n, width = B.shape
    _call("blas", "symm", _RIGHT, _LOWER, width, n, 1.0, A, n, B, width, 0.0, out, width)
    return out.astype(np.float64, copy=False)


def product_with_own_transpose(W: np.ndarray, out: np.ndarray, add: bool = False) -> None:
    """out = W W', or what is there and W W'."""
    W = np.ascontiguousarray(W, dtype=out.dtype)
    n, width = W.shape
    _call("blas", "syrk", _LOWER, _TRANSPOSED, n, width, 1.0, W, width, float(add), out, n)


def add_symmetric_pair(factor: float, U: np.ndarray, V: np.ndarray, out: np.ndarray) -> None:
    """out += factor (U V' + V U')."""
    n, width = U.shape
    U, V = (np.ascontiguousarray(one, dtype=out.dtype) for one in (U, V))
    _call("blas", "syr2k", _LOWER, _TRANSPOSED, n, width, factor, U, width, V, width, 1.0, out, n)


def _call(library: str, name: str, *arguments: Any) -> list[Any]:
    """Fortran takes addresses; gives back what stands for the numbers that were passed. Arrays are all of one type."""
    (dtype,) = {value.dtype for value in arguments if isinstance(value, np.ndarray)}
    real, letter = _REAL[dtype]
    holders: list[Any] = []
    addresses = []
    for value in arguments:
        if isinstance(value, np.ndarray):
            addresses.append(value.ctypes.data)
            continue
        kind: Any = ctypes.c_char if isinstance(value, bytes) else ctypes.c_int if isinstance(value, int) else real
        holders.append(kind(value))
        addresses.append(ctypes.addressof(holders[-1]))
    _function(library, letter + name, len(arguments))(*addresses)
    return holders


@cache
def _function(library: str, name: str, count: int) -> Callable[..., None]:
    address = get_cython_function_address(f"scipy.linalg.cython_{library}", name)
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * count)(address)
