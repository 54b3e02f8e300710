"""Kernels that are Python functions: of rows that are not numbers, and with sparse results."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.svm import SVC, SVR

from parablock import KernelRidge, KernelSVC, KernelSVCCV, KernelSVR
from tests.small_problems import features, targets

rng = np.random.default_rng(0)
TEXTS = ["".join(rng.choice(list("ABCD"), size=rng.integers(3, 9))) for _ in range(40)]
LABELS = np.array([text.count("A") > text.count("B") for text in TEXTS])
NUMBERS = np.array([text.count("A") - 0.5 * text.count("B") for text in TEXTS])
NEW = ["AAAAC", "BBBD", "ABAB"]


def letters(X, Z):
    """The inner products of how often each letter occurs."""
    counts = [np.array([[text.count(letter) for letter in "ABCD"] for text in texts]) for texts in (X, Z)]
    return (counts[0] @ counts[1].T).astype(float)


def lengths(X, Z):
    """Of sequences of any length."""
    return np.array([[float(len(set(x) & set(z))) for z in Z] for x in X])


def sparse_product(X, Z):
    return sp.csr_matrix(X @ Z.T)


@pytest.mark.parametrize("kind", [list, np.array, pd.Series, lambda texts: np.array(texts, dtype=object)])
def test_a_kernel_of_texts_is_that_of_scikit_learn(kind):
    X, new = kind(TEXTS), kind(NEW)
    for ours, theirs, y in ((KernelSVC, SVC, LABELS), (KernelSVR, SVR, NUMBERS)):
        model = ours(kernel=letters, tol=1e-6).fit(X, y)
        other = theirs(kernel=letters, tol=1e-6).fit(X, y)
        decide = "decision_function" if ours is KernelSVC else "predict"
        assert getattr(model, decide)(new) == pytest.approx(getattr(other, decide)(NEW), abs=1e-4)
        assert model.support_vectors_.tolist() == [TEXTS[row] for row in model.support_]


def test_several_classes_weights_and_targets():
    y = np.array([text.count("A") % 3 for text in TEXTS])
    model = KernelSVC(kernel=letters).fit(TEXTS, y, sample_weight=np.arange(40) % 4)
    counted = KernelSVC(kernel="linear").fit([[t.count(a) for a in "ABCD"] for t in TEXTS], y, np.arange(40) % 4)
    new = [[t.count(a) for a in "ABCD"] for t in NEW]
    assert model.decision_function(NEW) == pytest.approx(counted.decision_function(new), abs=5e-3)
    both = KernelRidge(kernel=letters).fit(TEXTS, np.c_[NUMBERS, -NUMBERS])
    assert both.predict(NEW).shape == (3, 2)


def test_rows_may_be_of_any_kind():
    sequences = [tuple(text) for text in TEXTS]
    by_text, by_sequence = (KernelSVC(kernel=lengths).fit(X, LABELS) for X in (TEXTS, sequences))
    assert np.array_equal(by_sequence.predict([tuple(text) for text in NEW]), by_text.predict(NEW))
    records = np.array([{"letters": text} for text in TEXTS], dtype=object)

    def of_records(X, Z):
        return letters([x["letters"] for x in X], [z["letters"] for z in Z])

    model = KernelSVC(kernel=of_records).fit(records, LABELS)
    assert model.score(records, LABELS) > 0.9
    table = pd.DataFrame({"first": TEXTS, "second": TEXTS[::-1]})
    model = KernelSVC(kernel=lambda X, Z: letters(X[:, 0], Z[:, 0])).fit(table, LABELS)
    assert np.array_equal(model.predict(table), KernelSVC(kernel=letters).fit(TEXTS, LABELS).predict(TEXTS))


def test_a_model_of_texts_keeps_its_support_vectors_only_and_can_be_pickled():
    model = KernelSVC(kernel=letters, C=0.1).fit(TEXTS, LABELS)
    assert len(model._objects) == len(model.support_) < len(TEXTS)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.decision_function(NEW), model.decision_function(NEW))
    assert not hasattr(clone(model), "support_")


def test_searches_over_texts():
    by_grid = GridSearchCV(KernelSVC(kernel=letters), {"C": [0.01, 1.0]}, cv=3).fit(TEXTS, LABELS)
    chosen = KernelSVCCV(kernel=letters, Cs=[0.01, 1.0], cv=3).fit(TEXTS, LABELS)
    assert chosen.best_params_ == by_grid.best_params_
    assert chosen.cv_results_["mean_test_score"] == pytest.approx(by_grid.cv_results_["mean_test_score"])
    assert np.array_equal(chosen.predict(NEW), by_grid.predict(NEW))
    assert len(cross_val_score(KernelSVC(kernel=letters), TEXTS, LABELS, cv=3)) == 3


def test_a_machine_may_be_fitted_to_texts_and_then_to_numbers():
    model = KernelSVC(kernel=letters).fit(TEXTS, LABELS)
    with pytest.raises(ValueError, match="trained on rows that are not numbers"):
        model.predict(features())
    model.set_params(kernel="rbf").fit(features(), targets("labels"))
    assert model.predict(features()).shape == (len(features()),)
    assert model.support_vectors_.dtype == np.float64


def test_numbers_go_to_the_function_as_they_did():
    shapes = []

    def product(X, Z):
        shapes.append((X.dtype, X.ndim))
        return X @ Z.T

    KernelSVC(kernel=product).fit(features().tolist(), targets("labels"))
    KernelSVC(kernel=product).fit(features().astype(object), targets("labels"))
    assert set(shapes) == {(np.dtype(np.float64), 2)}


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"checkpoint": "file"}, "checkpoint='file' needs rows of numbers"),
        ({"prediction": "local", "regroup": False}, "prediction='local' needs rows of numbers"),
        ({"kernel": "rbf"}, "could not convert string to float|Expected 2D array"),
    ],
)
def test_what_needs_numbers_says_so(parameters, match):
    with pytest.raises(ValueError, match=match):
        KernelSVC(**{"kernel": letters, **parameters}).fit(TEXTS, LABELS)


def test_a_function_may_return_a_sparse_matrix():
    X, y = features(), targets("labels")
    model = KernelSVC(kernel=sparse_product, tol=1e-6).fit(X, y)
    plain = KernelSVC(kernel="linear", tol=1e-6).fit(X, y)
    assert model.decision_function(X) == pytest.approx(plain.decision_function(X), abs=1e-4)
    of_csr = KernelSVC(kernel=sparse_product, tol=1e-6).fit(sp.csr_matrix(X), y)
    assert of_csr.decision_function(sp.csr_matrix(X)) == pytest.approx(plain.decision_function(X), abs=1e-4)
