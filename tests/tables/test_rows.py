"""Equal rows become one with their weight, in an order that is that of values."""

import numpy as np
import pytest

from parablock.tables.rows import distinct_rows


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    values = rng.integers(0, 4, (80, 3)).astype(float)
    values[rng.random(values.shape) < 0.1] = np.nan
    return values, rng.normal(size=(80, 2)), rng.integers(1, 4, 80).astype(float)


def test_equal_rows_have_their_weight_and_their_mean_target(table):
    values, target, weight = table
    rows, place = distinct_rows(values, target, weight, None, 0)
    assert len(rows) == len({tuple(row) for row in np.nan_to_num(values, nan=-1)})
    for i in range(len(rows)):
        same = place == i
        assert np.array_equal(rows.values[i], values[same][0], equal_nan=True)
        assert np.allclose(rows.target[i], np.average(target[same], axis=0, weights=weight[same]))
    sums = np.bincount(place, weight)
    assert np.allclose(rows.weight, sums / sums.mean())


def same(a, b):
    return (
        np.array_equal(a.values, b.values, equal_nan=True)
        and np.array_equal(a.target, b.target)
        and np.array_equal(a.weight, b.weight)
    )


def test_the_order_of_rows_changes_nothing(table):
    values, target, weight = table
    order = np.random.default_rng(1).permutation(len(values))
    rows, _ = distinct_rows(values, target, weight, None, 0)
    others, _ = distinct_rows(values[order], target[order], weight[order], None, 0)
    assert same(rows, others)


def test_copies_are_weights(table):
    values, target, weight = table
    target = np.sign(target)  # sums are exact
    repeated = np.repeat(np.arange(len(values)), weight.astype(int))
    rows, _ = distinct_rows(values, target, weight, None, 0)
    others, _ = distinct_rows(values[repeated], target[repeated], np.ones(len(repeated)), None, 0)
    assert same(rows, others)


def test_the_order_of_columns_and_their_units_change_nothing_but_columns(table):
    values, target, weight = table
    rows, _ = distinct_rows(values, target, weight, None, 0)
    others, _ = distinct_rows(8 * values[:, ::-1] - 5, target, weight, None, 0)
    assert np.array_equal(rows.values, (others.values[:, ::-1] + 5) / 8, equal_nan=True)
    assert np.array_equal(rows.target, others.target)


def test_one_hot_rows_with_as_many_ones_are_not_in_the_order_of_their_first_column():
    rng = np.random.default_rng(0)
    levels = np.unique(rng.integers(0, 4, (300, 6)), axis=0)
    values = np.hstack([np.eye(4)[column] for column in levels.T])
    for some in (values, values[:, ::-1]):
        rows, _ = distinct_rows(some, np.zeros((len(some), 1)), np.ones(len(some)), None, 0)
        half = len(rows) // 2
        assert np.abs(rows.values[:half].mean(axis=0) - rows.values[half:].mean(axis=0)).max() < 0.25


def test_seeds_give_other_orders(table):
    first, second = (distinct_rows(*table, None, seed)[0] for seed in (0, 1))
    assert not np.array_equal(first.values, second.values, equal_nan=True)
    assert sorted(map(repr, first.values.tolist())) == sorted(map(repr, second.values.tolist()))


def test_groups_are_neighbours_and_never_merged(table):
    values, target, weight = table
    group = np.random.default_rng(2).integers(0, 9, len(values))
    rows, place = distinct_rows(values, target, weight, group, 0)
    assert np.array_equal(np.unique(rows.group), np.arange(9))
    assert np.all(np.diff(rows.group) >= 0)
    assert (np.diff(rows.group) != 0).sum() == 8
    for i in range(len(rows)):
        assert len(np.unique(group[place == i])) == 1
