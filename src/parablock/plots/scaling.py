"""How training scales over processes."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from parablock.plots.style import INK, curve, dress, legend, level, need_matplotlib, panels

_GOAL = 1e-3


class ScalingDisplay:
    """The paper's figure: relative error of the dual objective against time x workers.

    There is a line for each number of workers. Lines that lie on each other mean that twice the workers take half the
    time.

    Parameters
    ----------
    runs : sequence of (int, sequence of (float, float))
        The number of workers, and seconds and objective (in the sign of ``history_``) of every iteration.
    optimum : float
        The optimal objective, in the same sign.
    goal : float or None, default=1e-3
        A relative error to draw a line at.

    Attributes
    ----------
    figure_ : matplotlib Figure
    ax_ : matplotlib Axes
    lines_ : list of matplotlib Line2D

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from parablock.plots import ScalingDisplay
    >>> one = [(1.0, -5.0), (2.0, -9.0), (4.0, -9.999)]
    >>> two = [(0.6, -5.0), (1.1, -9.0), (2.1, -9.999)]
    >>> display = ScalingDisplay([(1, one), (2, two)], optimum=-10.0).plot()
    >>> [line.get_label() for line in display.lines_]
    ['1 worker', '2 workers']
    """

    def __init__(
        self, runs: Sequence[tuple[int, Sequence[tuple[float, float]]]], optimum: float, *, goal: float | None = _GOAL
    ) -> None:
        self.runs, self.optimum, self.goal = runs, optimum, goal

    @classmethod
    def from_results(
        cls, results: str | os.PathLike[str] | Mapping[str, Any], *, goal: float | None = _GOAL, ax: Any = None
    ) -> ScalingDisplay:
        """Draw what ``python -m benchmarks.scaling`` has measured.

        Parameters
        ----------
        results : str, path or dict
            The file ``scaling.json``, or its content.
        goal : float or None, default=1e-3
            A relative error to draw a line at.
        ax : matplotlib Axes, optional
            A new figure by default.
        """
        try:
            content = results if isinstance(results, Mapping) else json.loads(Path(results).read_text("utf-8"))
            runs = [
                (int(run["ranks"]), [(float(record[0]), float(record[1])) for record in run["history"]])
                for run in content["results"]
            ]
            optimum = float(content["optimum"])
        except (KeyError, IndexError, TypeError, json.JSONDecodeError) as error:
            what = "The dictionary" if isinstance(results, Mapping) else f"{os.fspath(results)!r}"
            raise ValueError(
                f"{what} holds no results of benchmarks.scaling ({type(error).__name__}: {error}). They have 'optimum' "
                "and, in 'results', 'ranks' and 'history' of every run."
            ) from error
        return cls(runs, optimum, goal=goal).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> ScalingDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            A new figure by default.
        """
        need_matplotlib(type(self).__name__)
        self.figure_, axes = panels(ax, 1, 1, size=(7.0, 4.5))
        self.ax_ = axes[0, 0]
        title = "Relative error against work: the closer the lines, the better it scales"
        dress(self.ax_, title, "seconds × workers", "relative error of the dual objective", log="xy")
        self.lines_ = []
        for number, (workers, history) in enumerate(self.runs):
            seconds, objective = np.array(history, dtype=np.float64).reshape(-1, 2).T
            error = (objective - self.optimum) / abs(self.optimum)
            label = f"{workers} worker{'' if workers == 1 else 's'}"
            self.lines_.append(curve(self.ax_, (seconds * workers).tolist(), error.tolist(), number, label))
        if self.goal is not None:
            level(self.ax_, self.goal, f"{self.goal:g}")
        legend(self.ax_)
        self.ax_.title.set_color(INK)
        return self
