"""Where learning starts, its steps, and the solution for a metric that is learned."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import replace
from threading import Event
from typing import TypeVar

import numpy as np
from scipy.optimize import minimize

from parablock.tables import pairs
from parablock.tables.columns import View
from parablock.tables.kernels import MetricKernel
from parablock.tables.leave_one_out import (
    RIDGES,
    LeftOut,
    Problem,
    Workspace,
    left_out,
    left_out_of_matrix,
    loss_and_gradient,
)

T = TypeVar("T")
STEPS = 15
_SCALES = (0.15, 0.5, 1.5, 5.0)  # of the median distance
_START_RIDGES = (0.01, 0.1, 1.0)
_MEDIAN_ROWS = 800
_LARGE = 1e3  # in units of the first loss: what a matrix that is not positive definite counts as
_MOVES = ((-0.7, 0.0), (0.0, 0.4))  # of the logarithms of ridge and scale
_ROUNDS, _GAIN = 2, 1e-3  # at least this share of the loss, or the move is not made
_HEARD = 0.2  # seconds, after which Ctrl-C is heard at the latest


class GivenUp(Exception):
    """Nobody waits for the fit any more."""


class Control:
    """Ends learning early, and tells how it goes on."""

    def __init__(self, seconds: float | None = None, say: Callable[[str], None] | None = None) -> None:
        self._until = None if seconds is None else time.monotonic() + seconds
        self._say = say
        self._asked = Event()
        self.reason: str | None = None
        self.given_up = False

    def stop(self, reason: str) -> None:
        if self.reason is None:
            self.reason = reason
        self._asked.set()

    @property
    def stopped(self) -> bool:
        if self._until is not None and time.monotonic() > self._until:
            self.stop("time")
        return self._asked.is_set()

    def check(self) -> None:
        """Before work that is done also when learning has ended."""
        if self.given_up:
            raise GivenUp

    def say(self, text: str) -> None:
        if self._say is not None:
            self._say(text)

    def waited_for(self, work: Callable[[], T]) -> T:
        """The result of work that looks here whether it is to stop. It runs in a thread of its own, so that Ctrl-C
        finds this one waiting: the first one ends learning, a second one the fit."""
        with ThreadPoolExecutor(1) as pool:
            result = pool.submit(work)
            while True:
                try:
                    while not wait([result], _HEARD).done:  # a signal right before it waits would not end it
                        pass
                    return result.result()
                except KeyboardInterrupt:
                    self.given_up = self.reason == "interrupted"
                    self.stop("interrupted")
                    if self.given_up:
                        raise


class _Enough(Exception):
    """Learning is to end."""


def start(kernel: MetricKernel, problem: Problem, space: Workspace, control: Control) -> tuple[float, float]:
    """Equal weights: the logarithms of their size and of the ridge, by the leave-one-out error over a small grid."""
    space = space.single  # ridges are large
    D, K, n = space["D"], space["K"], len(problem.target)
    z = kernel.start(0.0)  # type: ignore[attr-defined]
    kernel.distances(z, problem.view, None, D)
    some = D[:_MEDIAN_ROWS, :_MEDIAN_ROWS][np.tril_indices(min(n, _MEDIAN_ROWS), -1)]
    middle = float(np.median(some)) if len(some) else 1.0
    middle = middle if middle > 0 else 1.0
    best, found = np.inf, (-np.log(middle), np.log(0.1))
    for scale in _SCALES:
        factor = 1 / (middle * scale**kernel.power)
        for ridge in _START_RIDGES:
            if control.stopped:
                return found
            pairs.exponential(D, factor, 1 / kernel.power, True, K)
            at = left_out_of_matrix(problem, ridge, space)
            if at is not None and at.loss < best:
                best, found = at.loss, (float(np.log(factor)), float(np.log(ridge)))
    return found


def learned(
    kernel: MetricKernel,
    problem: Problem,
    origin: np.ndarray,
    space: Workspace,
    control: Control,
    begin: np.ndarray | None = None,
    steps: int = STEPS,
) -> np.ndarray:
    """L-BFGS from `begin`, with a penalty on the way from `origin` that falls as one over rows; origin itself where it
    is the start. Ends early, with the best parameters so far, when `control` says so."""
    begin = origin if begin is None else begin
    first = left_out(kernel, problem, origin, space)
    if first is None or first.loss == 0 or control.stopped:
        return begin
    stiff = np.append(kernel.stiffness(), 0.0) * (first.loss / len(problem.target))
    best, where = np.inf, begin

    def objective(z: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal best, where
        if control.stopped:
            raise _Enough
        at = None
        if np.exp(z[-1]) >= kernel.least_single_ridge(z[:-1]):
            at = loss_and_gradient(kernel, problem, z, space.single)
        if at is None:
            at = loss_and_gradient(kernel, problem, z, space)
        if at is None:
            return _LARGE * first.loss, np.zeros(len(z))
        value = at[0] + stiff @ (z - origin) ** 2
        if value < best:
            best, where = value, z.copy()
        # In units of the first loss, so that the targets' scale changes nothing.
        return value / first.loss, (at[1] + 2 * stiff * (z - origin)) / first.loss

    low, high = kernel.bounds(origin[:-1], problem.view)
    low, high = np.append(low, np.log(RIDGES[0])), np.append(high, np.log(RIDGES[1]))
    with suppress(_Enough):
        minimize(
            objective, np.clip(begin, low, high), jac=True, method="L-BFGS-B", bounds=np.column_stack([low, high]),
            options={"maxiter": steps, "maxfun": 2 * steps},
        )  # fmt: skip
    return where


def solved(
    kernel: MetricKernel, problem: Problem, z: np.ndarray, space: Workspace, control: Control, tune: bool
) -> tuple[np.ndarray, LeftOut]:
    """Parameters and solution. Where the metric comes from other rows (`tune`), ridge and scale are chosen by the
    leave-one-out error, one after the other; where the matrix is not positive definite the ridge grows."""

    def moved(move: np.ndarray) -> np.ndarray:
        ridge = np.clip(z[-1] + move[0], *np.log(RIDGES))
        return np.append(kernel.rescaled(z[:-1], move[1]), ridge)

    best, found = np.zeros(2), left_out(kernel, problem, z, space)
    for _ in range(_ROUNDS if tune else 0):
        before = best
        for step in np.array(_MOVES):
            for way in (step, -step):
                here = best
                while not control.stopped:
                    trial = left_out(kernel, problem, moved(best + way), space)
                    if trial is None or (found is not None and trial.loss >= found.loss * (1 - _GAIN)):
                        break
                    best, found = best + way, trial
                if best is not here:
                    break  # the other way leads back
        if best is before:
            break
    while found is None:
        best[0] += 2.0
        found = left_out(kernel, problem, moved(best), space)
        if found is None and moved(best)[-1] >= np.log(RIDGES[1]):
            raise ValueError(
                "The kernel matrix is not positive definite even with the largest ridge. Look for columns with values "
                "that differ by many powers of ten, and leave them out or take their logarithms."
            )
    return moved(best), found


def part(problem: Problem, rows: np.ndarray) -> Problem:
    """The problem of some of the rows."""
    weight = problem.weight[rows]
    group = None if problem.group is None else np.unique(problem.group[rows], return_inverse=True)[1]
    return replace(
        problem, view=problem.view.some(rows), target=problem.target[rows], weight=weight / weight.mean(), group=group,
        counted=None,
    )  # fmt: skip


def decisions(kernel: MetricKernel, z: np.ndarray, view: View, train: View, alpha: np.ndarray) -> np.ndarray:
    """Of new rows."""
    K = np.empty((len(view), len(train)))
    kernel.value(z, view, train, K, K)
    return K @ alpha
