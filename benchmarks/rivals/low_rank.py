"""A tall matrix in main memory or on the GPU, with the few products that an interior point method needs of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from parablock.devices import Device


@dataclass(frozen=True)
class LowRank:
    """A matrix of shape (n, rank) in float64, where the device computes.

    Attributes
    ----------
    values : ndarray or torch.Tensor
    near : callable
        Brings an array to the matrix.
    """

    values: Any
    near: Callable[[Any], Any] = np.asarray

    @classmethod
    def zeros(cls, n: int, rank: int, device: Device) -> LowRank:
        """Columns are contiguous: they come one by one."""
        if device.name != "cuda":
            return cls(np.zeros((n, rank), order="F"))
        import torch

        card = device.device  # type: ignore[attr-defined]
        return cls(
            torch.zeros((rank, n), dtype=torch.float64, device=card).T,
            lambda array: torch.as_tensor(array, dtype=torch.float64, device=card),
        )

    @property
    def shape(self) -> tuple[int, int]:
        return tuple(self.values.shape)

    def first(self, columns: int) -> LowRank:
        return replace(self, values=self.values[:, :columns])

    def scaled(self, factors: np.ndarray) -> LowRank:
        """Each row times its factor."""
        return replace(self, values=self.values * self.near(factors)[:, None])

    def dot(self, vector: np.ndarray) -> np.ndarray:
        return host(self.values @ self.near(vector))

    def dot_transposed(self, vector: np.ndarray) -> np.ndarray:
        return host(self.near(vector) @ self.values)

    def gram(self, weights: np.ndarray) -> np.ndarray:
        """``V' diag(weights) V``."""
        return host(self.values.T @ self.scaled(weights).values)


def host(array: Any) -> np.ndarray:
    """The same in main memory."""
    return array if isinstance(array, np.ndarray) else array.cpu().numpy()
