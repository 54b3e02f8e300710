"""A picture of the scores over the grid."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

_MOST_NUMBERS = 150  # cells of a grid up to which every cell has its number written into it


class GridDisplay:
    """Mean scores of a cross-validation: a heat map over C and gamma, or a curve over C.

    Make one with `from_estimator`.

    Parameters
    ----------
    scores, spreads : ndarray of shape (n_gammas, n_Cs)
        Mean and standard deviation of the score over the folds.
    Cs : ndarray
        Ascending.
    gammas : ndarray or None
        Ascending; None where there is but one.
    best : pair of int or None, default=None
        Row and column of the score to mark.
    name : str, default="score"
        Of the score.

    Attributes
    ----------
    ax_, figure_
        Where it was drawn.
    image_ : matplotlib AxesImage, or None for a curve

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from parablock import KernelSVCCV
    >>> from parablock.selection import GridDisplay
    >>> X, y = make_moons(500, noise=0.2, random_state=0)
    >>> model = KernelSVCCV(Cs=[0.1, 1, 10], gammas=[0.1, 1, 10]).fit(X, y)
    >>> display = GridDisplay.from_estimator(model)
    >>> display.scores.shape
    (3, 3)
    """

    def __init__(
        self,
        scores: np.ndarray,
        spreads: np.ndarray,
        Cs: np.ndarray,
        gammas: np.ndarray | None,
        *,
        best: tuple[int, int] | None = None,
        name: str = "score",
    ) -> None:
        self.scores, self.spreads, self.Cs, self.gammas = scores, spreads, Cs, gammas
        self.best, self.name = best, name

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, score: str | None = None, ax: Any = None, cmap: str = "viridis", format: str = ".3f"
    ) -> GridDisplay:
        """Draw the grid of a fitted `KernelSVCCV` or its relatives, or of a GridSearchCV over C and gamma.

        Parameters
        ----------
        estimator : fitted estimator with ``cv_results_``
        score : str or None, default=None
            Which of several scores; None takes the one by which the best was chosen.
        ax : matplotlib Axes, optional
            Where to draw; by default in a new figure.
        cmap : str, default="viridis"
        format : str, default=".3f"
            Of the numbers in the cells.

        Returns
        -------
        GridDisplay
        """
        check_is_fitted(estimator, "cv_results_")
        results = estimator.cv_results_
        known = [name.removeprefix("mean_test_") for name in results if name.startswith("mean_test_")]
        if score is None:
            score = estimator.refit if estimator.refit in known else known[0]
        if score not in known:
            raise ValueError(f"There is no score {score!r}; there are {', '.join(known)}.")
        varied = {name for candidate in results["params"] for name in candidate}
        if "C" not in varied or varied - {"C", "gamma"}:
            raise ValueError(
                f"A grid over C, or C and gamma, can be drawn; this one is over {', '.join(sorted(varied))}."
            )
        Cs, columns = np.unique(_numbers(results["param_C"]), return_inverse=True)
        gammas, rows = np.zeros(1), np.zeros_like(columns)
        if "gamma" in varied:
            gammas, rows = np.unique(_numbers(results["param_gamma"]), return_inverse=True)
        scores, spreads = np.full((2, len(gammas), len(Cs)), np.nan)
        scores[rows, columns], spreads[rows, columns] = results[f"mean_test_{score}"], results[f"std_test_{score}"]
        first = int(results[f"rank_test_{score}"].argmin())
        best = None if np.isnan(scores).all() else (int(rows[first]), int(columns[first]))
        made = cls(scores, spreads, Cs, gammas if len(gammas) > 1 else None, best=best, name=score)
        return made.plot(ax, cmap=cmap, format=format)

    def plot(self, ax: Any = None, *, cmap: str = "viridis", format: str = ".3f") -> GridDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        cmap : str, default="viridis"
        format : str, default=".3f"

        Returns
        -------
        self
        """
        try:
            import matplotlib.pyplot as plt
        except ImportError as error:
            raise ImportError("GridDisplay draws with matplotlib: pip install 'parablock[plot]'.") from error
        if ax is None:
            _, ax = plt.subplots(layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        self.image_: Any = None
        if self.gammas is None:
            self._curve(format)
        else:
            self._map(self.gammas, cmap, format)
        return self

    def _map(self, gammas: np.ndarray, cmap: str, format: str) -> None:
        from matplotlib.patches import Rectangle

        ax = self.ax_
        self.image_ = ax.imshow(self.scores, origin="lower", cmap=cmap, aspect="auto")
        self.figure_.colorbar(self.image_, ax=ax, label=f"mean {self.name}")
        ax.set_xticks(range(len(self.Cs)), [f"{C:.4g}" for C in self.Cs])
        ax.set_yticks(range(len(gammas)), [f"{gamma:.4g}" for gamma in gammas])
        ax.set(xlabel="C", ylabel="gamma")
        if self.scores.size <= _MOST_NUMBERS:
            for (row, column), score in np.ndenumerate(self.scores):
                red, green, blue, _ = self.image_.cmap(self.image_.norm(score))
                light = 0.3 * red + 0.6 * green + 0.1 * blue > 0.5
                colour = "black" if light else "white"
                ax.text(column, row, f"{score:{format}}", ha="center", va="center", color=colour, fontsize="small")
        if self.best is not None:
            row, column = self.best
            ax.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, edgecolor="crimson", linewidth=2.5))

    def _curve(self, format: str) -> None:
        scores, spreads = self.scores[0], self.spreads[0]
        self.ax_.errorbar(self.Cs, scores, spreads, marker="o", capsize=3)
        self.ax_.set(xscale="log", xlabel="C", ylabel=f"mean {self.name}")
        if self.best is not None:
            best = self.best[1]
            self.ax_.plot(self.Cs[best], scores[best], "o", color="crimson", label=f"best: {scores[best]:{format}}")
            self.ax_.legend()


def _numbers(values: Any) -> np.ndarray:
    """Parameter values that must be numbers to have a place on an axis."""
    try:
        return np.asarray(values, dtype=np.float64)
    except ValueError:
        raise ValueError(f"Only numbers have a place on an axis; got {list(values)}.") from None
