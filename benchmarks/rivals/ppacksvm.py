"""P-packSVM: packed stochastic gradient descent (Zhu, Chen, Wang, Zhu and Chen, ICDM 2009).

Pegasos in the kernel's space: minimise ``lambda/2 |w|^2 + mean loss`` with lambda = 1 / (n C) by steps of length
1 / (lambda t) along one row's subgradient, and back into the ball that must hold the optimum. Steps are taken in packs:
the predictions of a hundred rows are computed at once, by all machines, and corrected for each other by the kernel
values between them. The steps are those of the method without packs; there are a hundred times fewer occasions to talk.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from scipy.special import expit

from benchmarks.rivals.base import Model, Stopwatch
from benchmarks.rivals.workshop import DualRival, Workshop


@dataclass
class PPackSVM(DualRival):
    """Packed stochastic gradient descent.

    Parameters
    ----------
    loss : {"hinge", "logistic"}
    pack : int
        Rows of a pack; the paper's is 100.
    epochs : float
        Passes over the rows.
    moments : int
        How often to tell the listener, at times that grow geometrically.
    """

    loss: str = field(default="hinge", kw_only=True)
    pack: int = field(default=100, kw_only=True)
    epochs: float = field(default=1.0, kw_only=True)
    moments: int = field(default=8, kw_only=True)

    def _work(self, workshop: Workshop, clock: Stopwatch) -> Model:
        if self.loss not in _LOSSES:
            raise ValueError(f"loss={self.loss!r} was given; use one of {sorted(_LOSSES)}.")
        if self.fit_intercept:
            raise ValueError("PPackSVM has no intercept: leave fit_intercept at False.")
        n, y = len(workshop.samples), workshop.problem.target[0]
        steps = max(1, round(self.epochs * n))
        order = np.concatenate([workshop.rng.permutation(n) for _ in range(-(-steps // n))])[:steps]
        told = set(np.unique(np.ceil(np.geomspace(1, -(-steps // self.pack), self.moments + 1)).astype(int))[:-1])
        walk = _Walk(n, self.C, _LOSSES[self.loss])
        for number, start in enumerate(range(0, steps, self.pack), start=1):
            rows = order[start : start + self.pack]
            some = workshop.samples.take(rows)
            between = workshop.device.gram(workshop.kernel, some, some).astype(np.float64)
            support = np.flatnonzero(walk.coef)
            known = np.zeros(len(rows))
            if len(support):
                columns, factors = workshop.samples.take(support), walk.coef[None, support]
                known = workshop.device.kernel_dot(workshop.kernel, some, columns, factors)[0]
            walk.through(rows, y[rows], known, between)
            if number in told:
                clock.tell(partial(workshop.models.everywhere, walk.coef))
        return workshop.models.everywhere(walk.coef)


@dataclass(frozen=True)
class _Loss:
    """How much a row of some margin pulls; and the loss of a model that is zero, which bounds the optimum's norm."""

    pull: Callable[[float], float]
    at_zero: float


_LOSSES = {
    "hinge": _Loss(lambda margin: 1.0 if margin < 1.0 else 0.0, 0.5),  # half of it, as Pegasos shows
    "logistic": _Loss(lambda margin: float(expit(-margin)), math.log(2.0)),
}


class _Walk:
    """Where the descent stands: ``w = sum_i coef_i phi(x_i)``, and its squared norm."""

    def __init__(self, n: int, C: float, loss: _Loss) -> None:
        self.coef, self.square, self.time = np.zeros(n), 0.0, 0
        self.loss, self.inverse_lambda = loss, n * C

    def through(self, rows: np.ndarray, y: np.ndarray, known: np.ndarray, between: np.ndarray) -> None:
        """A pack of steps. `known` are the rows' predictions before it, `between` the pack's kernel values."""
        largest = 2.0 * self.loss.at_zero * self.inverse_lambda
        scale = 1.0  # of all coefficients: to shrink them one by one would take as long as the rest
        for place, row in enumerate(rows):
            self.time += 1
            prediction = scale * known[place]
            pull = y[place] * self.loss.pull(y[place] * prediction) * self.inverse_lambda / self.time
            shrink = 1.0 - 1.0 / self.time
            self.square = shrink**2 * self.square + 2 * shrink * pull * prediction + pull**2 * between[place, place]
            if self.time > 1:  # before that there is nothing to shrink
                scale *= shrink
            if pull != 0.0:
                self.coef[row] += pull / scale
                known += pull / scale * between[place]
            if self.square > largest:
                scale *= math.sqrt(largest / self.square)
                self.square = largest
        self.coef *= scale
