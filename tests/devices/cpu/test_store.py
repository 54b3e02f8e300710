"""Kept kernel columns: the same products, and no value computed twice."""

from itertools import cycle

import numpy as np
import pytest
import scipy.sparse as sp

from parablock.devices import CpuDevice
from parablock.devices.cpu.columns import Columns
from parablock.devices.cpu.samples import narrow, used_features
from parablock.kernels import RBF, Called, Laplacian, Precomputed
from tests.oracle import rbf

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
            assert device.column_dot(kernel, samples, samples, rows, coef) == pytest.approx(
                product(K, rows, coef), abs=1e-10
            )


def test_columns_that_are_kept_are_not_computed_again(X):
    device = CpuDevice(1, 1 << 30)
    with device.session():
        samples = device.samples(X, RBF(2.0))
        device.column_dot(RBF(2.0), samples, samples, np.arange(100), np.ones((1, 100)))
        assert device.kernel_evaluations == 100 * N
        device.column_dot(RBF(2.0), samples, samples, np.arange(50, 120), np.ones((1, 70)))
        assert device.kernel_evaluations == 120 * N


def test_columns_without_a_place_are_computed_every_time(X):
    device = CpuDevice(1, 2 * 100 * N * 8)  # half of the limit is the store's: 100 columns
    with device.session():
        samples = device.samples(X, RBF(2.0))
        for times in (1, 2, 3):
            device.column_dot(RBF(2.0), samples, samples, np.arange(130), np.ones((1, 130)))
            assert device.kernel_evaluations == (100 + 30 * times) * N


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("gamma", [2.0, 2e5])
def test_columns_that_are_mostly_zero_leave_room_for_others(n_jobs, gamma):
    """Rows on a line, neighbours side by side: of the narrow kernel's columns there are as many again, and more."""
    count, kernel = 3000, RBF(gamma)
    X = np.linspace(0.0, 1.0, count)[:, None]
    device = CpuDevice(n_jobs, 2 * 600 * count * 8)  # half of the limit is the store's: 600 columns
    with device.session():
        samples = device.samples(X, kernel)
        K, coef = device.gram(kernel, samples, samples), np.random.default_rng(0).normal(size=(2, count))
        device.kernel_evaluations = 0
        for _ in range(2):
            found = device.column_dot(kernel, samples, samples, np.arange(count), coef)
            assert found == pytest.approx(product(K, np.arange(count), coef), abs=1e-10)
        again = device.kernel_evaluations / count - count  # columns that were computed a second time
        assert again == (count - 600 if gamma == 2.0 else 0)
        some = np.arange(0, count, 5)
        device.extend(kernel, samples, [samples], samples, some, (count, count))
        found = device.column_dot(kernel, samples, samples, some, coef[:, some])
        assert found == pytest.approx(product(K, some, coef[:, some]), abs=1e-10)


@pytest.mark.parametrize("kernel", [Precomputed(), Called(lambda A, B: A @ B.T)])
def test_the_users_own_kernels(X, kernel):
    K = X @ X.T
    rows, coef = np.arange(0, N, 3), np.random.default_rng(2).normal(size=(1, len(range(0, N, 3))))
    device = CpuDevice(1, 1 << 30)
    with device.session():
        samples = device.samples(K if isinstance(kernel, Precomputed) else X, kernel)
        assert device.column_dot(kernel, samples, samples, rows, coef) == pytest.approx(
            product(K, rows, coef), abs=1e-9
        )


def test_other_samples_get_a_store_of_their_own(X):
    device = CpuDevice(1, 1 << 30)
    with device.session():
        for data in (X, X[::-1].copy()):
            samples = device.samples(data, RBF(2.0))
            K = device.gram(RBF(2.0), samples, samples)
            found = device.column_dot(RBF(2.0), samples, samples, np.arange(10), np.ones((1, 10)))
            assert found == pytest.approx(product(K, np.arange(10), np.ones((1, 10))), abs=1e-10)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_kept_columns_get_longer_when_samples_follow(X, n_jobs):
    kernel, rng = RBF(2.0), np.random.default_rng(3)
    device = CpuDevice(n_jobs, 1 << 30)
    with device.session():
        everyone = device.samples(X, kernel)
        K = device.gram(kernel, everyone, everyone)
        device.kernel_evaluations = 0
        numbers = rng.permutation(N)
        first, more = numbers[:500], numbers[:600]
        some = everyone.take(first)
        device.extend(
            kernel, everyone, [some], some, np.arange(0), (625, 625)
        )  # not the first of everyone: an empty store
        coef = rng.normal(size=(2, 200))
        assert device.column_dot(kernel, some, some, np.arange(200), coef) == pytest.approx(
            coef @ K[first[:200]][:, first]
        )
        longer = everyone.take(more)
        device.extend(kernel, some, [longer], longer, np.arange(200), (750, 750))
        assert device.kernel_evaluations == 200 * 600
        found = device.column_dot(kernel, longer, longer, np.arange(200), coef)
        assert found == pytest.approx(coef @ K[first[:200]][:, more])
        assert device.kernel_evaluations == 200 * 600  # nothing was computed again
        rows = np.arange(100, 600, 7)
        coef = rng.normal(size=(1, len(rows)))
        assert device.column_dot(kernel, longer, longer, rows, coef) == pytest.approx(coef @ K[more[rows]][:, more])


def test_columns_that_cannot_get_longer_are_forgotten(X):
    kernel, device = RBF(2.0), CpuDevice(1, 1 << 30)
    with device.session():
        everyone = device.samples(X, kernel)
        K = device.gram(kernel, everyone, everyone)
        some, coef = everyone.take(np.arange(100)), np.ones((1, 50))
        device.extend(kernel, everyone, [some], some, np.arange(0), (125, 125))
        device.column_dot(kernel, some, some, np.arange(50), coef)
        device.extend(kernel, some, [everyone], everyone, np.arange(50), (N, N))
        assert device.column_dot(kernel, everyone, everyone, np.arange(50), coef) == pytest.approx(coef @ K[:50])


@pytest.mark.parametrize("share", [0, 0.5, 1])
def test_a_blocks_matrix_is_copied_from_kept_columns_where_it_can(X, share):
    """With kernel values that are dear, so that copying pays: a user's function."""
    kernel = Called(lambda A, B: np.exp(-2.0 * ((A[:, None] - B[None]) ** 2).sum(axis=2)))
    device = CpuDevice(1, 1 << 30)
    with device.session():
        samples = device.samples(X, kernel)
        block = np.arange(5, 305)
        kept = block[: int(share * len(block))]
        device.column_dot(kernel, samples, samples, kept, np.ones((1, len(kept))))
        columns = Columns(samples, block, kernel, len(block), device._store)
        columns.fill(lambda work, items: [work(item) for item in items])
        assert columns.storage[columns.slot] == pytest.approx(device.gram(kernel, samples, samples)[5:305, 5:305])
        assert columns.count() == (len(block) - len(kept)) * len(block)


@pytest.mark.parametrize("kernel", [RBF(2.0), Laplacian(1.0)])
def test_features_that_are_zero_in_all_columns_are_left_out(X, kernel):
    wide = np.zeros((N, 20))
    wide[:, ::4] = X
    rows = wide + np.random.default_rng(4).normal(size=wide.shape)  # these have features that no column has
    device = CpuDevice(1, 1 << 30)
    with device.session():
        columns, others = device.samples(wide, kernel), device.samples(rows, kernel)
        features = used_features(columns)
        narrow_rows, narrow_columns = narrow(others, features), narrow(columns, features)
        assert narrow_rows.X.shape == narrow_columns.X.shape == (N, 5)
        K = device.gram(kernel, others, columns)
        assert device.gram(kernel, narrow_rows, narrow_columns) == pytest.approx(K)
        assert device.kernel_dot(kernel, others, columns, np.ones((1, N))) == pytest.approx(K.sum(axis=1)[None])
        few = device.samples(X, kernel)
        assert used_features(few) is None  # nothing to leave out


def test_columns_that_others_compute_are_to_the_last_digit_ones_own():
    """Also where samples came one after the other; and whoever is given the values computes none."""
    X = np.random.default_rng(0).normal(size=(3000, 20)).astype(np.float32)
    kernel, rows, coef = RBF(0.05), np.arange(100, 2500, 3), np.ones((1, 800))
    ends = [1300, 1700, 2900]
    found = []
    for helped in (False, True):
        device = CpuDevice(1, 1 << 30)
        with device.session():
            everyone = device.samples(X, kernel)
            first, second, third = (everyone.take(np.arange(end)) for end in ends)
            device.extend(kernel, everyone, [first], everyone, rows[:0], (3000, 3000))
            device.column_dot(kernel, first, everyone, np.arange(50), np.ones((1, 50)), [second])
            device.extend(kernel, second, [third], everyone, np.arange(50), (3000, 3000))
            values = None
            if helped:
                missing = device.missing(third, np.arange(0, 2500, 2))
                np.testing.assert_array_equal(missing, np.arange(50, 2500, 2))
                values = np.full((len(rows), ends[-1]), np.nan, dtype=np.float32)
                for helper in range(3):
                    turns = (turn == helper for turn in cycle(range(3)))
                    device.column_values(kernel, third, ends, everyone.take(rows), turns, values)
            before = device.kernel_evaluations
            device.prefetch(kernel, third, everyone, rows, values)
            assert device.kernel_evaluations - before == (0 if helped else len(rows) * ends[-1])
            assert len(device.missing(third, rows)) == 0
            found.append(device.column_dot(kernel, third, everyone, rows, coef))
    np.testing.assert_array_equal(*found)
    assert found[0][0] == pytest.approx(rbf(X[:2900], X[rows], 0.05).sum(axis=1), rel=1e-5)
