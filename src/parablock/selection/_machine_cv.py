"""What the estimators that choose C and gamma by cross-validation share."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any, Self

import numpy as np
import sklearn  # imports its modules when they are first named
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from parablock.callbacks.support import CallbackSupport
from parablock.certificate import Certificate
from parablock.csr import given
from parablock.estimators import KernelClassifier
from parablock.estimators._bases import validated
from parablock.estimators._hints import SearchHints
from parablock.estimators._machine import KernelMachine, on_host
from parablock.estimators._onnx import OnnxStep
from parablock.estimators._types import DeviceName, KernelLike, MemoryLimit, PartitionLike, RandomState
from parablock.kernels import make_kernel
from parablock.monitor import Progress
from parablock.selection.folds import Folds, rows_of
from parablock.selection.grids import c_values, gamma_values
from parablock.selection.results import Results, scores_of
from parablock.selection.search import Found, search

_COUNT = Interval(Integral, 1, None, closed="left")
_SHARED = (
    "kernel", "degree", "coef0", "fit_intercept", "tol", "max_iter", "partition", "n_blocks", "device", "n_jobs",
    "memory_limit", "verbose", "random_state",
)  # fmt: skip


class KernelMachineCV(CallbackSupport, OnnxStep, SearchHints):
    """Base of the estimators that choose C and gamma. A subclass says of which machine, and lists its parameters."""

    Cs: Any
    gammas: Any
    cv: Any
    scoring: Any
    refit: Any
    return_train_score: bool
    kernel: KernelLike
    degree: int
    coef0: float
    fit_intercept: bool
    tol: float
    max_iter: int
    partition: PartitionLike
    n_blocks: int | None
    device: DeviceName
    n_jobs: int | None
    memory_limit: MemoryLimit
    verbose: int
    random_state: RandomState
    classes_: np.ndarray
    best_params_: dict[str, Any]
    best_estimator_: Any

    _machine_class: type[KernelMachine]
    _parameter_constraints: dict[str, list[Any]] = {
        "Cs": [_COUNT, "array-like"],
        "gammas": [_COUNT, "array-like", StrOptions({"scale", "auto"})],
        "cv": ["cv_object"],
        "scoring": [str, callable, list, tuple, set, dict, None],
        "refit": ["boolean", str, callable],
        "return_train_score": ["boolean"],
        **{name: KernelMachine._parameter_constraints[name] for name in _SHARED},
    }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = self._machine().__sklearn_tags__().input_tags
        return tags

    def _machine(self, **found: Any) -> KernelMachine:
        """The machine whose parameters are chosen."""
        names = self._machine_class._get_param_names()
        parameters = {name: value for name, value in self.get_params(deep=False).items() if name in names}
        return self._machine_class(**parameters, **found).set_callbacks(*vars(self).get("_skl_callbacks", ()))

    # --------------------------------------------------------------------------------------------- fitting

    @validated
    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None) -> Self:
        """Try every C with every gamma in cross-validation, and train with the best on all rows.

        Parameters
        ----------
        X : array, sparse matrix, dataframe or torch tensor, shape (n_samples, n_features)
            For ``kernel="precomputed"`` the (n_samples, n_samples) kernel matrix.
        y : array of shape (n_samples,)
            Class labels, or real targets.
        sample_weight : array of shape (n_samples,), optional
            Multiplies C for each sample; scorers that take weights get them too.
        groups : array of shape (n_samples,), optional
            For splitters such as GroupKFold.

        Returns
        -------
        self
        """
        X, y, sample_weight = on_host(given(X, "X")), on_host(y), on_host(sample_weight)
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)  # what an earlier fit left, and this one may not set
        machine = self._machine()
        rows, labels, weight = machine._checked(X, y, sample_weight)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(machine, name):
                setattr(self, name, getattr(machine, name))
        splitter = sklearn.model_selection.check_cv(self.cv, labels, classifier=is_classifier(self))
        splits = list(splitter.split(rows, labels, groups))
        if not splits:
            raise ValueError(f"cv must give at least one fold to train and test on; {self.cv!r} gives none.")
        folds = Folds.of(machine, labels, weight, splits)
        if isinstance(machine, KernelClassifier):
            self.classes_ = machine.classes_
        self.n_splits_ = len(folds.splits)
        self.scorer_ = sklearn.metrics.check_scoring(machine, self.scoring)
        if isinstance(self.scoring, (list, tuple, set, dict)):
            self._refuse_to_guess(list(self.scoring))
        self._search(rows, labels, folds, None if sample_weight is None else weight)
        if self.refit is not False:
            started = time.perf_counter()
            self.best_estimator_ = self._machine(**self.best_params_).fit(X, y, sample_weight)
            self.refit_time_ = time.perf_counter() - started
        return self

    def _search(self, X: Any, y: np.ndarray, folds: Folds, weight: np.ndarray | None) -> None:
        machine, progress = folds.machine, Progress(int(self.verbose))
        Cs, gammas = c_values(self.Cs), self._gammas(machine, X, weight)
        grid = {"C": Cs.tolist(), **({"gamma": gammas} if gammas else {})}
        candidates = list(sklearn.model_selection.ParameterGrid(grid))
        results, unfinished = Results(candidates, self.n_splits_), []
        seed = check_random_state(self.random_state).randint(2**31 - 1, size=4)
        settings = replace(machine._settings(self.partition), verbose=max(0, int(self.verbose) - 1))
        self.n_iter_ = 0
        for found in search(X, y, folds, Cs, gammas or [1.0], settings, np.random.default_rng(seed)):
            self.n_iter_ += found.iterations
            number = found.C * max(1, len(gammas)) + found.gamma
            self._score(results, number, found, X, y, folds, weight)
            names = ", ".join(f"{name}={value:g}" for name, value in candidates[number].items())
            progress.say(f"{names}: {found.seconds:.1f} s for {self.n_splits_} folds")
            if not found.finished:
                unfinished.append(names)
        self.kernel_evaluations_ = found.kernel_evaluations
        self.cv_results_ = results.table()
        self._choose()
        self._warn(unfinished, len(candidates))

    def _gammas(self, machine: KernelMachine, X: Any, weight: np.ndarray | None) -> list[float]:
        """Empty for kernels that have none."""
        if not hasattr(make_kernel(self.kernel), "gamma"):
            return []
        everyone = np.ones(X.shape[0]) if weight is None else weight
        scale, auto = (machine.set_params(gamma=name)._numeric_gamma(X, everyone) for name in ("scale", "auto"))
        return gamma_values(self.gammas, scale, auto).tolist()

    def _score(
        self, results: Results, number: int, found: Found, X: Any, y: np.ndarray, folds: Folds, weight: Any
    ) -> None:
        parts = ("test", "train") if self.return_train_score else ("test",)
        for split, (decision, (train, test)) in enumerate(zip(found.predictions, folds.splits, strict=True)):
            results.put(number, split, fit_time=found.seconds / self.n_splits_)
            for part, chosen in zip(parts, (test, train), strict=False):
                started = time.perf_counter()
                fitted = folds.fitted(decision[:, chosen]).set_params(**results.candidates[number])
                some = rows_of(folds.machine, X, chosen, train)
                scores = scores_of(self.scorer_, fitted, some, y[chosen], None if weight is None else weight[chosen])
                results.put(number, split, **{f"{part}_{name}": value for name, value in scores.items()})
                if part == "test":
                    results.put(number, split, score_time=time.perf_counter() - started)

    def _choose(self) -> None:
        """Set what is said of the best candidate."""
        scores = [name.removeprefix("rank_test_") for name in self.cv_results_ if name.startswith("rank_test_")]
        self.multimetric_ = scores != ["score"]
        if self.multimetric_:
            self._refuse_to_guess(scores)
            if self.refit is False:
                return
        if callable(self.refit):
            self.best_index_ = int(self.refit(self.cv_results_))
        else:
            name = self.refit if self.multimetric_ else "score"
            self.best_index_ = int(self.cv_results_[f"rank_test_{name}"].argmin())
            self.best_score_ = float(self.cv_results_[f"mean_test_{name}"][self.best_index_])
        self.best_params_ = self.cv_results_["params"][self.best_index_]

    def _refuse_to_guess(self, scores: Sequence[str]) -> None:
        if self.refit is not False and self.refit not in scores and not callable(self.refit):
            raise ValueError(
                f"With several scores ({', '.join(scores)}) refit must be the name of the one to choose by, a function "
                f"of cv_results_ that returns the number of the best, or False; got {self.refit!r}."
            )

    def _warn(self, unfinished: Sequence[str], count: int) -> None:
        if unfinished:
            warnings.warn(
                f"{len(unfinished)} of {count} candidates did not converge to tol={self.tol:g} (max_iter="
                f"{self.max_iter}): {'; '.join(unfinished)}. Their scores are of what was reached. Raise max_iter or "
                "tol, scale the data, or leave out the largest C.",
                ConvergenceWarning,
            )

    # ------------------------------------------------------------------------------------------- predicting

    def _best(self) -> Any:
        check_is_fitted(self)
        if not hasattr(self, "best_estimator_"):
            raise NotFittedError(
                f"This {type(self).__name__} was fitted with refit=False and has no model: set refit=True and fit "
                f"again, or fit {self._machine_class.__name__} with the parameters of your choice."
            )
        return self.best_estimator_

    def predict(self, X: Any) -> np.ndarray:
        """What the best model predicts: class labels, or targets in the shape that y had."""
        return self._best().predict(X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The score of the best model, by `scoring`."""
        best = self._best()
        scores = scores_of(self.scorer_, best, X, given(y, "y"), given(sample_weight, "sample_weight"))
        name = self.refit if self.multimetric_ else "score"
        if name not in scores:
            raise ValueError(
                f"There are several scores ({', '.join(scores)}) and refit names none of them: call the one that you "
                "want with best_estimator_."
            )
        return scores[name]

    def certify(self, X: Any, y: Any, sample_weight: Any = None) -> Certificate:
        """The certificate of the best model for the rows that it was trained on, all of those that `fit` was given; see
        `KernelMachine.certify`."""
        return self._best().certify(X, y, sample_weight)
