"""C=inf: the hard margin and interpolation, compared with scikit-learn and with the equations."""

import numpy as np
import pytest
from sklearn.svm import SVC

import parablock
from parablock import (
    KernelLogisticRegression,
    KernelQuantileRegressor,
    KernelRidge,
    KernelSVC,
    KernelSVR,
)
from tests.small_problems import CASES, features, in_format, rbf, targets

X = np.random.default_rng(0).normal(size=(60, 3))
SEPARABLE = (X @ [1.0, -2.0, 0.5] > 0.1).astype(int)


@pytest.mark.parametrize("data_format", ["dense", "csr"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_the_hard_margin_is_that_of_scikit_learn(loss, kernel, data_format):
    model = KernelSVC(C=np.inf, loss=loss, kernel=kernel, tol=1e-6).fit(in_format(X, data_format), SEPARABLE)
    theirs = SVC(C=np.inf, kernel=kernel, tol=1e-6).fit(X, SEPARABLE)
    assert model.decision_function(X) == pytest.approx(theirs.decision_function(X), rel=1e-3, abs=1e-3)
    assert np.min((2 * SEPARABLE - 1) * model.decision_function(X)) == pytest.approx(1.0, abs=1e-5)
    assert model.stop_reason_ == "converged"


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1e3, 1e6])
def test_the_hard_margin_does_not_depend_on_the_scale_of_the_features(scale):
    """A linear kernel of features s times as large has the same decisions, with weights 1/s times as large."""
    plain, scaled = (KernelSVC(C=np.inf, kernel="linear", tol=1e-6).fit(s * X, SEPARABLE) for s in (1.0, scale))
    assert scaled.coef_ * scale == pytest.approx(plain.coef_, rel=1e-5)
    assert scaled.dual_coef_.max() * scale**2 == pytest.approx(plain.dual_coef_.max(), rel=1e-4)


def test_the_certificate_is_of_the_hard_margin():
    model = KernelSVC(C=np.inf, kernel="linear", tol=1e-6).fit(X, SEPARABLE)
    assert model.dual_objective_ == pytest.approx(0.5 * np.sum(model.coef_**2), rel=1e-5)
    assert model.duality_gap_ <= 1e-5 * model.dual_objective_


def test_every_class_may_be_separated_from_the_rest():
    model = KernelSVC(C=np.inf, gamma=2.0).fit(X, np.arange(60) % 3)
    assert model.score(X, np.arange(60) % 3) == 1.0


def test_weights_of_rows_make_no_difference():
    weight = np.random.default_rng(1).uniform(0.1, 10, 60)
    plain, weighted = (KernelSVC(C=np.inf, tol=1e-6).fit(X, SEPARABLE, w) for w in (None, weight))
    assert weighted.decision_function(X) == pytest.approx(
        KernelSVC(C=np.inf, tol=1e-6, gamma=weighted._gamma).fit(X, SEPARABLE).decision_function(X), abs=1e-4
    )
    assert plain.stop_reason_ == weighted.stop_reason_ == "converged"


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("estimator", [KernelRidge, KernelQuantileRegressor], ids=lambda e: e.__name__)
def test_interpolation_solves_the_equations(estimator, fit_intercept):
    y = targets("numbers")
    model = estimator(C=np.inf, gamma=0.6, fit_intercept=fit_intercept, tol=1e-5).fit(features(), y)
    assert model.predict(features()) == pytest.approx(y, abs=1e-4)
    K, n = rbf(features()), len(y)
    if fit_intercept:
        bordered = np.block([[K, np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
        coef, bias = np.split(np.linalg.lstsq(bordered, np.append(y, 0.0))[0], [n])
    else:
        coef, bias = np.linalg.lstsq(K, y)[0], 0.0
    new = features() + 0.05
    assert model.predict(new) == pytest.approx(rbf(new, features()) @ coef + bias, abs=0.02)


@pytest.mark.parametrize("scale", [1e-12, 1e-4, 1e9])
@pytest.mark.parametrize("estimator", [KernelRidge, KernelQuantileRegressor], ids=lambda e: e.__name__)
def test_interpolation_follows_the_scale_of_the_targets(estimator, scale):
    y = targets("numbers")
    model = estimator(C=np.inf, gamma=0.6, tol=1e-5).fit(features(), scale * y)
    assert model.predict(features()) / scale == pytest.approx(y, abs=1e-4)


def test_the_tube_holds_every_row():
    y = targets("numbers")
    model = KernelSVR(C=np.inf, epsilon=0.1, gamma=0.6, tol=1e-5).fit(features(), y)
    assert np.abs(model.predict(features()) - y).max() == pytest.approx(0.1, abs=1e-4)
    assert len(model.support_) < len(y)


@pytest.mark.parametrize(
    ("model", "y", "match"),
    [
        (KernelSVC(C=np.inf), [0, 1, 1, 0, 0, 1], "no training row may be within the margin.*different classes"),
        (KernelSVR(C=np.inf), [0.0, 1.0, 1.0, 0.0, 0.0, 1.0], "off by more than 0.1.*different targets"),
        (KernelRidge(C=np.inf), [0.0, 1.0, 1.0, 0.0, 0.0, 1.0], "off by more than 0,.*different targets"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_where_there_is_no_solution_the_error_says_so(model, y, match):
    """Equal rows that are asked for different things."""
    with pytest.raises(ValueError, match=f"No solution for C=inf was found.*{match}.*finite C"):
        model.fit([[0.0], [0.0], [1.0], [2.0], [3.0], [4.0]], y)


def test_a_loss_that_is_never_zero_has_no_solution():
    with pytest.raises(ValueError, match=r"C=inf needs a loss that can be zero.*Logistic is not"):
        KernelLogisticRegression(C=np.inf).fit(X, SEPARABLE)


def test_a_sequence_of_fits_has_no_checkpoint(tmp_path):
    with pytest.raises(ValueError, match="several fits, which have no checkpoint"):
        KernelSVC(C=np.inf, checkpoint=tmp_path / "c").fit(X, SEPARABLE)


def test_it_comes_back_from_a_file(tmp_path):
    model = KernelSVC(C=np.inf).fit(X, SEPARABLE)
    model.save(tmp_path / "model.pbk")
    loaded = parablock.load(tmp_path / "model.pbk")
    assert np.isposinf(loaded.C)
    assert np.array_equal(loaded.decision_function(X), model.decision_function(X))


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_other_bad_values_of_c_are_refused(case):
    for C in (0.0, -1.0, np.nan, -np.inf, "1"):
        with pytest.raises(ValueError, match="'C' parameter"):
            case.model(C=C).fit(case.X, case.y)
