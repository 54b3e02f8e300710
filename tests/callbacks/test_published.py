"""What a model says of itself holds for all rows, however training has ended: NumPy finds the same by the formulas."""

import signal
import warnings

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning

from benchmarks.exact import values_of
from parablock import KernelSVC, KernelSVR
from parablock.callbacks import Callback, EarlyStopping, TimeLimit

ROWS = 1500


@pytest.fixture(scope="module")
def data():
    return *make_moons(ROWS, noise=0.15, random_state=0), *make_moons(300, noise=0.15, random_state=1)


def machine(**settings):
    return KernelSVC(**{"C": 100, "gamma": 1, "n_blocks": 8, "random_state": 0, "n_jobs": 1, **settings})


def assert_published(model, X, y):
    expected = values_of(model, X, y)  # with the model's own intercept
    assert model.dual_objective_ == pytest.approx(expected.dual, rel=1e-9)
    assert model.duality_gap_ == pytest.approx(expected.primal - expected.dual, rel=1e-6, abs=1e-9 * expected.primal)
    assert model.violation_ == pytest.approx(expected.violation, rel=1e-6, abs=1e-9)
    certificate = model.certify(X, y)
    assert certificate.dual_objective == pytest.approx(model.dual_objective_, rel=1e-9)
    assert certificate.violation == pytest.approx(model.violation_, rel=1e-6, abs=1e-9)


class Best(Callback):
    """Keeps the model of a certain iteration, as a callback may that has an idea of its own of what is best."""

    def __init__(self, iteration, stop):
        self.iteration, self.stop = iteration, stop

    def iterated(self, run):
        if run.record.iteration == self.iteration:
            run.best = run.solution()
        return run.record.iteration >= self.stop and run.stop("")


@pytest.mark.parametrize("settings", [{}, {"fit_intercept": False}, {"regroup": False, "partition": "kmeans"}], ids=str)
@pytest.mark.parametrize(("kept", "stop"), [(1, 3), (2, 4), (3, 3), (2, 100)])
def test_of_the_best_of_several_iterations(data, kept, stop, settings):
    X, y = data[:2]
    model = machine(max_iter=6, **settings).set_callbacks(Best(kept, stop))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    if settings == {}:
        assert min(record.watched for record in model.history_) < ROWS
    assert_published(model, X, y)


def test_of_early_stopping(data):
    X, y, X_valid, y_valid = data
    stopping = EarlyStopping(X_valid, y_valid, patience=2)
    model = machine().set_callbacks(stopping).fit(X, y)
    assert stopping.best_iteration_ < model.n_iter_
    assert min(record.watched for record in model.history_) < ROWS
    assert_published(model, X, y)
    assert model.score(X_valid, y_valid) == stopping.best_score_


def test_of_several_outputs_and_rows_without_weight(data):
    X, X_valid = data[0], data[2]
    Y, Y_valid = np.sin(3 * X[:, :2]), np.sin(3 * X_valid[:, :2])
    weight = (np.arange(ROWS) % 7 > 0).astype(float)
    stopping = EarlyStopping(X_valid, Y_valid, patience=1, min_improvement=1e-3)
    model = KernelSVR(C=3, gamma=2, n_blocks=8, epsilon=0.05, tol=1e-5, random_state=0, n_jobs=1)
    model.set_callbacks(stopping).fit(X, Y, weight)
    expected = values_of(model, X, Y, weight)
    assert model.dual_objective_ == pytest.approx(expected.dual, rel=1e-9)
    assert model.duality_gap_ == pytest.approx(expected.primal - expected.dual, rel=1e-6)
    assert model.violation_ == pytest.approx(expected.violation, rel=1e-6)


class Interrupt(Callback):
    def iterated(self, run):
        if run.record.iteration == 2:
            signal.raise_signal(signal.SIGINT)


class Stop(Callback):
    def iterated(self, run):
        return run.record.iteration >= 2


@pytest.mark.parametrize("end", ["time limit", "callback", "max_iter", "interrupted", "converged"])
def test_of_other_ends(data, end):
    X, y = data[:2]
    callbacks = {"time limit": [TimeLimit(1e-9)], "callback": [Stop()], "interrupted": [Interrupt()]}.get(end, [])
    model = machine(max_iter=2 if end == "max_iter" else 1000).set_callbacks(*callbacks)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    reasons = {"time limit": "stopped", "callback": "stopped", "max_iter": "out of iterations"}
    assert model.stop_reason_ == reasons.get(end, end)
    assert min(record.watched for record in model.history_) < ROWS
    assert_published(model, X, y)
