"""Streaming copies against NumPy's own."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parablock.devices.cpu.streaming import LINE, copy_past_caches, empty_lines

dtypes = st.sampled_from([np.float32, np.float64])


@given(dtypes, st.integers(0, 5), st.integers(0, 100))
def test_every_row_begins_with_a_cache_line_and_is_long_enough(dtype: type, rows: int, length: int) -> None:
    memory = empty_lines(rows, length, dtype)
    assert memory.dtype == dtype
    assert len(memory) == rows
    assert memory.shape[1] >= length
    assert all(row.ctypes.data % LINE == 0 for row in memory if row.size)
    memory[:] = 1.0  # all of it may be written to


@given(dtypes, st.integers(1, 4), st.integers(0, 70), st.integers(0, 40), st.integers(0, 3), st.integers(0, 20))
def test_copies_like_numpy_and_touches_nothing_else(
    dtype: type, rows: int, length: int, start: int, top: int, room: int
) -> None:
    values = np.random.default_rng(0).normal(size=(rows, length)).astype(dtype)
    out = empty_lines(top + rows + 1, start + length + room, dtype)
    out[:] = np.nan
    expected = out.copy()
    expected[top : top + rows, start : start + length] = values
    for row in range(rows):
        copy_past_caches(values[row], out[top + row], start)
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_may_be_part_of_a_larger_array(dtype: type) -> None:
    values = np.arange(400, dtype=dtype).reshape(4, 100)[:, 3:90]
    out = empty_lines(4, 87, dtype)
    for row in range(4):
        copy_past_caches(values[row], out[row], 0)
    np.testing.assert_array_equal(out[:, :87], values)
