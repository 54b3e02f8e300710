"""Kernel values are kept as far as `memory_limit` allows, and computed again beyond it; never the whole matrix."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_moons

from parablock import KernelRidge, KernelSVC
from tests.small_problems import CASES, features, full_coef, optimum, targets

MEGABYTE = 1 << 20


def peak_bytes(work):
    """The most memory that NumPy and Python held at once during the work, beyond what they held before."""
    work()  # compiles what it needs, which takes memory of its own
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.fixture(scope="module")
def moons():
    X, y = make_moons(1000, noise=0.25, random_state=0)
    return X, y


@pytest.mark.parametrize("regroup", [True, False], ids=["regrouped", "fixed"])
@pytest.mark.parametrize("n_blocks", [1, 3])
@pytest.mark.parametrize("data_format", ["dense", "csr"])
def test_a_small_limit_gives_the_same_solution(moons, data_format, n_blocks, regroup):
    X, y = moons
    X = sp.csr_matrix(X) if data_format == "csr" else X
    settings = {"C": 10, "gamma": 2.0, "tol": 1e-4, "n_blocks": n_blocks, "regroup": regroup, "random_state": 0}
    ample = KernelSVC(**settings, memory_limit="1GB").fit(X, y)
    scarce = KernelSVC(**settings, memory_limit="10KB").fit(X, y)
    assert scarce.dual_objective_ == pytest.approx(ample.dual_objective_, rel=1e-6)
    assert scarce.decision_function(X) == pytest.approx(ample.decision_function(X), abs=1e-2)


@pytest.mark.parametrize("fit_intercept", [True, False], ids=["intercept", "no intercept"])
@pytest.mark.parametrize("block_solver", ["greedy", "random", "cyclic"])
def test_every_block_solver_waits_for_missing_columns(moons, block_solver, fit_intercept):
    X, y = moons
    settings = {"gamma": 2.0, "tol": 1e-3, "n_blocks": 1, "fit_intercept": fit_intercept, "random_state": 0}
    ample = KernelSVC(**settings, block_solver=block_solver, memory_limit="1GB").fit(X, y)
    scarce = KernelSVC(**settings, block_solver=block_solver, memory_limit=1).fit(X, y)
    assert scarce.violation_ <= 1e-3
    assert scarce.dual_objective_ == pytest.approx(ample.dual_objective_, rel=1e-5)


def test_columns_beyond_the_limit_are_computed_again(moons):
    """In ridge regression every column is needed, and needed again and again."""
    X, y = moons
    settings = {"gamma": 2.0, "tol": 1e-3, "n_blocks": 1, "random_state": 0}
    ample = KernelRidge(**settings, memory_limit="1GB").fit(X, y)
    scarce = KernelRidge(**settings, memory_limit=1).fit(X, y)
    assert scarce.dual_objective_ == pytest.approx(ample.dual_objective_, rel=1e-6)
    assert scarce.kernel_evaluations_ > 2 * ample.kernel_evaluations_


@pytest.mark.parametrize("loss", CASES)
def test_the_smallest_limit_is_enough_for_every_loss(loss):
    case = CASES[loss]
    model = case.fit(memory_limit=1, tol=1e-6, n_blocks=2)
    assert case.objective(full_coef(model)[0]) == pytest.approx(optimum(loss, True), rel=1e-6)


def test_block_matrices_of_a_fixed_partition_are_computed_once_where_they_fit(moons):
    X, y = moons
    settings = {"gamma": 2.0, "n_blocks": 4, "partition": "tree", "regroup": False, "fit_intercept": False, "tol": 1e-3}
    kept = KernelSVC(**settings, memory_limit="1GB", random_state=0).fit(X, y)
    assert kept.n_iter_ > 3
    evaluations = np.diff([record.kernel_evaluations for record in kept.history_])
    # What is left is K d: at most every row with every row that moved.
    assert np.all(evaluations <= [1000 * record.changed for record in kept.history_[1:]])
    fresh = KernelSVC(**settings, memory_limit="100KB", random_state=0).fit(X, y)
    assert fresh.kernel_evaluations_ > kept.kernel_evaluations_


def test_training_never_holds_the_kernel_matrix():
    X, y = make_moons(8000, noise=0.3, random_state=0)
    X = X.astype(np.float32)
    model = KernelSVC(gamma=2.0, tol=1e-1, memory_limit="4MB", n_jobs=1, random_state=0)
    matrix = 4 * len(X) ** 2  # 244 MB
    assert peak_bytes(lambda: model.fit(X, y)) < matrix / 8
    assert model.violation_ <= 1e-1


def test_a_single_block_keeps_to_the_limit():
    X, y = make_moons(4000, noise=0.3, random_state=0)
    X = X.astype(np.float32)
    model = KernelSVC(gamma=2.0, tol=1e-1, n_blocks=1, n_jobs=1, random_state=0)
    ample = peak_bytes(lambda: model.set_params(memory_limit="1GB").fit(X, y))
    scarce = peak_bytes(lambda: model.set_params(memory_limit="6MB").fit(X, y))
    assert ample > 4 * len(X) ** 2
    assert scarce < 6 * MEGABYTE + 12 * MEGABYTE  # and some for tiles and vectors


def clouds(n, n_features, n_classes=2, dtype=np.float64, density=None):
    """Rows of all kinds, with classes that overlap."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, n_features)).astype(dtype)
    if density is not None:
        X = sp.csr_matrix(X * (rng.random(X.shape) < density))
    return X, rng.integers(0, n_classes, n)


def bytes_in_float64(X):
    return 8 * X.nnz + X.indices.nbytes + X.indptr.nbytes if sp.issparse(X) else 8 * X.size


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("limit", [8, 24])
@pytest.mark.parametrize(
    ("data", "n_jobs"),
    [
        (clouds(3000, 20), 1),
        (clouds(3000, 20), 2),
        (clouds(1200, 20, n_classes=7), 1),
        (clouds(3000, 20, dtype=np.float32), 1),
        (clouds(1500, 3000, dtype=np.float32), 1),
        (clouds(400, 20_000), 1),
        (clouds(3000, 500, density=0.05), 1),
        (clouds(1000, 20_000, density=0.01, dtype=np.float32), 2),
    ],
    ids=["float64", "two threads", "7 classes", "float32", "wide", "very wide", "sparse", "wide sparse"],
)
def test_what_comes_on_top_of_the_limit(data, n_jobs, limit):
    """What the guide promises: the rows thrice, 400 bytes a row and output, 32 MB and 8 MB a thread."""
    X, y = data
    n_outputs = len(np.unique(y)) if y.max() > 1 else 1
    model = KernelSVC(
        gamma=1 / X.shape[1], tol=1e-1, max_iter=2, memory_limit=limit * MEGABYTE, n_jobs=n_jobs, random_state=0
    )
    on_top = 3 * bytes_in_float64(X) + 400 * X.shape[0] * n_outputs + (32 + 8 * n_jobs) * MEGABYTE
    assert peak_bytes(lambda: model.fit(X, y)) <= limit * MEGABYTE + on_top


def test_prediction_works_in_tiles():
    X, y = make_moons(2000, noise=0.3, random_state=0)
    model = KernelRidge(gamma=2.0, tol=1e-1, n_jobs=1, random_state=0).fit(X, y)
    new = np.random.default_rng(0).normal(size=(20_000, 2))
    matrix = 8 * len(new) * len(model.support_)  # 305 MB
    assert peak_bytes(lambda: model.predict(new)) < matrix / 16


def test_sparse_rows_are_not_made_dense():
    X = sp.random(200, 60_000, density=5e-4, format="csr", random_state=0)
    y = np.where(np.arange(200) % 2, 1, -1)
    model = KernelSVC(kernel="linear", n_blocks=2, tol=1e-2, n_jobs=1, random_state=0)
    dense = 8 * X.shape[0] * X.shape[1]  # 92 MB
    assert peak_bytes(lambda: model.fit(X, y).predict(X)) < dense / 3


@pytest.mark.parametrize("limit", ["2MB", "0.002 GB", "2048KB", "2MiB", 2 * MEGABYTE, 2e6])
def test_limits_may_be_numbers_or_texts(limit):
    assert KernelSVC(memory_limit=limit).fit(features(), targets("labels")).violation_ <= 1e-3
