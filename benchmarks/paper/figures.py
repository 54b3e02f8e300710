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

LABELS = {"error": "relative error of the dual objective", "accuracy": "test error, %"}
LEAST_ERROR = 1e-6  # smaller ones are drawn here: the optimum is not known better
WORST = 10.0  # times the least test error; what is worse is not shown
APART = 0.025  # of the width of a panel: markers that are nearer to each other than this would hide the line


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
    alone = len(measured) == 1
    size = (8.0 if alone else 0.6 + 3.7 * len(measured), 0.9 + 2.9 * len(rows))
    figure, grid = plt.subplots(
        len(rows), len(measured), figsize=size, squeeze=False, sharex="col", layout="constrained"
    )
    for column, (name, one) in enumerate(measured.items()):
        for row, what in enumerate(rows):
            axes = grid[row, column]
            axes.set(xscale="log", yscale="log", ylabel=LABELS[what], title=name if row == 0 else "")
            lines = _lines(one, solvers, what)
            if not lines:  # none of these solvers has a dual objective
                continue
            low, high = _shown(lines, what)
            if what == "accuracy":
                axes.set_ylim(low, high)
                axes.yaxis.set_inverted(True)  # better is higher, as in the paper
            else:
                axes.axhline(ERROR, color="0.6", linewidth=0.8)
            _set_width(axes, lines, high)
            for solver, points, numbers in lines:
                _draw(axes, solver, points, every=bool(numbers))
                _annotate(axes, solver, points, numbers, high)
        grid[-1, column].set_xlabel("seconds")
        for axes in grid[:, column]:
            plain_ticks(axes.xaxis)
            if axes.get_ylabel() == LABELS["accuracy"]:
                plain_ticks(axes.yaxis)
    figure.suptitle(title, fontweight="bold")
    # What has no dual objective is in the accuracy panels only, so the legend is of all panels together.
    entries = {label: handle for axes in grid.flat for handle, label in zip(*axes.get_legend_handles_labels())}
    place = "outside right upper" if alone else "outside lower center"
    figure.legend(entries.values(), entries.keys(), loc=place, ncols=2 * len(measured) - 1)
    save(figure, path)


Line = tuple[Solver, np.ndarray, list[int]]  # a solver, its points (seconds, value), and a number beside each, or none


def _lines(one: Measured, solvers: Mapping[str, Solver], what: str) -> list[Line]:
    """What is drawn in a panel; solvers that differ by a number only are one line through their ends."""
    lines: list[Line] = []
    series: dict[str, list[str]] = {}
    for key, course in one.courses.items():
        if solvers[key].series:
            series.setdefault(solvers[key].series, []).append(key)
            continue
        points = course.errors(one.optimum) if what == "error" else _failures(course.accuracies())
        if points and (what == "accuracy" or solvers[key].dual):
            seconds, values = np.array(points).T
            lines.append((solvers[key], np.array([seconds, np.maximum(values, LEAST_ERROR)]), []))
    if what == "accuracy":
        for name, keys in series.items():
            solver = replace(solvers[keys[0]], label=f"{name} (number of features)")
            ends = _failures([(one.courses[key].seconds, one.courses[key].last.accuracy or 0.0) for key in keys])
            lines.append((solver, np.array(ends).T, [solvers[key].number for key in keys]))
    return lines


def _failures(accuracies: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    return [(seconds, 100 * (1 - accuracy)) for seconds, accuracy in accuracies]


def _shown(lines: Sequence[Line], what: str) -> tuple[float, float]:
    """The least and the largest value that a panel shows."""
    values = np.concatenate([points[1] for _, points, _ in lines])
    least = values.min()
    return (0.9 * least, min(1.1 * values.max(), WORST * least)) if what == "accuracy" else (least, values.max())


def _set_width(axes: Any, lines: Sequence[Line], high: float) -> None:
    """Wide enough for what is shown, and no wider."""
    seconds = np.concatenate([points[0][points[1] <= high] for _, points, _ in lines])
    axes.set_xlim(0.8 * seconds.min(), 1.4 * seconds.max())


def _draw(axes: Any, solver: Solver, points: np.ndarray, every: bool) -> None:
    left, right = np.log(axes.get_xlim())
    marked, last = [], -np.inf
    for number, place in enumerate((np.log(points[0]) - left) / (right - left)):
        if every or place - last >= APART:
            marked.append(number)
            last = place
    style = {"color": solver.colour, "marker": solver.marker, "label": solver.label, "linewidth": 1.0}
    large = 9 if solver.marker in "*X" else 5
    axes.plot(*points, linestyle=solver.line or "none", markersize=large, markevery=marked, **style)


def _annotate(axes: Any, solver: Solver, points: np.ndarray, numbers: Sequence[int], high: float) -> None:
    from matplotlib.patheffects import withStroke

    for number, seconds, value in zip(numbers, *points, strict=False):
        if value < 0.97 * high:
            axes.annotate(
                f"{number:,}", (seconds, value), xytext=(-5, -3), textcoords="offset points", ha="right",
                fontsize=7, color=solver.colour, path_effects=[withStroke(linewidth=2, foreground="white")],
            )  # fmt: skip


def plain_ticks(axis: Any) -> None:
    """Numbers instead of powers on a logarithmic axis, and no more than fit beside each other."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = sorted(axis.get_view_interval())
    decades = np.log10(high / low)
    between = (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0) if decades < 1 else (1.0, 2.0, 5.0) if decades < 2.3 else (1.0,)
    axis.set_major_locator(LogLocator(10, subs=between))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def save(figure: Any, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    pyplot().close(figure)
