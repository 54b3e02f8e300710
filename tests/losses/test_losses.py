"""Every loss: its four functions belong together, whatever the sample.

primal and dual are conjugates of each other, slopes are the derivatives of the dual, and infinite slopes mark the
bounds.
"""

import math
import pickle
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from tests.oracle import CLASSIFICATION, LOSSES, minimum_1d

every_loss = pytest.mark.parametrize("name", LOSSES)
labels = st.sampled_from([-1.0, 1.0])
numbers = st.floats(-5, 5)
weights = st.floats(0.01, 100)
predictions = st.floats(-20, 20)
shares = st.floats(0, 1)
inner_shares = st.floats(0.01, 0.99)
FAR = 30.0  # stands for an infinite bound, in units of weight: beyond every subgradient at the predictions above


def sample(data, name):
    """Target and weight of one sample."""
    return data.draw(labels if name in CLASSIFICATION else numbers, "target"), data.draw(weights, "weight")


def finite_box(loss, target, weight):
    lower, upper = loss.bounds(target, weight, loss.parameter)
    return max(lower, -2 * FAR * weight), min(upper, 2 * FAR * weight)


def inside(loss, target, weight, share):
    lower, upper = finite_box(loss, target, weight)
    return min(max(lower + share * (upper - lower), lower), upper)


@every_loss
@given(st.data(), predictions, shares)
def test_primal_and_dual_never_sum_to_less_than_the_product(name, data, prediction, share):
    loss, (target, weight) = LOSSES[name], sample(data, name)
    coef = inside(loss, target, weight, share)
    primal = loss.primal(prediction, target, weight, loss.parameter)
    dual = loss.dual(coef, target, weight, loss.parameter)
    scale = abs(primal) + abs(dual) + abs(coef * prediction)
    assert primal + dual + coef * prediction >= -1e-13 * scale


@every_loss
@given(st.data(), predictions)
def test_least_dual_plus_product_is_minus_primal(name, data, prediction):
    loss, (target, weight) = LOSSES[name], sample(data, name)

    def sum_at(coef):
        return loss.dual(coef, target, weight, loss.parameter) + coef * prediction

    primal = loss.primal(prediction, target, weight, loss.parameter)
    # A bounded search does not land on a kink: split there.
    lower, upper = finite_box(loss, target, weight)
    pieces = [lower, *([loss.kink] if math.isfinite(loss.kink) else []), upper]
    least = min(minimum_1d(sum_at, low, high) for low, high in pairwise(pieces))
    assert least == pytest.approx(-primal, rel=1e-8, abs=1e-8 * weight)


@every_loss
@given(st.data())
def test_primal_loss_is_never_negative_and_zero_lies_in_the_box(name, data):
    loss, (target, weight) = LOSSES[name], sample(data, name)
    assert loss.primal(data.draw(predictions), target, weight, loss.parameter) >= 0
    lower, upper = loss.bounds(target, weight, loss.parameter)
    assert lower <= 0 <= upper
    assert lower < upper


@every_loss
@given(st.data(), inner_shares)
def test_slopes_are_derivatives_of_the_dual(name, data, share):
    loss, (target, weight) = LOSSES[name], sample(data, name)
    coef = inside(loss, target, weight, share)
    width = 1e-6 * weight

    def dual(c):
        return loss.dual(c, target, weight, loss.parameter)

    left, right, _ = loss.slopes(coef, target, weight, loss.parameter)
    accuracy = {"rel": 1e-4, "abs": 1e-4 * (1 + abs(target))}
    assert (dual(coef) - dual(coef - width)) / width == pytest.approx(left, **accuracy)
    assert (dual(coef + width) - dual(coef)) / width == pytest.approx(right, **accuracy)


@every_loss
@given(st.data(), inner_shares)
def test_curvature_is_the_derivative_of_the_slopes(name, data, share):
    loss, (target, weight) = LOSSES[name], sample(data, name)
    coef, width = inside(loss, target, weight, share), 1e-6 * weight
    behind = loss.slopes(coef - width, target, weight, loss.parameter)[0]
    ahead = loss.slopes(coef + width, target, weight, loss.parameter)[1]
    jump = np.subtract(*loss.slopes(coef, target, weight, loss.parameter)[1::-1])  # not zero at a kink only
    curvature = loss.slopes(coef, target, weight, loss.parameter)[2]
    assert (ahead - behind - jump) / (2 * width) == pytest.approx(curvature, rel=1e-3, abs=1e-6 / weight)


@every_loss
@given(st.data(), shares, shares)
def test_slopes_rise_with_the_coefficient(name, data, share, other):
    loss, (target, weight) = LOSSES[name], sample(data, name)
    low, high = sorted(inside(loss, target, weight, s) for s in (share, other))
    left_low, right_low, bend_low = loss.slopes(low, target, weight, loss.parameter)
    left_high, right_high, _ = loss.slopes(high, target, weight, loss.parameter)
    assert left_low <= right_low
    assert left_high <= right_high
    assert bend_low >= 0
    if low < high:
        assert right_low <= left_high


@every_loss
@given(st.data(), shares)
def test_slopes_are_infinite_exactly_at_the_bounds(name, data, share):
    loss, (target, weight) = LOSSES[name], sample(data, name)
    lower, upper = loss.bounds(target, weight, loss.parameter)
    for coef in (inside(loss, target, weight, share), *(bound for bound in (lower, upper) if math.isfinite(bound))):
        left, right, _ = loss.slopes(coef, target, weight, loss.parameter)
        assert (left == -math.inf) == (coef == lower)
        assert (right == math.inf) == (coef == upper)


def test_kink_is_where_the_slopes_differ_inside_the_box():
    for loss in LOSSES.values():
        left, right, _ = loss.slopes(1e-3, 1.0, 1.0, loss.parameter)
        assert left == right
        if math.isfinite(loss.kink):
            left, right, _ = loss.slopes(loss.kink, 1.0, 1.0, loss.parameter)
            assert -math.inf < left < right < math.inf


def test_logistic_loss_stays_accurate_for_margins_of_any_size():
    loss = LOSSES["logistic"]
    assert loss.primal(800.0, 1.0, 2.0, 0.0) == 0.0
    assert loss.primal(-800.0, 1.0, 2.0, 0.0) == 1600.0
    assert loss.primal(40.0, 1.0, 1.0, 0.0) == pytest.approx(math.exp(-40.0), rel=1e-12)


@njit
def call_scalar(function, value, target, weight, parameter):
    return function(value, target, weight, parameter)


@njit
def call_bounds(function, target, weight, parameter):
    return function(target, weight, parameter)


@every_loss
def test_compiled_functions_equal_the_python_ones(name):
    loss, rng = LOSSES[name], np.random.default_rng(0)
    for _ in range(50):
        target = rng.choice([-1.0, 1.0]) if name in CLASSIFICATION else rng.normal()
        weight = rng.uniform(0.1, 10)
        coef = inside(loss, target, weight, rng.choice([0.0, rng.random(), 1.0]))
        case = (target, weight, loss.parameter)
        equal = {"rel": 1e-14, "abs": 1e-14}
        assert call_scalar(loss.compiled_slopes, coef, *case) == pytest.approx(loss.slopes(coef, *case), **equal)
        assert call_bounds(loss.compiled_bounds, *case) == loss.bounds(*case)


@njit
def call_rows(function, values, target, weight, parameter, results):
    function(values, target, weight, parameter, *results)


@every_loss
@pytest.mark.parametrize("n", [0, 1, 203])  # vectorised loops have a remainder
def test_functions_compiled_for_all_rows_equal_the_python_ones(name, n):
    loss, rng = LOSSES[name], np.random.default_rng(0)
    target = rng.choice([-1.0, 1.0], n) if name in CLASSIFICATION else rng.normal(size=n)
    weight = np.where(rng.random(n) < 0.1, 0.0, rng.uniform(0.1, 10, n))  # some take no part
    target.flags.writeable = weight.flags.writeable = False  # as in a file that is mapped into memory
    shares = rng.choice([0.0, 0.3, 1.0], n)
    coef = np.array([inside(loss, *row) for row in zip(target, weight, shares)])
    cases = [
        (loss.dual_of_rows, loss.dual, coef, 1),
        (loss.primal_of_rows, loss.primal, 10 * rng.normal(size=n), 1),
        (loss.slopes_of_rows, loss.slopes, coef, 3),
    ]
    for compiled, function, values, n_results in cases:
        found = tuple(np.full(n, np.nan) for _ in range(n_results))
        call_rows(compiled, values, target, weight, loss.parameter, found)
        expected = [function(*row, loss.parameter) for row in zip(values, target, weight)]
        np.testing.assert_allclose(np.transpose(found), np.reshape(expected, (n, n_results)), rtol=1e-14, atol=1e-14)


@every_loss
def test_pickled_loss_keeps_its_parameter_and_compiles_again(name):
    loss = LOSSES[name]
    assert loss.dual_of_rows is loss.dual_of_rows  # compiled once, and not part of the pickle
    copy = pickle.loads(pickle.dumps(loss))
    assert type(copy) is type(loss)
    assert copy.parameter == loss.parameter
    assert "dual_of_rows" not in vars(copy)
    assert copy.dual_of_rows is loss.dual_of_rows
