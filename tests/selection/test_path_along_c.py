"""Models along C."""

import pickle

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from parablock import KernelSVC
from parablock.engines.local import LocalCrew
from tests.small_problems import CASES, GAMMA, N, features, targets

every_estimator = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
FAST = {"n_jobs": 1, "random_state": 0}


@every_estimator
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_models_are_those_of_separate_fits(case, fit_intercept):
    own = {name: value for name, value in case.model().get_params().items() if name != "C"}
    options = {**own, "tol": 1e-7, "n_blocks": 4, "fit_intercept": fit_intercept}
    Cs = [2.0, 0.1, 30.0]
    models = type(case.estimator).path(case.X, case.y, Cs, **options)
    assert [model.C for model in models] == Cs
    for model in models:
        alone = type(case.estimator)(C=model.C, **options).fit(case.X, case.y)
        assert model.dual_objective_ == pytest.approx(alone.dual_objective_, rel=1e-7)
        assert model.predict(case.X) == pytest.approx(alone.predict(case.X), abs=1e-4)
        assert model.violation_ <= 1e-7


def test_kernel_values_are_shared():
    X, y = features(), targets("labels")
    options = {"gamma": GAMMA, "n_blocks": 4, **FAST}
    models = KernelSVC.path(X, y, [0.5, 1, 2, 4], **options)
    alone = [KernelSVC(C=C, **options).fit(X, y) for C in (0.5, 1, 2, 4)]
    counted = [model.kernel_evaluations_ for model in models]  # from the start of the path
    assert counted == sorted(counted)
    assert counted[-1] < 0.7 * sum(model.kernel_evaluations_ for model in alone)


def test_a_number_of_models():
    models = KernelSVC.path(features(), targets("labels"), 3, **FAST)
    assert [model.C for model in models] == [0.25, 1.0, 4.0]


def test_models_are_ordinary_ones():
    X, y = features(), targets("labels")
    model = KernelSVC.path(X, y, [1.0, 2.0], gamma=GAMMA, **FAST)[1]
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(X), model.predict(X))
    assert "_train" not in vars(model)
    alone = KernelSVC(C=2.0, gamma=GAMMA, **FAST).fit(X, y)
    assert set(vars(model)) == set(vars(alone))
    assert model.fit(X, y).dual_objective_ == pytest.approx(alone.dual_objective_, rel=1e-9)


def test_weights_and_rows_without_any():
    X, y = features(), targets("labels")
    weight = np.where(np.arange(N) % 4, 2.0, 0.0)
    models = KernelSVC.path(X, y, [1.0, 4.0], sample_weight=weight, gamma=GAMMA, tol=1e-7, **FAST)
    for model in models:
        alone = KernelSVC(C=model.C, gamma=GAMMA, tol=1e-7, **FAST).fit(X, y, weight)
        assert model.dual_objective_ == pytest.approx(alone.dual_objective_, rel=1e-7)
        assert np.all(model.support_ % 4)


def test_several_classes():
    X, y = features(), np.arange(N) % 3
    models = KernelSVC.path(X, y, [1.0, 4.0], gamma=GAMMA, tol=1e-7, **FAST)
    alone = KernelSVC(C=4.0, gamma=GAMMA, tol=1e-7, **FAST).fit(X, y)
    assert models[1].decision_function(X) == pytest.approx(alone.decision_function(X), abs=1e-4)


def test_what_does_not_converge_is_told():
    with pytest.warns(ConvergenceWarning, match="Not converged after max_iter=1"):
        KernelSVC.path(features(), targets("labels"), [1000.0], tol=1e-9, n_blocks=4, max_iter=1, **FAST)


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"C": 3.0}, TypeError, "values of C as Cs, not C=3.0"),
        ({"colour": "red"}, TypeError, "colour"),
        ({"Cs": [1.0, -1.0]}, ValueError, "Cs must be how many values"),
        ({"engine": "mpi"}, ValueError, "path trains on this machine alone.*got engine='mpi'"),
        ({"checkpoint": "file"}, ValueError, "path has no checkpoints.*got checkpoint='file'"),
        ({"tol": -1.0}, ValueError, "tol"),
    ],
)
def test_what_cannot_be_done_is_refused(parameters, error, message):
    with pytest.raises(error, match=message):
        KernelSVC.path(features(), targets("labels"), **parameters)


def test_an_interrupt_ends_the_path(monkeypatch):
    def interrupted(self, *arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(LocalCrew, "solve", interrupted)
    with pytest.raises(KeyboardInterrupt):
        KernelSVC.path(features(), targets("labels"), [1.0, 2.0], n_blocks=4, **FAST)
