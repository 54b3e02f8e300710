"""The theorem, observed: any partition converges, at a linear rate, and the objective never rises."""

from functools import lru_cache

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from parablock import BlockSolver
from tests.small_problems import CASES, N, full_coef, optimum

every_loss = pytest.mark.parametrize("loss", CASES)
every_block_solver = pytest.mark.parametrize("block_solver", ["greedy", "random", "cyclic"])
both_schedules = pytest.mark.parametrize("regroup", [True, False], ids=["regrouped", "fixed"])
with_and_without_intercept = pytest.mark.parametrize("fit_intercept", [True, False], ids=["intercept", "no intercept"])

# The paper's Algorithm 1 as the theorem has it.
ALGORITHM_1 = {"regroup": False, "fit_intercept": False}


def objectives(model):
    return np.array([record.objective for record in model.history_])


def errors(case, model):
    """Objective minus optimum after every iteration."""
    return objectives(model) - optimum(case.name, model.fit_intercept)


def assert_solved(case, model):
    least = optimum(case.name, model.fit_intercept)
    assert abs(case.objective(full_coef(model)[0]) - least) <= 1e-6 * abs(least)
    assert model.violation_ <= model.tol


# ---------------------------------------------------------------------------------------------- any partition


NO_SHRINKING = [Phase.explicit, Phase.generate]  # no partition is simpler than another, and each costs a fit


@st.composite
def partitions(draw):
    """Block labels of all rows: blocks of any number and of very different sizes."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    share = rng.dirichlet(np.full(draw(st.integers(2, 8)), draw(st.sampled_from((0.3, 1.0, 30.0)))))
    return rng.choice(len(share), size=N, p=share)


@every_loss
@given(labels=partitions())
@settings(max_examples=5, phases=NO_SHRINKING)
def test_any_partition_converges(loss, labels):
    case = CASES[loss]
    assert_solved(case, case.fit(**ALGORITHM_1, tol=1e-4, partition=labels))


@given(labels=partitions(), loss=st.sampled_from(sorted(CASES)), regroup=st.booleans())
@settings(max_examples=15, phases=NO_SHRINKING)
def test_any_partition_converges_with_an_intercept(labels, loss, regroup):
    case = CASES[loss]
    assert_solved(case, case.fit(regroup=regroup, tol=1e-4, partition=labels))


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_blocks_of_one_row_converge(loss):
    case = CASES[loss]
    assert_solved(case, case.fit(**ALGORITHM_1, tol=1e-4, partition=np.arange(N)))


@every_loss
def test_a_block_of_all_rows_is_solved_in_one_iteration(loss):
    case = CASES[loss]
    model = case.fit(**ALGORITHM_1, tol=1e-6, n_blocks=1)
    assert_solved(case, model)
    assert model.n_iter_ == 1
    assert model.history_[0].step == pytest.approx(1.0)


# -------------------------------------------------------------------------------------- objective, violation, gap


@lru_cache
def fit_of_six_random_blocks(loss, block_solver, regroup, fit_intercept):
    settings = {"tol": 1e-4, "n_blocks": 6, "partition": "random", "block_solver": block_solver}
    return CASES[loss].fit(regroup=regroup, fit_intercept=fit_intercept, **settings)


@with_and_without_intercept
@both_schedules
@every_block_solver
@every_loss
def test_objective_never_rises(loss, block_solver, regroup, fit_intercept):
    model = fit_of_six_random_blocks(loss, block_solver, regroup, fit_intercept)
    values = np.append(0.0, objectives(model))  # f(0) = 0 for every loss
    assert len(values) > 3
    assert np.all(np.diff(values) <= 1e-13 * np.abs(values[1:]))


@with_and_without_intercept
@both_schedules
@every_block_solver
@every_loss
def test_duality_gap_bounds_the_distance_to_the_optimum(loss, block_solver, regroup, fit_intercept):
    """In every iteration, not only at the end."""
    model = fit_of_six_random_blocks(loss, block_solver, regroup, fit_intercept)
    gaps = np.array([record.duality_gap for record in model.history_])
    assert np.all(gaps >= 0)
    assert np.all(gaps >= errors(CASES[loss], model) - 1e-10 * np.abs(objectives(model)))
    assert model.duality_gap_ == gaps[-1]


@with_and_without_intercept
@every_loss
def test_duality_gap_goes_to_zero_with_the_tolerance(loss, fit_intercept):
    case = CASES[loss]
    tolerances = (1e-1, 1e-3, 1e-5)
    # A solver that does not overshoot the tolerance by far, as the default does on so few rows.
    fits = [
        case.fit(fit_intercept=fit_intercept, tol=tol, n_blocks=6, block_solver=BlockSolver("cyclic"))
        for tol in tolerances
    ]
    gaps = [fit.duality_gap_ for fit in fits]
    # No sample adds more than its violation times the width of its box, or the like of it.
    for tol, gap in zip(tolerances, gaps):
        assert 0 <= gap <= 10 * N * tol
    assert gaps[2] < 1e-2 * gaps[0]


@with_and_without_intercept
@every_loss
def test_training_ends_as_soon_as_the_violation_is_below_the_tolerance(loss, fit_intercept):
    model = CASES[loss].fit(fit_intercept=fit_intercept, tol=1e-3, n_blocks=6)
    violations = [record.violation for record in model.history_]
    assert violations[-1] <= 1e-3
    assert all(violation > 1e-3 for violation in violations[:-1])


# -------------------------------------------------------------------------------------------------- linear rate


@every_block_solver
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic", "squared_error"])
def test_error_falls_linearly_with_the_fixed_partition(loss, block_solver):
    """On a logarithmic scale the error is bounded by a falling line, and close to one."""
    case = CASES[loss]
    model = case.fit(**ALGORITHM_1, tol=1e-7, n_blocks=4, partition="random", block_solver=block_solver)
    error = errors(case, model) / abs(optimum(loss, False))
    error = error[: np.argmax(error < 1e-10)] if np.any(error < 1e-10) else error
    assert error[-1] < 1e-6
    assert len(error) >= 10

    iterations = np.arange(len(error))
    slope, start = np.polyfit(iterations, np.log(error), 1)
    residual = np.log(error) - (start + slope * iterations)
    assert slope < -0.005
    assert 1 - residual.var() / np.log(error).var() > 0.9
    # Errors that fell like a power of the iteration would halve at most a fixed number of times here.
    half = np.arange(len(error) // 4, len(error) // 2)
    assert np.all(error[2 * half] <= np.exp(0.5 * slope * half) * error[half])


# --------------------------------------------------------------------------------------------- inexact subproblems


@pytest.mark.parametrize("fit_intercept", [True, False], ids=["intercept", "no intercept"])
@pytest.mark.parametrize("choice", ["greedy", "random"])
@every_loss
def test_one_update_a_block_still_converges(loss, choice, fit_intercept):
    case = CASES[loss]
    model = case.fit(
        regroup=False,
        fit_intercept=fit_intercept,
        tol=1e-2,
        max_iter=20_000,
        n_blocks=4,
        block_solver=BlockSolver(choice, max_updates=1),
    )
    assert all(record.updates <= record.blocks for record in model.history_)
    assert model.violation_ <= model.tol
    assert objectives(model)[-1] == pytest.approx(optimum(loss, fit_intercept), rel=1e-3)


@every_loss
def test_one_epoch_a_block_of_the_cyclic_solver_converges(loss):
    case = CASES[loss]
    epoch = BlockSolver("cyclic", max_updates=N // 4)
    assert_solved(case, case.fit(**ALGORITHM_1, tol=1e-4, n_blocks=4, block_solver=epoch))


# ------------------------------------------------------------------------------------------------------ schedules


@every_block_solver
def test_algorithm_1_solves_the_same_blocks_in_every_iteration(block_solver):
    model = CASES["hinge"].fit(**ALGORITHM_1, tol=1e-4, n_blocks=4, block_solver=block_solver)
    assert {record.kind for record in model.history_} == {"partition"}
    assert {record.blocks for record in model.history_} == {4}
    assert {record.active for record in model.history_} == {N}


def test_fixed_partition_alternates_with_bridges_where_there_is_an_intercept():
    model = CASES["squared_hinge"].fit(regroup=False, tol=1e-6, n_blocks=4)
    kinds = [record.kind for record in model.history_]
    assert set(kinds[::2]) == {"partition"}
    assert set(kinds[1::2]) == {"bridge"}
    assert {record.blocks for record in model.history_[1::2]} == {1}


def test_regrouped_blocks_shrink_to_what_can_still_move():
    case = CASES["hinge"]
    model = case.fit(tol=1e-6, n_blocks=6)
    assert "partition" not in {record.kind for record in model.history_}
    assert model.history_[0].active == N
    assert min(record.active for record in model.history_) < N // 2
