"""Slow and obvious versions of what the library computes, to compare with: NumPy and SciPy only."""

import math

import numpy as np
from scipy.optimize import minimize, minimize_scalar

from parablock.losses import EpsilonInsensitive, Hinge, Logistic, Quantile, SquaredError, SquaredHinge

LOSSES = {
    "hinge": Hinge(),
    "squared_hinge": SquaredHinge(),
    "logistic": Logistic(),
    "epsilon_insensitive": EpsilonInsensitive(0.3),
    "squared_error": SquaredError(),
    "quantile": Quantile(0.3),
}
CLASSIFICATION = ("hinge", "squared_hinge", "logistic")
PIECEWISE_QUADRATIC = tuple(name for name, loss in LOSSES.items() if loss.piecewise_quadratic)


def random_targets(name, rng, shape):
    """Labels or numbers, whichever the loss of that name takes."""
    if name in CLASSIFICATION:
        return np.where(rng.random(shape) < 0.5, -1.0, 1.0)
    return rng.normal(size=shape)


def random_kernel(rng, n, noise=1e-3):
    """A positive definite matrix with ones on its diagonal."""
    X = rng.normal(size=(n, 3))
    return rbf(X, X, 0.5) * (1 - noise) + noise * np.eye(n)


def rbf(X, Z, gamma):
    return np.exp(-gamma * ((X[:, None, :] - Z[None, :, :]) ** 2).sum(axis=2))


def random_coef(rng, lower, upper):
    """Inside the box, about a third of them exactly on a bound and a third exactly at zero."""
    low, high = np.maximum(lower, -3.0), np.minimum(upper, 3.0)
    inside = low + rng.random(np.shape(lower)) * (high - low)
    kind = rng.integers(3, size=np.shape(lower))
    at_bound = np.where(rng.random(np.shape(lower)) < 0.5, lower, upper)
    at_bound = np.where(np.isfinite(at_bound), at_bound, inside)
    return np.where(kind == 0, inside, np.where(kind == 1, at_bound, 0.0))


def dual_sum(loss, coef, target, weight):
    return sum(loss.dual(c, y, w, loss.parameter) for c, y, w in zip(coef, target, weight))


def primal_sum(loss, prediction, target, weight):
    return sum(loss.primal(z, y, w, loss.parameter) for z, y, w in zip(prediction, target, weight))


def minimum_1d(function, low, high):
    """The least value of a convex function on an interval: bounded search, and the ends."""
    best = minimize_scalar(function, bounds=(low, high), method="bounded", options={"xatol": 1e-12, "maxiter": 500})
    return min(best.fun, function(low), function(high))


def subproblem_minimum(loss, K, coef, decision, target, weight, zero_sum):
    """Least value of 1/2 d'Kd + decision'd + sum g(coef + d) - sum g(coef), by SLSQP.

    coef + d = plus - minus with both parts not negative, so that a kink at zero lies on a bound.
    """
    n, epsilon = len(coef), loss.parameter if math.isfinite(loss.kink) else 0.0
    lower, upper = np.array([loss.bounds(y, w, loss.parameter) for y, w in zip(target, weight)]).T

    def value(parts):
        c = parts[:n] - parts[n:]
        d = c - coef
        smooth = dual_sum(loss, c, target, weight) - epsilon * np.abs(c).sum()
        return 0.5 * d @ K @ d + decision @ d + smooth + epsilon * parts.sum()

    balance = {"type": "eq", "fun": lambda parts: parts[:n].sum() - parts[n:].sum() - coef.sum()}
    found = minimize(
        value,
        np.concatenate((np.maximum(coef, 0), np.maximum(-coef, 0))),
        jac="3-point",
        bounds=[(0, limit) for limit in np.concatenate((upper, -lower))],
        constraints=[balance] if zero_sum else [],
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    return found.fun - dual_sum(loss, coef, target, weight)
