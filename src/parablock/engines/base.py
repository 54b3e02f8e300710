"""The engine seam: how machines talk.

An engine offers the two steps of an iteration that need all machines, and hides who takes part. `solver.pbm` is
written once against it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from parablock.devices.base import BlockRule, BlockStep
from parablock.partition import Partitioner
from parablock.problem import Problem


class Engine(ABC):
    """Where blocks are solved and kernel products computed.

    Attributes
    ----------
    kernel_evaluations : int
        Kernel values computed so far by everyone.
    """

    @property
    @abstractmethod
    def kernel_evaluations(self) -> int: ...

    @abstractmethod
    def solve(
        self,
        problem: Problem,
        point: tuple[np.ndarray, np.ndarray],
        blocks: Sequence[np.ndarray],
        rule: BlockRule,
        keep: bool,
    ) -> list[BlockStep]:
        """Solve every block at the point (coef, decision): Algorithm 1, line 4.

        With `keep` the same blocks will come again.
        """

    @abstractmethod
    def product(self, rows: np.ndarray, direction: np.ndarray) -> np.ndarray:
        """``K d`` for a direction that is zero outside the given rows: Algorithm 1, lines 5 and 6."""

    @abstractmethod
    def decision(self, targets: np.ndarray, rows: np.ndarray, coef: np.ndarray) -> np.ndarray:
        """The decisions of the target rows, shape (n_outputs, targets), from the coefficients of the given rows."""

    @abstractmethod
    def regroup(
        self, partitioner: Partitioner, rows: np.ndarray, n_blocks: int, rng: np.random.Generator
    ) -> list[np.ndarray]:
        """Fresh blocks of neighbours among the given rows."""

    @abstractmethod
    def restricted(self, rows: np.ndarray, before: Engine) -> Engine:
        """An engine over the given rows of this one, numbered anew, which takes over what the engine `before` keeps:
        this one, or one that was restricted to the first of the rows."""
