"""A loss of your own: robust regression with the Huber loss.

    python examples/own_loss.py

The Huber loss is the squared error for small errors e = y - z and its tangent beyond a threshold t, so that an
outlier pulls with a bounded force. With weight C and one free number, the threshold:

    primal  C e^2 where |e| <= t,  C (2 t |e| - t^2) beyond
    dual    g(c) = -y c + c^2 / (4 C),   -2 C t <= c <= 2 C t

It is the dual of the squared error with a box: the coefficient of a sample is the force that it pulls with.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.kernel_ridge import KernelRidge as ScikitKernelRidge

from parablock import KernelRidge, Loss, solve
from parablock.kernels import RBF


class Huber(Loss):
    """``C e^2`` for errors up to the threshold, and its tangent beyond."""

    piecewise_quadratic = True  # the dual is: so the step size has a closed form

    def __init__(self, threshold: float = 1.0) -> None:
        self.parameter = float(threshold)

    @staticmethod
    def dual(coef: float, target: float, weight: float, parameter: float) -> float:
        return -target * coef + coef * coef / (4.0 * weight)

    @staticmethod
    def primal(prediction: float, target: float, weight: float, parameter: float) -> float:
        error = abs(target - prediction)
        return weight * (error * error if error <= parameter else parameter * (2.0 * error - parameter))

    @staticmethod
    def bounds(target: float, weight: float, parameter: float) -> tuple[float, float]:
        return -2.0 * weight * parameter, 2.0 * weight * parameter

    @staticmethod
    def slopes(coef: float, target: float, weight: float, parameter: float) -> tuple[float, float, float]:
        slope, bound = -target + coef / (2.0 * weight), 2.0 * weight * parameter
        left = -math.inf if coef <= -bound else slope
        right = math.inf if coef >= bound else slope
        return left, right, 1.0 / (2.0 * weight)


class KernelHuber(KernelRidge):
    """Kernel regression with the Huber loss, as a scikit-learn estimator.

    ``get_params``, ``clone`` and ``GridSearchCV`` read the parameters from the signature of ``__init__``, so list
    those that you want to set and pass the others of `KernelRidge` on by their defaults.
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        threshold: float = 1.0,
        kernel: Any = "rbf",
        gamma: Any = "scale",
        fit_intercept: bool = True,
        tol: float = 1e-3,
        random_state: Any = None,
    ) -> None:
        super().__init__(C, kernel=kernel, gamma=gamma, fit_intercept=fit_intercept, tol=tol, random_state=random_state)
        self.threshold = threshold

    def _make_loss(self) -> Loss:
        return Huber(self.threshold)


def noisy_wave(n: int = 2_000, outliers: float = 0.1, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, the wave at them, and noisy targets of which a share is far too high."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3.0, 3.0, size=(n, 1))
    wave = np.sin(2.0 * X[:, 0])
    y = wave + 0.1 * rng.normal(size=n)
    y[rng.random(n) < outliers] += 10.0
    return X, wave, y


def main() -> None:
    X, wave, y = noisy_wave()
    C, gamma, threshold = 1.0, 1.0, 0.2

    # Without an estimator: any loss, any kernel, and a certificate of the solution.
    trained = solve(X, y, Huber(threshold), RBF(gamma), C=C)
    solution = trained.solution
    print(f"solve:        {solution.reason} after {solution.state.iteration} outer iterations,")
    print(f"              duality gap {solution.state.relative_gap:.1e} of the objective")

    # As an estimator, beside scikit-learn's ridge regression, whose alpha is 1 / (2 C). That one has no intercept.
    robust = KernelHuber(C, threshold=threshold, gamma=gamma, random_state=0).fit(X, y)
    ridge = ScikitKernelRidge(alpha=1.0 / (2.0 * C), kernel="rbf", gamma=gamma).fit(X, y)
    for name, model in (("Huber loss", robust), ("ridge", ridge)):
        error = math.sqrt(np.mean((model.predict(X) - wave) ** 2))
        print(f"{name + ':':<13} {error:.3f} root mean square distance from the wave without noise")


if __name__ == "__main__":
    main()
