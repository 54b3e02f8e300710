"""What the rivals that need kernel values work with: the tiles, threads, memory and block solver of parablock.

So a comparison is one of methods, not of who computes a kernel value faster.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from benchmarks.rivals.base import Model, Rival, Stopwatch
from benchmarks.rivals.models import Modeller
from parablock.devices import DEVICES, Device
from parablock.devices.base import BlockRule, BlockStep, Samples
from parablock.kernels import Kernel
from parablock.losses import Hinge, Loss
from parablock.problem import Problem
from parablock.solver.schedule import Wishes, bridge_rows

# Problems up to this size are one block, and many of them are solved at the same time; larger ones by decomposition
# into working sets of it.
WORKING_SET = 4096
_FLOOR = 1 / 3  # of the tolerance, as in parablock: what is put together from parts must not miss it by rounding
_MOST_SETS = 5000
_FRACTION = 0.1  # a working set is solved to this share of its violation: the next one will change it again anyway


@dataclass(frozen=True)
class Workshop:
    """Training rows on a device, and the dual problem of a support vector machine over them.

    Attributes
    ----------
    device : Device
    kernel : Kernel
    samples : Samples
        The rows on the device.
    problem : Problem
    models : Modeller
        Makes models of coefficients of all rows.
    rng : numpy Generator
    """

    device: Device
    kernel: Kernel
    samples: Samples
    problem: Problem
    models: Modeller
    rng: np.random.Generator

    # ---------------------------------------------------------------------------------------------------- solving

    def product(self, coef: np.ndarray) -> np.ndarray:
        """``K coef``, the decision values of all training rows."""
        support = np.flatnonzero(coef)
        if len(support) == 0:
            return np.zeros(len(coef))
        return self.device.column_dot(self.kernel, self.samples, self.samples, support, coef[None, support])[0]

    def solve_apart(
        self, groups: Sequence[np.ndarray], starts: Sequence[np.ndarray], tol: float
    ) -> list[tuple[np.ndarray, float]]:
        """The problem of each group of rows as if there were no others, from the given coefficients of its rows.

        Returns new coefficients and the intercept of each group. Groups may share rows.
        """
        solved: dict[int, tuple[np.ndarray, float]] = {}
        small = [number for number, rows in enumerate(groups) if 0 < len(rows) <= WORKING_SET]
        if small:
            # One after the other in memory, so that no two of them share rows.
            together = self.taken(np.concatenate([groups[number] for number in small]))
            ends = np.cumsum([len(groups[number]) for number in small])
            blocks = [np.arange(end - len(groups[number]), end) for number, end in zip(small, ends, strict=True)]
            coef = np.concatenate([starts[number] for number in small])
            decision = np.concatenate([together._inside(rows, coef) for rows in blocks])
            steps = together._steps(coef, decision, blocks, 0.0, tol)
            for step in steps:
                coef[step.rows] += step.step[0]
            coef = together._in_box(coef)
            solved = {number: (coef[step.rows], float(step.bias[0])) for number, step in zip(small, steps, strict=True)}
        for number, rows in enumerate(groups):
            if number not in solved:
                solved[number] = self.taken(rows).solve(starts[number], tol) if len(rows) else (starts[number], 0.0)
        return [solved[number] for number in range(len(groups))]

    def solve(self, coef: np.ndarray, tol: float, clock: Stopwatch | None = None) -> tuple[np.ndarray, float]:
        """The problem of all rows, by decomposition (Joachims, 1998): solve for the worst violators, and again.

        Returns the new coefficients and the intercept. The clock is told before each working set.
        """
        decision, working = self.product(coef), np.empty(0, dtype=np.intp)
        for _ in range(_MOST_SETS):
            measure = self.problem.measure(0, coef, decision)
            if measure.violation <= tol:
                break
            if clock is not None:
                clock.tell(partial(self.models.everywhere, coef, measure.bias))
            working = _next_set(Wishes.of([measure], tol), working)
            alone = len(working) == len(coef)
            step = self._steps(coef, decision, [working], 0.0 if alone else _FRACTION, tol)[0]
            after = coef.copy()
            after[step.rows] += step.step[0]
            after = self._in_box(after)
            if np.array_equal(after, coef):  # as near as this precision gets
                break
            coef, decision = after, decision + self.product(after - coef)
        return coef, measure.bias

    def taken(self, rows: np.ndarray) -> Workshop:
        """The same of some of the rows, as if there were no others."""
        return replace(self, samples=self.samples.take(rows), problem=self.problem.take(rows))

    def _inside(self, rows: np.ndarray, coef: np.ndarray) -> np.ndarray:
        """Decision values of a group by its own coefficients."""
        support = rows[np.flatnonzero(coef[rows])]
        if len(support) == 0:
            return np.zeros(len(rows))
        columns = self.samples.take(support)
        return self.device.kernel_dot(self.kernel, self.samples.take(rows), columns, coef[None, support])[0]

    def _steps(
        self, coef: np.ndarray, decision: np.ndarray, blocks: Sequence[np.ndarray], fraction: float, tol: float
    ) -> list[BlockStep]:
        rule = BlockRule(
            outputs=(0,),
            choice="greedy",
            pairs=self.problem.intercept,
            fraction=fraction,
            floor=_FLOOR * tol,
            max_updates=None,
            seed=0,
        )
        point = coef[None], decision[None]
        return self.device.solve_blocks(self.kernel, self.samples, self.problem, point, blocks, rule)

    def _in_box(self, coef: np.ndarray) -> np.ndarray:
        """Rounding must not leave a coefficient a hair away from a bound that it has reached."""
        lower, upper = self.problem.lower[0], self.problem.upper[0]
        near = 1e-12 * self.problem.weight[0]
        coef = np.where(coef <= lower + near, lower, coef)
        return np.where(coef >= upper - near, upper, coef)


def _next_set(wishes: Wishes, last: np.ndarray) -> np.ndarray:
    """Half of it the worst violators, half of it the newest of the last set.

    Without these two variables that pull at each other, one in this set and one in the next, would never meet.
    """
    fresh = bridge_rows(wishes, max(2, WORKING_SET // 2))
    kept = last[~np.isin(last, fresh)]
    return np.concatenate((fresh, kept))[:WORKING_SET]


@dataclass
class KernelRival(Rival):
    """A rival that computes kernel values.

    Parameters
    ----------
    fit_intercept : bool
        Whether to solve LIBSVM's problem, with an intercept, instead of the paper's.
    device, n_jobs, memory_limit
        As in parablock's estimators.
    """

    fit_intercept: bool = field(default=False, kw_only=True)
    device: str = field(default="cpu", kw_only=True)
    n_jobs: int | None = field(default=None, kw_only=True)
    memory_limit: Any = field(default=None, kw_only=True)

    def make_device(self) -> Device:
        return DEVICES[self.device](self.n_jobs, self.memory_limit)


@dataclass
class DualRival(KernelRival):
    """A rival that works on the dual problem, of the support vector machine if it does not say otherwise."""

    def _make_loss(self) -> Loss:
        return Hinge()

    @contextmanager
    def workshop(self, X: Any, y: np.ndarray) -> Iterator[Workshop]:
        """What to work with on rows with labels -1 and +1."""
        device, models = self.make_device(), Modeller.of(self.make_device, X, self.gamma)
        problem = Problem.build(self._make_loss(), y, np.asarray(self.C), self.fit_intercept)
        with device.session():
            samples = device.samples(X, models.kernel, models.centre)
            yield Workshop(device, models.kernel, samples, problem, models, np.random.default_rng(self.random_state))

    def _train(self, X: Any, y: np.ndarray, clock: Stopwatch) -> Model:
        with self.workshop(X, y) as workshop:
            return self._work(workshop, clock)

    @abstractmethod
    def _work(self, workshop: Workshop, clock: Stopwatch) -> Model:
        """Train with what is in the workshop."""
