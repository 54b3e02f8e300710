"""Are the probabilities right? Kernel logistic regression, and the SVM through CalibratedClassifierCV.

    python -m benchmarks.calibration                  # 20,000 rows of covtype; a few minutes
    python -m benchmarks.calibration --rows 2000      # to see that it runs

C and gamma of each are chosen on the training rows by cross-validation, for the logistic regression by the logarithmic
loss and for the SVM by accuracy. The predictions of 50,000 test rows are sorted into bins of equal width: in a bin of
mean probability p, a share p of the rows should be positive. The expected calibration error is the mean distance of the
two over the rows. Prints a Markdown table, writes `benchmarks/results/calibration.json` and draws
`docs/images/calibration.png` (with fewer rows beside the results).
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss

from benchmarks.data import REPOSITORY, load
from benchmarks.running import RESULTS, described, machine, markdown_table, note, save_report, seconds
from parablock import KernelLogisticRegressionCV, KernelSVC, KernelSVCCV

ROWS, TEST_ROWS, BINS, FOLDS = 20_000, 50_000, 20, 3
FEWEST = 50  # rows of a bin that is drawn: the share of fewer is chance
CS, GAMMAS = (1.0, 4.0, 16.0, 64.0), (8.0, 16.0, 32.0)
LOGISTIC, SIGMOID, ISOTONIC, RAW = (
    "KernelLogisticRegression",
    "KernelSVC, CalibratedClassifierCV (sigmoid)",
    "KernelSVC, CalibratedClassifierCV (isotonic)",
    "KernelSVC, its decision taken for a logit",
)
COLOURS = {LOGISTIC: "#2b6cb0", SIGMOID: "#c05621", ISOTONIC: "#2f855a", RAW: "#a0aec0"}


def reliability(y: np.ndarray, probability: np.ndarray, bins: int = BINS) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean probability, share of positive rows, and number of rows of every bin that has any."""
    number = np.minimum((probability * bins).astype(int), bins - 1)
    counts = np.bincount(number, minlength=bins)
    used = counts > 0
    means, shares = (np.bincount(number, values, bins)[used] / counts[used] for values in (probability, y))
    return means, shares, counts[used]


def calibration_error(y: np.ndarray, probability: np.ndarray) -> float:
    """Expected calibration error: mean distance of share and probability."""
    means, shares, counts = reliability(y, probability)
    return float(np.average(np.abs(means - shares), weights=counts))


def measured(y: np.ndarray, probability: np.ndarray) -> dict[str, float]:
    return {
        "accuracy": accuracy_score(y, probability > 0.5),
        "brier": brier_score_loss(y, probability),
        "log_loss": log_loss(y, probability),
        "calibration_error": calibration_error(y, probability),
    }


def probabilities(X: np.ndarray, y: np.ndarray, X_test: np.ndarray, jobs: int) -> tuple[dict[str, np.ndarray], Any]:
    """Of the positive class, by every model; and what was chosen."""
    options: dict[str, Any] = {"cv": FOLDS, "n_jobs": jobs, "random_state": 0}
    logistic = KernelLogisticRegressionCV(CS, GAMMAS, scoring="neg_log_loss", **options)
    note(f"logistic regression: {seconds(lambda: logistic.fit(X, y)):.0f} s, {logistic.best_params_}")
    svm = KernelSVCCV(CS, GAMMAS, **options)
    note(f"SVM: {seconds(lambda: svm.fit(X, y)):.0f} s, {svm.best_params_}")
    found = {LOGISTIC: logistic.predict_proba(X_test)[:, 1], RAW: expit(svm.decision_function(X_test))}
    for name, method in ((SIGMOID, "sigmoid"), (ISOTONIC, "isotonic")):
        machine = KernelSVC(**svm.best_params_, n_jobs=jobs, random_state=0)
        model = CalibratedClassifierCV(machine, method=method, cv=FOLDS, ensemble=False)
        note(f"{name}: {seconds(lambda model=model: model.fit(X, y)):.0f} s")  # type: ignore[misc]
        found[name] = np.clip(model.predict_proba(X_test)[:, 1], 1e-6, 1 - 1e-6)  # isotonic regression gives 0 and 1
    return found, {"logistic": logistic.best_params_, "svm": svm.best_params_}


def draw(y: np.ndarray, found: Mapping[str, np.ndarray], title: str, path: Path) -> None:
    """Reliability of all, and how often each probability is given."""
    from matplotlib.figure import Figure

    ink, grid = "#333333", "#e4e4e4"
    figure = Figure(figsize=(7.2, 7.6), layout="constrained", facecolor="white")
    above, below = figure.subplots(2, 1, height_ratios=(3, 1), sharex=True)
    above.plot([0, 1], [0, 1], color=ink, linewidth=1, linestyle=(0, (4, 3)))
    above.annotate("as promised", (0.72, 0.72), xytext=(14, -16), textcoords="offset points", color=ink, fontsize=9)
    for name in (RAW, ISOTONIC, SIGMOID, LOGISTIC):
        means, shares, counts = reliability(y, found[name])
        means, shares = means[counts >= FEWEST], shares[counts >= FEWEST]
        error = calibration_error(y, found[name])
        label = f"{name}: error {error:.3f}"
        above.plot(means, shares, color=COLOURS[name], linewidth=2, marker="o", markersize=4, label=label)
    for name in (SIGMOID, LOGISTIC):
        below.hist(found[name], bins=BINS, range=(0, 1), histtype="step", color=COLOURS[name], linewidth=1.5)
    above.set_ylabel("share of rows that are of the class", color=ink)
    below.set_ylabel("rows", color=ink)
    below.set_xlabel("predicted probability of the class (cover type 2)", color=ink)
    handles, labels = above.get_legend_handles_labels()
    above.legend(handles[::-1], labels[::-1], loc="upper left", frameon=False, fontsize=9)
    for panel in (above, below):
        panel.grid(color=grid, linewidth=0.8)
        panel.tick_params(colors=ink, length=0)
        panel.spines[["top", "right"]].set_visible(False)
        panel.spines[["left", "bottom"]].set_color(grid)
    figure.suptitle(title, x=0.01, ha="left", fontsize=12, fontweight="bold", color=ink)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args(arguments)
    X, y, X_test, y_test = load("covtype")
    X, y, X_test, y_test = X[: options.rows], y[: options.rows], X_test[:TEST_ROWS], y_test[:TEST_ROWS] > 0
    found, chosen = probabilities(X, y, X_test, options.jobs)
    numbers = {name: measured(y_test, found[name]) for name in COLOURS}
    head = ("covtype", "expected calibration error", "Brier score", "log loss", "accuracy")
    lines = [
        (
            name,
            *(f"{one[measure]:.4f}" for measure in ("calibration_error", "brier", "log_loss")),
            f"{one['accuracy']:.2%}",
        )
        for name, one in numbers.items()
    ]
    print(markdown_table(head, lines))
    print(f"\n{options.rows:,} training rows, {len(y_test):,} test rows; chosen: {chosen}")
    print("\n" + described(machine(), datetime.now(UTC)))
    picture = REPOSITORY / "docs" / "images" if options.rows == ROWS else RESULTS
    title = f"Probabilities on forest cover types, {options.rows:,} training rows"
    draw(y_test, found, title, picture / "calibration.png")
    report = {"rows": options.rows, "chosen": chosen, "measured": numbers}
    save_report("calibration", report)
    return report


if __name__ == "__main__":
    main()
