"""LAPACK and BLAS on one triangle, in place, while other threads of the interpreter run.

SciPy's own wrappers hold the interpreter's lock, so the same functions are called through their addresses. Arrays are
in C order and hold their lower triangle, which is the upper one to Fortran; the other triangle is neither read nor
written.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba.extending import get_cython_function_address

_LOWER, _PLAIN, _TRANSPOSED, _RIGHT = b"U", b"N", b"T", b"R"


def cholesky(A: np.ndarray) -> bool:
    """A becomes its factor; False where it is not positive definite."""
    info = _call("lapack", "dpotrf", _LOWER, len(A), A, len(A), 0)
    return info[-1].value == 0


def invert_factor(R: np.ndarray) -> None:
    """A factor becomes its inverse."""
    _call("lapack", "dtrtri", _LOWER, _PLAIN, len(R), R, len(R), 0)


def inverse_of_factor(R: np.ndarray) -> None:
    """The factor of A becomes the inverse of A."""
    _call("lapack", "dpotri", _LOWER, len(R), R, len(R), 0)


def solve_factored(R: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """A^-1 Y by the factor of A."""
    X = np.asfortranarray(Y, dtype=np.float64).copy(order="F")
    _call("lapack", "dpotrs", _LOWER, len(R), X.shape[1], R, len(R), X, len(R), 0)
    return np.ascontiguousarray(X)


def symmetric_times(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """A B for a symmetric A."""
    B = np.ascontiguousarray(B, dtype=np.float64)
    out = np.empty_like(B)
    n, width = B.shape
    _call("blas", "dsymm", _RIGHT, _LOWER, width, n, 1.0, A, n, B, width, 0.0, out, width)
    return out


def product_with_own_transpose(W: np.ndarray, out: np.ndarray, add: bool = False) -> None:
    """out = W W', or what is there and W W'."""
    n, width = W.shape
    _call("blas", "dsyrk", _LOWER, _TRANSPOSED, n, width, 1.0, np.ascontiguousarray(W), width, float(add), out, n)


def add_symmetric_pair(factor: float, U: np.ndarray, V: np.ndarray, out: np.ndarray) -> None:
    """out += factor (U V' + V U')."""
    n, width = U.shape
    U, V = np.ascontiguousarray(U), np.ascontiguousarray(V)
    _call("blas", "dsyr2k", _LOWER, _TRANSPOSED, n, width, factor, U, width, V, width, 1.0, out, n)


def _call(library: str, name: str, *arguments: Any) -> list[Any]:
    """Fortran takes addresses; gives back what stands for the numbers that were passed."""
    holders: list[Any] = []
    addresses = []
    for value in arguments:
        if isinstance(value, np.ndarray):
            assert value.dtype == np.float64
            addresses.append(value.ctypes.data)
            continue
        kind: Any = ctypes.c_char if isinstance(value, bytes) else ctypes.c_int if isinstance(value, int) else None
        holders.append((kind or ctypes.c_double)(value))
        addresses.append(ctypes.addressof(holders[-1]))
    _function(library, name, len(arguments))(*addresses)
    return holders


@cache
def _function(library: str, name: str, count: int) -> Callable[..., None]:
    address = get_cython_function_address(f"scipy.linalg.cython_{library}", name)
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * count)(address)
