"""scikit-learn's base classes, with types: scikit-learn has none, and what inherits from a class without types may have
any attribute as far as mypy can tell."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from numbers import Integral
from typing import Any, TypeVar

from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval

from parablock.devices.cpu.threads import MOST_THREADS
from parablock.large_numbers import fits_float, short_number

MYPY = False  # mypy takes it for True; other checkers may have types of scikit-learn from elsewhere
if MYPY:
    from typing import Self

    import numpy as np

    class BaseEstimator:
        n_features_in_: int
        feature_names_in_: np.ndarray

        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self, **params: Any) -> Self: ...
        def get_metadata_routing(self) -> Any: ...
        def set_fit_request(self, *, sample_weight: bool | str | None = "$UNCHANGED$") -> Self: ...
        def set_score_request(self, *, sample_weight: bool | str | None = "$UNCHANGED$") -> Self: ...
        @classmethod
        def _get_param_names(cls) -> list[str]: ...
        def _validate_params(self) -> None: ...
        def __sklearn_tags__(self) -> Any: ...
        def __sklearn_clone__(self) -> Self: ...
        def __getstate__(self) -> dict[str, Any]: ...

    class ClassifierMixin:
        def score(self, X: Any, y: Any, sample_weight: Any = None) -> float: ...

    class RegressorMixin:
        def score(self, X: Any, y: Any, sample_weight: Any = None) -> float: ...

else:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

Method = TypeVar("Method", bound=Callable[..., Any])


THREADS = [Interval(Integral, None, -1, closed="right"), Interval(Integral, 1, MOST_THREADS, closed="both")]


def validated(fit: Method) -> Method:
    """A `fit` before which the parameters are checked against `_parameter_constraints`."""
    checked = _fit_context(prefer_skip_nested_validation=True)(fit)

    @wraps(fit)
    def wherever(self: Any, *arguments: Any, **options: Any) -> Any:
        _refuse_large_numbers(self)
        return checked(self, *arguments, **options)

    return wherever  # type: ignore[return-value]


def _refuse_large_numbers(estimator: BaseEstimator) -> None:
    """Which are inside of every interval that has no end, and cannot be computed with."""
    for name, value in estimator.get_params(deep=False).items():
        for number in value.values() if isinstance(value, dict) else (value,):
            if not fits_float(number):
                raise ValueError(
                    f"The {name!r} parameter of {type(estimator).__name__} must be at most 1.7e308, the largest number "
                    f"that can be computed with. Got {short_number(number)} instead."
                )


__all__ = ["THREADS", "BaseEstimator", "ClassifierMixin", "RegressorMixin", "validated"]
