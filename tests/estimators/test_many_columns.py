"""Sparse rows with columns of huge numbers: what they take is memory for their entries, and none for every column."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

import parablock
from parablock import KernelRidge, KernelSVC

WIDE = 2**31 - 2  # the most columns that LIBSVM's text can have
LOCAL = {"prediction": "local", "regroup": False}


@pytest.fixture(scope="module")
def problem():
    """Narrow rows, and the same entries in columns far apart."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(200, 6)) * (rng.random((200, 6)) < 0.6)
    narrow, places = sp.csr_matrix(values), np.array([0, 5, 1000, 10**6, 10**9, WIDE - 1], dtype=np.int32)
    wide = sp.csr_matrix((narrow.data, places[narrow.indices], narrow.indptr), shape=(200, WIDE))
    return narrow, wide, (values[:, 0] > 0).astype(int)


def peak(work):
    tracemalloc.start()
    try:
        return work(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "settings",
    [
        {}, {"n_blocks": 4}, {"n_blocks": 4, "partition": "kmeans"}, {"n_blocks": 4, "partition": "random"},
        {"n_blocks": 4, "partition": "kernel_kmeans"}, {"n_blocks": 4, **LOCAL},
        {"n_blocks": 4, "partition": "kmeans", **LOCAL}, {"n_blocks": 4, "memory_limit": "10MB"},
        {"kernel": "laplacian"}, {"kernel": "linear"}, {"kernel": "cosine", "n_blocks": 3},
    ],
    ids=str,
)  # fmt: skip
def test_columns_without_entries_take_no_memory(problem, settings, tmp_path):
    narrow, wide, y = problem
    model = KernelSVC(gamma=0.3, tol=1e-5, random_state=0, **settings)
    expected = model.fit(narrow, y).decision_function(narrow)  # also compiles

    def use():
        model.fit(wide, y)
        model.save(tmp_path / "model.pbk")
        return parablock.load(tmp_path / "model.pbk").decision_function(wide), model.decision_function(wide)

    (loaded, found), memory = peak(use)
    assert memory < 50e6  # a byte for every column would be 2 GB
    np.testing.assert_allclose(found, expected, atol=2e-2)
    assert np.array_equal(loaded, found)
    assert model.support_vectors_.shape[1] == model.n_features_in_ == WIDE


def test_a_width_from_the_data_takes_none_either(problem):
    narrow, wide, y = problem
    spread = KernelRidge(gamma="scale").fit(wide, y)._gamma
    values = np.append(narrow.data, 0.0)
    mean, square = values.sum() / (200 * WIDE), (values**2).sum() / (200 * WIDE)
    assert spread == pytest.approx(1 / (WIDE * (square - mean**2)), rel=1e-9)
    _, memory = peak(lambda: KernelRidge(gamma="scale").fit(wide, y))
    assert memory < 50e6
