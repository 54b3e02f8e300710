"""What an estimator needs to have callbacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from parablock.callbacks.contexts import callback_support
from parablock.callbacks.watching import Run, Watch
from parablock.engines import Engine

_HOOKS = ("setup", "on_fit_task_begin", "on_fit_task_end", "teardown")


class CallbackSupport:
    """An estimator that tells callbacks how its fits go on, by scikit-learn's protocol."""

    def set_callbacks(self, *callbacks: Any) -> Self:
        """Set the callbacks that hear of every iteration of every fit from now on; without any, remove them.

        Parameters
        ----------
        *callbacks : callback instances
            Of `parablock.callbacks`, of scikit-learn (from version 1.9 on), or your own: anything with the methods
            ``setup``, ``on_fit_task_begin``, ``on_fit_task_end`` and ``teardown`` of scikit-learn's protocol.

        Returns
        -------
        self

        Examples
        --------
        >>> from parablock import KernelSVC
        >>> from parablock.callbacks import ProgressBar, TimeLimit
        >>> model = KernelSVC().set_callbacks(ProgressBar(), TimeLimit(60))
        """
        for callback in callbacks:
            missing = [hook for hook in _HOOKS if not callable(getattr(callback, hook, None))]
            if isinstance(callback, type) or missing:
                what = f"the class {callback.__name__}" if isinstance(callback, type) else repr(callback)
                raise TypeError(
                    f"Callbacks must be instances with the methods {', '.join(_HOOKS)}; got {what}"
                    f"{f', which has no {missing[0]}' if missing else ', of which an instance is needed'}. See "
                    "parablock.callbacks.Callback."
                )
        if callbacks:
            self._skl_callbacks = list(callbacks)
        else:
            vars(self).pop("_skl_callbacks", None)
        return self

    def __getstate__(self) -> dict[str, Any]:
        state: Any = super().__getstate__()
        # A copy of an estimator that is being fitted is not being fitted.
        return {name: value for name, value in state.items() if name != "_callback_watch"}

    def __sklearn_clone__(self) -> Any:
        clone = super().__sklearn_clone__()  # type: ignore[misc]
        if "_skl_callbacks" in vars(self):  # which scikit-learn sees to from version 1.9 on
            clone._skl_callbacks = self._skl_callbacks
        return clone


def fit_watched(
    estimator: Any,
    engine: Engine,
    X: Any,
    y: Any,
    sample_weight: Any,
    fit: Callable[[], None],
    kind: type[Watch] = Watch,
) -> None:
    """Fit, while the callbacks of the estimator watch: those of the first machine, where there are several."""
    if not engine.agree(hasattr(estimator, "_skl_callbacks")):
        fit()
        return
    support, managed = callback_support()
    watch = kind(estimator, engine, X, y, sample_weight)

    def watched(estimator: Any) -> None:
        engine.checked(lambda: watch.open(support))
        fit()
        engine.checked(watch.close)

    estimator._callback_watch = watch
    try:
        managed(watched)(estimator)
    finally:
        del estimator._callback_watch


def watch_of(estimator: Any) -> Watch | None:
    """What watches the fit that the estimator is in, if anything does."""
    return vars(estimator).get("_callback_watch")


def run_of(estimator: Any) -> Run:
    """The fit that an estimator is in, for its callbacks.

    Parameters
    ----------
    estimator : estimator
        What the hooks of a callback are given.

    Returns
    -------
    Run

    Examples
    --------
    >>> from parablock import KernelSVC
    >>> from parablock.callbacks import run_of
    >>> class Shapes:
    ...     def setup(self, estimator, context):
    ...         self.shape = run_of(estimator).shape
    ...     def on_fit_task_begin(self, estimator, context):
    ...         pass
    ...     def on_fit_task_end(self, estimator, context):
    ...         pass
    ...     def teardown(self, estimator, context):
    ...         pass
    >>> shapes = Shapes()
    >>> model = KernelSVC().set_callbacks(shapes).fit([[0.0], [1.0], [2.0]], [0, 0, 1])
    >>> shapes.shape
    (3, 1)
    """
    watch = watch_of(estimator) if hasattr(estimator, "__dict__") else None
    if watch is None:
        raise TypeError(
            f"{type(estimator).__name__} is not being fitted with callbacks. Set a callback of parablock on a "
            "parablock estimator itself (also where that is part of a pipeline or a search), not on what contains it."
        )
    return watch.run
