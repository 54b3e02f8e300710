"""Small problems that every rival solves, and their optima by other programs."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.svm import SVC

from benchmarks.objective import hinge_dual
from parablock.datasets import load_covtype_sample
from tests.small_problems import rbf

C, GAMMA = 4.0, 1.0


@dataclass(frozen=True)
class Small:
    """Rows of covtype with the least dual objectives (as sums to be maximised) of both problems."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    best: float
    best_with_intercept: float
    exact: SVC

    def objective(self, model):
        """The dual objective of a model, by its coefficients alone."""
        support = np.flatnonzero(model.coef)
        return hinge_dual(self.X[support], model.coef[support], GAMMA)

    def loss(self, model, intercept=False):
        """How far below the optimum that is, relative; where the coefficients break a constraint, infinite."""
        signed = self.y * model.coef
        feasible = signed.min() >= -1e-9 * C and signed.max() <= (1 + 1e-9) * C
        if intercept:
            feasible &= abs(model.coef.sum()) <= 1e-6 * np.abs(model.coef).sum()
        best = self.best_with_intercept if intercept else self.best
        return 1 - self.objective(model) / best if feasible else np.inf


@pytest.fixture(scope="session")
def small():
    X, y, X_test, y_test = load_covtype_sample()
    X, y, X_test, y_test = (
        X[:600].astype(np.float64),
        y[:600].astype(int),
        X_test[:1000].astype(np.float64),
        y_test[:1000],
    )
    signed = rbf(X, gamma=GAMMA) * np.outer(y, y)
    found = minimize(
        lambda alpha: (0.5 * alpha @ signed @ alpha - alpha.sum(), signed @ alpha - 1),
        np.zeros(len(y)),
        jac=True,
        bounds=[(0, C)] * len(y),
        method="L-BFGS-B",
        options={"maxiter": 5000, "maxfun": 10_000, "ftol": 1e-14, "gtol": 1e-8},
    )
    exact = SVC(C=C, gamma=GAMMA, tol=1e-6).fit(X, y)
    with_intercept = hinge_dual(exact.support_vectors_, exact.dual_coef_, GAMMA)
    return Small(X, y, X_test, y_test.astype(int), -found.fun, with_intercept, exact)
