"""Memory for kernel columns, whole ones and strips, against plain arrays."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parablock.devices.cpu.strips import STRIP, Strips
from parablock.devices.cpu.whole import WholeColumns

Memory = WholeColumns | Strips
MORE = 2500  # bytes that strips of a column may take beside its values
kinds = st.sampled_from([WholeColumns, Strips])
dtypes = st.sampled_from([np.float32, np.float64])
# Samples that come at a time, and how many of their values are computed at a time.
arrivals = st.lists(st.tuples(st.integers(0, 3 * STRIP), st.integers(1, 2 * STRIP)), min_size=1, max_size=4).filter(
    lambda parts: any(count for count, _ in parts)
)


def kernel_columns(columns: int, samples: int, dtype: type, seed: int) -> np.ndarray:
    """Values with long stretches of zeros, as a narrow kernel has them, and single ones that are not."""
    rng = np.random.default_rng(seed)
    centre, reach = rng.uniform(-samples, 2 * samples, size=(columns, 1)), rng.uniform(0, samples, size=(columns, 1))
    values = np.where(abs(np.arange(samples) - centre) < reach, rng.normal(size=(columns, samples)), 0.0)
    values[rng.random(values.shape) < 1e-3] = 1.0
    return values.astype(dtype)


def written(kind: type[Memory], values: np.ndarray, arrivals: list[tuple[int, int]], most: int, first: int) -> Memory:
    memory = kind(most, values.shape[1], most * (values[0].nbytes + MORE), values.dtype)
    plain = memory._memory if isinstance(memory, Strips) else memory._columns
    plain[:] = np.nan  # whatever was there before must not be seen
    start = 0
    for count, at_once in arrivals:
        memory.follow(start, start + count)
        for begin in range(start, start + count, at_once):
            end = min(begin + at_once, start + count)
            memory.write(np.ascontiguousarray(values[:, begin:end]), first, begin)
        start += count
    return memory


def everything(memory: Memory, columns: np.ndarray, samples: int, dtype: type) -> np.ndarray:
    out = np.full((len(columns), samples), np.nan, dtype=dtype)
    memory.read(columns, np.arange(samples), out, np.arange(len(columns)))
    return out


@pytest.mark.slow
@given(kinds, dtypes, arrivals, st.integers(1, 12), st.integers(0, 3), st.integers(0, 99))
def test_what_is_written_is_read(
    kind: type[Memory], dtype: type, arrivals: list[tuple[int, int]], count: int, first: int, seed: int
) -> None:
    samples = sum(count for count, _ in arrivals)
    values = kernel_columns(count, samples, dtype, seed)
    memory = written(kind, values, arrivals, count + first, first)
    columns = np.arange(first, first + count)
    np.testing.assert_array_equal(everything(memory, columns, samples, dtype), values)
    some = np.random.default_rng(seed).permutation(samples)[: samples // 2]
    out = np.zeros((count, len(some)), dtype=dtype)
    memory.read(columns[::-1], some, out, np.arange(count))
    np.testing.assert_array_equal(out, values[::-1][:, some])


@given(dtypes, arrivals, st.integers(1, 40), st.integers(1, 3), st.integers(0, 99), st.data())
def test_sums_of_strips_are_those_of_whole_columns_to_the_last_digit(
    dtype: type, arrivals: list[tuple[int, int]], count: int, outputs: int, seed: int, data: st.DataObject
) -> None:
    samples = sum(count for count, _ in arrivals)
    values, rng = kernel_columns(count, samples, dtype, seed), np.random.default_rng(seed)
    coef = np.where(rng.random((outputs, count)) < 0.2, 0.0, rng.normal(size=(outputs, count)))
    start = data.draw(st.integers(0, samples))
    stop = data.draw(st.integers(start, samples))
    before = rng.normal(size=(outputs, samples))
    found = [before.copy(), before.copy()]
    for kind, out in zip((WholeColumns, Strips), found, strict=True):
        written(kind, values, arrivals, count, 0).add(np.arange(count), coef, start, stop, out)
    np.testing.assert_array_equal(*found)
    before[:, start:stop] += coef @ values[:, start:stop].astype(np.float64)
    np.testing.assert_allclose(found[0], before, rtol=1e-12, atol=1e-12)


@given(kinds, dtypes, st.integers(1, 30), st.integers(1, 3 * STRIP), st.integers(0, 99))
def test_new_values_are_added_as_kept_ones_are(
    kind: type[Memory], dtype: type, count: int, samples: int, seed: int
) -> None:
    values, coef = kernel_columns(count, samples, dtype, seed), np.random.default_rng(seed).normal(size=(2, count))
    memory = written(kind, values, [(samples, samples)], count + 2, 2)
    new, kept = np.zeros((2, samples)), np.zeros((2, samples))
    memory.add_new(values, 2, coef, 0, new)
    memory.add(np.arange(2, count + 2), coef, 0, samples, kept)
    np.testing.assert_array_equal(new, kept)


@given(kinds, dtypes, arrivals, st.integers(2, 20), st.integers(0, 99))
def test_columns_that_are_kept_come_first_and_the_others_are_forgotten(
    kind: type[Memory], dtype: type, arrivals: list[tuple[int, int]], count: int, seed: int
) -> None:
    samples = sum(count for count, _ in arrivals)
    values = kernel_columns(count, samples, dtype, seed)
    memory = written(kind, values, arrivals, count, 0)
    stay = np.flatnonzero(np.random.default_rng(seed).random(count) < 0.5)
    memory.keep_only(stay)
    new = kernel_columns(count - len(stay), samples, dtype, seed + 1)
    assert memory.room_for(len(stay)) == len(new)
    memory.write(new, len(stay), 0)
    everyone = np.concatenate((values[stay], new))
    np.testing.assert_array_equal(everything(memory, np.arange(count), samples, dtype), everyone)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_strips_without_values_take_no_memory(dtype: type) -> None:
    samples = 5 * STRIP
    values = np.zeros((3, samples), dtype=dtype)
    values[1, 2 * STRIP + 7] = 1.0
    memory = Strips(10, samples, 3 * (values[0].nbytes + MORE), dtype)
    assert memory.room_for(0) == 3  # all of whose values might be other than zero
    memory._memory[:] = np.nan
    memory.follow(0, samples)
    memory.write(values, 0, 0)
    assert (~np.isnan(memory._memory)).sum() == STRIP
    assert memory.room_for(3) >= 2


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_room_is_kept_for_samples_that_may_follow(dtype: type) -> None:
    """Even if none of their values is zero, and they come a few at a time."""
    samples, rng = 7 * STRIP, np.random.default_rng(0)
    memory = Strips(100, samples, 10 * (samples * np.dtype(dtype).itemsize + MORE), dtype)
    memory.follow(0, 3 * STRIP)
    count = memory.room_for(0)
    assert count == 10
    values = rng.random((count, samples)).astype(dtype) + dtype(1)
    memory.write(np.ascontiguousarray(values[:, : 3 * STRIP]), 0, 0)
    assert memory.room_for(count) == 0
    edges = np.unique(np.append(rng.integers(3 * STRIP, samples, size=20), [3 * STRIP, samples]))
    for start, stop in pairwise(edges.tolist()):
        memory.follow(start, stop)
        memory.write(np.ascontiguousarray(values[:, start:stop]), 0, start)
    np.testing.assert_array_equal(everything(memory, np.arange(count), samples, dtype), values)


def test_a_value_that_is_no_number_is_not_taken_for_zero() -> None:
    values = np.zeros((1, STRIP), dtype=np.float32)
    values[0, 3] = np.nan
    memory = written(Strips, values, [(STRIP, STRIP)], 1, 0)
    assert np.isnan(everything(memory, np.arange(1), STRIP, np.float32)[0, 3])
