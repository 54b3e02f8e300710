"""Fitted estimators of scikit-learn with our decisions."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.kernel_ridge import KernelRidge as SklearnKernelRidge
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputRegressor
from sklearn.svm import SVC, SVR

from parablock import KernelLogisticRegression, KernelQuantileRegressor, KernelRidge, KernelSVC, KernelSVR
from parablock.models import ModelFileError, to_sklearn
from tests.models.zoo import CLASSES, LOCAL, NEW, SETTINGS, TWO_TARGETS, decision, fit, given_kernel
from tests.small_problems import features, in_format, rbf, targets

KERNELS = {
    "linear": {},
    "poly": {"gamma": 0.5, "degree": 2, "coef0": 1.0},
    "rbf": {"gamma": 0.3},
    "sigmoid": {"gamma": 0.01, "coef0": 0.1},
}
every_kernel = pytest.mark.parametrize("kernel", KERNELS)
every_format = pytest.mark.parametrize("data_format", ["dense", "csr"])


def agree(model, made, new=NEW):
    """Before and after pickling: same decisions, same predictions."""
    for peer in (made, pickle.loads(pickle.dumps(made))):
        assert decision(peer, new) == pytest.approx(decision(model, new), abs=1e-9)
        if hasattr(model, "classes_"):
            assert np.array_equal(peer.predict(new), model.predict(new))
            assert np.array_equal(peer.classes_, model.classes_)
        assert peer.n_features_in_ == model.n_features_in_


# ---------------------------------------------------------------------------------------------------------- classifiers


@every_kernel
@every_format
def test_two_classes_are_an_svc(kernel, data_format):
    X = in_format(features(), data_format)
    model = fit(KernelSVC(C=2.0, kernel=kernel, **KERNELS[kernel], **SETTINGS), X)
    made = model.to_sklearn()
    assert type(made) is SVC
    agree(model, made, in_format(NEW, data_format))
    assert np.array_equal(np.sort(made.support_), model.support_)
    assert made.n_support_.sum() == len(model.support_)
    assert np.asarray(made.dual_coef_.sum()) == pytest.approx(model.dual_coef_.sum(), abs=1e-9)
    assert made.intercept_ == pytest.approx(model.intercept_)


@every_format
def test_fitted_again_the_svc_finds_the_same_machine(data_format):
    """It is the same problem, so scikit-learn's own training agrees, attribute for attribute."""
    X, y = in_format(features(), data_format), targets("labels")
    model = fit(KernelSVC(C=2.0, tol=1e-6, class_weight={1: 2.0}, **SETTINGS), X)
    made = model.to_sklearn()
    again = clone(made).fit(X, y)
    assert again.decision_function(X) == pytest.approx(made.decision_function(X), abs=1e-4)
    assert vars(again).keys() == vars(made).keys()
    assert {name: type(value) for name, value in vars(again).items()} == {
        name: type(value) for name, value in vars(made).items()
    }
    assert np.array_equal(again.n_support_, made.n_support_)
    assert again.intercept_ == pytest.approx(made.intercept_, abs=1e-4)
    if data_format == "dense":
        assert np.array_equal(np.sign(again.dual_coef_), np.sign(made.dual_coef_))
        assert again._gamma == pytest.approx(made._gamma)


@every_kernel
@every_format
def test_more_classes_are_one_svc_each(kernel, data_format):
    X, y = in_format(features(), data_format), np.array(["a", "b", "c"])[CLASSES]
    model = fit(KernelSVC(C=2.0, kernel=kernel, **KERNELS[kernel], **SETTINGS), X, y)
    made = model.to_sklearn()
    assert type(made) is OneVsRestClassifier
    agree(model, made, in_format(NEW, data_format))
    assert [type(one) for one in made.estimators_] == [SVC] * 3


def test_fitted_again_one_against_the_rest_finds_the_same_machine():
    model = fit(KernelSVC(C=2.0, tol=1e-6, **SETTINGS), y=CLASSES)
    made = model.to_sklearn()
    again = clone(made).fit(features(), CLASSES)
    assert again.decision_function(NEW) == pytest.approx(made.decision_function(NEW), abs=1e-3)
    assert vars(again).keys() == vars(made).keys()


@pytest.mark.parametrize("labels", [["no", "yes"], [False, True], [2.0, 3.0], [-5, 7]])
def test_labels_of_any_type(labels):
    model = fit(KernelSVC(**SETTINGS), y=np.array(labels)[(targets("labels") > 0).astype(int)])
    agree(model, model.to_sklearn())


def test_a_precomputed_kernel_with_rows_left_out():
    model, new = given_kernel()
    agree(model, model.to_sklearn(), new)


def test_csr_arrays_with_wide_indices():
    X = sp.csr_array(features())
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    model = fit(KernelSVC(**SETTINGS), X)
    agree(model, model.to_sklearn(), sp.csr_matrix(NEW))


def test_a_model_without_intercept():
    model = fit(KernelSVC(fit_intercept=False, **SETTINGS))
    agree(model, model.to_sklearn())


def test_float32_models_agree_as_far_as_float32_goes():
    model = fit(KernelSVC(**SETTINGS), features().astype(np.float32))
    assert model.to_sklearn().decision_function(NEW) == pytest.approx(decision(model), abs=1e-4)


@pytest.mark.parametrize("y", [targets("labels"), CLASSES, TWO_TARGETS], ids=["two", "three", "targets"])
@pytest.mark.filterwarnings("error")
def test_names_of_features_are_kept(y):
    pandas = pytest.importorskip("pandas")
    table, new = (pandas.DataFrame(rows, columns=list("abcd")) for rows in (features(), NEW))
    model = fit(KernelSVR(**SETTINGS) if y.ndim == 2 else KernelSVC(**SETTINGS), table, y)
    made = model.to_sklearn()
    agree(model, made, new)
    assert made.feature_names_in_.tolist() == list("abcd")
    with pytest.raises(ValueError, match="feature names"):
        made.predict(new[list("dcba")])


# ----------------------------------------------------------------------------------------------------------- regressors


@every_kernel
@every_format
def test_support_vector_regression_is_an_svr(kernel, data_format):
    X = in_format(features(), data_format)
    model = fit(KernelSVR(C=2.0, epsilon=0.2, kernel=kernel, **KERNELS[kernel], **SETTINGS), X)
    made = model.to_sklearn()
    assert type(made) is SVR
    assert made.epsilon == 0.2
    agree(model, made, in_format(NEW, data_format))


@every_format
def test_fitted_again_the_svr_finds_the_same_machine(data_format):
    X = in_format(features(), data_format)
    model = fit(KernelSVR(tol=1e-6, **SETTINGS), X)
    made = model.to_sklearn()
    again = clone(made).fit(X, targets("numbers"))
    assert again.predict(X) == pytest.approx(made.predict(X), abs=1e-4)
    assert vars(again).keys() == vars(made).keys()


@pytest.mark.parametrize("targets_of", [TWO_TARGETS, TWO_TARGETS[:, :1]], ids=["two", "one as a column"])
def test_several_targets_are_several_svrs(targets_of):
    model = fit(KernelSVR(**SETTINGS), y=targets_of)
    made = model.to_sklearn()
    assert type(made) is MultiOutputRegressor
    agree(model, made)


@pytest.mark.parametrize("data_format", ["dense", "csr"])
def test_a_regression_without_support_vectors(data_format):
    model = fit(KernelSVR(epsilon=100.0, **SETTINGS), in_format(features(), data_format))
    agree(model, model.to_sklearn(), in_format(NEW, data_format))


@every_format
@pytest.mark.parametrize("kernel", [*KERNELS, "laplacian", "cosine"])
@pytest.mark.parametrize("y", [None, TWO_TARGETS], ids=["one target", "two targets"])
def test_ridge_regression_is_kernel_ridge(y, kernel, data_format):
    X = in_format(features(), data_format)
    model = fit(KernelRidge(kernel=kernel, fit_intercept=False, **KERNELS.get(kernel, {}), **SETTINGS), X, y)
    made = model.to_sklearn()
    assert type(made) is SklearnKernelRidge
    agree(model, made, in_format(NEW, data_format))


def test_fitted_again_kernel_ridge_finds_the_same_machine():
    model = fit(KernelRidge(C=3.0, fit_intercept=False, tol=1e-8, **SETTINGS))
    made = model.to_sklearn()
    again = clone(made).fit(features(), targets("numbers"))
    assert again.predict(NEW) == pytest.approx(made.predict(NEW), abs=1e-6)
    assert vars(again).keys() == vars(made).keys()


@pytest.mark.parametrize("y", [None, TWO_TARGETS], ids=["one target", "two targets"])
def test_the_intercept_of_a_ridge_regression_is_added_by_its_target(y):
    model = fit(KernelRidge(kernel="chi2", **SETTINGS), np.abs(features()), y)
    made = model.to_sklearn()
    assert type(made) is TransformedTargetRegressor
    agree(model, made, np.abs(NEW))


def test_ridge_regression_with_a_precomputed_kernel():
    weight = (np.arange(72) % 4 > 0).astype(float)
    K = rbf(features())
    for intercept in (True, False):
        model = fit(KernelRidge(kernel="precomputed", fit_intercept=intercept, **SETTINGS), K, sample_weight=weight)
        agree(model, model.to_sklearn(), rbf(NEW, features()))


# ---------------------------------------------------------------------------------------------------- what is not there


@pytest.mark.parametrize(
    ("model", "match"),
    [
        (KernelLogisticRegression(), r"no kernel machine with the loss Logistic.*parablock\.models\.to_onnx"),
        (KernelQuantileRegressor(), "no kernel machine with the loss Quantile"),
        (KernelSVC(loss="squared_hinge"), "no kernel machine with the loss SquaredHinge"),
        (KernelSVC(kernel="laplacian"), r"SVC has no Laplacian kernel.*parablock\.save"),
        (KernelSVR(kernel="cosine"), "SVR has no Cosine kernel"),
        (KernelRidge(kernel="matern32"), "KernelRidge has no Matern32 kernel"),
        (KernelSVC(**LOCAL), r"set_params\(prediction='global'\)"),
    ],
)
def test_what_scikit_learn_does_not_have_is_refused(model, match):
    with pytest.raises(ModelFileError, match=match):
        fit(model.set_params(**SETTINGS)).to_sklearn()


def test_only_our_fitted_estimators_are_taken():
    with pytest.raises(ModelFileError, match="got SVC"):
        to_sklearn(SVC().fit(features(), CLASSES))
    with pytest.raises(ValueError, match="not fitted"):
        KernelSVC().to_sklearn()
