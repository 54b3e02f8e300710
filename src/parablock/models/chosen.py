"""The machine to write: of a search over parameters what it has chosen, of a pipeline its machine with its scaling."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted

from parablock.models.files import ModelFileError
from parablock.models.pipelines import folded, is_pipeline


def chosen(model: Any) -> Any:
    """Of a fitted search, such as KernelSVCCV or GridSearchCV, its `best_estimator_`; of a pipeline of scalers its last
    step, which scales rows itself; any other model as it is."""
    if is_pipeline(model):
        check_is_fitted(model)
        return folded(model, chosen(model[-1]))
    if not hasattr(model, "refit"):
        return model
    check_is_fitted(model)
    if not hasattr(model, "best_estimator_"):
        raise ModelFileError(
            f"This {type(model).__name__} was fitted with refit=False: it has scores, but no best_estimator_ to write. "
            "Fit it again with refit=True."
        )
    return chosen(model.best_estimator_)
