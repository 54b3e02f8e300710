"""The vectorised exponential: as accurate as its header says."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from parablock.kernels._exponential import exp_of_negative


@njit(fastmath={"contract", "nsz", "nnan"})  # as in the kernels
def exponentials(values):
    out = np.empty_like(values)
    for i in range(len(values)):
        out[i] = exp_of_negative(values[i])
    return out


def relative_error(values):
    exact = np.exp(values.astype(np.longdouble))
    return float(np.max(np.abs(exponentials(values) - exact) / exact))


@pytest.mark.parametrize(("dtype", "smallest", "error"), [(np.float32, -41.5, 2.5e-7), (np.float64, -277.0, 1e-15)])
def test_relative_error_over_the_whole_range(dtype, smallest, error):
    rng = np.random.default_rng(0)
    values = np.concatenate(
        (
            np.linspace(smallest, 0, 100_000),
            -np.exp(rng.uniform(-40, np.log(-smallest), size=100_000)),
            -np.arange(0, -smallest, np.log(2.0) / 2),  # where the range reduction turns over
        )
    ).astype(dtype)
    assert exponentials(values).dtype == dtype
    assert relative_error(values) < error


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_zero_gives_exactly_one(dtype):
    np.testing.assert_array_equal(exponentials(np.array([0.0, -0.0], dtype)), 1.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(st.floats(-1e30, -278))
def test_far_below_zero_it_is_exactly_zero(dtype, value):
    np.testing.assert_array_equal(exponentials(np.array([value], dtype)), 0.0)


def test_single_precision_is_zero_where_small_coefficients_would_make_it_subnormal():
    values = np.linspace(-200, 0, 10_001).astype(np.float32)
    results = exponentials(values)
    assert results[results > 0].min() > 8e-19
    np.testing.assert_array_equal(results[values < -41.6], 0.0)


@given(st.lists(st.floats(-100, 0), min_size=2, max_size=20))
def test_it_never_exceeds_one_and_rises(values):
    results = exponentials(np.sort(values))
    assert np.all(results <= 1)
    assert np.all(np.diff(results) >= -1e-15 * results[1:])
