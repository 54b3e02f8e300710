"""Kept kernel columns: the same products, and no value computed twice."""

import numpy as np
import pytest
import scipy.sparse as sp

from parablock.devices import CpuDevice
from parablock.kernels import RBF, Called, Laplacian, Precomputed

N = 700


def product(K, rows, coef):
    return coef @ K[rows]


@pytest.fixture
def X():
    return np.random.default_rng(0).random((N, 5))


@pytest.mark.parametrize("room", [1 << 30, 2 * 100 * N * 8, 1])
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("data_format", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("kernel", [RBF(2.0), Laplacian(1.0)])
def test_products_equal_the_full_matrix_times_the_coefficients(X, kernel, data_format, n_jobs, room):
    rng = np.random.default_rng(1)
    device = CpuDevice(n_jobs, room)
    with device.session():
        samples = device.samples(data_format(X), kernel)
        K = device.gram(kernel, samples, samples)
        for size in (3, 150, 0, 260, N):
            rows = rng.choice(N, size, replace=False)
            coef = rng.normal(size=(2, size))
            assert device.column_dot(kernel, samples, rows, coef) == pytest.approx(product(K, rows, coef), abs=1e-10)


def test_columns_that_are_kept_are_not_computed_again(X):
    device = CpuDevice(1, 1 << 30)
    with device.session():
        samples = device.samples(X, RBF(2.0))
        device.column_dot(RBF(2.0), samples, np.arange(100), np.ones((1, 100)))
        assert device.kernel_evaluations == 100 * N
        device.column_dot(RBF(2.0), samples, np.arange(50, 120), np.ones((1, 70)))
        assert device.kernel_evaluations == 120 * N


def test_columns_without_a_place_are_computed_every_time(X):
    device = CpuDevice(1, 2 * 100 * N * 8)  # half of the limit is the store's: 100 columns
    with device.session():
        samples = device.samples(X, RBF(2.0))
        for times in (1, 2, 3):
            device.column_dot(RBF(2.0), samples, np.arange(130), np.ones((1, 130)))
            assert device.kernel_evaluations == (100 + 30 * times) * N


@pytest.mark.parametrize("kernel", [Precomputed(), Called(lambda A, B: A @ B.T)])
def test_the_users_own_kernels(X, kernel):
    K = X @ X.T
    rows, coef = np.arange(0, N, 3), np.random.default_rng(2).normal(size=(1, len(range(0, N, 3))))
    device = CpuDevice(1, 1 << 30)
    with device.session():
        samples = device.samples(K if isinstance(kernel, Precomputed) else X, kernel)
        assert device.column_dot(kernel, samples, rows, coef) == pytest.approx(product(K, rows, coef), abs=1e-9)


def test_other_samples_get_a_store_of_their_own(X):
    device = CpuDevice(1, 1 << 30)
    with device.session():
        for data in (X, X[::-1].copy()):
            samples = device.samples(data, RBF(2.0))
            K = device.gram(RBF(2.0), samples, samples)
            found = device.column_dot(RBF(2.0), samples, np.arange(10), np.ones((1, 10)))
            assert found == pytest.approx(product(K, np.arange(10), np.ones((1, 10))), abs=1e-10)
