"""What the schedules put into the blocks of each iteration."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parablock.problem import Measure
from parablock.solver.schedule import (
    FixedSchedule,
    Plan,
    RegroupedSchedule,
    Wishes,
    bridge_rows,
    for_unequal,
    sampled_rows,
)

TOL = 1e-3
seeds = st.integers(0, 2**32 - 1)


def measure(upward, downward):
    upward, downward = np.asarray(upward, dtype=float), np.asarray(downward, dtype=float)
    violation = max(upward.max() + downward.max(), 0.0)
    return Measure(0.0, 0.0, violation, 0.0, upward, downward)


def random_measure(seed, n, everyone=False):
    """Variables of every kind: at a bound and content, at a bound and violating, free; scaled over many powers."""
    rng = np.random.default_rng(seed)
    wish = rng.normal(size=n) * 10.0 ** rng.uniform(-6, 1, size=n)
    kind = np.zeros(n, dtype=int) if everyone else rng.integers(3, size=n)
    upward = np.where(kind == 1, -np.inf, wish)  # 1: at the upper bound
    downward = np.where(kind == 2, -np.inf, -wish)  # 2: at the lower bound
    upward[:2], downward[:2] = (1.0, -1.0), (-1.0, 1.0)  # one violating pair at least
    return measure(upward, downward)


def rows_of(n, k):
    return np.array_split(np.arange(n), k)


def cut(rows, n_blocks):
    """Stands for a partitioner."""
    return np.array_split(rows, n_blocks)


def regrouped(n=60, k=4, bridge_size=20, intercept=True, seed=0):
    return RegroupedSchedule(rows_of(n, k), bridge_size, intercept, TOL, np.random.default_rng(seed))


def kinds(schedule, measures, count):
    return [schedule.next(measures, cut).kind for _ in range(count)]


def assert_disjoint(plan):
    """For each output; blocks of different outputs may share rows."""
    for output in plan.outputs:
        own = [
            block
            for number, block in enumerate(plan.blocks)
            if plan.of_block is None or output in plan.of_block[number]
        ]
        rows = np.concatenate(own)
        assert len(np.unique(rows)) == len(rows)
    assert plan.active == sum(len(block) for block in plan.blocks)


# -------------------------------------------------------------------------------------------------- the paper's


def test_fixed_schedule_without_intercept_is_the_papers_own():
    blocks, measures = rows_of(60, 4), [random_measure(0, 60)]
    schedule = FixedSchedule(blocks, 20, intercept=False, tol=TOL)
    for _ in range(6):
        plan = schedule.next(measures, cut)
        assert plan.kind == "partition"
        assert plan.blocks is blocks
        assert not plan.pairs
        schedule.learn(plan, 0.01)  # short steps change nothing


def test_fixed_schedule_with_intercept_has_a_bridge_every_second_iteration():
    blocks, measures = rows_of(60, 4), [random_measure(0, 60)]
    schedule = FixedSchedule(blocks, 20, intercept=True, tol=TOL)
    for number in range(6):
        plan = schedule.next(measures, cut)
        assert plan.pairs
        if number % 2 == 0:
            assert plan.kind == "partition"
            assert plan.blocks is blocks
        else:
            assert plan.kind == "bridge"
            assert len(plan.blocks) == 1
            assert 1 <= plan.active <= 20


@pytest.mark.parametrize("intercept", [False, True])
def test_one_block_of_everything_needs_no_bridge(intercept):
    schedule = FixedSchedule(rows_of(60, 1), 120, intercept, TOL)
    assert kinds(schedule, [random_measure(0, 60)], 4) == ["partition"] * 4


# --------------------------------------------------------------------------------------------------- regrouped


@pytest.mark.parametrize("intercept", [False, True])
def test_regrouped_schedule_starts_with_the_partition_and_alternates_with_bridges(intercept):
    schedule, everyone = regrouped(intercept=intercept), [random_measure(0, 60, everyone=True)]
    first = schedule.next(everyone, cut)
    assert first.blocks is schedule.blocks
    assert first.pairs  # several blocks, each of which keeps its sum, with or without an intercept
    bridge = schedule.next(everyone, cut)
    assert bridge.kind == "bridge"
    assert bridge.pairs == intercept
    assert kinds(schedule, everyone, 4) == ["regrouped", "bridge", "regrouped", "bridge"]


@given(seeds, st.integers(20, 200), st.integers(2, 6), st.integers(2, 40))
def test_blocks_are_disjoint_and_hold_active_rows_only(seed, n, k, bridge_size):
    measures = [random_measure(seed + output, n) for output in range(2)]
    schedule = regrouped(n, k, bridge_size, seed=seed)
    active = Wishes.of(measures, TOL).active_rows()
    for step in (1.0, 1.0, 0.3, 0.3, 0.1, 0.1):
        plan = schedule.next(measures, cut)
        assert_disjoint(plan)
        assert plan.active > 0
        assert all(len(block) > 0 for block in plan.blocks)
        if plan.kind == "regrouped":
            assert np.isin(np.concatenate(plan.blocks), active).all()
        schedule.learn(plan, step)


@given(seeds, st.integers(20, 200), st.integers(2, 6))
def test_where_there_is_room_every_active_row_is_in(seed, n, k):
    measures = [random_measure(seed, n)]
    plan = regrouped(n, k).next(measures, cut)  # as many blocks of that size as all rows need
    active = Wishes.of(measures, TOL).active_rows()
    np.testing.assert_array_equal(np.sort(np.concatenate(plan.blocks)), active)
    violators = np.flatnonzero(np.maximum(measures[0].upward, measures[0].downward) > TOL)
    assert np.isin(violators, active).all()
    assert np.isin(np.flatnonzero(measures[0].free), active).all()


def test_blocks_get_fewer_as_rows_converge():
    n = 60
    upward, downward = np.full(n, -np.inf), np.full(n, -0.5)
    upward[:10] = 1.0
    plan = regrouped(n, k=4).next([measure(upward, downward)], cut)
    assert len(plan.blocks) == 1
    np.testing.assert_array_equal(plan.blocks[0], np.arange(10))


def test_one_fresh_block_without_intercept_may_change_its_sum():
    n = 60
    upward, downward = np.full(n, -np.inf), np.full(n, -0.5)
    upward[:10] = 1.0
    assert not regrouped(n, intercept=False).next([measure(upward, downward)], cut).pairs
    assert regrouped(n, intercept=True).next([measure(upward, downward)], cut).pairs


def test_outputs_that_have_converged_are_left_out():
    waiting = random_measure(0, 60)
    done = measure(np.full(60, 0.4 * TOL), np.full(60, 0.4 * TOL))
    assert done.violation <= TOL
    for schedule in (regrouped(), FixedSchedule(rows_of(60, 4), 20, True, TOL)):
        for _ in range(2):
            assert list(schedule.next([done, waiting, done], cut).outputs) == [1]


def test_wishes_are_the_strongest_of_the_outputs_that_have_not_converged():
    one, two = random_measure(1, 30), random_measure(2, 30)
    done = measure(np.full(30, 0.4 * TOL), np.full(30, 0.4 * TOL))
    wishes = Wishes.of([one, done, two], TOL)
    assert list(wishes.outputs) == [0, 2]
    np.testing.assert_array_equal(wishes.upward, np.maximum(one.upward, two.upward))
    np.testing.assert_array_equal(wishes.downward, np.maximum(one.downward, two.downward))
    np.testing.assert_array_equal(wishes.free, one.free | two.free)


# --------------------------------------------------------------------------------------------- the thermometer


def blocks_after(steps, n=1600, k=16):
    """How many blocks a regrouped iteration has after iterations with these step sizes."""
    schedule, everyone = regrouped(n, k, bridge_size=200), [random_measure(0, n, everyone=True)]
    for step in steps:
        schedule.learn(schedule.next(everyone, cut), step)
        schedule.learn(schedule.next(everyone, cut), 1.0)  # of a bridge: says nothing about the blocks
    return len(schedule.next(everyone, cut).blocks)


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([1.0], 16),
        ([0.6], 16),
        ([0.4], 8),
        ([0.4, 0.4], 4),
        ([0.4, 0.6], 8),
        ([0.4, 0.4, 0.9], 8),
        ([0.4, 0.4, 0.9, 1.0], 16),
        ([0.1] * 10, 1),
        ([0.0], 8),
    ],
)
def test_short_steps_halve_the_number_of_blocks_and_long_ones_double_it(steps, expected):
    assert blocks_after(steps) == expected


def test_the_steps_of_bridges_do_not_count():
    schedule, everyone = regrouped(1600, 16), [random_measure(0, 1600, everyone=True)]
    schedule.learn(schedule.next(everyone, cut), 1.0)
    schedule.learn(schedule.next(everyone, cut), 0.001)
    assert len(schedule.next(everyone, cut).blocks) == 16


def test_a_single_short_step_does_not_end_with_an_empty_block():
    # As many blocks as rows: the room of one block is one row.
    schedule, everyone = regrouped(8, 8, bridge_size=2), [random_measure(0, 8, everyone=True)]
    for _ in range(10):
        plan = schedule.next(everyone, cut)
        assert plan.active >= 1
        schedule.learn(plan, 0.0)


@given(seeds, st.integers(60, 300), st.integers(1, 20))
def test_rows_that_are_looked_ahead_to_are_those_of_the_next_blocks_if_nothing_changes(seed, n, machines):
    asked = []

    def regroup(rows, n_blocks):
        asked.append((rows, n_blocks))
        return cut(rows, n_blocks)

    schedule = RegroupedSchedule(rows_of(n, 6), 10, True, TOL, np.random.default_rng(seed), machines=machines)
    everyone = [random_measure(seed, n)]
    kinds = [schedule.next(everyone, regroup).kind for _ in range(2)]
    rows, n_blocks = schedule.ahead(everyone)
    assert [*kinds, schedule.next(everyone, regroup).kind] == ["regrouped", "bridge", "regrouped"]
    np.testing.assert_array_equal(rows, asked[-1][0])
    assert n_blocks == asked[-1][1]


def test_fixed_blocks_need_no_look_ahead():
    assert FixedSchedule(rows_of(20, 4), 10, True, TOL).ahead([random_measure(0, 20)]) is None


# ------------------------------------------------------------------------------------------------------ bridges


@given(seeds, st.integers(2, 150), st.integers(2, 60))
def test_bridge_has_no_duplicates_and_no_more_rows_than_asked(seed, n, size):
    wishes = Wishes.of([random_measure(seed, n)], TOL)
    rows = bridge_rows(wishes, size)
    assert len(np.unique(rows)) == len(rows)
    assert 1 <= len(rows) <= size
    assert rows.min() >= 0
    assert rows.max() < n


@given(seeds, st.integers(2, 150), st.integers(2, 60))
def test_bridge_holds_the_worst_of_both_directions(seed, n, size):
    wishes = Wishes.of([random_measure(seed, n)], TOL)
    rows, half = bridge_rows(wishes, size), size // 2
    for wish in (wishes.upward, wishes.downward):
        worst = np.argsort(-wish)[:half]
        assert np.isin(worst[wish[worst] > 0], rows).all()


@given(seeds, st.integers(2, 150), st.integers(2, 60))
def test_bridge_is_filled_with_free_variables(seed, n, size):
    wishes = Wishes.of([random_measure(seed, n)], TOL)
    rows = bridge_rows(wishes, size)
    left_out = np.setdiff1d(np.flatnonzero(wishes.free), rows)
    if len(rows) < size:
        assert len(left_out) == 0
    filled = rows[wishes.violation[rows] <= 0]
    assert wishes.free[filled].all()


def test_bridge_of_a_nearly_converged_problem_holds_everything_that_can_move():
    n = 100
    upward, downward = np.full(n, -np.inf), np.full(n, -0.5)
    free, violators = np.arange(10, 30), np.arange(5)
    upward[free], downward[free] = 1e-5, -1e-5
    upward[violators] = 0.1
    rows = bridge_rows(Wishes.of([measure(upward, downward + 0.0)], 1e-9), 60)
    np.testing.assert_array_equal(rows, np.concatenate((violators, free)))


# ------------------------------------------------------------------------------------------------------ samples


@given(seeds, st.integers(4, 150), st.integers(1, 60))
def test_sample_has_no_duplicates_and_stays_among_the_given_rows(seed, n, count):
    wishes = Wishes.of([random_measure(seed, n)], TOL)
    rows = wishes.active_rows()
    chosen = sampled_rows(wishes, rows, count, np.random.default_rng(seed))
    assert len(np.unique(chosen)) == len(chosen)
    assert np.isin(chosen, rows).all()
    assert len(chosen) == min(count, len(rows))


def test_sample_is_half_upward_and_half_downward_movers():
    n = 400
    upward = np.where(np.arange(n) < 300, 1.0, -1.0)
    wishes = Wishes.of([measure(upward, -upward)], TOL)
    chosen = sampled_rows(wishes, np.arange(n), 100, np.random.default_rng(0))
    assert np.sum(chosen < 300) == 50
    assert np.sum(chosen >= 300) == 50


def test_sample_gives_what_one_direction_leaves_over_to_the_other():
    n = 400
    upward = np.where(np.arange(n) < 10, 1.0, -1.0)
    wishes = Wishes.of([measure(upward, -upward)], TOL)
    chosen = sampled_rows(wishes, np.arange(n), 100, np.random.default_rng(0))
    assert np.sum(chosen < 10) == 10
    assert np.sum(chosen >= 10) == 90


def test_sample_prefers_large_violations_without_leaving_small_ones_out():
    n = 2000
    upward = np.where(np.arange(n) % 4 == 0, 1.0, 0.01)  # a quarter violates a hundred times as much
    upward[n // 2 :] *= -1
    wishes = Wishes.of([measure(upward, -upward)], TOL)
    chosen = sampled_rows(wishes, np.arange(n), 200, np.random.default_rng(0))
    large = np.mean(chosen % 4 == 0)
    # Drawn with the root of the violation: weights 10 to 1, so 10 / (10 + 3) = 77 % at first.
    assert 0.65 < large < 0.85


def test_sample_repeats_with_the_same_generator():
    wishes = Wishes.of([random_measure(0, 200)], TOL)
    draws = [sampled_rows(wishes, wishes.active_rows(), 50, np.random.default_rng(s)) for s in (1, 1, 2)]
    np.testing.assert_array_equal(draws[0], draws[1])
    assert not np.array_equal(draws[0], draws[2])


def test_the_blocks_whose_worst_pair_violates_most_come_first():
    upward, downward = np.full(8, -np.inf), np.full(8, -np.inf)
    upward[[0, 2, 4, 6]], downward[[1, 3, 5, 7]] = (0.1, 2.0, 9.0, 1.0), (0.2, 3.0, -8.0, 1.0)
    plan = Plan("regrouped", rows_of(8, 4), [0], True).hardest_first([measure(upward, downward)])
    assert plan.order == [1, 3, 2, 0]
    assert [len(block) for block in plan.blocks] == [2, 2, 2, 2]


def test_of_equally_violating_blocks_the_one_with_more_pairs_comes_first():
    label = np.array([1, -1, -1, -1, 1, 1, -1, -1, 1, 1, 1, 1])
    start = measure(np.where(label > 0, 1.0, -np.inf), np.where(label < 0, 1.0, -np.inf))
    plan = Plan("regrouped", rows_of(12, 3), [0], True)
    assert plan.hardest_first([start]).order == [1, 0, 2]


def test_a_block_is_as_hard_as_for_the_outputs_that_it_is_for():
    calm, wild = measure([0.0, 0.0, 0.1, 0.1], [0.1] * 4), measure([9.0] * 4, [9.0] * 4)
    plan = Plan("regrouped", rows_of(4, 2), [0, 1], True)
    shared = plan.hardest_first([calm, wild])
    apart = replace(plan, of_block=[(1,), (0,)]).hardest_first([calm, wild])
    assert (shared.order, apart.order) == ([1, 0], [0, 1])


@given(seeds, st.integers(4, 60), st.integers(1, 9))
def test_every_block_has_its_turn(seed, n, k):
    plan = Plan("regrouped", rows_of(n, min(n, k)), [0], True).hardest_first([random_measure(seed, n)])
    assert sorted(plan.order) == list(range(len(plan.blocks)))


def test_active_counts_the_rows_of_all_blocks():
    assert Plan("regrouped", rows_of(10, 3), [0], True).active == 10


@pytest.mark.parametrize(
    ("blocks", "machines", "expected"),
    [
        (19, 1, 19),
        (19, 2, 20),
        (19, 4, 20),
        (19, 8, 24),
        (19, 16, 24),
        (40, 16, 48),
        (13, 16, 24),
        (12, 16, 16),
        (3, 16, 3),
        (1, 2, 2),
        (2, 4, 4),
    ],
)
def test_where_many_machines_would_solve_one_block_each_there_are_more(blocks, machines, expected):
    assert for_unequal(blocks, machines) == expected
