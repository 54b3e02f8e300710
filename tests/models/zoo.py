"""Fitted models of every kind, small and quick, and how to compare two of them."""

import dataclasses
import warnings

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from parablock import KernelLogisticRegression, KernelQuantileRegressor, KernelRidge, KernelSVC, KernelSVR
from parablock.scaling import Scaling
from tests.small_problems import features, in_format, rbf, targets

NEW = features(40, seed=3)
CLASSES = np.digitize(targets("numbers"), [-0.5, 0.5])
TWO_TARGETS = np.stack((targets("numbers"), features()[:, 0]), axis=1)
SETTINGS = {"random_state": 0, "n_jobs": 1}
LOCAL = {"prediction": "local", "regroup": False, "n_blocks": 4, "max_iter": 2}


def fit(estimator, X=None, y=None, **fit_parameters):
    """The estimator fitted to the small problem, quietly also where it is not to converge."""
    if y is None:
        y = targets("labels" if hasattr(estimator, "decision_function") else "numbers")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return estimator.fit(features() if X is None else X, y, **fit_parameters)


def decision(model, X=NEW):
    return getattr(model, "decision_function", model.predict)(X)


def _models():
    yield "svc", KernelSVC(**SETTINGS), {}
    yield "squared hinge", KernelSVC(loss="squared_hinge", kernel="laplacian", **SETTINGS), {}
    yield "logistic", KernelLogisticRegression(**SETTINGS), {}
    yield "svr", KernelSVR(kernel="poly", degree=2, coef0=1, **SETTINGS), {}
    yield "ridge", KernelRidge(kernel="matern52", **SETTINGS), {}
    yield "quantile", KernelQuantileRegressor(quantile=0.3, kernel="linear", **SETTINGS), {}
    yield "no intercept", KernelSVC(fit_intercept=False, gamma=0.5, **SETTINGS), {}
    yield "three classes", KernelSVC(**SETTINGS), {"y": CLASSES}
    yield "logistic, three classes", KernelLogisticRegression(kernel="cosine", **SETTINGS), {"y": CLASSES}
    yield "two targets", KernelRidge(kernel="sigmoid", gamma=0.01, **SETTINGS), {"y": TWO_TARGETS}
    yield "one target as a column", KernelSVR(**SETTINGS), {"y": TWO_TARGETS[:, :1]}
    yield "no support vectors", KernelSVR(epsilon=100.0, **SETTINGS), {}
    yield "rows left out", KernelSVC(**SETTINGS), {"sample_weight": (np.arange(72) % 3 > 0).astype(float)}
    for partition in ("tree", "kmeans", "kernel_kmeans", "random"):
        yield f"local, {partition}", KernelSVC(partition=partition, **LOCAL, **SETTINGS), {}
    yield "local, blocks given", KernelSVR(partition=np.arange(72) // 20, **LOCAL, **SETTINGS), {}
    yield "local, three classes", KernelSVC(**LOCAL, **SETTINGS), {"y": CLASSES}
    yield "scaled", KernelSVC(**SETTINGS), {"scaling": Scaling(np.array([1.0, -2.0, 0.5, 0.0]), np.arange(1.0, 5.0))}
    yield "scaled without shift", KernelRidge(**SETTINGS), {"scaling": Scaling(np.zeros(4), np.arange(1.0, 5.0))}


MODELS = {name: (estimator, options) for name, estimator, options in _models()}


def make(name, data_format="dense", dtype=np.float64):
    """A fitted model of the list."""
    estimator, options = MODELS[name]
    model, options = clone(estimator), dict(options)
    if "scaling" in options:
        model._scaling = options.pop("scaling")
    return fit(model, in_format(features().astype(dtype), data_format), **options)


def given_kernel(**parameters):
    """A fitted model with a precomputed kernel, of which some rows have no weight; and new rows for it."""
    weight = (np.arange(72) % 4 > 0).astype(float)
    model = fit(KernelSVC(kernel="precomputed", **parameters, **SETTINGS), rbf(features()), sample_weight=weight)
    return model, rbf(NEW, features())


def wide_and_sparse(**parameters):
    """A fitted model of CSR rows with so many features that its blocks' centres are sparse as well."""
    X = sp.random(72, 2_000, density=0.002, format="csr", random_state=0)
    return fit(KernelSVC(gamma=0.5, **parameters, **SETTINGS), X)


def same(one, other):
    """Whether two values, with all that is in them, are equal to the last bit."""
    if sp.issparse(one):
        parts = ("data", "indices", "indptr")
        return type(one) is type(other) and one.shape == other.shape and all(
            same(getattr(one, part), getattr(other, part)) for part in parts
        )  # fmt: skip
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    if dataclasses.is_dataclass(one):
        names = [field.name for field in dataclasses.fields(one)]  # and not what was computed of them on the way
        return type(one) is type(other) and all(same(getattr(one, name), getattr(other, name)) for name in names)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(same(a, b) for a, b in zip(one, other, strict=True))
    return one == other or (one != one and other != other)
