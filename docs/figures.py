"""The figures of docs/how-it-works.md and docs/index.md.

    python docs/figures.py             all of them, into docs/images/
    python docs/figures.py blocks      those that are named

Backgrounds are transparent and inks of a middle tone, so that each figure can be read on a light and on a dark page.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_rgba
from matplotlib.figure import Figure
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel

from parablock import KernelSVC
from parablock.datasets import load_covtype_sample

IMAGES = Path(__file__).parent / "images"
SQUARE = (-1.12, 1.12)
INK, FAINT = "#7b828d", "#9aa1ab"
BLUE, ORANGE, GREEN, RED, VIOLET = "#3f8ae0", "#ef8a17", "#2fa572", "#e05263", "#9467d6"
BLOCKS = [BLUE, ORANGE, GREEN, RED, VIOLET, "#17a9b8", "#c79a00", "#d760a8"]


def style() -> None:
    plt.rcParams.update(
        {
            "font.family": "DejaVu Sans",
            "font.size": 10,
            "text.color": INK,
            "axes.labelcolor": INK,
            "axes.edgecolor": FAINT,
            "axes.titlecolor": INK,
            "axes.titlesize": 11,
            "axes.titleweight": "bold",
            "axes.spines.top": False,
            "axes.spines.right": False,
            "xtick.color": INK,
            "ytick.color": INK,
            "legend.frameon": False,
            "legend.labelcolor": INK,
            "grid.color": INK,
            "grid.alpha": 0.18,
            "savefig.transparent": True,
            "savefig.dpi": 170,
            "savefig.bbox": "tight",
            "savefig.pad_inches": 0.08,
        }
    )


def two_rings(n: int = 1_200, seed: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Rows of two classes in the plane, wound around each other."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    turn = rng.uniform(0.6, 3.4, size=n) * np.pi
    radius = turn / (3.4 * np.pi)
    angle = turn + np.pi * y
    X = np.stack((radius * np.cos(angle), radius * np.sin(angle)), axis=1) + 0.028 * rng.normal(size=(n, 2))
    return X, y


def fitted(X: np.ndarray, y: np.ndarray, **parameters: Any) -> KernelSVC:
    """A machine that may have been told to stop early."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return KernelSVC(random_state=0, **parameters).fit(X, y)


def panels(count: int, width: float = 8.6, height: float = 3.1) -> tuple[Figure, list[Axes]]:
    figure, axes = plt.subplots(1, count, figsize=(width, height), layout="constrained")
    return figure, list(np.atleast_1d(axes))


def bare(axes: Axes, title: str) -> None:
    axes.set_title(title)
    axes.set_aspect("equal")
    axes.set_axis_off()


def dots(axes: Axes, X: np.ndarray, colours: Any, size: float = 9.0) -> None:
    axes.scatter(X[:, 0], X[:, 1], s=size, c=colours, linewidths=0)


def block_colours(labels: np.ndarray) -> list[str]:
    return [BLOCKS[label % len(BLOCKS)] for label in labels]


def boundary(axes: Axes, model: KernelSVC, x: tuple[float, float], y: tuple[float, float]) -> None:
    """Where the decision is 0, and where it is -1 and +1."""
    across, up = np.linspace(*x, 300), np.linspace(*y, 200)
    grid = np.stack(np.meshgrid(across, up), axis=-1)
    decision = model.decision_function(grid.reshape(-1, 2)).reshape(grid.shape[:2])
    tints = [to_rgba(BLUE, 0.16), to_rgba(ORANGE, 0.16)]
    axes.contourf(across, up, decision > 0, levels=[-0.5, 0.5, 1.5], colors=tints)
    axes.contour(across, up, decision, levels=[-1, 0, 1], colors=[INK], linestyles=["dotted", "solid", "dotted"],
                 linewidths=[0.9, 1.5, 0.9])  # fmt: skip


def idea() -> Figure:
    """The whole method in three pictures."""
    X, y = two_rings()
    model = fitted(X, y, C=10, gamma=20, n_blocks=8)
    classes = np.where(y == 1, ORANGE, BLUE)
    figure, (data, blocks, machine) = panels(3)
    dots(data, X, classes)
    bare(data, "rows of two classes")
    dots(blocks, X, block_colours(model.partition_.labels))
    bare(blocks, "blocks, solved side by side")
    boundary(machine, model, SQUARE, SQUARE)
    rest = np.setdiff1d(np.arange(len(X)), model.support_)
    dots(machine, X[rest], [to_rgba(FAINT, 0.35)], size=4)
    dots(machine, X[model.support_], classes[model.support_], size=14)
    bare(machine, "one exact machine")
    for axes in (data, blocks, machine):
        axes.set_xlim(SQUARE)
        axes.set_ylim(SQUARE)
    return figure


def blocks() -> Figure:
    """Neighbours in one block, or rows dealt out at random."""
    X, y = two_rings()
    figure, axes = panels(2, width=6.8, height=3.5)
    for place, partition in zip(axes, ("tree", "random")):
        made = fitted(X, y, C=10, gamma=20, n_blocks=8, partition=partition, max_iter=1).partition_
        dots(place, X, block_colours(made.labels), size=11)
        bare(place, f'partition="{partition}"')
        inside = f"{made.kernel_mass_inside:.0%} of the kernel's squared mass inside"
        place.text(0.5, -0.06, inside, transform=place.transAxes, ha="center", va="top")
    return figure


def kernel_matrix() -> Figure:
    """The same kernel matrix in the order of the file and block after block."""
    X, y = two_rings(320)
    partition = fitted(X, y, C=10, gamma=20, n_blocks=8).partition_
    K = np.sqrt(rbf_kernel(X, gamma=20))  # its root, so that small values can be seen too
    order = np.concatenate(partition.blocks)
    ink = LinearSegmentedColormap.from_list("ink", [to_rgba(BLUE, 0.0), to_rgba(BLUE, 1.0)])
    figure, (file, ordered) = panels(2, width=7.2, height=3.7)
    for axes, matrix, title in (
        (file, K, "in the order of the file"),
        (ordered, K[np.ix_(order, order)], "block after block"),
    ):
        axes.imshow(matrix, cmap=ink, vmin=0, vmax=1, interpolation="nearest")
        axes.set_title(title)
        axes.set_xticks([])
        axes.set_yticks([])
        for spine in axes.spines.values():
            spine.set_visible(True)
    start = 0
    for size, colour in zip(partition.sizes, BLOCKS):
        ordered.add_patch(plt.Rectangle((start, start), size, size, fill=False, edgecolor=colour, linewidth=1.8))
        start += size
    return figure


def step() -> Figure:
    """What the blocks expect of a common step, and what it brings."""
    X, y = two_rings()
    K, target = rbf_kernel(X, gamma=20), np.where(y == 1, 1.0, -1.0)
    figure, axes = panels(2, width=8.2, height=3.2)
    for place, partition in zip(axes, ("tree", "random")):
        first = fitted(
            X, y, C=10, gamma=20, n_blocks=8, partition=partition, fit_intercept=False, regroup=False, max_iter=1
        )
        beta = first.history_[0].step
        direction = np.zeros(len(X))
        direction[first.support_] = first.dual_coef_[0] / beta
        labels = first.partition_.labels
        inside = K * (labels[:, None] == labels)
        slope = -target @ direction
        along = np.linspace(0, 1.25, 200)
        expected, true = (along * slope + along**2 / 2 * (direction @ matrix @ direction) for matrix in (inside, K))
        scale = abs(expected.min())
        place.plot(along, expected / scale, color=FAINT, linestyle="--", label="what the blocks expect")
        place.plot(along, true / scale, color=BLUE, linewidth=2.2, label="what happens")
        best = beta * slope + beta**2 / 2 * (direction @ K @ direction)
        place.plot([beta], [best / scale], "o", color=ORANGE, markersize=8, zorder=5)
        place.annotate(f"line search: {beta:.2f}", (beta, best / scale), xytext=(12, -17), textcoords="offset points",
                       color=ORANGE, weight="bold")  # fmt: skip
        place.set_title(f'partition="{partition}"')
        place.set_xlabel("length of the common step")
        place.set_ylim(-1.12, 0.45)
        place.grid(True)
    axes[0].set_ylabel("change of the objective")
    axes[0].legend(loc="upper left", fontsize=9)
    return figure


def rest() -> Figure:
    """Which rows matter, and how few of them take part in an iteration."""
    X, y = make_moons(1_500, noise=0.2, random_state=0)
    model = fitted(X, y, C=30, gamma=0.4)
    margin = np.where(y == 1, 1, -1) * model.decision_function(X)
    support = np.isin(np.arange(len(X)), model.support_)
    near = ~support & (margin < 1.5)
    figure, (plane, chart) = panels(2, width=8.6, height=3.4)
    boundary(plane, model, (-1.75, 2.75), (-1.3, 1.8))
    for rows, colour, size, label in (
        (~support & ~near, to_rgba(FAINT, 0.5), 7, "far from the border: rest"),
        (near, GREEN, 10, "near it: watched"),
        (support, RED, 16, "support vectors"),
    ):
        plane.scatter(X[rows, 0], X[rows, 1], s=size, color=colour, linewidths=0, label=label)
    bare(plane, "")
    plane.legend(
        loc="upper center", bbox_to_anchor=(0.5, 0.02), ncols=1, fontsize=9, handletextpad=0.2, markerscale=1.4
    )

    X, y, _, _ = load_covtype_sample()
    covtype = fitted(X, y, C=32, gamma=32)
    iterations = [record for record in covtype.history_ if record.kind != "check"]
    turn = np.array([record.iteration for record in iterations])
    watched = np.array([record.watched for record in iterations]) / 1e3
    active = np.array([record.active for record in iterations]) / 1e3
    regrouped = np.array([record.kind != "bridge" for record in iterations])
    chart.fill_between(turn, watched, len(X) / 1e3, color=FAINT, alpha=0.22, linewidth=0)
    chart.fill_between(turn, 0, watched, color=GREEN, alpha=0.22, linewidth=0)
    chart.plot(turn[regrouped], active[regrouped], "o-", color=BLUE, markersize=4, linewidth=1.8)
    middle = turn[len(turn) // 2]
    chart.text(middle, (watched[len(turn) // 2] + len(X) / 1e3) / 2, "rest", ha="center", va="center", weight="bold")
    chart.text(middle, watched.min() * 0.78, "watched", color=GREEN, ha="center", va="center", weight="bold")
    chart.text(middle, active[regrouped][len(turn) // 4] * 0.62, "in blocks", color=BLUE, ha="center", weight="bold")
    chart.set_title(f"covtype, {len(X):,} rows")
    chart.set_xlabel("iteration")
    chart.set_ylabel("thousand rows")
    chart.set_xlim(turn[0], turn[-1])
    chart.set_ylim(0, len(X) / 1e3)
    return figure


def regrouping() -> Figure:
    """Fixed blocks beside fresh ones."""
    X, y, _, _ = load_covtype_sample()
    X, y = X[:8_000].astype(np.float64), y[:8_000]
    common = {"C": 32, "gamma": 32, "n_blocks": 8, "fit_intercept": False}
    best = fitted(X, y, **common, tol=1e-6).dual_objective_
    runs = (
        ("fixed random blocks", {"partition": "random", "regroup": False}, INK),
        ("fixed blocks of neighbours: the paper's Algorithm 1", {"regroup": False}, ORANGE),
        ("fresh blocks of what can still move: the default", {}, BLUE),
    )
    figure, (axes,) = panels(1, width=7.0, height=3.4)
    for label, parameters, colour in runs:
        model = fitted(X, y, **common, **parameters, max_iter=40, tol=1e-4)
        turns = [record for record in model.history_ if record.kind != "check"]
        error = np.maximum([(best + record.objective) / best for record in turns], 1e-9)
        axes.semilogy([record.iteration for record in turns], error, "o-", color=colour, markersize=3.5, label=label)
    axes.set_xlabel("iteration")
    axes.set_ylabel("relative error of the objective")
    axes.set_ylim(1e-8, 1)
    axes.grid(True)
    axes.legend(fontsize=9)
    return figure


FIGURES: dict[str, Callable[[], Figure]] = {
    "idea": idea,
    "blocks": blocks,
    "kernel-matrix": kernel_matrix,
    "step": step,
    "rest": rest,
    "regrouping": regrouping,
}


def main(names: list[str]) -> None:
    style()
    for name in names or FIGURES:
        figure = FIGURES[name]()
        figure.savefig(IMAGES / f"{name}.png", metadata={"Software": None})
        plt.close(figure)


if __name__ == "__main__":
    main(sys.argv[1:])
