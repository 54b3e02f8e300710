"""Where callbacks hear from: scikit-learn's contexts from version 1.9 on, and as much of them as is needed before.

A fit is a tree of tasks. Each has a context, and the hooks of the callbacks are called with it.
"""

from __future__ import annotations

import inspect
import uuid
from collections.abc import Callable
from copy import copy
from datetime import UTC, datetime
from typing import Any

Decorator = Callable[[Callable[..., None]], Callable[..., None]]


def callback_support() -> tuple[Any, Decorator]:
    """What has ``_init_callback_context``, and the decorator of what is done under it: it tears callbacks down."""
    try:
        from sklearn.callback import CallbackSupportMixin, with_callbacks
    except ImportError:
        return OwnSupport, torn_down_after
    return CallbackSupportMixin, with_callbacks


class OwnContext:
    """A task: the fit, or one of its iterations. What scikit-learn calls CallbackContext, without meta-estimators."""

    def __init__(self, estimator: Any, task_name: str, task_id: int, max_subtasks: int | None, parent: Any) -> None:
        self.estimator_name = type(estimator).__name__
        self.task_name, self.task_id, self.max_subtasks = task_name, task_id, max_subtasks
        self.sequential_subtasks = True
        self.parent = parent
        self.root_uuid = uuid.uuid4() if parent is None else parent.root_uuid
        self.init_time = datetime.now(UTC)
        self.source_estimator_name = self.source_task_name = None
        self._estimator, self._count = estimator, 0

    def subcontext(self, task_name: str = "", max_subtasks: int | None = 0) -> OwnContext:
        self._count += 1
        return OwnContext(self._estimator, task_name, self._count - 1, max_subtasks, self)

    def call_on_fit_task_begin(self, **given: Any) -> OwnContext:
        self._call("on_fit_task_begin", **given)
        return self

    def call_on_fit_task_end(self, **given: Any) -> bool:
        return self._call("on_fit_task_end", **given)

    def _call(self, hook: str, estimator: Any, reconstruction_attributes: Any = None, **given: Any) -> bool:
        stop, model = False, None
        for callback in estimator._skl_callbacks:
            method = getattr(callback, hook)
            wanted = [p.name for p in inspect.signature(method).parameters.values() if p.kind == p.KEYWORD_ONLY]
            if "fitted_estimator" in wanted and model is None and reconstruction_attributes is not None:
                model = as_fitted(estimator, reconstruction_attributes())
            everything = {**given, "fitted_estimator": model}
            stop |= bool(method(estimator, self, **{name: everything[name] for name in wanted}))
        return stop


class OwnSupport:
    """What scikit-learn calls CallbackSupportMixin."""

    def _init_callback_context(self, task_name: str = "fit", max_subtasks: int | None = 0) -> OwnContext:
        context = OwnContext(self, task_name, 0, max_subtasks, None)
        self._callback_fit_ctx, self._skl_callbacks_to_teardown = context, []
        for callback in getattr(self, "_skl_callbacks", []):
            self._skl_callbacks_to_teardown.append(callback)
            callback.setup(self, context)
        return context


def torn_down_after(method: Callable[..., None]) -> Callable[..., None]:
    """The method, after which every callback that was set up is torn down, however it ends."""

    def managed(estimator: Any, *arguments: Any) -> None:
        try:
            method(estimator, *arguments)
        finally:
            context = vars(estimator).pop("_callback_fit_ctx", None)
            errors = []
            for callback in vars(estimator).pop("_skl_callbacks_to_teardown", []):
                try:
                    callback.teardown(estimator, context)
                except Exception as error:
                    errors.append(error)
            if errors:
                raise errors[0] if len(errors) == 1 else ExceptionGroup("Several callbacks failed at the end", errors)

    return managed


def as_fitted(estimator: Any, attributes: dict[str, Any]) -> Any:
    """A copy of the estimator with the attributes."""
    model = copy(estimator)
    vars(model).update(attributes)
    return model
