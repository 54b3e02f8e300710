"""The benchmark problems, by the names of their data sets, and the programs that solve them."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from benchmarks.data import Dataset, load
from benchmarks.deformed_digits import round_digits
from parablock.datasets import load_covtype_sample

TOL = 1e-3
SAMPLE_ROWS = 50_000  # of covtype, bundled with the package


# ------------------------------------------------------------------------------------------------------------ the data


@dataclass(frozen=True)
class Case:
    """A data set, given a number of rows, with the parameters of its Gaussian kernel machine."""

    data: Callable[[int | None], Dataset]
    C: float
    gamma: float


def _covtype(rows: int | None, classes: Literal[2, 7] = 2) -> Dataset:
    # The bundled rows are the first ones of load("covtype"), and there without any download.
    if rows is not None and rows <= SAMPLE_ROWS:
        return Dataset(*load_covtype_sample(classes=classes))
    return load("covtype" if classes == 2 else "covtype7")


def _mnist(rows: int | None) -> Dataset:
    X, y, X_test, y_test = load("mnist")
    return Dataset(X.astype(np.float32), round_digits(y), X_test.astype(np.float32), round_digits(y_test))


def _news20(rows: int | None) -> Dataset:
    """Shuffled: the file has one class after the other."""
    X, y, X_test, y_test = load("news20_bigram_tfidf")
    random = np.random.default_rng(0)
    train, test = random.permutation(len(y)), random.permutation(len(y_test))
    return Dataset(X[train], y[train], X_test[test], y_test[test])


def _cadata(rows: int | None) -> Dataset:
    """Features and target with mean 0 and variance 1 on the training rows."""
    X, y, X_test, y_test = load("cadata")
    mean, scale = X.mean(axis=0, dtype=np.float64), X.std(axis=0, dtype=np.float64)
    middle, spread = y.mean(dtype=np.float64), y.std(dtype=np.float64)
    X, X_test = (((part - mean) / scale).astype(np.float32) for part in (X, X_test))
    return Dataset(X, (y - middle) / spread, X_test, (y_test - middle) / spread)


CASES = {
    "covtype": Case(_covtype, C=32, gamma=32),
    "covtype7": Case(lambda rows: _covtype(rows, classes=7), C=32, gamma=32),
    "ijcnn1": Case(lambda rows: load("ijcnn1"), C=32, gamma=2),
    "a9a": Case(lambda rows: load("a9a"), C=1, gamma=2**-3),
    "mnist": Case(_mnist, C=1, gamma=2**-21),
    "cod-rna": Case(lambda rows: load("cod-rna"), C=32, gamma=8),
    # Rows of length 1: squared distances are between 0 and 2, and gamma=1 neither flattens nor isolates them.
    "news20": Case(_news20, C=1, gamma=1),
    "cadata": Case(_cadata, C=5, gamma=0.1),
}


# -------------------------------------------------------------------------------------------------------- the programs


def _svc(**parameters: Any) -> Any:
    from sklearn.svm import SVC

    return SVC(**parameters)


def _intelex(**parameters: Any) -> Any:
    return importlib.import_module("sklearnex.svm").SVC(**parameters)


def _parablock(name: str, **parameters: Any) -> Any:
    import parablock

    return getattr(parablock, name)(random_state=0, **{"memory_limit": "8GB", **parameters})


def _nystroem(C: float, gamma: float, n_components: int) -> Any:
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    landmarks = Nystroem(gamma=gamma, n_components=n_components, random_state=0)
    return make_pipeline(landmarks, LogisticRegression(C=C, max_iter=1000))


def _kernel_ridge(C: float, gamma: float) -> Any:
    from sklearn.kernel_ridge import KernelRidge

    return KernelRidge(kernel="rbf", alpha=1 / (2 * C), gamma=gamma)


@dataclass(frozen=True)
class Program:
    """How to make an estimator, with which parameters beside C and gamma, and which dual objective it has."""

    make: Callable[..., Any]
    parameters: dict[str, Any] = field(default_factory=dict)
    loss: str | None = "hinge"


PROGRAMS = {
    "parablock": Program(_parablock, {"name": "KernelSVC", "tol": TOL}),
    "intelex": Program(_intelex, {"tol": TOL, "cache_size": 4000}),
    "scikit-learn": Program(_svc, {"tol": TOL, "cache_size": 2000}),
    "parablock logistic": Program(_parablock, {"name": "KernelLogisticRegression", "tol": TOL}, loss=None),
    "Nystroem": Program(_nystroem, {"n_components": 1000}, loss=None),
    "parablock ridge": Program(
        _parablock, {"name": "KernelRidge", "tol": TOL, "fit_intercept": False}, loss="squared error"
    ),
    "scikit-learn ridge": Program(_kernel_ridge, loss="squared error"),
}
