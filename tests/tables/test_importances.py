"""Importances: closed forms equal refitting, columns of noise are worth nothing."""

import numpy as np
import pytest
from sklearn.datasets import make_friedman1
from sklearn.feature_selection import SelectFromModel

from parablock import AutoKernelClassifier, AutoKernelRegressor
from parablock.tables.importances import _Without, accuracy


@pytest.mark.parametrize("grouped", [False, True])
def test_decisions_on_other_values_are_those_of_refitting(grouped):
    X, y = make_friedman1(60, n_features=6, noise=1, random_state=0)
    weight = np.random.default_rng(0).integers(1, 4, 60)
    groups = np.arange(60) % 17 if grouped else None
    model = AutoKernelRegressor(random_state=0).fit(X, np.column_stack([y, X[:, 1]]), weight, groups)
    trial = model._trial
    changed = trial.values.copy()
    changed[:, 2] = changed[::-1, 2]
    for judge, fits in zip(trial.judges, trial.fits(), strict=True):
        here, there = judge.columns.view(trial.values), judge.columns.view(changed[judge.rows])
        for (kernel, z), fit in zip(judge.machines, fits, strict=True):
            K, k = np.empty((60, 60)), np.empty((len(judge.rows), 60))
            kernel.value(z[:-1], here, here, K, K)
            kernel.value(z[:-1], there, here, k, k)
            K += np.diag(np.exp(z[-1]) / trial.weight)
            expected = []
            for i, row in zip(judge.rows, k, strict=True):
                rest = np.arange(60) != i if trial.group is None else trial.group != trial.group[i]
                expected.append(row[rest] @ np.linalg.solve(K[np.ix_(rest, rest)], trial.target[rest]))
            assert np.allclose(_Without(fit, judge.rows).decisions(there), expected, atol=1e-9)


def test_columns_are_worth_what_they_tell():
    X, y = make_friedman1(200, n_features=8, noise=1, random_state=0)
    model = AutoKernelRegressor(random_state=0).fit(X, y)
    worth = model.feature_importances_
    assert worth.shape == (8,)
    assert worth[:5].min() > 0.02  # the target is made of these
    assert np.abs(worth[5:]).max() < 0.02
    assert worth[3] == worth.max()  # 10 x
    assert worth is model.feature_importances_
    assert set(SelectFromModel(model, prefit=True, threshold=0.02).get_support(indices=True)) == set(range(5))


def test_of_classes_with_categories_and_missing_values():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.choice(["a", "b", "c"], 200), rng.normal(size=(200, 2))]).astype(object)
    X[:, 1:] = X[:, 1:].astype(float)
    label = (X[:, 0] == "a") ^ (X[:, 1] > 0.5)
    X[::10, 2] = np.nan
    worth = AutoKernelClassifier(random_state=0).fit(X, label).feature_importances_
    assert worth[:2].min() > 0.1
    assert abs(worth[2]) < 0.05


def test_a_new_fit_has_new_importances_and_threads_change_nothing():
    X, y = make_friedman1(80, n_features=5, noise=1, random_state=0)
    model = AutoKernelRegressor(random_state=0).fit(X, y)
    first = model.feature_importances_
    again = AutoKernelRegressor(random_state=0, n_jobs=1).fit(X, y).feature_importances_
    assert np.array_equal(first, again)
    turned = model.fit(X[:, ::-1], y).feature_importances_
    assert turned.argmax() == 4 - first.argmax()


def test_where_nothing_is_told_nothing_is_worth_anything():
    model = AutoKernelRegressor(random_state=0).fit(np.zeros((30, 3)), np.arange(30.0))
    assert np.array_equal(model.feature_importances_, np.zeros(3))


def test_accuracy_of_rows_of_several_classes():
    decision = np.array([[2.0], [-1.0]])
    assert accuracy(decision, np.array([[0.5], [-1.0]]), np.array([1.0, 3.0])) == pytest.approx((0.75 + 3) / 4)
    three = np.array([[0.0, 1.0, 0.5]])
    assert accuracy(three, np.array([[-1.0, 0.0, 0.0]]), np.ones(1)) == 0.5
