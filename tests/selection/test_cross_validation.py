"""Scores of the cross-validation against GridSearchCV over our own estimators, and against scikit-learn's."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris, make_moons
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    PredefinedSplit,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedKFold,
)
from sklearn.svm import SVC, SVR

from parablock import (
    KernelLogisticRegression,
    KernelLogisticRegressionCV,
    KernelSVC,
    KernelSVCCV,
    KernelSVR,
    KernelSVRCV,
)

CS, GAMMAS = [8.0, 0.5, 2.0], [0.3, 3.0]  # not in order, on purpose
GRID = {"C": CS, "gamma": GAMMAS}
# Tight, so that scores do not depend on the way to the solution.
TIGHT = {"tol": 1e-6, "random_state": 0, "n_jobs": 1}


@pytest.fixture(scope="module")
def moons():
    return make_moons(300, noise=0.3, random_state=0)


@pytest.fixture(scope="module")
def waves():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(240, 2))
    return X, np.sin(2 * X[:, 0]) * X[:, 1] + 0.2 * rng.normal(size=len(X))


def compared(own, estimator, X, y, grid=GRID, abs=1e-4, **fitting):
    """Both searches, after their scores were compared."""
    own.fit(X, y, **fitting)
    search = GridSearchCV(estimator, grid, scoring=own.scoring, cv=own.cv, refit=own.refit, return_train_score=True)
    search.fit(X, y, **fitting)
    assert own.n_splits_ == search.n_splits_
    assert own.cv_results_["params"] == search.cv_results_["params"]
    for name, values in search.cv_results_.items():
        if ("test_" in name and "rank" not in name) or (name in own.cv_results_ and "train_" in name):
            assert own.cv_results_[name] == pytest.approx(values, abs=abs), name
    return own, search


# -------------------------------------------------------------------------------------- GridSearchCV over our own


@pytest.mark.parametrize("n_blocks", [None, 4], ids=["one block", "four blocks"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_svc(moons, loss, fit_intercept, n_blocks):
    options = {"loss": loss, "fit_intercept": fit_intercept, "n_blocks": n_blocks, **TIGHT}
    own = KernelSVCCV(CS, GAMMAS, scoring="roc_auc", return_train_score=True, **options)
    own, search = compared(own, KernelSVC(**options), *moons)
    assert own.best_params_ == search.best_params_
    assert own.best_score_ == pytest.approx(search.best_score_, abs=1e-4)
    assert own.decision_function(moons[0]) == pytest.approx(search.decision_function(moons[0]), abs=1e-3)
    assert set(own.cv_results_) == set(search.cv_results_)


def test_accuracy_is_the_default_of_a_classifier(moons):
    own, search = compared(KernelSVCCV(CS, GAMMAS, **TIGHT), KernelSVC(**TIGHT), *moons, abs=1e-12)
    assert np.array_equal(own.cv_results_["rank_test_score"], search.cv_results_["rank_test_score"])
    assert own.score(*moons) == search.score(*moons)
    assert np.array_equal(own.predict(moons[0]), search.predict(moons[0]))


def test_logistic(moons):
    options = {"n_blocks": 3, **TIGHT}
    own = KernelLogisticRegressionCV(CS, GAMMAS, scoring="neg_log_loss", **options)
    own, search = compared(own, KernelLogisticRegression(**options), *moons)
    assert own.best_params_ == search.best_params_
    assert own.predict_proba(moons[0]) == pytest.approx(search.predict_proba(moons[0]), abs=1e-4)
    assert own.predict_log_proba(moons[0]) == pytest.approx(search.predict_log_proba(moons[0]), abs=1e-3)
    assert own.score(*moons) == pytest.approx(search.score(*moons), abs=1e-4)  # a log loss too


def test_svr(waves):
    own, search = compared(KernelSVRCV(CS, GAMMAS, cv=4, **TIGHT), KernelSVR(**TIGHT), *waves)
    assert own.best_params_ == search.best_params_
    assert own.score(*waves) == pytest.approx(search.score(*waves), abs=1e-4)


def test_several_targets(waves):
    X, y = waves
    both = np.stack((y, y**2), axis=1)
    own, _ = compared(KernelSVRCV(CS, GAMMAS, n_blocks=3, **TIGHT), KernelSVR(**TIGHT), X, both)
    assert own.predict(X).shape == both.shape


@pytest.mark.parametrize("kind", [KernelSVC, KernelLogisticRegression])
def test_several_classes(kind):
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    own = {KernelSVC: KernelSVCCV, KernelLogisticRegression: KernelLogisticRegressionCV}[kind](CS, GAMMAS, **TIGHT)
    own, _ = compared(own, kind(**TIGHT), X, names, abs=1e-12)
    assert own.classes_.tolist() == ["setosa", "versicolor", "virginica"]
    assert own.decision_function(X).shape == (150, 3)


@pytest.mark.parametrize("scoring", ["accuracy", "f1_macro"])
def test_a_class_that_a_fold_has_no_training_rows_of_is_never_predicted(scoring):
    X, y = load_iris(return_X_y=True)
    # The first fold holds out all of class 2.
    cv = PredefinedSplit(np.where(y == 2, 0, np.where(np.arange(150) % 2, 1, 2)))
    compared(KernelSVCCV(CS, GAMMAS, cv=cv, scoring=scoring, **TIGHT), KernelSVC(**TIGHT), X, y, abs=1e-12)


@pytest.mark.parametrize("n_blocks", [None, 3])
def test_sparse_rows(moons, n_blocks):
    X, y = sp.csr_matrix(moons[0]), moons[1]
    compared(KernelSVCCV(CS, GAMMAS, n_blocks=n_blocks, **TIGHT), KernelSVC(**TIGHT), X, y, abs=1e-12)


def test_a_kernel_matrix_and_other_kernels_without_gamma_have_a_grid_over_C(moons):
    X, y = moons
    K = np.exp(-2.0 * ((X[:, None] - X) ** 2).sum(axis=2))
    grid = {"C": CS}
    own, _ = compared(
        KernelSVCCV(CS, kernel="precomputed", **TIGHT), KernelSVC(kernel="precomputed", **TIGHT), K, y, grid, 1e-12
    )
    assert list(own.best_params_) == ["C"]
    assert "param_gamma" not in own.cv_results_
    rows, _ = compared(KernelSVCCV(CS, [2.0], **TIGHT), KernelSVC(**TIGHT), X, y, {"C": CS, "gamma": [2.0]}, 1e-12)
    assert np.array_equal(rows.cv_results_["mean_test_score"], own.cv_results_["mean_test_score"])
    compared(KernelSVCCV(CS, kernel="linear", **TIGHT), KernelSVC(kernel="linear", **TIGHT), X, y, grid, 1e-12)


@pytest.mark.parametrize("partition", ["kmeans", "kernel_kmeans", "random", "labels"])
def test_every_partition(moons, partition):
    X, y = moons
    options = {"partition": np.arange(len(y)) % 3 if partition == "labels" else partition, "n_blocks": 3}
    compared(KernelSVCCV(CS, GAMMAS, **options, **TIGHT), KernelSVC(**TIGHT), X, y, abs=1e-12)


# ---------------------------------------------------------------------------------------------- folds and weights


@pytest.mark.parametrize(
    "cv",
    [
        StratifiedKFold(3, shuffle=True, random_state=1),
        RepeatedKFold(n_splits=3, n_repeats=2, random_state=1),
        ShuffleSplit(4, test_size=0.3, train_size=0.4, random_state=1),
        PredefinedSplit(np.arange(300) % 4 - 1),
        [(np.arange(200), np.arange(200, 300)), (np.arange(100, 300), np.arange(50))],
        [(np.arange(300) % 3 > 0, np.arange(300) % 3 == 0)],
    ],
    ids=["shuffled", "repeated", "some rows", "predefined", "numbers", "masks"],
)
def test_every_way_to_split(moons, cv):
    compared(KernelSVCCV(CS, GAMMAS, cv=cv, **TIGHT), KernelSVC(**TIGHT), *moons, abs=1e-12)


def test_groups(moons):
    groups = np.arange(300) // 30
    own = KernelSVCCV(CS, GAMMAS, cv=GroupKFold(3), **TIGHT)
    compared(own, KernelSVC(**TIGHT), *moons, abs=1e-12, groups=groups)


@pytest.mark.parametrize("scoring", ["accuracy", None], ids=["named", "default"])
def test_weights_count_in_training_and_in_scores(moons, scoring):
    weight = np.random.default_rng(0).uniform(0, 3, 300)
    weight[::7] = 0
    own = KernelSVCCV(CS, GAMMAS, scoring=scoring, **TIGHT)
    own, _ = compared(own, KernelSVC(**TIGHT), *moons, abs=1e-9, sample_weight=weight)
    plain = KernelSVCCV(CS, GAMMAS, scoring=scoring, **TIGHT).fit(*moons)
    assert not np.allclose(plain.cv_results_["mean_test_score"], own.cv_results_["mean_test_score"])


def test_a_scorer_that_takes_no_weights_gets_none(moons):
    def plain(estimator, X, y):
        return float(np.mean(estimator.predict(X) == y))

    weight = np.linspace(0.5, 2, 300)
    own = KernelSVCCV(CS, GAMMAS, scoring=plain, **TIGHT).fit(*moons, sample_weight=weight)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # scikit-learn's, that the scorer takes none
        search = GridSearchCV(KernelSVC(**TIGHT), GRID, scoring=plain).fit(*moons, sample_weight=weight)
    assert own.cv_results_["mean_test_score"] == pytest.approx(search.cv_results_["mean_test_score"], abs=1e-12)


@pytest.mark.parametrize("class_weight", ["balanced", {0: 3.0, 1: 0.5}])
def test_weights_of_classes(moons, class_weight):
    X, y = moons[0][40:], moons[1][40:]
    options = {"class_weight": class_weight, **TIGHT}
    cv = ShuffleSplit(3, random_state=0)  # other shares of the classes in every fold
    own = KernelSVCCV(CS, GAMMAS, cv=cv, scoring="roc_auc", **options)
    compared(own, KernelSVC(**options), X, y)


# ---------------------------------------------------------------------------------------------------- scikit-learn


def test_scikit_learns_svc_has_the_same_scores_and_decisions(moons):
    own = KernelSVCCV(CS, GAMMAS, scoring=["accuracy", "roc_auc"], refit="accuracy", **TIGHT).fit(*moons)
    search = GridSearchCV(SVC(tol=1e-6), GRID, scoring=["accuracy", "roc_auc"], refit="accuracy").fit(*moons)
    assert own.cv_results_["mean_test_accuracy"] == pytest.approx(search.cv_results_["mean_test_accuracy"], abs=1e-12)
    assert own.cv_results_["mean_test_roc_auc"] == pytest.approx(search.cv_results_["mean_test_roc_auc"], abs=1e-4)
    assert own.best_params_ == search.best_params_
    assert own.decision_function(moons[0]) == pytest.approx(search.decision_function(moons[0]), abs=1e-3)


def test_scikit_learns_svr_has_the_same_scores(waves):
    own = KernelSVRCV(CS, GAMMAS, epsilon=0.05, **TIGHT).fit(*waves)
    search = GridSearchCV(SVR(tol=1e-6, epsilon=0.05), GRID).fit(*waves)
    assert own.cv_results_["mean_test_score"] == pytest.approx(search.cv_results_["mean_test_score"], abs=1e-4)
    assert own.best_params_ == search.best_params_


def test_at_the_default_tolerance_few_rows_of_real_data_are_predicted_otherwise():
    from parablock.datasets import load_covtype_sample

    X, y, _, _ = load_covtype_sample()
    X, y, grid = X[:2500], y[:2500], {"C": [1.0, 32.0], "gamma": [4.0, 32.0]}
    own = KernelSVCCV(grid["C"], grid["gamma"], n_jobs=1, random_state=0).fit(X, y)
    search = GridSearchCV(SVC(), grid).fit(X, y)
    assert own.cv_results_["mean_test_score"] == pytest.approx(search.cv_results_["mean_test_score"], abs=2e-3)
    assert own.best_params_ == search.best_params_


# ------------------------------------------------------------------------------------------------- what is shared


def test_folds_and_C_share_kernel_values(moons):
    X, y = moons
    options = {"n_blocks": 3, "random_state": 0, "n_jobs": 1}
    apart = 0
    for C in CS:
        for train, _ in StratifiedKFold(5).split(X, y):
            apart += KernelSVC(C=C, gamma=3.0, **options).fit(X[train], y[train]).kernel_evaluations_
    together = KernelSVCCV(CS, [3.0], **options).fit(X, y)
    assert together.kernel_evaluations_ < 0.3 * apart


def test_each_C_starts_from_the_one_below(moons):
    options = {"n_blocks": 3, "random_state": 0, "n_jobs": 1, "refit": False}
    near = KernelSVCCV([2.0, 2.02, 2.04], [3.0], **options).fit(*moons)
    first = KernelSVCCV([2.0], [3.0], **options).fit(*moons)
    assert near.n_iter_ < 2.5 * first.n_iter_


def test_the_partition_is_made_once(moons, monkeypatch):
    from parablock.partition.tree import TreePartitioner

    made = []
    original = TreePartitioner.blocks

    def counted(self, device, kernel, samples, n_blocks, rng):
        made.append(len(samples))
        return original(self, device, kernel, samples, n_blocks, rng)

    monkeypatch.setattr(TreePartitioner, "blocks", counted)
    monkeypatch.setattr(TreePartitioner, "regroup", lambda self, *arguments: [arguments[3]])
    KernelSVCCV(CS, GAMMAS, n_blocks=3, refit=False, n_jobs=1, random_state=0).fit(*moons)
    assert made == [300]


def test_memory_limit_changes_the_work_and_not_the_scores(moons):
    options = {"n_blocks": 3, "refit": False, **TIGHT}
    roomy = KernelSVCCV(CS, GAMMAS, scoring="roc_auc", **options).fit(*moons)
    narrow = KernelSVCCV(CS, GAMMAS, scoring="roc_auc", memory_limit="200KB", **options).fit(*moons)
    assert narrow.kernel_evaluations_ > 1.5 * roomy.kernel_evaluations_
    assert narrow.cv_results_["mean_test_score"] == pytest.approx(roomy.cv_results_["mean_test_score"], abs=1e-4)
