"""The first step of the paper's Algorithm 1 with local prediction, and no more.

Each block of a k-means partition is solved as if there were no others, and a new row is predicted by the model of its
block. The blocks are never joined, so neither ``K d`` nor a line search is needed: this is what the paper calls
equivalent to a distributed DC-SVM with early prediction.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from benchmarks.rivals.base import Model, Stopwatch
from benchmarks.rivals.workshop import DualRival, Workshop
from parablock.losses import Hinge, Logistic, Loss
from parablock.partition import KMeansPartitioner

LOSSES = {"hinge": Hinge, "logistic": Logistic}


@dataclass
class FirstStep(DualRival):
    """Local models of a k-means partition.

    Parameters
    ----------
    blocks : int
        The paper's machines.
    loss : {"hinge", "logistic"}
    tol : float
        Largest violation of the optimality conditions of a block.
    """

    blocks: int = field(default=8, kw_only=True)
    loss: str = field(default="hinge", kw_only=True)
    tol: float = field(default=1e-3, kw_only=True)

    def _make_loss(self) -> Loss:
        return LOSSES[self.loss]()

    def _work(self, workshop: Workshop, clock: Stopwatch) -> Model:
        device, kernel, samples = workshop.device, workshop.kernel, workshop.samples
        blocks, centres = KMeansPartitioner().blocks(device, kernel, samples, self.blocks, workshop.rng)
        assert centres is not None
        solved = workshop.solve_apart(blocks, [np.zeros(len(rows)) for rows in blocks], self.tol)
        return workshop.models.by_group(centres, blocks, solved)
