"""Features, gammas and targets that leave the range of a precision: the right model, or an error that names them."""

import re
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_moons

from parablock import KernelQuantileRegressor, KernelRidge, KernelSVC, KernelSVR, solve
from parablock.kernels import KERNELS, RBF, Kernel
from parablock.losses import EpsilonInsensitive

N = 120
X, y = make_moons(N, noise=0.2, random_state=0)
FORMATS = pytest.mark.parametrize("data_format", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])


@pytest.fixture(autouse=True)
def no_stray_warnings():
    """Of NumPy's about overflow: what was found is said by ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.filterwarnings("ignore", message=".*computed in float64")
        yield


@FORMATS
@pytest.mark.parametrize("size", [1e18, 1e25, 1e37, 1e-18, 1e-25, 1e-37])
@pytest.mark.parametrize("kernel", ["rbf", "matern52", "poly", "cosine"])
def test_float32_features_of_any_size_give_the_model_of_their_shape(kernel, size, data_format):
    given = data_format((X * size).astype(np.float32))
    model = KernelSVC(kernel=kernel, gamma="scale", random_state=0).fit(given, y)
    expected = KernelSVC(kernel=kernel, gamma="scale", random_state=0).fit(data_format(X), y)
    assert model.dual_objective_ == pytest.approx(expected.dual_objective_, rel=1e-4)
    np.testing.assert_allclose(model.decision_function(given), expected.decision_function(data_format(X)), atol=1e-2)


@pytest.mark.parametrize("size", [1e19, 1e25, 1e-25])
def test_the_chi2_kernel_too(size):
    given = (np.abs(X) * size).astype(np.float32)
    model = KernelSVC(kernel="chi2", gamma=1 / size).fit(given, y)
    expected = KernelSVC(kernel="chi2", gamma=1.0).fit(np.abs(X), y)
    assert model.dual_objective_ == pytest.approx(expected.dual_objective_, rel=1e-4)


@FORMATS
@pytest.mark.parametrize("size", [1e160, 1e-160, 1e-170, 1e300])
def test_a_gamma_that_cannot_be_computed_is_named(size, data_format):
    with pytest.raises(ValueError, match=r"(?s)gamma='scale' .* leave the range of float64.*Scale the features"):
        KernelSVC(gamma="scale").fit(data_format(X * size), y)


@FORMATS
@pytest.mark.parametrize("kernel", [kernel for kernel in KERNELS if kernel not in ("precomputed", "chi2", "sigmoid")])
def test_squares_that_leave_float64_are_refused(kernel, data_format):
    if kernel == "laplacian":
        return  # has none
    with pytest.raises(ValueError, match=r"kernel .*not finite numbers.* even in float64\. Scale the features"):
        KernelSVC(kernel=kernel, gamma=0.5).fit(data_format(X * 1e160), y)


@pytest.mark.parametrize("gamma", [1e-50, 1e-300])
@pytest.mark.parametrize("kernel", ["rbf", "matern32", "laplacian"])
def test_a_gamma_below_float32_is_not_zero(kernel, gamma):
    """On features of a size that asks for it. On others all kernel values are one, as they should be."""
    size = gamma**-0.5 if kernel != "laplacian" else 1e-10 / gamma
    if size < 1e38:
        model = KernelSVC(kernel=kernel, gamma=gamma).fit((X * size).astype(np.float32), y)
        expected = KernelSVC(kernel=kernel, gamma=gamma).fit((X * size).astype(np.float32).astype(np.float64), y)
        assert model.dual_objective_ == pytest.approx(expected.dual_objective_, rel=1e-6)
    with pytest.warns(UserWarning, match=f"gamma={gamma:g} .*gamma leaves the range of numbers in float32"):
        KernelSVC(kernel=kernel, gamma=gamma).fit(X.astype(np.float32), y)


@pytest.mark.parametrize("gamma", [5e-324, 1e50, 1e300])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_gamma_for_which_no_precision_is_enough_is_named(gamma, dtype):
    with pytest.raises(ValueError, match=re.escape(f"rbf kernel with gamma={gamma:g} ")):
        KernelSVC(gamma=gamma).fit(X.astype(dtype), y)


# ------------------------------------------------------------------------------------------------------- prediction


@FORMATS
@pytest.mark.parametrize("kernel", ["rbf", "matern32", "laplacian", "linear", "cosine"])
@pytest.mark.parametrize("size", [1e15, 1e20, 1e30, 1e-25])
def test_rows_far_away_are_predicted_as_float64_does(kernel, size, data_format):
    model = KernelSVC(kernel=kernel, gamma=1.0, tol=0.1).fit(data_format(X.astype(np.float32)), y)
    assert model.support_vectors_.dtype == np.float32
    exact = KernelSVC(kernel=kernel, gamma=1.0, tol=0.1).fit(data_format(X.astype(np.float32).astype(np.float64)), y)
    exact._models = model._models  # to the last digit of the coefficients
    new = np.concatenate((X[:5], X[:5] * size, np.zeros((1, 2)))).astype(np.float32)
    decision, expected = (one.decision_function(data_format(new.astype(one._dtype))) for one in (model, exact))
    np.testing.assert_allclose(decision, expected, rtol=1e-4, atol=1e-4)


def test_rows_that_are_too_large_for_the_kernel_are_refused():
    warnings.simplefilter("ignore", RuntimeWarning)
    model = KernelSVC(kernel="poly", degree=3, gamma=1.0).fit(X, y)
    with pytest.raises(ValueError, match=r"Decision values of 2 rows are not finite.*too large for the kernel"):
        model.decision_function(np.concatenate((X, X[:2] * 1e150)))


# --------------------------------------------------------------------------------------------------- bad values


class OftenNotANumber(Kernel):
    """On rows that a first look at a few misses."""

    shift_invariant = True

    def transform(self, tile, row_self, column_self):
        RBF(1.0).transform(tile, row_self, column_self)
        tile[:, column_self > 8.9] = np.nan

    def diagonal(self, self_overlap):
        return np.ones_like(self_overlap)


def test_values_that_are_not_numbers_are_found_in_the_solution():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(3000, 4))
    rows *= np.minimum(1, 2.9 / np.linalg.norm(rows, axis=1))[:, None]
    rows -= rows.mean(axis=0)
    rows[:32] *= (3.1 / np.linalg.norm(rows[:32], axis=1))[:, None]
    with pytest.raises(ValueError, match=r"not finite|not numbers|not symmetric"):
        KernelSVC(kernel=OftenNotANumber(), max_iter=20).fit(rows, rows[:, 0] > 0)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "matern32", "matern52"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_compiled_kernels_keep_what_is_not_a_number(kernel, dtype):
    tile, own = np.zeros((40, 33), dtype=dtype), np.ones(40, dtype=dtype)
    tile[3, 5], tile[7] = np.nan, np.inf
    own[7] = np.inf
    KERNELS[kernel](0.5, 0.0, 3).transform(tile, own, np.ones(33, dtype=dtype))
    expected = np.zeros(tile.shape, dtype=bool)
    expected[3, 5], expected[7] = True, True
    np.testing.assert_array_equal(np.isnan(tile), expected)


# ------------------------------------------------------------------------------------------------------ targets


@pytest.mark.parametrize("estimator", [KernelRidge(), KernelSVR(), KernelQuantileRegressor()])
def test_targets_that_are_too_large_are_named(estimator):
    warnings.simplefilter("ignore", RuntimeWarning)
    with pytest.raises(ValueError, match=r"y has values up to 1e\+308.*Divide"):
        estimator.fit(X, 1e308 * np.where(y, 1.0, -0.9))


def test_ridge_regression_does_not_blame_the_kernel():
    with pytest.raises(ValueError, match=r"y has values up to 1e\+160, .* sum of their squares"):
        KernelRidge().fit(X, 1e160 * np.where(y, 1.0, -0.9))


def test_a_large_target_of_svr_is_solved():
    """Its losses grow with the target itself, which float64 holds."""
    model = KernelSVR(C=1.0).fit(X, 1e160 * np.where(y, 1.0, -0.9))
    assert model.dual_objective_ == pytest.approx(1e160 * 0.9 * N, rel=0.2)


def test_solve_names_targets_too():
    target = np.where(y, 1e308, -1e308)
    with pytest.raises(ValueError, match="y has values up to"):
        solve(X, target, EpsilonInsensitive(0.1), RBF(1.0))
