"""What kernels see of a table."""

import numpy as np
import pytest
from scipy.stats import rankdata

from parablock.tables.columns import Columns, one_hot_runs, quantile


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def columns_of(values, target=None, weight=None, n_levels=None):
    n = len(values)
    target = np.arange(n, dtype=float)[:, None] if target is None else target
    n_levels = [0] * values.shape[1] if n_levels is None else n_levels
    return Columns.learned(values, n_levels, target, np.ones(n) if weight is None else weight)


def test_a_number_is_clipped_and_ranked(rng):
    x = rng.normal(size=101)
    x[0] = 1e6
    view = columns_of(x[:, None]).view(x[:, None])
    assert view.numeric == 2
    assert view.X.shape == (101, 2)
    spread = quantile(x, np.ones(101), 0.75) - quantile(x, np.ones(101), 0.25)
    u = (x - np.median(x)) / spread
    assert np.allclose(view.X[:, 0], u / np.sqrt(1 + (u / 3) ** 2))
    assert view.X[0, 0] == pytest.approx(3)
    assert np.allclose(view.X[:, 1], 2 * (rankdata(x) - 0.5) / 101 - 1)  # equal values share their middle


def test_new_ranks_lie_in_between_and_not_beyond():
    x = np.array([[0.0], [1.0], [3.0], [3.0]])
    ranks = columns_of(x).view(np.array([[-5.0], [0.5], [2.0], [3.0], [9.0]])).X[:, 1]
    assert np.allclose(ranks, [-0.75, -0.5, 0.125, 0.5, 0.5])


@pytest.mark.parametrize("q", [0.25, 0.5, 0.75])
def test_weighted_quantiles_are_those_of_copies(rng, q):
    x, weight = rng.normal(size=20), rng.integers(1, 5, 20)
    copies = np.repeat(x, weight)
    expected = np.quantile(copies, q, method="averaged_inverted_cdf")
    assert quantile(x, weight / 7, q) == pytest.approx(expected, rel=1e-14)


def test_units_change_nothing(rng):
    x = rng.lognormal(size=(50, 2))
    moved = x * [1e-12, 1e9] + [0, 1e9]
    assert np.allclose(columns_of(x).view(x).X, columns_of(moved).view(moved).X, atol=1e-5)


def test_two_values_are_one_column_as_far_apart_as_clipping_makes_them():
    x = np.array([[5.0]] * 9 + [[7.0]])
    view = columns_of(x).view(np.array([[5.0], [7.0], [6.0]]))
    far = 2 / np.sqrt(1 + (2 / 3) ** 2)  # no interquartile range, so two over the range
    assert view.numeric == 0
    assert np.allclose(view.X[:, 0], [0, far, far / 2])
    assert np.allclose(view.line[:, 0], [-0.5, 0.5, 0])


def test_constant_columns_are_left_out():
    x = np.column_stack([np.full(10, 3.0), np.arange(10.0), np.full(10, np.nan)])
    columns = columns_of(x)
    assert columns.sources.tolist() == [1, 1]


def test_missing_values_take_the_median_and_are_told(rng):
    x = rng.normal(size=(41, 1))
    x[::4] = np.nan
    view = columns_of(x).view(x)
    assert view.X.shape == (41, 3)
    assert view.numeric == 2
    assert np.all(view.X[::4, 0] == 0)
    assert np.array_equal(view.line[:, 2] == 0.5, np.isnan(x[:, 0]))


def test_categories_are_a_column_for_each_level_and_a_code(rng):
    level = rng.integers(0, 4, 60).astype(float)
    y = level[:, None] ** 2 + rng.normal(size=(60, 1))
    columns = columns_of(level[:, None], y, n_levels=[4])
    view = columns.view(np.array([[0.0], [3.0], [-1.0]]))  # the last is a level that was not there
    assert view.numeric == 1
    assert view.X.shape == (3, 5)
    assert np.array_equal(view.line[:, 1:] + 0.5, [[1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0]])
    means = [(y[level == k].sum() + 5 * y.mean()) / ((level == k).sum() + 5) for k in range(4)]
    codes = np.array(means)[level.astype(int)]
    expected = (np.array([means[0], means[3], y.mean()]) - np.median(codes)) / (2 * codes.std())
    assert np.allclose(view.X[:, 0], expected)


def test_many_levels_are_codes_only_and_there_are_codes_of_four_targets_at_most(rng):
    level = rng.integers(0, 30, 200).astype(float)
    columns = columns_of(level[:, None], rng.normal(size=(200, 6)), n_levels=[30])
    assert len(columns.pairs) == 0
    assert [code.target for code in columns.codes] == [0, 1, 2, 3]


def test_runs_of_one_hot_columns_are_categories(rng):
    one, two = rng.integers(0, 3, 80), rng.integers(0, 5, 80)
    noise = rng.normal(size=80)
    values = np.column_stack([np.eye(3)[one], noise, np.eye(5)[two], (noise > 0)])
    assert one_hot_runs(values, [0] * 10) == [(0, 3), (4, 9)]
    y = rng.normal(size=(80, 1))
    columns = columns_of(values, y)
    assert [(code.source, code.width) for code in columns.codes] == [(0, 3), (4, 5)]
    as_category = columns_of(np.column_stack([two]), y, n_levels=[5])
    assert np.allclose(columns.codes[1].column(values), as_category.codes[0].column(two[:, None].astype(float)))


def test_a_code_does_not_tell_a_row_its_own_target(rng):
    """Within a level all rows have one code: a code by the others of the level would fall strictly with the target."""
    level = rng.integers(0, 10, 300).astype(float)[:, None]
    y = rng.choice([-1.0, 1.0], size=(300, 1))
    columns = columns_of(level, y, n_levels=[10])
    code = columns.view(level).X[:, 0]
    for k in range(10):
        assert np.ptp(code[level[:, 0] == k]) == 0
    other = columns.with_codes_of(level[:150], y[:150], np.ones(150))
    for k in range(10):
        assert np.ptp(other.view(level).X[level[:, 0] == k, 0]) == 0


def test_weights_are_copies(rng):
    values = np.column_stack([rng.normal(size=30), rng.integers(0, 2, 30), rng.integers(0, 5, 30)])
    y, weight = rng.normal(size=(30, 1)), rng.integers(1, 5, 30)
    again = np.repeat(np.arange(30), weight)
    # Codes are pulled by five rows, so weights are numbers of rows here.
    a = columns_of(values, y, weight.astype(float), [0, 0, 5])
    b = columns_of(values[again], y[again], None, [0, 0, 5])
    assert np.allclose(a.view(values).X, b.view(values).X, atol=1e-12)
