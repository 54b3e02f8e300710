"""parablock behind the interface of its rivals: every outer iteration is a moment.

The moments are told after the fit, with the seconds that the fit itself noted: what is kept for them on the way is one
copy of the coefficients an iteration.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks.rivals.base import Model, Stopwatch
from benchmarks.rivals.models import Modeller
from benchmarks.rivals.workshop import KernelRival
from parablock import KernelLogisticRegression, KernelSVC
from parablock.engines import LocalEngine
from parablock.monitor import Record
from parablock.monitor.checkpoint import Shelf, Snapshot

ESTIMATORS = {"hinge": KernelSVC, "logistic": KernelLogisticRegression}
# The paper's: one partition by k-means, the same in all iterations.
ALGORITHM_1: dict[str, Any] = {"partition": "kmeans", "regroup": False}


@dataclass
class Parablock(KernelRival):
    """parablock's estimators.

    Without an intercept a moment is told for each outer iteration, with one only for the end.

    Parameters
    ----------
    loss : {"hinge", "logistic"}
    prediction : {"global", "local"}
        Local prediction needs a partition that stays (`ALGORITHM_1`).
    options : dict
        Other parameters of the estimator.

    Attributes
    ----------
    estimator_ : KernelSVC or KernelLogisticRegression
    """

    loss: str = field(default="hinge", kw_only=True)
    prediction: str = field(default="global", kw_only=True)
    options: dict[str, Any] = field(default_factory=dict, kw_only=True)

    def _train(self, X: Any, y: np.ndarray, clock: Stopwatch) -> Model:
        diary = _Diary()
        names = ("C", "gamma", "random_state", "fit_intercept", "device", "n_jobs", "memory_limit", "prediction")
        parameters = {name: getattr(self, name) for name in names}
        self.estimator_ = ESTIMATORS[self.loss](**parameters, engine=_Watched(diary), **self.options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # to stop early may be what is asked for
            self.estimator_.fit(X, y)
        if not self.fit_intercept:
            models = cache(lambda: Modeller.of(self.make_device, X, self.gamma))  # for the listener, who is not timed
            before = np.zeros(len(y))
            for record, coef in diary.entries[:-1]:
                clock.tell(lambda: self._model(models(), record, before, coef), record.seconds)  # noqa: B023
                before = coef
        coef = np.zeros(len(y))
        coef[self.estimator_.support_] = self.estimator_.dual_coef_[0]
        return Model(self.estimator_.decision_function, coef, -self.estimator_.dual_objective_)

    def _model(self, models: Modeller, record: Record, before: np.ndarray, coef: np.ndarray) -> Model:
        if self.prediction == "global" or record.step == 0.0:
            return models.everywhere(coef, objective=record.objective)
        partition = self.estimator_.partition_
        direction = (coef - before) / record.step  # of all blocks, before the line search shortened it
        steps = [(direction[rows], 0.0) for rows in partition.blocks]
        model = models.by_group(partition.centres, partition.blocks, steps, before)
        return replace(model, coef=coef, objective=record.objective)


class _Watched(LocalEngine):
    """This machine, and a diary of what it does."""

    def __init__(self, diary: _Diary) -> None:
        self.shelf = diary


class _Diary(Shelf):
    """Keeps the coefficients of every iteration."""

    def __init__(self) -> None:
        super().__init__()
        self.entries: list[tuple[Record, np.ndarray]] = []

    def put(self, snapshot: Snapshot, order: np.ndarray) -> None:
        coef = np.empty(len(order))
        coef[order] = snapshot.coef[0]
        self.entries.append((snapshot.history[-1], coef))
