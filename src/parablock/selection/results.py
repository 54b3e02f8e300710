"""Scores of all folds, as scikit-learn's GridSearchCV tells them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from typing import Any

import numpy as np
from scipy.stats import rankdata

Scorer = Callable[..., Any]


def scores_of(scorer: Scorer, machine: Any, X: Any, y: np.ndarray, weight: np.ndarray | None) -> dict[str, float]:
    """What a scorer, of one measure or of several, says of a fitted machine. Weights are for scorers that take them."""
    options = {} if weight is None or not _takes_weights(scorer) else {"sample_weight": weight}
    found = scorer(machine, X, y, **options)
    return dict(found) if isinstance(found, Mapping) else {"score": found}


def _takes_weights(scorer: Scorer) -> bool:
    if hasattr(scorer, "_accept_sample_weight"):
        return bool(scorer._accept_sample_weight())
    return "sample_weight" in signature(scorer).parameters


class Results:
    """Collects scores and times of every candidate and fold.

    Parameters
    ----------
    candidates : sequence of dict
        Parameters that are tried.
    n_splits : int
    """

    def __init__(self, candidates: Sequence[Mapping[str, float]], n_splits: int) -> None:
        self.candidates, self._shape = candidates, (len(candidates), n_splits)
        self._values: dict[str, np.ndarray] = {}

    def put(self, candidate: int, split: int, **values: float) -> None:
        """Take note of values such as test_score of one candidate and split."""
        for name, value in values.items():
            self._values.setdefault(name, np.full(self._shape, np.nan))[candidate, split] = value

    def table(self) -> dict[str, Any]:
        """As GridSearchCV's ``cv_results_``."""
        table: dict[str, Any] = {}
        for name in ("fit_time", "score_time"):
            table |= _summary(name, self._values[name])
        for parameter in self.candidates[0]:
            values = np.array([candidate[parameter] for candidate in self.candidates])
            table[f"param_{parameter}"] = np.ma.MaskedArray(values, mask=False)
        table["params"] = [dict(candidate) for candidate in self.candidates]
        for name, values in self._values.items():
            if name.startswith(("test_", "train_")):
                table |= {f"split{number}_{name}": values[:, number] for number in range(self._shape[1])}
                table |= _summary(name, values)
            if name.startswith("test_"):
                table[f"rank_{name}"] = _rank(values.mean(axis=1))
        return table


def _summary(name: str, values: np.ndarray) -> dict[str, np.ndarray]:
    return {f"mean_{name}": values.mean(axis=1), f"std_{name}": values.std(axis=1)}


def _rank(means: np.ndarray) -> np.ndarray:
    """1 for the best; what is not a number comes last."""
    return rankdata(-np.where(np.isnan(means), -np.inf, means), method="min").astype(np.int32)
