"""One machine: nothing to send."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from parablock.devices.base import BlockRule, BlockStep, Device, Samples
from parablock.devices.digits import kernel_error
from parablock.engines.base import Ahead, Counts, Crew, Engine
from parablock.engines.sanity import refuse_nonsense
from parablock.kernels import Kernel
from parablock.partition import Partition, Partitioner
from parablock.problem import Problem


class LocalEngine(Engine):
    """This machine alone.

    Examples
    --------
    >>> from parablock import KernelSVC
    >>> from parablock.engines import LocalEngine
    >>> KernelSVC(engine=LocalEngine()).fit([[0.0], [1.0]], [0, 1]).predict([[0.2]])  # the same as engine="local"
    array([0])
    """

    def over(self, device: Device, kernel: Kernel, X: Any, centre: np.ndarray | None) -> LocalCrew:
        return LocalCrew(device, kernel, device.samples(X, kernel, centre))


class LocalCrew(Crew):
    def __init__(self, device: Device, kernel: Kernel, samples: Samples) -> None:
        self.device, self.kernel, self.samples = device, kernel, samples

    def counts(self) -> Counts:
        return Counts(self.device.kernel_evaluations)

    def near(self, problem: Problem) -> Problem:
        return self.device.near(problem)

    def kernel_error(self, X: Any, centre: np.ndarray | None) -> float:
        return kernel_error(self.device, self.kernel, self.samples, X, centre)

    def refuse_nonsense(self, rng: np.random.Generator) -> None:
        refuse_nonsense(self.device, self.kernel, self.samples, rng)

    def partition(self, partitioner: Partitioner, n_blocks: int, rng: np.random.Generator) -> Partition:
        return partitioner.partition(self.device, self.kernel, self.samples, n_blocks, rng)

    def ordered(self, order: np.ndarray) -> LocalCrew:
        return LocalCrew(self.device, self.kernel, self.samples.take(order))

    def solve(
        self,
        problem: Problem,
        point: tuple[np.ndarray, np.ndarray],
        blocks: Sequence[np.ndarray],
        rule: BlockRule,
        keep: bool,
        ahead: Ahead | None = None,
    ) -> list[BlockStep]:
        return self.device.solve_blocks(self.kernel, self.samples, problem, point, blocks, rule, keep)

    def product(self, rows: np.ndarray, direction: np.ndarray) -> np.ndarray:
        return self.device.column_dot(self.kernel, self.samples, self.samples, rows, direction)

    def decision(self, targets: np.ndarray, rows: np.ndarray, coef: np.ndarray) -> np.ndarray:
        return self.device.kernel_dot(self.kernel, self.samples.take(targets), self.samples.take(rows), coef)

    def regroup(
        self, partitioner: Partitioner, rows: np.ndarray, n_blocks: int, rng: np.random.Generator
    ) -> list[np.ndarray]:
        return partitioner.regroup(self.device, self.kernel, self.samples, rows, n_blocks, rng)

    def restricted(self, rows: np.ndarray, before: Crew, support: np.ndarray, room: int) -> LocalCrew:
        assert isinstance(before, LocalCrew)
        samples = self.samples.take(rows)
        self.device.extend(self.kernel, before.samples, [samples], samples, support, (room, room))
        return LocalCrew(self.device, self.kernel, samples)
