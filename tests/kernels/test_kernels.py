"""Every kernel against scikit-learn's function of the same name, in every format of the data."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.gaussian_process.kernels import Matern
from sklearn.metrics import pairwise

from parablock.devices.cpu.overlaps import self_overlap
from parablock.kernels import KERNELS, Kernel, make_kernel

GAMMA, COEF0, DEGREE = 0.3, 0.5, 3

ORACLES = {
    "rbf": lambda X, Z: pairwise.rbf_kernel(X, Z, GAMMA),
    "laplacian": lambda X, Z: pairwise.laplacian_kernel(X, Z, GAMMA),
    "chi2": lambda X, Z: pairwise.chi2_kernel(X, Z, GAMMA),
    "matern32": lambda X, Z: Matern(1 / np.sqrt(2 * GAMMA), nu=1.5)(X, Z),
    "matern52": lambda X, Z: Matern(1 / np.sqrt(2 * GAMMA), nu=2.5)(X, Z),
    "linear": pairwise.linear_kernel,
    "polynomial": lambda X, Z: pairwise.polynomial_kernel(X, Z, DEGREE, GAMMA, COEF0),
    "poly": lambda X, Z: pairwise.polynomial_kernel(X, Z, DEGREE, GAMMA, COEF0),
    "sigmoid": lambda X, Z: pairwise.sigmoid_kernel(X, Z, GAMMA, COEF0),
    "cosine": pairwise.cosine_similarity,
}
every_kernel = pytest.mark.parametrize("name", ORACLES)


def csr(dtype, index):
    def convert(X):
        X = sp.csr_matrix(X.astype(dtype))
        X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
        return X

    return convert


FORMATS = {
    "dense float64": lambda X: X.astype(np.float64),
    "dense float32": lambda X: X.astype(np.float32),
    "dense Fortran order": np.asfortranarray,
    "csr float64 int32": csr(np.float64, np.int32),
    "csr float64 int64": csr(np.float64, np.int64),
    "csr float32 int32": csr(np.float32, np.int32),
    "csr float32 int64": csr(np.float32, np.int64),
}
every_format = pytest.mark.parametrize("format", FORMATS)


def kernel_of(name):
    return make_kernel(name, GAMMA, COEF0, DEGREE)


def rows_of(name, n=40, features=9, seed=0, zeros=0.5):
    """Data with many zeros, an empty row and a feature that is always zero; not negative for chi2."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, features))
    X[rng.random(X.shape) < zeros] = 0.0
    X[n // 2] = 0.0
    X[:, features // 2] = 0.0
    return np.abs(X) if name == "chi2" else X


def wide_rows(n, features=50_000, entries=15):
    rng = np.random.default_rng(0)
    indices = np.concatenate([rng.choice(features, entries, replace=False) for _ in range(n)])
    return sp.csr_matrix((rng.random(len(indices)), indices, np.arange(0, len(indices) + 1, entries)), (n, features))


def assert_values_agree(values, expected, dtype):
    tolerance = 1e-10 if dtype == np.float64 else 2e-5
    assert np.max(np.abs(values - expected)) <= tolerance * max(1.0, np.abs(expected).max())


def test_every_kernel_has_an_oracle():
    assert set(ORACLES) == set(KERNELS) - {"precomputed"}


@every_kernel
@every_format
def test_gram_equals_the_oracle(device, name, format):
    kernel, rows, columns = kernel_of(name), rows_of(name), rows_of(name, n=30, seed=1)
    expected = ORACLES[name](rows, columns)
    values = device.gram(
        kernel, device.samples(FORMATS[format](rows), kernel), device.samples(FORMATS[format](columns), kernel)
    )
    assert values.shape == expected.shape
    assert_values_agree(values, expected, values.dtype)


@every_kernel
@every_format
def test_kernel_dot_equals_the_oracle(device, name, format):
    kernel, rows, columns = kernel_of(name), rows_of(name), rows_of(name, n=30, seed=1)
    coef = np.random.default_rng(2).normal(size=(3, len(columns)))
    samples = device.samples(FORMATS[format](columns), kernel)
    values = device.kernel_dot(kernel, device.samples(FORMATS[format](rows), kernel), samples, coef)
    assert values.dtype == np.float64
    assert_values_agree(values, coef @ ORACLES[name](columns, rows), samples.dtype)


@every_kernel
@every_format
def test_diagonal_equals_the_diagonal_of_gram(device, name, format):
    kernel = kernel_of(name)
    samples = device.samples(FORMATS[format](rows_of(name)), kernel)
    expected = np.diagonal(ORACLES[name](rows_of(name), rows_of(name)))
    assert_values_agree(kernel.diagonal(samples.self_overlap), expected, samples.dtype)
    assert_values_agree(np.diagonal(device.gram(kernel, samples, samples)), expected, samples.dtype)


@every_kernel
@pytest.mark.parametrize("format", ["dense float64", "csr float64 int32"])
def test_more_columns_than_a_panel_and_more_rows_than_a_tile(device, name, format):
    kernel, rows, columns = kernel_of(name), rows_of(name, n=300), rows_of(name, n=1100, seed=1)
    coef = np.random.default_rng(2).normal(size=(2, len(columns)))
    expected = ORACLES[name](rows, columns)
    left, right = (device.samples(FORMATS[format](X), kernel) for X in (rows, columns))
    assert_values_agree(device.gram(kernel, left, right), expected, np.float64)
    assert_values_agree(device.kernel_dot(kernel, left, right, coef), coef @ expected.T, np.float64)


@every_kernel
def test_taken_rows_have_the_values_of_those_rows(device, name):
    kernel, X = kernel_of(name), rows_of(name)
    expected = ORACLES[name](X, X)
    for format in ("dense float64", "csr float64 int32"):
        samples = device.samples(FORMATS[format](X), kernel)
        some = np.array([7, 3, 30, 20])
        assert len(samples.take(some)) == len(some)
        values = device.gram(kernel, samples.take(some), samples.take(slice(5, 9)))
        assert_values_agree(values, expected[some, 5:9], np.float64)


@every_kernel
def test_csr_entries_may_be_unsorted_and_repeated(device, name):
    # Each row's entries in reverse order, each split into two halves.
    kernel, X = kernel_of(name), rows_of(name)
    tidy = sp.csr_matrix(X)
    order = np.concatenate([np.arange(stop - 1, start - 1, -1) for start, stop in zip(tidy.indptr, tidy.indptr[1:])])
    data, indices = np.repeat(tidy.data[order] / 2, 2), np.repeat(tidy.indices[order], 2)
    untidy = sp.csr_matrix((data, indices, 2 * tidy.indptr), shape=tidy.shape)
    before = untidy.data.copy(), untidy.indices.copy()
    samples = device.samples(untidy, kernel)
    assert_values_agree(device.gram(kernel, samples, samples), ORACLES[name](X, X), np.float64)
    np.testing.assert_array_equal(untidy.data, before[0], "the caller's matrix was changed")
    np.testing.assert_array_equal(untidy.indices, before[1], "the caller's matrix was changed")


@every_kernel
def test_csr_may_store_zeros(device, name):
    kernel, X = kernel_of(name), rows_of(name)
    full = np.indices(X.shape)[1].ravel()
    stored = sp.csr_matrix((X.ravel(), full, np.arange(0, X.size + 1, X.shape[1])), shape=X.shape)
    assert stored.nnz == X.size
    samples = device.samples(stored, kernel)
    assert_values_agree(device.gram(kernel, samples, samples), ORACLES[name](X, X), np.float64)


@every_kernel
def test_data_of_zeros_only(device, name):
    kernel, X = kernel_of(name), np.zeros((5, 4))
    for data in (X, sp.csr_matrix(X)):
        samples = device.samples(data, kernel)
        assert_values_agree(device.gram(kernel, samples, samples), ORACLES[name](X, X), np.float64)


@every_kernel
def test_wide_sparse_data(device, name):
    kernel = kernel_of(name)
    X = wide_rows(150)
    few = X[:20]
    expected = ORACLES[name](few.toarray(), X.toarray())
    values = device.gram(kernel, device.samples(few, kernel), device.samples(X, kernel))
    assert_values_agree(values, expected, np.float64)


@pytest.mark.parametrize("name", ["rbf", "laplacian", "chi2"])
def test_wide_sparse_data_is_never_made_dense(device, name):
    kernel = kernel_of(name)
    X = wide_rows(2000)
    samples = device.samples(X, kernel)
    device.kernel_dot(kernel, samples.take(slice(2)), samples.take(slice(2)), np.ones((1, 2)))  # compiles
    tracemalloc.start()
    device.kernel_dot(kernel, samples, samples, np.ones((1, 2000)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 0.2 * X.shape[0] * X.shape[1] * 8


@pytest.mark.parametrize("name", ["rbf", "matern32", "matern52"])
def test_a_centre_keeps_float32_accurate_far_from_the_origin(device, name):
    kernel, X = kernel_of(name), rows_of(name) + 1000.0
    data = X.astype(np.float32)
    samples = device.samples(data, kernel, centre=X.mean(axis=0))
    values = device.gram(kernel, samples, samples)
    assert_values_agree(values, ORACLES[name](data.astype(np.float64), data.astype(np.float64)), np.float32)


@pytest.mark.parametrize("name", ["linear", "polynomial", "sigmoid", "cosine", "laplacian", "chi2"])
def test_a_centre_is_ignored_where_the_kernel_depends_on_the_origin(device, name):
    kernel, X = kernel_of(name), rows_of(name)
    samples = device.samples(X, kernel, centre=X.mean(axis=0))
    assert_values_agree(device.gram(kernel, samples, samples), ORACLES[name](X, X), np.float64)


@pytest.mark.parametrize("name", ["rbf", "laplacian", "chi2", "matern32", "matern52"])
def test_rbf_like_kernels_of_equal_and_of_distant_rows(device, name):
    kernel = make_kernel(name, 4.0)
    X = np.abs(np.random.default_rng(0).normal(size=(3, 5)))
    samples = device.samples(np.vstack((X, X, X + 500.0)), kernel)
    values = device.gram(kernel, samples, samples)
    np.testing.assert_allclose(values[:3, 3:6].diagonal(), 1.0, atol=1e-6)
    assert np.all(values <= 1.0)
    assert np.all(values[:3, 6:] < 1e-12)
    assert np.all(values[:3, 6:] >= 0)


@pytest.mark.parametrize("degree", [1, 2, 3, 5, 8, 13])
def test_polynomial_kernel_of_other_degrees(device, degree):
    kernel, X = make_kernel("poly", 0.2, -0.4, degree), rows_of("poly")
    samples = device.samples(X, kernel)
    expected = pairwise.polynomial_kernel(X, X, degree, 0.2, -0.4)
    assert_values_agree(device.gram(kernel, samples, samples), expected, np.float64)


def test_a_very_large_degree_takes_no_time():
    values = np.array([1.0 + 1e-12, 0.5, -1.0, 0.0])
    power = make_kernel("poly", 1.0, 0.0, 2**40 + 1).diagonal(values)
    assert power == pytest.approx(values ** float(2**40 + 1), rel=1e-3)
    assert values.tolist() == [1.0 + 1e-12, 0.5, -1.0, 0.0]
    assert make_kernel("poly", 1.0, 0.0, 0).diagonal(values).tolist() == [1.0] * 4


# ------------------------------------------------------------------------------- values that the user brings


def common_words(X, Z):
    """A kernel of the user's own: how many features both rows have."""
    return np.asarray(((X != 0) * 1.0) @ ((Z != 0) * 1.0).T)


@pytest.mark.parametrize("format", ["dense float64", "dense float32"])
def test_function_of_the_users_own(device, format):
    kernel, X = make_kernel(common_words), rows_of("linear", n=1100)
    expected, coef = common_words(X, X), np.random.default_rng(0).normal(size=(2, len(X)))
    samples = device.samples(FORMATS[format](X), kernel)
    few = samples.take(np.arange(100))
    assert_values_agree(device.gram(kernel, few, samples), expected[:100], samples.dtype)
    assert_values_agree(device.kernel_dot(kernel, few, samples, coef), coef @ expected[:, :100], samples.dtype)
    assert_values_agree(kernel.diagonal(samples.self_overlap), expected.diagonal(), samples.dtype)


def test_function_of_the_users_own_gets_csr_rows_as_csr(device):
    seen = []

    def product(X, Z):
        seen.append((sp.issparse(X), sp.issparse(Z)))
        return (X @ Z.T).toarray()

    kernel, X = make_kernel(product), sp.csr_matrix(rows_of("linear"))
    samples = device.samples(X, kernel)
    np.testing.assert_allclose(device.gram(kernel, samples, samples), (X @ X.T).toarray())
    assert set(seen) == {(True, True)}


@pytest.mark.parametrize(
    ("function", "complaint"),
    [
        (lambda X, Z: np.ones((2, 2)), r"must return an array of shape \(40, 40\).*returned shape \(2, 2\)"),
        (lambda X, Z: np.full((len(X), len(Z)), np.nan), "not finite"),
        (lambda X, Z: np.full((len(X), len(Z)), "word"), "not finite numbers"),
    ],
)
def test_function_that_returns_nonsense_is_refused(device, function, complaint):
    kernel = make_kernel(function)
    with pytest.raises(ValueError, match=complaint):
        device.samples(rows_of("linear"), kernel)


def test_precomputed_values_are_those_of_the_matrix(device):
    X = rows_of("rbf", n=1100)
    K = ORACLES["rbf"](X, X)
    kernel, coef = make_kernel("precomputed"), np.random.default_rng(0).normal(size=(2, len(X)))
    samples = device.samples(K, kernel)
    some = np.array([5, 1000, 17])
    np.testing.assert_array_equal(device.gram(kernel, samples.take(some), samples), K[some])
    np.testing.assert_array_equal(device.gram(kernel, samples.take(some), samples.take(some)), K[np.ix_(some, some)])
    np.testing.assert_allclose(device.kernel_dot(kernel, samples, samples, coef), coef @ K, atol=1e-11)
    np.testing.assert_array_equal(kernel.diagonal(samples.self_overlap), K.diagonal())


def test_precomputed_rows_of_new_samples_meet_chosen_columns(device):
    K = np.random.default_rng(0).normal(size=(6, 20))  # new samples with training samples
    kernel, columns = make_kernel("precomputed"), np.array([3, 19, 8])
    coef = np.array([[1.0, -2.0, 0.5]])
    values = device.kernel_dot(kernel, device.samples(K, kernel), device.given_columns(columns, K.dtype), coef)
    np.testing.assert_allclose(values, coef @ K[:, columns].T, atol=1e-14)


# ----------------------------------------------------------------------------------------------- make_kernel


def test_kernel_object_is_used_as_it_is():
    kernel = make_kernel("rbf", 2.0)
    assert isinstance(kernel, Kernel)
    assert make_kernel(kernel, 5.0) is kernel


def test_unknown_kernel_is_refused_with_the_names_that_are_known():
    with pytest.raises(ValueError, match=r"Unknown kernel 'gaussian'.*'rbf'"):
        make_kernel("gaussian")


@pytest.mark.parametrize("kind", ["product", "minimum"])
def test_a_huge_row_costs_the_others_nothing(kind):
    rows = sp.csr_matrix(np.array([[1e9, 0, 0], [0, 0, 0], [0, 1, 0], [0, 1, 1], [0, 0, 3], [0, 0, 0]]))
    found = self_overlap(kind, rows.data, rows.indptr)
    np.testing.assert_array_equal(found, self_overlap(kind, rows.toarray()))
