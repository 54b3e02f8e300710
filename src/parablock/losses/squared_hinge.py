"""Squared hinge loss: the L2-loss support vector classifier.

primal  C max(0, 1 - y z)^2      dual  g(c) = -y c + c^2 / (4 C),   y c >= 0
"""

from __future__ import annotations

import math

from parablock.losses.base import Loss


class SquaredHinge(Loss):
    """``C max(0, 1 - y z)^2`` for labels y = -1, +1.

    Smooth where the hinge loss has a kink, and its coefficients have no upper bound.

    Examples
    --------
    >>> from parablock.losses import SquaredHinge
    >>> [SquaredHinge.primal(prediction, 1.0, 10.0, 0.0) for prediction in (-1.0, 0.5, 1.0)]  # C = 10
    [40.0, 2.5, 0.0]
    >>> SquaredHinge.bounds(1.0, 10.0, 0.0)
    (0.0, inf)
    """

    piecewise_quadratic = True

    @staticmethod
    def dual(coef: float, target: float, weight: float, parameter: float) -> float:
        return -target * coef + coef * coef / (4.0 * weight) if weight > 0.0 else 0.0

    @staticmethod
    def primal(prediction: float, target: float, weight: float, parameter: float) -> float:
        return weight * max(0.0, 1.0 - target * prediction) ** 2

    @staticmethod
    def bounds(target: float, weight: float, parameter: float) -> tuple[float, float]:
        if weight == 0.0:
            return 0.0, 0.0
        return (0.0, math.inf) if target > 0 else (-math.inf, 0.0)

    @staticmethod
    def slopes(coef: float, target: float, weight: float, parameter: float) -> tuple[float, float, float]:
        if weight == 0.0:
            return -math.inf, math.inf, 0.0
        slope = -target + coef / (2.0 * weight)
        left = -math.inf if target > 0 and coef <= 0.0 else slope
        right = math.inf if target < 0 and coef >= 0.0 else slope
        return left, right, 1.0 / (2.0 * weight)
