"""Hinge loss: the support vector classifier.

primal  C max(0, 1 - y z)        dual  g(c) = -y c,   0 <= y c <= C
"""

from __future__ import annotations

import math

from parablock.losses.base import Loss


class Hinge(Loss):
    """``C max(0, 1 - y z)`` for labels y = -1, +1.

    Costs nothing from a margin of one on, so that most rows get a coefficient of zero.

    Examples
    --------
    >>> from parablock.losses import Hinge
    >>> [Hinge.primal(prediction, 1.0, 10.0, 0.0) for prediction in (-1.0, 0.5, 1.0, 2.0)]  # C = 10
    [20.0, 5.0, 0.0, 0.0]
    >>> Hinge.bounds(1.0, 10.0, 0.0)
    (0.0, 10.0)
    """

    piecewise_quadratic = True

    @staticmethod
    def dual(coef: float, target: float, weight: float, parameter: float) -> float:
        return -target * coef

    @staticmethod
    def primal(prediction: float, target: float, weight: float, parameter: float) -> float:
        return weight * max(0.0, 1.0 - target * prediction)

    @staticmethod
    def bounds(target: float, weight: float, parameter: float) -> tuple[float, float]:
        return min(0.0, target * weight), max(0.0, target * weight)

    @staticmethod
    def slopes(coef: float, target: float, weight: float, parameter: float) -> tuple[float, float, float]:
        left = -math.inf if coef <= min(0.0, target * weight) else -target
        right = math.inf if coef >= max(0.0, target * weight) else -target
        return left, right, 0.0
