"""Real data: results that other programs and the paper's measurements are known to give."""

import numpy as np
import pytest
from sklearn.svm import SVC

from benchmarks.data import load
from parablock import KernelSVC
from parablock.datasets import load_covtype_sample
from tests.small_problems import full_coef, rbf


def data_set(name):
    try:
        return load(name)
    except FileNotFoundError as error:
        pytest.skip(str(error))


# -------------------------------------------------------------------------------------------------- bundled covtype


@pytest.fixture(scope="module")
def covtype():
    X, y, test_X, test_y = load_covtype_sample()
    return X[:3000], y[:3000], test_X, test_y


def test_bundled_sample_is_what_it_says():
    X, y, test_X, test_y = load_covtype_sample()
    assert (X.shape, test_X.shape) == ((50_000, 54), (10_000, 54))
    assert X.dtype == test_X.dtype == np.float32
    assert X.min() >= 0
    assert X.max() <= 1
    assert set(y) == set(test_y) == {-1, 1}
    assert np.mean(y == 1) == pytest.approx(0.4876, abs=0.01)  # share of type 2 in the whole data
    # Ten numbers and two groups of indicators: of the wilderness area and of the soil type.
    assert np.array_equal(X[:, 10:14].sum(axis=1), np.ones(50_000))
    assert np.array_equal(X[:, 14:].sum(axis=1), np.ones(50_000))


def test_bundled_sample_has_seven_types_with_the_same_rows():
    X, y, _, _ = load_covtype_sample()
    X7, y7, _, _ = load_covtype_sample(classes=7)
    assert np.array_equal(X, X7)
    assert set(y7) == set(range(1, 8))
    assert np.array_equal(y == 1, y7 == 2)


def test_bundled_sample_comes_with_two_or_seven_classes_only():
    with pytest.raises(ValueError, match=r"classes=3 was given; use 2 .* or 7"):
        load_covtype_sample(classes=3)


def test_covtype_sample_gives_the_machine_of_svc(covtype):
    X, y, test_X, test_y = covtype
    ours = KernelSVC(C=32, gamma=32, random_state=0).fit(X, y)
    theirs = SVC(C=32, gamma=32).fit(X, y)
    coef = np.zeros(len(X))
    coef[theirs.support_] = theirs.dual_coef_[0]
    expected = y @ coef - 0.5 * coef @ rbf(X.astype(float), gamma=32) @ coef
    assert ours.dual_objective_ == pytest.approx(expected, rel=1e-4)
    assert ours.score(test_X, test_y) == pytest.approx(theirs.score(test_X, test_y), abs=2e-3)


def test_covtype_sample_without_intercept_has_its_objective_certified(covtype):
    X, y = covtype[0].astype(float), covtype[1]
    # A violation of tol in every row would be a gap of C n tol: this tol is what the last line needs.
    model = KernelSVC(C=32, gamma=32, fit_intercept=False, random_state=0, tol=1e-4).fit(X, y)
    K, coef = rbf(X, gamma=32), full_coef(model, len(X))[0]
    dual = y @ coef - 0.5 * coef @ K @ coef
    primal = 0.5 * coef @ K @ coef + 32 * np.maximum(0, 1 - y * (K @ coef)).sum()
    assert model.dual_objective_ == pytest.approx(dual, rel=1e-4)
    assert model.duality_gap_ == pytest.approx(primal - dual, rel=0.1)
    assert primal - dual < 5e-3 * dual


# ---------------------------------------------------------------------------------------------------------- ijcnn1


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize(
    ("fit_intercept", "accuracy", "objective"),
    [(True, 0.9870, 33139.94), (False, 0.9841, 33155.08)],
    ids=["intercept", "no intercept"],
)
def test_ijcnn1_gives_libsvms_accuracy_and_objective(fit_intercept, accuracy, objective):
    data = data_set("ijcnn1")
    model = KernelSVC(C=32, gamma=2, fit_intercept=fit_intercept, tol=1e-3, random_state=0)
    model.fit(data.X_train.astype(np.float32), data.y_train)
    assert model.dual_objective_ == pytest.approx(objective, rel=1e-4)
    assert model.score(data.X_test.astype(np.float32), data.y_test) == pytest.approx(accuracy, abs=5e-4)
