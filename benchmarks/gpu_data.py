"""Sections of `benchmarks.gpu` about where rows of data are: sparse on the card, or in host memory."""

from __future__ import annotations

from functools import partial
from typing import Any

from benchmarks.cases import CASES
from benchmarks.running import best_seconds, markdown_table, note
from parablock import KernelSVC

LARGER_LIMIT = "96MB"  # less than covtype's rows; a quarter of it is for those that are on the card
LARGER_ITERATIONS = 8


def sparse() -> dict[str, Any]:
    """CSR data, which the card holds dense (a9a) or sparse (news20), against the CPU."""
    found: dict[str, Any] = {}
    lines = []
    for name in ("a9a", "news20"):
        case = CASES[name]
        X, y, X_test, y_test = case.data(None)
        options: dict[str, Any] = {"C": case.C, "gamma": case.gamma, "tol": 1e-3, "random_state": 0}
        KernelSVC(device="cuda", **options).fit(X, y)  # Triton compiles
        told = []
        for device in ("cpu", "cuda"):
            model = KernelSVC(device=device, **options).fit(X, y)
            told.append(
                {
                    "objective": model.dual_objective_,
                    "seconds": model.history_[-1].seconds,
                    "predicting": best_seconds(partial(model.predict, X_test)),
                    "accuracy": float(model.score(X_test, y_test)),
                }
            )
        cpu, gpu = told
        found[name] = {"cpu": cpu, "gpu": gpu}
        difference = abs(gpu["objective"] / cpu["objective"] - 1)
        lines.append(
            (f"{name}, {X.shape[0]:,} x {X.shape[1]:,}", f"{cpu['objective']:.4f}", f"{difference:.1e}")
            + tuple(f"{one[what]:.2f}" for what in ("seconds", "predicting") for one in told)
            + tuple(f"{one['accuracy']:.2%}" for one in told)
        )
        note(str(lines[-1]))
    head = ("CSR data", "dual objective, CPU", "GPU: relative difference", "fit, s: CPU", "GPU")
    print(markdown_table((*head, "predict, s: CPU", "GPU", "test accuracy, CPU", "GPU"), lines))
    return {"sparse": found}


def larger() -> dict[str, Any]:
    """The same iterations with all rows on the card, and with rows that stay in host memory and pass by in tiles."""
    X, y, X_test, y_test = CASES["covtype"].data(None)
    found: dict[str, Any] = {}
    lines = []
    for place, limit in (("card", None), ("host", LARGER_LIMIT)):
        model = KernelSVC(
            C=32.0, gamma=32.0, max_iter=LARGER_ITERATIONS, device="cuda", memory_limit=limit, random_state=0
        ).fit(X, y)
        accuracy, seconds = float(model.score(X_test, y_test)), model.history_[-1].seconds
        found[place] = {"objective": model.dual_objective_, "seconds": seconds, "accuracy": accuracy}
        difference = abs(model.dual_objective_ / found["card"]["objective"] - 1)
        lines.append(
            (place, limit or "-", f"{model.dual_objective_:.4f}", f"{difference:.1e}", f"{seconds:.2f}")
            + (f"{accuracy:.2%}",)
        )
        note(str(lines[-1]))
    head = (f"covtype, {X.nbytes / 2**20:.0f} MB: rows are on the", "memory_limit")
    what = (f"dual objective after {LARGER_ITERATIONS} iterations", "relative difference", "seconds", "test accuracy")
    print(markdown_table((*head, *what), lines))
    return {"larger": found}
