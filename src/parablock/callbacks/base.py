"""What callbacks of this library have in common."""

from __future__ import annotations

from typing import Any

from parablock.callbacks.support import run_of
from parablock.callbacks.watching import Run


class Callback:
    """Base of callbacks that watch fits of parablock's estimators: override what you need of the first three methods.

    It follows scikit-learn's protocol for callbacks, and works with versions of scikit-learn that do not have it yet.
    One instance may watch several fits, also at the same time: what it remembers of one belongs into
    ``run.memory(self)``.

    Examples
    --------
    >>> from parablock import KernelSVC
    >>> from parablock.callbacks import Callback
    >>> class Enough(Callback):
    ...     def iterated(self, run):
    ...         return run.record.relative_gap < 0.1 and run.stop("The gap was small enough")
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1]
    >>> model = KernelSVC().set_callbacks(Enough()).fit(X, y)
    >>> model.stop_reason_
    'converged'
    """

    def started(self, run: Run) -> None:
        """A fit begins."""

    def iterated(self, run: Run) -> bool | None:
        """An iteration has ended, and ``run.record`` tells of it; True ends the fit in good order."""

    def ended(self, run: Run) -> None:
        """The fit has ended; ``run.ended`` is False where that was by an error."""

    # --------------------------------------------------------------------------------- scikit-learn's protocol

    def setup(self, estimator: Any, context: Any) -> None:
        self.started(run_of(estimator))

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        pass

    def on_fit_task_end(self, estimator: Any, context: Any) -> bool:
        return context.task_name == "iteration" and bool(self.iterated(run_of(estimator)))

    def teardown(self, estimator: Any, context: Any) -> None:
        self.ended(run_of(estimator))
