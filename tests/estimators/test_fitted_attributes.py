"""What a fit leaves behind: attributes, their shapes and types, and one record an iteration."""

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_blobs

from parablock import KernelLogisticRegression, KernelRidge, KernelSVC, KernelSVR
from tests.small_problems import CASES, N, features, full_coef, in_format, rbf, targets

every_estimator = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
every_format = pytest.mark.parametrize("data_format", ["dense", "csr"])


@every_format
@every_estimator
def test_support_vectors_are_the_rows_with_a_coefficient(case, data_format):
    model = case.model().fit(in_format(case.X, data_format), case.y)
    n_support = len(model.support_)
    assert 0 < n_support <= N
    assert np.array_equal(model.support_, np.unique(model.support_))
    assert model.dual_coef_.shape == (1, n_support)
    assert np.all(model.dual_coef_ != 0)
    assert sp.issparse(model.support_vectors_) == (data_format == "csr")
    vectors = model.support_vectors_.toarray() if data_format == "csr" else model.support_vectors_
    assert np.array_equal(vectors, case.X[model.support_])
    assert model.intercept_.shape == (1,)
    assert model.n_features_in_ == 4


@every_estimator
def test_support_numbers_the_users_rows_also_where_some_have_no_weight(case):
    weight = (np.arange(N) % 3 > 0).astype(float)
    model = case.model(n_blocks=3).fit(case.X, case.y, sample_weight=weight)
    assert np.all(weight[model.support_] > 0)
    assert model.support_.max() >= weight.sum()  # a number that no row has once the others are left out
    assert np.array_equal(model.support_vectors_, case.X[model.support_])
    # Together with the coefficients they are the model, whatever numbers the solver used inside.
    prediction = rbf(case.X) @ full_coef(model)[0] + model.intercept_[0]
    decide = getattr(model, "decision_function", model.predict)
    assert decide(case.X) == pytest.approx(prediction, abs=1e-12)


def test_several_outputs_share_support_vectors():
    X, y = make_blobs(90, centers=3, cluster_std=3, random_state=0)
    model = KernelSVC(random_state=0, n_jobs=1).fit(X, np.array(["c", "a", "b"])[y])
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert model.dual_coef_.shape == (3, len(model.support_))
    assert model.dual_coef_.any(axis=0).all()
    assert model.intercept_.shape == (3,)
    assert model.decision_function(X).shape == (90, 3)
    assert KernelRidge().fit(X, X).dual_coef_.shape[0] == 2


def test_precomputed_kernel_has_support_but_no_support_vectors():
    model = KernelSVC(kernel="precomputed").fit(rbf(features()), targets("labels"))
    assert len(model.support_) == model.dual_coef_.shape[1] > 0
    assert model.support_vectors_.shape == (0, 0)


def test_a_model_without_support_vectors_predicts_its_intercept():
    model = KernelSVR(epsilon=100.0).fit(features(), targets("numbers"))
    assert model.support_.shape == (0,)
    assert model.dual_coef_.shape == (1, 0)
    assert np.array_equal(model.predict(features()), np.full(N, model.intercept_[0]))


@every_estimator
def test_results_of_a_fit_agree_with_its_last_record(case):
    model = case.fit(n_blocks=4)
    last = model.history_[-1]
    assert model.n_iter_ == len(model.history_) == last.iteration
    assert model.dual_objective_ == -last.objective
    assert model.duality_gap_ == last.duality_gap
    assert model.violation_ == last.violation
    assert model.kernel_evaluations_ == last.kernel_evaluations
    assert sorted(np.concatenate(model.partition_.blocks)) == list(range(N))


@every_estimator
def test_history_records_every_iteration(case):
    model = case.fit(n_blocks=4, tol=1e-6)
    names = {field.name for field in dataclasses.fields(model.history_[0])}
    assert {
        "iteration", "seconds", "objective", "duality_gap", "violation", "step", "active", "changed", "updates",
        "kernel_evaluations", "blocks", "kind",
    } <= names  # fmt: skip
    table = {name: np.array([getattr(record, name) for record in model.history_]) for name in names}
    assert table["iteration"].tolist() == list(range(1, model.n_iter_ + 1))
    assert np.all(np.diff(table["seconds"]) > 0)
    assert np.all(np.diff(table["kernel_evaluations"]) >= 0)
    assert np.all((table["changed"] <= table["active"]) & (table["active"] <= N))
    assert np.all(table["step"] >= 0)
    assert np.all(table["updates"] >= 1)
    assert table["kernel_evaluations"][0] >= N * N // 4  # the blocks' own matrices at least


def test_history_becomes_a_table():
    pandas = pytest.importorskip("pandas")
    model = CASES["hinge"].fit(n_blocks=4)
    table = pandas.DataFrame(model.history_)
    assert len(table) == model.n_iter_
    assert table["objective"].iloc[-1] == -model.dual_objective_


def test_fit_returns_the_estimator_itself():
    model = KernelSVC()
    assert model.fit(features(), targets("labels")) is model


# ----------------------------------------------------------------------------------------------- types and formats


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("float64", "float64"),
        ("float32", "float32"),
        ("float16", "float32"),
        ("uint8", "float32"),
        ("int16", "float32"),
        ("bool", "float32"),
        ("int64", "float64"),
    ],
)
def test_features_keep_their_precision_and_small_types_become_float32(given, kept):
    X = np.round(10 * np.abs(features())).astype(given)
    model = KernelSVC(gamma=0.1, n_jobs=1).fit(X, targets("labels"))
    assert model.support_vectors_.dtype == kept
    wide = KernelSVC(gamma=0.1, n_jobs=1).fit(X.astype(np.float64), targets("labels"))
    assert model.decision_function(X) == pytest.approx(wide.decision_function(X.astype(np.float64)), abs=1e-2)


@pytest.mark.parametrize(("given", "kept"), [("float64", "float64"), ("float32", "float32"), ("uint8", "float32")])
def test_sparse_features_keep_their_precision_and_small_types_become_float32(given, kept):
    X = sp.csr_matrix(np.round(10 * np.abs(features())).astype(given))
    assert KernelSVC(gamma=0.1, n_jobs=1).fit(X, targets("labels")).support_vectors_.dtype == kept


def test_large_offsets_do_not_cost_float32_its_precision():
    X, y = features(), targets("labels")
    plain = KernelSVC(gamma=0.6, tol=1e-4, n_jobs=1).fit(X.astype(np.float32), y)
    shifted = KernelSVC(gamma=0.6, tol=1e-4, n_jobs=1).fit((X + 1000.0).astype(np.float32), y)
    assert shifted.decision_function((X + 1000.0).astype(np.float32)) == pytest.approx(
        plain.decision_function(X.astype(np.float32)), abs=5e-3
    )


@pytest.mark.parametrize("container", [sp.csr_matrix, sp.csr_array, sp.csc_matrix, sp.coo_matrix])
@every_estimator
def test_sparse_formats_train_the_dense_model(case, container):
    dense, sparse = case.fit(tol=1e-6), case.model(tol=1e-6).fit(container(case.X), case.y)
    assert sparse.dual_objective_ == pytest.approx(dense.dual_objective_, rel=1e-9)


def test_csr_with_64_bit_indices_trains_the_same_model():
    case = CASES["hinge"]
    wide = sp.csr_matrix(case.X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    model = case.model(n_blocks=4).fit(wide, case.y)
    assert model.decision_function(wide) == pytest.approx(case.fit(n_blocks=4).decision_function(case.X), abs=1e-3)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "laplacian", "poly", "matern32", "cosine"])
@pytest.mark.parametrize(("trained_on", "predicted"), [("dense", "csr"), ("csr", "dense")])
def test_training_and_new_rows_may_have_different_formats(trained_on, predicted, kernel):
    X, y, new = features(), targets("labels"), features(40, seed=3)
    model = KernelLogisticRegression(kernel=kernel, n_jobs=1).fit(in_format(X, trained_on), y)
    same = model.decision_function(in_format(new, trained_on))
    assert model.decision_function(in_format(new, predicted)) == pytest.approx(same, abs=1e-10)


def test_new_rows_of_another_precision_are_predicted_in_the_training_datas():
    X, y = features(), targets("labels")
    model = KernelSVC(n_jobs=1).fit(X.astype(np.float32), y)
    assert np.array_equal(model.decision_function(X), model.decision_function(X.astype(np.float32)))


def test_rows_in_fortran_order_and_lists_are_accepted():
    X, y = features(), targets("labels")
    expected = KernelSVC(random_state=0, n_jobs=1).fit(X, y).decision_function(X)
    for rows in (np.asfortranarray(X), X.tolist(), np.repeat(X, 2, axis=0)[::2]):
        assert KernelSVC(random_state=0, n_jobs=1).fit(rows, y).decision_function(rows) == pytest.approx(expected)


def test_the_users_arrays_are_left_as_they_were():
    X, y = features().copy(), targets("numbers").copy()
    weight = np.linspace(0, 1, N)
    copies = X.copy(), y.copy(), weight.copy()
    KernelSVR(n_blocks=4).fit(X, y, sample_weight=weight).predict(X)
    assert all(np.array_equal(now, before) for now, before in zip((X, y, weight), copies))
