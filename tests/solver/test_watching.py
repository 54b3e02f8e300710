"""Rows that rest: the same optimum with shorter products, and every check is of all rows."""

from itertools import pairwise

import numpy as np
import pytest
from sklearn.datasets import make_moons

from parablock import KernelLogisticRegression, KernelSVC, KernelSVR
from parablock.devices.cpu import CpuDevice
from parablock.solver import watching

SETTINGS = {"C": 10.0, "gamma": 5.0, "tol": 1e-4, "n_blocks": 6, "random_state": 0}


@pytest.fixture(scope="module")
def moons():
    return make_moons(1500, noise=0.2, random_state=0)


@pytest.fixture(params=[-1.0, 0.0, 0.25], ids=["rash", "bold", "usual"])
def near(request, monkeypatch):
    """How many rows rest: also far more than is wise, so that checks find violated ones."""
    monkeypatch.setattr(watching, "NEAR", request.param)
    return request.param


def everyone_watched(monkeypatch, X, y, **settings):
    monkeypatch.setattr(watching, "ENOUGH", 1.1)
    return KernelSVC(**settings).fit(X, y)


@pytest.mark.parametrize("fit_intercept", [True, False], ids=["intercept", "no intercept"])
@pytest.mark.parametrize("partition", ["tree", "kmeans", "given"])
def test_rows_that_rest_do_not_change_the_solution(monkeypatch, moons, near, partition, fit_intercept):
    X, y = moons
    blocks = np.arange(len(y)) % 6 if partition == "given" else partition
    settings = {**SETTINGS, "fit_intercept": fit_intercept, "partition": blocks}
    model = KernelSVC(**settings).fit(X, y)
    assert model.history_[0].watched < len(y)
    assert model.history_[-1].watched == len(y)
    assert model.violation_ <= SETTINGS["tol"]
    reference = everyone_watched(monkeypatch, X, y, **settings)
    assert {record.watched for record in reference.history_} == {len(y)}
    assert model.dual_objective_ == pytest.approx(reference.dual_objective_, rel=1e-6)
    assert model.decision_function(X) == pytest.approx(reference.decision_function(X), abs=1e-2)


def test_what_the_last_check_says_is_true_of_all_rows(moons, near):
    X, y = moons
    model = KernelSVC(**SETTINGS).fit(X, y)
    margin = np.where(y == 1, 1, -1) * model.decision_function(X)
    coef = np.zeros(len(y))
    coef[model.support_] = np.abs(model.dual_coef_[0])
    assert np.all(margin[coef == 0] >= 1 - 2 * model.tol)
    assert np.all(margin[coef == model.C] <= 1 + 2 * model.tol)
    primal = 0.5 * coef_norm(model) + model.C * np.maximum(0, 1 - margin).sum()
    assert primal - model.dual_objective_ == pytest.approx(model.duality_gap_, rel=1e-3, abs=1e-6)


def coef_norm(model):
    return float(model.dual_coef_[0] @ (model.decision_function(model.support_vectors_) - model.intercept_))


def test_checks_are_in_the_history_and_are_no_iterations(moons, near):
    X, y = moons
    model = KernelSVC(**SETTINGS).fit(X, y)
    checks = [record for record in model.history_ if record.kind == "check"]
    assert len(checks) >= (2 if near < 0 else 1)
    assert len(model.history_) - len(checks) == model.n_iter_ == model.history_[-1].iteration
    assert all(record.changed == record.updates == 0 for record in checks)
    objectives = [record.objective for record in model.history_]
    assert all(later <= earlier + 1e-9 * abs(earlier) for earlier, later in pairwise(objectives))


@pytest.mark.parametrize("keeps_columns", [True, False])
def test_a_device_that_keeps_no_columns_looks_once_more_near_the_end(monkeypatch, moons, keeps_columns):
    monkeypatch.setattr(watching, "NEAR", -1.0)
    monkeypatch.setattr(CpuDevice, "keeps_columns", keeps_columns)
    model = KernelSVC(**{**SETTINGS, "tol": 1e-3}).fit(*moons)
    violations = [before.violation for before, record in pairwise(model.history_) if record.kind == "check"]
    early = [violation for violation in violations[1:] if violation > model.tol]
    assert len(early) == (0 if keeps_columns else 1)
    assert all(violation <= watching.AGAIN * model.tol for violation in early)
    assert model.violation_ <= model.tol


def test_products_are_shorter(monkeypatch, moons):
    X, y = moons
    models = KernelSVC(**SETTINGS).fit(X, y), everyone_watched(monkeypatch, X, y, **SETTINGS)
    resting, watched = (
        sum(record.changed * record.watched for record in model.history_)
        / sum(record.changed for record in model.history_)
        for model in models
    )
    assert resting < 0.8 * watched


@pytest.mark.parametrize("max_iter", [1, 2, 5])
def test_a_run_that_ends_early_knows_how_all_rows_stand(moons, max_iter):
    X, y = moons
    with pytest.warns(UserWarning, match="max_iter"):
        model = KernelSVC(**SETTINGS, max_iter=max_iter).fit(X, y)
    margin = np.where(y == 1, 1, -1) * model.decision_function(X)
    primal = 0.5 * coef_norm(model) + model.C * np.maximum(0, 1 - margin).sum()
    assert primal - model.dual_objective_ == pytest.approx(model.duality_gap_, rel=1e-6)


def test_several_classes_rest_together(monkeypatch, near):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 2))
    y = (X[:, 0] > 0) + 2 * (X[:, 1] > 0)
    model = KernelSVC(**SETTINGS).fit(X, y)
    assert near > 0 or model.history_[0].watched < len(y)
    reference = everyone_watched(monkeypatch, X, y, **SETTINGS)
    assert model.dual_objective_ == pytest.approx(reference.dual_objective_, rel=1e-6)


def test_nobody_rests_where_every_coefficient_moves_or_the_partition_is_fixed(moons):
    X, y = moons
    models = [
        KernelLogisticRegression(gamma=5.0, n_blocks=6, random_state=0).fit(X, y),
        KernelSVC(**{**SETTINGS, "tol": 1e-2}, regroup=False).fit(X, y),
        KernelSVR(gamma=5.0, epsilon=0.0, n_blocks=6, random_state=0).fit(X, X[:, 0] * X[:, 1]),
    ]
    for model in models:
        assert {record.watched for record in model.history_} == {len(y)}


def test_a_warm_start_watches_everyone(moons):
    X, y = moons
    model = KernelSVC(**SETTINGS, warm_start=True).fit(X, y)
    before = model.dual_objective_
    model.set_params(C=12.0).fit(X, y)
    assert {record.watched for record in model.history_} == {len(y)}
    assert model.dual_objective_ > before


@pytest.mark.parametrize("growth", [2, 4])
def test_a_sampled_start_grows_by_rows_that_want_to_move(monkeypatch, growth):
    """A wide kernel starts from a sample of the rows; here on a device that computes columns again and again."""
    monkeypatch.setattr(CpuDevice, "keeps_columns", False)
    X, y = make_moons(4000, noise=0.25, random_state=0)
    settings = {"C": 1.0, "gamma": 0.5, "tol": 1e-4, "n_blocks": 100, "random_state": 0}
    monkeypatch.setattr(watching, "SAMPLE_GROWTH", growth)
    model = KernelSVC(**settings).fit(X, y)
    assert model.partition_.kernel_mass_inside < 0.25
    watched = [record.watched for record in model.history_]
    sizes = sorted(set(watched))
    assert sizes[0] == 8 * 40
    assert sizes[-1] == len(y)
    assert len(sizes) > 2
    assert sizes[1] <= growth * sizes[0]
    assert watched == sorted(watched)
    assert model.violation_ <= settings["tol"]
    reference = KernelSVC(**{**settings, "n_blocks": 1}).fit(X, y)
    assert model.dual_objective_ == pytest.approx(reference.dual_objective_, rel=1e-6)
