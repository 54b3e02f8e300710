"""From inner products to kernel values, inside a tile; and which kernels there are on a GPU."""

from __future__ import annotations

import math
from typing import NamedTuple

import triton
import triton.language as tl

from parablock.kernels import (
    RBF,
    Chi2,
    Cosine,
    Kernel,
    Laplacian,
    Linear,
    Matern32,
    Matern52,
    Polynomial,
    Sigmoid,
)

# What Triton functions read must be a constexpr. Those up to LAST_OF_DISTANCE have ones on their diagonal, those from
# FIRST_OF_FEATURES to there are distances that are no inner products.
EXPONENTIAL = tl.constexpr(0)
MATERN32 = tl.constexpr(1)
MATERN52 = tl.constexpr(2)
MANHATTAN = tl.constexpr(3)
CHI_SQUARED = tl.constexpr(4)
LINEAR = tl.constexpr(5)
POLYNOMIAL = tl.constexpr(6)
SIGMOID = tl.constexpr(7)
COSINE = tl.constexpr(8)
FIRST_OF_FEATURES = MANHATTAN
LAST_OF_DISTANCE = CHI_SQUARED
_MINUS_LOG2E = tl.constexpr(-1.0 / math.log(2.0))


class KernelSpec(NamedTuple):
    """A kernel as a few numbers that a Triton kernel can take.

    Attributes
    ----------
    kind : int
        One of the constants above.
    scale, shift : float
        Factors and offsets of that kind.
    degree : int
        Of the polynomial.
    """

    kind: int
    scale: float = 0.0
    shift: float = 0.0
    degree: int = 0

    @property
    def by_features(self) -> bool:
        """Whether the distance is a sum over features that is no inner product: its operands must be float32."""
        return FIRST_OF_FEATURES.value <= self.kind <= LAST_OF_DISTANCE.value


def spec_of(kernel: Kernel) -> KernelSpec:
    """The numbers of a kernel.

    Raises
    ------
    ValueError
        For a kernel that only Python code or the user's own matrix knows.
    """
    log2e = 1.0 / math.log(2.0)
    if type(kernel) is RBF:
        return KernelSpec(EXPONENTIAL.value, 2.0 * kernel.gamma * log2e)  # of half the squared distance
    if type(kernel) is Matern32:
        return KernelSpec(MATERN32.value, math.sqrt(2.0 * 6.0 * kernel.gamma))  # of the root of that half
    if type(kernel) is Matern52:
        return KernelSpec(MATERN52.value, math.sqrt(2.0 * 10.0 * kernel.gamma))
    if type(kernel) is Laplacian:
        return KernelSpec(MANHATTAN.value, kernel.gamma * log2e)
    if type(kernel) is Chi2:
        return KernelSpec(CHI_SQUARED.value, kernel.gamma * log2e)
    if type(kernel) is Linear:
        return KernelSpec(LINEAR.value)
    if type(kernel) is Polynomial:
        return KernelSpec(POLYNOMIAL.value, kernel.gamma, kernel.coef0, kernel.degree)
    if type(kernel) is Sigmoid:
        return KernelSpec(SIGMOID.value, kernel.gamma, kernel.coef0)
    if type(kernel) is Cosine:
        return KernelSpec(COSINE.value)
    raise ValueError(
        f"The kernel {type(kernel).__name__} is not available on a GPU, which has rbf, laplacian, chi2, matern32, "
        "matern52, linear, polynomial, sigmoid and cosine: use device='cpu'."
    )


@triton.jit
def half_distance(high, low, row_half, row_low, column_half, column_low, unit, HAS_LOW: tl.constexpr):
    """Half of the squared distance: |x|^2/2 + |z|^2/2 - x'z.

    All terms of the first line lie on one grid (see `operands`), so for near rows, where they are large and cancel,
    it is exact. The second line is small.
    """
    half = (row_half[:, None] + column_half[None, :]) - high * unit
    rest = row_low[:, None] + column_low[None, :]
    if HAS_LOW:
        rest -= low * unit
    return tl.maximum(half + rest, 0.0)


@triton.jit
def of_distance(distance, scale, KIND: tl.constexpr):
    """Kernel values of half squared distances, or of distances of their own kind."""
    if KIND == MATERN32:
        a = scale * tl.sqrt(distance)
        values = (1.0 + a) * tl.exp2(a * _MINUS_LOG2E)
    elif KIND == MATERN52:
        a = scale * tl.sqrt(distance)
        values = (1.0 + a + a * a * (1.0 / 3.0)) * tl.exp2(a * _MINUS_LOG2E)
    else:
        values = tl.exp2(distance * -scale)
    return values


@triton.jit
def of_inner_product(inner, row_half, column_half, scale, shift, KIND: tl.constexpr, DEGREE: tl.constexpr):
    """Kernel values of inner products."""
    if KIND == POLYNOMIAL:
        base = scale * inner + shift
        values = tl.full(inner.shape, 1.0, tl.float32)
        for _ in tl.static_range(DEGREE):
            values *= base
    elif KIND == SIGMOID:
        values = _tanh(scale * inner + shift)
    elif KIND == COSINE:
        values = inner * _inverse_norm(row_half)[:, None] * _inverse_norm(column_half)[None, :]
    else:
        values = inner
    return values


@triton.jit
def term_of_distance(x, z, KIND: tl.constexpr):
    """What one feature adds to a distance that is no inner product."""
    difference = x - z
    if KIND == MANHATTAN:
        term = tl.abs(difference)
    else:
        both = x + z
        term = tl.where(both > 0.0, difference * difference / tl.where(both > 0.0, both, 1.0), 0.0)
    return term


@triton.jit
def _tanh(x):
    # Of the exponential where that loses no digits, otherwise of the first terms of the series: error below 2e-7.
    small = tl.exp2(tl.abs(x) * _MINUS_LOG2E * 2.0)
    far = (1.0 - small) / (1.0 + small)
    square = x * x
    series = 1.0 + square * (-1.0 / 3.0 + square * (2.0 / 15.0 + square * (-17.0 / 315.0 + square * (62.0 / 2835.0))))
    return tl.where(square < 0.0625, x * series, tl.where(x < 0.0, -far, far))


@triton.jit
def _inverse_norm(half):
    return tl.where(half > 0.0, 1.0 / tl.sqrt(tl.where(half > 0.0, 2.0 * half, 1.0)), 0.0)
