"""Train on a sample of real data, beside scikit-learn, and save a picture of the convergence.

Run as ``python -m parablock.demo``; ``--help`` lists the options.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from parablock import KernelSVC
from parablock.datasets import load_covtype_sample
from parablock.monitor import relative_gap

# The paper's choice for this data set.
C = 32.0
GAMMA = 32.0
TOL = 1e-3

DEFAULT_ROWS = 10_000
# Enough rows for several blocks, so that every compiled loop is compiled before the clock starts.
WARM_UP_ROWS = 3_000


@dataclass(frozen=True)
class Result:
    """What one program reached on the sample."""

    name: str
    seconds: float
    accuracy: float
    n_support: int
    objective: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m parablock.demo", description=__doc__.split("\n")[0])
    add_options(parser)
    return run(parser.parse_args(arguments))


def run(options: argparse.Namespace) -> int:
    """Run the demo with the options of `add_options`; returns the exit status."""
    X_train, y_train, X_test, y_test = load_covtype_sample()
    X_train, y_train = X_train[: options.rows], y_train[: options.rows]
    _say(
        "Forest cover types (a sample of UCI Covertype): lodgepole pine or not?",
        f"{len(X_train):,} training rows, {len(X_test):,} test rows, {X_train.shape[1]} features; "
        f"Gaussian kernel, C={C:g}, gamma={GAMMA:g}, tol={TOL:g}",
        "",
    )

    model = KernelSVC(C=C, gamma=GAMMA, tol=TOL, verbose=1)
    warm_up = KernelSVC(C=C, gamma=GAMMA, tol=TOL)
    compiling = _seconds(lambda: warm_up.fit(X_train[:WARM_UP_ROWS], y_train[:WARM_UP_ROWS]))
    _say(f"Compiled the loops on a few rows in {compiling:.1f} s (not counted below)", "")

    _say("parablock.KernelSVC")
    seconds = _seconds(lambda: model.fit(X_train, y_train))
    results = [_result("parablock", model, seconds, (X_train, X_test, y_test))]
    _say(
        "",
        f"{model.n_iter_} outer iterations; largest violation {model.violation_:.1e}; duality gap "
        f"{model.duality_gap_:.3g}, {relative_gap(-model.dual_objective_, model.duality_gap_):.1e} of the objective",
    )

    if options.compare:
        _say("", "sklearn.svm.SVC on the same rows ...")
        peer = SVC(C=C, gamma=GAMMA, tol=TOL, cache_size=1000)
        seconds = _seconds(lambda: peer.fit(X_train, y_train))
        results.append(_result("scikit-learn", peer, seconds, (X_train, X_test, y_test)))

    _say("", *_table(results))
    if options.compare:
        _say("", _comparison(*results))
    _say("", _save_picture(options.output, model, results))
    return 0


def add_options(parser: argparse.ArgumentParser) -> None:
    """Tell a parser the options of the demo."""
    parser.add_argument(
        "--rows", type=_rows, default=DEFAULT_ROWS, help="training rows, 100 to 50000 (default: %(default)s)"
    )
    parser.add_argument(
        "--output",
        type=_picture,
        default=Path("convergence.png"),
        help="the picture to write (default: %(default)s)",
    )
    parser.add_argument("--no-compare", dest="compare", action="store_false", help="leave out scikit-learn's SVC")


def _rows(text: str) -> int:
    if not (text.isdecimal() and 100 <= int(text) <= 50_000):
        raise argparse.ArgumentTypeError(f"{text} was given; use 100 to 50000, which is all of the sample")
    return int(text)


def _picture(text: str) -> Path:
    if not Path(text).absolute().parent.is_dir():
        raise argparse.ArgumentTypeError(f"{text} was given; its folder does not exist, create it first")
    return Path(text)


def _say(*lines: str) -> None:
    """Write lines to standard output at once, also where it is a pipe."""
    print(*lines, sep="\n", flush=True)


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _result(name: str, model: Any, seconds: float, data: tuple[NDArray[Any], ...]) -> Result:
    X_train, X_test, y_test = data
    return Result(
        name=name,
        seconds=seconds,
        accuracy=float(np.mean(model.predict(X_test) == y_test)),
        n_support=len(model.support_),
        objective=_dual_objective(X_train[model.support_], np.ravel(model.dual_coef_)),
    )


def _dual_objective(X: NDArray[Any], coef: NDArray[Any], tile: int = 1_000) -> float:
    """The dual objective to be maximised, sum |coef| - 1/2 coef' K coef, in double precision.

    Computed here for both programs, so that the comparison rests on neither's own word.
    """
    X = X.astype(np.float64)
    coef = coef.astype(np.float64)
    quadratic = 0.0
    for start in range(0, len(X), tile):
        rows = slice(start, start + tile)
        quadratic += coef[rows] @ (rbf_kernel(X[rows], X, gamma=GAMMA) @ coef)
    return float(np.abs(coef).sum() - 0.5 * quadratic)


def _table(results: Sequence[Result]) -> list[str]:
    rows = {
        "": [result.name for result in results],
        "seconds to fit": [f"{result.seconds:.2f}" for result in results],
        "test accuracy": [f"{result.accuracy:.2%}" for result in results],
        "support vectors": [f"{result.n_support:,}" for result in results],
        "dual objective": [f"{result.objective:,.3f}" for result in results],
    }
    return [f"{label:<16}" + "".join(f"{cell:>16}" for cell in cells) for label, cells in rows.items()]


def _comparison(own: Result, peer: Result) -> str:
    difference = (own.objective - peer.objective) / abs(peer.objective)
    ratio = peer.seconds / own.seconds
    return (
        f"parablock was {ratio:.2g} times as fast as scikit-learn; "
        f"relative difference of the objectives: {difference:+.1e}"
    )


def _save_picture(path: Path, model: Any, results: Sequence[Result]) -> str:
    """Save the picture of the convergence; returns what to tell the user."""
    try:
        # Without pyplot: no window system is needed and no global state is touched.
        from matplotlib.figure import Figure
    except ImportError:
        return "No picture was saved: matplotlib is not installed (pip install matplotlib)."

    seconds = np.array([record.seconds for record in model.history_])
    gap = np.array([record.relative_gap for record in model.history_])
    violation = np.array([record.violation for record in model.history_])

    ink, grid = "#333333", "#e4e4e4"
    figure = Figure(figsize=(9.6, 4.0), layout="constrained", facecolor="white")
    panels = figure.subplots(1, 2)
    for panel, values, title, colour in (
        (panels[0], gap, "Duality gap, relative to the objective", "#2b6cb0"),
        (panels[1], violation, "Largest violation of the optimality conditions", "#c05621"),
    ):
        shown = np.isfinite(values) & (values > 0)  # a logarithmic axis has no place for the others
        panel.plot(seconds[shown], values[shown], color=colour, linewidth=2, marker="o", markersize=3.5, zorder=3)
        panel.set_yscale("log")
        panel.set_xlim(left=0)
        panel.set_title(title, loc="left", fontsize=11, color=ink)
        panel.set_xlabel("seconds", color=ink)
        panel.grid(color=grid, linewidth=0.8)
        panel.tick_params(which="both", colors=ink, length=0)
        panel.spines[["top", "right"]].set_visible(False)
        panel.spines[["left", "bottom"]].set_color(grid)
    panels[1].axhline(TOL, color=ink, linewidth=1, linestyle=(0, (4, 3)))
    panels[1].annotate(
        f"tol = {TOL:g}",
        (0, TOL),
        xycoords=("axes fraction", "data"),
        xytext=(6, 4),
        textcoords="offset points",
        color=ink,
        fontsize=9,
    )
    times = ", ".join(f"{result.name} {result.seconds:.2g} s" for result in results)
    figure.suptitle(
        f"Kernel SVM on forest cover types, {model.n_iter_} outer iterations ({times})",
        x=0.01,
        ha="left",
        fontsize=12,
        fontweight="bold",
        color=ink,
    )
    figure.savefig(path, dpi=150)
    return f"Convergence picture: {path}"


if __name__ == "__main__":
    sys.exit(main())
