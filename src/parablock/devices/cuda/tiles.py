"""Inside a tile of a Triton kernel: inner products on tensor cores, and the kernel values of them."""

from __future__ import annotations

import triton
import triton.language as tl

from parablock.devices.cuda.kernel_values import (
    FIRST_OF_FEATURES,
    LAST_OF_DISTANCE,
    half_distance,
    of_distance,
    of_inner_product,
    term_of_distance,
)


@triton.jit
def tile_values(
    rows_high,
    rows_low,
    rows_half,
    rows_half_low,
    row,
    columns_high,
    columns_low,
    columns_half,
    columns_half_low,
    column,
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
):
    """Kernel values of the numbered rows and columns."""
    if KIND >= FIRST_OF_FEATURES and KIND <= LAST_OF_DISTANCE:
        high = distances(rows_high, row, columns_high, column, FEATURES, KIND)
        low = high
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
    return kernel_values(
        high,
        low,
        tl.load(rows_half + row),
        tl.load(rows_half_low + row),
        tl.load(columns_half + column),
        tl.load(columns_half_low + column),
        unit,
        scale,
        shift,
        KIND,
        DEGREE,
        ROW_PARTS + COLUMN_PARTS > 2,
    )


@triton.jit
def kernel_values(
    high,
    low,
    row_half,
    row_half_low,
    column_half,
    column_half_low,
    unit,
    scale,
    shift,
    KIND: tl.constexpr,
    DEGREE: tl.constexpr,
    HAS_LOW: tl.constexpr,
):
    if KIND < FIRST_OF_FEATURES:
        half = half_distance(high, low, row_half, row_half_low, column_half, column_half_low, unit, HAS_LOW)
        values = of_distance(half, scale, KIND)
    elif KIND <= LAST_OF_DISTANCE:
        values = of_distance(high, scale, KIND)
    else:
        inner = (high + low) * unit if HAS_LOW else high * unit
        row_norm, column_norm = row_half + row_half_low, column_half + column_half_low
        values = of_inner_product(inner, row_norm, column_norm, scale, shift, KIND, DEGREE)
    return values


@triton.jit
def inner_products(
    rows_high,
    rows_low,
    row,
    columns_high,
    columns_low,
    column,
    FEATURES: tl.constexpr,
    CHUNK: tl.constexpr,
    ROW_PARTS: tl.constexpr,
    COLUMN_PARTS: tl.constexpr,
    LOW_BY_LOW: tl.constexpr,
):
    """Products of the high parts, and the sum of those with low parts, chunk after chunk."""
    high = tl.zeros((row.shape[0], column.shape[0]), tl.float32)
    low = tl.zeros((row.shape[0], column.shape[0]), tl.float32)
    for start in range(0, FEATURES, CHUNK):
        row_high = load_rows(rows_high, row, start, FEATURES, CHUNK)
        column_high = load_columns(columns_high, column, start, FEATURES, CHUNK)
        row_low = load_rows(rows_low, row, start, FEATURES, CHUNK) if ROW_PARTS == 2 else row_high
        column_low = load_columns(columns_low, column, start, FEATURES, CHUNK) if COLUMN_PARTS == 2 else column_high
        high, low = multiply(row_high, row_low, column_high, column_low, high, low, ROW_PARTS, COLUMN_PARTS, LOW_BY_LOW)
    return high, low


@triton.jit
def multiply(
    row_high,
    row_low,
    column_high,
    column_low,
    high,
    low,
    ROW_PARTS: tl.constexpr,
    COLUMN_PARTS: tl.constexpr,
    LOW_BY_LOW: tl.constexpr,
):
    # input_precision matters to float32 alone, which must not become TF32.
    high = tl.dot(row_high, column_high, high, input_precision="ieee")
    if COLUMN_PARTS == 2:
        low = tl.dot(row_high, column_low, low, input_precision="ieee")
    if ROW_PARTS == 2:
        low = tl.dot(row_low, column_high, low, input_precision="ieee")
    if LOW_BY_LOW:
        low = tl.dot(row_low, column_low, low, input_precision="ieee")
    return high, low


@triton.jit
def distances(rows, row, columns, column, FEATURES: tl.constexpr, KIND: tl.constexpr):
    """Distances that are no inner products, feature after feature."""
    total = tl.zeros((row.shape[0], column.shape[0]), tl.float32)
    for feature in range(FEATURES):
        x, z = tl.load(rows + row * FEATURES + feature), tl.load(columns + column * FEATURES + feature)
        total += term_of_distance(x[:, None], z[None, :], KIND)
    return total


@triton.jit
def load_rows(part, row, start, FEATURES: tl.constexpr, CHUNK: tl.constexpr):
    return tl.load(part + row[:, None] * FEATURES + (start + tl.arange(0, CHUNK))[None, :])


@triton.jit
def load_columns(part, column, start, FEATURES: tl.constexpr, CHUNK: tl.constexpr):
    return tl.load(part + column[None, :] * FEATURES + (start + tl.arange(0, CHUNK))[:, None])
