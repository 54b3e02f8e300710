"""The losses inside Triton kernels: bounds and slopes, with the meaning that they have in `parablock.losses`.

All of it is float64. A kernel evaluates the slopes of a whole block once and then of the one or two variables that an
update moves, so that precision costs nothing; and it buys what float32 cannot give: bounds that are the very numbers of
`Problem.lower` and `upper`, and the logistic slopes at 1e-12 C from the ends of the box, where `C - coef` has no digit
left in float32. What kernels keep of the slopes of a block is float32, as on the CPU.
"""

from __future__ import annotations

from typing import NamedTuple

import triton
import triton.language as tl

from parablock.losses import EpsilonInsensitive, Hinge, Logistic, Loss, Quantile, SquaredError, SquaredHinge

HINGE = tl.constexpr(0)
SQUARED_HINGE = tl.constexpr(1)
LOGISTIC = tl.constexpr(2)
EPSILON_INSENSITIVE = tl.constexpr(3)
SQUARED_ERROR = tl.constexpr(4)
QUANTILE = tl.constexpr(5)
_NUMBERS = {
    Hinge: HINGE.value,
    SquaredHinge: SQUARED_HINGE.value,
    Logistic: LOGISTIC.value,
    EpsilonInsensitive: EPSILON_INSENSITIVE.value,
    SquaredError: SQUARED_ERROR.value,
    Quantile: QUANTILE.value,
}


class LossSpec(NamedTuple):
    """A loss as a number that a Triton kernel can be compiled for, and its parameter."""

    number: int
    parameter: float


def spec_of_loss(loss: Loss) -> LossSpec:
    """The number of a loss.

    Raises
    ------
    ValueError
        For a user's own loss, which exists as Python code only.
    """
    if type(loss) not in _NUMBERS:
        known = ", ".join(sorted(kind.__name__ for kind in _NUMBERS))
        raise ValueError(
            f"The loss {type(loss).__name__} is not available on a GPU, which has {known}: use device='cpu'."
        )
    return LossSpec(_NUMBERS[type(loss)], float(loss.parameter))


@triton.jit
def bounds(target, weight, parameter, LOSS: tl.constexpr):
    """Lower and upper bound; all arguments float64."""
    zero = weight - weight
    infinite = zero + float("inf")
    if LOSS == SQUARED_HINGE:
        lower, upper = tl.where(target > 0.0, zero, -infinite), tl.where(target > 0.0, infinite, zero)
    elif LOSS == EPSILON_INSENSITIVE:
        lower, upper = -weight, weight
    elif LOSS == SQUARED_ERROR:
        lower, upper = -infinite, infinite
    elif LOSS == QUANTILE:
        lower, upper = weight * (parameter - 1.0), weight * parameter
    else:
        lower, upper = tl.minimum(target * weight, zero), tl.maximum(target * weight, zero)
    return tl.where(weight > 0.0, lower, zero), tl.where(weight > 0.0, upper, zero)


@triton.jit
def slopes(coef, target, weight, parameter, LOSS: tl.constexpr):
    """Left and right derivative and curvature of the dual term; all arguments float64."""
    lower, upper = bounds(target, weight, parameter, LOSS)
    zero = weight - weight
    curvature = zero
    matters = weight > 0.0
    weight = tl.where(matters, weight, 1.0)  # what comes of it is not used
    if LOSS == EPSILON_INSENSITIVE:
        left = tl.where(coef > 0.0, parameter, -parameter) - target
        right = tl.where(coef >= 0.0, parameter, -parameter) - target
    elif LOSS == LOGISTIC:
        inside = tl.maximum(tl.maximum(coef * target, 1e-12 * weight), 1e-300)
        outside = tl.maximum(tl.maximum(weight - coef * target, 1e-12 * weight), 1e-300)
        left = target * tl.log(inside / outside)
        right = left
        curvature = 1.0 / inside + 1.0 / outside
    elif LOSS == SQUARED_ERROR or LOSS == SQUARED_HINGE:  # noqa: SIM109 - Triton knows no `in`
        left = coef / (2.0 * weight) - target
        right = left
        curvature = 1.0 / (2.0 * weight)
    else:
        left, right = -target, -target
    left = tl.where(coef <= lower, float("-inf"), left)
    right = tl.where(coef >= upper, float("inf"), right)
    return left, right, tl.where(matters, curvature, zero)
