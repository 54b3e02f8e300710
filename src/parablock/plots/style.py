"""How the pictures look: colours that everyone can tell apart, thin grids, no boxes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

# Okabe and Ito's palette, which is told apart with every kind of colour vision; and a marker to go with each.
BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000",
)  # fmt: skip
COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK)
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
INK, GRID = "#333333", "#E3E3E3"


def need_matplotlib(name: str) -> None:
    """Raise an error with advice where it is not installed."""
    try:
        import matplotlib.pyplot  # noqa: F401
    except ImportError as error:
        raise ImportError(f"{name} needs matplotlib: pip install 'parablock[plot]'.") from error


def panels(ax: Any, rows: int, columns: int, size: tuple[float, float]) -> tuple[Any, np.ndarray]:
    """A figure and its axes, shape (rows, columns): new ones, or those that are given."""
    if ax is None:
        from matplotlib import pyplot

        width, height = size
        figure, axes = pyplot.subplots(
            rows, columns, figsize=(width * columns, height * rows), layout="constrained", squeeze=False
        )
        return figure, axes
    axes = np.atleast_1d(np.asarray(ax, dtype=object)).ravel()
    if len(axes) != rows * columns:
        raise ValueError(
            f"ax must be None or {rows * columns} matplotlib axes for this picture ({rows} rows of {columns}), got "
            f"{len(axes)}."
        )
    return axes[0].figure, axes.reshape(rows, columns)


def dress(axes: Any, title: str, x: str, y: str, log: str = "") -> None:
    """Labels, grid and spines of one panel; `log` names the logarithmic axes."""
    if "x" in log:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(_plainly)
        axes.xaxis.set_minor_formatter(_plainly)
    if "y" in log:
        axes.set_yscale("log")
    axes.set_title(title, loc="left", fontsize="medium", color=INK)
    axes.set_xlabel(x, color=INK)
    axes.set_ylabel(y, color=INK)
    axes.grid(which="major", color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(which="both", colors=INK, length=0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(GRID)


def _plainly(value: float, place: int) -> str:
    """A tick's number, where it is not too near to others on a logarithmic axis."""
    return f"{value:g}" if f"{value:e}"[0] in "125" else ""


def curve(axes: Any, x: Sequence[float], y: Sequence[float], number: int, label: str, **more: Any) -> Any:
    """A line with markers in the colour of that number; on a logarithmic axis without what has no logarithm."""
    across, up = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    shown = np.isfinite(across) & np.isfinite(up)
    if axes.get_yscale() == "log":
        shown &= up > 0
    if axes.get_xscale() == "log":
        shown &= across > 0
    style = {"color": COLOURS[number % len(COLOURS)], "marker": MARKERS[number % len(MARKERS)]}
    every = max(1, int(shown.sum()) // 40)  # markers that touch tell nothing
    (line,) = axes.plot(
        across[shown], up[shown], label=label, linewidth=1.8, markersize=4.5, markevery=every, **{**style, **more}
    )
    return line


def level(axes: Any, value: float, text: str, side: str = "right") -> None:
    """A dashed line across, with a word on it."""
    axes.axhline(value, color=INK, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
    place, away = (1, -4) if side == "right" else (0, 4)
    axes.annotate(
        text, (place, value), xycoords=("axes fraction", "data"), xytext=(away, 4), textcoords="offset points",
        ha=side, fontsize="small", color=INK,
    )  # fmt: skip


def legend(axes: Any) -> None:
    axes.legend(frameon=False, fontsize="small", labelcolor=INK)
