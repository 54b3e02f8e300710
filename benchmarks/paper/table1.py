"""Table 1: the data sets as the paper has them, and as they are used here."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.paper.courses import Request
from benchmarks.paper.problems import SETS, PaperSet, load_problem
from benchmarks.running import markdown_table, note


def run(request: Request) -> None:
    store = request.store("table1")
    if not request.draw:
        store.save({"scale": request.place.scale, "seed": 0, "sets": {name: _look(name, request) for name in SETS}})
    found = store.load()["sets"]
    store.publish(_table({name: found[name] for name in SETS}))


def _look(name: str, request: Request) -> dict[str, Any] | None:
    """What the rows are like; None where they are not there."""
    start = time.perf_counter()
    try:
        problem = load_problem(name, request.place.scale, request.rows)
    except FileNotFoundError as error:
        note(f"{name}: {error}")
        return None
    X = problem.X
    nonzeros = X.nnz if sp.issparse(X) else np.count_nonzero(X)
    found = {
        "rows": X.shape[0],
        "test_rows": problem.X_test.shape[0],
        "features": X.shape[1],
        "features_in_use": len(np.unique(X.indices)) if sp.issparse(X) else int(X.any(axis=0).sum()),
        "nonzeros_a_row": nonzeros / X.shape[0],
        "positive": float(np.mean(problem.y > 0)),
        "seconds": time.perf_counter() - start,
    }
    note(f"{name}: {found}")
    return found


def _table(found: dict[str, dict[str, Any] | None]) -> str:
    head = (
        "the paper's set", "training rows", "test rows", "features", "C, gamma", "here", "training rows", "test rows",
        "features", "of them in use", "non-zeros a row", "label +1", "C, gamma", "how it differs",
    )  # fmt: skip
    return markdown_table(head, [_row(SETS[name], one) for name, one in found.items()])


def _row(one: PaperSet, found: dict[str, Any] | None) -> tuple[str, ...]:
    paper = (one.stands_for, *(f"{count:,}" for count in one.paper), one.paper_parameters)
    parameters = f"2^{np.log2(one.C):.0f}, 2^{np.log2(one.gamma):.0f}"
    if found is None:
        return (*paper, one.name, *["missing"] * 6, parameters, one.remark)
    counts = (f"{found[name]:,}" for name in ("rows", "test_rows", "features", "features_in_use"))
    return (
        *paper,
        one.name,
        *counts,
        f"{found['nonzeros_a_row']:.1f}",
        f"{found['positive']:.1%}",
        parameters,
        one.remark,
    )
