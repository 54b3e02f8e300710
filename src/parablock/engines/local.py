"""One machine: nothing to send."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from parablock.devices.base import BlockRule, BlockStep, Device, Samples
from parablock.engines.base import Engine
from parablock.kernels import Kernel
from parablock.partition import Partitioner
from parablock.problem import Problem


class LocalEngine(Engine):
    def __init__(self, device: Device, kernel: Kernel, samples: Samples) -> None:
        self.device, self.kernel, self.samples = device, kernel, samples

    @property
    def kernel_evaluations(self) -> int:
        return self.device.kernel_evaluations

    def solve(
        self,
        problem: Problem,
        point: tuple[np.ndarray, np.ndarray],
        blocks: Sequence[np.ndarray],
        rule: BlockRule,
        keep: bool,
    ) -> list[BlockStep]:
        return self.device.solve_blocks(self.kernel, self.samples, problem, point, blocks, rule, keep)

    def product(self, rows: np.ndarray, direction: np.ndarray) -> np.ndarray:
        return self.device.column_dot(self.kernel, self.samples, rows, direction)

    def decision(self, targets: np.ndarray, rows: np.ndarray, coef: np.ndarray) -> np.ndarray:
        return self.device.kernel_dot(self.kernel, self.samples.take(targets), self.samples.take(rows), coef)

    def regroup(
        self, partitioner: Partitioner, rows: np.ndarray, n_blocks: int, rng: np.random.Generator
    ) -> list[np.ndarray]:
        return partitioner.regroup(self.device, self.kernel, self.samples, rows, n_blocks, rng)

    def restricted(self, rows: np.ndarray, before: Engine) -> LocalEngine:
        assert isinstance(before, LocalEngine)
        samples = self.samples.take(rows)
        self.device.extend(self.kernel, before.samples, samples)
        return LocalEngine(self.device, self.kernel, samples)
