"""What the problem says of a point: objective, duality gap, violation, intercept; and what it refuses."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parablock import solve
from parablock.kernels import Precomputed
from parablock.losses import Hinge, Loss
from parablock.problem import Problem, fitting_bias
from tests.oracle import LOSSES, dual_sum, primal_sum, random_coef, random_kernel, random_targets

seeds = st.integers(0, 2**32 - 1)
sizes = st.integers(2, 15)
every_loss = pytest.mark.parametrize("name", LOSSES)
intercept_or_not = pytest.mark.parametrize("intercept", [False, True])


class Case:
    """A problem and a point of it."""

    def __init__(self, name, seed, n, intercept, n_outputs=1):
        rng = np.random.default_rng(seed)
        self.loss, self.K = LOSSES[name], random_kernel(rng, n)
        self.target = random_targets(name, rng, (n_outputs, n))
        self.weight = rng.uniform(0.1, 5.0, size=(n_outputs, n))
        self.problem = Problem.build(self.loss, self.target, self.weight, intercept)
        self.coef = self.problem.feasible(random_coef(rng, self.problem.lower, self.problem.upper))
        self.decision = self.coef @ self.K

    def measure(self, output=0):
        return self.problem.measure(output, self.coef[output], self.decision[output])


# ------------------------------------------------------------------------------------------- how good a point is


@every_loss
@intercept_or_not
@given(seeds, sizes)
def test_objective_is_that_of_the_dual(name, intercept, seed, n):
    case = Case(name, seed, n, intercept)
    coef = case.coef[0]
    expected = 0.5 * coef @ case.K @ coef + dual_sum(case.loss, coef, case.target[0], case.weight[0])
    assert case.measure().objective == pytest.approx(expected, rel=1e-11, abs=1e-11)


@every_loss
@intercept_or_not
@given(seeds, sizes)
def test_gap_is_primal_minus_dual_value_and_never_negative(name, intercept, seed, n):
    case = Case(name, seed, n, intercept)
    found, coef = case.measure(), case.coef[0]
    prediction = case.decision[0] + found.bias
    primal = 0.5 * coef @ case.K @ coef + primal_sum(case.loss, prediction, case.target[0], case.weight[0])
    dual = -(0.5 * coef @ case.K @ coef + dual_sum(case.loss, coef, case.target[0], case.weight[0]))
    assert found.duality_gap >= 0
    assert found.duality_gap == pytest.approx(primal - dual, rel=1e-9, abs=1e-9 * (1 + abs(primal)))


@intercept_or_not
@given(seeds, sizes)
def test_violation_of_the_hinge_loss(intercept, seed, n):
    # The gradient along a variable is decision - y; it may grow below its upper bound and shrink above its lower.
    case = Case("hinge", seed, n, intercept)
    gradient = case.decision[0] - case.target[0]
    up = case.coef[0] < case.problem.upper[0]
    down = case.coef[0] > case.problem.lower[0]
    largest_up = np.max(-gradient[up], initial=-np.inf)
    largest_down = np.max(gradient[down], initial=-np.inf)
    expected = largest_up + largest_down if intercept else max(largest_up, largest_down)  # LIBSVM's pair
    assert case.measure().violation == pytest.approx(max(expected, 0.0), abs=1e-12)


@given(seeds, sizes)
def test_wishes_of_the_hinge_loss(seed, n):
    case = Case("hinge", seed, n, intercept=True)
    found = case.measure()
    gradient = case.decision[0] - case.target[0] + found.bias
    coef, lower, upper = case.coef[0], case.problem.lower[0], case.problem.upper[0]
    np.testing.assert_allclose(found.upward, np.where(coef < upper, -gradient, -np.inf), atol=1e-12)
    np.testing.assert_allclose(found.downward, np.where(coef > lower, gradient, -np.inf), atol=1e-12)
    np.testing.assert_array_equal(found.free, (coef > lower) & (coef < upper))


@every_loss
@intercept_or_not
@given(seeds, sizes)
def test_where_nobody_wants_to_move_there_is_no_gap(name, intercept, seed, n):
    # Give every variable the prediction that it wants: minus a subgradient of its dual term.
    case, wanted_bias = Case(name, seed, n, intercept), 0.7 if intercept else 0.0
    terms = zip(case.coef[0], case.target[0], case.weight[0])
    slopes = np.array([case.loss.slopes(*term, case.loss.parameter)[:2] for term in terms])
    subgradient = np.where(np.isfinite(slopes[:, 0]), slopes[:, 0], slopes[:, 1])
    found = case.problem.measure(0, case.coef[0], -subgradient - wanted_bias)
    assert found.violation <= 1e-12
    if found.free.any() or not intercept:
        assert found.bias == pytest.approx(wanted_bias)
        assert found.duality_gap <= 1e-9 * case.weight.sum()


@every_loss
@intercept_or_not
def test_gap_and_violation_vanish_at_the_optimum(name, intercept):
    case = Case(name, 0, 15, intercept)
    C, target = case.weight[0], case.target[0]
    trained = solve(case.K, target, case.loss, Precomputed(), C=C, fit_intercept=intercept, tol=1e-9)
    (found,) = trained.solution.state.measures
    assert found.violation <= 1e-9
    assert found.duality_gap <= 1e-7 * abs(found.objective)
    assert case.measure().duality_gap > 1e-3  # at a random point
    assert case.measure().violation > 1e-3


class Oracle:
    """What `measure` finds, from the loss's Python functions."""

    def __init__(self, case, decision):
        loss, rows = case.loss, list(zip(case.coef[0], case.target[0], case.weight[0]))
        left, right, _ = np.array([loss.slopes(*row, loss.parameter) for row in rows]).T
        self.upward, self.downward = -(decision + right), decision + left
        wanted = self.upward[self.upward == -self.downward]
        highest, lowest = self.upward.max(), self.downward.max()
        self.bias, self.violation = 0.0, max(highest, lowest, 0.0)
        if case.problem.intercept:
            self.bias, self.violation = np.median(wanted), max(highest + lowest, 0.0)
        self.upward, self.downward = self.upward - self.bias, self.downward + self.bias
        coef, prediction = case.coef[0], decision + self.bias
        own = dual_sum(loss, coef, case.target[0], case.weight[0])
        self.objective = own + 0.5 * coef @ decision
        self.duality_gap = primal_sum(loss, prediction, case.target[0], case.weight[0]) + own + coef @ prediction


@every_loss
@intercept_or_not
@given(seeds, st.integers(60, 150))  # enough for whole vectors of the processor, and a remainder
def test_measure_is_what_the_losses_functions_say(name, intercept, seed, n):
    case = Case(name, seed, n, intercept)
    decision = np.random.default_rng(seed).normal(size=n) * 3
    found, expected = case.problem.measure(0, case.coef[0], decision), Oracle(case, decision)
    for number in ("objective", "duality_gap", "violation", "bias"):
        assert getattr(found, number) == pytest.approx(getattr(expected, number), rel=1e-11, abs=1e-9), number
    np.testing.assert_allclose(found.upward, expected.upward, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found.downward, expected.downward, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(np.isinf(found.upward), case.coef[0] >= case.problem.upper[0])
    np.testing.assert_array_equal(np.isinf(found.downward), case.coef[0] <= case.problem.lower[0])


@every_loss
@intercept_or_not
@pytest.mark.parametrize("row", [0, 37, 99])
@pytest.mark.parametrize("wrong", ["coef", "decision"])
def test_what_is_not_a_number_is_refused_wherever_it_is(name, intercept, row, wrong):
    case = Case(name, 0, 100, intercept)
    case.coef[0, row] = 0.0
    getattr(case, wrong)[0, row] = np.nan
    with pytest.raises(ValueError, match="not numbers"):
        case.measure()


@every_loss
@intercept_or_not
def test_measure_takes_arrays_that_are_read_only_or_not_in_one_piece(name, intercept):
    case = Case(name, 0, 50, intercept, n_outputs=2)
    expected = case.measure(1)
    names = "target", "weight", "lower", "upper"
    turned = {name: np.asfortranarray(getattr(case.problem, name)) for name in names}
    case.problem = replace(case.problem, **turned)
    case.coef, case.decision = np.asfortranarray(case.coef), np.asfortranarray(case.decision)
    for values in (case.coef, case.decision, *turned.values()):
        values.flags.writeable = False
    found = case.measure(1)
    assert (found.objective, found.duality_gap, found.bias) == (
        expected.objective,
        expected.duality_gap,
        expected.bias,
    )
    np.testing.assert_array_equal(found.upward, expected.upward)


@every_loss
@given(seeds, st.integers(1, 70), st.sampled_from([0.0, 1e-14, 0.3, 0.5, 1.0 - 1e-14, 1.0]))
def test_moved_variables_are_exactly_on_the_bounds_and_kinks_that_they_reach(name, seed, n, beta):
    case = Case(name, seed, n, intercept=False)
    rng = np.random.default_rng(seed)
    lower, upper, kink = case.problem.lower[0], case.problem.upper[0], case.loss.kink
    aim = random_coef(rng, lower, upper)
    direction = np.where(rng.random(n) < 0.7, aim - case.coef[0], 0.0)
    found = case.problem.moved(0, case.coef[0], direction, beta)
    assert np.all((found >= lower) & (found <= upper))
    exact = case.coef[0] + beta * direction
    np.testing.assert_allclose(found, exact, rtol=1e-12, atol=1e-11)
    np.testing.assert_array_equal(found[direction == 0], case.coef[0][direction == 0])
    for place in (lower, upper, np.full(n, kink)):
        near = np.abs(exact - place) <= 0.9 * np.maximum(1e-12 * np.abs(direction), 1e-13 * case.weight[0])
        np.testing.assert_array_equal(found[near], place[near])


def test_outputs_are_measured_on_their_own():
    case = Case("logistic", 0, 10, intercept=True, n_outputs=3)
    for output in range(3):
        alone = Problem.build(case.loss, case.target[output], case.weight[output], True)
        expected = alone.measure(0, case.coef[output], case.decision[output])
        assert case.measure(output).objective == expected.objective
        assert case.measure(output).duality_gap == expected.duality_gap
        assert case.measure(output).bias == expected.bias


@every_loss
def test_measuring_leaves_the_point_as_it_is(name):
    case = Case(name, 0, 10, intercept=True)
    coef, decision = case.coef.copy(), case.decision.copy()
    case.measure()
    np.testing.assert_array_equal(case.coef, coef)
    np.testing.assert_array_equal(case.decision, decision)


# ------------------------------------------------------------------------------------------------ the intercept


def test_bias_is_the_median_of_what_free_variables_want():
    upward = np.array([1.0, 2.0, 30.0, 5.0, -np.inf])
    downward = np.array([-1.0, -2.0, -30.0, -np.inf, 7.0])
    assert fitting_bias(upward, downward) == 2.0


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=60))
def test_bias_is_the_median_of_any_number_of_wishes(wishes):
    upward = np.array(wishes)
    assert fitting_bias(upward, -upward) == np.median(upward)
    np.testing.assert_array_equal(upward, wishes)  # in the order that they had


def test_bias_without_free_variables_balances_the_extreme_wishes():
    upward = np.array([3.0, 1.0, -np.inf, -np.inf])
    downward = np.array([-np.inf, -np.inf, -5.0, -6.0])
    assert fitting_bias(upward, downward) == 4.0  # of 3 and 5


def test_bias_where_all_want_the_same_is_what_they_want():
    nobody = np.full(2, -np.inf)
    assert fitting_bias(np.array([3.0, 1.0]), nobody) == 3.0
    assert fitting_bias(nobody, np.array([2.0, -1.0])) == -2.0
    assert fitting_bias(nobody, nobody) == 0.0


def test_bias_is_zero_without_an_intercept():
    case = Case("hinge", 0, 10, intercept=False)
    assert case.measure().bias == 0.0


# ---------------------------------------------------------------------------------------------- feasible points


@every_loss
@intercept_or_not
@given(seeds, sizes)
def test_feasible_points_lie_in_the_box_and_sum_to_zero(name, intercept, seed, n):
    problem = Case(name, seed, n, intercept, n_outputs=2).problem
    wild = np.random.default_rng(seed).normal(size=(2, n)) * 10
    coef = problem.feasible(wild)
    assert np.all(coef >= problem.lower)
    assert np.all(coef <= problem.upper)
    if intercept:
        np.testing.assert_allclose(coef.sum(axis=1), 0.0, atol=1e-12 * np.abs(wild).sum())


@every_loss
@intercept_or_not
@given(seeds, sizes)
def test_feasible_points_stay_where_they_are(name, intercept, seed, n):
    case = Case(name, seed, n, intercept)
    np.testing.assert_allclose(case.problem.feasible(case.coef), case.coef, rtol=1e-12, atol=1e-15)


def test_feasible_keeps_what_can_be_kept():
    problem = Problem.build(Hinge(), np.array([1.0, 1.0, -1.0, -1.0]), np.array(1.0), intercept=True)
    np.testing.assert_allclose(problem.feasible(np.array([[0.5, 5.0, -0.3, 0.0]])), [[0.1, 0.2, -0.3, 0.0]])
    np.testing.assert_array_equal(problem.feasible(np.array([[0.5, 5.0, 0.0, 0.0]])), np.zeros((1, 4)))
    free = Problem.build(Hinge(), np.array([1.0, -1.0]), np.array(1.0), intercept=False)
    np.testing.assert_array_equal(free.feasible(np.array([[5.0, 0.5]])), [[1.0, 0.0]])


# ----------------------------------------------------------------------------------------------------- building


@every_loss
def test_bounds_are_the_losses_own(name):
    case = Case(name, 0, 10, intercept=False, n_outputs=2)
    for output in range(2):
        for i in range(10):
            expected = case.loss.bounds(case.target[output, i], case.weight[output, i], case.loss.parameter)
            assert (case.problem.lower[output, i], case.problem.upper[output, i]) == expected


def test_one_weight_serves_all_samples():
    problem = Problem.build(Hinge(), np.array([1.0, -1.0, 1.0]), np.array(2.5), intercept=False)
    assert (problem.n_outputs, problem.n) == (1, 3)
    np.testing.assert_array_equal(problem.weight, np.full((1, 3), 2.5))
    np.testing.assert_array_equal(problem.upper, [[2.5, 0.0, 2.5]])


class FarFromZero(Hinge):
    @staticmethod
    def bounds(target, weight, parameter):
        return 0.5, 1.0


class BoundNotANumber(Hinge):
    @staticmethod
    def bounds(target, weight, parameter):
        return 0.0 * target, float("nan")


class SlopeNotANumber(Hinge):
    @staticmethod
    def slopes(coef, target, weight, parameter):
        return float("nan"), float("nan"), 0.0


class Concave(Hinge):
    @staticmethod
    def slopes(coef, target, weight, parameter):
        return 1.0, -1.0, 0.0


class InfiniteAtZero(Hinge):
    @staticmethod
    def dual(coef, target, weight, parameter):
        return float("inf")


@pytest.mark.parametrize(
    ("loss", "complaint"),
    [
        (FarFromZero(), r"FarFromZero\.bounds must return lower <= 0 <= upper.*got lower up to 0\.5"),
        (BoundNotANumber(), r"BoundNotANumber\.bounds must return lower <= 0 <= upper"),
        (SlopeNotANumber(), r"SlopeNotANumber\.slopes must return left <= right.*never nan"),
        (Concave(), r"Concave\.slopes must return left <= right"),
        (InfiniteAtZero(), r"InfiniteAtZero\.dual must be finite at coef=0; got inf"),
    ],
)
def test_a_loss_that_makes_no_sense_is_refused(loss, complaint):
    assert isinstance(loss, Loss)
    with pytest.raises(ValueError, match=complaint):
        Problem.build(loss, np.array([1.0, -1.0]), np.array(1.0), intercept=False)
