"""Predictions: the global kernel expansion, and the paper's local models (section 4.3)."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.datasets import make_moons
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.svm import SVC

from parablock import BlockSolver, KernelRidge, KernelSVC
from tests.small_problems import CASES, N, features, full_coef, in_format, rbf, targets

NEW = features(50, seed=3)
every_format = pytest.mark.parametrize("data_format", ["dense", "csr"])
every_estimator = pytest.mark.parametrize("case", CASES.values(), ids=CASES)

pytestmark = pytest.mark.filterwarnings("ignore:Not converged")


def decision(model, X):
    return getattr(model, "decision_function", model.predict)(X)


# ---------------------------------------------------------------------------------------------------- global models


@every_format
@every_estimator
def test_global_prediction_is_the_sum_over_support_vectors(case, data_format):
    model = case.model(n_blocks=4).fit(in_format(case.X, data_format), case.y)
    expected = rbf(NEW, case.X[model.support_]) @ model.dual_coef_[0] + model.intercept_[0]
    assert decision(model, in_format(NEW, data_format)) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("kernel", "parameters"),
    [
        ("linear", {}),
        ("poly", {"gamma": 0.5, "degree": 2, "coef0": 1.0}),
        ("sigmoid", {"gamma": 0.01, "coef0": 0.1}),
        ("laplacian", {"gamma": 0.7}),
        ("cosine", {}),
        ("chi2", {"gamma": 0.7}),
    ],
)
@every_format
def test_global_prediction_uses_the_kernel_of_the_fit(kernel, parameters, data_format):
    X, new = (np.abs(rows) for rows in (features(), NEW))  # chi2 takes no negative numbers
    model = KernelRidge(kernel=kernel, **parameters, n_jobs=1).fit(in_format(X, data_format), targets("numbers"))
    K = pairwise_kernels(new, X[model.support_], metric=kernel, **parameters)
    expected = K @ model.dual_coef_[0] + model.intercept_[0]
    assert model.predict(in_format(new, data_format)) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@every_format
def test_more_rows_and_support_vectors_than_a_tile_are_summed_up(dtype, data_format):
    rng = np.random.default_rng(0)
    X, y = make_moons(1500, noise=0.5, random_state=0)
    new = rng.uniform(-2, 3, size=(5000, 2))
    convert = sp.csr_matrix if data_format == "csr" else np.asarray
    model = KernelRidge(gamma=1.0, tol=1e-1, random_state=0).fit(convert(X.astype(dtype)), y)
    assert len(model.support_) > 1024
    expected = rbf(new, X[model.support_], gamma=1.0) @ model.dual_coef_[0] + model.intercept_[0]
    rounding = 1e-11 if dtype == np.float64 else 1e-3
    assert model.predict(convert(new.astype(dtype))) == pytest.approx(expected, abs=rounding)


def test_prediction_of_every_output_is_its_own_sum():
    X, y = features(), np.stack((targets("numbers"), targets("labels")), axis=1)
    model = KernelRidge(gamma=0.6, n_jobs=1).fit(X, y)
    expected = rbf(NEW, X) @ full_coef(model).T + model.intercept_
    assert model.predict(NEW) == pytest.approx(expected, abs=1e-12)


# ----------------------------------------------------------------------------------------------------- local models


def nearest_block(partition, X, new):
    """The paper's rule with the offsets that even out the blocks. Dense rows were centred for this kernel."""
    centres = partition.centres.points + X.mean(axis=0)
    return (cdist(new, centres, "sqeuclidean") + partition.centres.offsets).argmin(axis=1)


def local_decision(before, after, partition, beta, X, new):
    """coef_t plus the step of the new row's own block alone; the step is what the line search shortened."""
    step = (after - before) / beta
    block = nearest_block(partition, X, new)
    own = partition.labels == block[:, None]
    return np.einsum("ij,ij->i", rbf(new, X), before + step * own)


@pytest.mark.parametrize("iterations", [1, 4])
@pytest.mark.parametrize("partition", ["kmeans", "tree"])
@every_estimator
def test_local_prediction_follows_the_papers_rule(case, partition, iterations):
    settings = {"fit_intercept": False, "regroup": False, "n_blocks": 4, "partition": partition}
    local = case.fit(**settings, prediction="local", max_iter=iterations)
    after = full_coef(case.fit(**settings, max_iter=iterations))[0]
    before = full_coef(case.fit(**settings, max_iter=iterations - 1))[0] if iterations > 1 else np.zeros(N)
    beta = local.history_[-1].step
    expected = local_decision(before, after, local.partition_, beta, case.X, NEW)
    assert decision(local, NEW) == pytest.approx(expected, abs=1e-9)
    assert len(np.unique(nearest_block(local.partition_, case.X, NEW))) > 1


@every_format
@pytest.mark.parametrize("partition", ["kmeans", "kernel_kmeans", "tree"])
@pytest.mark.parametrize("fit_intercept", [True, False], ids=["intercept", "no intercept"])
def test_local_prediction_after_the_first_step_is_the_machine_of_the_nearest_block(
    fit_intercept, partition, data_format
):
    """From zero each block has solved its own problem, as if the other blocks' rows did not exist."""
    X, y = make_moons(200, noise=0.2, random_state=0)
    model = KernelSVC(
        gamma=1.0,
        fit_intercept=fit_intercept,
        partition=partition,
        n_blocks=3,
        block_solver=BlockSolver(fraction=0.0, floor=1e-6),
        regroup=False,
        max_iter=1,
        prediction="local",
        random_state=0,
        n_jobs=1,
    ).fit(in_format(X, data_format), y)
    found = model.decision_function(in_format(X, data_format))
    blocks = [block for block in model.partition_.blocks if len(set(y[block])) == 2]
    assert blocks
    agreeing = 0
    for block in blocks:
        if fit_intercept:
            expected = SVC(gamma=1.0, tol=1e-8).fit(X[block], y[block]).decision_function(X[block])
        else:
            alone = KernelSVC(gamma=1.0, fit_intercept=False, tol=1e-8, n_blocks=1, n_jobs=1).fit(X[block], y[block])
            expected = alone.decision_function(X[block])
        agreeing += np.sum(np.abs(found[block] - expected) < 1e-3)
    # Rows at the border may be nearest to another block's centre.
    assert agreeing >= 0.9 * sum(len(block) for block in blocks)


def test_local_and_global_prediction_agree_once_converged():
    case = CASES["hinge"]
    settings = {"fit_intercept": False, "regroup": False, "n_blocks": 4, "partition": "kmeans", "tol": 1e-6}
    local, whole = (case.fit(**settings, prediction=prediction) for prediction in ("local", "global"))
    assert decision(local, NEW) == pytest.approx(decision(whole, NEW), abs=1e-3)


def test_local_prediction_beats_global_prediction_after_the_first_step():
    """As in the paper's figure: together the blocks overshoot, but each is right at home."""
    X, y = make_moons(1000, noise=0.2, random_state=0)
    test_X, test_y = make_moons(1000, noise=0.2, random_state=1)
    settings = {
        "C": 10.0, "gamma": 0.5, "fit_intercept": False, "regroup": False, "max_iter": 1, "partition": "kmeans",
        "n_blocks": 10, "random_state": 0,
    }  # fmt: skip
    whole = KernelSVC(**settings).fit(X, y)
    local = KernelSVC(**settings, prediction="local").fit(X, y)
    assert local.score(test_X, test_y) > 0.9
    assert whole.score(test_X, test_y) < 0.85


def test_prediction_of_a_local_fit_can_be_switched_to_global():
    case = CASES["hinge"]
    settings = {"regroup": False, "n_blocks": 4, "max_iter": 1}
    model = case.fit(**settings, prediction="local").set_params(prediction="global")
    assert np.array_equal(model.predict(NEW), case.fit(**settings).predict(NEW))


@pytest.mark.parametrize("partition", ["kmeans", "kernel_kmeans", "tree"])
def test_local_prediction_with_a_precomputed_kernel_leaves_rows_without_weight_out(partition):
    """The same blocks and the same model as if those rows had never been there."""
    X, y, kept = features(), targets("labels"), np.arange(N) % 4 > 0
    settings = {
        "kernel": "precomputed", "partition": partition, "n_blocks": 3, "regroup": False, "max_iter": 1,
        "prediction": "local", "random_state": 0, "n_jobs": 1,
    }  # fmt: skip
    weighted = KernelSVC(**settings).fit(rbf(X), y, sample_weight=kept.astype(float))
    without = KernelSVC(**settings).fit(rbf(X[kept]), y[kept])
    assert weighted.decision_function(rbf(NEW, X)) == pytest.approx(
        without.decision_function(rbf(NEW, X[kept])), abs=1e-9
    )


@every_format
def test_local_prediction_of_several_classes_has_a_column_a_class(data_format):
    X = features()
    y = np.digitize(targets("numbers"), [-0.5, 0.5])
    settings = {"regroup": False, "n_blocks": 4, "max_iter": 1, "prediction": "local", "random_state": 0}
    model = KernelSVC(**settings, fit_intercept=False).fit(in_format(X, data_format), y)
    found = model.decision_function(in_format(NEW, data_format))
    for number in range(3):
        alone = KernelSVC(**settings, fit_intercept=False).fit(in_format(X, data_format), y == number)
        assert found[:, number] == pytest.approx(alone.decision_function(in_format(NEW, data_format)), abs=1e-6)
