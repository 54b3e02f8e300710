"""Fits that end early: out of iterations, or by Ctrl-C. The model is usable, and a warning says how good it is."""

import re
import signal
import subprocess
import sys
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from parablock.engines.local import LocalCrew
from tests.small_problems import CASES

every_estimator = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def fit_with_warning(model, case):
    """The model, fitted, and the text of the one warning that this gave."""
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(case.X, case.y)
    assert len(caught) == 1
    return model, str(caught[0].message)


def assert_tells_how_converged(text, model):
    violation, gap = re.search(r"largest violation is (\S+) \(tol=\S+\) and the duality gap (\S+) of", text).groups()
    assert float(violation) == pytest.approx(model.violation_, rel=1e-2)
    assert float(gap) == pytest.approx(model.history_[-1].relative_gap, rel=1e-2)


@every_estimator
def test_running_out_of_iterations_warns_with_the_violation_reached(case):
    model, text = fit_with_warning(case.model(max_iter=1, n_blocks=4, partition="random"), case)
    assert model.n_iter_ == 1
    assert model.violation_ > model.tol
    assert "max_iter=1 " in text
    assert "Raise max_iter or tol" in text
    assert_tells_how_converged(text, model)


@every_estimator
def test_a_converged_fit_does_not_warn(case):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        case.fit(n_blocks=4)


def test_a_tolerance_below_float32_precision_ends_with_advice():
    case = CASES["squared_error"]
    model = case.model(tol=1e-12, n_blocks=4)
    with pytest.warns(ConvergenceWarning, match="No further progress.*float64") as caught:
        model.fit(case.X.astype(np.float32), case.y)
    assert_tells_how_converged(str(caught[0].message), model)
    assert model.violation_ < 1e-3


@pytest.fixture
def interrupt_at(monkeypatch):
    """A function that makes the given call of one of the engine's operations raise KeyboardInterrupt."""

    def arrange(operation, number):
        original, calls = getattr(LocalCrew, operation), []

        def interrupted(self, *arguments, **keywords):
            calls.append(1)
            if len(calls) == number:
                raise KeyboardInterrupt
            return original(self, *arguments, **keywords)

        monkeypatch.setattr(LocalCrew, operation, interrupted)

    return arrange


@pytest.mark.parametrize("operation", ["product", "solve"])
@every_estimator
def test_ctrl_c_leaves_the_model_of_the_last_finished_iteration(case, operation, interrupt_at, monkeypatch):
    settings = {"n_blocks": 4, "tol": 1e-6, "partition": "random"}
    with pytest.warns(ConvergenceWarning):
        expected = case.fit(**settings, max_iter=2)
    interrupt_at(operation, 3)
    model, text = fit_with_warning(case.model(**settings), case)
    monkeypatch.undo()
    assert text.startswith("Interrupted after 2 outer iterations")
    assert "warm_start=True" in text
    assert_tells_how_converged(text, model)
    assert model.n_iter_ == len(model.history_) == 2
    assert np.array_equal(model.predict(case.X), expected.predict(case.X))


def test_ctrl_c_before_the_first_iteration_leaves_a_model_that_predicts_something(interrupt_at, monkeypatch):
    case = CASES["hinge"]
    interrupt_at("solve", 1)
    model, text = fit_with_warning(case.model(n_blocks=4), case)
    monkeypatch.undo()
    assert text.startswith("Interrupted after 0 outer iterations")
    assert set(model.predict(case.X)) <= {-1, 1}


def test_an_interrupted_fit_can_be_finished(interrupt_at):
    case = CASES["epsilon_insensitive"]
    settings = {"n_blocks": 4, "tol": 1e-6}
    interrupt_at("product", 3)
    model, _ = fit_with_warning(case.model(**settings, warm_start=True), case)
    model.fit(case.X, case.y)
    assert model.predict(case.X) == pytest.approx(case.fit(**settings).predict(case.X), abs=1e-5)


LONG_FIT = """
import sys, warnings
import numpy as np
from parablock import KernelSVC
rng = np.random.default_rng(0)
X = rng.normal(size=(3000, 5))
y = rng.choice([-1, 1], size=3000)
model = KernelSVC(C=1e4, gamma=0.05, tol=1e-9, n_blocks=30, regroup=False, max_iter=1_000_000, verbose=1)
model.set_params(n_jobs=int(sys.argv[1]))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    model.fit(X, y)
print(caught[-1].category.__name__, caught[-1].message)
print("predicts", model.predict(X[:7]).shape, model.n_iter_ == len(model.history_) > 0)
"""


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_real_interrupt_ends_a_long_fit_in_good_order(n_jobs):
    process = subprocess.Popen(
        [sys.executable, "-c", LONG_FIT, str(n_jobs)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        for line in process.stderr:
            if re.match(r"\[parablock\] +2 ", line):  # the second iteration is done: well inside the loop
                process.send_signal(signal.SIGINT)
                break
        output, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 0, errors
    warning, prediction = output.splitlines()
    assert re.match(r"ConvergenceWarning Interrupted after \d+ outer iterations: the largest violation is", warning)
    assert prediction == "predicts (7,) True"
