"""Columns in strips against plain arrays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parablock.devices.cpu.strips import STRIP, Strips

dtypes = st.sampled_from([np.float32, np.float64])
# Samples that come at a time, and how many of their values are computed at a time.
arrivals = st.lists(st.tuples(st.integers(0, 3 * STRIP), st.integers(1, 2 * STRIP)), min_size=1, max_size=4)


def kernel_columns(columns: int, samples: int, dtype: type, seed: int) -> np.ndarray:
    """Values with long stretches of zeros, as a narrow kernel has them, and single ones that are not."""
    rng = np.random.default_rng(seed)
    centre, reach = rng.uniform(-samples, 2 * samples, size=(columns, 1)), rng.uniform(0, samples, size=(columns, 1))
    values = np.where(abs(np.arange(samples) - centre) < reach, rng.normal(size=(columns, samples)), 0.0)
    values[rng.random(values.shape) < 1e-3] = 1.0
    return values.astype(dtype)


def written(values: np.ndarray, arrivals: list[tuple[int, int]], capacity: int, place: int) -> Strips:
    strips = Strips(capacity, values.shape[1], values.dtype)
    strips._columns[:] = np.nan  # whatever was in the memory before must not be seen
    start = 0
    for count, at_once in arrivals:
        strips.follow(start, start + count)
        for first in range(start, start + count, at_once):
            last = min(first + at_once, start + count)
            strips.write(np.ascontiguousarray(values[:, first:last]), place, first)
        start += count
    return strips


def everything(strips: Strips, places: np.ndarray, samples: int) -> np.ndarray:
    out = np.full((len(places), samples), np.nan, dtype=strips._columns.dtype)
    strips.read(places, np.arange(samples), out, np.arange(len(places)))
    return out


@given(dtypes, arrivals, st.integers(1, 12), st.integers(0, 3), st.integers(0, 99))
def test_what_is_written_is_read(
    dtype: type, arrivals: list[tuple[int, int]], columns: int, place: int, seed: int
) -> None:
    samples = sum(count for count, _ in arrivals)
    values = kernel_columns(columns, samples, dtype, seed)
    strips = written(values, arrivals, columns + place, place)
    places = np.arange(place, place + columns)
    np.testing.assert_array_equal(everything(strips, places, samples), values)
    some = np.random.default_rng(seed).permutation(samples)[: samples // 2]
    out = np.zeros((columns, len(some)), dtype=dtype)
    strips.read(places[::-1], some, out, np.arange(columns))
    np.testing.assert_array_equal(out, values[::-1][:, some])


@given(dtypes, arrivals, st.integers(1, 40), st.integers(1, 3), st.integers(0, 99), st.data())
def test_sums_are_those_of_whole_columns_to_the_last_digit(
    dtype: type, arrivals: list[tuple[int, int]], columns: int, outputs: int, seed: int, data: st.DataObject
) -> None:
    """Whichever strips there are: one column after the other is added, in double."""
    samples = sum(count for count, _ in arrivals)
    values, rng = kernel_columns(columns, samples, dtype, seed), np.random.default_rng(seed)
    strips = written(values, arrivals, columns, 0)
    coef = np.where(rng.random((outputs, columns)) < 0.2, 0.0, rng.normal(size=(outputs, columns)))
    start = data.draw(st.integers(0, samples))
    stop = data.draw(st.integers(start, samples))
    before = rng.normal(size=(outputs, samples))
    found, expected = before.copy(), before.copy()
    strips.add(np.arange(columns), coef, start, stop, found)
    whole = Strips(columns, samples, dtype)
    whole.follow(0, samples)
    whole.write(np.ones((columns, samples), dtype=dtype), 0, 0)  # so that no strip is left out
    whole.write(values, 0, 0)
    whole.add(np.arange(columns), coef, start, stop, expected)
    np.testing.assert_array_equal(found, expected)
    before[:, start:stop] += coef @ values[:, start:stop].astype(np.float64)
    np.testing.assert_allclose(found, before, rtol=1e-12, atol=1e-12)


@given(dtypes, st.integers(1, 30), st.integers(1, 3 * STRIP), st.integers(0, 99))
def test_new_values_are_added_as_kept_ones_are(dtype: type, columns: int, samples: int, seed: int) -> None:
    values, rng = kernel_columns(columns, samples, dtype, seed), np.random.default_rng(seed)
    strips, coef = written(values, [(samples, samples)], columns + 2, 2), rng.normal(size=(2, columns))
    new, kept = np.zeros((2, samples)), np.zeros((2, samples))
    strips.add_new(values, 2, coef, 0, new)
    strips.add(np.arange(2, columns + 2), coef, 0, samples, kept)
    np.testing.assert_array_equal(new, kept)


@given(dtypes, arrivals, st.integers(2, 20), st.integers(0, 99))
def test_columns_that_are_kept_move_together_and_the_others_are_forgotten(
    dtype: type, arrivals: list[tuple[int, int]], columns: int, seed: int
) -> None:
    samples = sum(count for count, _ in arrivals)
    values = kernel_columns(columns, samples, dtype, seed)
    strips = written(values, arrivals, columns, 0)
    stay = np.flatnonzero(np.random.default_rng(seed).random(columns) < 0.5)
    strips.keep_only(stay)
    np.testing.assert_array_equal(everything(strips, np.arange(len(stay)), samples), values[stay])
    others = everything(strips, np.arange(len(stay), columns), samples)
    assert not others.any()  # as if they had never been written


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_memory_of_strips_without_values_is_left_alone(dtype: type) -> None:
    samples = 5 * STRIP
    values = np.zeros((3, samples), dtype=dtype)
    values[1, 2 * STRIP + 7] = 1.0
    strips = written(values, [(samples, samples)], 3, 0)
    touched = ~np.isnan(strips._columns[:, :samples])
    expected = np.zeros((3, samples), dtype=bool)
    expected[1, 2 * STRIP : 3 * STRIP] = True
    np.testing.assert_array_equal(touched, expected)


def test_a_value_that_is_no_number_is_not_taken_for_zero() -> None:
    values = np.zeros((1, STRIP), dtype=np.float32)
    values[0, 3] = np.nan
    strips = written(values, [(STRIP, STRIP)], 1, 0)
    assert np.isnan(everything(strips, np.arange(1), STRIP)[0, 3])
