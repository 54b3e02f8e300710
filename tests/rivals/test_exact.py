"""The rivals that solve the same problem reach its optimum, by scikit-learn's SVC and by SciPy."""

import numpy as np
import pytest

from benchmarks.rivals import DCSVM, LIBSVM, CascadeSVM, Parablock, workshop
from benchmarks.rivals.ours import ALGORITHM_1
from parablock import KernelSVC
from tests.rivals.conftest import GAMMA, C

SOLVERS = {
    "DCSVM": DCSVM(C, GAMMA, levels=2, n_jobs=1),
    "DCSVM, kernel k-means": DCSVM(C, GAMMA, levels=2, kernel_space=True, n_jobs=1),
    "CascadeSVM": CascadeSVM(C, GAMMA, parts=4, n_jobs=1),
    "Parablock": Parablock(C, GAMMA, n_jobs=1, options={"n_blocks": 4}),
}


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("working_set", [4096, 100], ids=["one block", "working sets"])
def test_reaches_the_optimum(name, intercept, working_set, small, monkeypatch):
    monkeypatch.setattr(workshop, "WORKING_SET", working_set)
    solver = SOLVERS[name]
    monkeypatch.setattr(solver, "fit_intercept", intercept)
    moments = []
    solver.fit(small.X, small.y, watch=moments.append)
    losses = [small.loss(moment.model, intercept) for moment in moments]
    assert losses[-1] == pytest.approx(0, abs=1e-4)
    assert losses[0] > 1e-3 or len(losses) == 1  # it was not there at once
    if intercept:
        difference = solver.decision_function(small.X_test) - small.exact.decision_function(small.X_test)
        assert np.abs(difference).max() < 0.02


def test_libsvm_is_scikit_learns(small):
    solver = LIBSVM(C, GAMMA).fit(small.X, small.y)
    assert small.loss(solver.model_, intercept=True) == pytest.approx(0, abs=1e-4)
    ours = KernelSVC(C, gamma=GAMMA, random_state=0, n_jobs=1).fit(small.X, small.y)
    assert small.objective(solver.model_) == pytest.approx(ours.dual_objective_, rel=1e-4)


def test_dcsvm_gets_better_level_by_level(small):
    moments = []
    solver = DCSVM(C, GAMMA, levels=3, n_jobs=1).fit(small.X, small.y, watch=moments.append)
    losses = [small.loss(moment.model) for moment in moments]
    assert losses == sorted(
        losses, reverse=True
    )  # the clusters of a level need not hold those below, but here it helps
    early = DCSVM(C, GAMMA, levels=3, early=2, n_jobs=1).fit(small.X, small.y)
    # The same clusters in the same order: early prediction is that moment of the whole.
    assert np.array_equal(early.model_.coef, moments[1].model.coef)
    assert np.array_equal(early.decision_function(small.X_test), moments[1].model.decision(small.X_test))
    assert solver.score(small.X_test, small.y_test) >= early.score(small.X_test, small.y_test) - 0.02


def test_cascade_needs_its_feedback(small):
    once = CascadeSVM(C, GAMMA, parts=4, loops=1, n_jobs=1).fit(small.X, small.y)
    whole = CascadeSVM(C, GAMMA, parts=4, n_jobs=1).fit(small.X, small.y)
    assert once.loops_ == 1
    assert 1 < whole.loops_ < whole.loops
    assert small.loss(once.model_) > small.loss(whole.model_)


def test_every_iteration_of_ours_is_a_moment(small):
    options = {**ALGORITHM_1, "n_blocks": 6, "max_iter": 5}
    moments = []
    solver = Parablock(C, GAMMA, n_jobs=1, options=options).fit(small.X, small.y, watch=moments.append)
    history = solver.estimator_.history_
    assert len(moments) == len(history) == 5
    for moment, record in zip(moments, history):
        assert moment.model.objective == pytest.approx(record.objective)
        assert -small.objective(moment.model) == pytest.approx(record.objective, rel=1e-6)
    assert [moment.seconds for moment in moments[:-1]] == [record.seconds for record in history[:-1]]


@pytest.mark.parametrize("prediction", ["global", "local"])
def test_a_moment_predicts_as_a_fit_that_ended_there(prediction, small):
    def fit(iterations):
        moments = []
        options = {**ALGORITHM_1, "n_blocks": 6, "max_iter": iterations}
        Parablock(C, GAMMA, n_jobs=1, prediction=prediction, options=options).fit(small.X, small.y, moments.append)
        return [moment.model.decision(small.X_test) for moment in moments]

    np.testing.assert_allclose(fit(4)[2], fit(3)[-1], rtol=1e-6, atol=1e-6)
