"""The paper's scaling figure: relative error against seconds x workers, for several numbers of workers.

Workers are MPI ranks of one thread on this machine (`benchmarks.scaling`): it should have a core for each.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks import scaling
from benchmarks.paper.courses import Request
from benchmarks.paper.figures import LEAST_ERROR, plain_ticks, pyplot, save
from benchmarks.paper.solvers import BLACK, BLUE, GREEN, ORANGE, VERMILION
from benchmarks.running import markdown_table, note

RANKS = {"small": (1, 2), "full": (1, 2, 4, 8, 16)}
ROWS = {"small": 50_000, "full": 100_000}
STYLES = ((BLACK, "o"), (VERMILION, "s"), (BLUE, "^"), (GREEN, "D"), (ORANGE, "v"))


def run(request: Request) -> None:
    scale, store = request.place.scale, request.store("scaling")
    if not request.draw:
        rows = request.rows or ROWS[scale]
        results = []
        for ranks in RANKS[scale]:
            results.append(scaling.run(ranks, rows, "replicated", "auto", 1e-3))
            note(f"{ranks} ranks: {results[-1]['history'][-1][0]:.2f} s")
            store.save({"scale": scale, "seed": 0, "rows": rows, "results": results})
    stored = store.load()
    results = stored["results"]
    optimum = min(record[1] for result in results for record in result["history"])
    _draw(results, optimum, store.figure)
    text = f"covtype, {stored['rows']:,} rows, with intercept; blocks regrouped, as parablock does by default.\n\n"
    figure = f"![Relative error against seconds x workers]({store.figure.name})\n\n"
    store.publish(text + figure + _table(results, optimum))


def _table(results: list[dict[str, Any]], optimum: float) -> str:
    lines, single = [], scaling.reached(results[0]["history"], optimum)
    for result in results:
        seconds, ranks = scaling.reached(result["history"], optimum), result["ranks"]
        shown = ("-", "-", "-")
        if seconds is not None and single is not None:
            shown = (
                f"{seconds:.2f}",
                f"{seconds * ranks:.2f}",
                f"{single * results[0]['ranks'] / (seconds * ranks):.0%}",
            )
        iterations = sum(record[6] != "check" for record in result["history"])
        sent = sum(record[2] for record in result["history"]) / 1e6
        lines.append((str(ranks), *shown, str(iterations), f"{sent:.1f}", f"{100 * result['accuracy']:.2f}"))
    head = (
        "workers", f"seconds to {scaling.ERROR:g}", "seconds x workers", "efficiency", "iterations to tol=1e-3",
        "MB sent", "test accuracy, %",
    )  # fmt: skip
    return markdown_table(head, lines)


def _draw(results: list[dict[str, Any]], optimum: float, path: Any) -> None:
    figure, axes = pyplot().subplots(figsize=(6, 4), layout="constrained")
    for result, (colour, marker) in zip(results, STYLES, strict=False):
        seconds, objective = np.array([record[:2] for record in result["history"]]).T
        error = np.maximum((objective - optimum) / abs(optimum), LEAST_ERROR)
        label = f"{result['ranks']} worker{'s' if result['ranks'] > 1 else ''}"
        axes.plot(seconds * result["ranks"], error, color=colour, marker=marker, markersize=4, label=label)
    axes.axhline(scaling.ERROR, color="0.6", linewidth=0.8)
    axes.set(xscale="log", yscale="log", xlabel="seconds x workers", ylabel="relative error of the dual objective")
    plain_ticks(axes.xaxis)
    axes.legend()
    save(figure, path)
