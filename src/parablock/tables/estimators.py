"""The estimators: kernel machines for tables without settings."""

from __future__ import annotations

import os
import warnings
from concurrent.futures import ThreadPoolExecutor
from numbers import Real
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from scipy.special import softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_y, check_consistent_length, check_is_fitted, validate_data

from parablock.devices.cpu.threads import limited_threads, thread_count
from parablock.devices.memory import memory_bytes
from parablock.estimators._bases import THREADS, BaseEstimator, ClassifierMixin, RegressorMixin, validated
from parablock.monitor.progress import Progress
from parablock.tables import honest
from parablock.tables.fitting import Fit, Fitted
from parablock.tables.importances import Score, accuracy, importances, r_squared
from parablock.tables.intervals import Jackknife, Trial
from parablock.tables.learning import Control
from parablock.tables.reading import Reader, array_columns, frame_columns, is_frame
from parablock.tables.rows import Rows, distinct_rows
from parablock.tensors import on_host

_CHUNK = 1024  # rows that are predicted at a time


class AutoKernel(BaseEstimator):
    """What both estimators share."""

    max_time: float | None
    memory_limit: Any
    n_jobs: int | None
    verbose: int
    random_state: Any
    _fitted: Fitted
    _reader: Reader
    _trial: Trial
    _importance_score: Score

    _parameter_constraints: dict[str, list[Any]] = {
        "max_time": [Interval(Real, 0, None, closed="neither"), None],
        "memory_limit": [Interval(Real, 0, None, closed="neither"), str, None],
        "n_jobs": [*THREADS, None],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
    }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    # ------------------------------------------------------------------------------------------------- reading

    def _read(self, X: Any, y: Any = "no_validation", reset: bool = False) -> np.ndarray:
        """X as a matrix of numbers; what makes it is learned where `reset`."""
        X = on_host(X)
        if sp.issparse(X):
            raise TypeError(
                f"Sparse data was passed, but {type(self).__name__} needs dense data: its metric looks at every column "
                "of a row. Use X.toarray(), or a KernelSVC or KernelRidge for wide sparse rows."
            )
        if is_frame(X):
            validate_data(self, X, y, reset=reset, skip_check_array=True)
            if min(X.shape) < 1:
                raise ValueError(
                    f"Found array with {X.shape[0]} sample(s) and {X.shape[1]} feature(s): there is nothing to read."
                )
            columns, names, free = frame_columns(X, warn=reset)
        else:
            objects = np.asarray(X).dtype.kind == "O" if not hasattr(X, "dtype") else X.dtype == object
            dtype: Any = None if objects else np.float64
            finite: Any = False if objects else "allow-nan"
            checked = validate_data(self, X, reset=reset, dtype=dtype, ensure_all_finite=finite)
            validate_data(self, X, y, reset=False, skip_check_array=True)
            columns, names, free = array_columns(checked)
        if reset:
            self._reader = Reader.learned(columns, names, free)
        return self._reader.read(columns)

    def _weights(self, sample_weight: Any, n: int) -> np.ndarray:
        if sample_weight is None:
            return np.ones(n)
        weight = np.asarray(on_host(sample_weight), dtype=np.float64)
        if weight.ndim == 0:
            weight = np.full(n, float(weight))
        if weight.shape != (n,):
            raise ValueError(f"sample_weight has shape {weight.shape} and X has {n} rows: one number a row is needed.")
        if not np.isfinite(weight).all() or (weight < 0).any():
            raise ValueError("sample_weight must be zero or positive and finite for every row.")
        if not weight.any():
            raise ValueError("All sample weights are zero: there is nothing to fit. Give some sample a positive one.")
        return weight

    # ------------------------------------------------------------------------------------------------- fitting

    def _fit(
        self, values: np.ndarray, target: np.ndarray, weight: np.ndarray, groups: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        """Learn; decisions on the rows of positive weight by machines that were fitted without them, and the number of
        the distinct row that each row is part of."""
        group = None
        if groups is not None:
            groups = column_or_1d(on_host(groups))
            check_consistent_length(values, groups)
            group = np.unique(groups, return_inverse=True)[1].astype(np.intp)
            if group.max() == 0:
                raise ValueError(
                    "All rows are of one group, so that nothing is left when it is left out. Pass groups=None."
                )
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        there = weight > 0
        group = None if group is None else group[there]
        rows, place = distinct_rows(values[there], target[there], weight[there], group, seed)
        rows = self._scaled(rows)
        control = Control(self.max_time, Progress(int(self.verbose)).say)
        memory = memory_bytes(self.memory_limit)
        fit = Fit(rows, self._reader.n_levels, self._n_threads(), memory, control)
        with limited_threads(openmp=1):
            result = control.waited_for(fit.run)
        self._fitted, self._trial = result.fitted, result.trial
        self.__dict__.pop("_importances", None)
        self.stop_reason_ = control.reason or "finished"
        if control.reason is not None:
            why = f"The time limit of {self.max_time} s was reached" if control.reason == "time" else "Interrupted"
            warnings.warn(
                f"{why} before the metric was learned. The model is usable, with the metric as it was by then; more "
                "time may make it better.",
                ConvergenceWarning,
            )
        return self._unscaled(result.honest[place]), place

    def _scaled(self, rows: Rows) -> Rows:
        """Targets as they are learned."""
        return rows

    def _unscaled(self, decision: np.ndarray) -> np.ndarray:
        return decision

    def _n_threads(self) -> int:
        return thread_count(self.n_jobs)

    @property
    def feature_importances_(self) -> np.ndarray:
        """What the honest score loses when the values of a column are shuffled, for each column of the table.

        The score is R squared or accuracy, over some hundred rows that were judged by machines without them; the mean
        of three shuffles. Computed when it is first asked for, in about the time of four factorisations of the kernel
        matrix and some predictions a column.
        """
        check_is_fitted(self)
        if not hasattr(self, "_importances"):
            self._check_memory_of_trial("Importances")
            score = type(self)._importance_score
            with limited_threads(openmp=1):
                self._importances = importances(self._trial, score, self._n_threads())
        return self._importances

    def _check_memory_of_trial(self, what: str) -> None:
        needed, limit = self._trial.bytes(), memory_bytes(self.memory_limit)
        if needed > limit:
            raise ValueError(
                f"{what} take {needed / 2**20:.0f} MB for matrices of all pairs of rows, more than memory_limit "
                f"({limit / 2**20:.0f} MB). Raise it with set_params if the machine has as much."
            )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file; see `parablock.save`."""
        from parablock.models import save

        save(self, path)

    # ---------------------------------------------------------------------------------------------- predicting

    def _decide(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        values = self._read(X)
        chunks = [values[first : first + _CHUNK] for first in range(0, len(values), _CHUNK)]
        with limited_threads(openmp=1), ThreadPoolExecutor(min(self._n_threads(), len(chunks))) as pool:
            return self._unscaled(np.vstack(list(pool.map(self._fitted.decision, chunks))))


class AutoKernelRegressor(RegressorMixin, AutoKernel):
    """Regression on tables, without settings: a kernel machine that learns its metric.

    Two machines of kernel least squares are fitted and their predictions averaged. The weight of every column, the
    shape of the kernels and the strength of regularisation are found by minimising the exact leave-one-out error, so
    columns need no scaling, and there is nothing to tune. Missing values and categories are taken as they are. See
    the page on tables for how it works, and for what it costs: memory grows with the square of the rows and time with
    their cube, up to some 10,000 rows.

    Parameters
    ----------
    max_time : float or None, default=None
        Seconds after which learning ends, with a ConvergenceWarning; the last solutions are computed after that.
    memory_limit : int, str or None, default=None
        Memory for matrices of all pairs of rows, in bytes or as "500MB" or "2GB"; None takes half of what is free, at
        most 4 GB. A fit that needs more is refused.
    n_jobs : int or None, default=None
        Threads; None and -1 mean all cores. A fit uses up to four. The model is the same for any number.
    verbose : int, default=0
        1 writes a line to standard error for each stage of a fit.
    random_state : int, RandomState or None, default=None
        Of the division into halves on which learning begins.

    Attributes
    ----------
    score_estimate_ : float
        What `score` is expected to be on new rows like those of the fit: R squared of decisions on rows that were left
        out of the fit, and that the metric was not learned on. With very few rows (less than 24) nothing is learned
        but the scale, and the plain leave-one-out decisions are taken.
    feature_importances_ : ndarray of shape (n_features,)
        What the honest score loses when the values of a column are shuffled; computed when it is first asked for.
    stop_reason_ : {"finished", "time", "interrupted"}
        Why learning ended.
    n_features_in_ : int
        Columns of the table.
    feature_names_in_ : ndarray of str
        Of a dataframe.

    Examples
    --------
    >>> import numpy as np
    >>> from parablock import AutoKernelRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 3)) * [1, 100, 0.01]
    >>> y = np.sin(2 * X[:, 0]) + X[:, 1] / 100 + rng.normal(scale=0.1, size=200)
    >>> model = AutoKernelRegressor(random_state=0).fit(X[:150], y[:150])
    >>> model.score(X[150:], y[150:]) > 0.95, model.score_estimate_ > 0.95
    (True, True)
    """

    _importance_score = staticmethod(r_squared)

    def __init__(
        self,
        *,
        max_time: float | None = None,
        memory_limit: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.max_time = max_time
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        return tags

    @validated
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Learn from a table.

        Parameters
        ----------
        X : dataframe or array of shape (n_samples, n_features)
            Numbers, truth values, categories, text of few levels, dates; missing values where there are any.
        y : array of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array of shape (n_samples,), optional
            How much a row counts. A weight of k is the same as k equal rows; only ratios matter.
        groups : array of shape (n_samples,), optional
            Rows of one group belong together (one patient, one day): they are left out together.

        Returns
        -------
        self
        """
        values = self._read(X, y, reset=True)
        y = _check_y(on_host(y), multi_output=True, y_numeric=True, estimator=self)
        check_consistent_length(values, y)
        weight = self._weights(sample_weight, len(values))
        self._single_target = y.ndim == 1
        target = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
        decision, place = self._fit(values, target, weight, groups)
        there = weight > 0
        # Squares of very large targets would overflow.
        target, decision = (np.ldexp(one, -self._exponent) for one in (target[there], decision))
        self.score_estimate_ = honest.r_squared(target, decision, weight[there])
        judged = np.isfinite(decision).all(axis=1)
        residual = np.abs(target - decision)[judged] / self._spread
        self._jackknife = Jackknife(self._trial, place[judged], residual, weight[there][judged])
        return self

    def _scaled(self, rows: Rows) -> Rows:
        exponent = np.frexp(np.abs(rows.target).max(axis=0))[1]
        target = np.ldexp(rows.target, -exponent)  # so that no square overflows
        mean = np.average(target, axis=0, weights=rows.weight)
        spread = np.sqrt(np.average((target - mean) ** 2, axis=0, weights=rows.weight))
        spread[spread < 1e-14] = 1.0
        self._mean, self._spread, self._exponent = mean, spread, exponent
        return Rows(rows.values, (target - mean) / spread, rows.weight, rows.group)

    def _unscaled(self, decision: np.ndarray) -> np.ndarray:
        return np.ldexp(decision * self._spread + self._mean, self._exponent)

    def predict(self, X: Any) -> np.ndarray:
        """Predicted targets, in the shape that y had.

        Parameters
        ----------
        X : dataframe or array of shape (n_samples, n_features)
            With the columns of the fit. A level of a category that was not there counts as none of the levels.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_targets)
        """
        decision = self._decide(X)
        return decision[:, 0] if self._single_target else decision

    def predict_interval(self, X: Any, coverage: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """Intervals that hold the targets of about a share `coverage` of new rows, by jackknife+.

        The machines that judged the rows of the fit are fitted again without each row, in closed form: a call costs
        about as much as four factorisations of the kernel matrix, so that all rows should be passed at once. The share
        is what was measured on tables, no guarantee: see the page on tables.

        Parameters
        ----------
        X : dataframe or array of shape (n_samples, n_features)
            With the columns of the fit.
        coverage : float, default=0.9
            Between 0 and 1. With fewer rows than 1 / (1 - coverage) intervals are infinite.

        Returns
        -------
        lower, upper : ndarrays, in the shape of predictions

        Examples
        --------
        >>> import numpy as np
        >>> from parablock import AutoKernelRegressor
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(size=(300, 1))
        >>> y = np.sin(6 * X[:, 0]) + rng.normal(scale=0.1, size=300)
        >>> model = AutoKernelRegressor(random_state=0).fit(X[:100], y[:100])
        >>> lower, upper = model.predict_interval(X[100:], coverage=0.8)
        >>> bool(0.7 < np.mean((lower <= y[100:]) & (y[100:] <= upper)) < 0.9)
        True
        """
        check_is_fitted(self)
        if not (isinstance(coverage, Real) and 0 < coverage < 1):
            raise ValueError(f"coverage must be a number between 0 and 1, got {coverage!r}.")
        values = self._read(X)
        self._check_memory_of_trial("Intervals")
        with limited_threads(openmp=1):
            ends = self._jackknife.intervals(values, float(coverage))
        lower, upper = (self._unscaled(end) for end in ends)
        return (lower[:, 0], upper[:, 0]) if self._single_target else (lower, upper)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The coefficient of determination, R squared."""
        return super().score(X, on_host(y), on_host(sample_weight))


class AutoKernelClassifier(ClassifierMixin, AutoKernel):
    """Classification of tables, without settings: a kernel machine that learns its metric.

    As `AutoKernelRegressor`, with a target of -1 and 1 for each class. Probabilities are the softmax of the decisions
    times a temperature, which is chosen by decisions on rows that the metric was not learned on.

    Parameters
    ----------
    class_weight : dict, "balanced" or None, default=None
        Multiplies the weights of the rows of each class.
    max_time : float or None, default=None
        Seconds after which learning ends, with a ConvergenceWarning; the last solutions are computed after that.
    memory_limit : int, str or None, default=None
        Memory for matrices of all pairs of rows, in bytes or as "500MB" or "2GB"; None takes half of what is free, at
        most 4 GB. A fit that needs more is refused.
    n_jobs : int or None, default=None
        Threads; None and -1 mean all cores. A fit uses up to four. The model is the same for any number.
    verbose : int, default=0
        1 writes a line to standard error for each stage of a fit.
    random_state : int, RandomState or None, default=None
        Of the division into halves on which learning begins.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    score_estimate_ : float
        What `score` is expected to be on new rows like those of the fit: the accuracy of decisions on rows that were
        left out of the fit, and that the metric was not learned on. With very few rows (less than 24) nothing is
        learned but the scale, and the plain leave-one-out decisions are taken.
    temperature_ : float
        What decisions are multiplied by before the softmax.
    feature_importances_ : ndarray of shape (n_features,)
        What the honest score loses when the values of a column are shuffled; computed when it is first asked for.
    stop_reason_ : {"finished", "time", "interrupted"}
        Why learning ended.
    n_features_in_ : int
        Columns of the table.
    feature_names_in_ : ndarray of str
        Of a dataframe.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from parablock import AutoKernelClassifier
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> model = AutoKernelClassifier(random_state=0).fit(X[:150], y[:150])
    >>> model.score(X[150:], y[150:]) > 0.9, model.predict_proba(X[150:]).shape
    (True, (50, 2))
    """

    _parameter_constraints: dict[str, list[Any]] = {
        **AutoKernel._parameter_constraints,
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }

    _importance_score = staticmethod(accuracy)

    def __init__(
        self,
        *,
        class_weight: Any = None,
        max_time: float | None = None,
        memory_limit: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.class_weight = class_weight
        self.max_time = max_time
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    @validated
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Learn from a table.

        Parameters
        ----------
        X : dataframe or array of shape (n_samples, n_features)
            Numbers, truth values, categories, text of few levels, dates; missing values where there are any.
        y : array of shape (n_samples,)
            Class labels.
        sample_weight : array of shape (n_samples,), optional
            How much a row counts. A weight of k is the same as k equal rows; only ratios matter.
        groups : array of shape (n_samples,), optional
            Rows of one group belong together (one patient, one day): they are left out together.

        Returns
        -------
        self
        """
        values = self._read(X, y, reset=True)
        y = column_or_1d(_check_y(on_host(y), multi_output=False, estimator=self), warn=True)
        check_classification_targets(y)
        check_consistent_length(values, y)
        weight = self._weights(sample_weight, len(values))
        self.classes_, label = np.unique(y, return_inverse=True)
        n_classes = len(self.classes_)
        present = np.flatnonzero(np.bincount(label[weight > 0], minlength=n_classes))
        if len(present) < 2:
            raise ValueError(
                f"{type(self).__name__} needs samples of at least 2 classes with a positive weight, got 1 class: "
                f"{self.classes_[present].tolist()}. Check y and sample_weight."
            )
        columns = np.arange(n_classes)[1 if n_classes == 2 else 0 :]
        target = np.where(label[:, None] == columns, 1.0, -1.0)
        decision, _ = self._fit(values, target, weight * self._class_weights(y, weight)[label], groups)
        there = weight > 0
        self.score_estimate_ = honest.accuracy(label[there], decision, weight[there])
        self.temperature_ = honest.temperature(label[there], decision, weight[there], len(self._fitted.values))
        return self

    def _class_weights(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        options = {"sample_weight": weight} if self.class_weight == "balanced" else {}
        weights = compute_class_weight(self.class_weight, classes=self.classes_, y=y, **options)
        if not (np.all(np.isfinite(weights)) and np.all(weights > 0)):
            raise ValueError(
                f"class_weight must be positive for every class, got {self.class_weight!r}. Leave rows out of the "
                "training data, or give them sample_weight=0, to ignore a class."
            )
        return weights

    def decision_function(self, X: Any) -> np.ndarray:
        """Decision values: of shape (n_samples,) for two classes, positive for ``classes_[1]``; else one column a
        class."""
        decision = self._decide(X)
        return decision[:, 0] if len(self.classes_) == 2 else decision

    def predict(self, X: Any) -> np.ndarray:
        """Class labels."""
        decision = self._decide(X)
        return self.classes_[honest.labels(decision)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes, in the order of ``classes_``."""
        decision = self._decide(X)
        return softmax(self.temperature_ * honest.logits(decision), axis=1)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of samples that are classified rightly."""
        return super().score(X, on_host(y), on_host(sample_weight))
