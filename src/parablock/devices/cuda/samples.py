"""Rows of data on the card, or as near to it as they can be.

Which form they get is a matter of bytes. Rows may take a quarter of the memory (`memory_limit`, or what is free): a fit
holds all of them twice while it puts them in order, and later those that it watches, and the block matrices need the
rest.

    dense rows   on the card as an `Operand`, at most 4 bytes a feature, if they have room there; otherwise they stay
                 where they are, and pass by in tiles (`StreamedOperand`)
    CSR rows     dense on the card, if they have room there and take no more than 32 times the bytes of the CSR form,
                 because tensor cores need about as long for 64 features as a sparse product for one entry; otherwise
                 sparse (`SparseOperand`), 8 bytes an entry
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from parablock.devices.base import Samples
from parablock.devices.cuda.kernel_values import KernelSpec
from parablock.devices.cuda.operands import FLOAT32, Grid, Operand, grid_of, on_device, operand_bytes, prepare
from parablock.devices.cuda.products import AnyOperand
from parablock.devices.cuda.sources import Source, SparseSource
from parablock.devices.cuda.sparse import SparseOperand, sparse_bytes
from parablock.devices.cuda.streamed import LEAST_ROWS, StreamedOperand
from parablock.kernels import Kernel

_DENSE_IS_WORTH = 32  # times the bytes of the sparse form
_VALUES_AT_ONCE = 1 << 26  # of rows that become numbers again: a bound on memory
_MEGABYTE = 1 << 20


class CudaSamples(Samples):
    """Rows as the kernels of `products` read them; nothing else is kept of them.

    Parameters
    ----------
    operand : Operand, StreamedOperand or SparseOperand
    overlap : str
        What the kernel is a function of.
    csr : bool
        Whether the rows came as a CSR matrix: then their features are given back as one, in whatever form they are.
    """

    dtype = np.dtype(np.float32)

    def __init__(self, operand: AnyOperand, overlap: str, csr: bool = False) -> None:
        self.operand, self.overlap, self.csr = operand, overlap, csr

    def __len__(self) -> int:
        return len(self.operand)

    @property
    def X(self) -> Any:
        """Rows as float32 numbers: X[rows] of any that are not sparse, len(X), X.shape, X.device."""
        return self.operand

    @property
    def self_overlap(self) -> np.ndarray:  # type: ignore[override]
        if isinstance(self.operand, SparseOperand):
            own = 2.0 * self.operand.half
        elif self.overlap == "product":
            own = self.operand.squares
        else:
            parts = [self.operand[part].abs().sum(dim=1) for part in self._stretches(len(self))]
            own = torch.cat([torch.zeros(0, device=self.operand.device), *parts])
        return own.float().cpu().numpy()

    def index(self, rows: Any) -> Any:
        """Numbers of rows as the card wants them."""
        return on_device(rows, self.operand.device)

    def take(self, rows: Any) -> CudaSamples:
        return CudaSamples(self.operand.take(rows), self.overlap, self.csr)

    def features(self, rows: Any = slice(None)) -> Any:
        if isinstance(self.operand, SparseOperand):
            return self.operand.take(rows).matrix()
        some = self.operand[rows].cpu().numpy()
        return sp.csr_matrix(some) if self.csr else some

    def mean(self, rows: np.ndarray) -> Any:
        if isinstance(self.operand, SparseOperand):
            return super().mean(rows)
        total = sum(self.operand[rows[part]].sum(dim=0, dtype=torch.float64) for part in self._stretches(len(rows)))
        return (total / len(rows)).float().cpu().numpy()

    def project(self, rows: np.ndarray, direction: np.ndarray) -> np.ndarray:
        if isinstance(self.operand, SparseOperand):
            return super().project(rows, direction)
        along = torch.as_tensor(direction, dtype=torch.float32, device=self.operand.device)
        return np.concatenate([(self.operand[rows[p]] @ along).cpu().numpy() for p in self._stretches(len(rows))])

    def _stretches(self, n: int) -> list[slice]:
        step = max(1, _VALUES_AT_ONCE // max(1, self.operand.shape[1]))
        return [slice(start, start + step) for start in range(0, n, step)]


def operands_of(rows: CudaSamples, columns: CudaSamples) -> tuple[AnyOperand, AnyOperand]:
    """Both as operands that can be multiplied: sparse where one of them is, in float32 where one of them needs that."""
    pair = rows.operand, columns.operand
    if any(isinstance(one, SparseOperand) for one in pair):
        return _sparse(rows), _sparse(columns)
    assert not isinstance(pair[0], SparseOperand) and not isinstance(pair[1], SparseOperand)
    if FLOAT32 in (pair[0].kind, pair[1].kind) and pair[0].kind != pair[1].kind:
        return _in_float32(pair[0]), _in_float32(pair[1])
    return pair


def make_samples(source: Source | SparseSource, kernel: Kernel, spec: KernelSpec, room: int) -> CudaSamples:
    """Rows made ready for a kernel, in the form that the rule above gives them.

    Parameters
    ----------
    source : Source or SparseSource
        Centred where the kernel allows it.
    kernel : Kernel
    spec : KernelSpec
        Of the kernel.
    room : int
        Bytes that rows may take on the card.
    """
    kind = FLOAT32 if spec.by_features else None
    if isinstance(source, SparseSource):
        return CudaSamples(_of_csr(source, kernel.overlap, kind, room), kernel.overlap, csr=True)
    if has_room(source, room):
        return CudaSamples(prepare(source, kind), kernel.overlap)
    least = operand_bytes(LEAST_ROWS, source.shape[1])
    if least > room:
        raise _too_large(source.shape, f"{_megabytes(least)} even for {LEAST_ROWS} of them", room)
    return CudaSamples(StreamedOperand(source, grid_of(source, kind), room), kernel.overlap)


def has_room(source: Source | SparseSource, room: int) -> bool:
    """Whether the rows may be on the card in their dense form."""
    return operand_bytes(*source.shape) <= room


def _of_csr(source: SparseSource, overlap: str, kind: str | None, room: int) -> AnyOperand:
    sparse = sparse_bytes(len(source), source.matrix.nnz)
    if has_room(source, min(room, _DENSE_IS_WORTH * sparse)):
        return prepare(source, kind)
    if sparse > room:
        raise _too_large(source.shape, f"{_megabytes(sparse)} as CSR", room)
    return SparseOperand.of(source.matrix, overlap, source.device)


def _too_large(shape: tuple[int, int], needed: str, room: int) -> MemoryError:
    return MemoryError(
        f"{shape[0]:,} rows of {shape[1]:,} features need {needed} on the GPU, where rows may take {_megabytes(room)} "
        "(a quarter of memory_limit, or of what is free). Raise memory_limit if it is set, free memory of the GPU, use "
        "several GPUs with engine='mpi', or device='cpu'."
    )


def _megabytes(size: int) -> str:
    return f"{size / _MEGABYTE:,.0f} MB" if size >= _MEGABYTE else f"{size:,} bytes"


def _sparse(samples: CudaSamples) -> SparseOperand:
    if isinstance(samples.operand, SparseOperand):
        return samples.operand
    # A few rows of a CSR matrix whose others are sparse on the card.
    return SparseOperand.of(sp.csr_matrix(samples.features()), samples.overlap, samples.operand.device)


def _in_float32(operand: Operand | StreamedOperand) -> Operand | StreamedOperand:
    if isinstance(operand, StreamedOperand):
        return StreamedOperand(operand.source, Grid(FLOAT32, 0), operand.room)
    return operand if operand.kind == FLOAT32 else prepare(operand[:], FLOAT32)
