"""Squared error: kernel ridge regression.

primal  C (y - z)^2              dual  g(c) = -y c + c^2 / (4 C)
"""

from __future__ import annotations

import math

from parablock.losses.base import Loss


class SquaredError(Loss):
    """``C (y - z)^2`` for a real target y.

    Examples
    --------
    >>> from parablock.losses import SquaredError
    >>> [SquaredError.primal(prediction, 3.0, 10.0, 0.0) for prediction in (3.0, 3.5, 4.0)]  # C = 10
    [0.0, 2.5, 10.0]
    """

    piecewise_quadratic = True
    power = 2

    @staticmethod
    def dual(coef: float, target: float, weight: float, parameter: float) -> float:
        return -target * coef + coef * coef / (4.0 * weight) if weight > 0.0 else 0.0

    @staticmethod
    def primal(prediction: float, target: float, weight: float, parameter: float) -> float:
        return weight * (target - prediction) ** 2

    @staticmethod
    def bounds(target: float, weight: float, parameter: float) -> tuple[float, float]:
        return (-math.inf, math.inf) if weight > 0.0 else (0.0, 0.0)

    @staticmethod
    def slopes(coef: float, target: float, weight: float, parameter: float) -> tuple[float, float, float]:
        if weight == 0.0:
            return -math.inf, math.inf, 0.0
        slope = -target + coef / (2.0 * weight)
        return slope, slope, 1.0 / (2.0 * weight)
