"""What classifiers add: labels of any kind, class weights, probabilities."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.datasets import make_blobs

from parablock import KernelLogisticRegression, KernelSVC
from tests.small_problems import GAMMA, C, features, targets

X3, Y3 = make_blobs(90, centers=3, cluster_std=1.5, random_state=0)
classifiers = pytest.mark.parametrize("kind", [KernelSVC, KernelLogisticRegression])


def make(kind, **parameters):
    return kind(C, gamma=GAMMA, random_state=0, n_jobs=1, **parameters)


@pytest.mark.parametrize(
    "names",
    [["yes", "no", "maybe"], [3, 1, 2], [-1.0, 0.0, 7.0], [True, False]],
    ids=["words", "integers", "floats", "booleans"],
)
@classifiers
def test_predictions_are_labels_of_the_kind_given(kind, names):
    y = np.array(names)[Y3 % len(names)]
    model = make(kind).fit(X3, y)
    assert model.predict(X3).dtype == y.dtype
    assert model.classes_.tolist() == sorted(names)
    assert np.mean(model.predict(X3) == y) == model.score(X3, y) > 0.8


@classifiers
def test_two_classes_are_decided_by_the_sign_and_more_by_the_largest_value(kind):
    X, y = features(), targets("labels")
    model = make(kind).fit(X, y)
    assert model.decision_function(X).shape == (len(X),)
    assert np.array_equal(model.predict(X), np.where(model.decision_function(X) > 0, 1, -1))
    model = make(kind).fit(X3, Y3)
    assert np.array_equal(model.predict(X3), model.decision_function(X3).argmax(axis=1))


def test_swapping_the_two_classes_turns_the_sign():
    X, y = features(), targets("labels")
    plain, swapped = (KernelSVC(tol=1e-6, n_jobs=1).fit(X, labels).decision_function(X) for labels in (y, -y))
    assert swapped == pytest.approx(-plain, abs=1e-4)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_are_between_zero_and_one_and_sum_to_one(n_classes):
    model = KernelLogisticRegression(C, n_jobs=1).fit(X3, Y3 % n_classes)
    probability = model.predict_proba(X3)
    assert probability.shape == (90, n_classes)
    assert np.all((probability >= 0) & (probability <= 1))
    assert probability.sum(axis=1) == pytest.approx(np.ones(90))
    assert np.array_equal(model.predict(X3), model.classes_[probability.argmax(axis=1)])
    assert np.exp(model.predict_log_proba(X3)) == pytest.approx(probability)


def test_probabilities_of_several_classes_are_the_binary_ones_scaled():
    model = KernelLogisticRegression(C, n_jobs=1).fit(X3, Y3)
    binary = expit(model.decision_function(X3))
    assert model.predict_proba(X3) == pytest.approx(binary / binary.sum(axis=1, keepdims=True))


def test_probabilities_are_calibrated_on_the_training_data():
    """With an intercept the optimality conditions make mean probability and share of the class equal."""
    X, y = features(), targets("labels")
    model = KernelLogisticRegression(C, gamma=GAMMA, tol=1e-6, n_jobs=1).fit(X, y)
    assert model.predict_proba(X)[:, 1].mean() == pytest.approx(np.mean(y > 0), abs=1e-5)


@classifiers
def test_balanced_class_weights_equal_the_weights_written_out(kind):
    y = np.where(np.arange(90) % 5 == 0, "rare", "common")
    weights = {"rare": 90 / (2 * 18), "common": 90 / (2 * 72)}
    balanced, written = (
        make(kind, class_weight=weight, tol=1e-6).fit(X3, y).decision_function(X3) for weight in ("balanced", weights)
    )
    by_sample = make(kind, tol=1e-6).fit(X3, y, sample_weight=[weights[label] for label in y])
    assert written == pytest.approx(balanced, abs=1e-6)
    assert by_sample.decision_function(X3) == pytest.approx(balanced, abs=1e-6)


@classifiers
def test_a_weight_of_two_equals_the_row_twice(kind):
    X, y = features(), targets("labels")
    twice = np.arange(len(X)) % 3 == 0
    weighted = make(kind, tol=1e-6).fit(X, y, sample_weight=1.0 + twice).decision_function(X)
    repeated = make(kind, tol=1e-6).fit(np.concatenate((X, X[twice])), np.concatenate((y, y[twice])))
    assert repeated.decision_function(X) == pytest.approx(weighted, abs=1e-4)


def test_scaled_gamma_also_counts_a_weight_of_two_as_the_row_twice():
    X, y = features(), targets("labels")
    twice = np.abs(X[:, 0]) > 1
    settings = {"gamma": "scale", "tol": 1e-6, "random_state": 0, "n_jobs": 1}
    weighted = KernelSVC(**settings).fit(X, y, sample_weight=1.0 + twice).decision_function(X)
    repeated = KernelSVC(**settings).fit(np.concatenate((X, X[twice])), np.concatenate((y, y[twice])))
    assert repeated.decision_function(X) == pytest.approx(weighted, abs=1e-4)
