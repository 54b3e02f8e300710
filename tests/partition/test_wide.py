"""Rows of very many features, few of which are not zero: partitions whose centres are as sparse as the rows."""

import pickle
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans

import parablock
from parablock import KernelSVC
from parablock.compact import dense_if_full, stacked, sum_of_rows, widened, without_unused
from parablock.devices.cpu.device import CpuDevice
from parablock.kernels import RBF
from parablock.partition import make_partitioner
from parablock.partition.base import FeatureCentres, JoinedCentres
from parablock.partition.kmeans import fitted_centres

KERNEL = RBF(0.5)
WIDE = 5_000_000
methods = pytest.mark.parametrize("method", ["tree", "kmeans", "random"])


def wide_rows(n, n_features=WIDE, per_row=12, seed=0, dtype=np.float32):
    """Rows of a few features, half of them among the first 40, by which four groups differ; and labels."""
    rng = np.random.default_rng(seed)
    group = rng.integers(4, size=n)
    frequent = 10 * group[:, None] + rng.integers(10, size=(n, per_row // 2))
    rare = rng.integers(40, n_features, size=(n, per_row - per_row // 2))
    indices = np.concatenate((frequent, rare), axis=1).ravel()
    X = sp.csr_matrix((np.ones(indices.size), indices, np.arange(0, indices.size + 1, per_row)), (n, n_features), dtype)
    X.sum_duplicates()
    return X, np.where((group % 2 == 1) ^ (rng.random(n) < 0.1), 1, -1)


@pytest.fixture
def samples(device):
    return device.samples(wide_rows(600)[0], KERNEL)


# ------------------------------------------------------------------------------------------------------------- columns


def test_columns_without_entries_can_be_left_out_and_put_back():
    X = wide_rows(50)[0]
    narrow, used = without_unused(X)
    assert np.array_equal(used, np.unique(X.indices))
    assert (narrow @ narrow.T != X @ X.T).nnz == 0
    assert (widened(narrow.toarray(), used, WIDE) != X).nnz == 0


@pytest.mark.parametrize("n_features", [3, 50, 10_000])
def test_the_sum_of_rows_is_that_of_dense_rows(n_features):
    X = sp.random(40, n_features, density=min(0.5, 40 / n_features), format="csr", dtype=np.float32, random_state=0)
    total = sum_of_rows(X)
    assert total.dtype == np.float64
    assert total.toarray().ravel() == pytest.approx(X.toarray().sum(axis=0, dtype=np.float64))


def test_only_matrices_with_few_entries_stay_sparse():
    assert isinstance(dense_if_full(sp.csr_matrix(np.ones((2, 4)))), np.ndarray)
    assert sp.issparse(dense_if_full(sp.csr_matrix(np.eye(10))))
    full, empty = np.ones(20), sp.csr_matrix((1, 20))
    assert isinstance(stacked([full, full]), np.ndarray)
    assert isinstance(stacked([full, empty]), np.ndarray)
    assert sp.issparse(stacked([full] + [empty] * 20))
    assert np.array_equal(stacked([empty, full[None]]), np.stack((np.zeros(20), full)))


# ------------------------------------------------------------------------------------------------------------- centres


@methods
def test_centres_of_wide_rows_are_sparse_and_tell_what_dense_ones_would(device, method):
    X = wide_rows(600, n_features=20_000)[0]
    rows = device.samples(X, KERNEL)
    centres = make_partitioner(method, 600).partition(device, KERNEL, rows, 6, np.random.default_rng(0)).centres
    assert sp.issparse(centres.points)
    dense = FeatureCentres(centres.points.toarray(), centres.offsets)
    distances = centres.distances(device, KERNEL, rows)
    assert distances == pytest.approx(dense.distances(device, KERNEL, rows), rel=1e-5)
    points = centres.points.toarray().astype(np.float64)
    direct = cdist(X.toarray(), points, "sqeuclidean") + centres.offsets
    assert distances == pytest.approx(direct, rel=1e-5)
    chosen = direct[np.arange(600), centres.nearest(device, KERNEL, rows)]  # borders lie right between rows
    assert chosen == pytest.approx(direct.min(axis=1), rel=1e-5)


def test_sparse_means_are_those_of_the_blocks(device, samples):
    X = wide_rows(600)[0]
    partition = make_partitioner("tree", 600).partition(device, KERNEL, samples, 6, np.random.default_rng(0))
    for point, block in zip(partition.centres.points, partition.blocks, strict=True):
        mean = sp.csr_matrix(X[block].sum(axis=0)) / len(block)
        assert abs(point - mean).max() < 1e-6


def test_centres_of_frequent_features_are_dense(device):
    X = sp.random(300, 20, density=0.5, format="csr", random_state=0)
    for method in ("tree", "kmeans"):
        partition = make_partitioner(method, 300).partition(
            device, KERNEL, device.samples(X, KERNEL), 4, np.random.default_rng(0)
        )
        assert isinstance(partition.centres.points, np.ndarray)


def test_joined_centres_may_be_of_both_kinds(device):
    X = wide_rows(50, n_features=1_000)[0]
    sparse = FeatureCentres(X[:3], np.zeros(3))
    dense = FeatureCentres(X[3:5].toarray(), np.ones(2))
    rows = device.samples(X, KERNEL)
    joined = JoinedCentres([sparse, dense]).distances(device, KERNEL, rows)
    whole = FeatureCentres(X[:5].toarray(), np.array([0.0, 0.0, 0.0, 1.0, 1.0]))
    assert joined == pytest.approx(whole.distances(device, KERNEL, rows), abs=1e-5)


def test_what_depends_on_the_centres_alone_is_made_once_and_not_pickled(device, samples):
    centres = FeatureCentres(wide_rows(4)[0], np.zeros(4))
    before = len(pickle.dumps(centres))
    columns = centres._ready(samples.dtype)[0]
    first = centres.distances(device, KERNEL, samples)
    assert centres._ready(samples.dtype)[0] is columns
    assert len(pickle.dumps(centres)) == before
    again = pickle.loads(pickle.dumps(centres))
    assert np.array_equal(again.distances(device, KERNEL, samples), first)


def test_one_centre_serves_rows_of_both_precisions(device):
    X = wide_rows(40, n_features=1_000, dtype=np.float64)[0] * 0.1
    centres = FeatureCentres(X[:3], np.zeros(3))
    single, double = (centres.distances(device, KERNEL, device.samples(X.astype(t), KERNEL)) for t in ("f4", "f8"))
    assert single == pytest.approx(double, abs=1e-6)
    assert np.diagonal(double) == pytest.approx(0, abs=1e-15 if device.name == "cpu" else 1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_k_means_finds_the_centres_that_it_would_find_among_all_features(dtype):
    X = wide_rows(400, n_features=20_000, dtype=dtype)[0]
    for seed in range(3):
        found, whole = (KMeans(6, n_init=1, max_iter=50, random_state=seed) for _ in range(2))
        centres = fitted_centres(found, X)
        assert centres.dtype == dtype
        assert centres.toarray() == pytest.approx(whole.fit(X).cluster_centers_, abs=1e-6)
        assert found.n_iter_ == whole.n_iter_


def test_k_means_of_rows_without_entries(device):
    rows = device.samples(sp.csr_matrix((30, WIDE), dtype=np.float32), KERNEL)
    partition = make_partitioner("kmeans", 30).partition(device, KERNEL, rows, 3, np.random.default_rng(0))
    assert partition.sizes.sum() == 30
    assert partition.centres.points.shape == (len(partition.blocks), WIDE)


# ---------------------------------------------------------------------------------------------------------------- fits


@pytest.mark.parametrize("method", ["tree", "kmeans"])
def test_a_fit_of_five_million_features_takes_no_dense_memory(method, tmp_path):
    X, y = wide_rows(3_000)
    new, truth = wide_rows(500, seed=1)
    model = KernelSVC(
        gamma=0.1, partition=method, n_blocks=6, prediction="local", regroup=False, random_state=0, n_jobs=2
    )
    tracemalloc.start()
    try:
        model.fit(X, y)
        predicted = model.predict(new)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert np.mean(predicted == truth) > 0.85
    points = model.partition_.centres.points
    dense = 6 * WIDE * 4
    assert sum(part.nbytes for part in (points.data, points.indices, points.indptr)) < dense / 100
    # One vector of all features at a time: a direction of the tree, or where a feature of the centres begins.
    assert peak < 4 * X.data.nbytes + 3_000**2 * 4 + 3 * WIDE * 4
    model.save(tmp_path / "wide.pbk")
    loaded = parablock.load(tmp_path / "wide.pbk")
    assert (tmp_path / "wide.pbk").stat().st_size < dense / 20
    assert (loaded.partition_.centres.points != points).nnz == 0
    assert np.array_equal(loaded.decision_function(new), model.decision_function(new))


def test_a_wide_model_is_that_of_the_features_in_use():
    X, y = wide_rows(400)
    new = wide_rows(100, seed=1)[0]
    narrow, used = without_unused(sp.vstack((X, new), format="csr"))
    settings = {"gamma": 0.1, "n_blocks": 4, "prediction": "local", "regroup": False, "random_state": 0}
    wide_model = KernelSVC(**settings).fit(X, y)
    narrow_model = KernelSVC(**settings).fit(narrow[:400], y)
    assert len(used) < WIDE / 100
    assert wide_model.decision_function(new) == pytest.approx(narrow_model.decision_function(narrow[400:]), abs=1e-4)


def test_work_of_a_device_goes_on_in_threads_or_without():
    for threads in (1, 2):
        cpu = CpuDevice(threads)
        assert cpu.map(lambda item: item**2, range(5)) == [0, 1, 4, 9, 16]
        with cpu.session():
            assert cpu.map(lambda item: item**2, range(5)) == [0, 1, 4, 9, 16]
