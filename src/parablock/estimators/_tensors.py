"""Checks of torch tensors that stay on their device: what scikit-learn checks of arrays, in its words."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from parablock.tensors import TensorRows


def check_tensor(estimator: Any, X: TensorRows, y: Any, reset: bool, **options: Any) -> Any:
    """X checked where it is, and y as arrays are; gives back what `validate_data` does."""
    name = type(estimator).__name__
    if len(X.shape) != 2:
        raise ValueError(
            f"Expected 2D array, got {len(X.shape)}D tensor of shape {X.shape} instead. Reshape your data either using "
            "X.reshape(-1, 1) if it has a single feature or X.reshape(1, -1) if it contains a single sample."
        )
    # Sizes, names of features and y: an array of X's shape that has no memory stands for it.
    stand_in = np.broadcast_to(np.zeros((), X.dtype), X.shape)
    checked = validate_data(estimator, stand_in, y, reset=reset, dtype=X.dtype, ensure_all_finite=False, **options)
    if not X.finite():
        raise ValueError(
            f"Input X contains NaN or infinity. {name} does not accept missing values: leave these samples out, or "
            "fill them in, for instance with torch.nan_to_num."
        )
    if estimator.kernel == "chi2" and X.smallest() < 0:
        raise negative_for_chi2()
    return X if isinstance(y, str) else (X, checked[1])


def negative_for_chi2() -> ValueError:
    return ValueError(
        "Negative values in data passed to the chi2 kernel, which compares counts or frequencies: scale the features "
        "to be non-negative, or choose another kernel."
    )
