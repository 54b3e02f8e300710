"""Rows of weight zero are in the problem but take no part: what folds as outputs rest upon."""

import numpy as np
import pytest

from parablock.kernels import RBF
from parablock.problem import Problem
from parablock.settings import Settings
from parablock.training import prepared, train
from tests.oracle import CLASSIFICATION, LOSSES, random_targets, rbf

N, GAMMA = 90, 0.7
every_loss = pytest.mark.parametrize("name", LOSSES)
both_intercepts = pytest.mark.parametrize("intercept", [True, False], ids=["intercept", "no intercept"])
SETTINGS = Settings(tol=1e-7, n_blocks=4, n_jobs=1)


def rows(name, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(N, 3)), random_targets(name, rng, N), rng.uniform(0.5, 2.0, N)


def left_out(outputs=3):
    """Each output leaves out another third of the rows."""
    return np.arange(N) % outputs == np.arange(outputs)[:, None]


def solve(X, problem, settings=SETTINGS):
    return train(X, RBF(GAMMA), problem, settings, np.random.default_rng(0)).solution.state


@every_loss
def test_functions_of_a_loss_at_weight_zero(name):
    loss = LOSSES[name]
    for target in (-1.0, 1.0) if name in CLASSIFICATION else (-0.7, 0.0, 2.0):
        assert loss.bounds(target, 0.0, loss.parameter) == (0.0, 0.0)
        assert loss.slopes(0.0, target, 0.0, loss.parameter) == (-np.inf, np.inf, 0.0)
        assert loss.dual(0.0, target, 0.0, loss.parameter) == 0.0
        assert loss.primal(3.0, target, 0.0, loss.parameter) == 0.0


@pytest.mark.parametrize("n_blocks", [1, 4])
@both_intercepts
@every_loss
def test_an_output_is_trained_as_if_its_left_out_rows_were_not_there(name, intercept, n_blocks):
    X, target, weight = rows(name)
    out = left_out()
    settings = Settings(tol=1e-7, n_blocks=n_blocks, n_jobs=1)
    problem = Problem.build(LOSSES[name], np.tile(target, (3, 1)), np.where(out, 0.0, weight), intercept)
    together = solve(X, problem, settings)
    assert np.all(together.coef[out] == 0)
    K = rbf(X, X, GAMMA)
    for output in range(3):
        inside = ~out[output]
        alone = solve(X[inside], Problem.build(LOSSES[name], target[inside], weight[inside], intercept))
        measure = together.measures[output]
        assert measure.objective == pytest.approx(alone.objective, rel=1e-8)
        assert measure.violation <= 1e-7
        assert measure.duality_gap == pytest.approx(0, abs=1e-5)
        # The decisions of the rows that were left out are those of the model of the others.
        predicted = K[:, inside] @ alone.coef[0] + alone.measures[0].bias
        assert together.decision[output] + measure.bias == pytest.approx(predicted, abs=1e-4)


def test_problems_over_one_ground_are_solved_as_alone_and_share_kernel_values():
    X, target, weight = rows("hinge")
    problems = [Problem.build(LOSSES["hinge"], target, C * weight, True) for C in (0.5, 2.0, 8.0)]
    alone = [train(X, RBF(GAMMA), problem, SETTINGS, np.random.default_rng(0)).solution for problem in problems]
    with prepared(X, RBF(GAMMA), SETTINGS, np.random.default_rng(0)) as ground:
        coef = None
        for problem, expected in zip(problems, alone, strict=True):
            found = ground.train(problem, np.random.default_rng(0), coef, rest=False).solution
            coef = found.state.coef
            assert found.state.objective == pytest.approx(expected.state.objective, rel=1e-8)
    assert found.kernel_evaluations < 0.6 * sum(solution.kernel_evaluations for solution in alone)
