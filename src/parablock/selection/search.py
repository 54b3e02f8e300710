"""Training of all folds for every C and gamma.

What is shared       among
----------------     -----
the first blocks     all of it: a partition of the rows depends on no parameter (but kernel k-means on gamma)
kernel values        all folds and all C of one gamma, as far as memory_limit goes
coefficients         a fold starts each C from those of the C below
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from parablock.devices.base import Device, Rows, Samples
from parablock.kernels import Kernel
from parablock.partition import Centres, Partitioner, make_partitioner
from parablock.partition.kernel_kmeans import KernelKMeansPartitioner
from parablock.problem import Problem
from parablock.selection.folds import Folds
from parablock.selection.watching import train_watched
from parablock.settings import Settings
from parablock.training import prepared


@dataclass(frozen=True)
class Found:
    """The folds' models for one C and gamma.

    Attributes
    ----------
    C, gamma : int
        Which of the values.
    predictions : list of ndarray of shape (n_outputs, n)
        Decision values of all rows, one array a fold.
    iterations : int
        Outer iterations made.
    finished : bool
        Whether training converged, or was ended by a callback that has nothing to say of it.
    seconds : float
    kernel_evaluations : int
        Since the search began.
    """

    C: int
    gamma: int
    predictions: Sequence[np.ndarray]
    iterations: int
    finished: bool
    seconds: float
    kernel_evaluations: int


def search(
    X: Any,
    y: np.ndarray,
    folds: Folds,
    Cs: np.ndarray,
    gammas: Sequence[float],
    settings: Settings,
    rng: np.random.Generator,
) -> Iterator[Found]:
    """Train the folds for every gamma and, from the smallest on, every C. y is for callbacks."""
    machine = folds.machine
    loss = machine._make_loss()
    partitioner = make_partitioner(settings.partition, X.shape[0])
    if not isinstance(partitioner, KernelKMeansPartitioner):
        partitioner = MadeOnce(partitioner)
    settings = replace(settings, partition=partitioner)
    before = 0
    for which, gamma in enumerate(gammas):
        started = time.perf_counter()
        kernel = machine._make_kernel(gamma)
        with prepared(X, kernel, settings, rng) as ground:
            coef = None
            for C in np.argsort(Cs, kind="stable").tolist():
                problem = Problem.build(loss, folds.target, Cs[C] * folds.weight, machine.fit_intercept)
                train = partial(ground.train, problem, rng, coef, False)
                trained, why = train_watched(machine, float(Cs[C]), gamma, X, y, train)
                solution = trained.solution
                if solution.reason == "interrupted":
                    raise KeyboardInterrupt
                # As they are: scaled up with C, the coefficients of the next one are farther away.
                coef = solution.state.coef
                bias = np.array([measure.bias for measure in solution.state.measures])
                seconds, started = time.perf_counter() - started, time.perf_counter()
                predictions = folds.predictions(solution.state.decision + bias[:, None])
                evaluations = before + solution.kernel_evaluations
                iterations = solution.state.iteration
                finished = solution.reason == "converged" or (solution.reason == "stopped" and not why)
                yield Found(C, which, predictions, iterations, finished, seconds, evaluations)
        before = evaluations


class MadeOnce(Partitioner):
    """The first blocks of another partitioner, for all who ask."""

    def __init__(self, partitioner: Partitioner) -> None:
        self.method, self._partitioner = partitioner.method, partitioner
        self._made: tuple[list[np.ndarray], Centres | None] | None = None

    def blocks(
        self, device: Device, kernel: Kernel, samples: Samples, n_blocks: int, rng: np.random.Generator
    ) -> tuple[list[np.ndarray], Centres | None]:
        if self._made is None:
            self._made = self._partitioner.blocks(device, kernel, samples, n_blocks, rng)
        return self._made

    def regroup(
        self, device: Device, kernel: Kernel, samples: Rows, rows: np.ndarray, n_blocks: int, rng: np.random.Generator
    ) -> list[np.ndarray]:
        return self._partitioner.regroup(device, kernel, samples, rows, n_blocks, rng)

    def restricted(self, rows: np.ndarray) -> Partitioner:
        return self._partitioner.restricted(rows)
