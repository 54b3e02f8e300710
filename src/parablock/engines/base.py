"""The engine seam: how machines talk.

An engine offers the two steps of an iteration that need all machines, and hides who takes part. `solver.pbm` is
written once against it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from parablock.devices.base import BlockRule, BlockStep
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
