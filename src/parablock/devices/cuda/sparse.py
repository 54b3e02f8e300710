"""CSR rows on the card, and products of them.

Rows stay sparse where the dense form would have no room, or would be so much larger that tensor cores lose (see
`samples`). A product goes over the columns a tile of them at a time. The columns of a tile are laid out as a *panel*:
a line for each entry's feature, with one number a column. A program owns one row; it looks up where each of its
features is in the panel, if it is there at all, and adds up the terms of all columns of the tile at once. The panel is
as small as the tile has entries, some megabytes, so it stays in the card's cache whatever the number of features.

The terms are those of the overlaps in `parablock.kernels.base`, which vanish where either row has a zero, so all
kernels are here, also those of distances that are no inner products. Terms are float32, sums and distances float64.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
import triton
import triton.language as tl

from parablock.devices.cuda.kernel_values import (
    CHI_SQUARED,
    FIRST_OF_FEATURES,
    LAST_OF_DISTANCE,
    LINEAR,
    MANHATTAN,
    KernelSpec,
    of_distance,
    of_inner_product,
)
from parablock.devices.cuda.operands import on_device

_COLUMNS = 64  # of a tile
_ENTRIES = 32  # of a row at a time
_WARPS = 4
_VALUES_AT_ONCE = 1 << 24  # of a tile: a bound on memory
_BYTES_AN_ENTRY, _BYTES_A_ROW = 8, 16

INNER_PRODUCT = KernelSpec(LINEAR.value)


@dataclass(frozen=True)
class SparseOperand:
    """CSR rows on the device.

    Attributes
    ----------
    starts : tensor of shape (n + 1,), int64
    features : tensor of shape (entries,), int32
    values : tensor of shape (entries,), float32
    half : tensor of shape (n,), float64
        Half of the overlap of each row with itself.
    width : int
        Number of features.
    """

    starts: torch.Tensor
    features: torch.Tensor
    values: torch.Tensor
    half: torch.Tensor
    width: int

    @classmethod
    def of(cls, matrix: sp.csr_matrix, overlap: str, device: torch.device) -> SparseOperand:
        """A CSR matrix, each entry of which is there once."""
        values = matrix.data.astype(np.float32)
        terms = np.abs(values.astype(np.float64))
        terms = terms**2 if overlap == "product" else terms
        own = sp.csr_matrix((terms, matrix.indices, matrix.indptr), shape=matrix.shape) @ np.ones(matrix.shape[1])
        starts, features = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32)
        on_card = [torch.as_tensor(part, device=device) for part in (starts, features, values, 0.5 * own)]
        return cls(on_card[0], on_card[1], on_card[2], on_card[3], matrix.shape[1])

    def __len__(self) -> int:
        return len(self.half)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self), self.width

    @property
    def device(self) -> torch.device:
        return self.values.device

    def take(self, rows: Any) -> SparseOperand:
        """The given rows."""
        rows = on_device(rows, self.device)
        rows = torch.arange(len(self), device=self.device)[rows]
        first = self.starts[rows]
        lengths = self.starts[rows + 1] - first
        starts = torch.zeros(len(rows) + 1, dtype=torch.int64, device=self.device)
        torch.cumsum(lengths, 0, out=starts[1:])
        count = int(starts[-1])
        shift = torch.repeat_interleave(first - starts[:-1], lengths, output_size=count)
        entries = shift + torch.arange(count, device=self.device)
        return SparseOperand(starts, self.features[entries], self.values[entries], self.half[rows], self.width)

    def matrix(self) -> sp.csr_matrix:
        """The rows on the host."""
        parts = (part.cpu().numpy() for part in (self.values, self.features, self.starts))
        return sp.csr_matrix(tuple(parts), shape=self.shape)


def sparse_bytes(n: int, entries: int) -> int:
    """What so many rows with so many entries take."""
    return n * _BYTES_A_ROW + entries * _BYTES_AN_ENTRY


def kernel_dot(spec: KernelSpec, rows: SparseOperand, columns: SparseOperand, coef: torch.Tensor) -> torch.Tensor:
    """``coef @ K(columns, rows)``, shape (n_outputs, rows), float64."""
    sums = torch.zeros((len(coef), len(rows)), dtype=torch.float64, device=rows.device)
    for own, other, values in _tiles(spec, rows, columns):
        sums[:, own] += coef[:, other].double() @ values.double().T
    return sums


def gram(spec: KernelSpec, rows: SparseOperand, columns: SparseOperand) -> torch.Tensor:
    """The matrix of kernel values, shape (rows, columns), float32."""
    out = torch.empty((len(rows), len(columns)), dtype=torch.float32, device=rows.device)
    for own, other, values in _tiles(spec, rows, columns):
        out[own, other] = values
    return out


def block_grams(spec: KernelSpec, samples: SparseOperand, blocks: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The kernel matrices of many blocks, as `fused.block_grams` has them."""
    n_blocks, size = blocks.shape
    out = torch.zeros((n_blocks, size, size), dtype=dtype, device=blocks.device)
    for number, length in enumerate((blocks >= 0).sum(dim=1).tolist()):
        own = samples.take(blocks[number, :length])
        matrix = gram(spec, own, own)
        matrix = 0.5 * (matrix + matrix.T)  # sums of the same terms, but not in the same order
        if spec.kind <= LAST_OF_DISTANCE.value:
            matrix.fill_diagonal_(1.0)
        out[number, :length, :length] = matrix
    return out


def _tiles(
    spec: KernelSpec, rows: SparseOperand, columns: SparseOperand
) -> Iterator[tuple[slice, slice, torch.Tensor]]:
    """All kernel values, (rows, columns) of a tile at a time, and which these are."""
    if rows.width != columns.width:
        raise ValueError(f"rows have {rows.width} features, columns {columns.width}.")
    if len(rows) == 0 or len(columns) == 0:
        return
    at_once = _VALUES_AT_ONCE // _COLUMNS
    bounds = [*columns.starts[::_COLUMNS].tolist(), len(columns.values)]
    for number, start in enumerate(range(0, len(columns), _COLUMNS)):
        other = slice(start, min(start + _COLUMNS, len(columns)))
        places, panel = _panel(columns, other, bounds[number], bounds[number + 1])
        half = torch.zeros(_COLUMNS, dtype=torch.float64, device=columns.device)
        half[: other.stop - start] = columns.half[other]
        for first in range(0, len(rows), at_once):
            own = slice(first, min(first + at_once, len(rows)))
            yield own, other, _values(spec, rows, places, panel, half, own)[:, : other.stop - start]


def _panel(columns: SparseOperand, those: slice, first: int, last: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Some columns laid out feature by feature, and the line of each feature, -1 for one that does not occur."""
    feature, count = columns.features[first:last].long(), last - first
    if count < columns.width:
        places = torch.full((columns.width,), -1, dtype=torch.int32, device=columns.device)
        # Of several entries with the same feature any one gives it its line.
        places[feature] = torch.arange(count, dtype=torch.int32, device=columns.device)
    else:
        places = torch.arange(columns.width, dtype=torch.int32, device=columns.device)
    lengths = columns.starts[those.start + 1 : those.stop + 1] - columns.starts[those]
    column = torch.repeat_interleave(torch.arange(len(lengths), device=columns.device), lengths, output_size=count)
    panel = torch.zeros((max(1, min(count, columns.width)), _COLUMNS), dtype=torch.float32, device=columns.device)
    panel[places[feature].long(), column] = columns.values[first:last]
    return places, panel


def _values(
    spec: KernelSpec,
    rows: SparseOperand,
    places: torch.Tensor,
    panel: torch.Tensor,
    half: torch.Tensor,
    own: slice,
) -> torch.Tensor:
    """Kernel values of some rows with the columns of a panel."""
    out = torch.empty((own.stop - own.start, _COLUMNS), dtype=torch.float32, device=rows.device)
    _sparse_values[(len(out),)](
        rows.starts,
        rows.features,
        rows.values,
        rows.half,
        places,
        panel,
        half,
        out,
        own.start,
        spec.scale,
        spec.shift,
        KIND=spec.kind,
        DEGREE=spec.degree,
        COLUMNS=_COLUMNS,
        ENTRIES=_ENTRIES,
        num_warps=_WARPS,
    )
    return out


@triton.jit(do_not_specialize=["first_row"])
def _sparse_values(
    starts,
    features,
    values,
    half,
    places,
    panel,
    column_half,
    out,
    first_row,
    scale,
    shift,
    KIND: tl.constexpr,
    DEGREE: tl.constexpr,
    COLUMNS: tl.constexpr,
    ENTRIES: tl.constexpr,
):
    place = tl.program_id(0).to(tl.int64)
    row = place + first_row
    column = tl.arange(0, COLUMNS)
    first, last = tl.load(starts + row), tl.load(starts + row + 1)
    overlap = tl.zeros((1, COLUMNS), tl.float64)
    for start in range(first, last, ENTRIES):
        entry = start + tl.arange(0, ENTRIES)
        inside = entry < last
        line = tl.load(places + tl.load(features + entry, inside, 0), inside, -1)
        x = tl.load(values + entry, inside, 0.0)[:, None]
        there = (line >= 0)[:, None]
        z = tl.load(panel + line[:, None].to(tl.int64) * COLUMNS + column[None, :], there, 0.0)
        overlap += tl.sum(_term(x, z, KIND), 0)[None, :].to(tl.float64)
    row_half = tl.load(half + row + tl.arange(0, 1))
    other_half = tl.load(column_half + column)
    if KIND <= LAST_OF_DISTANCE:
        distance = tl.maximum(row_half[:, None] + other_half[None, :] - overlap, 0.0).to(tl.float32)
        if KIND >= FIRST_OF_FEATURES:
            distance = 2.0 * distance  # the others are functions of its half
        result = of_distance(distance, scale, KIND)
    else:
        norms = row_half.to(tl.float32), other_half.to(tl.float32)
        result = of_inner_product(overlap.to(tl.float32), norms[0], norms[1], scale, shift, KIND, DEGREE)
    tl.store(out + place * COLUMNS + column[None, :], result)


@triton.jit
def _term(x, z, KIND: tl.constexpr):
    """What a feature adds to the overlap; nothing where either row has a zero."""
    if KIND == MANHATTAN:
        term = tl.maximum(tl.minimum(x, z), 0.0) + tl.maximum(tl.minimum(-x, -z), 0.0)
    elif KIND == CHI_SQUARED:
        both = x + z
        term = tl.where(both > 0.0, 2.0 * x * z / tl.where(both > 0.0, both, 1.0), 0.0)
    else:
        term = x * z
    return term
