"""`AutoKernelRegressor` and `AutoKernelClassifier` beside boosted trees and forests, on tables of 2,000 rows.

    python -m benchmarks.tables                                        # all tables, five splits, all peers: a day
    python -m benchmarks.tables --tables iris diabetes --splits 1      # some, with what comes with scikit-learn
    python -m benchmarks.tables --methods parablock                    # ours only; others' results are kept
    python -m benchmarks.tables --report                               # what has been measured so far

Each fit runs in a process of its own, and its result is written to a JSON file at once: a run can be stopped, and goes
on where it was. Peers take their defaults, on the same rows, and are left out where they are not installed. Tables are
looked for in the folder `tables` of the data folders (see `benchmarks.data`). Errors are shares of wrong classes, with
half a test row more, or root mean squared errors in units of the training targets' standard deviation. Where limits of
`LIMITS` are missed by what has been measured, the program ends with an error.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import rankdata
from sklearn import datasets, metrics

from benchmarks.data import folders
from benchmarks.running import RESULTS, machine, markdown_table, note, peak_megabytes, run_apart, seconds
from parablock.replacing import replacing

TABLES = (
    "airfoil", "concrete", "insurance", "segment", "cells", "ames", "churn", "ccpp", "compactiv", "wine_white",
    "phoneme", "nursery", "puma32h", "spambase", "magic", "marketing", "credit_card", "diamonds", "chicago",
    "optdigits",
)  # fmt: skip
BUNDLED = {
    "diabetes": (datasets.load_diabetes, "r"),
    "breast_cancer": (datasets.load_breast_cancer, "c"),
    "digits": (datasets.load_digits, "c"),
    "iris": (datasets.load_iris, "c"),
    "wine": (datasets.load_wine, "c"),
}
LOGARITHMS = ("ames", "diamonds", "insurance")  # of prices
ROWS, TEST_ROWS, SPLITS, SHARE = 2_000, 4_000, 5, 0.6
FEWEST_OF_A_CLASS = 10  # training rows: classes of fewer are left out
OURS = "parablock"
# Where all twenty tables have been measured on five splits: at least so many tables better, and this ratio of errors.
LIMITS = {"catboost": (17, 0.89)}
ESTIMATE = (0.93, 1.07)  # of the test error, geometric mean without nursery
TOO_DARK = ("nursery",)


class Split(NamedTuple):
    """Training and test rows; the task is "c" for classes, "r" for numbers."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    task: str


class Method(NamedTuple):
    """The package of a method, and the places of its regressor and classifier."""

    package: str
    regressor: str
    classifier: str
    options: Mapping[str, Any] = {}


METHODS = {
    OURS: Method("parablock", "parablock.AutoKernelRegressor", "parablock.AutoKernelClassifier"),
    "catboost": Method(
        "catboost", "catboost.CatBoostRegressor", "catboost.CatBoostClassifier",
        {"verbose": False, "allow_writing_files": False},
    ),
    "lightgbm": Method("lightgbm", "lightgbm.LGBMRegressor", "lightgbm.LGBMClassifier", {"verbose": -1}),
    "xgboost": Method("xgboost", "xgboost.XGBRegressor", "xgboost.XGBClassifier"),
    "histogram boosting": Method(
        "scikit-learn", "sklearn.ensemble.HistGradientBoostingRegressor",
        "sklearn.ensemble.HistGradientBoostingClassifier",
    ),
    "random forest": Method(
        "scikit-learn", "sklearn.ensemble.RandomForestRegressor", "sklearn.ensemble.RandomForestClassifier"
    ),
}  # fmt: skip


# --------------------------------------------------------------------------------------------------------------- data


def load_split(name: str, split: int, rows: int = ROWS) -> Split:
    """At most so many training rows (or 60 % of a smaller table), and at most 4,000 test rows."""
    X, y, task = load_table(name)

    def parts() -> tuple[np.ndarray, np.ndarray]:
        order, n = np.random.default_rng(split).permutation(len(X)), min(rows, int(SHARE * len(X)))
        return order[:n], order[n : n + TEST_ROWS]

    train, test = parts()
    if task == "c":
        labels, counts = np.unique(y[train], return_counts=True)
        kept = np.isin(y, labels[counts >= FEWEST_OF_A_CLASS])
        X, y = X[kept], np.unique(y[kept], return_inverse=True)[1]
        train, test = parts()
    else:
        y = np.log1p(y) if name in LOGARITHMS else y
        y = (y - y[train].mean()) / y[train].std()
    return Split(X[train], y[train], X[test], y[test], task)


def load_table(name: str) -> tuple[np.ndarray, np.ndarray, str]:
    """All rows, their labels or targets, and the task."""
    if name in BUNDLED:
        loader, task = BUNDLED[name]
        return *loader(return_X_y=True), task
    for folder in folders():
        path = folder / "tables" / f"{name}.npz"
        if path.is_file():
            with np.load(path) as arrays:
                return arrays["X"].astype(np.float64), arrays["y"], str(arrays["task"])
    raise FileNotFoundError(
        f"The table {name!r} is in no folder `tables` of {', '.join(map(str, folders()))}. Bundled tables: "
        f"{', '.join(BUNDLED)}."
    )


# ----------------------------------------------------------------------------------------------------------- one cell


def installed(names: Iterable[str]) -> list[str]:
    """Those methods that can be imported."""
    found = []
    for name in names:
        try:
            import_module(METHODS[name].regressor.rpartition(".")[0])
        except ImportError:
            note(f"{name} is left out: it is not installed")
        else:
            found.append(name)
    return found


def made(name: str, task: str, split: int) -> Any:
    """The estimator, with its defaults."""
    method = METHODS[name]
    module, _, kind = (method.regressor if task == "r" else method.classifier).rpartition(".")
    return getattr(import_module(module), kind)(random_state=split, **method.options)


def measure(name: str, table: str, split: int, rows: int) -> dict[str, Any]:
    """Errors, times and memory of one fit."""
    data = load_split(table, split, rows)
    some = np.random.default_rng(0).permutation(len(data.y))[:60]
    if len(np.unique(data.y[some])) > 1:
        made(name, data.task, split).fit(data.X[some], data.y[some]).predict(data.X[:5])  # what compiles, compiles
    model = made(name, data.task, split)
    took = seconds(lambda: model.fit(data.X, data.y))
    predicted: list[np.ndarray] = []
    took_to_predict = seconds(lambda: predicted.append(np.asarray(model.predict(data.X_test)).reshape(-1)))
    found: dict[str, Any] = {
        "rows": len(data.X),
        "columns": data.X.shape[1],
        "test_rows": len(data.X_test),
        "task": data.task,
        "error": error_of(data.task, data.y_test, predicted[0]),
        "fit_seconds": took,
        "predict_seconds": took_to_predict,
        "megabytes": peak_megabytes(),
        "version": version(METHODS[name].package),
        "threads": {key: value for key, value in os.environ.items() if key.endswith("_NUM_THREADS")},
    }
    if data.task == "c":
        known = np.isin(data.y_test, model.classes_)
        probability = model.predict_proba(data.X_test[known])
        found["log_loss"] = float(metrics.log_loss(data.y_test[known], probability, labels=model.classes_))
    if name == OURS:
        score = model.score_estimate_
        found["estimate"] = 1 - score if data.task == "c" else float(np.sqrt(max(0.0, 1 - score)) * data.y.std())
    return found


def error_of(task: str, y: np.ndarray, predicted: np.ndarray) -> float:
    return float(np.mean(y != predicted) if task == "c" else np.sqrt(np.mean((y - predicted) ** 2)))


# -------------------------------------------------------------------------------------------------------------- report


def mean_errors(cells: Mapping[str, Mapping[str, Any]], value: str = "error") -> dict[str, dict[str, dict[int, float]]]:
    """By method, table and split; of classes with half a test row more, so that none is zero."""
    found: dict[str, dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for key, cell in cells.items():
        name, table, split = key.split("/")
        if value in cell:
            half = 0.5 / cell["test_rows"] if cell["task"] == "c" and value != "log_loss" else 0.0
            found[name][table][int(split)] = cell[value] + half
    return found


def compared(
    ours: Mapping[str, Mapping[int, float]], theirs: Mapping[str, Mapping[int, float]]
) -> dict[str, tuple[float, int]]:
    """By table the ratio of mean errors over the splits that both have, and how many these are."""
    ratios = {}
    for table in ours:
        splits = sorted(set(ours[table]) & set(theirs.get(table, {})))
        if splits:
            a, b = (float(np.mean([one[table][split] for split in splits])) for one in (ours, theirs))
            ratios[table] = (a / b, len(splits))
    return ratios


def geometric_mean(values: Iterable[float]) -> float:
    return float(np.exp(np.mean(np.log(list(values)))))


def report(cells: Mapping[str, Mapping[str, Any]]) -> str:
    """Markdown: errors of all methods by table, what they come to, and how good the estimates were."""
    errors, losses = mean_errors(cells), mean_errors(cells, "log_loss")
    methods = [name for name in METHODS if name in errors]
    tables = [table for table in (*TABLES, *BUNDLED) if any(table in errors[name] for name in methods)]
    rows = [
        [
            table,
            *(
                f"{np.mean(list(errors[name][table].values())):.4f}" if table in errors[name] else ""
                for name in methods
            ),
        ]
        for table in tables
    ]
    parts = [markdown_table(["table", *methods], rows)]
    summary = []
    for name in [name for name in methods if name != OURS and OURS in errors]:
        ratios = compared(errors[OURS], errors[name])
        if ratios:
            values = [ratio for ratio, _ in ratios.values()]
            of_losses = [ratio for ratio, _ in compared(losses[OURS], losses[name]).values()]
            better = sum(value < 1 for value in values)
            told = [f"{better} of {len(values)}", f"{geometric_mean(values):.3f}"]
            summary.append([name, *told, f"{geometric_mean(of_losses):.3f}" if of_losses else ""])
    if summary:
        parts.append(markdown_table(["beside", "better on", "ratio of errors", "ratio of log losses"], summary))
    ranks = mean_ranks(errors, methods, tables)
    if ranks:
        times = {
            name: [cell["fit_seconds"] for key, cell in cells.items() if key.startswith(f"{name}/")] for name in ranks
        }
        lines = [[name, f"{rank:.2f}", f"{np.median(times[name]):.1f} s"] for name, rank in ranks.items()]
        parts.append(markdown_table(["method", "mean rank", "median fit"], lines))
    estimates = compared(mean_errors(cells, "estimate").get(OURS, {}), errors.get(OURS, {}))
    if estimates:
        parts.append(
            markdown_table(["table", "estimate / test error"], [[t, f"{r:.3f}"] for t, (r, _) in estimates.items()])
        )
    return "\n\n".join(parts)


def mean_ranks(errors: Mapping[str, Any], methods: Sequence[str], tables: Sequence[str]) -> dict[str, float]:
    """Over the tables and splits that all methods have."""
    ranks = []
    for table in tables:
        if all(table in errors[name] for name in methods):
            for split in sorted(set.intersection(*(set(errors[name][table]) for name in methods))):
                ranks.append(rankdata([errors[name][table][split] for name in methods]))
    return dict(zip(methods, np.mean(ranks, axis=0).tolist(), strict=True)) if ranks else {}


def shortfalls(cells: Mapping[str, Mapping[str, Any]], splits: int = SPLITS) -> list[str]:
    """What is measured completely and misses its limit."""
    errors, missed = mean_errors(cells), []
    for name, (fewest, largest) in LIMITS.items():
        ratios = compared(errors.get(OURS, {}), errors.get(name, {}))
        complete = [ratios[table][0] for table in TABLES if table in ratios and ratios[table][1] >= splits]
        if len(complete) < len(TABLES):
            continue
        better = sum(ratio < 1 for ratio in complete)
        if better < fewest:
            missed.append(f"better than {name} on {better} tables, not on {fewest}")
        if geometric_mean(complete) > largest:
            missed.append(f"ratio of errors to {name} {geometric_mean(complete):.3f}, more than {largest}")
    estimates = compared(mean_errors(cells, "estimate").get(OURS, {}), errors.get(OURS, {}))
    told = [estimates[t][0] for t in TABLES if t not in TOO_DARK and t in estimates and estimates[t][1] >= splits]
    if len(told) == len(TABLES) - len(TOO_DARK) and not ESTIMATE[0] <= geometric_mean(told) <= ESTIMATE[1]:
        missed.append(f"estimate over test error {geometric_mean(told):.3f}, not within {ESTIMATE}")
    return missed


# ------------------------------------------------------------------------------------------------------------- program


def read_results(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {"cells": {}}


def write_results(path: Path, results: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write((json.dumps(results, indent=1, sort_keys=True) + "\n").encode())


def run(
    path: Path, methods: Sequence[str], tables: Sequence[str], splits: int, rows: int, threads: int, again: bool,
    work: Callable[..., dict[str, Any]] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Measure what is not in the file yet, and write each result at once."""
    results = read_results(path)
    if results.setdefault("training_rows", rows) != rows:
        raise SystemExit(f"{path} has results of {results['training_rows']} rows: give another --output.")
    threads_of = {f"{name}_NUM_THREADS": str(threads) for name in ("OMP", "OPENBLAS", "NUMBA")}
    for split in range(1, splits + 1):
        for table in tables:
            for name in methods:
                key = f"{name}/{table}/{split}"
                if key in results["cells"] and not again:
                    continue
                arguments = ["--cell", name, table, str(split), "--rows", str(rows)]
                cell = (work or run_apart)("benchmarks.tables", *arguments, environment=threads_of)
                results["cells"][key] = {**cell, "when": datetime.now(UTC).isoformat(timespec="seconds")}
                results["machine"] = machine()
                write_results(path, results)
                note(f"{key}: error {cell['error']:.4f}, {cell['fit_seconds']:.1f} s")
    return results


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--tables", nargs="+", choices=[*TABLES, *BUNDLED], default=[*TABLES, *BUNDLED], metavar="TABLE"
    )
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS), metavar="METHOD")
    parser.add_argument("--splits", type=int, default=SPLITS, help="1 to this one")
    parser.add_argument("--rows", type=int, default=ROWS, help="to train with, at most")
    parser.add_argument("--threads", type=int, default=1, help="of every library")
    parser.add_argument("--again", action="store_true", help="measure also what has been measured")
    parser.add_argument("--report", action="store_true", help="measure nothing")
    parser.add_argument("--output", type=Path, default=RESULTS / "tables.json")
    parser.add_argument("--cell", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.cell:
        name, table, split = options.cell
        cell = measure(name, table, int(split), options.rows)
        print(json.dumps(cell))
        return cell
    if options.report:
        results = read_results(options.output)
    else:
        methods = installed(options.methods)
        results = run(
            options.output, methods, options.tables, options.splits, options.rows, options.threads, options.again
        )
    print(report(results["cells"]))
    missed = shortfalls(results["cells"])
    for one in missed:
        note(f"short of its limit: {one}")
    if missed:
        sys.exit(1)
    return results


if __name__ == "__main__":
    main()
