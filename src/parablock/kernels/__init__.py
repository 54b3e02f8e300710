"""Kernels: one file a family. A kernel knows how overlaps of samples become kernel values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from parablock.kernels.base import Kernel
from parablock.kernels.distance import RBF, Chi2, Laplacian, Matern32, Matern52
from parablock.kernels.inner import Cosine, Linear, Polynomial, Sigmoid
from parablock.kernels.user import Called, Precomputed

KERNELS: dict[str, Callable[[float, float, int], Kernel]] = {
    "rbf": lambda gamma, coef0, degree: RBF(gamma),
    "laplacian": lambda gamma, coef0, degree: Laplacian(gamma),
    "chi2": lambda gamma, coef0, degree: Chi2(gamma),
    "matern32": lambda gamma, coef0, degree: Matern32(gamma),
    "matern52": lambda gamma, coef0, degree: Matern52(gamma),
    "linear": lambda gamma, coef0, degree: Linear(),
    "polynomial": lambda gamma, coef0, degree: Polynomial(gamma, coef0, degree),
    "poly": lambda gamma, coef0, degree: Polynomial(gamma, coef0, degree),  # scikit-learn's name
    "sigmoid": lambda gamma, coef0, degree: Sigmoid(gamma, coef0),
    "cosine": lambda gamma, coef0, degree: Cosine(),
    "precomputed": lambda gamma, coef0, degree: Precomputed(),
}


def make_kernel(
    kernel: str | Callable[[Any, Any], Any] | Kernel, gamma: float = 1.0, coef0: float = 0.0, degree: int = 3
) -> Kernel:
    """The kernel of the given name, or the one that wraps the given function.

    Parameters
    ----------
    kernel : str, callable or Kernel
        A name of `KERNELS`, or a function of two sets of rows; a kernel is given back as it is.
    gamma, coef0, degree
        Of the kernels that have them.

    Returns
    -------
    Kernel

    Examples
    --------
    >>> from parablock.kernels import make_kernel
    >>> kernel = make_kernel("rbf", gamma=0.5)
    >>> type(kernel).__name__, kernel.gamma
    ('RBF', 0.5)
    """
    if isinstance(kernel, Kernel):
        return kernel
    if callable(kernel):
        return Called(kernel)
    if kernel not in KERNELS:
        raise ValueError(f"Unknown kernel {kernel!r}: use one of {sorted(KERNELS)}, or a function of two arrays.")
    return KERNELS[kernel](gamma, coef0, degree)


def kernel_is(kernel: Any, kind: type[Kernel]) -> bool:
    """Whether what an estimator was given as kernel is of this kind, by its name or itself."""
    return isinstance(KERNELS[kernel](1.0, 0.0, 3) if isinstance(kernel, str) and kernel in KERNELS else kernel, kind)


__all__ = [
    "KERNELS",
    "RBF",
    "Called",
    "Chi2",
    "Cosine",
    "Kernel",
    "Laplacian",
    "Linear",
    "Matern32",
    "Matern52",
    "Polynomial",
    "Precomputed",
    "Sigmoid",
    "make_kernel",
]
