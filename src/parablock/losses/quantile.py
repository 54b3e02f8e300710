"""Quantile (pinball) loss: quantile regression.

primal  C (tau max(0, y - z) + (1 - tau) max(0, z - y))      dual  g(c) = -y c,   C (tau - 1) <= c <= C tau
"""

from __future__ import annotations

import math

from parablock.losses.base import Loss


class Quantile(Loss):
    """The pinball loss, whose minimiser is the conditional ``quantile`` of the target.

    Parameters
    ----------
    quantile : float, default=0.5
        Between 0 and 1; 0.5 is the median.

    Examples
    --------
    >>> from parablock.losses import Quantile
    >>> loss = Quantile(0.75)  # three times as dear to predict too little as too much
    >>> [loss.primal(prediction, 3.0, 1.0, loss.parameter) for prediction in (2.0, 3.0, 4.0)]
    [0.75, 0.0, 0.25]
    """

    piecewise_quadratic = True
    power = 1

    def __init__(self, quantile: float = 0.5) -> None:
        self.parameter = float(quantile)

    @staticmethod
    def dual(coef: float, target: float, weight: float, parameter: float) -> float:
        return -target * coef

    @staticmethod
    def primal(prediction: float, target: float, weight: float, parameter: float) -> float:
        error = target - prediction
        return weight * (parameter * error if error >= 0.0 else (parameter - 1.0) * error)

    @staticmethod
    def bounds(target: float, weight: float, parameter: float) -> tuple[float, float]:
        return weight * (parameter - 1.0), weight * parameter

    @staticmethod
    def slopes(coef: float, target: float, weight: float, parameter: float) -> tuple[float, float, float]:
        left = -math.inf if coef <= weight * (parameter - 1.0) else -target
        right = math.inf if coef >= weight * parameter else -target
        return left, right, 0.0
