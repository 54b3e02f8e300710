"""The small problems that every engine must solve alike, and what is compared."""

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import make_moons

from parablock import KernelLogisticRegression, KernelRidge, KernelSVC, KernelSVR

SETTINGS = {"tol": 1e-6, "n_blocks": 5, "random_state": 0, "n_jobs": 1}
COARSE = {**SETTINGS, "tol": 1e-4}


def moons(n=400):
    return make_moons(n, noise=0.25, random_state=0)


def classes(n=400):
    X = np.random.default_rng(0).normal(size=(n, 3))
    return X, (X[:, 0] > 0).astype(int) + (X[:, 1] > 0.5)


def numbers(n=400):
    X = np.random.default_rng(1).normal(size=(n, 3))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]


def sparse_labels(n=400):
    rng = np.random.default_rng(2)
    X = sp.random(n, 30, density=0.2, format="csr", random_state=2, dtype=np.float64)
    return X, np.where(X @ rng.normal(size=30) > 0, "yes", "no")


PROBLEMS = {
    "hinge": (lambda **more: KernelSVC(C=5, gamma=3, **SETTINGS, **more), moons),
    "hinge, no intercept": (lambda **more: KernelSVC(C=5, gamma=3, fit_intercept=False, **SETTINGS, **more), moons),
    "three classes": (lambda **more: KernelSVC(C=5, **SETTINGS, **more), classes),
    "logistic": (lambda **more: KernelLogisticRegression(C=5, gamma=3, **SETTINGS, **more), moons),
    "svr": (lambda **more: KernelSVR(C=2, gamma=0.5, **SETTINGS, **more), numbers),
    "ridge": (lambda **more: KernelRidge(C=2, gamma=0.5, **SETTINGS, **more), numbers),
    "csr": (lambda **more: KernelSVC(C=5, gamma=1, **SETTINGS, **more), sparse_labels),
    "fixed partition": (
        lambda **more: KernelSVC(C=5, gamma=3, regroup=False, **{**SETTINGS, "tol": 1e-4}, **more),
        moons,
    ),
}


# Nobody says what to begin with: the machines must agree on it.
PROBLEMS["no random state"] = (
    lambda **more: KernelSVC(C=5, gamma=0.01, **{**SETTINGS, "random_state": None, "n_blocks": 20}, **more),
    moons,
)


def outcome(model, X):
    """What must be the same whoever computed it."""
    decision = model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)
    return {
        "objective": model.dual_objective_,
        "decision": np.asarray(decision).ravel().tolist(),
        "support": len(model.support_),
        "iterations": model.n_iter_,
        "violation": model.violation_,
    }
