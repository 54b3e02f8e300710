"""Scores on data that is not trained with, and stopping when they no longer get better."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np

from parablock.callbacks.base import Callback
from parablock.callbacks.decisions import Decisions
from parablock.callbacks.watching import Run


class ValidationScore(Callback):
    """Scores the model of every iteration on validation data.

    Decisions on the validation rows are brought up to date from iteration to iteration: in all that takes one kernel
    value for each validation row and each training row that ever moves, about a tenth of those of the fit itself where
    there are a tenth as many validation rows as training rows. They take up to an eighth of ``memory_limit`` more; with
    less room than they need, some are computed again. (With ``prediction="local"`` every score is a whole prediction.)
    `JSONLog` and `ProgressBar` show the scores too, in whatever order the callbacks are set.

    Parameters
    ----------
    X_valid, y_valid : arrays
        Validation data, as for ``score``.
    scoring : str, callable or None, default=None
        One of scikit-learn's scorers; None takes the estimator's ``score``, accuracy or R2. Higher is better.

    Attributes
    ----------
    scores_ : list of float
        One for every record that the last fit has added to ``history_``.

    Examples
    --------
    >>> from parablock import KernelSVC
    >>> from parablock.callbacks import ValidationScore
    >>> from parablock.datasets import load_covtype_sample
    >>> X, y, X_test, y_test = load_covtype_sample()
    >>> validation = ValidationScore(X_test[:500], y_test[:500])
    >>> model = KernelSVC(C=32, gamma=32, n_blocks=4, random_state=0).set_callbacks(validation).fit(X[:2000], y[:2000])
    >>> len(validation.scores_) == len(model.history_)
    True
    >>> validation.scores_[-1] == model.score(X_test[:500], y_test[:500])
    True
    """

    def __init__(self, X_valid: Any, y_valid: Any, *, scoring: Any = None) -> None:
        self.X_valid, self.y_valid, self.scoring = X_valid, y_valid, scoring

    def started(self, run: Run) -> None:
        from sklearn.metrics import check_scoring

        if not run.has_models:
            raise ValueError(
                f"{type(self).__name__} needs the model of every iteration. On a Dask cluster it stays on the workers: "
                "use TimeLimit or a larger tol there, or fit with engine='mpi' or on one machine. A search such as "
                "KernelSVCCV trains all folds as one problem, which has none: set the callback on the machine inside a "
                "GridSearchCV, or on one with the parameters that were found."
            )
        memory = run.memory(self)
        memory.scorer = check_scoring(run.estimator, scoring=self.scoring)
        memory.scores = []
        memory.decisions = None if run.estimator.prediction == "local" else Decisions(run, self.X_valid)
        run.scorers.append(self)

    def iterated(self, run: Run) -> bool | None:
        self.score(run)
        return None

    def ended(self, run: Run) -> None:
        memory = run.memory(self)
        if getattr(memory, "decisions", None) is not None:
            memory.decisions.close()
        self.scores_ = list(getattr(memory, "scores", []))

    def score(self, run: Run) -> float:
        """Of the newest iteration."""
        scores = run.memory(self).scores
        if len(scores) < len(run.history):
            scores.append(self._compute(run))
        return scores[-1]

    def _compute(self, run: Run) -> float:
        memory = run.memory(self)
        model = run.fitted() if memory.decisions is None else memory.decisions.model(run)
        score = memory.scorer(model, self.X_valid, self.y_valid)
        if not isinstance(score, Real):
            raise TypeError(
                f"scoring={self.scoring!r} gives {type(score).__name__} instead of one number: choose another scorer."
            )
        return float(score)


class EarlyStopping(ValidationScore):
    """Ends a fit when the score on validation data no longer gets better, and keeps the best model.

    The model that the estimator keeps, with all its fitted attributes, is that of the iteration with the highest score,
    also where training ended for another reason. (``n_iter_``, ``history_`` and ``stop_reason_`` are of the whole fit.)
    There is no warning: to end before the optimum is what was asked for.

    The cost is that of `ValidationScore`, a copy of the coefficients at each new best score, and at the end one kernel
    product, so that objective, gap and violation of the model are of all rows.

    Parameters
    ----------
    X_valid, y_valid : arrays
        Validation data, as for ``score``.
    patience : int, default=5
        Stop after so many iterations without improvement.
    min_improvement : float, default=0.0
        What the score must gain to count as an improvement.
    scoring : str, callable or None, default=None
        One of scikit-learn's scorers; None takes the estimator's ``score``, accuracy or R2. Higher is better.

    Attributes
    ----------
    best_score_ : float
    best_iteration_ : int
        From 1.
    scores_ : list of float
        One for every record that the last fit has added to ``history_``.

    Examples
    --------
    >>> from parablock import KernelSVC
    >>> from parablock.callbacks import EarlyStopping
    >>> from parablock.datasets import load_covtype_sample
    >>> X, y, X_test, y_test = load_covtype_sample()
    >>> stopping = EarlyStopping(X_test[:500], y_test[:500], patience=2)
    >>> model = KernelSVC(C=32, gamma=32, n_blocks=8, random_state=0).set_callbacks(stopping).fit(X[:2000], y[:2000])
    >>> model.score(X_test[:500], y_test[:500]) == stopping.best_score_ == max(stopping.scores_)
    True
    """

    def __init__(
        self, X_valid: Any, y_valid: Any, *, patience: int = 5, min_improvement: float = 0.0, scoring: Any = None
    ) -> None:
        super().__init__(X_valid, y_valid, scoring=scoring)
        if not (isinstance(patience, Integral) and patience >= 1):
            raise ValueError(f"patience must be a whole number of iterations, at least 1; got {patience!r}.")
        if not min_improvement >= 0:
            raise ValueError(f"min_improvement must be zero or positive, got {min_improvement!r}.")
        self.patience: int = patience
        self.min_improvement: float = min_improvement

    def started(self, run: Run) -> None:
        super().started(run)
        memory = run.memory(self)
        memory.best = memory.goal = -np.inf
        memory.best_iteration = memory.waited = 0

    def iterated(self, run: Run) -> bool:
        memory, score = run.memory(self), self.score(run)
        if score > memory.best:
            memory.best, memory.best_iteration = score, run.record.iteration
            run.best = run.solution()
        if score > memory.goal:
            memory.goal, memory.waited = score + self.min_improvement, 0
        elif run.record.kind != "check":
            memory.waited += 1
        return memory.waited >= self.patience and run.stop("")

    def ended(self, run: Run) -> None:
        super().ended(run)
        memory = run.memory(self)
        self.best_score_ = getattr(memory, "best", -np.inf)
        self.best_iteration_ = getattr(memory, "best_iteration", 0)
