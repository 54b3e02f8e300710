"""Rows like kdda's: the first step on as many as there is room for, and what the whole would take on 32 machines.

The paper (32 machines): 1,832 s and 85.51 % after the first step, 12,700 s and 86.31 % at relative error 1e-3.
"""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.paper.courses import Request
from benchmarks.paper.kdda_like import kdda_like
from benchmarks.paper.problems import SETS
from benchmarks.paper.solvers import TOL
from benchmarks.rivals import FirstStep, Parablock
from benchmarks.running import markdown_table, note
from parablock import plan
from parablock.planning.forecast import duration, size

ROWS = {"small": (10_000, 20_000, 40_000, 80_000, 160_000), "full": (50_000, 100_000, 200_000, 400_000)}
TEST_ROWS = 5_000
WARM_UP_ROWS = 500  # are fitted first: what is compiled or loaded once is not counted
BLOCK = 2_500  # rows of a block; those of the paper's 32 machines had 262,742
MOST_ROWS_TO_THE_END = {"small": 40_000, "full": 100_000}
WHOLE: dict[str, Any] = {"rows": 8_407_752, "features": 20_216_830, "nonzeros": 36.0, "ranks": 32, "watched": 1.0}
PAPER = {"first step": 1_832, "whole fit": 12_700}


def run(request: Request) -> None:
    scale, store = request.place.scale, request.store("kdda")
    if not request.draw:
        sizes = (request.rows,) if request.rows else ROWS[scale]
        measured: list[dict[str, Any]] = []
        _measure(WARM_UP_ROWS, to_the_end=True)
        for rows in sizes:
            measured.append(_measure(rows, to_the_end=rows <= MOST_ROWS_TO_THE_END[scale]))
            store.save({"scale": scale, "seed": 0, "measured": measured, "forecasts": _forecasts(measured)})
    stored = store.load()
    store.publish("\n\n".join((_measured_table(stored["measured"]), _forecast_table(stored["forecasts"]))))


def _measure(rows: int, to_the_end: bool) -> dict[str, Any]:
    """The first step with local prediction; and where asked for, the whole fit."""
    start = time.perf_counter()
    (X, y), (X_test, y_test) = kdda_like(rows), kdda_like(TEST_ROWS, test=True)
    made = time.perf_counter() - start
    X, X_test = without_unused_features(X, X_test)
    one = SETS["kdda-like"]
    found: dict[str, Any] = {"rows": rows, "features_in_use": X.shape[1], "seconds_to_make": made}
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


def without_unused_features(X: sp.csr_matrix, X_test: sp.csr_matrix) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """Both with the features that some row has; nothing that is computed from them changes."""
    used = np.unique(np.concatenate((X.indices, X_test.indices)))
    narrow = [
        sp.csr_matrix((rows.data, np.searchsorted(used, rows.indices), rows.indptr), shape=(rows.shape[0], len(used)))
        for rows in (X, X_test)
    ]
    return narrow[0], narrow[1]


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
