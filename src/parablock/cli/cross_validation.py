"""Cross-validation as in svm-train."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.utils.metaestimators import _safe_split

from parablock.cli.scaling import Scaler
from parablock.datasets import DataError


def cross_validate(model: Any, X: Any, y: np.ndarray, folds: int, seed: int, scale: Scaler) -> list[str]:
    """What svm-train -v says of predictions for rows that were held out. How each fold scales is told by the rows that
    it trains with."""
    if folds > len(y):
        raise DataError(f"{folds} folds were asked for; there are {len(y)} rows")
    kind = StratifiedKFold if is_classifier(model) else KFold
    predicted = np.empty(len(y), dtype=y.dtype if is_classifier(model) else np.float64)
    for train, test in kind(folds, shuffle=True, random_state=seed).split(X, y):
        predicted[test] = _predicted(clone(model), X, y, train, test, scale)
    if is_classifier(model):
        return [f"Cross Validation Accuracy = {100 * np.mean(predicted == y):g}%"]
    correlation = np.corrcoef(predicted, y)[0, 1] ** 2
    return [
        f"Cross Validation Mean squared error = {np.mean((predicted - y) ** 2):g}",
        f"Cross Validation Squared correlation coefficient = {correlation:g}",
    ]


def _predicted(model: Any, X: Any, y: np.ndarray, train: np.ndarray, test: np.ndarray, scale: Scaler) -> np.ndarray:
    """For the rows of a fold, by a model of the others. An interrupted fit, of which scikit-learn knows nothing, ends
    all folds."""
    X_train, y_train = _safe_split(model, X, y, train)
    X_test, _ = _safe_split(model, X, y, test, train)
    model._scaling = scale(X_train)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Interrupted", ConvergenceWarning)
        model.fit(X_train, y_train)
    if model.stop_reason_ == "interrupted":
        raise KeyboardInterrupt
    predicted: np.ndarray = model.predict(X_test)
    return predicted
