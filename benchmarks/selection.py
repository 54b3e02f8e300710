"""A grid over C and gamma in cross-validation: `KernelSVCCV` beside GridSearchCV over scikit-learn's SVC.

    python -m benchmarks.selection                    # 20,000 rows of covtype, 5 folds, 5 x 5 grid
    python -m benchmarks.selection --rows 3000        # to see that it runs
    python -m benchmarks.selection --peer-folds 5     # every fit of the peer, on a machine that nobody else uses

Gamma after gamma, so that whoever else uses the machine meets all alike, these run:

    together    KernelSVCCV: folds as outputs of one problem, each C from the one below
    each C      KernelSVCCV for one C at a time: folds together, but nothing is kept from C to C
    apart       KernelSVC for every C and fold, as GridSearchCV would
    peer        sklearn.svm.SVC for every C and fold, `--jobs` of them at a time, as GridSearchCV with n_jobs would

The last two fit `--peer-folds` of the folds, and their times are multiplied: folds take equally long. Seconds of the
peer with n_jobs=2 are its fits' seconds, two at a time, divided by two: perfect balance. Those with n_jobs=1 are its
seconds of processor time. No last fit on all rows is counted for anyone. Prints Markdown tables, writes
`benchmarks/results/selection.json` and draws the grid as `docs/images/grid.png` (with fewer rows beside the results).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC

from benchmarks.data import REPOSITORY, load
from benchmarks.running import RESULTS, described, machine, markdown_table, note, save_report
from parablock import KernelSVC, KernelSVCCV
from parablock.selection import GridDisplay

ROWS = 20_000
CS, GAMMAS, FOLDS = (1.0, 4.0, 16.0, 64.0, 256.0), (2.0, 4.0, 8.0, 16.0, 32.0), 5
CACHE_MB = 1_100  # of each of the peer's fits: the whole matrix of 16,000 rows
Split = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Work:
    """What a way to do it took for one gamma, as if for all folds.

    Attributes
    ----------
    seconds, processor_seconds : float
    kernel_evaluations : int or None
    scores : list of lists of float
        Accuracy for every C and fold that was fitted.
    """

    seconds: float
    processor_seconds: float
    kernel_evaluations: int | None
    scores: list[list[float]]

    @classmethod
    def total(cls, parts: Sequence[Work]) -> Work:
        counted = [part.kernel_evaluations for part in parts if part.kernel_evaluations is not None]
        return cls(
            sum(part.seconds for part in parts),
            sum(part.processor_seconds for part in parts),
            sum(counted) if counted else None,
            [row for part in parts for row in part.scores],
        )


class Bench:
    """The data, the folds, and the ways to do it."""

    def __init__(self, rows: int, jobs: int, peer_folds: int) -> None:
        data = load("covtype")
        self.X, self.y, self.jobs = data.X_train[:rows], data.y_train[:rows], jobs
        self.folds: list[Split] = list(StratifiedKFold(FOLDS).split(self.X, self.y))
        self.peer_folds = self.folds[:peer_folds]

    def together(self, gamma: float, Cs: Sequence[float] = CS) -> Work:
        model = KernelSVCCV(Cs, [gamma], cv=self.folds, refit=False, n_jobs=self.jobs, random_state=0)
        seconds, processor = _timed(lambda: model.fit(self.X, self.y))
        scores = [model.cv_results_[f"split{fold}_test_score"] for fold in range(FOLDS)]
        return Work(seconds, processor, model.kernel_evaluations_, np.transpose(scores).tolist())

    def each_C(self, gamma: float) -> Work:
        return Work.total([self.together(gamma, [C]) for C in CS])

    def apart(self, gamma: float) -> Work:
        evaluations = 0
        scores: list[list[float]] = []

        def fit_all() -> None:
            nonlocal evaluations
            for C in CS:
                scores.append([])
                for train, test in self.peer_folds:
                    model = KernelSVC(C=C, gamma=gamma, n_jobs=self.jobs, random_state=0)
                    model.fit(self.X[train], self.y[train])
                    scores[-1].append(model.score(self.X[test], self.y[test]))
                    # Those of the prediction come on top.
                    evaluations += model.kernel_evaluations_ + len(test) * len(model.support_)

        seconds, processor = _timed(fit_all)
        times = FOLDS / len(self.peer_folds)
        return Work(seconds * times, processor * times, int(evaluations * times), scores)

    def peer(self, gamma: float) -> Work:
        tasks = [delayed(_peer_fit)(self.X, self.y, split, C, gamma) for C in CS for split in self.peer_folds]
        found = np.array(Parallel(n_jobs=self.jobs)(tasks))
        seconds, processor = FOLDS / len(self.peer_folds) * found[:, :2].sum(axis=0)
        return Work(seconds / self.jobs, processor, None, found[:, 2].reshape(len(CS), -1).tolist())


def _peer_fit(X: np.ndarray, y: np.ndarray, split: Split, C: float, gamma: float) -> tuple[float, float, float]:
    """Seconds, processor seconds and accuracy of a fit and its prediction."""
    train, test = split
    accuracy: list[float] = []

    def fit() -> None:
        model = SVC(C=C, gamma=gamma, cache_size=CACHE_MB).fit(X[train], y[train])
        accuracy.append(model.score(X[test], y[test]))

    return *_timed(fit), accuracy[0]


def _timed(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds, and those of all processors that this process used."""
    start, used = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - start, time.process_time() - used


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--jobs", type=int, default=2, help="threads of parablock, processes of the peer")
    parser.add_argument("--peer-folds", type=int, default=1, choices=range(1, FOLDS + 1))
    options = parser.parse_args(arguments)
    bench = Bench(options.rows, options.jobs, options.peer_folds)
    ways = {"together": bench.together, "each C": bench.each_C, "apart": bench.apart, "peer": bench.peer}
    KernelSVC(n_jobs=1).fit(bench.X[:500], bench.y[:500])  # compiles, or loads what was compiled
    found: dict[str, list[Work]] = {name: [] for name in ways}
    for gamma in GAMMAS:
        for name, way in ways.items():
            found[name].append(way(gamma))
            note(f"gamma={gamma:g}, {name}: {found[name][-1].seconds:.1f} s")
    report = _report(found, options.rows, options.jobs)
    save_report("selection", report)
    draw(report, (REPOSITORY / "docs" / "images" if options.rows == ROWS else RESULTS) / "grid.png")
    return report


def draw(report: dict[str, Any], path: Path) -> None:
    """The grid of a report as a heat map."""
    from matplotlib.figure import Figure

    scores = np.array([work["scores"] for work in report["work"]["together"]])
    means = scores.mean(axis=2)
    best = np.unravel_index(means.argmax(), means.shape)
    figure = Figure(figsize=(6.4, 4.4), layout="constrained", facecolor="white")
    display = GridDisplay(
        means, scores.std(axis=2), np.array(CS), np.array(GAMMAS), best=(int(best[0]), int(best[1])), name="accuracy"
    )
    display.plot(figure.subplots(), format=".1%")
    display.ax_.set_title(f"Forest cover types, {report['rows']:,} rows, {FOLDS} folds", loc="left", fontsize=11)
    figure.savefig(path, dpi=130)


def _report(found: dict[str, list[Work]], rows: int, jobs: int) -> dict[str, Any]:
    sums = {name: Work.total(works) for name, works in found.items()}
    own, peer = sums["together"], sums["peer"]
    ratios = {
        f"n_jobs={jobs}, by the clock": peer.seconds / own.seconds,
        f"n_jobs={jobs}, by processor seconds": peer.processor_seconds / own.processor_seconds,
        "n_jobs=1, its processor seconds by our clock": peer.processor_seconds / own.seconds,
    }
    differences = _differences(found)
    means = np.array([[np.mean(folds) for folds in work.scores] for work in found["together"]])
    best = np.unravel_index(means.argmax(), means.shape)
    print(f"covtype, {rows:,} rows, {FOLDS} folds, C = {CS}, gamma = {GAMMAS}: {FOLDS * means.size} fits\n")
    print(_table_of_ways(sums))
    print("\n" + markdown_table(("GridSearchCV over SVC takes", "times as long"), _lines(ratios, ".1f")))
    print("\n" + markdown_table(("largest difference of a fold's accuracy from", ""), _lines(differences, ".4f")))
    print(f"\nbest: C={CS[best[1]]:g}, gamma={GAMMAS[best[0]]:g}, mean accuracy {means[best]:.2%}\n")
    head = ("mean accuracy", *(f"C={C:g}" for C in CS))
    lines = [(f"gamma={gamma:g}", *(f"{score:.2%}" for score in row)) for gamma, row in zip(GAMMAS, means, strict=True)]
    print(markdown_table(head, lines))
    print("\n" + described(machine(), datetime.now(UTC)))
    details = {name: [asdict(work) for work in works] for name, works in found.items()}
    return {"rows": rows, "jobs": jobs, "ratios": ratios, "differences": differences, "work": details}


def _table_of_ways(sums: dict[str, Work]) -> str:
    least = sums["together"].kernel_evaluations or 1
    lines = []
    for name, work in sums.items():
        values = work.kernel_evaluations
        counted = ("-", "-") if values is None else (f"{values / 1e9:.2f} G", f"{values / least:.1f}")
        lines.append((name, f"{work.seconds:.0f}", f"{work.processor_seconds:.0f}", *counted))
    return markdown_table(("way", "seconds", "processor seconds", "kernel values", "multiple"), lines)


def _differences(found: dict[str, list[Work]]) -> dict[str, float]:
    """Of the accuracies from our own, in the folds that all have fitted."""
    scores = {name: np.array(Work.total(works).scores) for name, works in found.items()}
    own = scores.pop("together")
    return {name: float(np.abs(own[:, : other.shape[1]] - other).max()) for name, other in scores.items()}


def _lines(values: dict[str, float], format: str) -> list[tuple[str, str]]:
    return [(name, f"{value:{format}}") for name, value in values.items()]


if __name__ == "__main__":
    main()
