"""Epsilon-insensitive loss: support vector regression.

primal  C max(0, |y - z| - epsilon)      dual  g(c) = -y c + epsilon |c|,   -C <= c <= C
"""

from __future__ import annotations

import math

from parablock.losses.base import Loss


class EpsilonInsensitive(Loss):
    """``C max(0, |y - z| - epsilon)`` for a real target y.

    Parameters
    ----------
    epsilon : float, default=0.1
        Errors up to this size cost nothing.

    Examples
    --------
    >>> from parablock.losses import EpsilonInsensitive
    >>> loss = EpsilonInsensitive(epsilon=0.5)
    >>> [loss.primal(prediction, 3.0, 10.0, loss.parameter) for prediction in (3.0, 3.5, 4.0)]  # C = 10
    [0.0, 0.0, 5.0]
    """

    piecewise_quadratic = True
    kink = 0.0

    def __init__(self, epsilon: float = 0.1) -> None:
        self.parameter = float(epsilon)

    @staticmethod
    def dual(coef: float, target: float, weight: float, parameter: float) -> float:
        return -target * coef + parameter * abs(coef)

    @staticmethod
    def primal(prediction: float, target: float, weight: float, parameter: float) -> float:
        return weight * max(0.0, abs(target - prediction) - parameter)

    @staticmethod
    def bounds(target: float, weight: float, parameter: float) -> tuple[float, float]:
        return -weight, weight

    @staticmethod
    def slopes(coef: float, target: float, weight: float, parameter: float) -> tuple[float, float, float]:
        left = -math.inf if coef <= -weight else -target + (parameter if coef > 0.0 else -parameter)
        right = math.inf if coef >= weight else -target + (parameter if coef >= 0.0 else -parameter)
        return left, right, 0.0
