"""Logistic loss: kernel logistic regression.

    primal  C log(1 + exp(-y z))
    dual    with p = y c:  g(c) = p log(p) + (C - p) log(C - p) - C log(C),   0 <= p <= C

The derivative log(p / (C - p)) is infinite at both ends of the box. It is held at its value at a distance of
1e-12 C from either end, which changes the primal loss by less than 1e-11 C and lets training start from zero.
"""

from __future__ import annotations

import math

from parablock.losses.base import Loss


class Logistic(Loss):
    """``C log(1 + exp(-y z))`` for labels y = -1, +1.

    Its predictions are log odds, so that there are probabilities; every row gets a coefficient.

    Examples
    --------
    >>> from parablock.losses import Logistic
    >>> [round(Logistic.primal(prediction, 1.0, 1.0, 0.0), 4) for prediction in (-2.0, 0.0, 2.0)]
    [2.1269, 0.6931, 0.1269]
    """

    @staticmethod
    def dual(coef: float, target: float, weight: float, parameter: float) -> float:
        inside = coef * target
        outside = weight - inside
        value = 0.0
        if inside > 0.0:
            value += inside * math.log(inside / weight)
        if outside > 0.0:
            value += outside * math.log(outside / weight)
        return value

    @staticmethod
    def primal(prediction: float, target: float, weight: float, parameter: float) -> float:
        margin = target * prediction
        if margin >= 0.0:
            return weight * math.log1p(math.exp(-margin))
        return weight * (math.log1p(math.exp(margin)) - margin)

    @staticmethod
    def bounds(target: float, weight: float, parameter: float) -> tuple[float, float]:
        return min(0.0, target * weight), max(0.0, target * weight)

    @staticmethod
    def slopes(coef: float, target: float, weight: float, parameter: float) -> tuple[float, float, float]:
        if weight == 0.0:
            return -math.inf, math.inf, 0.0
        inside = max(coef * target, 1e-12 * weight)
        outside = max(weight - coef * target, 1e-12 * weight)
        slope = target * math.log(inside / outside)
        left = -math.inf if coef <= min(0.0, target * weight) else slope
        right = math.inf if coef >= max(0.0, target * weight) else slope
        return left, right, weight / (inside * outside)
