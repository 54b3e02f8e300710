"""The step size: never uphill, never out of the box, and the best one where it can be computed."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parablock import solve
from parablock.kernels import RBF
from parablock.losses import EpsilonInsensitive, Hinge, Loss, Quantile
from parablock.problem import Problem
from parablock.solver.line_search import SUFFICIENT_DECREASE, Line, armijo_step, combined, exact_step, plane_step
from tests.oracle import (
    CLASSIFICATION,
    LOSSES,
    PIECEWISE_QUADRATIC,
    dual_sum,
    minimum_1d,
    random_coef,
    random_kernel,
    random_targets,
    rbf,
)

seeds = st.integers(0, 2**32 - 1)
sizes = st.integers(1, 12)
every_loss = pytest.mark.parametrize("name", LOSSES)
every_exact_loss = pytest.mark.parametrize("name", PIECEWISE_QUADRATIC)


class Case:
    """A point in the box and a direction from it, often towards another point of the box."""

    def __init__(self, name, seed, n, inside=True):
        rng = np.random.default_rng(seed)
        self.loss, self.K = LOSSES[name], random_kernel(rng, n)
        self.problem = Problem.build(
            self.loss, random_targets(name, rng, n), rng.uniform(0.2, 3.0, size=n), intercept=False
        )
        lower, upper = self.problem.lower[0], self.problem.upper[0]
        self.coef = random_coef(rng, lower, upper)
        direction = random_coef(rng, lower, upper) - self.coef if inside else rng.normal(size=n)
        self.rows = np.flatnonzero(direction)
        self.direction = direction[self.rows]
        self.decision = self.K @ self.coef
        moved = self.K[np.ix_(self.rows, self.rows)]
        self.line = Line(
            self.problem,
            0,
            self.rows,
            self.coef[self.rows],
            self.direction,
            slope=float(self.decision[self.rows] @ self.direction),
            quadratic=float(self.direction @ moved @ self.direction),
        )

    def downhill(self):
        return len(self.rows) > 0 and self.line.derivative(0.0)[0] < 0

    def objective(self, beta):
        coef = self.coef.copy()
        coef[self.rows] += beta * self.direction
        # Rounding must not push it over a bound, where some duals are not defined.
        coef = np.clip(coef, self.problem.lower[0], self.problem.upper[0])
        target, weight = self.problem.target[0], self.problem.weight[0]
        return 0.5 * coef @ self.K @ coef + dual_sum(self.loss, coef, target, weight)

    def least_objective(self, longest):
        """Piece by piece: a bounded search does not land on a kink."""
        with np.errstate(invalid="ignore"):
            breaks = (self.loss.kink - self.coef[self.rows]) / self.direction
        pieces = [0.0, *sorted(breaks[(breaks > 0) & (breaks < longest)]), longest]
        return min(minimum_1d(self.objective, low, high) for low, high in pairwise(pieces))


def tiny(case):
    return 1e-9 * (1 + abs(case.objective(0.0)))


@every_loss
@given(seeds, sizes, st.floats(0, 1))
def test_change_is_the_change_of_the_objective(name, seed, n, beta):
    case = Case(name, seed, n)
    if len(case.rows):
        assert case.line.change(beta) == pytest.approx(case.objective(beta) - case.objective(0.0), abs=tiny(case))


@every_loss
@given(seeds, sizes, st.floats(0.1, 0.9))
def test_derivative_is_that_of_the_objective(name, seed, n, beta):
    case = Case(name, seed, n)
    width = 1e-6
    crossings = (case.loss.kink - case.coef[case.rows]) / case.direction
    if len(case.rows) and not np.any(np.abs(crossings - beta) < 2 * width):
        slope, curvature = case.line.derivative(beta)
        difference = (case.objective(beta + width) - case.objective(beta - width)) / (2 * width)
        assert slope == pytest.approx(difference, rel=1e-5, abs=1e-5)
        bend = case.line.derivative(beta + width)[0] - case.line.derivative(beta - width)[0]
        assert curvature == pytest.approx(bend / (2 * width), rel=1e-4, abs=1e-3)


@every_loss
@given(seeds, sizes)
def test_longest_step_ends_exactly_at_a_bound(name, seed, n):
    case = Case(name, seed, n, inside=False)
    longest = case.line.longest()
    assert longest >= 0
    lower, upper = case.problem.lower[0, case.rows], case.problem.upper[0, case.rows]
    if np.isfinite(longest):
        end = case.line.point(longest)
        assert np.any(np.where(case.direction > 0, end == upper, end == lower))
    else:
        assert np.all(np.isinf(np.where(case.direction > 0, upper, lower)))


@every_exact_loss
@pytest.mark.parametrize("inside", [True, False])
@given(seed=seeds, n=sizes)
def test_exact_step_is_the_minimiser_in_the_box(name, inside, seed, n):
    case = Case(name, seed, n, inside)
    if len(case.rows) == 0:
        return
    beta, longest = exact_step(case.line), case.line.longest()
    assert 0 <= beta <= longest
    least = case.least_objective(min(longest, 2 * beta + 10.0))
    assert case.objective(beta) <= least + tiny(case)


@every_exact_loss
@given(seeds, sizes)
def test_exact_step_stops_where_the_slope_changes_its_sign(name, seed, n):
    case = Case(name, seed, n)
    if case.downhill():
        beta, scale = exact_step(case.line), abs(case.line.derivative(0.0)[0])
        assert beta > 0
        assert case.line.derivative(beta, ahead=False)[0] <= 1e-9 * scale
        if beta < case.line.longest():
            assert case.line.derivative(beta, ahead=True)[0] >= -1e-9 * scale


@every_loss
@pytest.mark.parametrize("inside", [True, False])
@given(seed=seeds, n=sizes, n_blocks=st.integers(1, 20))
def test_no_step_raises_the_objective_or_leaves_the_box(name, inside, seed, n, n_blocks):
    case = Case(name, seed, n, inside)
    if len(case.rows) == 0:
        return
    betas = [armijo_step(case.line, n_blocks)]
    if name in PIECEWISE_QUADRATIC:
        betas.append(exact_step(case.line))
    for beta in betas:
        assert beta >= 0
        assert case.objective(beta) <= case.objective(0.0) + 1e-12 * (1 + abs(case.objective(0.0)))
        point = case.line.point(beta)
        assert np.all(point >= case.problem.lower[0, case.rows])
        assert np.all(point <= case.problem.upper[0, case.rows])
        np.testing.assert_allclose(point, case.coef[case.rows] + beta * case.direction, atol=1e-12)


@every_loss
@given(seeds, sizes, st.integers(1, 20))
def test_steps_go_nowhere_from_a_direction_that_leads_uphill(name, seed, n, n_blocks):
    case = Case(name, seed, n)
    if len(case.rows) and not case.downhill():
        assert armijo_step(case.line, n_blocks) == 0.0
        if name in PIECEWISE_QUADRATIC:
            assert exact_step(case.line) == 0.0


@every_loss
@given(seeds, sizes, st.integers(1, 20))
def test_armijo_decrease_is_sufficient(name, seed, n, n_blocks):
    case = Case(name, seed, n)
    if case.downhill():
        beta, promised = armijo_step(case.line, n_blocks), case.line.derivative(0.0)[0]
        assert 0 < beta <= 1
        decrease = case.objective(beta) - case.objective(0.0)
        # The candidate 1/k is taken only where it is better than a step that satisfies the condition.
        assert decrease <= SUFFICIENT_DECREASE * min(beta, 1.0) * promised + tiny(case)


@every_loss
@given(seeds, sizes, st.integers(1, 20))
def test_armijo_step_is_at_least_as_good_as_one_over_k(name, seed, n, n_blocks):
    case = Case(name, seed, n)
    if len(case.rows):
        beta = armijo_step(case.line, n_blocks)
        assert case.objective(beta) <= case.objective(1.0 / n_blocks) + tiny(case)


@pytest.mark.parametrize("name", [name for name in PIECEWISE_QUADRATIC if np.isnan(LOSSES[name].kink)])
@given(seeds, sizes)
def test_armijo_takes_the_full_step_where_the_objective_falls_all_along_it(name, seed, n):
    # A parabola that falls as far as 1 has at least half of its first slope as decrease there.
    case = Case(name, seed, n)
    if case.downhill() and case.line.derivative(1.0, ahead=False)[0] <= 0:
        assert armijo_step(case.line, 1) == 1.0


# ------------------------------------------------------------------------------------------- a second direction


class Plane:
    """A point inside the box, the direction of the blocks and the step before it, each with its kernel product."""

    def __init__(self, name, seed, n):
        rng = np.random.default_rng(seed)
        self.K = random_kernel(rng, n, noise=0.1)
        target, weight = random_targets(name, rng, n), rng.uniform(0.2, 3.0, size=n)
        self.problem = Problem.build(LOSSES[name], target, weight, intercept=False)
        lower, upper = np.maximum(self.problem.lower[0], -3.0), np.minimum(self.problem.upper[0], 3.0)
        coef = lower + rng.uniform(0.05, 0.45, size=n) * (upper - lower)
        self.point = coef, self.K @ coef
        first, second = random_coef(rng, lower, upper) - coef, rng.normal(size=n)
        self.step, self.last = (first, self.K @ first), (second, self.K @ second)

    def mixed(self):
        mixture = plane_step(self.problem, 0, self.point, self.step, self.last)
        return None if mixture is None else combined(self.step, self.last, *mixture)

    def model(self, direction):
        """The objective's change to second order."""
        coef, decision = self.point
        left, _, curvature = self.problem.slopes(0, coef)
        hessian = self.K + np.diag(curvature)
        return (decision + left) @ direction + 0.5 * direction @ hessian @ direction


@every_loss
@given(seeds, st.integers(3, 12))
def test_step_in_the_plane_is_best_to_second_order_and_knows_its_product(name, seed, n):
    plane = Plane(name, seed, n)
    mixed = plane.mixed()
    assert mixed is not None
    np.testing.assert_allclose(mixed[1], plane.K @ mixed[0], rtol=1e-8, atol=1e-8)
    least = plane.model(mixed[0])
    for first in (0.0, 0.1, -0.1):
        for second in (0.0, 0.1, -0.1):
            other = mixed[0] + first * plane.step[0] + second * plane.last[0]
            assert least <= plane.model(other) + 1e-9 * (1 + abs(least))


@every_loss
@given(seeds, st.integers(3, 12))
def test_step_in_the_plane_ends_inside_the_box_with_its_product_known(name, seed, n):
    # Coefficients that were cut off at a bound would no longer belong to the decision that goes with the step.
    plane = Plane(name, seed, n)
    coef, _ = plane.point
    mixed = plane.mixed()
    line = Line.along(plane.problem, 0, plane.point, mixed)
    beta = exact_step(line) if name in PIECEWISE_QUADRATIC else armijo_step(line, 1)
    after = coef.copy()
    after[line.rows] = line.point(beta)
    np.testing.assert_allclose(after, coef + beta * mixed[0], atol=1e-9)


def test_there_is_no_step_in_the_plane_where_a_variable_is_not_free():
    plane = Plane("hinge", 0, 6)
    assert plane.mixed() is not None
    plane.point[0][2] = plane.problem.upper[0, 2]
    assert plane.mixed() is None
    kinked = Plane("epsilon_insensitive", 0, 6)
    kinked.point[0][3] = 0.0
    assert kinked.mixed() is None


def test_there_is_no_step_in_the_plane_of_two_directions_that_are_one():
    plane = Plane("squared_error", 0, 6)
    plane.last = -2 * plane.step[0], -2 * plane.step[1]
    assert plane.mixed() is None
    plane.last = np.zeros(6), np.zeros(6)
    assert plane.mixed() is None


@every_loss
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("C", [1.0, 100.0])
def test_a_run_keeps_its_decision_its_sum_and_never_goes_uphill(name, intercept, C):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    target = X[:, 0] + 0.5 * rng.normal(size=120)
    target = np.sign(target) if name in CLASSIFICATION else target
    options = {"n_blocks": 8, "partition": "random", "tol": 1e-6, "max_iter": 40}
    solution = solve(X, target, LOSSES[name], RBF(0.2), C=C, fit_intercept=intercept, **options).solution
    state, values = solution.state, [record.objective for record in solution.history]
    assert len(values) > 2
    scale = 1 + np.abs(state.decision).max()
    np.testing.assert_allclose(state.decision, state.coef @ rbf(X, X, 0.2), atol=1e-9 * scale)
    assert np.all(np.diff(values) <= 1e-9 * (1 + np.abs(values[:-1])))
    if intercept:
        assert abs(state.coef.sum()) <= 1e-9 * C


# ------------------------------------------------------------------------------------------- bounds and kinks


def single(loss, target, coef, direction, slope, quadratic):
    problem = Problem.build(loss, np.array([target]), np.array([1.0]), intercept=False)
    return Line(problem, 0, np.array([0]), np.array([coef]), np.array([direction]), slope, quadratic)


@given(st.floats(-0.99, -0.001), st.floats(0.01, 10), st.floats(0, 0.9))
def test_exact_step_lands_exactly_on_a_kink_that_is_the_minimum(coef, direction, kernel):
    # phi' = beta d^2 kernel -+ d epsilon: downhill until the variable reaches zero, uphill after.
    for sign in (1.0, -1.0):
        line = single(EpsilonInsensitive(1.0), 0.0, sign * coef, sign * direction, 0.0, kernel * direction**2)
        beta = exact_step(line)
        assert beta == pytest.approx(-coef / direction)
        assert line.point(beta)[0] == 0.0


@given(st.floats(0, 0.999), st.floats(0.01, 10))
def test_exact_step_lands_exactly_on_a_bound(coef, direction):
    for sign in (1.0, -1.0):
        line = single(Hinge(), sign, sign * coef, sign * direction, -2.0 * direction, 0.0)
        assert line.point(exact_step(line))[0] == sign


@given(st.floats(-0.69, 0.29), st.floats(0.01, 10), st.sampled_from([-1.0, 1.0]))
def test_exact_step_lands_exactly_on_a_bound_that_is_no_round_number(coef, direction, sign):
    line = single(Quantile(0.3), 0.0, coef, sign * direction, -2.0 * direction, 0.1 * direction**2)
    assert line.point(exact_step(line))[0] == (1.0 * 0.3 if sign > 0 else 1.0 * (0.3 - 1.0))


def test_exact_step_crosses_kinks_on_its_way_to_the_minimum():
    # Three variables pass their kinks at 0.1, 0.2 and 0.4; the minimum lies between the last two.
    coef, direction = np.array([-0.1, -0.2, -0.4]), np.ones(3)
    problem = Problem.build(EpsilonInsensitive(1.0), np.zeros(3), np.ones(3), intercept=False)
    line = Line(problem, 0, np.arange(3), coef, direction, slope=-1.3, quadratic=1.0)
    np.testing.assert_allclose(line.breaks(line.longest()), [0.1, 0.2, 0.4])
    # Between 0.2 and 0.4: phi' = -1.3 + beta + (1 + 1 - 1)
    assert exact_step(line) == pytest.approx(0.3)


def test_hinge_step_is_the_formula_of_the_paper():
    # beta = -(decision'd + sum g'd) / d'Kd, inside the box.
    case = Case("hinge", seed=3, n=8)
    assert case.downhill()
    target = case.problem.target[0, case.rows]
    free = -(case.line.slope - target @ case.direction) / case.line.quadratic
    assert exact_step(case.line) == pytest.approx(min(free, case.line.longest()))


def test_a_direction_without_end_is_refused():
    # Nothing bounds the objective from below: no kernel gives this, but rounding may.
    line = single(Hinge(), 1.0, 0.0, 1.0, slope=-1.0, quadratic=-1.0)
    assert exact_step(line) == 1.0  # the bound
    unbounded = Problem.build(LOSSES["squared_error"], np.zeros(1), np.ones(1), intercept=False)
    line = Line(unbounded, 0, np.array([0]), np.zeros(1), np.ones(1), slope=-1.0, quadratic=-1.0)
    assert exact_step(line) == 0.0


class Wall(Loss):
    """A dual that is flat up to 0.4 and very steep from there."""

    kink = 0.4

    @staticmethod
    def dual(coef, target, weight, parameter):
        return 1000.0 * max(0.0, coef - 0.4)

    @staticmethod
    def primal(prediction, target, weight, parameter):
        return 0.0

    @staticmethod
    def bounds(target, weight, parameter):
        return -1.0, 1.0

    @staticmethod
    def slopes(coef, target, weight, parameter):
        return 1000.0 * (coef > 0.4), 1000.0 * (coef >= 0.4), 0.0


def test_armijo_step_tries_one_over_k_also_when_the_halved_step_is_shorter():
    # 1 and 1/2 are behind the wall, 1/4 is accepted, 1/3 would be better.
    line = single(Wall(), 1.0, 0.0, 1.0, slope=-1.0, quadratic=0.0)
    beta = armijo_step(line, n_blocks=3)
    assert line.change(beta) <= line.change(1.0 / 3.0)
