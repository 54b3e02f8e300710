"""What to do instead, for names and values that other libraries' machines know and these do not."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import TYPE_CHECKING, Any, NoReturn, Self

from sklearn.utils._param_validation import InvalidParameterError

from parablock.estimators._bases import BaseEstimator

_NAMES = {
    "alpha": "alpha is 1 / (2 C) here: pass C=1 / (2 * alpha).",
    "break_ties": "The largest decision of the classes wins, and ties are not broken otherwise: leave it out.",
    "cache_size": "cache_size=200 is memory_limit='200MB' here.",
    "decision_function_shape": "Decisions always have one column a class, as with 'ovr': leave it out.",
    "kernel_params": "Pass gamma, degree and coef0 by name, or a function of two sets of rows as kernel.",
    "nu": "Machines with nu are not offered: bound the support vectors by C, and by epsilon in regression.",
    "probability": "KernelLogisticRegression is trained for probabilities; sklearn.calibration.CalibratedClassifierCV "
    "fits them around a KernelSVC.",
    "shrinking": "Rows that do not move rest by themselves: leave it out.",
}
_SEARCHED = {"C": "Pass the values to try as Cs.", "gamma": "Pass the values to try as gammas."}
_VALUES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "device": (lambda value: "gpu" in str(value) or "cuda" in str(value), "device='cuda' is an NVIDIA GPU; the "
    "environment variable CUDA_VISIBLE_DEVICES chooses among several."),
    "engine": (lambda value: value == "dask", "For a Dask cluster pass engine=parablock.engines.DaskEngine(), or a "
    "Dask array or dataframe as X."),
    "loss": (lambda value: "log" in str(value), "The logistic loss is that of KernelLogisticRegression."),
    "max_iter": (lambda value: value == -1, "-1 is scikit-learn's word for no limit of updates of pairs. Here outer "
    "iterations are counted, one of them thousands of updates: leave it out, or pass a large number."),
    "n_jobs": (lambda value: value == 0, "There is nothing to compute with; None and -1 mean all cores."),
}  # fmt: skip


class Hints(BaseEstimator):
    """An estimator whose errors about parameters say what to do instead."""

    _own_hints: dict[str, str] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__init__" in vars(cls):
            cls.__init__ = _hinting(vars(cls)["__init__"])  # type: ignore[method-assign]

    def set_params(self, **params: Any) -> Self:
        try:
            return super().set_params(**params)
        except ValueError as error:
            raise ValueError(f"{error}{self._hint(params)}") from None

    def _validate_params(self) -> None:
        try:
            super()._validate_params()
        except InvalidParameterError as error:
            for name, (known, hint) in _VALUES.items():
                if f"The {name!r} parameter" in str(error) and known(getattr(self, name)):
                    raise InvalidParameterError(f"{error} {hint}") from None
            raise

    def _hint(self, names: Iterable[str]) -> str:
        hints = {**_NAMES, **self._own_hints}
        own = inspect.signature(type(self).__init__).parameters
        return "".join(f" {hints[name]}" for name in names if name in hints and name not in own)


class SearchHints(Hints):
    """The same of an estimator that chooses C and gamma."""

    _own_hints = _SEARCHED


def _hinting(init: Callable[..., None]) -> Callable[..., None]:
    @wraps(init)
    def __init__(self: Hints, *values: Any, **params: Any) -> None:
        try:
            init(self, *values, **params)
        except TypeError as error:
            if hint := self._hint(params):
                raise TypeError(f"{error}.{hint}") from None
            raise

    return __init__


class NotOffered:
    """In the place of a method that users of other libraries look for: there is no such attribute, and it says why."""

    def __init__(self, hint: str) -> None:
        self.hint = hint

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type) -> NoReturn:
        raise AttributeError(f"{owner.__name__!r} object has no attribute {self.name!r}. {self.hint}")


if TYPE_CHECKING:

    class WithoutProbabilities: ...

else:

    class WithoutProbabilities:
        """A classifier that has no `predict_proba`."""

        predict_proba = NotOffered(_NAMES["probability"])
        predict_log_proba = NotOffered(_NAMES["probability"])
