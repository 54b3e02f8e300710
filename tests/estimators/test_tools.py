"""The estimators inside scikit-learn's tools: Pipeline, GridSearchCV, clone, pickle."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tests.small_problems import CASES, N, rbf

every_estimator = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


@every_estimator
def test_pipeline_equals_its_steps_by_hand(case):
    scaler = StandardScaler().fit(case.X)
    pipeline = make_pipeline(StandardScaler(), case.model()).fit(case.X, case.y)
    by_hand = case.model().fit(scaler.transform(case.X), case.y)
    assert np.array_equal(pipeline.predict(case.X), by_hand.predict(scaler.transform(case.X)))


@pytest.mark.parametrize("case", [CASES["hinge"], CASES["squared_error"]], ids=["classifier", "regressor"])
def test_grid_search_finds_the_parameters_with_the_best_cross_validated_score(case):
    grid = {"C": [1e-3, 1.0], "gamma": [0.3, 30.0]}
    search = GridSearchCV(case.model(), grid, cv=3).fit(case.X, case.y)
    scores = {
        (C, gamma): cross_val_score(case.model(C=C, gamma=gamma), case.X, case.y, cv=3).mean()
        for C in grid["C"]
        for gamma in grid["gamma"]
    }
    assert search.best_score_ == max(scores.values())
    assert scores[tuple(search.best_params_[name] for name in ("C", "gamma"))] == search.best_score_
    assert search.best_score_ > min(scores.values())
    assert search.predict(case.X).shape == (N,)


def test_grid_search_cuts_rows_and_columns_of_a_precomputed_kernel():
    case = CASES["hinge"]
    precomputed = GridSearchCV(case.model(kernel="precomputed"), {"C": [0.1, 1.0]}, cv=3).fit(rbf(case.X), case.y)
    plain = GridSearchCV(case.model(), {"C": [0.1, 1.0]}, cv=3).fit(case.X, case.y)
    assert precomputed.best_score_ == pytest.approx(plain.best_score_)


@every_estimator
def test_clone_is_unfitted_and_has_the_same_parameters(case):
    model = case.model(C=0.7, partition="kmeans", n_blocks=3, memory_limit="1MB").fit(case.X, case.y)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "dual_coef_")
    assert np.array_equal(copy.fit(case.X, case.y).predict(case.X), model.predict(case.X))


LOCAL = {"regroup": False, "prediction": "local", "max_iter": 2}


@pytest.mark.parametrize(
    ("rows_of", "parameters"),
    [
        (np.asarray, {}),
        (sp.csr_matrix, {}),
        (rbf, {"kernel": "precomputed"}),
        (sp.csr_matrix, {"partition": "kmeans", **LOCAL}),
        (np.asarray, {"partition": "kernel_kmeans", **LOCAL}),
    ],
    ids=["global", "global csr", "precomputed", "local by points csr", "local by kernel"],
)
@every_estimator
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_pickled_model_predicts_the_same(case, rows_of, parameters):
    rows = rows_of(case.X)
    model = case.model(n_blocks=4, **parameters).fit(rows, case.y)
    copy = pickle.loads(pickle.dumps(model))
    assert np.array_equal(copy.predict(rows), model.predict(rows))
    assert copy.history_ == model.history_
    copy.fit(rows, case.y)  # and can be trained again
    assert np.array_equal(copy.dual_coef_, model.dual_coef_)


@every_estimator
def test_pickled_model_holds_the_support_vectors_but_not_the_training_data_or_compiled_code(case):
    model = case.fit()
    assert len(pickle.dumps(model)) < 4 * (model.support_vectors_.nbytes + model.dual_coef_.nbytes) + 20_000
