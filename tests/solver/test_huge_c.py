"""A C that no coefficient comes near to is as good as any other; a solution is looked at before it is believed."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from parablock import KernelLogisticRegression, KernelQuantileRegressor, KernelRidge, KernelSVC, KernelSVR, solve
from parablock.kernels import RBF
from parablock.losses import Hinge, Logistic
from parablock.problem import Problem
from parablock.solver.checking import doubt_about
from parablock.solver.state import State
from tests.small_problems import rbf

X = np.random.RandomState(0).randn(60, 3)
SIDE, WAVE = np.where(X[:, 0] > 0, 1.0, -1.0), np.sin(X[:, 0])
GAMMA = 1 / (3 * X.var())
K = rbf(X, gamma=GAMMA)
HUGE = [1e12, 1e13, 1e14, 1e15, 1e18, 1e30, 1e100]


def linear_part(model):
    """Coefficients of all rows, and y'c - 1/2 c'Kc by NumPy in float64."""
    coef = np.zeros(60)
    coef[model.support_] = model.dual_coef_[0]
    target = SIDE if hasattr(model, "classes_") else WAVE
    return coef, target @ coef - 0.5 * coef @ K @ coef


MACHINES = {
    "hinge": (KernelSVC, {}, lambda coef, C: 0.0),
    "squared hinge": (KernelSVC, {"loss": "squared_hinge"}, lambda coef, C: np.sum(coef**2) / (4 * C)),
    "epsilon insensitive": (KernelSVR, {"epsilon": 0.01}, lambda coef, C: 0.01 * np.abs(coef).sum()),
    "quantile": (KernelQuantileRegressor, {}, lambda coef, C: 0.0),
    "squared error": (KernelRidge, {}, lambda coef, C: np.sum(coef**2) / (4 * C)),
    "squared error in blocks": (KernelRidge, {"n_blocks": 1}, lambda coef, C: np.sum(coef**2) / (4 * C)),
}


@pytest.mark.parametrize("C", HUGE)
@pytest.mark.parametrize("loss", MACHINES)
@pytest.mark.filterwarnings("ignore:Converged to tol")
def test_the_solution_is_that_of_a_large_c(loss, C):
    kind, parameters, cost = MACHINES[loss]
    target = SIDE if kind is KernelSVC else WAVE
    large = kind(C=1e10, random_state=0, **parameters).fit(X, target)
    model = kind(C=C, random_state=0, **parameters).fit(X, target)
    coef, value = linear_part(model)
    assert model.stop_reason_ == "converged"
    assert abs(coef.sum()) <= 1e-9 * np.abs(coef).sum()
    assert model.dual_objective_ == pytest.approx(value - cost(coef, C), rel=1e-9)
    assert model.dual_objective_ == pytest.approx(large.dual_objective_, rel=1e-5)
    assert model.score(X, target) == pytest.approx(large.score(X, target), abs=1e-6)


@pytest.mark.parametrize("C", HUGE)
def test_the_hard_margin_is_libsvms(C):
    theirs = SVC(C=1e12, tol=1e-6).fit(X, SIDE)
    model = KernelSVC(C=C).fit(X, SIDE)
    assert model.score(X, SIDE) == 1.0
    assert model.dual_objective_ == pytest.approx(136.1667, abs=1e-3)
    assert model.decision_function(X) == pytest.approx(theirs.decision_function(X), abs=2e-3)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("n_blocks", [1, 4])
def test_so_it_is_in_several_blocks_and_without_intercept(intercept, n_blocks):
    settings = {"fit_intercept": intercept, "n_blocks": n_blocks, "random_state": 0, "tol": 1e-5}
    large, huge = (KernelSVC(C=C, **settings).fit(X, SIDE) for C in (1e6, 1e16))
    _, value = linear_part(huge)
    assert huge.stop_reason_ == "converged"
    assert huge.dual_objective_ == pytest.approx(value, rel=1e-9)
    assert huge.dual_objective_ == pytest.approx(large.dual_objective_, rel=1e-6)


@pytest.mark.parametrize("C", [1e4, 1e8, 1e12, 1e13])
def test_the_logistic_loss_is_solved_as_long_as_it_has_digits(C):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = KernelLogisticRegression(C=C).fit(X, SIDE)
    assert model.duality_gap_ <= 1e-3 * model.dual_objective_
    assert abs(model.dual_coef_.sum()) <= 1e-9 * np.abs(model.dual_coef_).sum()
    assert model.score(X, SIDE) == 1.0


@pytest.mark.parametrize("C", [1e15, 1e18, 1e100])
def test_the_logistic_loss_names_a_c_that_is_too_large(C):
    with pytest.warns(ConvergenceWarning, match=r"seemed converged.*logistic loss has no digits.*Lower C=1e\+"):
        model = KernelLogisticRegression(C=C).fit(X, SIDE)
    assert model.stop_reason_ == "stalled"


def test_bounds_that_are_nearly_reached_are_reached_exactly():
    """What is near is measured by the coefficients; of a C that they reach, as before."""
    y = np.where(np.random.RandomState(1).randn(60) > 0, 1, -1)
    for C in (1e-3, 1.0, 1e3):
        model = KernelSVC(C=C, gamma=0.05, n_blocks=4, random_state=0, tol=1e-6).fit(X, y)
        near = np.abs(np.abs(model.dual_coef_) - C) < 1e-9 * C
        assert near.any()
        assert np.all(np.abs(model.dual_coef_[near]) == C)


# ------------------------------------------------------------------------------------------- the look at a solution


def solution(loss=None, C=10.0, intercept=True):
    loss = Hinge() if loss is None else loss
    problem = Problem.build(loss, SIDE, np.array(C), intercept)
    state = solve(X, SIDE, loss, RBF(GAMMA), C=C, fit_intercept=intercept).solution.state
    return problem, state


def other(problem, state, coef):
    """The state with other coefficients, and the decisions and certificate of the old ones."""
    return State(coef, state.decision, state.iteration, state.measures)


def test_a_good_solution_is_not_doubted():
    assert doubt_about(*solution(), K) is None
    assert doubt_about(*solution(intercept=False), K) is None
    assert doubt_about(*solution(Logistic()), K) is None
    assert doubt_about(*solution(), K.astype(np.float32)) is None
    assert doubt_about(*solution(), None) is None


def test_a_coefficient_outside_of_its_bounds_is_found():
    problem, state = solution()
    coef = state.coef.copy()
    coef[0, np.argmax(coef)] += 10.0
    assert "outside of its bounds" in doubt_about(problem, other(problem, state, coef), None)


def test_a_sum_that_is_not_zero_is_found():
    problem, state = solution()
    coef = state.coef.copy()
    coef[0, np.argmax((np.abs(coef) > 0.1) & (np.abs(coef) < 9))] *= 1 + 1e-6
    assert "sum to" in doubt_about(problem, other(problem, state, coef), K)
    assert "sum to" in doubt_about(problem, other(problem, state, coef), None)


def test_an_objective_that_is_not_that_of_the_coefficients_is_found():
    problem, state = solution(intercept=False)
    coef = 0.9999 * state.coef
    assert "the dual objective is" in doubt_about(problem, other(problem, state, coef), K)
    assert doubt_about(problem, other(problem, state, coef), None) is None


def test_a_fit_that_drifted_is_not_called_converged(monkeypatch):
    """Steps that move coefficients and leave their decisions behind, as too wide a snap to the bounds did."""
    moved = Problem.moved

    def careless(self, output, coef, direction, beta):
        point = moved(self, output, coef, direction, beta)
        return np.where(np.abs(point) < 0.05 * np.abs(point).max(), 0.0, point)

    monkeypatch.setattr(Problem, "moved", careless)
    with pytest.warns(ConvergenceWarning, match="seemed converged, but the coefficients sum to .*Lower C=100"):
        model = KernelSVC(C=100).fit(X, SIDE)
    assert model.stop_reason_ == "stalled"
    with pytest.warns(ConvergenceWarning, match="seemed converged, but the dual objective is"):
        KernelSVC(C=100, fit_intercept=False).fit(X, SIDE)
