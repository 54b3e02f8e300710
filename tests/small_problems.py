"""Small problems of every loss, and their optima by scipy.

Everything here is plain NumPy on the full kernel matrix, written from the formulas and independent of the library:

    minimise over coef   f(coef) = 1/2 coef' K coef + sum_i g_i(coef_i),   lower_i <= coef_i <= upper_i
    with an intercept    also sum_i coef_i = 0
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from scipy.special import xlogy

from parablock import KernelLogisticRegression, KernelQuantileRegressor, KernelRidge, KernelSVC, KernelSVR

N, GAMMA, C, EPSILON, QUANTILE = 72, 0.6, 1.5, 0.1, 0.3


def rbf(X, Z=None, gamma=GAMMA):
    """The Gaussian kernel matrix."""
    return np.exp(-gamma * cdist(X, X if Z is None else Z, "sqeuclidean"))


@lru_cache
def features(n=N, seed=0):
    """Rows with many zeros, so that a sparse copy is worth its name."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    X[rng.random(X.shape) < 0.3] = 0.0
    X.setflags(write=False)
    return X


@lru_cache
def targets(kind, n=N, seed=0):
    """Noisy labels -1 and +1, or noisy real numbers, of `features`."""
    X, noise = features(n, seed), np.random.default_rng(seed + 1).normal(size=n)
    signal = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]
    y = np.where(signal + 0.4 * noise > 0, 1, -1) if kind == "labels" else signal + 0.2 * noise
    y.setflags(write=False)
    return y


def in_format(X, name):
    """The same rows as a dense array or a CSR matrix."""
    return sp.csr_matrix(X) if name == "csr" else X


@dataclass(frozen=True)
class Case:
    """A loss: the estimator that minimises it, its targets and its dual."""

    name: str
    estimator: Any
    kind: str  # of targets: "labels" or "numbers"
    dual: Callable[[np.ndarray, np.ndarray], np.ndarray]  # g_i of coef and target
    slope: Callable[[np.ndarray, np.ndarray], np.ndarray]  # its derivative; right of zero where it has a kink there
    box: Callable[[np.ndarray], tuple[Any, Any]]

    @property
    def X(self):
        return features()

    @property
    def y(self):
        return targets(self.kind)

    def model(self, **parameters):
        """The estimator, unfitted, for the kernel `rbf`."""
        # One thread: starting more takes longer than the work of so few rows.
        shared = {"gamma": GAMMA, "random_state": 0, "n_jobs": 1}
        return type(self.estimator)(**{**self.estimator.get_params(), **shared, **parameters})

    def fit(self, **parameters):
        return self.model(**parameters).fit(self.X, self.y)

    def objective(self, coef):
        return 0.5 * coef @ rbf(self.X) @ coef + self.dual(coef, self.y).sum()

    def bounds(self):
        lower, upper = self.box(self.y)
        return np.broadcast_to(lower, (N,)), np.broadcast_to(upper, (N,))


def _labelled_box(y):
    return np.minimum(0, C * y), np.maximum(0, C * y)


def _entropy(coef, y):
    inside = y * coef
    return xlogy(inside, inside / C) + xlogy(C - inside, (C - inside) / C)


CASES = {
    case.name: case
    for case in (
        Case(
            name="hinge",
            estimator=KernelSVC(C),
            kind="labels",
            dual=lambda coef, y: -y * coef,
            slope=lambda coef, y: -y,
            box=_labelled_box,
        ),
        Case(
            name="squared_hinge",
            estimator=KernelSVC(C, loss="squared_hinge"),
            kind="labels",
            dual=lambda coef, y: -y * coef + coef**2 / (4 * C),
            slope=lambda coef, y: -y + coef / (2 * C),
            box=lambda y: (np.where(y > 0, 0, -np.inf), np.where(y > 0, np.inf, 0)),
        ),
        Case(
            name="logistic",
            estimator=KernelLogisticRegression(C),
            kind="labels",
            dual=_entropy,
            slope=lambda coef, y: y * np.log(y * coef / (C - y * coef)),
            box=_labelled_box,
        ),
        Case(
            name="epsilon_insensitive",
            estimator=KernelSVR(C, epsilon=EPSILON),
            kind="numbers",
            dual=lambda coef, y: -y * coef + EPSILON * np.abs(coef),
            slope=lambda coef, y: -y + EPSILON * np.where(coef >= 0, 1, -1),
            box=lambda y: (-C, C),
        ),
        Case(
            name="squared_error",
            estimator=KernelRidge(C),
            kind="numbers",
            dual=lambda coef, y: -y * coef + coef**2 / (4 * C),
            slope=lambda coef, y: -y + coef / (2 * C),
            box=lambda y: (-np.inf, np.inf),
        ),
        Case(
            name="quantile",
            estimator=KernelQuantileRegressor(C, quantile=QUANTILE),
            kind="numbers",
            dual=lambda coef, y: -y * coef,
            slope=lambda coef, y: -y,
            box=lambda y: (C * (QUANTILE - 1), C * QUANTILE),
        ),
    )
}


@lru_cache
def optimum(name, fit_intercept):
    """The least dual objective, by scipy.

    Coefficients are split into parts of one sign, coef = positive - negative, so that the kink of the
    epsilon-insensitive loss lies on a bound and every loss is smooth.
    """
    case = CASES[name]
    K, y, (lower, upper) = rbf(case.X), case.y, case.bounds()
    # The logistic loss has infinite slopes at its bounds.
    inset = 1e-9 if name == "logistic" else 0.0
    box = [(inset, high - inset) if high > 0 else (0, 0) for high in upper]
    box += [(inset, -low - inset) if low < 0 else (0, 0) for low in lower]
    movable = np.array([high > 0 for _, high in box])

    def split(values):
        parts = np.zeros(2 * N)
        parts[movable] = values
        return parts[:N], parts[N:]

    def value_and_gradient(values):
        positive, negative = split(values)
        coef = positive - negative
        product = K @ coef
        if name == "epsilon_insensitive":
            value = (EPSILON * (positive + negative) - y * coef).sum()
            slopes = np.concatenate((EPSILON - y, EPSILON + y))
        else:
            value = case.dual(coef, y).sum()
            slopes = np.concatenate((case.slope(coef, y), -case.slope(coef, y)))
        slopes = slopes + np.concatenate((product, -product))
        return 0.5 * coef @ product + value, slopes[movable]

    start = np.full(movable.sum(), 0.1 * C)
    bounds = [limits for limits, moves in zip(box, movable) if moves]
    if fit_intercept:
        signs = np.repeat((1.0, -1.0), N)[movable]
        balance = {"type": "eq", "fun": lambda values: signs @ values, "jac": lambda values: signs}
        options = {"maxiter": 1000, "ftol": 1e-13}
        result = minimize(
            value_and_gradient, start, jac=True, bounds=bounds, constraints=balance, method="SLSQP", options=options
        )
    else:
        options = {"maxiter": 20_000, "maxfun": 40_000, "ftol": 1e-15, "gtol": 1e-9, "maxcor": 40}
        result = minimize(value_and_gradient, start, jac=True, bounds=bounds, method="L-BFGS-B", options=options)
    return result.fun


def full_coef(model, n=N):
    """The coefficients of all rows, (n_outputs, n)."""
    coef = np.zeros((len(model.dual_coef_), n))
    coef[:, model.support_] = model.dual_coef_
    return coef
