"""Primal and dual value of a fitted machine, from the formulas: NumPy and SciPy in float64, independent of the library.

Distances are sums over differences of features, rows a block at a time. Nothing is taken from the model but its
parameters, its coefficients and its intercepts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from scipy.special import xlogy

_VALUES_AT_ONCE = 1 << 25  # of a block of rows, or of its kernel values
_WIDE = 5_000  # sparse rows of more features are not made dense

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Values:
    """Of all outputs together; the violation is the largest."""

    primal: float
    dual: float
    violation: float


def values_of(model: Any, X: Any, y: Any, sample_weight: Any = None, kernel: Any = None) -> Values:
    """Of a fitted machine for its training data.

    Parameters
    ----------
    kernel : callable, optional
        A function of two sets of rows, by default that of the model's name.
    """
    weight = np.ones(X.shape[0]) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    targets, weights = _targets(model, np.asarray(y), weight)
    coef = np.zeros(targets.shape)
    coef[:, model.support_] = model.dual_coef_
    decision = decisions(model, X, coef, kernel)
    used = weight > 0
    parts = [
        _values_of_output(model, *given)
        for given in zip(
            coef[:, used],
            decision[:, used],
            targets[:, used],
            model.C * weights[:, used],
            model.intercept_,
            strict=True,
        )
    ]
    return Values(sum(p.primal for p in parts), sum(p.dual for p in parts), max(p.violation for p in parts))


def _targets(model: Any, y: NDArray[Any], weight: Floats) -> tuple[Floats, Floats]:
    """Of every output, with weights without C."""
    if not hasattr(model, "classes_"):
        targets = np.atleast_2d(y.T).astype(float)
        return targets, np.broadcast_to(weight, targets.shape)
    if model.class_weight is not None:
        each = {label: weight[y == label].sum() for label in model.classes_}
        balanced = {label: weight.sum() / (len(each) * total) for label, total in each.items()}
        chosen = balanced if model.class_weight == "balanced" else model.class_weight
        weight = weight * np.array([chosen.get(label, 1.0) for label in y])
    against_rest = model.classes_[1:] if len(model.classes_) == 2 else model.classes_
    targets = np.array([np.where(y == label, 1.0, -1.0) for label in against_rest])
    return targets, np.broadcast_to(weight, targets.shape)


def decisions(model: Any, X: Any, coef: Floats, kernel: Any = None) -> Floats:
    """K times the coefficients, without the intercepts."""
    support = np.flatnonzero(coef.any(axis=0))
    n, result = X.shape[0], np.zeros(coef.shape)
    if not len(support):
        return result
    function = kernel or kernel_of(model)
    if model._scaling is not None:
        X = X.toarray() if sp.issparse(X) else X
        X = ((X - model._scaling.shift) * model._scaling.scale).astype(X.dtype)
    columns = None if model.kernel == "precomputed" else _as_doubles(X[support])
    size = max(1, _VALUES_AT_ONCE // max(len(support), min(X.shape[1], _WIDE)))
    for start in range(0, n, size):
        rows = _as_doubles(X[start : start + size])
        values = rows[:, support] if columns is None else function(rows, columns)
        result[:, start : start + size] = coef[:, support] @ np.asarray(values, dtype=float).T
    return result


def _as_doubles(rows: Any) -> Any:
    if sp.issparse(rows):
        return rows.astype(np.float64) if rows.shape[1] > _WIDE else rows.toarray().astype(np.float64)
    return np.asarray(rows, dtype=np.float64)


def kernel_of(model: Any) -> Any:
    """The kernel of a model's name, as a function of two sets of rows."""
    gamma, name = float(model._gamma), model.kernel
    scale, power = model.coef0, model.degree
    return {
        "rbf": lambda X, Z: np.exp(-gamma * _squared(X, Z)),
        "laplacian": lambda X, Z: np.exp(-gamma * cdist(X, Z, "cityblock")),
        "chi2": lambda X, Z: np.exp(-gamma * _chi2(X, Z)),
        "matern32": lambda X, Z: _matern(np.sqrt(6.0 * gamma * _squared(X, Z)), 0.0),
        "matern52": lambda X, Z: _matern(np.sqrt(10.0 * gamma * _squared(X, Z)), 1.0 / 3.0),
        "linear": _products,
        "poly": lambda X, Z: (gamma * _products(X, Z) + scale) ** power,
        "polynomial": lambda X, Z: (gamma * _products(X, Z) + scale) ** power,
        "sigmoid": lambda X, Z: np.tanh(gamma * _products(X, Z) + scale),
        "cosine": lambda X, Z: _products(_unit(X), _unit(Z)),
        "precomputed": None,
    }[name]


def _squared(X: Any, Z: Any) -> Floats:
    if not sp.issparse(X):
        return np.asarray(cdist(X, Z, "sqeuclidean"))
    own, other = (np.asarray(rows.multiply(rows).sum(axis=1)).ravel() for rows in (X, Z))
    return np.maximum(own[:, None] + other - 2.0 * _products(X, Z), 0.0)


def _chi2(X: Floats, Z: Floats) -> Floats:
    total = np.zeros((len(X), len(Z)))
    for feature in range(X.shape[1]):
        one, other = X[:, feature, None], Z[:, feature]
        with np.errstate(invalid="ignore"):
            total += np.nan_to_num((one - other) ** 2 / (one + other))
    return total


def _matern(distance: Floats, quadratic: float) -> Floats:
    return np.asarray((1.0 + distance + quadratic * distance**2) * np.exp(-distance))


def _products(X: Any, Z: Any) -> Floats:
    products = X @ Z.T
    return np.asarray(products.toarray() if sp.issparse(products) else products)


def _unit(X: Any) -> Any:
    lengths = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel() if sp.issparse(X) else (X * X).sum(axis=1))
    inverse = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    return sp.diags(inverse) @ X if sp.issparse(X) else X * inverse[:, None]


def _values_of_output(model: Any, coef: Floats, decision: Floats, y: Floats, C: Floats, intercept: float) -> Values:
    norm, prediction = 0.5 * float(coef @ decision), decision + intercept
    loss, gain, left, right, lower, upper = _loss(model)(coef, prediction, y, C)
    up, down = np.where(coef < upper, -(decision + right), -np.inf), np.where(coef > lower, decision + left, -np.inf)
    worst = up.max() + down.max() if model.fit_intercept else max(up.max(), down.max())
    return Values(norm + float(loss.sum()), float(gain.sum()) - norm, max(float(worst), 0.0))


def _loss(model: Any) -> Any:
    """What each row pays at its prediction, what its coefficient gains, minus the slopes of that, and its bounds."""

    def hinge(c: Floats, f: Floats, y: Floats, C: Floats) -> tuple[Any, ...]:
        return C * np.maximum(0, 1 - y * f), y * c, -y, -y, np.minimum(0, C * y), np.maximum(0, C * y)

    def squared_hinge(c: Floats, f: Floats, y: Floats, C: Floats) -> tuple[Any, ...]:
        slope = c / (2 * C) - y
        lower, upper = np.where(y > 0, 0, -np.inf), np.where(y > 0, np.inf, 0)
        return C * np.maximum(0, 1 - y * f) ** 2, y * c - c**2 / (4 * C), slope, slope, lower, upper

    def logistic(c: Floats, f: Floats, y: Floats, C: Floats) -> tuple[Any, ...]:
        inside = y * c
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = y * np.log(inside / (C - inside))
        gain = -xlogy(inside, inside / C) - xlogy(C - inside, (C - inside) / C)
        return C * np.logaddexp(0, -y * f), gain, slope, slope, np.minimum(0, C * y), np.maximum(0, C * y)

    def tube(c: Floats, f: Floats, y: Floats, C: Floats) -> tuple[Any, ...]:
        left, right = (model.epsilon * np.where(side, 1, -1) - y for side in (c > 0, c >= 0))
        loss = C * np.maximum(0, np.abs(y - f) - model.epsilon)
        return loss, y * c - model.epsilon * np.abs(c), left, right, -C, C

    def squared(c: Floats, f: Floats, y: Floats, C: Floats) -> tuple[Any, ...]:
        slope = c / (2 * C) - y
        return C * (y - f) ** 2, y * c - c**2 / (4 * C), slope, slope, -np.inf, np.inf

    def pinball(c: Floats, f: Floats, y: Floats, C: Floats) -> tuple[Any, ...]:
        q, error = model.quantile, y - f
        return C * np.maximum(q * error, (q - 1) * error), y * c, -y, -y, C * (q - 1), C * q

    return {
        "KernelSVC": squared_hinge if getattr(model, "loss", "") == "squared_hinge" else hinge,
        "KernelLogisticRegression": logistic,
        "KernelSVR": tube,
        "KernelRidge": squared,
        "KernelQuantileRegressor": pinball,
    }[type(model).__name__]
