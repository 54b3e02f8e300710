"""Starting from the coefficients of the last fit."""

import warnings

import numpy as np
import pytest

from parablock import KernelSVC, KernelSVR
from tests.small_problems import CASES, N, features, full_coef, optimum, targets

every_estimator = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
both_intercepts = pytest.mark.parametrize("fit_intercept", [True, False], ids=["intercept", "no intercept"])


@both_intercepts
@every_estimator
def test_fitting_again_from_the_solution_has_nothing_left_to_do(case, fit_intercept):
    model = case.fit(n_blocks=4, tol=1e-6, fit_intercept=fit_intercept, warm_start=True)
    first = model.kernel_evaluations_
    prediction = model.predict(case.X)
    model.fit(case.X, case.y)
    assert model.n_iter_ <= 1
    assert model.kernel_evaluations_ < first
    assert model.predict(case.X) == pytest.approx(prediction, abs=1e-5)


@pytest.mark.parametrize("start", [0.3, 8.0])
@both_intercepts
@every_estimator
def test_another_c_is_solved_from_the_last_one(case, fit_intercept, start):
    """Coefficients above the new bounds and sums that are no longer zero are put right."""
    goal = case.estimator.C
    model = case.model(C=start * goal, n_blocks=4, tol=1e-6, fit_intercept=fit_intercept, warm_start=True)
    model.fit(case.X, case.y).set_params(C=goal).fit(case.X, case.y)
    assert case.objective(full_coef(model)[0]) == pytest.approx(optimum(case.name, fit_intercept), rel=1e-6)
    assert model.violation_ <= 1e-6


@every_estimator
def test_a_near_c_takes_less_work_from_the_last_solution_than_from_zero(case):
    cold = case.fit(C=1.05 * case.estimator.C, n_blocks=4, tol=1e-4, regroup=False)
    warm = case.fit(n_blocks=4, tol=1e-4, regroup=False, warm_start=True)
    warm.set_params(C=1.05 * case.estimator.C).fit(case.X, case.y)
    assert warm.n_iter_ < cold.n_iter_
    assert warm.dual_objective_ == pytest.approx(cold.dual_objective_, rel=1e-5)


@pytest.mark.filterwarnings("ignore:Not converged")
def test_an_unfinished_fit_goes_on_where_it_stopped():
    case = CASES["squared_hinge"]
    model = case.fit(n_blocks=4, tol=1e-6, regroup=False, max_iter=3, warm_start=True)
    reached = model.history_[-1].objective
    model.set_params(max_iter=1000).fit(case.X, case.y)
    assert model.history_[0].objective <= reached
    assert model.violation_ <= 1e-6


def test_targets_and_weights_may_have_changed():
    X, y = features(), targets("numbers")
    weight = np.where(np.arange(N) % 4, 2.0, 0.0)
    settings = {"gamma": 0.6, "tol": 1e-6, "n_blocks": 4, "random_state": 0, "n_jobs": 1}
    warm = KernelSVR(**settings, warm_start=True).fit(X, y).fit(X, np.cos(y), sample_weight=weight)
    cold = KernelSVR(**settings).fit(X, np.cos(y), sample_weight=weight)
    assert warm.dual_objective_ == pytest.approx(cold.dual_objective_, rel=1e-6)
    assert warm.predict(X) == pytest.approx(cold.predict(X), abs=1e-4)


def test_another_number_of_rows_or_outputs_warns_and_starts_from_zero():
    X, y = features(), targets("labels")
    model = KernelSVC(warm_start=True, tol=1e-6, random_state=0, n_jobs=1).fit(X, y)
    with pytest.warns(UserWarning, match=rf"last fit had {N} rows and 1 outputs and this one has 50 and 1.*from zero"):
        model.fit(X[:50], y[:50])
    cold = KernelSVC(tol=1e-6, random_state=0, n_jobs=1).fit(X[:50], y[:50])
    assert np.array_equal(model.dual_coef_, cold.dual_coef_)
    with pytest.warns(UserWarning, match="this one has 50 and 3"):
        model.fit(X[:50], np.arange(50) % 3)


def test_the_first_fit_and_equal_shapes_do_not_warn():
    model = KernelSVC(warm_start=True, n_jobs=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(features(), targets("labels")).fit(features(), -targets("labels"))


def test_without_warm_start_a_second_fit_repeats_the_first():
    case = CASES["hinge"]
    model = case.fit(n_blocks=4)
    first = model.n_iter_, model.dual_coef_
    model.fit(case.X, case.y)
    assert model.n_iter_ == first[0]
    assert np.array_equal(model.dual_coef_, first[1])
