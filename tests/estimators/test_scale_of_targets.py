"""Least squares and quantiles have no size of their own: s times the targets, s times the decisions."""

import math
import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge as ScikitKernelRidge
from sklearn.model_selection import KFold

from parablock import Checkpoint, KernelQuantileRegressor, KernelRidge, KernelSVR, load, solve
from parablock.callbacks import EarlyStopping, JSONLog, read_log
from parablock.kernels import RBF
from parablock.losses import SquaredError
from parablock.selection.folds import Folds
from parablock.selection.search import search
from tests.small_problems import rbf

RNG = np.random.RandomState(0)
X = RNG.randn(300, 3)
WAVE = np.sin(X[:, 0])
NOISY = WAVE + 0.3 * RNG.randn(300)
BLOCKS = {"n_blocks": 3, "random_state": 0, "gamma": 0.5, "n_jobs": 1}
POWERS = [2.0**-100, 2.0**-30, 8.0, 2.0**40, 2.0**100, 2.0**330]
SCALES = [1e-30, 3e-7, -5.0, 1e9, 1e12, 1e30, 1e100]


def machine(kind, s=1.0, **parameters):
    """Squared error has no need of another C for s times the targets."""
    C = 5.0 * abs(s) if kind is KernelQuantileRegressor else 5.0
    return kind(C=C, **parameters)


both = pytest.mark.parametrize("kind", [KernelRidge, KernelQuantileRegressor])
intercepts = pytest.mark.parametrize("intercept", [True, False], ids=["intercept", "no intercept"])


@pytest.fixture(autouse=True)
def no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.parametrize("s", POWERS)
@intercepts
@both
def test_powers_of_two_give_the_same_bits(kind, intercept, s):
    plain = machine(kind, fit_intercept=intercept, **BLOCKS).fit(X, NOISY)
    scaled = machine(kind, s, fit_intercept=intercept, **BLOCKS).fit(X, s * NOISY)
    assert scaled.n_iter_ == plain.n_iter_
    assert np.array_equal(scaled.dual_coef_, s * plain.dual_coef_)
    assert scaled.intercept_ == pytest.approx(s * plain.intercept_, rel=1e-15)
    assert scaled.dual_objective_ == s * s * plain.dual_objective_
    assert scaled.duality_gap_ == s * s * plain.duality_gap_
    assert scaled.violation_ == plain.violation_ <= plain.tol
    assert [r.objective for r in scaled.history_] == [s * s * r.objective for r in plain.history_]
    assert [r.violation for r in scaled.history_] == [r.violation for r in plain.history_]


@pytest.mark.parametrize("s", SCALES)
@intercepts
@both
def test_any_scale_gives_as_good_a_solution(kind, intercept, s):
    plain = machine(kind, fit_intercept=intercept, **BLOCKS).fit(X, NOISY)
    quantile = {"quantile": 0.5} if kind is KernelQuantileRegressor else {}
    scaled = machine(kind, s, fit_intercept=intercept, **BLOCKS, **quantile).fit(X, s * NOISY)
    assert scaled.predict(X) / s == pytest.approx(plain.predict(X), abs=5e-3)
    assert scaled.dual_objective_ / s / s == pytest.approx(plain.dual_objective_, rel=1e-5)
    assert scaled.violation_ <= scaled.tol


@pytest.mark.parametrize("s", [*SCALES, 5e-4])
@intercepts
def test_ridge_at_once_to_rounding(intercept, s):
    plain = KernelRidge(C=50, gamma="auto", fit_intercept=intercept).fit(X, WAVE)
    scaled = KernelRidge(C=50, gamma="auto", fit_intercept=intercept).fit(X, s * WAVE)
    assert scaled.n_iter_ == plain.n_iter_ == 1
    assert scaled.predict(X) == pytest.approx(s * plain.predict(X), rel=1e-9, abs=1e-12 * abs(s))
    assert scaled.score(X, s * WAVE) > 0.9999


@pytest.mark.parametrize("blocks", [{}, {"n_blocks": 3}], ids=["at once", "in blocks"])
def test_small_targets_are_fitted(blocks):
    y = 5e-4 * WAVE
    model = KernelRidge(C=50, fit_intercept=False, gamma="auto", **blocks).fit(X, y)
    theirs = ScikitKernelRidge(alpha=0.01, kernel="rbf", gamma=1 / 3).fit(X, y)
    assert model.score(X, y) == pytest.approx(theirs.score(X, y), abs=1e-5)
    assert model.n_iter_ >= 1


@pytest.mark.parametrize("blocks", [{}, {"n_blocks": 3}], ids=["at once", "in blocks"])
@both
def test_an_offset_costs_no_digits_where_there_is_an_intercept(kind, blocks):
    settings = {"gamma": 0.5, "random_state": 0, **blocks}
    plain = machine(kind, **settings).fit(X.astype(np.float32), NOISY)
    shifted = machine(kind, **settings).fit(X.astype(np.float32), NOISY + 1e6)
    assert shifted.predict(X) - 1e6 == pytest.approx(plain.predict(X), abs=5e-3)


@pytest.mark.parametrize("blocks", [{}, {"n_blocks": 3}], ids=["at once", "in blocks"])
@both
def test_several_targets_of_different_sizes_each_reach_the_tolerance(kind, blocks):
    together = kind(C=5.0, gamma=0.5, random_state=0, **blocks).fit(X, np.stack((NOISY, 1e-6 * WAVE), axis=1))
    alone = kind(C=5.0, gamma=0.5, random_state=0, **blocks).fit(X, 1e-6 * WAVE)
    assert together.predict(X)[:, 1] == pytest.approx(alone.predict(X), abs=5e-9)
    assert together.violation_ <= together.tol


@pytest.mark.parametrize("value", [0.0, 3.0, -1e20])
@pytest.mark.parametrize("blocks", [{}, {"n_blocks": 3}], ids=["at once", "in blocks"])
@both
def test_constant_targets(kind, blocks, value):
    model = kind(gamma=0.5, random_state=0, **blocks).fit(X, np.full(300, value))
    assert model.predict(X) == pytest.approx(np.full(300, value), rel=1e-9)


def test_targets_whose_squares_are_no_numbers_are_refused_by_name():
    with pytest.raises(ValueError, match=r"^y has values up to 1e\+160"):
        KernelRidge().fit(X, 1e160 * WAVE / np.abs(WAVE).max())


def test_outliers_do_not_loosen_the_tolerance():
    y = WAVE.copy()
    y[:3] = 1e4
    model = KernelRidge(C=5, gamma=0.5, n_blocks=3, random_state=0).fit(X, y)
    K = rbf(X, gamma=0.5)
    coef = np.zeros(300)
    coef[model.support_] = model.dual_coef_[0]
    assert np.abs(K @ coef + coef / 10 + model.intercept_[0] - y).max() <= 3e-3


@both
def test_a_resumed_fit_and_a_warm_start_go_on_in_the_same_units(kind, tmp_path):
    s, path = 2.0**-40, tmp_path / "run.checkpoint"
    straight = machine(kind, s, **BLOCKS, regroup=False).fit(X, s * NOISY)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        stopped = machine(kind, s, **BLOCKS, regroup=False, warm_start=True, max_iter=3)
        stopped.set_params(checkpoint=Checkpoint(path, iterations=1)).fit(X, s * NOISY)
    resumed = machine(kind, s, **BLOCKS, regroup=False, checkpoint=path, resume=True).fit(X, s * NOISY)
    assert [r.objective for r in resumed.history_[:3]] == [r.objective for r in straight.history_[:3]]
    assert resumed.predict(X) / s == pytest.approx(straight.predict(X) / s, abs=5e-3)
    assert resumed.n_iter_ > 3
    reached = stopped.history_[-1].objective
    stopped.set_params(max_iter=1000, checkpoint=None).fit(X, s * NOISY)
    assert stopped.history_[0].objective <= reached
    assert stopped.dual_objective_ == pytest.approx(straight.dual_objective_, rel=1e-5)


@both
def test_coefficients_stay_within_the_bounds_that_the_user_gave(kind):
    s = 3e-9
    model = machine(kind, s, **BLOCKS).fit(X, s * NOISY)
    if kind is KernelQuantileRegressor:
        bound = 0.5 * model.C
        assert np.abs(model.dual_coef_).max() == bound
    assert abs(model.dual_coef_.sum()) <= 1e-12 * np.abs(model.dual_coef_).sum()


def test_what_callbacks_logs_and_files_tell_is_in_the_users_units(tmp_path):
    s = 2.0**60
    stopping = EarlyStopping(X, s * NOISY, patience=3, scoring="neg_mean_absolute_error")
    model = KernelRidge(C=5, **BLOCKS).set_callbacks(stopping, JSONLog(tmp_path / "log.jsonl")).fit(X, s * NOISY)
    log = read_log(tmp_path / "log.jsonl")
    K, coef = rbf(X, gamma=0.5), np.zeros(300)
    coef[model.support_] = model.dual_coef_[0]
    objective = 0.5 * coef @ K @ coef - coef @ (s * NOISY) + np.sum(coef**2) / 20
    assert log.end["certificate"]["dual_objective"] == model.dual_objective_ == pytest.approx(-objective, rel=1e-9)
    assert stopping.best_score_ == pytest.approx(-np.abs(model.predict(X) - s * NOISY).mean(), rel=1e-9)
    model.save(tmp_path / "model.pbk")
    assert np.array_equal(load(tmp_path / "model.pbk").predict(X), model.predict(X))


def test_folds_are_solved_in_the_same_units():
    """Of squared error there is no estimator that chooses C, but the search takes any machine."""
    found = []
    for s in (1.0, 2.0**-50):
        model = KernelRidge(gamma=0.5, random_state=0)
        folds = Folds.of(model, s * NOISY, np.ones(300), list(KFold(3).split(X)))
        settings = model._settings("tree")
        rng = np.random.default_rng(0)
        found.append(list(search(X, s * NOISY, folds, np.array([0.1, 10.0]), [0.5], settings, rng)))
        for one in found[-1]:
            assert one.finished
            for (train, _), prediction in zip(folds.splits, one.predictions, strict=True):
                alone = KernelRidge(C=[0.1, 10.0][one.C], gamma=0.5).fit(X[train], s * NOISY[train])
                assert prediction[0] == pytest.approx(alone.predict(X), abs=5e-3 * s)
    for plain, scaled in zip(*found, strict=True):
        assert scaled.iterations == plain.iterations
        assert np.array_equal(scaled.predictions, 2.0**-50 * np.array(plain.predictions))


class Tube(SquaredError):
    """Squared error in a box: no longer the same of s times the targets."""

    @staticmethod
    def bounds(target, weight, parameter):
        return -0.5, 0.5

    @staticmethod
    def slopes(coef, target, weight, parameter):
        slope = -target + coef / (2.0 * weight)
        return -math.inf if coef <= -0.5 else slope, math.inf if coef >= 0.5 else slope, 1.0 / (2.0 * weight)


def test_a_loss_that_is_derived_from_squared_error_is_solved_as_it_is():
    y = 64.0 * NOISY
    state = solve(X, y, Tube(), RBF(0.5), C=5.0, fit_intercept=False, tol=1e-6).solution.state
    K = rbf(X, gamma=0.5)
    found = minimize(
        lambda c: 0.5 * c @ K @ c - y @ c + c @ c / 20, np.zeros(300), jac=lambda c: K @ c - y + c / 10,
        bounds=[(-0.5, 0.5)] * 300, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-9, "maxiter": 5000},
    )  # fmt: skip
    assert np.abs(state.coef).max() == 0.5
    assert state.objective == pytest.approx(found.fun, rel=1e-8)


# ------------------------------------------------------------------------------- what converged, but is not as meant


def test_support_vector_regression_keeps_epsilon_and_says_when_it_hides_everything():
    y = 5e-4 * WAVE
    with pytest.warns(
        ConvergenceWarning, match=r"constant.*differ by at most 0\.001, and with epsilon=0\.1 and tol=0\.001"
    ):
        model = KernelSVR(gamma=0.5).fit(X, y)
    assert np.ptp(model.predict(X)) == 0
    with pytest.warns(ConvergenceWarning, match=r"constant for target 1.*no larger than 0\.0005"):
        KernelSVR(gamma=0.5, fit_intercept=False).fit(X, np.stack((WAVE, y), axis=1))
    KernelSVR(gamma=0.5, epsilon=1e-5, tol=1e-6).fit(X, y)
    KernelSVR(gamma=0.5).fit(X, np.full(300, 7.0))


@pytest.mark.parametrize("kernel", ["rbf", "linear", "precomputed"])
@intercepts
def test_rough_least_squares_say_how_far_predictions_can_be_off(kernel, intercept):
    rows = rbf(X, gamma=0.5) if kernel == "precomputed" else X
    settings = {"C": 2e4, "kernel": kernel, "gamma": 0.5, "fit_intercept": intercept, "random_state": 0}
    exact = KernelRidge(**settings).fit(rows, NOISY)
    with pytest.warns(ConvergenceWarning, match="allows predictions to be off by up to") as caught:
        rough = KernelRidge(**settings, n_blocks=3, tol=0.5).fit(rows, NOISY)
    message = str(caught[0].message)
    bound = float(message.split("off by up to ")[1].split(",")[0])
    assert np.abs(rough.predict(rows) - exact.predict(rows)).max() <= bound
    enough = float(message.split("tol=")[2].split(",")[0])
    better = KernelRidge(**settings, n_blocks=3, tol=enough)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        better.fit(rows, NOISY)
    assert better.duality_gap_ < rough.duality_gap_ / 10


def test_the_way_out_for_more_rows_is_named(monkeypatch):
    monkeypatch.setattr("parablock.settings._DIRECT_ROWS", 100)
    with pytest.warns(ConvergenceWarning, match="memory_limit=1_440_000 or more, which solves it at once"):
        KernelRidge(C=2e4, gamma=0.5, tol=0.5, random_state=0).fit(X, NOISY)
    assert KernelRidge(C=2e4, gamma=0.5, memory_limit=1_440_000).fit(X, NOISY).history_[0].kind == "cholesky"
