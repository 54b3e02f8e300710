"""Of a search over parameters the model that it has chosen."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted

from parablock.models.files import ModelFileError


def chosen(model: Any) -> Any:
    """`best_estimator_` of a fitted search, such as KernelSVCCV or GridSearchCV; any other model as it is."""
    if not hasattr(model, "refit"):
        return model
    check_is_fitted(model)
    if not hasattr(model, "best_estimator_"):
        raise ModelFileError(
            f"This {type(model).__name__} was fitted with refit=False: it has scores, but no best_estimator_ to write. "
            "Fit it again with refit=True."
        )
    return model.best_estimator_
