"""Dense samples: a centre is subtracted and rows are taken as NumPy would."""

import numpy as np
import pytest

from parablock.compact import column_sums, rows_of
from parablock.devices.cpu.samples import make_samples
from parablock.kernels import RBF, Laplacian, make_kernel
from parablock.mapped import column_means

precisions = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def read_only(X):
    X.flags.writeable = False
    return X


layouts = pytest.mark.parametrize(
    "laid_out",
    [np.ascontiguousarray, np.asfortranarray, lambda X: np.repeat(X, 2, axis=1)[:, ::2], lambda X: read_only(X.copy())],
    ids=["C", "Fortran", "every other column", "read-only"],
)


def rows(dtype):
    return (3.0 + np.random.default_rng(0).normal(size=(301, 7))).astype(dtype)


class OfDifferences(Laplacian):
    shift_invariant = True


@precisions
@layouts
@pytest.mark.parametrize(("kernel", "overlap"), [(RBF(0.7), np.square), (OfDifferences(0.7), np.abs)])
def test_the_centre_is_subtracted_and_overlaps_are_those_of_what_is_left(dtype, laid_out, kernel, overlap):
    X = rows(dtype)
    before, centre = X.copy(), X.mean(axis=0, dtype=np.float64)
    samples = make_samples(laid_out(X), kernel, centre)
    assert samples.dtype == samples.self_overlap.dtype == dtype
    np.testing.assert_array_equal(samples.features(), before - centre.astype(dtype))
    expected = overlap(samples.features().astype(np.float64)).sum(axis=1)
    rounded = 0.5 if dtype == np.float32 else 10  # in double, then once
    np.testing.assert_allclose(samples.self_overlap, expected, rtol=rounded * np.finfo(dtype).eps)
    np.testing.assert_array_equal(X, before)  # the user's own


def test_a_kernel_that_depends_on_the_origin_leaves_the_data_as_it_is():
    X = rows(np.float32)
    samples = make_samples(X, make_kernel("linear", 0.7), X.mean(axis=0))
    assert samples.features().base is X or samples.features() is X


@precisions
@layouts
def test_means_of_features_are_summed_in_float64(dtype, laid_out):
    X = np.full((100_000, 3), 0.1, dtype=dtype)
    X[:, 1] *= np.arange(100_000)
    np.testing.assert_allclose(column_means(laid_out(X)), X.mean(axis=0, dtype=np.float64), rtol=1e-13)
    assert column_sums(X[:0]).tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    "chosen",
    [
        slice(5, 90, 2),
        np.array([3, 3, 300, -1]),
        np.array([7, 2], dtype=np.int32),
        np.array([], dtype=np.intp),
        np.arange(301) % 5 == 0,
        [4, 1],
    ],
    ids=["slice", "numbers", "int32", "none", "mask", "list"],
)
def test_rows_are_taken_by_whatever_an_array_can_be_indexed_with(chosen):
    X = rows(np.float32)
    np.testing.assert_array_equal(rows_of(X, chosen), X[chosen])
    samples = make_samples(X, make_kernel("rbf", 0.7))
    np.testing.assert_array_equal(samples.features(chosen), X[chosen])
    np.testing.assert_array_equal(samples.take(chosen).features(), X[chosen])
    np.testing.assert_array_equal(samples.take(chosen).self_overlap, samples.self_overlap[chosen])


def test_a_row_that_is_not_there_is_an_error():
    with pytest.raises(IndexError, match="out of bounds"):
        rows_of(rows(np.float32), np.array([0, 301]))
