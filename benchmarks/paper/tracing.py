"""One solver on one problem, and what it had reached when: seconds, relative error of the objective, test accuracy."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.paper.problems import Problem
from benchmarks.rivals import Moment, Parablock, Rival
from benchmarks.rivals.models import Modeller

# Are fitted first, so that what is compiled or started once is not counted; a GPU's programs are compiled for the size
# of blocks.
WARM_UP_ROWS = {"cpu": 2_000, "cuda": 20_000}
WARM_UP_ITERATIONS = 12  # of our own solver on a GPU, with all rows
ERROR = 1e-3  # the paper's goal: relative error of the dual objective
_AT_ONCE = 16  # coefficient vectors whose objectives are computed together
_MOST_MOMENTS = 40  # whose accuracy is computed: the first ones, and evenly spaced later ones
_APART = 1.03  # a moment whose objective must be computed is kept if it is so much later than the last


@dataclass(frozen=True)
class Point:
    """What a solver had reached after so many seconds; None where it has no dual objective or no accuracy was taken."""

    seconds: float
    objective: float | None
    accuracy: float | None


@dataclass(frozen=True)
class Course:
    """A fit from its start to its end.

    Attributes
    ----------
    seconds : float
        Of the whole fit.
    cpu_seconds : float
        Of all threads.
    points : list of Point
    stopped : bool
        Whether it was stopped at the limit of time, before its own end.
    """

    seconds: float
    cpu_seconds: float
    points: list[Point]
    stopped: bool = False

    @classmethod
    def of(cls, stored: dict[str, Any]) -> Course:
        """The same from what a file has kept."""
        return cls(**{**stored, "points": [Point(**point) for point in stored["points"]]})

    @property
    def last(self) -> Point:
        return self.points[-1]

    def errors(self, optimum: float) -> list[tuple[float, float]]:
        """Seconds, and the relative error of the objective, wherever it is known."""
        known = ((point.seconds, point.objective) for point in self.points if point.objective is not None)
        return [(seconds, (objective - optimum) / abs(optimum)) for seconds, objective in known]

    def accuracies(self) -> list[tuple[float, float]]:
        return [(point.seconds, point.accuracy) for point in self.points if point.accuracy is not None]

    def reached(self, optimum: float, error: float = ERROR) -> Point | None:
        """The first point with so small an error; its accuracy is that of the next point that has one."""
        for place, point in enumerate(self.points):
            if point.objective is not None and (point.objective - optimum) / abs(optimum) <= error:
                accuracy = next((later.accuracy for later in self.points[place:] if later.accuracy is not None), None)
                return replace(point, accuracy=accuracy)
        return None


def trace(rival: Rival, problem: Problem, limit: float | None = None) -> Course:
    """Fit, and look at the models that the solver tells of; after `limit` seconds it is stopped when it tells one."""
    _warm_up(rival, problem)
    # Our own solver tells all when it is done, after as many iterations as it was given.
    listener, stopped = _Listener(None if isinstance(rival, Parablock) else limit), False
    cpu = time.process_time()
    try:
        rival.fit(problem.X, problem.y, watch=listener)
    except _OutOfTime:
        stopped = True
    cpu = time.process_time() - cpu
    moments = listener.moments
    objectives = _objectives(rival, problem, moments)
    looked_at = _some(len(moments))
    points = []
    for number, (moment, objective) in enumerate(zip(moments, objectives, strict=True)):
        accuracy = None
        if number in looked_at:
            accuracy = float(np.mean((moment.model.decision(problem.X_test) > 0) == (problem.y_test > 0)))
        points.append(Point(moment.seconds, objective, accuracy))
    return Course(moments[-1].seconds, cpu, points, stopped)


class _OutOfTime(Exception):
    """Ends a fit."""


class _Listener:
    """Keeps moments, but not many that are near each other: each holds coefficients of all rows."""

    def __init__(self, limit: float | None) -> None:
        self.moments: list[Moment] = []
        self._limit, self._next = limit, 0.0

    def __call__(self, moment: Moment) -> None:
        if moment.model.objective is None and moment.seconds < self._next and not moment.last:
            return
        self._next = _APART * moment.seconds
        self.moments.append(moment)
        if self._limit is not None and moment.seconds > self._limit and not moment.last:
            raise _OutOfTime


def least_objective(problem: Problem, loss: str, device: str, tol: float = 1e-3) -> float:
    """The optimum of the problem without intercept, by parablock to a small tolerance."""
    solver = Parablock(problem.C, problem.gamma, loss=loss, device=device, options={"tol": tol})
    return float(solver.fit(problem.X, problem.y).model_.objective or 0.0)


def _warm_up(rival: Rival, problem: Problem) -> None:
    device = getattr(rival, "device", "cpu")
    few, rows = replace(rival), min(WARM_UP_ROWS[device], len(problem.y))
    if isinstance(few, Parablock) and device == "cuda":
        rows = len(problem.y)
        few.options = {**few.options, "max_iter": min(WARM_UP_ITERATIONS, few.options.get("max_iter", 100))}
    few.fit(problem.X[:rows], problem.y[:rows])
    few.decision_function(problem.X_test[:100])


def _some(count: int) -> set[int]:
    if count <= _MOST_MOMENTS:
        return set(range(count))
    half = _MOST_MOMENTS // 2
    return set(range(half)) | set(np.linspace(half, count - 1, half).astype(int).tolist())


def _objectives(rival: Rival, problem: Problem, moments: Sequence[Moment]) -> list[float | None]:
    """Of the support vector machine's dual problem, where the model has coefficients; many in one pass over K."""
    found = [moment.model.objective for moment in moments]
    unknown = [
        number
        for number, moment in enumerate(moments)
        if moment.model.coef is not None and found[number] is None and getattr(rival, "loss", "hinge") == "hinge"
    ]
    if not unknown:
        return found
    make_device = getattr(rival, "make_device", Parablock().make_device)
    models = Modeller.of(make_device, problem.X, problem.gamma)
    device = make_device()
    with device.session():
        samples = device.samples(problem.X, models.kernel, models.centre)
        for start in range(0, len(unknown), _AT_ONCE):
            numbers = unknown[start : start + _AT_ONCE]
            coef = np.stack([np.asarray(moments[number].model.coef) for number in numbers])
            support = np.flatnonzero(coef.any(axis=0))
            product = device.kernel_dot(models.kernel, samples, samples.take(support), coef[:, support])
            for number, own, decision in zip(numbers, coef, product, strict=True):
                found[number] = float(0.5 * own @ decision - np.abs(own).sum())
    return found
