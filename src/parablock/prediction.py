"""Predictions of a fitted machine, in tiles: global, and the paper's local ones (section 4.3).

global   decision(x) = sum_j coef_j K(x, x_j) + intercept
local    x belongs to the block r of its nearest centre; the model is coef_t plus the step of that block
         alone, (d_t)_{S_r}: what the block fitted its own data with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from parablock.devices.base import Device, Samples
from parablock.kernels import Kernel
from parablock.partition import Centres
from parablock.solver import LocalStep


@dataclass(frozen=True)
class Expansion:
    """A sum of kernels: rows of training data (for a precomputed kernel their numbers) and their coefficients."""

    rows: np.ndarray
    vectors: Any
    coef: np.ndarray

    @classmethod
    def of(cls, kernel: Kernel, X: Any, dtype: Any, rows: np.ndarray, coef: np.ndarray) -> Expansion:
        """The given rows of X in that type, those with a coefficient that is not zero."""
        used = np.flatnonzero(coef.any(axis=0))
        rows, coef = rows[used], np.ascontiguousarray(coef[:, used])
        return cls(rows, np.empty((0, 0)) if kernel.overlap == "given" else X[rows].astype(dtype, copy=False), coef)

    def values(self, device: Device, kernel: Kernel, samples: Samples, centre: np.ndarray | None) -> np.ndarray:
        """The sum at every sample, shape (n_outputs, n)."""
        if len(self.rows) == 0 or len(samples) == 0:
            return np.zeros((self.coef.shape[0], len(samples)))
        if kernel.overlap == "given":
            columns = device.given_columns(self.rows, samples.dtype)
        else:
            finer = samples.dtype.itemsize > self.vectors.dtype.itemsize
            vectors = self.vectors.astype(samples.dtype) if finer else self.vectors
            columns = device.samples(vectors, kernel, centre)
        return device.kernel_dot(kernel, samples, columns, self.coef)


@dataclass(frozen=True)
class GlobalModel:
    """One expansion for everyone."""

    expansion: Expansion
    intercept: np.ndarray

    def decision(self, device: Device, kernel: Kernel, samples: Samples, centre: np.ndarray | None) -> np.ndarray:
        return self.expansion.values(device, kernel, samples, centre) + self.intercept[:, None]


@dataclass(frozen=True)
class LocalModel:
    """A common expansion plus one of its own for each block."""

    centres: Centres
    common: Expansion
    own: Sequence[Expansion]
    intercepts: np.ndarray  # (n_blocks, n_outputs)

    @classmethod
    def of(
        cls, kernel: Kernel, X: Any, dtype: Any, centres: Centres, local: LocalStep, intercept: np.ndarray
    ) -> LocalModel:
        common = Expansion.of(kernel, X, dtype, np.arange(X.shape[0]), local.coef)
        own = [Expansion.of(kernel, X, dtype, step.rows, step.step) for step in local.steps]
        biases = np.stack([step.bias for step in local.steps])
        return cls(centres, common, own, np.where(np.isnan(biases), intercept, biases))

    def decision(self, device: Device, kernel: Kernel, samples: Samples, centre: np.ndarray | None) -> np.ndarray:
        blocks = self.centres.nearest(device, kernel, samples)
        decision = self.common.values(device, kernel, samples, centre) + self.intercepts[blocks].T
        for number in np.unique(blocks):
            members = np.flatnonzero(blocks == number)
            decision[:, members] += self.own[number].values(device, kernel, samples.take(members), centre)
        return decision
