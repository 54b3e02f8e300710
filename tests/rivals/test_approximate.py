"""The rivals that solve another problem, or stop early: each against a slow and obvious version of its own method."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.linalg import lapack
from scipy.optimize import minimize
from sklearn.datasets import make_moons
from sklearn.svm import SVC

from benchmarks.rivals import (
    ALGORITHM_1,
    CASVM,
    LIBSVM,
    PSVM,
    FirstStep,
    Nystroem,
    Parablock,
    PPackSVM,
    RandomFeatures,
)
from benchmarks.rivals.casvm import balanced
from benchmarks.rivals.low_rank import LowRank
from benchmarks.rivals.psvm import incomplete_cholesky, interior_point
from parablock import BlockSolver
from tests.rivals.conftest import GAMMA, C
from tests.small_problems import rbf

# ------------------------------------------------------------------------------------------------------------- CA-SVM


def test_casvm_is_independent_local_machines(small):
    solver = CASVM(C, GAMMA, clusters=5, fit_intercept=True, tol=1e-6, n_jobs=1).fit(small.X, small.y)
    assert {len(rows) for rows in solver.groups_} == {120}
    centres = np.stack([small.X[rows].mean(axis=0) for rows in solver.groups_])
    nearest = ((small.X_test[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
    expected = np.empty(len(small.X_test))
    for number, rows in enumerate(solver.groups_):
        machine = SVC(C=C, gamma=GAMMA, tol=1e-6).fit(small.X[rows], small.y[rows])
        mine = nearest == number
        if mine.any():
            expected[mine] = machine.decision_function(small.X_test[mine])
    np.testing.assert_allclose(solver.decision_function(small.X_test), expected, atol=1e-4)


def test_a_cluster_of_one_class_says_that_class():
    X = np.concatenate([np.random.default_rng(0).normal(place, 0.1, size=(20, 2)) for place in (0.0, 10.0)])
    y = np.repeat([0, 1], 20)
    for intercept in (False, True):
        solver = CASVM(1.0, 1.0, clusters=2, fit_intercept=intercept, n_jobs=1).fit(X, y)
        assert solver.score(X, y) == 1.0


def test_balanced_clusters_are_near_and_even():
    distances = np.random.default_rng(1).random((103, 4))
    distances[:, 0] -= 1  # everyone's favourite, which takes the nearest
    labels = balanced(distances)
    assert sorted(np.bincount(labels)) == [25, 26, 26, 26]
    assert distances[labels == 0, 0].max() < distances[labels != 0, 0].min()
    even = np.eye(4)[np.arange(100) % 4]
    assert np.array_equal(balanced(1 - even), np.arange(100) % 4)  # nobody is turned away


# ---------------------------------------------------------------------------------------------------------- P-packSVM


def pegasos(K, y, C, order, pull, radius_squared):
    """One row after the other, all coefficients shrunk in every step."""
    n, coef = len(y), np.zeros(len(y))
    for t, i in enumerate(order, start=1):
        margin = y[i] * (K[i] @ coef)
        coef *= 1 - 1 / t
        coef[i] += y[i] * pull(margin) * n * C / t
        square = coef @ K @ coef
        if square > radius_squared:
            coef *= np.sqrt(radius_squared / square)
    return coef


@pytest.mark.parametrize(
    ("loss", "pull", "at_zero"),
    [
        ("hinge", lambda margin: float(margin < 1), 0.5),
        ("logistic", lambda margin: 1 / (1 + np.exp(margin)), np.log(2)),
    ],
)
@pytest.mark.parametrize("pack", [1, 7, 100])
def test_packs_do_not_change_the_steps(loss, pull, at_zero, pack, small):
    X, y = small.X[:120], small.y[:120]
    solver = PPackSVM(C, GAMMA, loss=loss, pack=pack, epochs=2.5, n_jobs=1).fit(X, y)
    rng = np.random.default_rng(0)
    order = np.concatenate([rng.permutation(120) for _ in range(3)])[:300]
    expected = pegasos(rbf(X, gamma=GAMMA), y, C, order, pull, 2 * at_zero * 120 * C)
    np.testing.assert_allclose(solver.model_.coef, expected, rtol=1e-8, atol=1e-8)


def test_ppacksvm_approaches_the_optimum(small):
    losses = [
        small.loss(PPackSVM(C, GAMMA, epochs=epochs, n_jobs=1).fit(small.X, small.y).model_) for epochs in (2, 20, 200)
    ]
    assert losses[0] > losses[1] > losses[2] > 0
    assert losses[2] < 0.02


# --------------------------------------------------------------------------------------------------------- first step


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_the_first_step_is_that_of_algorithm_1(loss, small):
    options = {**ALGORITHM_1, "n_blocks": 4, "max_iter": 1, "tol": 1e-4, "block_solver": BlockSolver(fraction=1e-6)}
    shared = {"loss": loss, "n_jobs": 1}
    whole = Parablock(C, GAMMA, prediction="local", options=options, **shared).fit(small.X, small.y)
    alone = FirstStep(C, GAMMA, blocks=4, tol=1e-4, **shared).fit(small.X, small.y)
    np.testing.assert_allclose(
        alone.decision_function(small.X_test), whole.decision_function(small.X_test), rtol=1e-2, atol=1e-2
    )


# --------------------------------------------------------------------------------------------------------------- PSVM


def test_incomplete_cholesky_is_lapacks_with_pivots():
    X = np.random.default_rng(0).normal(size=(80, 3))
    with PSVM(n_jobs=1).workshop(X, np.ones(80)) as workshop:
        factor = incomplete_cholesky(workshop, 30).values
        whole = incomplete_cholesky(workshop, 80).values
    K = rbf(X, gamma=1.0)
    triangle, pivots, _, _ = lapack.dpstrf(K, lower=1)
    expected = np.tril(triangle)[np.argsort(pivots - 1), :30]
    np.testing.assert_allclose(factor, expected, atol=1e-8)
    np.testing.assert_allclose(whole @ whole.T, K, atol=1e-8)


def test_incomplete_cholesky_stops_when_it_is_exact():
    X = np.repeat(np.arange(5.0)[:, None], 8, axis=0)  # five different rows
    with PSVM(n_jobs=1).workshop(X, np.ones(40)) as workshop:
        factor = incomplete_cholesky(workshop, 40).values
    assert factor.shape == (40, 5)
    np.testing.assert_allclose(factor @ factor.T, rbf(X, gamma=1.0), atol=1e-12)


def test_a_low_rank_matrix_computes_the_same_with_torch():
    torch = pytest.importorskip("torch")
    card = SimpleNamespace(name="cuda", device=torch.device("cpu"))  # the same program, without a GPU
    rng = np.random.default_rng(3)
    V, row, column = rng.normal(size=(9, 4)), rng.normal(size=9), rng.normal(size=4)
    tall = LowRank.zeros(9, 5, card).first(4)
    tall.values[:] = tall.near(V)
    assert tall.shape == (9, 4)
    np.testing.assert_allclose(tall.dot(column), V @ column)
    np.testing.assert_allclose(tall.dot_transposed(row), row @ V)
    np.testing.assert_allclose(tall.gram(row), V.T @ np.diag(row) @ V)
    np.testing.assert_allclose(tall.scaled(row).dot(column), row * (V @ column))


@pytest.mark.parametrize("intercept", [False, True])
def test_interior_point_finds_the_least_value(intercept):
    rng = np.random.default_rng(2)
    V, y = rng.normal(size=(60, 8)), np.where(rng.random(60) < 0.5, -1.0, 1.0)
    signs = y if intercept else np.zeros(60)
    point, iterations = interior_point(LowRank(V), signs, 1.5, 1e-9)
    assert iterations < 60

    def value(a):
        return 0.5 * np.sum((a @ V) ** 2) - a.sum()

    found = minimize(
        value,
        np.full(60, 0.1),
        jac=lambda a: V @ (a @ V) - 1,
        bounds=[(0, 1.5)] * 60,
        constraints=[{"type": "eq", "fun": lambda a: signs @ a, "jac": lambda a: signs}] if intercept else [],
        method="SLSQP",
        options={"ftol": 1e-13, "maxiter": 500},
    )
    assert value(point.a) == pytest.approx(found.fun, rel=1e-6)
    assert point.a.min() > 0
    assert point.a.max() < 1.5
    assert abs(signs @ point.a) < 1e-6


@pytest.mark.parametrize("intercept", [False, True])
def test_psvm_is_exact_with_full_rank(intercept, small):
    losses = []
    for power in (0.5, 1.0):
        solver = PSVM(C, GAMMA, power=power, tol=1e-8, fit_intercept=intercept, n_jobs=1).fit(small.X, small.y)
        losses.append(small.loss(solver.model_, intercept))
    assert solver.rank_ > 500
    assert losses[0] > 0.1  # with rank 24 another problem
    assert losses[1] == pytest.approx(0, abs=1e-4)


# ----------------------------------------------------------------------------------------------------------- features


@pytest.mark.parametrize(("make", "close"), [(RandomFeatures, 0.1), (Nystroem, 1e-3)])
def test_features_approach_the_kernel(make, close, small):
    X, K = small.X[:100], rbf(small.X[:100], gamma=GAMMA)
    errors = []
    for count in (10, 1000):
        features = make(1.0, GAMMA, features=count)._features(X)(X)
        errors.append(np.sqrt(np.mean((features @ features.T - K) ** 2)))
    assert errors[1] < close
    assert errors[1] < 0.5 * errors[0]


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
@pytest.mark.parametrize("make", [RandomFeatures, Nystroem])
def test_many_features_reach_the_kernels_accuracy(make, loss):
    X, y = make_moons(1200, noise=0.2, random_state=0)
    exact = LIBSVM(1.0, 4.0).fit(X[:600], y[:600]).score(X[600:], y[600:])
    few, many = (
        make(1.0, 4.0, features=count, loss=loss).fit(X[:600], y[:600]).score(X[600:], y[600:]) for count in (2, 400)
    )
    assert exact > 0.95
    assert many > exact - 0.015
    assert few < exact - 0.03
