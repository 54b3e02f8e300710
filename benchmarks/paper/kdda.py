"""Rows like kdda's: the first step, and what the whole would take on 32 machines.

At the small scale the first step has blocks of k-means, and whole fits stand beside it; at the full scale it has blocks
of a tree, of up to all 8,407,752 rows (`kdda_blocks`).

The paper (32 machines): 1,832 s and 85.51 % after the first step, 12,700 s and 86.31 % at relative error 1e-3.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np

from benchmarks.paper import kdda_blocks
from benchmarks.paper.courses import Request
from benchmarks.paper.kdda_blocks import ALL_ROWS, PAPER_SECONDS
from benchmarks.paper.kdda_like import kdda_like
from benchmarks.paper.problems import SETS
from benchmarks.paper.solvers import TOL
from benchmarks.rivals import FirstStep, Parablock
from benchmarks.running import markdown_table, note
from parablock import plan
from parablock.planning.forecast import duration, size

ROWS = {"small": (10_000, 20_000, 40_000, 80_000, 160_000), "full": (1_000_000, ALL_ROWS)}
TEST_ROWS = {"small": 5_000, "full": 50_000}
WARM_UP_ROWS = 500  # are fitted first: what is compiled or loaded once is not counted
BLOCK = 2_500  # rows of a block; those of the paper's 32 machines had 262,742
MOST_ROWS_TO_THE_END = 40_000
WHOLE: dict[str, Any] = {"rows": ALL_ROWS, "features": 20_216_830, "nonzeros": 36.0, "ranks": 32, "watched": 1.0}
PAPER = {"first step": PAPER_SECONDS, "whole fit": 12_700}


def run(request: Request) -> None:
    scale, store = request.place.scale, request.store("kdda")
    if not request.draw:
        _measure(WARM_UP_ROWS, to_the_end=True)
        finished: list[dict[str, Any]] = []
        for rows in (request.rows,) if request.rows else ROWS[scale]:
            for found in _course(request, rows):
                measured = [*finished, found]
                store.save({"scale": scale, "seed": 0, "measured": measured, "forecasts": _forecasts(measured)})
            finished = measured
    stored = store.load()
    table = _measured_table if scale == "small" else kdda_blocks.table
    tables = [table(stored["measured"])]
    if stored["forecasts"]:
        tables.append(_forecast_table(stored["forecasts"]))
    store.publish("\n\n".join(tables))


def _course(request: Request, rows: int) -> Iterator[dict[str, Any]]:
    """What is known of the first step on so many rows, as soon as it is."""
    if request.place.scale == "full":
        limit = np.inf if request.limit is None else request.limit
        return kdda_blocks.course(rows, TEST_ROWS["full"], limit, request.place.device)
    return iter([_measure(rows, to_the_end=rows <= MOST_ROWS_TO_THE_END)])


def _measure(rows: int, to_the_end: bool) -> dict[str, Any]:
    """The first step with local prediction; and where asked for, the whole fit."""
    start = time.perf_counter()
    (X, y), (X_test, y_test) = kdda_like(rows), kdda_like(TEST_ROWS["small"], test=True)
    found: dict[str, Any] = {"rows": rows, "seconds_to_make": time.perf_counter() - start}
    found["features_in_use"] = kdda_blocks.features_in_use(X, X_test)
    one = SETS["kdda-like"]
    found["larger_class"] = float(max(np.mean(y_test > 0), np.mean(y_test < 0)))
    blocks = max(2, round(rows / BLOCK))
    cpu = time.process_time()
    first = FirstStep(one.C, one.gamma, blocks=blocks, tol=TOL).fit(X, y)
    found["first_step"] = {"blocks": blocks, "seconds": first.seconds_, "cpu_seconds": time.process_time() - cpu}
    found["first_step"]["accuracy"] = first.score(X_test, y_test)
    note(f"{rows} rows: {found}")
    if to_the_end:
        whole = Parablock(one.C, one.gamma, options={"tol": TOL}).fit(X, y)
        support = len(whole.estimator_.support_)
        found["whole"] = {"seconds": whole.seconds_, "accuracy": whole.score(X_test, y_test), "support": support}
        found["whole"]["iterations"] = whole.estimator_.n_iter_
        note(f"{rows} rows: {found['whole']}")
    return found


def _forecasts(measured: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """`parablock.plan` for all rows of kdda, with the support vectors that the measured fits let expect."""
    fits = [(one["rows"], one["whole"]["support"]) for one in measured if "whole" in one]
    if not fits:
        return []
    rows, support = np.array(fits, dtype=float).T
    power = float(np.polyfit(np.log(rows), np.log(support), 1)[0]) if len(fits) > 1 else 1.0
    expected = int(min(WHOLE["rows"], support[-1] * (WHOLE["rows"] / rows[-1]) ** power))
    found = []
    for threads in (1, 16):
        for what, iterations in (("first step", 1), ("whole fit", None)):
            asked = {**WHOLE, "threads": threads, "memory_limit": "32GB", "tol": 1.0, "support": expected}
            forecast = plan(**asked, iterations=iterations)
            found.append({"what": what, "power": power, **asdict(forecast)})
    return found


def _measured_table(measured: list[dict[str, Any]]) -> str:
    head = (
        "kdda-like rows", "features in use", "larger class, %", "blocks", "first step, s", "CPU s", "accuracy, %",
        "whole fit, s", "accuracy, %", "support vectors", "iterations",
    )  # fmt: skip
    lines = []
    for one in measured:
        first, whole = one["first_step"], one.get("whole")
        rest: tuple[str, ...] = ("-",) * 4
        if whole is not None:
            rest = (f"{whole['seconds']:.1f}", f"{100 * whole['accuracy']:.2f}", f"{whole['support']:,}")
            rest += (str(whole["iterations"]),)
        lines.append(
            (f"{one['rows']:,}", f"{one['features_in_use']:,}", f"{100 * one['larger_class']:.2f}")
            + (
                str(first["blocks"]),
                f"{first['seconds']:.1f}",
                f"{first['cpu_seconds']:.1f}",
                f"{100 * first['accuracy']:.2f}",
                *rest,
            )
        )
    return markdown_table(head, lines)


def _forecast_table(forecasts: list[dict[str, Any]]) -> str:
    head = (
        "forecast, 8,407,752 rows on 32 machines", "threads each", "support vectors", "iterations", "memory a machine",
        "time", "the paper's",
    )  # fmt: skip
    lines = [
        (one["what"], str(one["threads"]), f"{one['support_vectors']:,}", str(one["iterations"]))
        + (size(sum(one["memory_per_rank"].values())), duration(sum(one["seconds"].values())))
        + (duration(PAPER[one["what"]]),)
        for one in forecasts
    ]
    return markdown_table(head, lines)
