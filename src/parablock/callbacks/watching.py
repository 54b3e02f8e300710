"""A fit as callbacks see it, and what tells them.

Where several machines train together, callbacks are called on the first one only. What they decide everyone obeys, and
an error of theirs is everyone's.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from numbers import Integral
from types import SimpleNamespace
from typing import Any, TypeVar

import numpy as np

from parablock import vectors
from parablock.callbacks.contexts import as_fitted
from parablock.engines import Engine, Shard
from parablock.engines.dask_rows import is_collection
from parablock.monitor import Record
from parablock.partition import Partition
from parablock.solver import Solution
from parablock.training import Trained

T = TypeVar("T")
STOPPED = "A callback stopped training"


class Run:
    """One fit, as callbacks see it.

    Attributes
    ----------
    estimator : estimator
        The one that is being fitted.
    shape : pair of int or None
        Rows and features, as far as they are known; of this machine's data, until training begins with that of all.
    history : list of Record
        One of every iteration so far.
    partition : Partition or None
        The first blocks, from when there are any.
    machines : int
        Processes that train together.
    has_models : bool
        Whether `fitted` can give models: not where the fit runs on other machines.
    scorers : list
        Who computes a validation score.
    best : Solution or None
        What to keep in the end instead of the last iteration: one that `solution` gave.
    why : str or None
        What `stop` was told.
    data, centre : array or None
        The rows that are trained with, and what is subtracted from them, from when training begins.
    dtype : dtype
        Of the rows, as training needs them, from when there are blocks.
    ended : bool
        Whether the estimator is fitted by now; a fit that fails is torn down before.

    Examples
    --------
    >>> from parablock import KernelSVC
    >>> from parablock.callbacks import Callback
    >>> class Last(Callback):
    ...     def ended(self, run):
    ...         self.kind, self.rows = run.record.kind, run.shape[0]
    >>> last = Last()
    >>> model = KernelSVC().set_callbacks(last).fit([[0.0], [1.0], [2.0]], [0, 0, 1])
    >>> last.kind, last.rows
    ('partition', 3)
    """

    def __init__(self, estimator: Any, shape: tuple[int | None, int | None]) -> None:
        self.estimator, self.shape = estimator, shape
        self.history: list[Record] = []
        self.partition: Partition | None = None
        self.machines, self.has_models, self.ended = 1, True, False
        self.scorers: list[Any] = []
        self.why: str | None = None
        self.best: Solution | None = None
        self.data: Any = None
        self.centre: np.ndarray | None = None
        self.dtype = np.dtype(np.float64)
        self._started = time.monotonic()
        self._memory: dict[int, SimpleNamespace] = {}
        self._solution: Callable[[], Solution] | None = None
        self._model_of: Callable[[Solution], dict[str, Any]] | None = None
        self._model: Any = None

    @property
    def record(self) -> Record:
        """The newest one."""
        return self.history[-1]

    @property
    def seconds(self) -> float:
        """Since the fit began."""
        return time.monotonic() - self._started

    def memory(self, callback: Any) -> SimpleNamespace:
        """What a callback wants to remember during this fit, and no longer: it may watch several at a time."""
        return self._memory.setdefault(id(callback), SimpleNamespace())

    def stop(self, why: str) -> bool:
        """Say why training is to end, in the words that begin a ConvergenceWarning ("... after 7 iterations"); with no
        words there is no warning. Returns True, which is what the callback should return."""
        self.why = why
        return True

    def solution(self) -> Solution:
        """What training has reached, with the coefficients of all rows; at the end of an iteration only."""
        if self._solution is None:
            raise RuntimeError("The model is to be had at the end of an iteration, and where the fit runs.")
        return self._solution()

    def fitted(self) -> Any:
        """A model as if the fit had ended with the newest iteration; computed once, and only when asked for."""
        if self.ended:
            return as_fitted(self.estimator, {})
        if self._model is None:
            self._model = as_fitted(self.estimator, self._attributes())
        return self._model

    def _attributes(self) -> dict[str, Any]:
        solution = self.solution()
        assert self._model_of is not None
        return self._model_of(solution)

    def at(self, record: Record, solution: Callable[[], Solution] | None) -> None:
        """An iteration has ended; `solution` is there as long as its callbacks are heard."""
        self.history.append(record)
        self._model, self._solution = None, solution

    def between(self) -> None:
        """No iteration has just ended."""
        self._model = self._solution = None


class Watch:
    """Tells the callbacks of an estimator how its fit goes on."""

    def __init__(self, estimator: Any, engine: Engine, X: Any, y: Any, sample_weight: Any) -> None:
        self.estimator, self.engine = estimator, engine
        self.run = Run(estimator, _shape(X))
        self.run.has_models = not engine.elsewhere
        elsewhere = is_collection(X) or is_collection(y)  # nothing that a callback here should compute with
        self._given = {
            "X": None if elsewhere else X,
            "y": None if elsewhere else y,
            "metadata": {} if sample_weight is None else {"sample_weight": sample_weight},
        }
        self._root: Any = None
        self._task: Any = None
        self._rows: _RowsOfAll | None = None

    # ------------------------------------------------------------------------------------------------- the fit

    def open(self, support: Any) -> None:
        """The callbacks are set up."""
        if self.engine.is_first():
            self._root = support._init_callback_context(self.estimator, task_name="fit", max_subtasks=None)
            self._root.call_on_fit_task_begin(estimator=self.estimator, **self._given)

    def over(self, X: Any, model_of: Callable[[Any, Trained], dict[str, Any]]) -> None:
        """The data, and what makes a model's attributes of it and of what is trained."""
        run = self.run
        self._rows = _RowsOfAll(X, self.engine) if isinstance(X, Shard) else None
        run.data = X if self._rows is None else self._rows
        run.shape = _shape(X)

        def attributes(solution: Solution) -> dict[str, Any]:
            assert run.partition is not None
            return model_of(run.data, Trained(solution, run.partition, run.centre, run.dtype))

        run._model_of = attributes

    def ready(
        self, partition: Partition, centre: np.ndarray | None, dtype: np.dtype, order: np.ndarray, machines: int
    ) -> None:
        self.run.partition, self.run.centre, self.run.dtype, self.run.machines = partition, centre, dtype, machines
        self._order = order

    def best(self) -> Solution | None:
        """What a callback wants to be kept, if any does."""
        return self.engine.agree(self.run.best)

    def close(self) -> None:
        """The estimator is fitted."""
        self.run.ended = True
        if self.engine.is_first():
            self._root.call_on_fit_task_end(estimator=self.estimator, reconstruction_attributes=dict, **self._given)

    # ------------------------------------------------------------------------------------------- its iterations

    def begin(self) -> None:
        self.engine.checked(self._begin)

    def _begin(self) -> None:
        if self.engine.is_first() and self._task is None:  # a solver that gave up has announced it already
            self._task = self._root.subcontext(task_name="iteration")
            self._task.call_on_fit_task_begin(estimator=self.estimator, **self._given)

    def heard(self, record: Record, shape: tuple[int | None, int | None], machines: int) -> bool:
        """Of an iteration that other machines have made; True ends their fit."""
        self.run.shape, self.run.machines = shape, machines
        self.begin()
        return self.end(record, None)

    def catch_up(self, history: list[Record]) -> None:
        """With the whole history of other machines' fit, of which the last iterations may not have been heard."""
        known = self.run.history
        last = history.index(known[-1]) + 1 if known and known[-1] in history else 0
        for record in history[last:]:
            self.heard(record, self.run.shape, self.run.machines)

    def end(self, record: Record, so_far: Callable[[], Solution] | None) -> bool:
        solution = None if so_far is None else _once(lambda: _put_back(so_far(), self._order))
        self.run.at(record, solution)
        try:
            stop, self.run.why = self.engine.agree(self.engine.checked(self._end))
        finally:
            self.run.between()
        return stop

    def _end(self) -> tuple[bool, str | None]:
        run = self.run
        if not self.engine.is_first():
            if self._rows is not None:
                self._rows.serve()
            return False, None
        try:
            # Computed only where a callback asks for it, and by scikit-learn for all callbacks once.
            model = run._attributes if run._solution is not None else None
            task, self._task = self._task, None
            stop = task.call_on_fit_task_end(estimator=self.estimator, reconstruction_attributes=model, **self._given)
        finally:
            if self._rows is not None:
                self._rows.dismiss()
        if stop and run.why is None:
            run.why = STOPPED
        return stop, run.why


class _RowsOfAll:
    """Rows of data that is spread over machines, for callbacks of the first of them: the others fetch them with it."""

    def __init__(self, X: Shard, engine: Engine) -> None:
        self.X, self.engine = X, engine
        self.shape, self.dtype = X.shape, X.dtype

    def __getitem__(self, rows: np.ndarray) -> Any:
        return self.X[self.engine.agree(rows)]

    def serve(self) -> None:
        """On the other machines, until they are dismissed."""
        while (rows := self.engine.agree(None)) is not None:
            self.X[rows]

    def dismiss(self) -> None:
        self.engine.agree(None)


def _shape(X: Any) -> tuple[int | None, int | None]:
    """Rows and features of what a user has passed, as far as it tells: the fit itself will complain."""
    try:
        sizes = X.shape if hasattr(X, "shape") else np.shape(X)
    except ValueError:
        sizes = ()
    rows, features = [int(size) if isinstance(size, Integral) else None for size in (*sizes, None, None)[:2]]
    return rows, features


def _once(work: Callable[[], T]) -> Callable[[], T]:
    """The work, done when it is asked for the first time."""
    results: list[T] = []

    def result() -> T:
        if not results:
            results.append(work())
        return results[0]

    return result


def _put_back(solution: Solution, order: np.ndarray) -> Solution:
    """The same where row i is called order[i], as far as it is about all rows."""
    values = vectors.to_host(solution.state.coef)
    coef = np.empty_like(values)
    coef[:, order] = values
    local = None if solution.local is None else solution.local.put_back(order)
    return replace(solution, state=replace(solution.state, coef=coef), local=local)
