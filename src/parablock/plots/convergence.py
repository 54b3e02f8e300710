"""How a fit converged."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from parablock.callbacks.log_file import read_log
from parablock.monitor import Record
from parablock.plots.style import INK, curve, dress, legend, level, need_matplotlib, panels

_ROUNDING = 1e-12  # differences of objectives that are smaller are chance
_ACROSS = {"seconds": "seconds since the start of the fit, without compilation", "iteration": "outer iteration"}


class ConvergenceDisplay:
    """Objective error, duality gap, violation and, where there is one, validation score, against time and iteration.

    The objective error is how far the dual objective is from the optimum, as a share of it. Where the optimum is not
    given, the last objective stands for it, and the last point has no error to show.

    Parameters
    ----------
    history : sequence of Record
        As in ``history_``.
    tol : float, optional
        Where training ends.
    optimum : float, optional
        The optimal objective in the sign of ``history_``, if it is known from elsewhere.
    scores : sequence of float, optional
        One for every record.
    score_name : str, default="validation score"
    title : str, optional

    Attributes
    ----------
    figure_ : matplotlib Figure
    axes_ : ndarray of matplotlib Axes
        A row for each of error, violation and score; a column for each of seconds and iteration.
    lines_ : dict
        The lines by name: "objective", "gap", "violation", "score"; one a column.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from parablock import KernelSVC
    >>> from parablock.datasets import load_covtype_sample
    >>> from parablock.plots import ConvergenceDisplay
    >>> X, y, _, _ = load_covtype_sample()
    >>> model = KernelSVC(C=32, gamma=32, n_blocks=4, random_state=0).fit(X[:1000], y[:1000])
    >>> display = ConvergenceDisplay.from_estimator(model)
    >>> display.axes_.shape
    (2, 2)
    """

    def __init__(
        self,
        history: Sequence[Record],
        *,
        tol: float | None = None,
        optimum: float | None = None,
        scores: Sequence[float] | None = None,
        score_name: str = "validation score",
        title: str | None = None,
    ) -> None:
        self.history, self.tol, self.optimum = history, tol, optimum
        self.scores, self.score_name, self.title = scores, score_name, title

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        optimum: float | None = None,
        scores: Sequence[float] | None = None,
        x: str = "both",
        ax: Any = None,
    ) -> ConvergenceDisplay:
        """Draw the history of a fitted estimator.

        Parameters
        ----------
        estimator : fitted estimator
        optimum : float, optional
            The optimal objective in the sign of ``history_``, if it is known from elsewhere.
        scores : sequence of float, optional
            One for every record of ``history_``, such as ``EarlyStopping.scores_``; where one of the estimator's
            callbacks has them, those by default.
        x : {"both", "seconds", "iteration"}, default="both"
        ax : matplotlib Axes, optional
            As many as there are panels; a new figure by default.
        """
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(estimator, "history_")
        if scores is None:
            known = [getattr(callback, "scores_", None) for callback in getattr(estimator, "_skl_callbacks", [])]
            scores = next((one for one in known if one and len(one) == len(estimator.history_)), None)
        title = _headline(type(estimator).__name__, estimator.stop_reason_, estimator.history_)
        display = cls(estimator.history_, tol=estimator.tol, optimum=optimum, scores=scores, title=title)
        return display.plot(x=x, ax=ax)

    @classmethod
    def from_log(
        cls,
        path: str | os.PathLike[str],
        *,
        run: int = -1,
        optimum: float | None = None,
        x: str = "both",
        ax: Any = None,
    ) -> ConvergenceDisplay:
        """Draw a run of a log that `JSONLog` wrote, also one that still goes on.

        Parameters
        ----------
        path : str or path
        run : int, default=-1
            Which of the runs in the file.
        optimum, x, ax
            As in `from_estimator`.
        """
        log = read_log(path, run)
        reason = "still going on, or killed," if log.end is None else str(log.end.get("reason"))
        title = _headline(str(log.start.get("estimator")), reason, log.history)
        scores = log.scores if log.has_scores else None
        return cls(log.history, tol=log.tol, optimum=optimum, scores=scores, title=title).plot(x=x, ax=ax)

    def plot(self, *, x: str = "both", ax: Any = None) -> ConvergenceDisplay:
        """Draw.

        Parameters
        ----------
        x : {"both", "seconds", "iteration"}, default="both"
        ax : matplotlib Axes, optional
            As many as there are panels; a new figure by default.
        """
        need_matplotlib(type(self).__name__)
        if x != "both" and x not in _ACROSS:
            raise ValueError(f"x must be 'both', 'seconds' or 'iteration', got {x!r}.")
        if not self.history:
            raise ValueError("There is no iteration to draw: the fit ended before its first one.")
        columns = list(_ACROSS) if x == "both" else [x]
        rows = 2 if self.scores is None else 3
        self.figure_, self.axes_ = panels(ax, rows, len(columns), size=(5.2, 2.7))
        self.lines_: dict[str, list[Any]] = {}
        for name, column in zip(columns, self.axes_.T, strict=True):
            across = [getattr(record, name) for record in self.history]
            self._draw_error(column[0], across, _ACROSS[name])
            self._draw_violation(column[1], across, _ACROSS[name])
            if self.scores is not None:
                dress(column[2], self.score_name.capitalize(), _ACROSS[name], self.score_name)
                self._keep("score", curve(column[2], across, self.scores, 3, self.score_name))
            for axes in column:
                axes.set_xlim(left=0)
        if ax is None and self.title:
            self.figure_.suptitle(self.title, x=0.01, ha="left", fontsize="large", fontweight="bold", color=INK)
        return self

    def _draw_error(self, axes: Any, across: Sequence[float], label: str) -> None:
        objective = np.array([record.objective for record in self.history])
        best = float(np.nanmin(objective)) if self.optimum is None else self.optimum
        error = (objective - best) / abs(best) if best != 0 else objective - best
        error[error < _ROUNDING] = np.nan
        name = "objective error" if self.optimum is not None else "objective above the last one"
        dress(axes, "Distance from the optimum", label, "share of the objective", log="y")
        self._keep("gap", curve(axes, across, [record.relative_gap for record in self.history], 0, "duality gap"))
        self._keep("objective", curve(axes, across, error.tolist(), 1, name))
        legend(axes)

    def _draw_violation(self, axes: Any, across: Sequence[float], label: str) -> None:
        dress(axes, "Largest violation of the optimality conditions", label, "violation", log="y")
        self._keep("violation", curve(axes, across, [record.violation for record in self.history], 2, "violation"))
        checks = [
            (place, record.violation)
            for place, record in zip(across, self.history, strict=True)
            if record.kind == "check" and record.violation > 0
        ]
        if checks:
            axes.plot(
                *zip(*checks, strict=True), "o", markersize=9, markerfacecolor="none", markeredgecolor=INK,
                label="check of resting rows",
            )  # fmt: skip
            legend(axes)
        if self.tol is not None:
            level(axes, self.tol, f"tol = {self.tol:g}", side="left")  # where the violation is still high

    def _keep(self, name: str, line: Any) -> None:
        self.lines_.setdefault(name, []).append(line)


def _headline(name: str, reason: str, history: Sequence[Record]) -> str:
    if not history:
        return f"{name}: {reason}"
    last = history[-1]
    plural = "" if last.iteration == 1 else "s"
    return f"{name}: {reason} after {last.iteration} iteration{plural}, {last.seconds:.3g} s"
