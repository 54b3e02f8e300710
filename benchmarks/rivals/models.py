"""Models of kernel expansions, which predict in parablock's tiles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.rivals.base import Model
from parablock.devices import Device
from parablock.devices.base import BlockStep
from parablock.kernels import RBF
from parablock.mapped import column_means, is_sparse
from parablock.partition import Centres
from parablock.prediction import Expansion, GlobalModel, LocalModel
from parablock.solver import LocalStep


@dataclass(frozen=True)
class Modeller:
    """Makes models of the coefficients of training rows.

    Attributes
    ----------
    make_device : callable
        What a model predicts with.
    X : array or CSR matrix
        The training rows.
    kernel : RBF
    centre : ndarray or None
        What is subtracted from all rows, so that float32 keeps its digits.
    """

    make_device: Callable[[], Device]
    X: Any
    kernel: RBF
    centre: np.ndarray | None

    @classmethod
    def of(cls, make_device: Callable[[], Device], X: Any, gamma: float) -> Modeller:
        centre = None if is_sparse(X) else column_means(X)
        if centre is not None and make_device().wants_whole_numbers(X):
            centre = np.rint(centre)
        return cls(make_device, X, RBF(gamma), centre)

    def everywhere(self, coef: np.ndarray, intercept: float = 0.0, objective: float | None = None) -> Model:
        """One kernel expansion for all rows."""
        coef = coef.copy()

        def model() -> GlobalModel:
            expansion = Expansion.of(self.kernel, self.X, self.X.dtype, np.arange(len(coef)), coef[None])
            return GlobalModel(expansion, np.array([intercept]))

        return Model(self._predictor(model), coef, objective)

    def by_group(
        self,
        centres: Centres,
        groups: Sequence[np.ndarray],
        solved: Sequence[tuple[np.ndarray, float]],
        common: np.ndarray | None = None,
    ) -> Model:
        """A kernel expansion for each of disjoint groups, beside a common one; a new row belongs to the group of its
        nearest centre. The coefficients are those of all together."""
        coef = np.zeros(self.X.shape[0]) if common is None else common.copy()
        shared = coef.copy()
        steps = [
            BlockStep(rows, own[None].copy(), np.empty((1, 0)), np.array([intercept]), 0)
            for rows, (own, intercept) in zip(groups, solved, strict=True)
        ]
        for step in steps:
            coef[step.rows] += step.step[0]

        def model() -> LocalModel:
            local = LocalStep(shared[None], steps)
            return LocalModel.of(self.kernel, self.X, self.X.dtype, centres, local, np.zeros(1))

        return Model(self._predictor(model), coef)

    def _predictor(self, make_model: Callable[[], GlobalModel | LocalModel]) -> Callable[[Any], np.ndarray]:
        """Support vectors are copied when they are needed: there may be many models of one fit."""

        def decision(X: Any) -> np.ndarray:
            device, model = self.make_device(), make_model()
            with device.session():
                return model.decision(device, self.kernel, device.samples(X, self.kernel, self.centre), self.centre)[0]

        return decision
