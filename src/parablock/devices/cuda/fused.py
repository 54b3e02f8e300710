"""Kernel products and kernel matrices, one fused Triton kernel each.

A program owns a tile of rows and goes over tiles of columns: inner products on tensor cores (see `operands`), kernel
values in registers, times the coefficients, summed. Kernel values never reach memory unless a matrix is asked for.

Sums over the columns of a tile are float32, over tiles float64. Where there are too few tiles of rows to fill the card,
the columns are cut into ranges whose sums are added in a fixed order: two runs give the same digits.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl

from parablock.devices.cuda.kernel_values import (
    FIRST_OF_FEATURES,
    LAST_OF_DISTANCE,
    KernelSpec,
)
from parablock.devices.cuda.operands import EXACT, FAST, FLOAT32, Operand, chunk_features
from parablock.devices.cuda.tiles import (
    distances,
    inner_products,
    kernel_values,
    load_columns,
    load_rows,
    multiply,
    tile_values,
)

# --------------------------------------------------------------------------------------------------- what to tune


class Tiling(NamedTuple):
    """Shape of a tile, and how many warps and stages of loads work on it."""

    rows: int
    columns: int
    warps: int
    stages: int


_FEW_OUTPUTS = 4  # up to here every output has a sum of its own; more are a second product on tensor cores ...
_MOST_OUTPUTS = 32  # ... of at most this many at a time
_LEAST_OUTPUTS = 16  # and at least this many
_FLOAT32_CHUNK = 32  # features of a float32 tile
_PROGRAMS_A_PROCESSOR = 4  # wanted, so that none of them waits long for the last
_PROCESSORS = 132  # of a card that cannot be asked


def tiling(kind: str, features: int, outputs: int) -> Tiling:
    """The one table of tile shapes."""
    if kind == FLOAT32:
        return Tiling(64, 64, 4, 2)
    if outputs > _FEW_OUTPUTS:
        return Tiling(128, 64, 8, 2)
    if kind == EXACT:
        # Where tiles come in chunks the card's cache is the limit: wide tiles read less of it for each value.
        return Tiling(128, 128, 8, 3) if features <= chunk_features(features) else Tiling(128, 256, 8, 4)
    return Tiling(128, 64, 4, 2) if features <= 64 and outputs == 1 else Tiling(128, 64, 8, 3)


def gram_tiling(kind: str) -> Tiling:
    return Tiling(64, 64, 4, 2) if kind == FLOAT32 else Tiling(128, 128, 8, 2)


# ------------------------------------------------------------------------------------------------------- products


def kernel_dot(spec: KernelSpec, rows: Operand, columns: Operand, coef: torch.Tensor) -> torch.Tensor:
    """``coef @ K(columns, rows)``, without storing K.

    Parameters
    ----------
    spec : KernelSpec
    rows, columns : Operand
    coef : tensor of shape (n_outputs, columns)
        Taken as float32.

    Returns
    -------
    tensor of shape (n_outputs, rows), float64
    """
    outputs, n, m = len(coef), len(rows), len(columns)
    if outputs > _MOST_OUTPUTS:
        passes = [kernel_dot(spec, rows, columns, part) for part in coef.split(_MOST_OUTPUTS)]
        return torch.cat(passes)
    if outputs == 0 or n == 0 or m == 0:
        return torch.zeros((outputs, n), dtype=torch.float64, device=coef.device)

    how = _how(spec, rows, columns)
    shape = tiling(how.pop("kind"), rows.features, outputs)
    padded = _padded_outputs(outputs)
    factors = torch.zeros((padded, m), dtype=torch.float32, device=coef.device)
    factors[:outputs] = coef
    row_tiles, column_tiles = -(-n // shape.rows), -(-m // shape.columns)
    wanted = -(-_PROGRAMS_A_PROCESSOR * _processors(coef.device) // row_tiles)
    tiles_a_range = -(-column_tiles // min(wanted, column_tiles))
    ranges = -(-column_tiles // tiles_a_range)
    sums = torch.empty((ranges, padded, n), dtype=torch.float64, device=coef.device)
    _kernel_dot[(row_tiles * ranges,)](
        *_tensors(rows),
        *_tensors(columns),
        factors,
        sums,
        n,
        m,
        ranges,
        tiles_a_range,
        **how,
        OUTPUTS=padded,
        ROWS=shape.rows,
        COLUMNS=shape.columns,
        num_warps=shape.warps,
        num_stages=shape.stages,
    )
    return sums.sum(dim=0)[:outputs]


def gram(spec: KernelSpec, rows: Operand, columns: Operand, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """The matrix of kernel values, shape (rows, columns), float32 or float16."""
    n, m = len(rows), len(columns)
    out = torch.empty((n, m), dtype=dtype, device=rows.high.device)
    if n == 0 or m == 0:
        return out
    how = _how(spec, rows, columns)
    shape = gram_tiling(how.pop("kind"))
    row_tiles, column_tiles = -(-n // shape.rows), -(-m // shape.columns)
    _gram[(row_tiles * column_tiles,)](
        *_tensors(rows),
        *_tensors(columns),
        out,
        n,
        m,
        column_tiles,
        **how,
        ROWS=shape.rows,
        COLUMNS=shape.columns,
        num_warps=shape.warps,
        num_stages=shape.stages,
    )
    return out


def block_grams(
    spec: KernelSpec, samples: Operand, blocks: torch.Tensor, dtype: torch.dtype = torch.float32
) -> torch.Tensor:
    """The kernel matrices of many blocks at once.

    Parameters
    ----------
    spec : KernelSpec
    samples : Operand
    blocks : tensor of shape (n_blocks, size), integer
        Rows of each block; -1 after the last where a block is smaller.
    dtype : {torch.float16, torch.float32}
        float16 holds values up to 65504 to 11 bits: enough for the descent inside blocks where the kernel's values are
        about one, because the step is then judged by exact products.

    Returns
    -------
    tensor of shape (n_blocks, size, size)
        Symmetric, zero where there is no row. The diagonals of kernels of a distance are exactly one.
    """
    n_blocks, size = blocks.shape
    out = torch.empty((n_blocks, size, size), dtype=dtype, device=blocks.device)
    if out.numel() == 0:
        return out
    how = _how(spec, samples, samples)
    shape = gram_tiling(how.pop("kind"))
    tiles = -(-size // shape.rows)
    # Each pair of tiles once: the other half of the matrix is written as the transpose.
    tile_row, tile_column = torch.triu_indices(tiles, tiles, device=blocks.device, dtype=torch.int32)
    _block_grams[(len(tile_row) * n_blocks,)](
        *_tensors(samples),
        blocks.to(torch.int64).contiguous(),
        tile_row.clone(),
        tile_column.clone(),  # begins where memory is aligned: Triton would compile another program otherwise
        out,
        size,
        len(tile_row),
        **how,
        ROWS=shape.rows,
        num_warps=shape.warps,
        num_stages=shape.stages,
    )
    return out


def _how(spec: KernelSpec, rows: Operand, columns: Operand) -> dict[str, Any]:
    """What all Triton kernels here want to know of the kernel and the operands."""
    if rows.features != columns.features:
        raise ValueError(f"rows have {rows.features} padded features, columns {columns.features}.")
    in_float32 = rows.kind == FLOAT32
    if in_float32 != (columns.kind == FLOAT32):
        raise ValueError(f"{rows.kind} rows cannot be multiplied with {columns.kind} columns: prepare them alike.")
    if spec.by_features and not in_float32:
        raise ValueError("The laplacian and chi2 kernels need float32 operands.")
    parts = rows.parts, columns.parts
    return {
        "kind": rows.kind if parts[0] >= parts[1] else columns.kind,
        "unit": rows.unit * columns.unit,
        "scale": spec.scale,
        "shift": spec.shift,
        "KIND": spec.kind,
        "DEGREE": spec.degree,
        "FEATURES": rows.features,
        "CHUNK": min(chunk_features(rows.features), _FLOAT32_CHUNK) if in_float32 else chunk_features(rows.features),
        "ROW_PARTS": parts[0],
        "COLUMN_PARTS": parts[1],
        "LOW_BY_LOW": parts == (2, 2) and FAST not in (rows.kind, columns.kind),
    }


def _tensors(operand: Operand) -> tuple[torch.Tensor, ...]:
    return operand.high, operand.low, operand.half, operand.half_low


def _padded_outputs(outputs: int) -> int:
    padded = 1 << (outputs - 1).bit_length()
    return padded if padded <= _FEW_OUTPUTS else max(padded, _LEAST_OUTPUTS)


@cache
def _processors(device: torch.device) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else _PROCESSORS


# ------------------------------------------------------------------------------------------------ Triton kernels
#
# Rows and columns past the end are read as the last one instead of being masked, which costs nothing, and left out
# where the result is written or multiplied. Row numbers are 64 bits wide before they are multiplied with a width.
#
# Numbers of rows are not to be specialised for: they change from call to call, and compiling takes a second.


@triton.jit(do_not_specialize=["n", "m", "ranges", "tiles_a_range"])
def _kernel_dot(
    rows_high,
    rows_low,
    rows_half,
    rows_half_low,
    columns_high,
    columns_low,
    columns_half,
    columns_half_low,
    coef,
    sums,
    n,
    m,
    ranges,
    tiles_a_range,
    unit,
    scale,
    shift,
    KIND: tl.constexpr,
    DEGREE: tl.constexpr,
    FEATURES: tl.constexpr,
    CHUNK: tl.constexpr,
    ROW_PARTS: tl.constexpr,
    COLUMN_PARTS: tl.constexpr,
    LOW_BY_LOW: tl.constexpr,
    OUTPUTS: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    program = tl.program_id(0)
    part = program % ranges  # neighbours work on the same rows
    own = (program // ranges) * ROWS + tl.arange(0, ROWS)
    row = tl.minimum(own, n - 1).to(tl.int64)
    row_half, row_half_low = tl.load(rows_half + row), tl.load(rows_half_low + row)
    # Few features: the tile of rows is read once. Many: it comes in chunks, each time again.
    row_high = load_rows(rows_high, row, 0, FEATURES, CHUNK)
    row_low = load_rows(rows_low, row, 0, FEATURES, CHUNK) if ROW_PARTS == 2 else row_high

    # Sums of one output each; a tile of sums where there are many outputs.
    if OUTPUTS <= 4:
        sum_0 = tl.zeros((ROWS,), tl.float64)
        sum_1, sum_2, sum_3 = sum_0, sum_0, sum_0
    else:
        output = tl.arange(0, OUTPUTS)
        all_sums = tl.zeros((ROWS, OUTPUTS), tl.float64)

    first = part * tiles_a_range * COLUMNS
    for start in range(first, tl.minimum(first + tiles_a_range * COLUMNS, m), COLUMNS):
        other = start + tl.arange(0, COLUMNS)
        inside = other < m
        column = tl.minimum(other, m - 1).to(tl.int64)
        if KIND >= FIRST_OF_FEATURES and KIND <= LAST_OF_DISTANCE:
            high = distances(rows_high, row, columns_high, column, FEATURES, KIND)
            low = high
        elif FEATURES == CHUNK:
            column_high = load_columns(columns_high, column, 0, FEATURES, CHUNK)
            column_low = load_columns(columns_low, column, 0, FEATURES, CHUNK) if COLUMN_PARTS == 2 else column_high
            high, low = tl.zeros((ROWS, COLUMNS), tl.float32), tl.zeros((ROWS, COLUMNS), tl.float32)
            high, low = multiply(
                row_high, row_low, column_high, column_low, high, low, ROW_PARTS, COLUMN_PARTS, LOW_BY_LOW
            )
        else:
            high, low = inner_products(
                rows_high,
                rows_low,
                row,
                columns_high,
                columns_low,
                column,
                FEATURES,
                CHUNK,
                ROW_PARTS,
                COLUMN_PARTS,
                LOW_BY_LOW,
            )
        column_half, column_half_low = tl.load(columns_half + column), tl.load(columns_half_low + column)
        values = kernel_values(
            high,
            low,
            row_half,
            row_half_low,
            column_half,
            column_half_low,
            unit,
            scale,
            shift,
            KIND,
            DEGREE,
            ROW_PARTS + COLUMN_PARTS > 2,
        )
        if OUTPUTS <= 4:
            sum_0 += tl.sum(values * tl.load(coef + other, inside, 0.0)[None, :], 1).to(tl.float64)
            if OUTPUTS >= 2:
                sum_1 += tl.sum(values * tl.load(coef + m + other, inside, 0.0)[None, :], 1).to(tl.float64)
            if OUTPUTS == 4:
                sum_2 += tl.sum(values * tl.load(coef + 2 * m + other, inside, 0.0)[None, :], 1).to(tl.float64)
                sum_3 += tl.sum(values * tl.load(coef + 3 * m + other, inside, 0.0)[None, :], 1).to(tl.float64)
        else:
            places = coef + output[None, :].to(tl.int64) * m + other[:, None]
            factors = tl.load(places, inside[:, None], 0.0)
            all_sums += tl.dot(values, factors, input_precision="tf32x3").to(tl.float64)

    there = own < n
    base = sums + part.to(tl.int64) * OUTPUTS * n
    if OUTPUTS <= 4:
        tl.store(base + row, sum_0, there)
        if OUTPUTS >= 2:
            tl.store(base + n + row, sum_1, there)
        if OUTPUTS == 4:
            tl.store(base + 2 * n + row, sum_2, there)
            tl.store(base + 3 * n + row, sum_3, there)
    else:
        tl.store(base + output[None, :].to(tl.int64) * n + row[:, None], all_sums, there[:, None])


@triton.jit(do_not_specialize=["n", "m", "column_tiles"])
def _gram(
    rows_high,
    rows_low,
    rows_half,
    rows_half_low,
    columns_high,
    columns_low,
    columns_half,
    columns_half_low,
    out,
    n,
    m,
    column_tiles,
    unit,
    scale,
    shift,
    KIND: tl.constexpr,
    DEGREE: tl.constexpr,
    FEATURES: tl.constexpr,
    CHUNK: tl.constexpr,
    ROW_PARTS: tl.constexpr,
    COLUMN_PARTS: tl.constexpr,
    LOW_BY_LOW: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    program = tl.program_id(0)
    own = (program // column_tiles) * ROWS + tl.arange(0, ROWS)
    other = (program % column_tiles) * COLUMNS + tl.arange(0, COLUMNS)
    values = tile_values(
        rows_high,
        rows_low,
        rows_half,
        rows_half_low,
        tl.minimum(own, n - 1).to(tl.int64),
        columns_high,
        columns_low,
        columns_half,
        columns_half_low,
        tl.minimum(other, m - 1).to(tl.int64),
        unit,
        scale,
        shift,
        KIND,
        DEGREE,
        FEATURES,
        CHUNK,
        ROW_PARTS,
        COLUMN_PARTS,
        LOW_BY_LOW,
    )
    places = out + own[:, None].to(tl.int64) * m + other[None, :]
    tl.store(places, values.to(out.dtype.element_ty), (own < n)[:, None] & (other < m)[None, :])


@triton.jit(do_not_specialize=["pairs"])
def _block_grams(
    high,
    low,
    half,
    half_low,
    blocks,
    tile_row,
    tile_column,
    out,
    size,
    pairs,
    unit,
    scale,
    shift,
    KIND: tl.constexpr,
    DEGREE: tl.constexpr,
    FEATURES: tl.constexpr,
    CHUNK: tl.constexpr,
    ROW_PARTS: tl.constexpr,
    COLUMN_PARTS: tl.constexpr,
    LOW_BY_LOW: tl.constexpr,
    ROWS: tl.constexpr,
):
    program = tl.program_id(0)
    block = (program // pairs).to(tl.int64)
    pair = program % pairs
    own = tl.load(tile_row + pair) * ROWS + tl.arange(0, ROWS)
    other = tl.load(tile_column + pair) * ROWS + tl.arange(0, ROWS)
    row = tl.load(blocks + block * size + own, own < size, -1)
    column = tl.load(blocks + block * size + other, other < size, -1)
    values = tile_values(
        high,
        low,
        half,
        half_low,
        tl.maximum(row, 0),
        high,
        low,
        half,
        half_low,
        tl.maximum(column, 0),
        unit,
        scale,
        shift,
        KIND,
        DEGREE,
        FEATURES,
        CHUNK,
        ROW_PARTS,
        COLUMN_PARTS,
        LOW_BY_LOW,
    )
    if KIND <= LAST_OF_DISTANCE:
        values = tl.where(row[:, None] == column[None, :], 1.0, values)
    values = tl.where((row >= 0)[:, None] & (column >= 0)[None, :], values, 0.0).to(out.dtype.element_ty)
    matrix = out + block * size * size
    inside = (own < size)[:, None] & (other < size)[None, :]
    tl.store(matrix + own[:, None].to(tl.int64) * size + other[None, :], values, inside)
    mirrored = (other < size)[:, None] & (own < size)[None, :]
    tl.store(matrix + other[:, None].to(tl.int64) * size + own[None, :], tl.trans(values), mirrored)
