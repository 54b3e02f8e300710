"""Intervals: closed forms equal refitting, ends are the quantiles that are promised, and coverage is about nominal."""

import numpy as np
import pytest
from sklearn.datasets import make_friedman1

from parablock import AutoKernelRegressor
from parablock.tables.intervals import Jackknife, _upper


def friedman(n, seed=0):
    return make_friedman1(n, n_features=6, noise=1.0, random_state=seed)


def refitted(trial, new):
    """Predictions at new rows by the judges without each row (or its group), fitted anew."""
    n = len(trial.values)
    found = np.empty((len(new), *trial.target.shape))
    for judge in trial.judges:
        here, there = judge.columns.view(trial.values), judge.columns.view(new)
        kernels = []
        for kernel, z in judge.machines:
            K, k = np.empty((n, n)), np.empty((len(new), n))
            kernel.value(z[:-1], here, here, K, K)
            kernel.value(z[:-1], there, here, k, k)
            kernels.append((K + np.diag(np.exp(z[-1]) / trial.weight), k))
        for i in judge.rows:
            rest = np.arange(n) != i if trial.group is None else trial.group != trial.group[i]
            predicted = [k[:, rest] @ np.linalg.solve(K[np.ix_(rest, rest)], trial.target[rest]) for K, k in kernels]
            found[:, i] = np.mean(predicted, axis=0)
    return found


@pytest.mark.parametrize("grouped", [False, True])
def test_predictions_without_each_row_are_those_of_refitting(grouped):
    X, y = friedman(60)
    Y = np.column_stack([y, X[:, 0]])
    weight = np.random.default_rng(0).integers(1, 4, 60)
    groups = np.arange(60) % 17 if grouped else None
    model = AutoKernelRegressor(random_state=0).fit(X, Y, sample_weight=weight, groups=groups)
    trial, new = model._jackknife.trial, friedman(7, seed=1)[0]
    found = np.vstack([left for left, _, _ in trial.left_out(new)])
    assert np.allclose(found, refitted(trial, new), atol=1e-9)
    assert sorted(np.concatenate([judge.rows for judge in trial.judges])) == list(range(60))


def test_residuals_are_those_of_the_judges_without_the_row():
    """At a row of the fit itself, the machine without it predicts the honest decision."""
    X, y = friedman(60)
    model = AutoKernelRegressor(random_state=0).fit(X, y)
    jackknife = model._jackknife
    found = np.vstack([left for left, _, _ in jackknife.trial.left_out(jackknife.trial.values)])
    honest = found[np.arange(60), np.arange(60), 0][jackknife.place]
    scaled = (y / 2.0**model._exponent - model._mean) / model._spread
    assert np.allclose(np.abs(scaled - honest), jackknife.residual[:, 0], atol=1e-9)


def test_deviations_are_those_of_a_gaussian_process():
    X, y = friedman(60)
    trial = AutoKernelRegressor(random_state=0).fit(X, y)._jackknife.trial
    new = friedman(7, seed=1)[0]
    _, there, here = next(iter(trial.left_out(new)))
    judge = trial.judges[0]
    seen, coming = judge.columns.view(trial.values), judge.columns.view(new)
    expected, own = [], []
    for kernel, z in judge.machines:
        K, k, kk = np.empty((60, 60)), np.empty((7, 60)), np.empty((7, 7))
        kernel.value(z[:-1], seen, seen, K, K)
        kernel.value(z[:-1], coming, seen, k, k)
        kernel.value(z[:-1], coming, coming, kk, kk)
        C = np.linalg.inv(K + np.exp(z[-1]) * np.eye(60))
        expected.append(np.diag(kk - k @ C @ k.T) + np.exp(z[-1]))
        own.append(1 / np.diag(C))
    assert np.allclose(there[:, 0] ** 2, np.mean(expected, axis=0), rtol=1e-8)
    assert np.allclose(here[judge.rows] ** 2, np.mean(own, axis=0)[judge.rows], rtol=1e-8)


def test_upper_quantile_is_the_value_that_jackknife_plus_names():
    rng = np.random.default_rng(0)
    x, one = rng.normal(size=(4, 19)), np.ones(19)
    for coverage in (0.5, 0.8, 0.9):
        k = int(np.ceil(coverage * 20 - 1e-9))
        assert np.array_equal(_upper(x, one, coverage, 19), np.sort(x, axis=1)[:, k - 1])
    assert np.array_equal(_upper(x, one, 0.96, 19), np.full(4, np.inf))
    share = rng.integers(1, 4, 19).astype(float)
    copies = np.repeat(x, share.astype(int), axis=1)
    n = int(share.sum())
    assert np.array_equal(_upper(x, share, 0.8, n), _upper(copies, np.ones(n), 0.8, n))


@pytest.mark.parametrize("coverage", [0.8, 0.9])
def test_coverage_is_about_what_was_asked_for(coverage):
    covered = []
    for seed in range(3):
        X, y = friedman(150, seed=seed)
        X_test, y_test = friedman(1000, seed=seed + 10)
        lower, upper = AutoKernelRegressor(random_state=seed).fit(X, y).predict_interval(X_test, coverage)
        covered.append(np.mean((lower <= y_test) & (y_test <= upper)))
    assert abs(np.mean(covered) - coverage) < 0.05


def test_intervals_are_wider_where_there_are_no_rows():
    rng = np.random.default_rng(0)
    X = np.append(rng.uniform(0, 1, 140), rng.uniform(3, 4, 20))[:, None]
    y = np.sin(8 * X[:, 0]) + rng.normal(scale=0.05, size=160)
    new = np.append(np.linspace(0.1, 0.9, 9), np.linspace(1.5, 2.5, 9))
    lower, upper = AutoKernelRegressor(random_state=0).fit(X, y).predict_interval(new[:, None])
    assert (upper - lower)[9:].mean() > 1.5 * (upper - lower)[:9].mean()


def test_shapes_units_and_bad_coverages():
    X, y = friedman(60)
    Y = np.column_stack([y, 1e6 * X[:, 0]])
    model = AutoKernelRegressor(random_state=0).fit(X, Y)
    lower, upper = model.predict_interval(X[:5])
    assert lower.shape == upper.shape == (5, 2)
    assert np.all(lower < upper)
    wide = model.predict_interval(X[:5], coverage=0.95)
    assert np.all(wide[0] <= lower)
    assert np.all(wide[1] >= upper)
    for coverage in (0, 1, -0.5, "0.9"):
        with pytest.raises(ValueError, match="coverage must be a number between 0 and 1"):
            model.predict_interval(X, coverage=coverage)
    with pytest.raises(ValueError, match="Intervals take"):
        model.set_params(memory_limit=1000).predict_interval(X)


def test_tables_that_tell_nothing():
    y = np.arange(40.0)
    model = AutoKernelRegressor(random_state=0).fit(np.zeros((40, 2)), y)  # one distinct row
    lower, upper = model.predict_interval(np.zeros((3, 2)))
    assert np.all(np.isinf(lower))
    assert np.all(np.isinf(upper))
    few = AutoKernelRegressor(random_state=0).fit(np.arange(12.0)[:, None], y[:12])
    lower, upper = few.predict_interval([[5.5]], coverage=0.8)
    assert lower < 5.5 < upper
    assert np.isinf(few.predict_interval([[5.5]], coverage=0.95)[1])  # of twelve rows nobody knows


def test_copies_are_weights():
    X, y = friedman(50)
    weight = np.random.default_rng(0).integers(1, 4, 50)
    again = np.repeat(np.arange(50), weight)
    a = AutoKernelRegressor(random_state=0).fit(X, y, sample_weight=weight).predict_interval(X[:9])
    b = AutoKernelRegressor(random_state=0).fit(X[again], y[again]).predict_interval(X[:9])
    assert np.allclose(a, b, rtol=1e-10)
    assert isinstance(AutoKernelRegressor(random_state=0).fit(X, y)._jackknife, Jackknife)
