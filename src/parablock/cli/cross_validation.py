"""Cross-validation as in svm-train."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_predict

from parablock.datasets import DataError


def cross_validate(model: Any, X: Any, y: np.ndarray, folds: int, seed: int) -> list[str]:
    """What svm-train -v says of predictions for rows that were held out."""
    if folds > len(y):
        raise DataError(f"{folds} folds were asked for; there are {len(y)} rows")
    kind = StratifiedKFold if is_classifier(model) else KFold
    predicted = cross_val_predict(model, X, y, cv=kind(folds, shuffle=True, random_state=seed))
    if is_classifier(model):
        return [f"Cross Validation Accuracy = {100 * np.mean(predicted == y):g}%"]
    correlation = np.corrcoef(predicted, y)[0, 1] ** 2
    return [
        f"Cross Validation Mean squared error = {np.mean((predicted - y) ** 2):g}",
        f"Cross Validation Squared correlation coefficient = {correlation:g}",
    ]
