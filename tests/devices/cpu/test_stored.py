"""Samples that stay on disk give what the same samples give in memory."""

import numpy as np
import pytest
import scipy.sparse as sp

from parablock.datasets import open_csr, save_csr
from parablock.devices import CpuDevice
from parablock.devices.cpu.samples import DenseSamples, SparseSamples, make_samples, narrow
from parablock.devices.cpu.stored import StoredSamples
from parablock.kernels import Called, make_kernel
from parablock.mapped import MappedRows, column_means, data_bytes, is_mapped, some_rows, stretches
from parablock.partition import make_partitioner

N, FEATURES = 1500, 12
LITTLE = 1 << 12  # of rows that may come into memory: some of them, but no block
formats = pytest.mark.parametrize("data_format", ["dense", "csr"])
kernels = pytest.mark.parametrize("kernel", ["rbf", "laplacian", "chi2", "linear", "cosine", "called"])
orders = pytest.mark.parametrize("ordered", [False, True], ids=["as in the file", "in another order"])


@pytest.fixture(scope="module", params=[np.float32, np.float64])
def X(request):
    rng = np.random.default_rng(0)
    return (rng.random((N, FEATURES)) * (rng.random((N, FEATURES)) < 0.6)).astype(request.param)


@pytest.fixture
def on_disk(X, tmp_path):
    """A function that gives X in some format, in memory and mapped."""

    def both(data_format):
        if data_format == "dense":
            np.save(tmp_path / "X.npy", X)
            return X, np.load(tmp_path / "X.npy", mmap_mode="r")
        save_csr(tmp_path / "csr", sp.csr_matrix(X))
        return sp.csr_matrix(X), open_csr(tmp_path / "csr")

    return both


def kernel_of(name):
    if name == "called":
        return Called(lambda A, B: dense(A @ B.T))
    return make_kernel(name, 0.7)


def twins(on_disk, data_format, kernel, ordered=False, most=LITTLE):
    """The same samples in memory and on disk."""
    here, there = on_disk(data_format)
    centre = column_means(here) if data_format == "dense" else None
    memory, disk = make_samples(here, kernel, centre), StoredSamples(MappedRows(there), kernel, centre, most)
    if ordered:
        order = np.random.default_rng(1).permutation(N)
        memory, disk = memory.take(order), disk.take(order)
    assert isinstance(disk, StoredSamples)
    assert len(memory) == len(disk) == N
    return memory, disk


def dense(features):
    return features.toarray() if sp.issparse(features) else features


def close(found, expected, dtype):
    return np.allclose(found, expected, rtol=0, atol=1e-5 if dtype == np.float32 else 1e-12)


# ------------------------------------------------------------------------------------------------------ tiles


@formats
@kernels
@orders
def test_tiles_are_those_of_samples_in_memory(X, on_disk, data_format, kernel, ordered):
    kernel = kernel_of(kernel)
    memory, disk = twins(on_disk, data_format, kernel, ordered)
    device = CpuDevice(1, 1 << 30)
    np.testing.assert_allclose(disk.self_overlap, memory.self_overlap, rtol=1e-6)
    some = np.arange(0, N, 11)
    expected = device.gram(kernel, memory, memory.take(some))
    assert close(device.gram(kernel, disk, memory.take(some)), expected, X.dtype)
    assert close(device.gram(kernel, memory.take(some), disk), expected.T, X.dtype)
    assert close(device.gram(kernel, disk, disk.take(some)), expected, X.dtype)


@formats
@orders
def test_products_are_those_of_samples_in_memory(X, on_disk, data_format, ordered):
    kernel, rng = make_kernel("rbf", 0.7), np.random.default_rng(2)
    memory, disk = twins(on_disk, data_format, kernel, ordered)
    rows, coef = rng.choice(N, 700, replace=False), rng.normal(size=(3, 700))
    for limit in (1, 300 * N * X.itemsize, 1 << 30):  # columns find no place, some do, all do
        for n_jobs in (1, 2):
            device = CpuDevice(n_jobs, limit)
            with device.session():
                expected = device.kernel_dot(kernel, memory, memory.take(rows), coef)
                assert close(device.kernel_dot(kernel, disk, disk.take(rows), coef) / 100, expected / 100, X.dtype)
                assert close(device.kernel_dot(kernel, memory, disk.take(rows), coef) / 100, expected / 100, X.dtype)
                for _ in range(2):
                    found = device.column_dot(kernel, disk, disk, rows, coef)
                    assert close(found / 100, expected / 100, X.dtype)


@formats
@orders
def test_projections_and_features_are_those_of_samples_in_memory(X, on_disk, data_format, ordered):
    memory, disk = twins(on_disk, data_format, make_kernel("rbf", 0.7), ordered)
    rng = np.random.default_rng(3)
    rows, direction = rng.permutation(N)[:1000], rng.normal(size=FEATURES)
    assert close(disk.project(rows, direction), memory.project(rows, direction), X.dtype)
    for some in (rows, rows[:0], slice(7, 300), slice(None)):
        np.testing.assert_array_equal(dense(disk.features(some)), dense(memory.features(some)))


def test_features_can_be_left_out(X, on_disk):
    memory, disk = twins(on_disk, "dense", make_kernel("rbf", 0.7))
    features = np.array([0, 3, 4, 9])
    once, twice = narrow(disk, features), narrow(narrow(disk, features), np.array([1, 2]))
    np.testing.assert_array_equal(once.features(slice(5, 9)), narrow(memory, features).features(slice(5, 9)))
    np.testing.assert_array_equal(twice.features(slice(5, 9)), memory.features(slice(5, 9))[:, [3, 4]])
    assert once.self_overlap is disk.self_overlap


def test_features_that_no_column_has(X, on_disk):
    memory, disk = twins(on_disk, "dense", make_kernel("rbf", 0.7))
    few = np.zeros((5, FEATURES), dtype=X.dtype)
    few[:, 2] = 1
    device, kernel = CpuDevice(1, 1 << 20), make_kernel("rbf", 0.7)
    columns, coef = make_samples(few, kernel), np.ones((1, 5))
    expected = device.kernel_dot(kernel, memory, columns, coef)
    assert close(device.kernel_dot(kernel, disk, columns, coef), expected, X.dtype)


# ------------------------------------------------------------------------------------------------------ where rows are


@formats
def test_few_rows_come_into_memory_and_many_stay(X, on_disk, data_format):
    _, disk = twins(on_disk, data_format, make_kernel("rbf", 0.7))
    kind = DenseSamples if data_format == "dense" else SparseSamples
    for few in (np.arange(10), slice(10), np.arange(0)):
        assert isinstance(disk.take(few), kind)
        assert not is_mapped(disk.take(few).X)
    for many in (np.arange(N)[::-1], np.arange(0, N, 2), slice(5, N)):
        assert isinstance(disk.take(many), StoredSamples)
    assert isinstance(disk.nearby(np.arange(10)), kind)
    assert disk.nearby(np.arange(N)) is None
    assert disk.take(np.arange(0, N, 2)).take(np.array([0, 3])).features().shape == (2, FEATURES)


@formats
def test_the_limit_decides_where_mapped_data_is(on_disk, data_format):
    here, there = on_disk(data_format)
    kernel, size = make_kernel("rbf", 0.7), data_bytes(there)
    assert isinstance(CpuDevice(1, 3 * size).samples(there, kernel), StoredSamples)
    assert not isinstance(CpuDevice(1, 5 * size).samples(there, kernel), StoredSamples)
    assert not isinstance(CpuDevice(1, 1).samples(here, kernel), StoredSamples)
    some = some_rows(there, np.arange(0, N, 2))
    assert isinstance(CpuDevice(1, size).samples(some, kernel), StoredSamples)
    assert not isinstance(CpuDevice(1, 5 * size).samples(some, kernel), StoredSamples)


def test_products_read_the_file_from_its_beginning_to_its_end(X, on_disk):
    kernel = make_kernel("rbf", 0.7)
    _, disk = twins(on_disk, "dense", kernel, ordered=True)
    read = []

    class Spy(MappedRows):
        def __getitem__(self, rows):
            read.append(self.places(rows))
            return super().__getitem__(rows)

        def take(self, rows):
            return Spy(self.X, self.places(rows))

    disk.rows = Spy(disk.rows.X, disk.rows.numbers)
    CpuDevice(1, 1 << 20).kernel_dot(kernel, disk, make_samples(X[:3], kernel), np.ones((1, 3)))
    np.testing.assert_array_equal(np.concatenate(read), np.arange(N))


@formats
@pytest.mark.parametrize("method", ["tree", "kmeans", "kernel_kmeans", "random"])
def test_partitions_are_those_of_samples_in_memory(on_disk, data_format, method):
    kernel = make_kernel("laplacian", 0.7)
    memory, disk = twins(on_disk, data_format, kernel, most=20_000)
    partitioner, device = make_partitioner(method, N), CpuDevice(1, 1 << 20)
    with device.session():
        expected, found = (
            partitioner.partition(device, kernel, samples, 8, np.random.default_rng(0)) for samples in (memory, disk)
        )
        for one, other in zip(expected.blocks, found.blocks, strict=True):
            np.testing.assert_array_equal(one, other)
        assert found.kernel_mass_inside == pytest.approx(expected.kernel_mass_inside, rel=1e-5)
        nearest = (found.centres.nearest(device, kernel, samples) for samples in (memory, disk))
        np.testing.assert_array_equal(*nearest)


# ------------------------------------------------------------------------------------------------------ mapped arrays


def test_what_is_mapped_and_what_is_not(tmp_path):
    np.save(tmp_path / "X.npy", np.ones((6, 3)))
    X = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert all(is_mapped(array) for array in (X, X[2:], X[::2, 1:], np.asarray(X)[1:], X.T, MappedRows(X)))
    assert not any(is_mapped(array) for array in (X.copy(), np.array(X), X[[0, 2]], 2 * X, np.ones(3), [1, 2], None))
    assert not is_mapped(sp.csr_matrix(X))


@formats
def test_rows_of_rows(on_disk, data_format):
    here, there = on_disk(data_format)
    here, rng = dense(here), np.random.default_rng(4)
    rows = MappedRows(there)
    for chosen in (slice(100, 900), rng.choice(800, 500), slice(3, 400), rng.permutation(397)):
        rows, here = rows.take(chosen), here[chosen]
        assert rows.shape == here.shape
        np.testing.assert_array_equal(dense(rows[:]), here)
        np.testing.assert_array_equal(dense(rows[5:9]), here[5:9])
        picked = rng.integers(0, len(here), 20)
        np.testing.assert_array_equal(dense(rows[picked]), here[picked])
        expected = here.nbytes if data_format == "dense" else np.count_nonzero(here) * (here.itemsize + 4)
        assert rows.nbytes == expected
        if data_format == "dense":
            np.testing.assert_allclose(column_means(rows), here.mean(axis=0, dtype=np.float64))


def test_stretches_hold_every_row_once_and_few_bytes():
    X = np.zeros((1000, 10))
    found = list(stretches(X, 80 * 64))
    assert found[0] == (0, 64)
    assert [start for start, _ in found[1:]] == [stop for _, stop in found[:-1]]
    assert found[-1][1] == 1000
    assert list(stretches(X, 1)) == [(i, i + 1) for i in range(1000)]
    assert list(stretches(X)) == [(0, 1000)]


def test_parts_of_a_csr_matrix_with_long_indices_are_no_copies(tmp_path):
    matrix = sp.random(300, 40, density=0.3, format="csr", random_state=0)
    matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    save_csr(tmp_path / "csr", matrix)
    rows = MappedRows(open_csr(tmp_path / "csr"))
    part = rows.take(slice(10, 200))
    assert is_mapped(part.X.indices)
    assert part.X.indices.dtype == np.int64
    np.testing.assert_array_equal(dense(part[:]), matrix.toarray()[10:200])
