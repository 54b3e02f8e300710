"""Kernel products and kernel matrices, wherever the rows are.

    Operand           dense, on the card              `fused`
    StreamedOperand   dense, too large for the card   tile after tile becomes an Operand
    SparseOperand     CSR, on the card                `sparse`

Rows and columns must both be sparse, or neither.
"""

from __future__ import annotations

import torch

from parablock.devices.cuda import fused, sparse
from parablock.devices.cuda.kernel_values import KernelSpec
from parablock.devices.cuda.operands import Operand
from parablock.devices.cuda.sparse import SparseOperand
from parablock.devices.cuda.streamed import StreamedOperand

AnyOperand = Operand | StreamedOperand | SparseOperand


def kernel_dot(spec: KernelSpec, rows: AnyOperand, columns: AnyOperand, coef: torch.Tensor) -> torch.Tensor:
    """``coef @ K(columns, rows)``, shape (n_outputs, rows), float64, without storing K."""
    if isinstance(rows, SparseOperand) and isinstance(columns, SparseOperand):
        return sparse.kernel_dot(spec, rows, columns, coef)
    if isinstance(columns, StreamedOperand):
        sums = torch.zeros((len(coef), len(rows)), dtype=torch.float64, device=rows.device)
        for places, part in columns.stretches():
            sums += kernel_dot(spec, rows, part, coef[:, places])
        return sums
    if isinstance(rows, StreamedOperand):
        out = torch.empty((len(coef), len(rows)), dtype=torch.float64, device=rows.device)
        for places, tile in rows.tiles():
            out[:, places] = kernel_dot(spec, tile, columns, coef)
        return out
    return fused.kernel_dot(spec, _dense(rows), _dense(columns), coef)


def gram(spec: KernelSpec, rows: AnyOperand, columns: AnyOperand) -> torch.Tensor:
    """The matrix of kernel values, shape (rows, columns), float32."""
    if isinstance(rows, SparseOperand) and isinstance(columns, SparseOperand):
        return sparse.gram(spec, rows, columns)
    return fused.gram(spec, _dense(rows), _dense(columns))


def block_grams(
    spec: KernelSpec, samples: AnyOperand, blocks: torch.Tensor, dtype: torch.dtype = torch.float32
) -> torch.Tensor:
    """The kernel matrices of many blocks at once, shape (n_blocks, size, size).

    Blocks are lines of row numbers, -1 after the last where a block is smaller; see `fused.block_grams`.
    """
    if isinstance(samples, SparseOperand):
        return sparse.block_grams(spec, samples, blocks, dtype)
    if isinstance(samples, Operand):
        return fused.block_grams(spec, samples, blocks, dtype)
    n_blocks, size = blocks.shape
    out = torch.empty((n_blocks, size, size), dtype=dtype, device=blocks.device)
    at_once = max(1, samples.rows_at_once // max(1, size))
    for start in range(0, n_blocks, at_once):
        some = blocks[start : start + at_once]
        there = some >= 0
        numbers = torch.full_like(some, -1)
        numbers[there] = torch.arange(int(there.sum()), device=blocks.device, dtype=some.dtype)
        rows = StreamedOperand(samples.source.take(some[there]), samples.grid, samples.room).brought()
        out[start : start + at_once] = fused.block_grams(spec, rows, numbers, dtype)
    return out


def _dense(operand: AnyOperand) -> Operand:
    if isinstance(operand, SparseOperand):
        raise ValueError("CSR rows cannot be multiplied with dense ones: make them alike (see `samples.operands_of`).")
    return operand.brought() if isinstance(operand, StreamedOperand) else operand
