"""Rows of data on the card."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from parablock.devices.base import Samples
from parablock.devices.cuda.kernel_values import KernelSpec
from parablock.devices.cuda.operands import FLOAT32, Operand, padded_features, prepare
from parablock.kernels import Kernel
from parablock.mapped import MappedRows

_ROWS_AT_ONCE = 1 << 16  # of sparse data that become dense on their way to the card
_BYTES_A_FEATURE = 8  # of a row: float32, and two parts of float16


class CudaSamples(Samples):
    """Rows on the card, as they are (float32) and as the kernels of `products` read them.

    Parameters
    ----------
    X : tensor of shape (n, n_features), float32
    operand : Operand
    kind : str
        The overlap that the kernel is a function of.
    """

    dtype = np.dtype(np.float32)

    def __init__(self, X: torch.Tensor, operand: Operand, kind: str) -> None:
        self.X, self.operand, self.kind = X, operand, kind

    def __len__(self) -> int:
        return len(self.X)

    @property
    def self_overlap(self) -> np.ndarray:  # type: ignore[override]
        overlap = self.X.square() if self.kind == "product" else self.X.abs()
        return overlap.sum(dim=1).cpu().numpy()

    def index(self, rows: Any) -> Any:
        """Numbers of rows as the card wants them."""
        return rows if isinstance(rows, slice) else torch.as_tensor(rows, device=self.X.device)

    def take(self, rows: Any) -> CudaSamples:
        chosen = self.index(rows)
        return CudaSamples(self.X[chosen], self.operand.take(chosen), self.kind)

    def features(self, rows: Any = slice(None)) -> Any:
        return self.X[self.index(rows)].cpu().numpy()

    def mean(self, rows: np.ndarray) -> np.ndarray:
        return self.X[self.index(rows)].mean(dim=0).cpu().numpy()

    def project(self, rows: np.ndarray, direction: np.ndarray) -> np.ndarray:
        along = torch.as_tensor(direction, dtype=torch.float32, device=self.X.device)
        return (self.X[self.index(rows)] @ along).cpu().numpy()


def operands_of(rows: CudaSamples, columns: CudaSamples) -> tuple[Operand, Operand]:
    """Both as operands that can be multiplied: in float32 where one of them needs that."""
    kinds = rows.operand.kind, columns.operand.kind
    if FLOAT32 in kinds and kinds[0] != kinds[1]:
        return prepare(rows.X, FLOAT32), prepare(columns.X, FLOAT32)
    return rows.operand, columns.operand


def bytes_on_card(X: Any) -> int:
    """What the rows of X take there."""
    return X.shape[0] * padded_features(X.shape[1]) * _BYTES_A_FEATURE


def make_samples(rows: torch.Tensor, kernel: Kernel, spec: KernelSpec, centre: np.ndarray | None) -> CudaSamples:
    """Rows on the card made ready for a kernel."""
    if kernel.shift_invariant and centre is not None:
        rows = rows - torch.as_tensor(centre, dtype=torch.float32, device=rows.device)
    return CudaSamples(rows, prepare(rows, FLOAT32 if spec.by_features else None), kernel.overlap)


def on_card(X: Any, device: torch.device) -> torch.Tensor:
    """X as a dense float32 tensor; CSR rows become dense some at a time."""
    X = X[:] if isinstance(X, MappedRows) else X
    if not sp.issparse(X):
        array = np.ascontiguousarray(X)
        return torch.as_tensor(array if array.flags.writeable else array.copy()).to(device).to(torch.float32)
    rows = torch.zeros(X.shape, dtype=torch.float32, device=device)
    for start in range(0, X.shape[0], _ROWS_AT_ONCE):
        part = sp.csr_matrix(X[start : start + _ROWS_AT_ONCE])
        entries = np.repeat(np.arange(part.shape[0]), np.diff(part.indptr)), part.indices
        places = tuple(torch.as_tensor(np.asarray(place, dtype=np.int64), device=device) for place in entries)
        values = torch.as_tensor(part.data, dtype=torch.float32, device=device)
        rows[start : start + part.shape[0]].index_put_(places, values, accumulate=True)
    return rows
