"""A limit of time: it is kept, and what was reached by then is usable, and can be gone on from."""

import itertools

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from parablock.callbacks import TimeLimit, watching
from tests.callbacks.small_fits import fit_quietly, machine, moons

X, y = moons()


@pytest.fixture
def clock(monkeypatch):
    """A clock on which a second passes whenever someone looks: once at the start, and then once an iteration."""
    monkeypatch.setattr(watching.time, "monotonic", itertools.count().__next__)


@pytest.mark.parametrize(("seconds", "iterations"), [(0.5, 1), (2.9, 2), (3, 3), (4.5, 4)])
def test_ends_before_the_iteration_that_would_be_too_long(clock, seconds, iterations):
    with pytest.warns(ConvergenceWarning) as caught:
        model = machine(tol=1e-9).set_callbacks(TimeLimit(seconds)).fit(X, y)
    (warning,) = caught
    text = str(warning.message)
    assert text.startswith(f"The time limit of {seconds:g} s was reached after {model.n_iter_} outer iterations: the l")
    assert "warm_start=True" in text
    assert (model.n_iter_, model.stop_reason_) == (iterations, "stopped")
    expected = fit_quietly(machine(tol=1e-9, max_iter=iterations), X, y)
    assert np.array_equal(model.predict(X), expected.predict(X))


def test_a_fit_that_ends_in_time_is_not_touched():
    model = machine().set_callbacks(TimeLimit(1000)).fit(X, y)
    assert model.stop_reason_ == "converged"


def test_a_real_clock_ends_a_long_fit():
    points = np.random.default_rng(0).normal(size=(1000, 5))
    noise = np.random.default_rng(1).choice([-1, 1], size=1000)
    model = machine(C=1e4, gamma=0.05, tol=1e-9, n_blocks=30, regroup=False, max_iter=10**6)
    with pytest.warns(ConvergenceWarning, match="The time limit of 0.2 s"):
        model.set_callbacks(TimeLimit(0.2)).fit(points, noise)
    assert model.predict(points).shape == noise.shape


def test_a_warm_start_goes_on(clock):
    model = machine(warm_start=True).set_callbacks(TimeLimit(3))
    fit_quietly(model, X, y)
    model.set_callbacks().fit(X, y)
    assert model.dual_objective_ == pytest.approx(machine().fit(X, y).dual_objective_, rel=1e-6)


def test_a_checkpoint_is_left_to_resume_from(clock, tmp_path):
    model = machine(checkpoint=tmp_path / "run.checkpoint").set_callbacks(TimeLimit(3))
    fit_quietly(model, X, y)
    resumed = machine(checkpoint=tmp_path / "run.checkpoint", resume=True).fit(X, y)
    whole = machine().fit(X, y)
    stopped = len(model.history_)
    assert resumed.history_[:stopped] == model.history_
    assert resumed.history_[stopped].iteration == model.n_iter_ + 1
    assert resumed.stop_reason_ == whole.stop_reason_ == "converged"
    # Both are below the optimum by no more than their gap; how many iterations that takes may depend on rounding.
    gap = max(resumed.duality_gap_, whole.duality_gap_)
    assert resumed.dual_objective_ == pytest.approx(whole.dual_objective_, abs=gap)


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_no_time_at_all_is_refused(seconds):
    with pytest.raises(ValueError, match="seconds must be positive"):
        TimeLimit(seconds)
