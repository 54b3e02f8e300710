"""A fit from distinct rows to two machines and honest decisions.

Learning begins on two halves of the rows. Each half's metric, with codes of that half, then decides on the rows of the
other half, left out one after the other: these decisions are honest, because neither metric nor codes have seen the
rows. The mean of both halves' parameters is the start of a few steps on all rows, which make the machines that predict.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import numpy as np

from parablock.tables.columns import Columns, View
from parablock.tables.intervals import Judge, Trial
from parablock.tables.kernels import FullKernel, LaplaceKernel, MetricKernel, PowerKernel
from parablock.tables.learning import Control, decisions, learned, part, solved, start
from parablock.tables.leave_one_out import Problem, Workspace
from parablock.tables.rows import Rows

T = TypeVar("T")
MOST_COLUMNS = 300  # with which E is learned
HALF_ROWS = 2000  # at most: learning takes time as their cube
_FEWEST = 24  # rows that are divided into halves
_FEWEST_GROUPS = 6
_LAST_STEPS = 3


@dataclass(frozen=True)
class Machine:
    """One of the two: a kernel with its parameters, the rows it was fitted with, and their coefficients."""

    kernel: MetricKernel
    z: np.ndarray  # without the ridge
    train: View
    alpha: np.ndarray

    def decision(self, view: View) -> np.ndarray:
        return decisions(self.kernel, self.z, view, self.train, self.alpha)


@dataclass(frozen=True)
class Fitted:
    """What a fit gives.

    Attributes
    ----------
    columns : Columns
    machines : list of Machine
        None at all where there is nothing to tell rows apart by.
    mean : ndarray of shape (n_outputs,)
        Of the targets; the decision where there is no machine.
    values : ndarray of shape (n_rows, n_columns)
        The distinct rows, of which the machines have a view.
    """

    columns: Columns
    machines: list[Machine]
    mean: np.ndarray
    values: np.ndarray

    def decision(self, values: np.ndarray) -> np.ndarray:
        view = self.columns.view(values)
        if not self.machines:
            return np.tile(self.mean, (len(values), 1))
        return np.mean([machine.decision(view) for machine in self.machines], axis=0)


@dataclass(frozen=True)
class Result:
    """A fit, and how it was tried.

    Attributes
    ----------
    fitted : Fitted
    honest : ndarray of shape (n_rows, n_outputs)
        Decisions on the distinct rows by machines that were fitted without them, with metrics that were learned without
        them; nan for rows that were not judged.
    trial : Trial
        Of the rows that were judged, which are the first ones.
    """

    fitted: Fitted
    honest: np.ndarray
    trial: Trial


@dataclass(frozen=True)
class _Learned:
    """Where learning began, and where it ended: parameters with the ridge."""

    kernel: MetricKernel
    origin: np.ndarray
    z: np.ndarray


class Fit:
    """Fits rows; `n_levels` says which columns are categories."""

    def __init__(self, rows: Rows, n_levels: Sequence[int], n_threads: int, memory: int, control: Control) -> None:
        self.rows, self.n_threads, self.memory, self.control = rows, n_threads, memory, control
        self.columns = Columns.learned(rows.values, n_levels, rows.target, rows.weight)

    def run(self) -> Result:
        rows, n = self.rows, len(self.rows)
        mean = np.average(rows.target, axis=0, weights=rows.weight)
        if n < 2 or not len(self.columns):
            trial = Trial([], rows.values, rows.target, rows.weight, rows.group)
            return Result(Fitted(self.columns, [], mean, rows.values), trial.means_without(), trial)
        halves = self._halves()
        final = self._problem(self.columns, np.arange(n))
        if halves is None:
            machines, honest, trial = self._at_start(final)
        else:
            self._check_memory(halves, n)
            ways = self._learned_on(halves)
            honest, trial = self._judged(halves, ways)
            machines = self._finished(final, ways)
        return Result(Fitted(self.columns, machines, mean, rows.values), honest, trial)

    # --------------------------------------------------------------------------------------------------- stages

    def _halves(self) -> list[np.ndarray] | None:
        """Rows of each half; groups stay together. None where there are too few rows."""
        n, group = len(self.rows), self.rows.group
        most = min(n, 2 * HALF_ROWS)
        if n < _FEWEST:
            return None
        if group is None:
            return [np.arange(most // 2), np.arange(most // 2, most)]
        ends = np.append(np.flatnonzero(np.diff(group)) + 1, n)  # where groups end
        if len(ends) < _FEWEST_GROUPS:
            return None
        last = ends[max(int(np.searchsorted(ends, most, side="right")) - 1, 1)]
        middle = ends[int(np.argmin(np.abs(ends[ends < last] - last / 2)))]
        return [np.arange(middle), np.arange(middle, last)]

    def _problem(self, columns: Columns, chosen: np.ndarray) -> Problem:
        some = self.rows.some(chosen)
        return Problem(columns.view(some.values), some.target, some.weight, some.group)

    def _coded_by(self, half: np.ndarray) -> Columns:
        some = self.rows.some(half)
        return self.columns.with_codes_of(some.values, some.target, some.weight)

    def _learned_on(self, halves: list[np.ndarray]) -> list[list[_Learned]]:
        """For each machine what was learned on each half."""
        tasks: list[Callable[[], _Learned]] = []
        for learn in (self._learn_first, self._learn_second):
            for half in halves:
                tasks.append(partial(learn, self._problem(self._coded_by(half), half)))
        size = max(map(len, halves))
        first_a, first_b, second_a, second_b = self._in_parallel(tasks, size, True, "learning the metric on two halves")
        return [[first_a, first_b], [second_a, second_b]]

    def _learn_first(self, problem: Problem) -> _Learned:
        space = Workspace(len(problem.target))
        kernel = LaplaceKernel(*self._shape(problem.view))
        return self._learn(kernel, problem, space)

    def _learn_second(self, problem: Problem) -> _Learned:
        space = Workspace(len(problem.target))
        d, k = self._shape(problem.view)
        first = self._learn(PowerKernel(d, k), problem, space)
        if d > MOST_COLUMNS:
            return first
        kernel = FullKernel(d, k, first.z[:d])
        origin = np.append(kernel.start(first.z[d]), first.z[-1])
        return _Learned(kernel, origin, learned(kernel, problem, origin, space, self.control))

    def _learn(self, kernel: LaplaceKernel | PowerKernel, problem: Problem, space: Workspace) -> _Learned:
        scale, ridge = start(kernel, problem, space, self.control)
        origin = np.append(kernel.start(scale), ridge)
        return _Learned(kernel, origin, learned(kernel, problem, origin, space, self.control))

    def _judged(self, halves: list[np.ndarray], ways: list[list[_Learned]]) -> tuple[np.ndarray, Trial]:
        """Honest decisions of the rows of both halves, each by the metric of the other."""
        both, coded = np.arange(sum(map(len, halves))), [self._coded_by(half) for half in halves]
        tasks = []
        for way in ways:
            for one, columns, others in zip(way, coded, halves[::-1], strict=True):
                problem = self._problem(columns, both)
                counted = problem.weight * np.isin(both, others)
                tasks.append(partial(self._judge, one, replace(problem, counted=counted)))
        found = self._in_parallel(tasks, len(both), False, "judging each half by the metric of the other")
        honest = np.full(self.rows.target.shape, np.nan)
        judges = []
        for number, others in enumerate(halves[::-1]):
            of_half = found[number :: len(halves)]  # of both machines
            honest[others] = np.mean([decision[others] for _, decision in of_half], axis=0)
            machines = [(way[number].kernel, z) for way, (z, _) in zip(ways, of_half, strict=True)]
            judges.append(Judge(coded[number], machines, others))
        some = self.rows.some(both)
        return honest, Trial(judges, some.values, some.target, some.weight, some.group)

    def _judge(self, one: _Learned, problem: Problem) -> tuple[np.ndarray, np.ndarray]:
        space = Workspace(len(problem.target))
        z, found = solved(one.kernel, problem, one.z, space, self.control, tune=True)
        return z, found.decision

    def _finished(self, problem: Problem, ways: list[list[_Learned]]) -> list[Machine]:
        few = np.arange(min(len(problem.target), 2 * HALF_ROWS))
        if problem.group is not None and len(few) < len(problem.target):
            few = few[problem.group[few] < problem.group[len(few)]]  # whole groups
        learning = problem if len(few) == len(problem.target) else part(problem, few)
        tasks = [partial(self._finish, problem, learning, way) for way in ways]
        return self._in_parallel(tasks, len(few), True, "learning from both halves' mean on all rows")

    def _finish(self, problem: Problem, learning: Problem, way: list[_Learned]) -> Machine:
        mean = _mean_of(way)
        space = Workspace(len(learning.target))
        z = learned(mean.kernel, learning, mean.origin, space, self.control, mean.z, _LAST_STEPS)
        if learning is not problem:
            space = Workspace(len(problem.target))
        z, found = solved(mean.kernel, problem, z, space, self.control, tune=learning is not problem)
        return Machine(mean.kernel, z[:-1], problem.view, found.alpha)

    def _at_start(self, problem: Problem) -> tuple[list[Machine], np.ndarray, Trial]:
        """Of few rows: equal weights."""
        space, shape, rows = Workspace(len(problem.target)), self._shape(problem.view), self.rows
        machines, left, judging = [], [], []
        for kernel in (LaplaceKernel(*shape), PowerKernel(*shape)):
            scale, ridge = start(kernel, problem, space, self.control)
            z = np.append(kernel.start(scale), ridge)
            z, found = solved(kernel, problem, z, space, self.control, tune=False)
            machines.append(Machine(kernel, z[:-1], problem.view, found.alpha))
            left.append(found.decision)
            judging.append((kernel, z))
        judge = Judge(self.columns, judging, np.arange(len(rows)))
        trial = Trial([judge], rows.values, rows.target, rows.weight, rows.group)
        return machines, np.mean(left, axis=0), trial

    # ---------------------------------------------------------------------------------------------- how it runs

    @staticmethod
    def _shape(view: View) -> tuple[int, int]:
        return view.X.shape[1], view.numeric

    def _check_memory(self, halves: list[np.ndarray], n: int) -> None:
        grouped = self.rows.group is not None
        most = sum(map(len, halves))
        needed = max(Workspace.bytes(most, True, grouped), Workspace.bytes(n, False, grouped))
        if needed > self.memory:
            raise ValueError(
                f"Fitting {n} distinct rows takes {needed / 2**20:.0f} MB for matrices of all pairs of rows, more than "
                f"memory_limit ({self.memory / 2**20:.0f} MB). Raise memory_limit if the machine has as much, or fit a "
                "sample of the rows."
            )

    def _in_parallel(self, tasks: Sequence[Callable[[], T]], n: int, learning: bool, what: str) -> list[T]:
        """The results of tasks that each take the matrices of n rows, in this order."""
        self.control.check()
        each = Workspace.bytes(n, learning, self.rows.group is not None)
        width = max(1, min(self.n_threads, len(tasks), self.memory // each))
        self.control.say(what)
        with ThreadPoolExecutor(width) as pool:
            waiting = [pool.submit(task) for task in tasks]
            if any(one.exception() is not None for one in wait(waiting, return_when=FIRST_EXCEPTION).done):
                self.control.stop("failed")
        return [one.result() for one in waiting]


def _mean_of(way: list[_Learned]) -> _Learned:
    """The mean of what both halves have learned. They have weights of their own, so that of a full metric the mean is
    taken of diag(w)^(1/2) E."""
    a, b = way
    origin, z = (a.origin + b.origin) / 2, (a.z + b.z) / 2
    if not isinstance(a.kernel, FullKernel) or not isinstance(b.kernel, FullKernel):
        return _Learned(a.kernel, origin, z)
    kernel = FullKernel(a.kernel.d, a.kernel.k, (a.kernel.log_w + b.kernel.log_w) / 2)
    factor = (a.kernel.factor(a.z) + b.kernel.factor(b.z)) / 2
    z[kernel.at["E"]] = (factor * np.exp(-kernel.log_w / 2)[:, None]).ravel()
    return _Learned(kernel, origin, z)
