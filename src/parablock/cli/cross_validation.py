"""Cross-validation as in svm-train."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, StratifiedKFold

from parablock.datasets import DataError


def cross_validate(model: Any, X: Any, y: np.ndarray, folds: int, seed: int) -> list[str]:
    """What svm-train -v says of predictions for rows that were held out."""
    if folds > len(y):
        raise DataError(f"{folds} folds were asked for; there are {len(y)} rows")
    kind = StratifiedKFold if is_classifier(model) else KFold
    predicted = np.empty(len(y), dtype=y.dtype if is_classifier(model) else np.float64)
    for train, test in kind(folds, shuffle=True, random_state=seed).split(X, y):
        columns = train if model.kernel == "precomputed" else slice(None)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Interrupted", ConvergenceWarning)
            fitted = clone(model).fit(X[train][:, columns], y[train])
        if fitted.stop_reason_ == "interrupted":
            raise KeyboardInterrupt  # a usable model of one fold is of no use
        predicted[test] = fitted.predict(X[test][:, columns])
    if is_classifier(model):
        return [f"Cross Validation Accuracy = {100 * np.mean(predicted == y):g}%"]
    correlation = np.corrcoef(predicted, y)[0, 1] ** 2
    return [
        f"Cross Validation Mean squared error = {np.mean((predicted - y) ** 2):g}",
        f"Cross Validation Squared correlation coefficient = {correlation:g}",
    ]
