"""Kernel values of CSR rows with so many features that a panel finds its own in a hash table."""

import numpy as np
import pytest
import scipy.sparse as sp

from parablock.devices.cpu.device import CpuDevice
from parablock.devices.cpu.overlaps import feature_table, sparse_panel
from parablock.devices.cpu.samples import SparseSamples
from parablock.kernels import RBF, Laplacian


def rows_of(features, n=150, seed=0):
    """Rows with values at about ten of the given features."""
    rng = np.random.default_rng(seed)
    chosen = sp.random(n, len(features), density=min(1.0, 10 / len(features)), format="csr", random_state=seed)
    X = sp.csr_matrix((chosen.data, features[chosen.indices], chosen.indptr), shape=(n, int(features.max()) + 1))
    X.data[:] = rng.integers(-3, 4, size=X.nnz)  # explicit zeros too
    return X


FEATURES = {
    "few": np.arange(200),
    "scattered": np.unique(np.random.default_rng(0).integers(20_000_000, size=3_000)),
    "in a row": np.arange(5_000_000, 5_000_500),
    "far apart by the same": np.arange(500) * 65_536,
    "far apart by more": np.arange(60) << 24,
}


@pytest.mark.slow
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("features", FEATURES.values(), ids=list(FEATURES))
def test_kernel_values_are_those_of_scipy(features, index):
    X = rows_of(features)
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    samples = SparseSamples(X, "product")
    squares = np.asarray(X.multiply(X).sum(axis=1))
    expected = np.exp(-0.1 * (squares + squares.T - 2 * (X @ X.T).toarray()))
    assert CpuDevice(1).gram(RBF(0.1), samples, samples) == pytest.approx(expected, abs=1e-12)


def test_other_overlaps_find_their_features_too():
    X = rows_of(FEATURES["scattered"], n=60)
    samples = CpuDevice(1).samples(X, Laplacian(0.1))
    narrow = X[:, np.unique(X.indices)].toarray()
    expected = np.exp(-0.1 * np.abs(narrow[:, None] - narrow).sum(axis=2))
    assert CpuDevice(1).gram(Laplacian(0.1), samples, samples) == pytest.approx(expected)


def test_a_table_does_not_grow_with_the_features():
    keys, places = feature_table(10**12, 2_000, np.int64)
    assert len(keys) == len(places) <= 8_192
    keys, places = feature_table(1_000, 2_000, np.int64)
    assert (len(keys), len(places)) == (0, 1_000)


@pytest.mark.parametrize("features", FEATURES.values(), ids=list(FEATURES))
def test_probing_stays_short(features):
    """However the features lie, those of a panel are found near where they are looked for first."""
    X = rows_of(features, n=64)
    keys, places = feature_table(10**9, X.nnz, X.indices.dtype)
    panel = np.zeros((X.nnz, 64))
    assert sparse_panel(X.data, X.indices, X.indptr, keys, places, panel) == len(np.unique(X.indices))
    full = np.flatnonzero(keys >= 0)
    runs = np.split(full, np.flatnonzero(np.diff(full) > 1) + 1)
    assert max(map(len, runs)) < 40
