"""The paper's theorem: linear convergence, for every solver of blocks that it names, measured."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import numpy as np

from benchmarks.paper.courses import Request
from benchmarks.paper.figures import plain_ticks, pyplot, save
from benchmarks.paper.rates import EXACT, Rate, best_objective, constants, run_algorithm_1
from benchmarks.paper.solvers import BLACK, BLUE, GREEN, VERMILION
from benchmarks.running import markdown_table, note
from parablock import BlockSolver
from parablock.datasets import load_covtype_sample

ROWS = {"small": 400, "full": 4_000}
BLOCKS = 8
SMALL, WORDS = 1e-6, "1e-6"  # relative error that iterations are counted to
POINTS = 120  # of a curve that are kept
ITERATIONS = {"exact": 1500, "least": 6000, "blocks": 600, "constants": 200}  # at most, of each kind of run
KERNELS: dict[str, dict[str, Any]] = {
    "positive definite (rbf)": {"C": 1.0, "kernel": "rbf", "gamma": 2.0},
    "semi-definite (linear)": {"C": 0.1, "kernel": "linear"},
}
LOSSES = ("hinge", "logistic")
PARTITIONS = ("kmeans", "tree", "random")
MANY = {"small": (2, 4, 8, 16, 32), "full": (2, 4, 8, 16, 32, 64, 128)}
COLOURS = {"greedy": VERMILION, "random": BLUE, "cyclic": GREEN}
WIDTHS = {"greedy": 5.0, "random": 3.0, "cyclic": 1.2}  # of those that are exact, whose lines are nearly the same
PARTITION_STYLES = {"kmeans": (VERMILION, "o"), "tree": (BLACK, "s"), "random": (BLUE, "^")}


def run(request: Request) -> None:
    scale, store = request.place.scale, request.store("rate")
    if not request.draw:
        rows = request.rows or ROWS[scale]
        X, y, _, _ = load_covtype_sample()
        X, y = X[:rows].astype(np.float64), np.where(y[:rows] > 0, 1, -1)
        found: dict[str, Any] = {"rows": rows, "solvers": _solvers(X, y), "blocks": _blocks(X, y, MANY[scale])}
        found["constants"] = {
            partition: [
                asdict(constants(X, y, 1.0, 2.0, count, partition, ITERATIONS["constants"]))
                for count in MANY[scale][:4]
            ]
            for partition in ("kmeans", "random")
        }
        store.save({"scale": scale, "seed": 0, **found})
    stored = store.load()
    _draw(stored, store.figure)
    store.publish("\n\n".join((f"![Measured rates]({store.figure.name})", *_tables(stored))))


def block_solvers(size: int) -> dict[str, tuple[BlockSolver, int]]:
    """Every solver that the paper's corollary names, exact and with the least that it asks, and iterations to make."""
    found = {}
    for choice, least, words in (("greedy", 1, "1 step"), ("random", 1, "1 step"), ("cyclic", size, "1 epoch")):
        found[f"{choice}, exact"] = replace(EXACT, choice=choice), ITERATIONS["exact"]
        few = BlockSolver(choice, fraction=0.0, floor=0.0, max_updates=least)
        found[f"{choice}, {words}"] = few, ITERATIONS["least"]
    return found


def _solvers(X: np.ndarray, y: np.ndarray) -> list[dict[str, Any]]:
    found = []
    for kernel_name, kernel in KERNELS.items():
        for loss in LOSSES:
            optimum = best_objective(X, y, loss, kernel)
            for name, (solver, iterations) in block_solvers(len(y) // BLOCKS).items():
                options = {"partition": "tree", "n_blocks": BLOCKS}
                rate = Rate.of(run_algorithm_1(X, y, loss, kernel, iterations, solver, **options), optimum)
                found.append({"kernel": kernel_name, "loss": loss, "solver": name, **_kept(rate)})
                note(f"{kernel_name}, {loss}, {name}: rate {rate.rate}, {rate.iterations} iterations")
    return found


def _blocks(X: np.ndarray, y: np.ndarray, many: tuple[int, ...]) -> list[dict[str, Any]]:
    found, most = [], ITERATIONS["blocks"]
    for kernel_name, kernel in KERNELS.items():
        optimum = best_objective(X, y, "hinge", kernel)
        for partition in PARTITIONS:
            for count in many:
                objectives = run_algorithm_1(X, y, "hinge", kernel, most, EXACT, partition=partition, n_blocks=count)
                rate = Rate.of(objectives, optimum)
                found.append({"kernel": kernel_name, "partition": partition, "blocks": count, **_kept(rate)})
                note(f"{kernel_name}, {partition}, {count} blocks: rate {rate.rate}, {rate.until(SMALL)} to {WORDS}")
    return found


def _kept(rate: Rate) -> dict[str, Any]:
    """What a file keeps of a run: of its errors those that a figure with a logarithmic axis can show."""
    times = np.unique(np.geomspace(1, max(1, rate.iterations), POINTS).astype(int))[: rate.iterations]
    errors = [[int(time), rate.errors[time - 1]] for time in times]
    return {**asdict(rate), "until": rate.until(SMALL), "errors": errors}


def _tables(stored: dict[str, Any]) -> tuple[str, ...]:
    solvers = markdown_table(
        (
            "kernel",
            "loss",
            "solver of the blocks",
            "rate an iteration",
            "straightness",
            f"iterations to {WORDS}",
        ),
        [(one["kernel"], one["loss"], one["solver"], *_rate(one), _until(one)) for one in stored["solvers"]],
    )
    blocks = markdown_table(
        (
            "hinge loss, blocks solved exactly",
            "partition",
            "blocks",
            "rate an iteration",
            "straightness",
            f"to {WORDS}",
        ),
        [(one["kernel"], one["partition"], str(one["blocks"]), *_rate(one), _until(one)) for one in stored["blocks"]],
    )
    bounds = markdown_table(
        ("partition", "blocks k", "largest block B", "kappa", "L", "1 - the bound's rate", "1 - the worst rate"),
        [
            (partition, str(one["blocks"]), str(one["largest_block"]), f"{one['kappa']:.3g}")
            + (f"{one['lipschitz']:.3g}", f"{1 - one['promised']:.1e}", f"{1 - one['worst']:.1e}")
            for partition, many in stored["constants"].items()
            for one in many
        ],
    )
    return f"{stored['rows']} rows of covtype, {BLOCKS} blocks of a tree.", solvers, blocks, bounds


def _rate(one: dict[str, Any]) -> tuple[str, str]:
    return ("too few", "-") if one["rate"] is None else (f"{one['rate']:.4f}", f"{one['fit']:.3f}")


def _until(one: dict[str, Any]) -> str:
    return f"over {one['iterations']}" if one["until"] is None else str(one["until"])


def _draw(stored: dict[str, Any], path: Any) -> None:
    figure, grid = pyplot().subplots(2, 3, figsize=(11, 7), layout="constrained")
    for row, kernel in enumerate(KERNELS):
        for column, loss in enumerate(LOSSES):
            axes = grid[row, column]
            axes.set(xscale="log", yscale="log", xlabel="iteration", ylabel="relative error", title=f"{kernel}, {loss}")
            for one in stored["solvers"]:
                if (one["kernel"], one["loss"]) == (kernel, loss) and one["errors"]:
                    choice, how = one["solver"].split(", ")
                    line, width = ("-", WIDTHS[choice]) if how == "exact" else (":", 1.4)
                    axes.plot(*zip(*one["errors"]), line, color=COLOURS[choice], label=one["solver"], linewidth=width)
            plain_ticks(axes.xaxis)
        _draw_blocks(grid[row, 2], kernel, [one for one in stored["blocks"] if one["kernel"] == kernel])
    for column, title in ((0, "solver of the blocks"), (2, "partition")):
        handles, labels = grid[0, column].get_legend_handles_labels()
        place = "outside lower left" if column == 0 else "outside lower right"
        figure.legend(handles, labels, loc=place, ncols=3, title=title, alignment="left")
    save(figure, path)


def _draw_blocks(axes: Any, kernel: str, runs: list[dict[str, Any]]) -> None:
    """Iterations over the number of blocks; a hollow marker where there were not enough of them."""
    for partition, (colour, marker) in PARTITION_STYLES.items():
        own = [one for one in runs if one["partition"] == partition]
        many = [one["blocks"] for one in own]
        iterations = [one["until"] or one["iterations"] for one in own]
        axes.plot(many, iterations, color=colour, marker=marker, label=partition)
        over = [(one["blocks"], one["iterations"]) for one in own if one["until"] is None]
        if over:
            axes.plot(*zip(*over), linestyle="none", marker=marker, color=colour, markerfacecolor="white")
    axes.set(xscale="log", yscale="log", xlabel="blocks k", ylabel=f"iterations to {WORDS} (hollow: more)")
    axes.set_title(f"{kernel}, hinge")
    axes.set_xticks(sorted({one["blocks"] for one in runs}))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.minorticks_off()
    plain_ticks(axes.yaxis)
