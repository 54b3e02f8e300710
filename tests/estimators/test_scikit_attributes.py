"""What selectors and users of scikit-learn's SVC look for in a fitted machine: coef_, n_support_, class_weight_ ..."""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris
from sklearn.feature_selection import RFE, RFECV, SelectFromModel
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR
from sklearn.utils.class_weight import compute_class_weight

import parablock
from parablock import KernelClassifier, KernelLogisticRegression, KernelRidge, KernelSVC, KernelSVR
from parablock.callbacks import Callback
from parablock.kernels import Linear
from tests.engines.ranks import needs_mpi, results
from tests.small_problems import CASES, N, features, in_format, targets

every_estimator = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
every_format = pytest.mark.parametrize("data_format", ["dense", "csr"])
CLASSES = np.arange(N) % 3


# --------------------------------------------------------------------------------------------------------------- coef_


@every_format
@every_estimator
def test_the_decisions_of_a_linear_kernel_are_those_of_coef(case, data_format):
    X = in_format(case.X, data_format)
    model = case.model(kernel="linear").fit(X, case.y)
    assert type(model.coef_) is np.ndarray
    assert model.coef_.shape == (1, 4)
    assert (X @ model.coef_.T)[:, 0] + model.intercept_ == pytest.approx(model._decision(X)[0], abs=1e-10)


def test_coef_cannot_be_written_to():
    """It is computed from the coefficients of the support vectors, so that a change would be lost."""
    model = KernelSVC(kernel="linear").fit(features(), targets("labels"))
    with pytest.raises(ValueError, match="read-only"):
        model.coef_[0, 0] = 1.0
    with pytest.raises(AttributeError):
        model.coef_ = np.zeros((1, 4))


@every_format
def test_several_outputs_have_a_row_of_coef_each(data_format):
    X = in_format(features(), data_format)
    for model, y in ((KernelSVC(kernel="linear"), CLASSES), (KernelRidge(kernel=Linear()), features()[:, :3])):
        model.fit(X, y)
        assert model.coef_.shape == (3, 4)
        assert X @ model.coef_.T + model.intercept_ == pytest.approx(model._decision(X).T, abs=1e-10)


def test_coef_is_that_of_scikit_learn():
    X, y = StandardScaler().fit_transform(features()), targets("labels")
    ours, theirs = (kind(kernel="linear", tol=1e-7).fit(X, y) for kind in (KernelSVC, SVC))
    assert ours.coef_ == pytest.approx(theirs.coef_, abs=1e-5)
    ours, theirs = (kind(kernel="linear", tol=1e-7).fit(X, targets("numbers")) for kind in (KernelSVR, SVR))
    assert ours.coef_ == pytest.approx(theirs.coef_, abs=1e-5)


def test_other_kernels_have_no_coef():
    model = KernelSVC().fit(features(), targets("labels"))
    assert not hasattr(model, "coef_")
    with pytest.raises(AttributeError, match="with kernel='linear' only, and this one is 'rbf'"):
        _ = model.coef_
    assert not hasattr(KernelSVC(kernel="linear"), "coef_")


def test_a_model_without_support_vectors_has_coef_of_zero():
    assert np.array_equal(
        KernelSVR(kernel="linear", epsilon=100.0).fit(features(), targets("numbers")).coef_, [[0] * 4]
    )


@every_format
def test_features_are_eliminated_as_with_scikit_learn(data_format):
    """Noise beside the petals of irises: RFE finds what it finds with SVC."""
    X, y = load_iris(return_X_y=True)
    rng = np.random.RandomState(0)
    X, y = np.c_[X, rng.normal(size=(len(X), 6))][y > 0], y[y > 0]
    X = in_format(X, data_format)
    ours, theirs = (RFE(kind(kernel="linear", tol=1e-5), n_features_to_select=3).fit(X, y) for kind in (KernelSVC, SVC))
    assert ours.ranking_.tolist() == theirs.ranking_.tolist()


def test_cross_validated_elimination_and_selection():
    X, y = load_iris(return_X_y=True)
    X = np.c_[X, np.random.RandomState(0).normal(size=(len(X), 6))]
    found = RFECV(KernelSVC(kernel="linear"), cv=3).fit(X, y)
    assert found.support_[2:4].all()
    assert found.cv_results_["mean_test_score"].max() > 0.9
    selected = SelectFromModel(KernelLogisticRegression(kernel="linear")).fit(X, y).get_support()
    assert selected[3]
    assert 1 <= selected.sum() < 10


# ------------------------------------------------------------------------------------------------- the other attributes


@every_format
def test_support_vectors_are_counted_by_class(data_format):
    X, y = in_format(features(), data_format), np.array(["c", "a", "b"])[CLASSES]
    model = KernelSVC(C=0.1).fit(X, y)
    assert model.n_support_.tolist() == [np.sum(y[model.support_] == label) for label in "abc"]
    two = KernelSVC(tol=1e-6).fit(X, targets("labels"))
    assert two.n_support_.tolist() == SVC(tol=1e-6).fit(X, targets("labels")).n_support_.tolist()
    regressor = KernelSVR().fit(X, targets("numbers"))
    assert regressor.n_support_.tolist() == [len(regressor.support_)]


def test_rows_without_a_weight_support_no_class():
    y, weight = targets("labels"), (np.arange(N) % 2).astype(float)
    model = KernelSVC().fit(features(), y, sample_weight=weight)
    assert model.n_support_.tolist() == [np.sum(y[model.support_] == label) for label in (-1, 1)]


@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 2.0, 2: 5.0}])
def test_class_weights_are_those_that_c_was_multiplied_by(class_weight):
    y = np.minimum(CLASSES, np.arange(N) % 5)
    model = KernelSVC(gamma=1.0, class_weight=class_weight).fit(features(), y)
    assert model.class_weight_ == pytest.approx(compute_class_weight(class_weight, classes=np.unique(y), y=y))
    # With the weights given for each row it is the same problem.
    same = KernelSVC(gamma=1.0).fit(features(), y, sample_weight=model.class_weight_[y])
    assert same.dual_objective_ == pytest.approx(model.dual_objective_, rel=1e-3)


@every_estimator
def test_the_shape_of_the_training_data_is_known(case):
    assert case.fit().shape_fit_ == (N, 4)
    assert not hasattr(case.model(), "shape_fit_")


@every_estimator
def test_they_come_back_from_a_file(case, tmp_path):
    model = case.model(kernel="linear").fit(case.X, CLASSES if isinstance(case.model(), KernelClassifier) else case.y)
    model.save(tmp_path / "model.pbk")
    loaded = parablock.load(tmp_path / "model.pbk")
    names = ["coef_", "n_support_", "shape_fit_"] + (["class_weight_"] if hasattr(model, "classes_") else [])
    for name in names:
        assert np.array_equal(getattr(loaded, name), getattr(model, name)), name


def test_a_callback_sees_them_during_the_fit():
    class Look(Callback):
        seen = ()

        def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
            if fitted_estimator is not None:
                self.seen += ((fitted_estimator.coef_.shape, fitted_estimator.n_support_.shape),)

    look = Look()
    KernelSVC(kernel="linear").set_callbacks(look).fit(features(), CLASSES)
    assert set(look.seen) == {((3, 4), (3,))}


def test_sparse_arrays_give_a_dense_coef():
    model = KernelSVC(kernel="linear").fit(sp.csr_array(features()), targets("labels"))
    assert type(model.coef_) is np.ndarray


@needs_mpi
@pytest.mark.slow
def test_they_are_those_of_all_rows_where_ranks_train_together():
    found = results(2, Path(__file__).parents[1] / "engines" / "linear_on_ranks.py")
    y, separable = np.arange(N) % 3, features() @ [1.0, -2.0, 0.5, 0.0] > 0.1
    alone = KernelSVC(kernel="linear", class_weight={0: 2.0}).fit(features(), y)
    assert found["n_support_"] == np.bincount(y[found["support_"]]).tolist()
    assert found["class_weight_"] == alone.class_weight_.tolist() == [2.0, 1.0, 1.0]
    assert found["shape_fit_"] == [N, 4]
    assert np.array(found["coef_"]) == pytest.approx(alone.coef_, abs=1e-2)
    hard = KernelSVC(C=np.inf, kernel="linear", tol=1e-6).fit(features(), separable)
    assert np.array(found["hard"]) == pytest.approx(hard.coef_, rel=1e-4, abs=1e-4)
