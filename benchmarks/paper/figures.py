"""Figures of courses: lines over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.paper.courses import Measured
from benchmarks.paper.solvers import Solver
from benchmarks.paper.tracing import ERROR

LABELS = {"error": "relative error of the dual objective", "accuracy": "test accuracy, %"}
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
    figure, grid = plt.subplots(
        len(rows), len(measured), figsize=size, squeeze=False, sharex="col", layout="constrained"
    )
    for column, (name, one) in enumerate(measured.items()):
        for row, what in enumerate(rows):
            axes = grid[row, column]
            for key, course in one.courses.items():
                if not solvers[key].series:
                    _draw(
                        axes, solvers[key], course.errors(one.optimum) if what == "error" else course.accuracies(), what
                    )
            if what == "accuracy":
                _draw_series(axes, one, solvers)
                zoom(axes, one)
            else:
                axes.set_yscale("log")
                axes.axhline(ERROR, color="0.6", linewidth=0.8)
            axes.set(xscale="log", ylabel=LABELS[what], title=name if row == 0 else "")
        grid[-1, column].set_xlabel("seconds")
        plain_ticks(grid[-1, column])
    figure.suptitle(title, fontweight="bold")
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


def _draw_series(axes: Any, one: Measured, solvers: Mapping[str, Solver]) -> None:
    """Solvers that differ by a number only: one line through their ends, with the number beside each."""
    for series in dict.fromkeys(solver.series for solver in solvers.values() if solver.series):
        members = [solvers[key] for key in one.courses if solvers[key].series == series]
        ends = [(one.courses[key].seconds, one.courses[key].last.accuracy or 0.0) for key in one.courses
                if solvers[key].series == series]  # fmt: skip
        if not members:
            continue
        _draw(axes, replace(members[0], label=f"{series} (number of features)"), ends, "accuracy")
        for solver, (seconds, accuracy) in zip(members, ends, strict=True):
            axes.annotate(
                f"{solver.number}", (seconds, 100 * accuracy), xytext=(4, -9), textcoords="offset points",
                fontsize=7, color=solver.colour, annotation_clip=True,
            )  # fmt: skip


def plain_ticks(axes: Any) -> None:
    """Numbers instead of powers below a logarithmic axis, and no more than fit beside each other."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axes.get_xlim()
    between = (1.0, 2.0, 5.0) if high / low < 200 else (1.0,)
    axes.xaxis.set_major_locator(LogLocator(10, subs=between))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())


def zoom(axes: Any, one: Measured) -> None:
    """Accuracies far below the best ones would press all others together."""
    best = 100 * max(value for course in one.courses.values() for _, value in course.accuracies())
    low, high = axes.get_ylim()
    axes.set_ylim(max(low, best - 25), min(high, best + 2))


def save(figure: Any, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    pyplot().close(figure)
