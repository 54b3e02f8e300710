"""The losses over whole vectors on the card, as float64 torch tensors: step size, objective, gap and violation of
`CardProblem`, and the intercepts of blocks.

Each function is the one of the same name in `parablock.losses`, for all samples at once.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from parablock.devices.cuda.losses import (
    EPSILON_INSENSITIVE,
    LOGISTIC,
    QUANTILE,
    SQUARED_ERROR,
    SQUARED_HINGE,
    LossSpec,
)

_SQUARED = (SQUARED_ERROR.value, SQUARED_HINGE.value)


def dual(loss: LossSpec, coef: Tensor, target: Tensor, weight: Tensor) -> Tensor:
    """g(coef) of every sample."""
    if loss.number == LOGISTIC.value:
        inside = coef * target
        outside = weight - inside
        # At an end of the box a term is zero, its logarithm is not.
        terms = [
            torch.where(part > 0.0, part * torch.log(torch.where(part > 0.0, part / weight, 1.0)), 0.0)
            for part in (inside, outside)
        ]
        return terms[0] + terms[1]
    value = -target * coef
    if loss.number in _SQUARED:
        value += coef * coef / (4.0 * _divisor(weight))
    if loss.number == EPSILON_INSENSITIVE.value:
        value += loss.parameter * coef.abs()
    return value


def primal(loss: LossSpec, prediction: Tensor, target: Tensor, weight: Tensor) -> Tensor:
    """The loss of every sample."""
    if loss.number == LOGISTIC.value:
        margin = target * prediction
        return weight * (torch.log1p(torch.exp(-margin.abs())) + torch.clamp(-margin, min=0.0))
    error = target - prediction
    if loss.number == SQUARED_ERROR.value:
        return weight * error * error
    if loss.number == EPSILON_INSENSITIVE.value:
        return weight * torch.clamp(error.abs() - loss.parameter, min=0.0)
    if loss.number == QUANTILE.value:
        return weight * torch.maximum(loss.parameter * error, (loss.parameter - 1.0) * error)
    short = torch.clamp(1.0 - target * prediction, min=0.0)  # of the margin
    return weight * short * short if loss.number == SQUARED_HINGE.value else weight * short


def bounds(loss: LossSpec, target: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Lower and upper bound of every sample."""
    zero = torch.zeros_like(target * weight)
    matters = weight > 0
    if loss.number == SQUARED_HINGE.value:
        grows = target > 0
        return torch.where(matters & ~grows, -math.inf, zero), torch.where(matters & grows, math.inf, zero)
    if loss.number == EPSILON_INSENSITIVE.value:
        return zero - weight, zero + weight
    if loss.number == SQUARED_ERROR.value:
        return torch.where(matters, -math.inf, zero), torch.where(matters, math.inf, zero)
    if loss.number == QUANTILE.value:
        return zero + weight * (loss.parameter - 1.0), zero + weight * loss.parameter
    return torch.minimum(target * weight, zero), torch.maximum(target * weight, zero)


def slopes(loss: LossSpec, coef: Tensor, target: Tensor, weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Left and right derivative of g at every coefficient, infinite at its bounds, and the curvature."""
    lower, upper = bounds(loss, target, weight)
    curvature = torch.zeros_like(coef)
    if loss.number == EPSILON_INSENSITIVE.value:
        above, below = loss.parameter - target, -loss.parameter - target  # of the kink
        left, right = torch.where(coef > 0.0, above, below), torch.where(coef >= 0.0, above, below)
    elif loss.number == LOGISTIC.value:
        inside = torch.maximum(coef * target, 1e-12 * weight).clamp(min=1e-300)
        outside = torch.maximum(weight - coef * target, 1e-12 * weight).clamp(min=1e-300)
        left = right = target * torch.log(inside / outside)
        curvature = torch.where(weight > 0, 1.0 / inside + 1.0 / outside, 0.0)
    elif loss.number in _SQUARED:
        left = right = coef / (2.0 * _divisor(weight)) - target
        curvature = torch.where(weight > 0, 1.0 / (2.0 * _divisor(weight)), curvature)
    else:
        left = right = curvature - target
    return torch.where(coef <= lower, -math.inf, left), torch.where(coef >= upper, math.inf, right), curvature


def _divisor(weight: Tensor) -> Tensor:
    """Weights to divide by: without weight the coefficient is zero, whatever it is divided by."""
    return torch.where(weight > 0, weight, 1.0)


def fitting_bias(upward: Tensor, downward: Tensor) -> Tensor:
    """The intercept at which the wishes along the last axis balance, as `parablock.problem.fitting_bias`.

    The median of the free variables; without any, the middle of the two extreme wishes.
    """
    free = upward == -downward
    count = free.sum(dim=-1, keepdim=True)
    ordered = torch.where(free, upward, math.inf).sort(dim=-1).values
    places = torch.clamp((count - 1) // 2, min=0), torch.clamp(count // 2, max=upward.shape[-1] - 1)
    middle = [ordered.gather(-1, place) for place in places]
    median = (0.5 * (middle[0] + middle[1])).squeeze(-1)
    highest, lowest = upward.amax(dim=-1), -downward.amax(dim=-1)
    one = torch.where(highest.isfinite(), highest, torch.where(lowest.isfinite(), lowest, 0.0))
    between = torch.where(highest.isfinite() & lowest.isfinite(), 0.5 * (highest + lowest), one)
    return torch.where(count.squeeze(-1) > 0, median, between)
