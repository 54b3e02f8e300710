"""Figures of courses: lines over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.paper.courses import Measured
from benchmarks.paper.solvers import Solver

LEAST_ERROR = 1e-6  # smaller ones are drawn here: the optimum is not known better


def pyplot() -> Any:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    plt.rcParams.update({"font.size": 9, "axes.grid": True, "grid.color": "0.9", "legend.frameon": False})
    return plt


def draw_courses(
    measured: Mapping[str, Measured], solvers: Mapping[str, Solver], rows: Sequence[str], path: Path, title: str
) -> None:
    """A column of panels for each data set; rows are "error" and "accuracy", both over seconds."""
    plt = pyplot()
    size = (0.6 + 3.7 * len(measured), 0.9 + 2.9 * len(rows))
    figure, grid = plt.subplots(len(rows), len(measured), figsize=size, squeeze=False, layout="constrained")
    for column, (name, one) in enumerate(measured.items()):
        for row, what in enumerate(rows):
            axes = grid[row, column]
            for key, course in one.courses.items():
                _draw(axes, solvers[key], course.errors(one.optimum) if what == "error" else course.accuracies(), what)
            axes.set(xscale="log", title=name if row == 0 else None)
            axes.set_xlabel("seconds")
            axes.set_ylabel("relative error of the dual objective" if what == "error" else "test accuracy, %")
            if what == "error":
                axes.set_yscale("log")
            else:
                zoom(axes, one)
    figure.suptitle(title)
    # What has no dual objective is in the accuracy panels only, so the legend is of all panels together.
    entries = {label: handle for axes in grid.flat for handle, label in zip(*axes.get_legend_handles_labels())}
    figure.legend(entries.values(), entries.keys(), loc="outside right upper")
    save(figure, path)


def _draw(axes: Any, solver: Solver, points: Sequence[tuple[float, float]], what: str) -> None:
    if not points:
        return
    seconds, values = np.array(points).T
    values = np.maximum(values, LEAST_ERROR) if what == "error" else 100 * values
    style = {"color": solver.colour, "marker": solver.marker, "label": solver.label, "linewidth": 1.2}
    large = 9 if solver.marker in "*X" else 5
    axes.plot(seconds, values, linestyle=solver.line or "none", markersize=large, **style)


def zoom(axes: Any, one: Measured) -> None:
    """Accuracies far below the best ones would press all others together."""
    best = 100 * max(value for course in one.courses.values() for _, value in course.accuracies())
    low, high = axes.get_ylim()
    axes.set_ylim(max(low, best - 25), min(high, best + 2))


def save(figure: Any, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    pyplot().close(figure)
