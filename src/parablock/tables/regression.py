"""Regression on tables, without settings."""

from __future__ import annotations

from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import _check_y, check_consistent_length, check_is_fitted

from parablock.devices.cpu.threads import limited_threads
from parablock.estimators._bases import RegressorMixin, validated
from parablock.tables import honest
from parablock.tables.base import AutoKernel
from parablock.tables.importances import r_squared
from parablock.tables.intervals import Jackknife
from parablock.tables.rows import Rows
from parablock.tensors import on_host


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
