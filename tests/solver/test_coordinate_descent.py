"""Coordinate descent inside a block: every update is the best along its direction, and choices follow their rule."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parablock.devices.cpu.coordinate_descent import (
    CHOICES,
    CONVERGED,
    Block,
    Rule,
    _extremes,
    _partner,
    descend,
    new_progress,
    prepare,
)
from parablock.problem import Problem
from parablock.solver import BlockSolver
from tests.oracle import LOSSES, dual_sum, minimum_1d, random_coef, random_kernel, random_targets

seeds = st.integers(0, 2**32 - 1)
sizes = st.integers(2, 12)
every_loss = pytest.mark.parametrize("name", LOSSES)
choices = pytest.mark.parametrize("choice", ["greedy", "random", "cyclic"])
pairs_or_not = pytest.mark.parametrize("pairs", [False, True])


class Descent:
    """One block of everything, from a random point of its box."""

    def __init__(self, name, seed, n, dtype=np.float64, C=1.0):
        rng = np.random.default_rng(seed)
        self.loss, self.K = LOSSES[name], random_kernel(rng, n)
        self.target, self.weight = random_targets(name, rng, n), C * rng.uniform(0.2, 3.0, size=n)
        problem = Problem.build(self.loss, self.target, self.weight, intercept=False)
        self.lower, self.upper = problem.lower[0], problem.upper[0]
        self.start = random_coef(rng, self.lower, self.upper)
        self.block = Block(
            storage=self.K.astype(dtype),
            diagonal=self.K.diagonal().astype(dtype),
            decision=(self.K @ self.start).astype(dtype),
            left=np.empty(n, dtype),
            right=np.empty(n, dtype),
            curvature=np.empty(n, dtype),
            slot=np.arange(n),
            stamp=np.zeros(n, dtype=np.int64),
            clock=np.zeros(1, dtype=np.int64),
            coef=self.start.copy(),
            target=self.target,
            weight=self.weight,
            lower=self.lower,
            upper=self.upper,
        )
        prepare(self.loss.compiled_slopes, self.loss.parameter, self.block)

    def run(self, choice="greedy", pairs=False, max_updates=1, fraction=0.0, floor=0.0, seed=0, progress=None):
        """The number of updates made."""
        rule = Rule(CHOICES[choice], pairs, fraction, floor, max_updates)
        progress = progress or new_progress(seed)
        missing = descend(self.loss.compiled_slopes, self.loss.parameter, self.loss.kink, self.block, rule, progress)
        assert missing == CONVERGED
        return int(progress.counts[0])

    def objective(self, coef):
        coef = np.clip(coef, self.lower, self.upper)
        return 0.5 * coef @ self.K @ coef + dual_sum(self.loss, coef, self.target, self.weight)

    def violation(self, pairs):
        up = float(np.max(-(self.block.decision + self.block.right)))
        down = float(np.max(self.block.decision + self.block.left))
        return max(up + down if pairs else max(up, down), 0.0)

    def least_along(self, start, direction):
        """The best that one update can reach, piece by piece between kinks."""
        moving = direction != 0
        ends = np.where(direction > 0, self.upper, self.lower)[moving]
        room = np.abs(ends - start[moving])
        longest = min(room.min(), 50.0)
        kinks = (self.loss.kink - start[moving]) / direction[moving]
        pieces = [0.0, *sorted(kinks[(kinks > 0) & (kinks < longest)]), longest]

        def along(step):
            return self.objective(start + step * direction)

        return min(minimum_1d(along, low, high) for low, high in pairwise(pieces))


def tiny(value):
    return 1e-10 * (1 + abs(value))


@every_loss
@choices
@pairs_or_not
@settings(max_examples=20)
@given(seed=seeds, n=sizes)
def test_one_update_reaches_the_minimum_along_its_direction(name, choice, pairs, seed, n):
    descent = Descent(name, seed, n)
    if descent.violation(pairs) <= 1e-9:
        return
    assert descent.run(choice, pairs, seed=seed) == 1
    moved = descent.block.coef - descent.start
    assert np.count_nonzero(moved) == (2 if pairs else 1)
    least = descent.least_along(descent.start, np.sign(moved))
    assert descent.objective(descent.block.coef) <= least + tiny(least)


@every_loss
@pairs_or_not
@given(seed=seeds, n=sizes)
def test_a_greedy_update_happens_wherever_there_is_a_violation(name, pairs, seed, n):
    descent = Descent(name, seed, n)
    violation = descent.violation(pairs)
    made = descent.run("greedy", pairs)
    if violation > 1e-9:
        assert made == 1
        assert np.any(descent.block.coef != descent.start)
        assert descent.objective(descent.block.coef) < descent.objective(descent.start)
    if violation == 0.0:
        assert made == 0


@every_loss
@given(seed=seeds, n=sizes)
def test_greedy_moves_the_largest_violator(name, seed, n):
    descent = Descent(name, seed, n)
    up, down = -(descent.block.decision + descent.block.right), descent.block.decision + descent.block.left
    largest = descent.violation(pairs=False)
    if largest > 1e-9:
        descent.run("greedy")
        moved = descent.block.coef - descent.start
        (chosen,) = np.flatnonzero(moved)
        assert (up if moved[chosen] > 0 else down)[chosen] == largest


@every_loss
@given(seed=seeds, n=sizes)
def test_a_greedy_pair_grows_the_largest_upward_violator(name, seed, n):
    descent = Descent(name, seed, n)
    up = -(descent.block.decision + descent.block.right)
    if descent.violation(pairs=True) > 1e-9:
        descent.run("greedy", pairs=True)
        moved = descent.block.coef - descent.start
        assert up[moved > 0].tolist() == [up.max()]
        assert np.sum(moved < 0) == 1


@given(seed=seeds, n=sizes)
def test_the_partner_of_a_greedy_pair_promises_the_largest_decrease(seed, n):
    # Without bounds in the way the promise of second order is what the update achieves.
    descent = Descent("squared_error", seed, n)
    up = int(np.argmax(-(descent.block.decision + descent.block.right)))
    reached = []
    for partner in range(n):
        direction = np.zeros(n)
        direction[up], direction[partner] = 1.0, -1.0
        reached.append(descent.least_along(descent.start, direction) if partner != up else np.inf)
    if descent.violation(pairs=True) > 1e-9:
        descent.run("greedy", pairs=True)
        found = descent.objective(descent.block.coef)
        assert found <= min(reached) + tiny(found)


def test_cyclic_takes_the_variables_in_turn():
    descent = Descent("squared_error", 0, 6)
    progress, order = new_progress(0), []
    for limit in range(1, 13):
        before = descent.block.coef.copy()
        descent.run("cyclic", max_updates=limit, progress=progress)
        order += np.flatnonzero(descent.block.coef != before).tolist()
    assert order == [0, 1, 2, 3, 4, 5] * 2


def test_random_draws_every_variable_about_equally_often():
    n, drawn = 5, []
    for seed in range(300):
        descent = Descent("squared_error", 0, n)
        descent.run("random", seed=seed * 2**50 + seed)
        drawn += np.flatnonzero(descent.block.coef != descent.start).tolist()
    counts = np.bincount(drawn, minlength=n)
    assert counts.sum() == 300
    assert counts.min() > 30


@every_loss
@choices
@pairs_or_not
@settings(max_examples=20)
@given(seed=seeds, n=sizes)
def test_the_objective_falls_with_every_update(name, choice, pairs, seed, n):
    descent, progress = Descent(name, seed, n), new_progress(seed)
    values = [descent.objective(descent.start)]
    for limit in range(1, 15):
        descent.run(choice, pairs, max_updates=limit, floor=1e-9, progress=progress)
        values.append(descent.objective(descent.block.coef))
    assert np.all(np.diff(values) <= 1e-13 * (1 + np.abs(values[:-1])))


@every_loss
@choices
@pairs_or_not
@settings(max_examples=20)
@given(seed=seeds, n=sizes)
def test_updates_keep_decision_box_and_sum(name, choice, pairs, seed, n):
    descent = Descent(name, seed, n)
    made = descent.run(choice, pairs, max_updates=25, floor=1e-9, seed=seed)
    assert made <= 25
    coef = descent.block.coef
    np.testing.assert_allclose(descent.block.decision, descent.K @ coef, atol=1e-11)
    assert np.all(coef >= descent.lower)
    assert np.all(coef <= descent.upper)
    if pairs:
        assert abs(coef.sum() - descent.start.sum()) <= 1e-12


@every_loss
@pairs_or_not
@given(seed=seeds, n=sizes)
def test_variables_that_reach_a_bound_or_kink_lie_exactly_on_it(name, pairs, seed, n):
    # Small weights, so that most variables go to a bound. Look after every update: a later one would mend it.
    descent, progress = Descent(name, seed, n, C=0.1), new_progress(seed)
    for limit in range(1, 2 * n):
        descent.run("greedy", pairs, max_updates=limit, floor=1e-9, progress=progress)
        for place in (descent.lower, descent.upper, np.full(n, descent.loss.kink)):
            distance = np.abs(descent.block.coef - place)
            assert not np.any((distance > 0) & (distance < 1e-12 * descent.weight))


@every_loss
@choices
@pairs_or_not
def test_it_stops_at_the_asked_violation(name, choice, pairs):
    for fraction, floor in ((0.1, 0.0), (0.0, 1e-2), (0.0, 1e-7)):
        descent = Descent(name, 1, 20)
        first = descent.violation(pairs)
        made = descent.run(choice, pairs, max_updates=10**6, fraction=fraction, floor=floor)
        assert 0 < made < 10**6
        assert descent.violation(pairs) <= max(fraction * first, floor)


@every_loss
@choices
@pairs_or_not
@pytest.mark.parametrize("limit", [1, 2, 7])
def test_no_more_updates_than_allowed(name, choice, pairs, limit):
    descent = Descent(name, 1, 20)
    assert descent.run(choice, pairs, max_updates=limit) == limit


@every_loss
@choices
@pairs_or_not
def test_single_precision_ends_though_its_violation_cannot_reach_zero(name, choice, pairs):
    descent = Descent(name, 1, 20, dtype=np.float32)
    descent.run(choice, pairs, max_updates=20_000)
    exact = Descent(name, 1, 20)
    exact.run("greedy", pairs, max_updates=10**6, floor=1e-9)
    assert descent.objective(descent.block.coef) == pytest.approx(exact.objective(exact.block.coef), rel=1e-4)


@every_loss
def test_rows_that_are_the_same_twice_do_not_stop_it(name):
    # A pair of equal rows has no curvature along its direction.
    descent = Descent(name, 1, 20)
    same = np.tile(np.arange(10), 2)
    descent.K = descent.K[np.ix_(same, same)]
    descent.block.storage[...] = descent.K
    descent.block.diagonal[...] = descent.K.diagonal()
    descent.block.decision[...] = descent.K @ descent.start
    made = descent.run("greedy", pairs=True, max_updates=10**6, floor=1e-6)
    assert 0 < made < 10**6
    assert descent.violation(pairs=True) <= 1e-6
    np.testing.assert_allclose(descent.block.decision, descent.K @ descent.block.coef, atol=1e-9)


def test_weights_of_any_size_are_solved():
    for C in (1e-6, 1e6):
        for name in LOSSES:
            descent = Descent(name, 2, 8, C=C)
            descent.run("greedy", max_updates=10**6, floor=1e-6)
            assert descent.violation(pairs=False) <= 1e-6, (name, C)


def test_a_missing_column_is_asked_for_and_then_used():
    # Only the column that was asked for is put into storage each time.
    descent, whole = Descent("squared_hinge", 3, 10), Descent("squared_hinge", 3, 10)
    descent.block.slot[:] = -1
    rule, progress, asked = Rule(CHOICES["greedy"], True, 0.0, 1e-9, 10**6), new_progress(0), []
    while True:
        missing = descend(
            descent.loss.compiled_slopes, descent.loss.parameter, descent.loss.kink, descent.block, rule, progress
        )
        if missing == CONVERGED:
            break
        asked.append(missing)
        descent.block.slot[missing] = missing
    assert len(asked) == len(set(asked)) > 1
    whole.run("greedy", pairs=True, max_updates=10**6, floor=1e-9)
    np.testing.assert_array_equal(descent.block.coef, whole.block.coef)


# ------------------------------------------------------------------------------------------- the user's settings


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"choice": "best"}, r"Unknown block solver 'best': use one of .*'greedy'"),
        ({"fraction": 1.0}, "fraction must be at least 0 and less than 1, got 1.0"),
        ({"fraction": -0.1}, "fraction must be at least 0"),
        ({"floor": 1.5}, "floor must be between 0 and 1, got 1.5"),
        ({"floor": float("nan")}, "floor must be between 0 and 1"),
        ({"max_updates": 0}, "max_updates must be at least 1"),
    ],
)
def test_settings_that_make_no_sense_are_refused(options, complaint):
    with pytest.raises(ValueError, match=complaint):
        BlockSolver(**options)


def test_every_choice_can_be_asked_for():
    assert [BlockSolver(choice).choice for choice in CHOICES] == list(CHOICES)


lengths = st.integers(1, 700)  # chunks of every length
precisions = st.sampled_from([np.float32, np.float64])


@pytest.mark.parametrize("columns", [0, 1, 2])
@given(seeds, lengths, precisions)
def test_the_worst_violators_are_found_among_any_number_of_variables(columns, seed, n, dtype):
    """After a step along none, one or two columns; with infinities and either sign."""
    rng = np.random.default_rng(seed)
    decision, left, right = (rng.normal(size=n).astype(dtype) * 10.0 ** rng.integers(-8, 8) for _ in range(3))
    left[rng.random(n) < 0.3], right[rng.random(n) < 0.3] = -np.inf, np.inf
    decision, left, right = (values.astype(dtype) for values in (decision, left, right))
    moved, step = rng.normal(size=(2, n)).astype(dtype), rng.normal()
    expected = decision + step * sum(moved[:columns] * np.array([[1.0], [-1.0]])[:columns])
    up, highest, down, lowest = _extremes(decision, left, right, step, *moved[:columns])
    np.testing.assert_allclose(decision, expected, rtol=1e-5, atol=1e-5)
    assert highest == (-(decision + right)).max() == -(decision + right)[up]
    assert lowest == (decision + left).max() == (decision + left)[down]


@given(seeds, lengths, precisions)
def test_the_best_partner_is_found_among_any_number_of_variables(seed, n, dtype):
    rng = np.random.default_rng(seed)
    block = Descent("squared_error", seed, 1, dtype).block._replace(
        storage=rng.uniform(size=(1, n)).astype(dtype),
        diagonal=np.ones(n, dtype),
        decision=rng.normal(size=n).astype(dtype),
        left=np.where(rng.random(n) < 0.3, -np.inf, rng.normal(size=n)).astype(dtype),
        curvature=rng.uniform(0.1, 1.0, size=n).astype(dtype),
        slot=np.zeros(n, dtype=np.int64),
    )
    downward, own = block.decision + block.left, 1.0 + block.curvature[0]
    highest, lowest = 1.0, float(downward.max())
    violation = highest + downward
    promise = violation**2 / (own + 1.0 + block.curvature - 2.0 * block.storage[0])
    promise[violation <= 0.01 * (highest + lowest)] = 0.0
    assert promise[_partner(block, 0, highest, lowest)] == pytest.approx(promise.max(), rel=1e-5)
