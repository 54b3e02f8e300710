"""Bad input is refused with an error that says what was given, what is accepted and what to do."""

import re
import warnings

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.utils._param_validation import InvalidParameterError

from parablock import (
    BlockSolver,
    KernelLogisticRegression,
    KernelQuantileRegressor,
    KernelRidge,
    KernelSVC,
    KernelSVR,
    solve,
)
from parablock.kernels import RBF, Chi2
from parablock.losses import Hinge
from tests.small_problems import CASES, N, features, in_format, targets

X, LABELS, NUMBERS = features(), targets("labels"), targets("numbers")
every_estimator = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
either_kind = pytest.mark.parametrize("case", [CASES["hinge"], CASES["squared_error"]], ids=["classifier", "regressor"])


def with_entry(array, value):
    """A copy with one entry replaced."""
    changed = np.array(array, dtype=float)
    changed.flat[7] = value
    return changed


def assert_refuses(estimator, X, y, *words, error=ValueError, **fit_parameters):
    """Fitting raises the error, whose message has all the words in this order."""
    with pytest.raises(error, match="(?s)" + ".*".join(re.escape(word) for word in words)):
        estimator.fit(X, y, **fit_parameters)


# ------------------------------------------------------------------------------------------------------ parameters


@pytest.mark.parametrize("name", ["C", "gamma", "tol", "coef0", "memory_limit", "max_iter", "n_blocks"])
def test_a_whole_number_too_large_for_any_float_is_refused_by_its_size(name):
    words = (f"The {name!r} parameter of KernelSVC must be at most 1.7e308", "Got a whole number of 401 digits")
    assert_refuses(KernelSVC(**{name: 10**400}), X, LABELS, *words)


def test_a_weight_or_an_epsilon_too_large_for_any_float_is_refused():
    assert_refuses(KernelSVC(class_weight={1: 10**400}), X, LABELS, "'class_weight'", "of 401 digits")
    assert_refuses(KernelSVR(epsilon=10**400), X, NUMBERS, "'epsilon'", "of 401 digits")
    with pytest.raises(ValueError, match="C must be finite"):
        solve(X, LABELS.astype(float), Hinge(), RBF(1.0), C=10**400)


@pytest.mark.parametrize("n_jobs", [0, 5000, 10**30])
def test_a_number_of_threads_that_makes_no_sense_is_refused(n_jobs):
    assert_refuses(KernelSVC(n_jobs=n_jobs), X, LABELS, "'n_jobs'", "(-inf, -1]", "[1, 4096]", f"Got {n_jobs} instead")
    words = "n_jobs must be a number of threads from 1 to 4,096, or None or -1 for all cores; got "
    with pytest.raises(ValueError, match=words):
        solve(X, LABELS.astype(float), Hinge(), RBF(1.0), n_jobs=n_jobs)


@pytest.mark.parametrize(
    ("name", "value", "accepted"),
    [
        ("C", 0.0, "(0.0, inf]"),
        ("C", -1.0, "(0.0, inf]"),
        ("C", np.nan, "(0.0, inf]"),
        ("C", "large", "(0.0, inf]"),
        ("gamma", 0.0, "(0.0, inf)"),
        ("gamma", -2.0, "(0.0, inf)"),
        ("gamma", "median", "'scale'"),
        ("kernel", "gaussian", "'rbf'"),
        ("kernel", None, "'rbf'"),
        ("degree", -1, "[0, inf)"),
        ("degree", 2.5, "[0, inf)"),
        ("coef0", np.nan, "(-inf, inf)"),
        ("fit_intercept", "yes", "'bool'"),
        ("tol", 0.0, "(0.0, inf)"),
        ("max_iter", 0, "[1, inf)"),
        ("partition", "voronoi", "'kmeans'"),
        ("n_blocks", 0, "[1, inf)"),
        ("n_blocks", 2.5, "[1, inf)"),
        ("block_solver", "newton", "'greedy'"),
        ("line_search", "wolfe", "'armijo'"),
        ("regroup", "never", "'bool'"),
        ("prediction", "nearest", "'local'"),
        ("device", "tpu", "'cpu'"),
        ("engine", "carrier pigeon", "'local'"),
        ("n_jobs", "all", "[1, 4096]"),
        ("memory_limit", -1, "(0.0, inf)"),
        ("memory_limit", 0, "(0.0, inf)"),
        ("memory_limit", [1], "'str'"),
        ("warm_start", "yes", "'bool'"),
        ("random_state", "seed", "'numpy.random.mtrand.RandomState'"),
    ],
)
@either_kind
def test_parameter_out_of_range_is_refused_with_the_accepted_values(case, name, value, accepted):
    estimator = case.model(**{name: value})
    assert_refuses(estimator, X, case.y, f"'{name}' parameter", accepted, repr(value)[:40], error=InvalidParameterError)


@pytest.mark.parametrize(
    ("estimator", "value"),
    [
        (KernelSVC(loss="huber"), "'huber'"),
        (KernelSVC(class_weight="even"), "'even'"),
        (KernelLogisticRegression(class_weight=3), "3"),
        (KernelSVR(epsilon=-0.1), "-0.1"),
        (KernelQuantileRegressor(quantile=0.0), "0.0"),
        (KernelQuantileRegressor(quantile=1.0), "1.0"),
    ],
)
def test_parameter_of_one_estimator_out_of_range_is_refused(estimator, value):
    assert_refuses(estimator, X, LABELS, "parameter", f"Got {value}", error=InvalidParameterError)


@pytest.mark.parametrize("limit", ["lots", "2 parsecs", "-1GB", "", "GB", "0MB", True])
def test_memory_limit_that_makes_no_sense_is_refused_with_examples(limit):
    assert_refuses(KernelSVC(memory_limit=limit), X, LABELS, "memory_limit", "'500MB' or '2GB'", f"got {limit!r}")


def test_no_threads_are_refused():
    assert_refuses(KernelSVC(n_jobs=0), X, LABELS, "n_jobs")


@pytest.mark.parametrize(
    ("parameters", "given"),
    [
        ({"choice": "newton"}, "'newton'"),
        ({"fraction": 1.0}, "1.0"),
        ({"fraction": -0.1}, "-0.1"),
        ({"floor": 2.0}, "2.0"),
        ({"max_updates": 0}, "0"),
    ],
)
def test_block_solver_out_of_range_is_refused(parameters, given):
    with pytest.raises(ValueError, match=re.escape(given)):
        BlockSolver(**parameters)


def test_exact_line_search_is_refused_where_the_loss_is_not_piecewise_quadratic():
    estimator = KernelLogisticRegression(line_search="exact")
    assert_refuses(estimator, X, LABELS, "line_search='exact'", "Logistic", "'auto' or 'armijo'")


@every_estimator
def test_local_prediction_is_refused_where_blocks_are_regrouped(case):
    estimator = case.model(prediction="local", regroup=True)
    assert_refuses(estimator, X, case.y, "prediction='local'", "regroup=True", "Set regroup=False")


def test_local_prediction_is_refused_where_the_fit_did_not_prepare_it():
    model = KernelSVC(regroup=False, n_blocks=4).fit(X, LABELS).set_params(prediction="local")
    with pytest.raises(ValueError, match=r"prediction='local'.*Fit again, or set prediction='global'"):
        model.predict(X)


# ------------------------------------------------------------------------------------------------------------ data


@pytest.mark.parametrize("data_format", ["dense", "csr"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@either_kind
def test_features_that_are_not_finite_are_refused(case, value, data_format):
    rows = in_format(with_entry(X, value), data_format)
    assert_refuses(case.model(), rows, case.y, "NaN" if np.isnan(value) else "infinity")


@pytest.mark.parametrize("value", [np.nan, np.inf])
@every_estimator
def test_targets_that_are_not_finite_are_refused(case, value):
    assert_refuses(case.model(), X, with_entry(case.y, value), "NaN" if np.isnan(value) else "infinity")


@pytest.mark.parametrize("value", [np.nan, np.inf])
@either_kind
def test_new_rows_that_are_not_finite_are_refused(case, value):
    model = case.fit()
    with pytest.raises(ValueError, match="NaN" if np.isnan(value) else "infinity"):
        model.predict(with_entry(X, value))


@pytest.mark.parametrize(
    ("rows", "labels", "words"),
    [
        (X[:, 0], LABELS, ["Expected 2D array, got 1D array"]),
        (X[None], LABELS, ["Found array with dim 3"]),
        (X[:5], LABELS, ["inconsistent numbers of samples", f"[5, {N}]"]),
        (X[:0], LABELS[:0], ["0 sample(s)"]),
        (X[:, :0], LABELS, ["0 feature(s)"]),
        (X + 1j, LABELS, ["Complex data not supported"]),
        ([["a", "b"]] * N, LABELS, ["could not convert string to float"]),
    ],
    ids=["vector", "cube", "lengths", "no rows", "no features", "complex", "words"],
)
@either_kind
def test_data_of_a_wrong_shape_or_type_are_refused(case, rows, labels, words):
    assert_refuses(case.model(), rows, labels, *words)


def test_classifier_refuses_targets_that_are_no_classes():
    assert_refuses(KernelSVC(), X, NUMBERS, "Unknown label type: continuous")
    assert_refuses(KernelSVC(), X, np.stack((LABELS, LABELS), axis=1), f"got an array of shape ({N}, 2)")


@pytest.mark.parametrize("classifier", [KernelSVC(), KernelLogisticRegression()], ids=["svc", "logistic"])
def test_one_class_is_refused_and_named(classifier):
    words = ("at least 2 classes", "got 1 class: ['cat']", "Check y and sample_weight")
    assert_refuses(classifier, X, ["cat"] * N, *words)
    weight = np.zeros(N)
    weight[:5] = 1
    assert_refuses(classifier, X, ["cat"] * 5 + ["dog"] * (N - 5), *words, sample_weight=weight)


@every_estimator
def test_prediction_before_fit_and_with_other_features_is_refused(case):
    with pytest.raises(NotFittedError):
        case.model().predict(X)
    with pytest.raises(ValueError, match=r"X has 3 features, but .* is expecting 4"):
        case.fit().predict(X[:, :3])


# --------------------------------------------------------------------------------------------------------- weights


@pytest.mark.parametrize(
    ("weight", "words"),
    [
        (with_entry(np.ones(N), -0.5), ["Negative values in sample_weight", "-0.5", "zero or positive"]),
        (np.zeros(N), ["ample weights", "zero"]),
        (with_entry(np.ones(N), np.nan), ["NaN"]),
        (with_entry(np.ones(N), np.inf), ["infinity"]),
        (np.ones(N - 1), [f"({N - 1},)", f"({N},)"]),
        (np.ones((N, 2)), ["1D array"]),
    ],
    ids=["negative", "all zero", "nan", "infinite", "length", "shape"],
)
@either_kind
def test_sample_weights_that_make_no_sense_are_refused(case, weight, words):
    assert_refuses(case.model(), X, case.y, *words, sample_weight=weight)


@pytest.mark.parametrize("weights", [{-1: 0.0, 1: 1.0}, {-1: -2.0, 1: 1.0}, {-1: np.nan, 1: 1.0}])
def test_class_weights_that_are_not_positive_are_refused(weights):
    assert_refuses(KernelSVC(class_weight=weights), X, LABELS, "class_weight must be positive", str(weights))


# ------------------------------------------------------------------------------------------------ kernels and blocks


def test_precomputed_matrix_that_is_not_square_is_refused():
    estimator = KernelSVC(kernel="precomputed")
    assert_refuses(estimator, X, LABELS, "square kernel matrix", f"shape ({N}, 4)", "K[i, j] = kernel(x_i, x_j)")


def test_precomputed_matrix_that_is_not_symmetric_is_refused():
    matrix = np.random.default_rng(0).uniform(size=(N, N))
    assert_refuses(KernelSVC(kernel="precomputed"), matrix, LABELS, "precomputed kernel matrix is not symmetric")


@pytest.mark.parametrize("data_format", ["dense", "csr"])
def test_chi2_kernel_refuses_negative_features(data_format):
    words = ("Negative values", "chi2", "scale the features to be non-negative")
    for kernel in ("chi2", Chi2(0.5)):
        assert_refuses(KernelSVC(kernel=kernel), in_format(X, data_format), LABELS, *words)
    model = KernelSVC(kernel="chi2").fit(in_format(np.abs(X), data_format), LABELS)
    with pytest.raises(ValueError, match="Negative values"):
        model.predict(in_format(X, data_format))


def test_a_kernel_that_is_nan_for_one_pair_is_refused():
    class Patchy(RBF):
        def transform(self, tile, row_self, column_self):
            super().transform(tile, row_self, column_self)
            tile[tile < 1e-15] = np.nan

    rows = np.random.default_rng(0).normal(size=(1000, 1))
    rows[[300, 700]] = [[-20.0], [20.0]]
    labels = np.arange(1000) % 2
    assert_refuses(KernelSVC(kernel=Patchy(0.05), n_blocks=6), rows, labels, "kernel gave values that are not")


def test_solve_refuses_what_does_not_fit():
    target = np.where(np.equal(LABELS, LABELS[0]), 1.0, -1.0)
    assert solve(X.astype(np.int64), target, Hinge(), RBF(1.0)).solution.reason == "converged"
    for bad, C, words in (
        (target[:-1], 1.0, "one value"),
        (np.append(target, target), 1.0, "one value"),
        (target, -1.0, "must not be negative"),
        (target * np.nan, 1.0, "must be finite"),
    ):
        with pytest.raises(ValueError, match=words):
            solve(X, bad, Hinge(), RBF(1.0), C=C)


def one_value(A, B):
    return np.ones(1)


def transposed(A, B):
    return np.ones((len(B) + 1, len(A)))


def not_a_number(A, B):
    return np.full((len(A), len(B)), np.nan)


def some_words(A, B):
    return np.full((len(A), len(B)), "near")


def lopsided(A, B):
    return A[:, :1] - B[:, :1].T


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (one_value, ["'one_value' must return an array of shape", "it returned shape (1,)"]),
        (transposed, ["'transposed' must return an array of shape"]),
        (not_a_number, ["'not_a_number' returned values that are not finite numbers"]),
        (some_words, ["'some_words' returned values that are not finite numbers"]),
        (lopsided, ["not symmetric", "K(x, z) must equal K(z, x)"]),
    ],
)
@either_kind
def test_kernel_function_that_returns_nonsense_is_refused_by_name(case, function, words):
    assert_refuses(case.model(kernel=function), X, case.y, *words)


def test_kernel_values_that_overflow_are_refused_with_what_to_change():
    estimator = KernelSVC(kernel="poly", degree=40, gamma=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        assert_refuses(estimator, (1e3 * X).astype("float32"), LABELS, "polynomial", "not finite", "Scale the features")


def test_kernel_for_which_ridge_regression_has_no_solution_gives_an_error_and_no_model_of_nan():
    """Its matrix has eigenvalues below -1 / (2 C), so the objective has no minimum."""
    indefinite = -10.0 * np.eye(N)
    indefinite[0] = indefinite[:, 0] = 1.0
    assert_refuses(KernelRidge(kernel="precomputed"), indefinite, NUMBERS, "kernel", "positive")


@pytest.mark.parametrize("size", [N - 1, N + 1])
@pytest.mark.parametrize("weight", [None, np.arange(N) % 2], ids=["all rows", "some weights zero"])
@either_kind
def test_block_labels_of_another_length_are_refused(case, size, weight):
    estimator = case.model(partition=np.zeros(size, dtype=int))
    assert_refuses(estimator, X, case.y, f"({N},)", f"got shape ({size},)", sample_weight=weight)


def test_block_labels_that_are_not_a_number_are_refused():
    assert_refuses(KernelSVC(partition=with_entry(np.zeros(N), np.nan)), X, LABELS, "partition", "nan")


@pytest.mark.parametrize("estimator", [KernelSVC(), KernelRidge()], ids=["classifier", "regressor"])
def test_a_refused_fit_leaves_an_earlier_model_as_it_was(estimator):
    model = estimator.fit(X, LABELS)
    before = model.predict(X)
    assert_refuses(model, X, LABELS, "Negative values", sample_weight=-np.ones(N))
    assert np.array_equal(model.predict(X), before)
