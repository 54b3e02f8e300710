"""What both estimators share: reading tables, fitting, importances, prediction."""

from __future__ import annotations

import os
import warnings
from concurrent.futures import ThreadPoolExecutor
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from parablock.devices.cpu.threads import limited_threads, thread_count
from parablock.devices.memory import memory_bytes
from parablock.estimators._bases import THREADS, BaseEstimator
from parablock.monitor.progress import Progress
from parablock.tables.fitting import Fit, Fitted
from parablock.tables.importances import Score, importances
from parablock.tables.intervals import Trial
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
