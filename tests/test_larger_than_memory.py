"""Data on disk: the same models as from data in memory, with memory that does not grow with the file."""

import json
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_moons

from parablock import KernelLogisticRegression, KernelRidge, KernelSVC, KernelSVR
from parablock.datasets import open_csr, save_csr
from tests.test_memory_limit import peak_bytes

LIMIT = "20KB"  # the rows below take more than a quarter of it, and stay on disk
N = 1500


@pytest.fixture(scope="module", params=[np.float32, np.float64])
def moons(request):
    X, y = make_moons(N, noise=0.25, random_state=0)
    wide = np.concatenate((X, X[:, ::-1] ** 2), axis=1)
    return wide.astype(request.param), y


def saved(folder, X):
    """X as a file, opened."""
    if sp.issparse(X):
        save_csr(folder / "csr", X)
        return open_csr(folder / "csr")
    np.save(folder / "X.npy", X)
    return np.load(folder / "X.npy", mmap_mode="r")


# ------------------------------------------------------------------------------------------------------ the same model


@pytest.mark.parametrize("data_format", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"n_blocks": 1},
        {"kernel": "laplacian", "partition": "kmeans", "regroup": False},
        {"kernel": "linear", "partition": "random"},
        {"gamma": "scale", "partition": "kernel_kmeans", "fit_intercept": False},
    ],
    ids=["default", "one block", "fixed", "random", "kernel k-means"],
)
def test_a_fit_from_disk_is_that_from_memory(moons, tmp_path, data_format, options):
    X, y = data_format(moons[0]), moons[1]
    there = saved(tmp_path, X)
    settings = {"gamma": 2.0, "n_blocks": 4, "tol": 1e-2, "memory_limit": LIMIT, "n_jobs": 1, "random_state": 0}
    memory, disk = (KernelSVC(**(settings | options)).fit(data, y) for data in (X, there))
    assert disk.dual_objective_ == pytest.approx(memory.dual_objective_, rel=1e-4)
    assert disk.violation_ <= 1e-2
    assert disk._gamma == pytest.approx(memory._gamma)
    expected = memory.decision_function(X)
    assert memory.decision_function(there) == pytest.approx(expected, abs=1e-5)
    assert disk.decision_function(there) == pytest.approx(expected, abs=0.1)  # either is within the tolerance


def test_the_last_digit_is_the_same_where_every_kernel_value_is(tmp_path):
    """Overlaps of the laplacian kernel are summed row by row, whatever tile a row is in."""
    X, y = make_moons(N, noise=0.25, random_state=0)
    settings = {"kernel": "laplacian", "n_blocks": 4, "memory_limit": "60KB", "n_jobs": 1, "random_state": 0}
    memory, disk = (KernelSVC(**settings).fit(data, y) for data in (X, saved(tmp_path, X)))
    np.testing.assert_array_equal(disk.dual_coef_, memory.dual_coef_)
    np.testing.assert_array_equal(disk.support_vectors_, memory.support_vectors_)


def test_a_slice_of_a_file_is_enough(moons, tmp_path):
    X, y = moons
    there = saved(tmp_path, X)
    settings = {"gamma": 2.0, "n_blocks": 3, "tol": 1e-2, "memory_limit": LIMIT, "n_jobs": 1, "random_state": 0}
    for part in (slice(200, 1400), slice(None, None, 2)):
        memory, disk = (KernelSVC(**settings).fit(data[part], y[part]) for data in (X, there))
        assert disk.dual_objective_ == pytest.approx(memory.dual_objective_, rel=1e-4)


def test_columns_of_a_file_in_fortran_order_are_read_row_by_row(moons, tmp_path):
    X, y = moons
    there = saved(tmp_path, np.asfortranarray(X))
    assert there.flags.f_contiguous
    settings = {"gamma": 2.0, "n_blocks": 3, "tol": 1e-2, "memory_limit": LIMIT, "n_jobs": 1, "random_state": 0}
    memory, disk = (KernelSVC(**settings).fit(data, y) for data in (X, there))
    assert disk.dual_objective_ == pytest.approx(memory.dual_objective_, rel=1e-4)


@pytest.mark.parametrize("data_format", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
def test_rows_of_weight_zero_take_no_part(moons, tmp_path, data_format):
    X, y = data_format(moons[0]), moons[1]
    weight = (np.arange(N) % 3 > 0).astype(float)
    settings = {"n_blocks": 3, "tol": 1e-2, "memory_limit": "10KB", "n_jobs": 1, "random_state": 0}
    memory, disk = (KernelSVC(**settings).fit(data, y, weight) for data in (X, saved(tmp_path, X)))
    assert disk.dual_objective_ == pytest.approx(memory.dual_objective_, rel=1e-4)
    assert np.all(weight[disk.support_] > 0)
    assert np.abs(disk.support_vectors_ - X[disk.support_]).max() == 0


@pytest.mark.parametrize("estimator", [KernelLogisticRegression, KernelRidge, KernelSVR])
def test_other_machines(moons, tmp_path, estimator):
    X, y = moons[0][:600], moons[1][:600]
    settings = {"gamma": 2.0, "n_blocks": 2, "tol": 1e-2, "memory_limit": "10KB", "n_jobs": 1, "random_state": 0}
    memory, disk = (estimator(**settings).fit(data, y) for data in (X, saved(tmp_path, X)))
    assert disk.dual_objective_ == pytest.approx(memory.dual_objective_, rel=1e-4)


def test_local_prediction_and_a_given_matrix(moons, tmp_path):
    X, y = moons[0].astype(np.float64), moons[1]
    settings = {"gamma": 2.0, "n_blocks": 4, "tol": 1e-2, "memory_limit": LIMIT, "n_jobs": 1, "random_state": 0}
    # The laplacian kernel's values are the same to the last digit, and with them every step.
    local = {"kernel": "laplacian", "prediction": "local", "regroup": False, "partition": "kmeans", "max_iter": 20}
    memory, disk = (KernelSVC(**settings, **local).fit(data, y) for data in (X, saved(tmp_path, X)))
    assert disk.decision_function(X) == pytest.approx(memory.decision_function(X), abs=1e-6)
    K = X @ X.T
    memory, disk = (KernelSVC(**settings, kernel="precomputed").fit(data, y) for data in (K, saved(tmp_path, K)))
    assert disk.decision_function(K) == pytest.approx(memory.decision_function(K), abs=1e-6)


# ------------------------------------------------------------------------------------------------------ other types


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float16, ">f4"])
def test_types_that_must_be_converted(tmp_path, dtype):
    X, y = make_moons(N, noise=0.25, random_state=0)
    X = (10 * np.abs(X)).astype(dtype)
    there = saved(tmp_path, X)
    settings = {"gamma": 0.02, "tol": 1e-1, "n_jobs": 1, "random_state": 0}
    with pytest.raises(ValueError, match=r"(?s)on disk as .* quarter of memory_limit .* must be float32 or float64"):
        KernelSVC(**settings, memory_limit=LIMIT).fit(there, y)
    model = KernelSVC(**settings, memory_limit="1MB").fit(there, y)  # small enough to be converted in memory
    expected = model.decision_function(X)
    # Predictions convert a part at a time, whatever the limit.
    assert model.set_params(memory_limit=LIMIT).decision_function(there) == pytest.approx(expected, abs=1e-5)


def test_nan_in_a_file_is_found(moons, tmp_path):
    X = moons[0].copy()
    X[-1, -1] = np.nan
    there = saved(tmp_path, X)
    with pytest.raises(ValueError, match="NaN"):
        KernelSVC(memory_limit=LIMIT).fit(there, moons[1])
    model = KernelSVC(memory_limit=LIMIT, max_iter=100, tol=1e-1).fit(moons[0], moons[1])
    with pytest.raises(ValueError, match="NaN"):
        model.predict(there)


# ------------------------------------------------------------------------------------------------------ memory


@pytest.fixture(scope="module")
def large_files(tmp_path_factory):
    """400 MB of dense rows and 190 MB of sparse ones, long rather than many, of classes that are easy to tell apart."""
    folder, rng = tmp_path_factory.mktemp("large"), np.random.default_rng(0)
    n, features = 20_000, 5_000
    y = rng.choice([-1, 1], n)
    np.save(folder / "y.npy", y)
    X = np.lib.format.open_memmap(folder / "X.npy", mode="w+", dtype=np.float32, shape=(n, features))
    noise = rng.standard_normal((1000, features), dtype=np.float32)
    for start in range(0, n, 1000):
        rows = slice(start, start + 1000)
        X[rows] = np.roll(noise, start // 100, axis=1)
        X[rows, :1000] += y[rows, None]
    X.flush()
    n, entries = 3_000, 8_000
    data = rng.random((n, entries), dtype=np.float32)
    data[:, :3000] += np.maximum(y[:n], 0)[:, None]
    columns = 4 * np.arange(entries, dtype=np.int32) + rng.integers(0, 4, (n, entries), dtype=np.int32)
    ends = np.arange(0, data.size + 1, entries, dtype=np.int32)
    save_csr(folder / "csr", sp.csr_matrix((data.ravel(), columns.ravel(), ends), (n, 4 * entries)))
    return folder


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks Linux how much memory is in use")
@pytest.mark.parametrize(("data_format", "megabytes"), [("dense", 400), ("csr", 190)])
def test_memory_does_not_grow_with_the_file(large_files, data_format, megabytes):
    result = subprocess.run(
        [sys.executable, "-m", "tests.fit_from_disk", str(large_files), data_format, "30MB"],
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(result.stdout)
    assert max(found["fit"], found["predict"]) < 0.4 * megabytes
    assert found["score"] > 0.95


def test_a_check_of_a_file_copies_nothing(tmp_path):
    X = np.lib.format.open_memmap(tmp_path / "X.npy", mode="w+", dtype=np.float32, shape=(50_000, 400))
    X[:] = 1.0
    y = np.arange(len(X)) % 2
    model = KernelSVC()
    size = X.nbytes  # 76 MB
    for data in (X, X[::2], X[:, :200]):
        assert peak_bytes(lambda data=data: model._check_samples(data, y[: len(data)])) < size / 8
    weight = np.full(len(X), 1.0)
    assert peak_bytes(lambda: model._numeric_gamma(X, weight)) < size


# ------------------------------------------------------------------------------------------------------ CSR files


@pytest.fixture
def matrix():
    return sp.random(50, 20, density=0.2, format="csr", dtype=np.float32, random_state=0)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_a_csr_matrix_comes_back_without_a_copy(tmp_path, matrix, dtype):
    matrix.indices, matrix.indptr = matrix.indices.astype(dtype), matrix.indptr.astype(dtype)
    save_csr(tmp_path / "some" / "where", matrix)
    found = open_csr(tmp_path / "some" / "where")
    assert (found != matrix).nnz == 0
    assert found.dtype == np.float32
    assert isinstance(found.data, np.memmap)
    assert isinstance(found.indices, np.memmap)
    assert found.indices.dtype == found.indptr.dtype == dtype
    assert [path.name for path in (tmp_path / "some").iterdir()] == ["where"]


def test_parts_of_rows(tmp_path, matrix):
    save_csr(tmp_path / "csr", matrix.tocoo())
    for start, stop in ((0, 50), (0, 17), (17, 50), (20, 20), (50, 50)):
        np.testing.assert_array_equal(open_csr(tmp_path / "csr", start, stop).toarray(), matrix[start:stop].toarray())
    np.testing.assert_array_equal(open_csr(str(tmp_path / "csr"), 40).toarray(), matrix[40:].toarray())
    for start, stop in ((-1, 5), (7, 5), (0, 51)):
        with pytest.raises(ValueError, match=r"were asked for.*has the rows 0 to 50"):
            open_csr(tmp_path / "csr", start, stop)


def test_a_matrix_without_entries(tmp_path):
    save_csr(tmp_path / "csr", sp.csr_matrix((5, 3)))
    assert open_csr(tmp_path / "csr").shape == (5, 3)
    assert open_csr(tmp_path / "csr").nnz == 0


def test_index_arrays_of_different_types(tmp_path, matrix):
    save_csr(tmp_path / "csr", matrix)
    np.save(tmp_path / "csr" / "indptr.npy", matrix.indptr.astype(np.int64))
    assert (open_csr(tmp_path / "csr") != matrix).nnz == 0


@pytest.mark.parametrize("part", ["data", "indices", "indptr", "shape"])
def test_a_missing_part(tmp_path, matrix, part):
    save_csr(tmp_path / "csr", matrix)
    (tmp_path / "csr" / f"{part}.npy").unlink()
    with pytest.raises(FileNotFoundError, match=rf"{part}.npy.* is not there.*data.npy, indices.npy, .*save_csr"):
        open_csr(tmp_path / "csr")


@pytest.mark.parametrize(
    ("part", "change", "words"),
    [
        ("data", lambda array: array[:-1], "values and indices.npy"),
        ("data", lambda array: array[None], "one dimension"),
        ("indices", lambda array: array[1:], "equally many"),
        ("indices", lambda array: array.astype(float), "int32 or int64"),
        ("indices", lambda array: array + 5, "20 columns"),
        ("indices", lambda array: array - 5, "20 columns"),
        ("indptr", lambda array: array[:-1], "needs 51"),
        ("indptr", lambda array: array[::-1], "must rise"),
        ("indptr", lambda array: np.where(np.arange(51) == 20, 2 * array, array), "must rise"),
        ("shape", lambda array: array[:1], "two whole numbers"),
        ("shape", lambda array: array[::-1], "needs 21"),
    ],
)
def test_parts_that_do_not_fit(tmp_path, matrix, part, change, words):
    save_csr(tmp_path / "csr", matrix)
    path = tmp_path / "csr" / f"{part}.npy"
    np.save(path, change(np.load(path)))
    with pytest.raises(ValueError, match=rf"(?s)holds no whole CSR matrix: .*{words}.* save_csr"):
        open_csr(tmp_path / "csr")


def test_a_file_that_was_cut_off(tmp_path, matrix):
    save_csr(tmp_path / "csr", matrix)
    path = tmp_path / "csr" / "data.npy"
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(ValueError, match=r"data.npy cannot be opened"):
        open_csr(tmp_path / "csr")


def test_what_cannot_be_saved(tmp_path, matrix):
    with pytest.raises(TypeError, match=r"SciPy sparse matrices; got ndarray.*np.save"):
        save_csr(tmp_path / "dense", matrix.toarray())
    save_csr(tmp_path / "csr", matrix)
    with pytest.raises(FileExistsError, match="remove it, or choose another name"):
        save_csr(tmp_path / "csr", matrix)


def test_half_a_matrix_is_never_there(tmp_path, matrix, monkeypatch):
    def full_disk(file, array):
        if array.dtype == np.int64:
            raise OSError("No space left on device")

    monkeypatch.setattr(np, "save", full_disk)
    with pytest.raises(OSError, match="No space"):
        save_csr(tmp_path / "csr", matrix)
    assert list(tmp_path.iterdir()) == []
