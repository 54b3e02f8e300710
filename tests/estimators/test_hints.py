"""Errors tell users of other libraries what their parameters are called here."""

import inspect
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import GridSearchCV

from parablock import (
    KernelLogisticRegression,
    KernelLogisticRegressionCV,
    KernelRidge,
    KernelSVC,
    KernelSVCCV,
    KernelSVR,
    KernelSVRCV,
)
from tests.small_problems import features, targets

X, Y = features(), targets("labels")


@pytest.mark.parametrize(
    ("kind", "parameters", "hint"),
    [
        (KernelSVC, {"probability": True}, "KernelLogisticRegression is trained for probabilities"),
        (KernelSVC, {"cache_size": 200}, "memory_limit='200MB'"),
        (KernelSVC, {"shrinking": False}, "rest by themselves"),
        (KernelSVC, {"decision_function_shape": "ovo"}, "one column a class"),
        (KernelSVC, {"break_ties": True}, "largest decision"),
        (KernelSVC, {"nu": 0.5}, "not offered"),
        (KernelRidge, {"alpha": 1.0}, r"C=1 / \(2 \* alpha\)"),
        (KernelRidge, {"kernel_params": {}}, "gamma, degree and coef0 by name"),
        (KernelSVCCV, {"C": 1.0}, "values to try as Cs"),
        (KernelSVRCV, {"gamma": 1.0}, "values to try as gammas"),
        (KernelSVCCV, {"probability": True}, "KernelLogisticRegression"),
    ],
)
def test_a_parameter_of_another_library_gets_a_hint(kind, parameters, hint):
    (name,) = parameters
    with pytest.raises(TypeError, match=rf"unexpected keyword argument '{name}'\. .*{hint}"):
        kind(**parameters)
    with pytest.raises(ValueError, match=rf"Invalid parameter '{name}' for estimator {kind.__name__}.*{hint}"):
        kind().set_params(**parameters)


def test_other_mistakes_are_told_as_python_does():
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'gama'$|Did you mean 'gamma'"):
        KernelSVC(gama=1.0)
    with pytest.raises(TypeError, match="positional argument"):
        KernelSVC(1.0, "hinge")
    with pytest.raises(ValueError, match=r"Invalid parameter 'gama'.*\]\.$"):
        KernelSVC().set_params(gama=1.0)


@pytest.mark.parametrize(
    ("model", "hint"),
    [
        (KernelSVC(max_iter=-1), r"\[1, inf\). Got -1 instead. .*outer iterations"),
        (KernelSVCCV(max_iter=-1), r"\[1, inf\). Got -1 instead. .*outer iterations"),
        (KernelSVC(n_jobs=0), "Got 0 instead. .*None and -1 mean all cores"),
        (KernelSVC(engine="dask"), r"Got 'dask' instead. .*engine=parablock.engines.DaskEngine\(\)"),
        (KernelSVC(device="gpu"), "Got 'gpu' instead. device='cuda'"),
        (KernelSVC(device="cuda:1"), "Got 'cuda:1' instead. .*CUDA_VISIBLE_DEVICES"),
        (KernelSVC(loss="log_loss"), "Got 'log_loss' instead. .*KernelLogisticRegression"),
    ],
)
def test_a_value_of_another_library_gets_a_hint(model, hint):
    with pytest.raises(ValueError, match=hint):
        model.fit(X, Y)


def test_other_values_get_no_hint():
    with pytest.raises(ValueError, match=r"Got 0 instead\.$"):
        KernelSVC(max_iter=0).fit(X, Y)
    with pytest.raises(ValueError, match=r"Got 'carrier pigeon' instead\.$"):
        KernelSVC(engine="carrier pigeon").fit(X, Y)


@pytest.mark.parametrize("name", ["predict_proba", "predict_log_proba"])
@pytest.mark.parametrize("model", [KernelSVC(), KernelSVCCV(Cs=[1.0], gammas=[1.0], cv=2)], ids=["one", "searched"])
def test_an_svc_has_no_probabilities_and_says_who_has(model, name):
    for each in (model, clone(model).fit(X, Y)):
        assert not hasattr(each, name)
        with pytest.raises(AttributeError, match=f"no attribute '{name}'. KernelLogisticRegression is trained"):
            getattr(each, name)
    assert not hasattr(type(model), name)
    assert hasattr(KernelLogisticRegression(), name)
    assert hasattr(KernelLogisticRegressionCV(), name)


def test_the_ways_to_probabilities_that_the_hint_names():
    for model in (KernelLogisticRegression(), CalibratedClassifierCV(KernelSVC(), cv=3)):
        assert model.fit(X, Y).predict_proba(X).sum(axis=1) == pytest.approx(1.0)


def test_a_score_by_probabilities_fails_as_with_an_svc():
    with pytest.raises(AttributeError, match="KernelSVC has none of the following attributes: predict_proba"):
        GridSearchCV(KernelSVC(), {"C": [1.0]}, scoring="neg_log_loss", error_score="raise", cv=2).fit(X, Y)


def test_negative_weights_are_refused_with_the_way_to_leave_rows_out():
    weight = np.where(np.arange(len(Y)) % 3 == 0, -1.0, 1.0)
    with pytest.raises(ValueError, match=r"Negative values in sample_weight.*np.maximum\(sample_weight, 0\)"):
        KernelSVC().fit(X, Y, sample_weight=weight)
    assert not np.any(np.isin(KernelSVC().fit(X, Y, np.maximum(weight, 0)).support_, np.flatnonzero(weight < 0)))


def test_a_class_of_ones_own_may_have_any_parameter():
    class Calibrated(KernelSVC):
        def __init__(self, C=1.0, *, probability=False):
            super().__init__(C)
            self.probability = probability

        def predict_proba(self, X):
            return np.ones((len(X), 2))

    model = Calibrated(probability=True)
    assert model.probability
    assert model.predict_proba(X).shape == (len(X), 2)
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'cache_size'\. cache_size=200 is memory_limit"):
        Calibrated(cache_size=100)


@pytest.mark.parametrize("kind", [KernelSVC, KernelRidge, KernelSVR, KernelSVCCV])
def test_signatures_and_copies_are_as_without_hints(kind):
    first = next(iter(inspect.signature(kind).parameters))
    assert first == ("Cs" if kind is KernelSVCCV else "C")
    assert set(inspect.signature(kind).parameters) == set(kind().get_params())
    assert pickle.loads(pickle.dumps(kind())).get_params() == clone(kind()).get_params() == kind().get_params()
