"""Callbacks of searches: every C and gamma is a fit to them, and so is the last one on all rows."""

import json
import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from parablock import KernelLogisticRegressionCV, KernelSVCCV, KernelSVRCV
from parablock.callbacks import Callback, EarlyStopping, JSONLog, ProgressBar, TimeLimit, ValidationScore
from tests.callbacks.small_fits import Recorder, moons
from tests.small_problems import features, targets

X, Y = moons()
GRID = {"Cs": [1.0, 10.0], "gammas": [0.5, 2.0], "cv": 3, "random_state": 0, "n_jobs": 1}


class Notes(Callback):
    """The parameters of every fit, and how often it was heard of."""

    def __init__(self, stop=None):
        self.fits, self.stop = [], stop

    def started(self, run):
        self.fits.append({"C": run.estimator.C, "gamma": run.estimator.gamma, "iterations": 0, "shape": run.shape})

    def iterated(self, run):
        self.fits[-1]["iterations"] += 1
        self.fits[-1]["partition"] = run.partition
        return self.stop is not None and run.stop(self.stop)

    def ended(self, run):
        self.fits[-1]["reason"] = run.estimator.stop_reason_


def test_every_candidate_and_the_last_fit_are_heard_of():
    notes = Notes()
    model = KernelSVCCV(**GRID).set_callbacks(notes).fit(X, Y)
    tried = [(fit["C"], fit["gamma"]) for fit in notes.fits]
    assert sorted(tried[:-1]) == sorted((C, gamma) for C in GRID["Cs"] for gamma in GRID["gammas"])
    assert tried[-1] == (model.best_params_["C"], model.best_params_["gamma"])
    assert {fit["shape"] for fit in notes.fits} == {X.shape}
    assert {fit["reason"] for fit in notes.fits} == {"converged"}
    assert sum(fit["iterations"] for fit in notes.fits[:-1]) == model.n_iter_
    assert notes.fits[-1]["iterations"] == model.best_estimator_.n_iter_
    assert all(fit["partition"] is not None for fit in notes.fits)


@pytest.mark.parametrize(
    ("kind", "y"),
    [(KernelSVCCV, Y), (KernelLogisticRegressionCV, np.arange(len(Y)) % 3), (KernelSVRCV, X[:, 0])],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_the_result_is_the_same_with_callbacks_as_without(kind, y):
    plain, watched = (kind(**GRID).set_callbacks(*callbacks).fit(X, y) for callbacks in ((), (Notes(),)))
    for name, scores in plain.cv_results_.items():
        if name.endswith("test_score"):
            assert np.array_equal(scores, watched.cv_results_[name])
    assert np.array_equal(plain.predict(X), watched.predict(X))


def test_hooks_are_called_in_the_order_of_the_protocol():
    recorder = Recorder()
    KernelSVCCV(**{**GRID, "gammas": [1.0], "Cs": [1.0]}).set_callbacks(recorder).fit(X, Y)
    hooks = [hook for hook, _ in recorder.heard]
    assert hooks.count("setup") == hooks.count("teardown") == 2
    assert hooks[0] == "setup"
    assert hooks[-1] == "teardown"


def test_a_callback_ends_every_fit_and_the_search_says_so():
    notes = Notes(stop="Enough")
    with pytest.warns(ConvergenceWarning) as caught:
        model = KernelSVCCV(**GRID, n_blocks=4, partition="random", tol=1e-6).set_callbacks(notes).fit(X, Y)
    said = [str(one.message) for one in caught]
    assert any("4 of 4 candidates did not converge" in text for text in said)
    assert any(text.startswith("Enough after 1 outer iterations") for text in said)
    assert {fit["iterations"] for fit in notes.fits} == {1}
    assert model.best_estimator_.stop_reason_ == "stopped"


def test_one_that_ends_fits_without_a_word_gives_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        KernelSVCCV(**GRID, n_blocks=4, tol=1e-6).set_callbacks(Notes(stop="")).fit(X, Y)


def test_the_library_s_own_watch_a_search(tmp_path):
    path = tmp_path / "search.jsonl"
    KernelSVCCV(**GRID).set_callbacks(ProgressBar(), TimeLimit(600), JSONLog(path)).fit(X, Y)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    ends = [line for line in lines if line["event"] == "end"]
    assert len({line["run"] for line in lines}) == len(ends) == 5
    assert {line["reason"] for line in ends} == {"converged"}
    starts = [line["settings"] for line in lines if line["event"] == "start"]
    assert [start["C"] for start in starts[:4]] == [1.0, 10.0, 1.0, 10.0]


@pytest.mark.parametrize("kind", [ValidationScore, EarlyStopping])
def test_those_that_need_a_model_are_refused(kind):
    with pytest.raises(ValueError, match=r"trains all folds as one problem.*GridSearchCV"):
        KernelSVCCV(**GRID).set_callbacks(kind(X, Y)).fit(X, Y)


def test_an_error_in_a_callback_ends_the_search():
    class Broken(Callback):
        def iterated(self, run):
            raise OSError("no more")

    with pytest.raises(OSError, match="no more"):
        KernelSVCCV(**GRID).set_callbacks(Broken()).fit(X, Y)


def test_clones_share_callbacks_pickles_keep_them_and_none_removes_them():
    notes = Notes()
    model = KernelSVCCV(**GRID).set_callbacks(notes)
    assert clone(model)._skl_callbacks == [notes]
    assert len(pickle.loads(pickle.dumps(model))._skl_callbacks) == 1
    model.set_callbacks().fit(X, Y)
    assert notes.fits == []
    with pytest.raises(TypeError, match="must be instances"):
        model.set_callbacks(Notes)


def test_kernels_without_gamma_and_precomputed_ones():
    notes = Notes()
    KernelSVCCV(Cs=[1.0], kernel="linear", cv=2).set_callbacks(notes).fit(features(), targets("labels"))
    assert [fit["C"] for fit in notes.fits] == [1.0, 1.0]
