"""Float32 data gives the model that float64 data gives: where kernel values would lose their digits, they are computed
in float64, and the user is told so once."""

import re
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn.datasets import make_moons

from parablock import KernelRidge, KernelSVC, KernelSVCCV, KernelSVR, solve
from parablock.kernels import RBF, Kernel
from parablock.losses import Hinge
from tests.small_problems import full_coef

N = 200
TOLD = "Values of the .* kernel .*computed in float64"
rng = np.random.default_rng(0)
SPREAD = rng.normal(size=(N, 5))
SPREAD[:, 0] = rng.uniform(0, 1e4, N)
LABELS = (SPREAD[:, 1] > 0) * 1
YEARS = np.column_stack((rng.integers(1950, 2020, N), rng.normal(size=(N, 3))))
COUNTS = 100 + np.abs(rng.normal(size=(N, 4)))
MATRICES = {
    "rbf": lambda X, gamma: np.exp(-gamma * cdist(X, X, "sqeuclidean")),
    "laplacian": lambda X, gamma: np.exp(-gamma * cdist(X, X, "cityblock")),
    "chi2": lambda X, gamma: np.exp(-gamma * np.stack([((X - x) ** 2 / (X + x)).sum(axis=1) for x in X])),
    "matern32": lambda X, gamma: (lambda a: (1 + a) * np.exp(-a))(np.sqrt(6 * gamma) * cdist(X, X)),
    "linear": lambda X, gamma: X @ X.T,
}


def dual(model, X, y):
    """Of the support vector machine in float64, from its coefficients alone."""
    coef = full_coef(model, len(X))[0]
    K = MATRICES[model.kernel](np.asarray(X, dtype=np.float64), model._gamma)
    return np.abs(coef).sum() - 0.5 * coef @ K @ coef


def told(work):
    """The result, and how often the user was told that float32 is not enough."""
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        result = work()
    return result, sum("computed in float64" in str(warning.message) for warning in given)


CASES = {
    "dense": (SPREAD, {"gamma": 1.0, "C": 10}),
    "dense, laplacian": (100 * SPREAD, {"gamma": 1.0, "C": 10, "kernel": "laplacian"}),
    "dense, matern": (SPREAD, {"gamma": 1.0, "C": 10, "kernel": "matern32"}),
    "years": (sp.csr_matrix(YEARS), {"gamma": 1.0, "C": 10}),
    "an offset": (COUNTS, {"gamma": 1000.0, "C": 10, "kernel": "chi2"}),
    "an offset, CSR": (sp.csr_matrix(COUNTS), {"gamma": 1000.0, "C": 10, "kernel": "chi2"}),
}


@pytest.mark.parametrize("case", CASES)
def test_unscaled_float32_data_gives_the_model_of_float64(case):
    X, parameters = CASES[case]
    X = X.astype(np.float32)
    model, times = told(lambda: KernelSVC(random_state=0, **parameters).fit(X, LABELS))
    exact, never = told(lambda: KernelSVC(random_state=0, **parameters).fit(X.astype(np.float64), LABELS))
    assert (times, never) == (1, 0)
    dense = X.toarray() if sp.issparse(X) else X
    assert dual(model, dense, LABELS) == pytest.approx(exact.dual_objective_, rel=1e-3)
    assert model.dual_objective_ == pytest.approx(dual(model, dense, LABELS), rel=1e-6)
    near = X + X * np.float32(1e-6)  # new rows beside the old ones lose as much
    assert model.decision_function(near) == pytest.approx(exact.decision_function(near.astype(np.float64)), abs=1e-2)
    assert model.support_vectors_.dtype == np.float64


@pytest.mark.parametrize("data_format", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
@pytest.mark.parametrize("kernel", ["linear", "poly"])
def test_an_offset_leaves_float32_too_little_of_inner_products(kernel, data_format):
    """They are exact to rounding, but all are nearly the same; the intercept takes what they have in common."""
    X, y = make_moons(N, noise=0.2, random_state=0)
    X = (X + 100 * np.arange(1, 3)).astype(np.float32)
    given = {"kernel": kernel, "degree": 1, "gamma": 1.0, "coef0": 1.0, "random_state": 0}
    model, times = told(lambda: KernelSVC(**given).fit(data_format(X), y))
    exact = KernelSVC(**given).fit(data_format(X.astype(np.float64)), y)
    assert times == 1
    assert model.dual_objective_ == pytest.approx(exact.dual_objective_, rel=1e-4)
    assert model.score(data_format(X), y) == exact.score(data_format(X), y)
    same, never = told(lambda: KernelSVC(**given).fit(data_format(0 * X + X[:1]), y))
    assert never == 0
    assert same.support_vectors_.dtype == np.float32


def test_the_warning_says_what_was_found_and_what_helps():
    X = SPREAD.astype(np.float32)
    with pytest.warns(
        UserWarning, match=r"rbf kernel with gamma=1 .*lose their digits.*twice the memory.*Scale"
    ) as given:
        KernelSVC(gamma=1.0).fit(X, LABELS)
    assert len(given) == 1


@pytest.mark.parametrize("data_format", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "matern52", "linear", "poly", "sigmoid", "cosine"])
def test_scaled_data_stays_float32(kernel, data_format):
    X, y = make_moons(N, noise=0.2, random_state=0)
    X = data_format(X.astype(np.float32))
    model, times = told(lambda: KernelSVC(kernel=kernel, gamma=0.1, max_iter=5, tol=0.1).fit(X, y))
    assert times == 0
    assert model.support_vectors_.dtype == np.float32


def test_the_check_costs_few_kernel_values():
    X, y = make_moons(1000, noise=0.2, random_state=0)
    evaluations = [
        KernelSVC(gamma=2.0, max_iter=1, tol=1.0, random_state=0).fit(X.astype(dtype), y).kernel_evaluations_
        for dtype in (np.float32, np.float64)
    ]
    assert max(evaluations) < 1000**2 * 1.05


scales = st.integers(-3, 4).map(lambda power: 10.0**power)


@given(
    kernel=st.sampled_from(["rbf", "laplacian", "matern32"]),
    scale=st.lists(scales, min_size=4, max_size=4),
    offset=st.lists(scales, min_size=4, max_size=4),
    gamma=st.sampled_from(["scale", "auto", 1.0]),
    sparse=st.booleans(),
    seed=st.integers(0, 9),
)
@settings(max_examples=40)
def test_no_scale_and_no_offset_makes_float32_worse(kernel, scale, offset, gamma, sparse, seed):
    rng = np.random.default_rng(seed)
    X = np.float32(rng.normal(size=(60, 4)) * scale + offset)
    y = np.where(X[:, 0] + rng.normal(size=60) * scale[0] > offset[0], 1, -1)
    assume(0 < (y > 0).sum() < 60)
    wide = X.astype(np.float64)
    given_as = sp.csr_matrix if sparse else np.asarray
    parameters = {"kernel": kernel, "gamma": gamma, "C": 10.0, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model, exact = (KernelSVC(**parameters).fit(given_as(data), y) for data in (X, wide))
    assert model._gamma == pytest.approx(exact._gamma, rel=1e-5)
    best = dual(exact, wide, y)
    assert dual(model, wide, y) == pytest.approx(best, rel=1e-3)
    assert model.dual_objective_ == pytest.approx(dual(model, wide, y), rel=1e-3)


# --------------------------------------------------------------------------------------------- wherever fits come from


def test_whole_numbers_are_exact_in_float32():
    """As they are in a CSR matrix, and dense around a whole centre."""
    pixels = np.random.default_rng(0).integers(0, 256, size=(N, 64)).astype(np.uint8)
    y = pixels[:, 0] > 128
    for X in (pixels, sp.csr_matrix(pixels)):
        model, times = told(lambda X=X: KernelSVC(gamma=0.01, random_state=0).fit(X, y))
        assert times == 0
        assert model.support_vectors_.dtype == np.float32
        exact = KernelSVC(gamma=0.01, random_state=0).fit(X.astype(np.float64), y)
        new = X.astype(np.float64) * (1 + 1e-4)  # no whole numbers
        assert model.decision_function(new) == pytest.approx(exact.decision_function(new), abs=2e-3)


def test_rows_on_disk_become_float64_as_they_are_read(tmp_path):
    np.save(tmp_path / "X.npy", SPREAD.astype(np.float32))
    there = np.load(tmp_path / "X.npy", mmap_mode="r")
    for limit in ("3KB", "1GB"):  # some rows at a time, or all
        parameters = {"gamma": 1.0, "C": 10, "memory_limit": limit, "n_blocks": 2, "random_state": 0}
        model, times = told(lambda parameters=parameters: KernelSVC(**parameters).fit(there, LABELS))
        assert times == 1
        assert dual(model, there, LABELS) == pytest.approx(98.595, abs=0.1)
        exact = KernelSVC(**parameters).fit(SPREAD.astype(np.float32).astype(np.float64), LABELS)
        assert model.decision_function(there) == pytest.approx(exact.decision_function(there), abs=1e-2)


def test_rows_of_weight_zero_and_several_classes():
    X, y = SPREAD.astype(np.float32), np.arange(N) % 3
    weight = (np.arange(N) % 5 > 0).astype(float)
    model, times = told(lambda: KernelSVC(gamma=1.0, random_state=0).fit(X, y, weight))
    exact = KernelSVC(gamma=1.0, random_state=0).fit(X.astype(np.float64), y, weight)
    assert times == 1
    np.testing.assert_allclose(model.decision_function(X), exact.decision_function(X), atol=1e-2)


def test_a_path_a_search_and_solve_are_as_careful():
    X = SPREAD.astype(np.float32)
    models, times = told(lambda: KernelSVC.path(X, LABELS, Cs=[1, 10], gamma=1.0, random_state=0))
    assert times == 1
    assert dual(models[1], X, LABELS) == pytest.approx(98.595, abs=0.1)
    search = KernelSVCCV(Cs=[10], gammas=[1.0], cv=3, random_state=0)
    with pytest.warns(UserWarning, match=TOLD):
        search.fit(X, LABELS)
    exact = KernelSVCCV(Cs=[10], gammas=[1.0], cv=3, random_state=0).fit(X.astype(np.float64), LABELS)
    assert search.best_score_ == pytest.approx(exact.best_score_)
    with pytest.warns(UserWarning, match=TOLD):
        trained = solve(X, np.where(LABELS, 1.0, -1.0), Hinge(), RBF(1.0), C=10.0)
    assert trained.dtype == np.float64
    assert -trained.solution.state.objective == pytest.approx(98.595, abs=0.1)


@pytest.mark.parametrize("estimator", [KernelRidge(gamma=1.0), KernelSVR(gamma=1.0)], ids=["ridge", "svr"])
def test_regression_local_prediction_and_files(estimator, tmp_path):
    X, y = SPREAD.astype(np.float32), SPREAD[:, 1]
    estimator.set_params(prediction="local", regroup=False, n_blocks=3, random_state=0)
    with pytest.warns(UserWarning, match=TOLD):
        estimator.fit(X, y)
    expected = estimator.predict(X)
    exact = type(estimator)(**estimator.get_params()).fit(X.astype(np.float64), y)
    np.testing.assert_allclose(expected, exact.predict(X.astype(np.float64)), atol=1e-2)
    estimator.save(tmp_path / "model.pbk")
    from parablock import load

    np.testing.assert_allclose(load(tmp_path / "model.pbk").predict(X), expected, atol=1e-9)


class Cauchy(Kernel):
    shift_invariant = True

    def transform(self, tile, row_self, column_self):
        tile[...] = 1 / (1 + row_self[:, None] + column_self - 2 * tile)

    def diagonal(self, self_overlap):
        return np.ones_like(self_overlap)


def test_a_kernel_of_the_users_own():
    model, times = told(lambda: KernelSVC(kernel=Cauchy()).fit(SPREAD.astype(np.float32), LABELS))
    assert times == 1
    exact = KernelSVC(kernel=Cauchy()).fit(SPREAD.astype(np.float32).astype(np.float64), LABELS)
    assert model.dual_objective_ == pytest.approx(exact.dual_objective_, rel=1e-6)


def test_an_infinite_c_says_so_once():
    X = SPREAD[:40].astype(np.float32)
    model, times = told(lambda: KernelSVC(C=np.inf, gamma=1.0, random_state=0).fit(X, LABELS[:40]))
    assert times == 1
    assert model.score(X, LABELS[:40]) == 1.0


# ---------------------------------------------------------------------------------------- what float32 can show

SMALL = "rounding of kernel values in float32 .*smallest meaningful tol is (.*); pass float64 data"


def meaningful(given):
    """The tol that the warning names, if there is one."""
    found = [match[1] for warning in given if (match := re.search(SMALL, str(warning.message)))]
    return float(found[0]) if found else None


@pytest.fixture(scope="module")
def close():
    """Classes that overlap, and a large C: coefficients are large, and errors of many kernel values add up."""
    return make_moons(600, noise=0.4, random_state=0)


def fitted_with_warnings(model, X, y):
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        model.fit(X, y)
    return meaningful(given)


@pytest.mark.parametrize(
    "model",
    [
        KernelSVC(C=1000, gamma=1.0, tol=1e-3),
        KernelSVC(C=1000, gamma=1.0, tol=1e-3, fit_intercept=False),
        KernelSVC(C=100, gamma=5.0, tol=1e-4, n_blocks=3),
        KernelSVR(C=1000, gamma=1.0, tol=2e-3, epsilon=0.01),
    ],
    ids=["svc", "no intercept", "blocks", "svr"],
)
def test_a_tol_below_what_float32_shows_is_said(close, model):
    X, y = close[0].astype(np.float32), close[1]
    if isinstance(model, KernelSVR):
        y = y + np.sin(X[:, 0])
    least = fitted_with_warnings(model.set_params(random_state=0), X, y)
    assert least is not None
    assert least > model.tol
    assert least / 5 < model.certify(X, y).violation < 5 * least
    assert fitted_with_warnings(model, X.astype(np.float64), y) is None
    assert fitted_with_warnings(model.set_params(tol=2 * least), X, y) is None
    assert model.stop_reason_ == "converged"


def test_nothing_is_said_at_the_default_tol(close):
    X, y = close
    for parameters in ({}, {"C": 100}, {"kernel": "laplacian", "C": 32}, {"kernel": "linear"}):
        assert fitted_with_warnings(KernelSVC(**parameters), X.astype(np.float32), y) is None
    assert fitted_with_warnings(KernelRidge(C=10), X.astype(np.float32), y + X[:, 0]) is None
