"""LIBSVM's model text in both directions, against the real LIBSVM (libsvm-official) and scikit-learn."""

import ctypes
import json

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from libsvm.svm import gen_svm_nodearray, libsvm
from libsvm.svmutil import svm_load_model, svm_predict, svm_save_model, svm_train
from sklearn.base import clone
from sklearn.svm import SVC, SVR, NuSVC, OneClassSVM

import parablock
from parablock import KernelLogisticRegression, KernelQuantileRegressor, KernelRidge, KernelSVC, KernelSVR
from parablock.losses import Hinge
from parablock.models import ModelFileError, describe, from_libsvm, load_any, to_libsvm
from tests.models.zoo import CLASSES, LOCAL, NEW, SETTINGS, TWO_TARGETS, decision, fit
from tests.small_problems import features, in_format, rbf, targets

KERNELS = {
    "linear": {},
    "poly": {"gamma": 0.5, "degree": 2, "coef0": 1.0},
    "rbf": {"gamma": 0.3},
    "sigmoid": {"gamma": 0.01, "coef0": 0.1},
}
every_kernel = pytest.mark.parametrize("kernel", KERNELS)
every_format = pytest.mark.parametrize("data_format", ["dense", "csr"])
NUMBERS = {"linear": 0, "poly": 1, "rbf": 2, "sigmoid": 3}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "machine.model"


def predicted_by_libsvm(path, X=NEW, options=""):
    """Labels or values, and decision values, as LIBSVM computes them from a file."""
    model = svm_load_model(str(path))
    assert model is not None
    if options:
        labels, _, values = svm_predict([], sp.csr_matrix(X), model, f"-q {options}")
        return np.array(labels), np.array(values)
    # Its svm_predict has room for one decision value of a nu_svc, also where there are more.
    pairs = (ctypes.c_double * max(1, model.get_nr_class() * (model.get_nr_class() - 1) // 2))()
    labels, values = [], []
    for row in X.toarray() if sp.issparse(X) else X:
        labels.append(libsvm.svm_predict_values(model, gen_svm_nodearray(row)[0], pairs))
        values.append(list(pairs))
    return np.array(labels), np.array(values)


def comparisons(model, X):
    """Ours in LIBSVM's order: one column a pair."""
    return model._comparisons(X).T


def options_of(kernel):
    """Those of svm-train."""
    names = {"gamma": "g", "degree": "d", "coef0": "r"}
    return f"-q -t {NUMBERS[kernel]} " + " ".join(f"-{names[name]} {value}" for name, value in KERNELS[kernel].items())


# ------------------------------------------------------------------------------------------------------------ to LIBSVM


@every_kernel
@every_format
def test_libsvm_predicts_our_two_classes(kernel, data_format, path):
    X = in_format(features(), data_format)
    model = fit(KernelSVC(kernel=kernel, **KERNELS[kernel], **SETTINGS), X)
    to_libsvm(model, path)
    labels, values = predicted_by_libsvm(path)
    assert np.array_equal(labels, model.predict(NEW))
    assert values[:, 0] == pytest.approx(decision(model), abs=1e-10)


@pytest.mark.parametrize("estimator", [KernelSVC(loss="squared_hinge"), KernelSVC(fit_intercept=False, gamma=1.0)])
def test_libsvm_predicts_other_losses_and_models_without_intercept(estimator, path):
    model = fit(clone(estimator).set_params(**SETTINGS))
    to_libsvm(model, path)
    assert predicted_by_libsvm(path)[1][:, 0] == pytest.approx(decision(model), abs=1e-10)


@every_kernel
@pytest.mark.parametrize("estimator", [KernelSVC(C=5.0), KernelLogisticRegression()])
def test_libsvm_predicts_our_classes_one_against_the_rest(estimator, kernel, path):
    """By pairs that compare their decision values: the largest wins."""
    model = fit(clone(estimator).set_params(kernel=kernel, **KERNELS[kernel], **SETTINGS), y=7 - 3 * CLASSES)
    to_libsvm(model, path)
    labels, values = predicted_by_libsvm(path)
    assert np.array_equal(labels, model.predict(NEW))
    scores = decision(model)
    pairs = np.stack([scores[:, 0] - scores[:, 1], scores[:, 0] - scores[:, 2], scores[:, 1] - scores[:, 2]], axis=1)
    assert values == pytest.approx(pairs, abs=1e-10)


def test_libsvm_predicts_many_classes(path):
    y = np.arange(72) % 9
    model = fit(KernelSVC(C=100, gamma=2.0, **SETTINGS), y=y)
    to_libsvm(model, path)
    labels, _ = predicted_by_libsvm(path)
    assert np.array_equal(labels, model.predict(NEW))
    assert len(set(labels)) > 5


def test_libsvm_gives_the_probabilities_of_logistic_regression(path):
    model = fit(KernelLogisticRegression(**SETTINGS))
    to_libsvm(model, path)
    labels, probabilities = predicted_by_libsvm(path, options="-b 1")
    assert np.array_equal(labels, model.predict(NEW))
    assert probabilities[:, ::-1] == pytest.approx(model.predict_proba(NEW), abs=1e-7)


@every_kernel
@pytest.mark.parametrize(
    "estimator",
    [KernelSVR(C=3.0), KernelRidge(), KernelQuantileRegressor(quantile=0.8)],
    ids=lambda e: type(e).__name__,
)
def test_libsvm_predicts_our_regressors(estimator, kernel, path):
    model = fit(clone(estimator).set_params(kernel=kernel, **KERNELS[kernel], **SETTINGS))
    to_libsvm(model, path)
    assert predicted_by_libsvm(path)[0] == pytest.approx(model.predict(NEW), abs=1e-9)


def test_libsvm_predicts_a_model_without_support_vectors(path):
    model = fit(KernelSVR(epsilon=100.0, **SETTINGS))
    to_libsvm(model, path)
    assert predicted_by_libsvm(path)[0] == pytest.approx(model.predict(NEW))
    assert from_libsvm(path).predict(NEW) == pytest.approx(model.predict(NEW))


def test_float32_models_are_written_in_full(path):
    model = fit(KernelSVC(**SETTINGS), features().astype(np.float32))
    to_libsvm(model, path)
    assert predicted_by_libsvm(path)[1][:, 0] == pytest.approx(decision(model), abs=1e-4)
    assert np.array_equal(np.sort(from_libsvm(path).model.coef[0]), np.sort(model.dual_coef_[0]))


@pytest.mark.parametrize("labels", [[False, True], [-1.0, 1.0], [0, 2**31 - 1]])
def test_labels_that_are_whole_numbers_are_written(labels, path):
    model = fit(KernelSVC(**SETTINGS), y=np.array(labels)[(targets("labels") > 0).astype(int)])
    to_libsvm(model, path)
    assert np.array_equal(predicted_by_libsvm(path)[0], model.predict(NEW))


class OwnLoss(KernelRidge):
    """Predicts like a ridge regression, whatever it minimises."""


class OwnDecision(KernelSVC):
    def decision_function(self, X):
        return 2 * super().decision_function(X)


class OwnPrediction(KernelRidge):
    def predict(self, X):
        return np.exp(super().predict(X))


def test_estimators_of_ones_own_are_written_when_they_predict_like_ours(path):
    model = fit(OwnLoss(**SETTINGS))
    to_libsvm(model, path)
    assert predicted_by_libsvm(path)[0] == pytest.approx(model.predict(NEW), abs=1e-9)
    with pytest.raises(ModelFileError, match="predict like them; got OwnPrediction"):
        to_libsvm(fit(OwnPrediction(**SETTINGS)), path)
    with pytest.raises(ModelFileError, match="predict like them; got OwnDecision"):
        to_libsvm(fit(OwnDecision(**SETTINGS)), path)


@pytest.mark.parametrize(
    ("model", "options", "match"),
    [
        (KernelSVC(kernel="laplacian"), {}, "no Laplacian kernel; it has linear.*parablock.save"),
        (KernelSVC(kernel="cosine"), {}, "no Cosine kernel"),
        (KernelSVC(kernel="precomputed"), {"X": rbf(features())}, "no Precomputed kernel"),
        (KernelSVC(kernel=lambda X, Z: X @ Z.T), {}, "a kernel that is a Python function"),
        (KernelSVC(**LOCAL), {}, r"set_params\(prediction='global'\)"),
        (KernelRidge(), {"y": TWO_TARGETS}, "has 2. Fit one model for each target"),
        (KernelSVC(), {"y": np.array(["no", "yes"])[CLASSES % 2]}, r"whole numbers.*\['no', 'yes'\].*to_onnx"),
        (KernelSVC(), {"y": np.array([0.5, 1.5])[CLASSES % 2].astype(str)}, "whole numbers"),
        (KernelSVC(), {"y": np.array([0, 2**31])[CLASSES % 2]}, "32 bits"),
    ],
)
def test_what_libsvm_does_not_have_is_refused(model, options, match, path):
    fit(model.set_params(**SETTINGS), **options)
    with pytest.raises(ModelFileError, match=match):
        to_libsvm(model, path)
    assert list(path.parent.iterdir()) == []


def test_only_our_estimators_are_written(path):
    with pytest.raises(ModelFileError, match="got SVC"):
        to_libsvm(SVC().fit(features(), CLASSES), path)
    with pytest.raises(ValueError, match="not fitted"):
        to_libsvm(KernelSVC(), path)


# ---------------------------------------------------------------------------------------------------------- from LIBSVM


def trained(path, y, options, X=None):
    """A model that LIBSVM has trained and saved; its own predictions."""
    model = svm_train(y, sp.csr_matrix(features() if X is None else X), options)
    svm_save_model(str(path), model)
    return model


@every_kernel
@every_format
@pytest.mark.parametrize("machine", [0, 1], ids=["c_svc", "nu_svc"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_we_predict_libsvms_classes(n_classes, machine, data_format, kernel, path):
    y = (CLASSES - 1) if n_classes == 3 else targets("labels")
    trained(path, y, f"-s {machine} -n 0.2 {options_of(kernel)}")
    labels, values = predicted_by_libsvm(path)
    loaded = from_libsvm(path)
    new = in_format(NEW, data_format)
    assert np.array_equal(loaded.predict(new), labels)
    assert comparisons(loaded, new) == pytest.approx(values, abs=1e-7)
    assert loaded.score(new, labels) == 1.0


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1], [1, 2, 0]])
def test_classes_ascend_whatever_the_order_in_the_file(order, path):
    """LIBSVM numbers classes as it meets them; scikit-learn's SVC, the same machine, by their size."""
    rows = np.argsort(np.argsort(order)[CLASSES], kind="stable")
    X, y = features()[rows], CLASSES[rows]
    trained(path, y, options_of("rbf"), X)
    loaded, peer = from_libsvm(path), SVC(**KERNELS["rbf"]).fit(X, y)
    assert loaded.model.labels == order
    assert loaded.classes_.tolist() == [0, 1, 2]
    assert loaded.decision_function(NEW) == pytest.approx(peer.decision_function(NEW), abs=2e-3)
    assert np.mean(loaded.predict(NEW) == peer.predict(NEW)) > 0.9


@pytest.mark.parametrize("flip", [1, -1])
def test_decisions_of_two_classes_are_positive_for_the_larger_label(flip, path):
    y = targets("labels")
    rows = np.argsort(flip * y, kind="stable")
    trained(path, y[rows], options_of("rbf"), features()[rows])
    loaded, peer = from_libsvm(path), SVC(**KERNELS["rbf"]).fit(features(), y)
    assert loaded.decision_function(NEW) == pytest.approx(peer.decision_function(NEW), abs=2e-3)
    assert np.array_equal(loaded.predict(NEW) > 0, loaded.decision_function(NEW) > 0)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_we_give_libsvms_probabilities(n_classes, path):
    y = CLASSES if n_classes == 3 else targets("labels")
    trained(path, y, f"-b 1 {options_of('rbf')}")
    _, probabilities = predicted_by_libsvm(path, options="-b 1")
    loaded = from_libsvm(path)
    order = np.argsort(loaded.model.labels)
    found = loaded.predict_proba(NEW)
    # LIBSVM ends its iteration over three classes early.
    assert found == pytest.approx(probabilities[:, order], abs=1e-7 if n_classes == 2 else 5e-3)
    assert found.sum(axis=1) == pytest.approx(1.0)


def test_probabilities_are_there_when_the_file_has_them(path):
    trained(path, targets("labels"), options_of("rbf"))
    assert not hasattr(from_libsvm(path), "predict_proba")


@every_kernel
@pytest.mark.parametrize("machine", [3, 4], ids=["epsilon_svr", "nu_svr"])
def test_we_predict_libsvms_regressions(machine, kernel, path):
    trained(path, targets("numbers"), f"-s {machine} {options_of(kernel)}")
    values, _ = predicted_by_libsvm(path)
    loaded = from_libsvm(path)
    assert loaded.predict(NEW) == pytest.approx(values, abs=1e-7)
    assert loaded.score(NEW, values) == pytest.approx(1.0)


def test_we_predict_libsvms_one_class(path):
    trained(path, np.ones(72), f"-s 2 -n 0.3 {options_of('rbf')}")
    labels, values = predicted_by_libsvm(path)
    loaded = from_libsvm(path)
    assert np.array_equal(loaded.predict(NEW), labels)
    assert set(labels) == {-1, 1}
    peer = OneClassSVM(nu=0.3, tol=1e-6, **KERNELS["rbf"]).fit(features())
    assert loaded.decision_function(NEW) == pytest.approx(values[:, 0], abs=1e-7)
    assert np.mean(loaded.predict(NEW) == peer.predict(NEW)) > 0.9


def test_features_that_the_other_side_does_not_have_are_zero(path):
    trained(path, CLASSES, options_of("rbf"))
    loaded = from_libsvm(path)
    wide = np.concatenate((NEW, np.full((len(NEW), 2), 0.7)), axis=1)
    for new in (NEW[:, :2], wide, sp.csr_matrix(wide)):
        assert np.array_equal(loaded.predict(new), predicted_by_libsvm(path, new)[0])
    assert comparisons(loaded, wide) == pytest.approx(predicted_by_libsvm(path, wide)[1], abs=1e-7)


def test_sparse_text_is_predicted_without_being_made_dense(path):
    rng = np.random.default_rng(0)
    X = sp.random(60, 5000, density=0.01, format="csr", random_state=0)
    y = (np.asarray(X[:, :2500].sum(axis=1)).ravel() > np.asarray(X[:, 2500:].sum(axis=1)).ravel()).astype(int)
    trained(path, y, "-q -t 0", X)
    new = sp.random(30, 5000, density=0.01, format="csr", random_state=rng)
    assert comparisons(from_libsvm(path), new) == pytest.approx(predicted_by_libsvm(path, new)[1], abs=1e-7)


def test_imported_models_have_the_tools_of_an_estimator(path):
    trained(path, CLASSES, options_of("rbf"))
    loaded = load_any(path)
    same = clone(loaded).set_params(n_jobs=1, device="auto")
    assert np.array_equal(same.predict(NEW), loaded.predict(NEW))
    assert "LibsvmClassifier" in repr(type(loaded))


def test_describe_tells_what_is_inside(path):
    trained(path, CLASSES, options_of("poly"))
    told = describe(path)
    assert json.loads(json.dumps(told)) == told
    assert told["format"] == "LIBSVM model"
    assert told["svm_type"] == "c_svc"
    assert told["kernel"] == {"name": "polynomial", "gamma": 0.5, "coef0": 1.0, "degree": 2}
    assert told["classes"] == [0, 1, 2]
    assert (told["n_features"], told["bytes"]) == (4, path.stat().st_size)
    assert told["n_support_vectors"] == svm_load_model(str(path)).get_nr_sv()


# ------------------------------------------------------------------------------------------------------------ both ways


@examples(max_examples=30)
@given(
    kernel=st.sampled_from(list(KERNELS)),
    classes=st.integers(2, 5),
    rows=st.integers(6, 40),
    width=st.integers(1, 6),
    density=st.sampled_from([0.1, 0.5, 1.0]),
    scale=st.sampled_from([1e-3, 1.0, 10.0]),
    seed=st.integers(0, 2**32 - 1),
)
def test_what_we_write_libsvm_and_we_read_alike(tmp_path_factory, kernel, classes, rows, width, density, scale, seed):
    rng = np.random.default_rng(seed)
    X = scale * rng.normal(size=(rows, width)) * (rng.random((rows, width)) < density)
    y = rng.permutation(np.arange(rows) % classes) * 3 - 4
    path = tmp_path_factory.mktemp("both") / "machine.model"
    model = fit(KernelSVC(kernel=kernel, **KERNELS[kernel], max_iter=5, **SETTINGS), X, y)
    to_libsvm(model, path)
    labels, values = predicted_by_libsvm(path, X)
    loaded = from_libsvm(path)
    assert comparisons(loaded, X) == pytest.approx(values, rel=1e-9, abs=1e-9)
    scores = decision(model, X)
    if classes == 2:
        assert loaded.decision_function(X) == pytest.approx(scores, rel=1e-9, abs=1e-9)
        clear = np.abs(scores) > 1e-6
    else:
        best = np.sort(scores, axis=1)
        clear = best[:, -1] - best[:, -2] > 1e-6
    assert np.array_equal(labels[clear], model.predict(X)[clear])
    assert np.array_equal(loaded.predict(X)[clear], model.predict(X)[clear])


def test_the_hinge_is_what_libsvm_minimises(path):
    """The same problem, so the same machine: LIBSVM's own training gives our decisions."""
    model = fit(KernelSVC(C=2.0, tol=1e-6, **KERNELS["rbf"], **SETTINGS))
    assert isinstance(model._make_loss(), Hinge)
    trained(path, targets("labels"), f"-c 2 -e 1e-8 {options_of('rbf')}")
    assert from_libsvm(path).decision_function(NEW) == pytest.approx(decision(model), abs=1e-5)


@pytest.mark.parametrize("peer", [SVR(gamma=0.3), NuSVC(gamma=0.3, nu=0.2)], ids=lambda peer: type(peer).__name__)
def test_imports_agree_with_scikit_learn(peer, path):
    regression = isinstance(peer, SVR)
    y = targets("numbers" if regression else "labels")
    peer.set_params(tol=1e-8).fit(features(), y)
    trained(path, y, f"-s {3 if regression else 1} -n 0.2 -c 1 -p 0.1 -e 1e-8 {options_of('rbf')}")
    assert decision(from_libsvm(path)) == pytest.approx(decision(peer), abs=1e-4)


# ------------------------------------------------------------------------------------------------------ malformed files

GOOD = """svm_type c_svc
kernel_type rbf
gamma 0.5
nr_class 3
total_sv 4
rho 0.1 0.2 0.3
label 5 -1 2
nr_sv 2 1 1
SV
1 0.5 1:0.25 3:1
-1 2e-1 2:1.5
0.5 0.5
1 1 1:1 2:1 3:1
"""


def test_the_example_is_good(path):
    path.write_text(GOOD)
    model = from_libsvm(path)
    assert model.classes_.tolist() == [-1, 2, 5]
    assert np.array_equal(model.predict(NEW[:, :3]), predicted_by_libsvm(path, NEW[:, :3])[0])
    path.write_text(GOOD.replace("\n", "\r\n") + "\n\n")
    assert np.array_equal(from_libsvm(path).model.coef, model.model.coef)


@pytest.mark.parametrize(
    ("old", "new", "line", "match"),
    [
        ("svm_type c_svc", "svm_type forest", 1, "'forest' where one of"),
        ("svm_type c_svc", "svm_type", 1, "where one of"),
        ("kernel_type rbf", "kernel_type laplacian", 2, "'laplacian'"),
        ("kernel_type rbf", "kernel_type precomputed", 9, "precomputed"),
        ("gamma 0.5", "gamma half", 3, "'half'"),
        ("gamma 0.5", "gamma nan", 3, "nan or infinite"),
        ("gamma 0.5", "gamma 0.5 0.5", 3, "one number"),
        ("gamma 0.5\n", "", 8, "no gamma, which the rbf kernel has"),
        ("gamma 0.5", "degree 2", 9, "no gamma"),
        ("kernel_type rbf", "kernel_type polynomial\ncoef0 0\ndegree 1000000000", 11, "degree is not from 0 to 1000"),
        ("kernel_type rbf", "kernel_type polynomial\ncoef0 0\ndegree -1", 11, "degree is not from 0 to 1000"),
        ("nr_class 3", f"nr_class 3{'0' * 400}", 4, "more than 64 bits"),
        ("nr_class 3", f"nr_class 3{'0' * 5000}", 4, "type int"),
        ("label 5 -1 2", "label 5 -1 18446744073709551616", 7, "more than 64 bits"),
        ("1 0.5 1:0.25 3:1", f"1 0.5 1:0.25 3{'0' * 30}:1", 10, "more than 64 bits"),
        ("nr_class 3\n", "", 8, "no nr_class"),
        ("nr_class 3", "nr_class 3.5", 4, "type int"),
        ("nr_class 3", "nr_class 1", 9, "two classes"),
        ("nr_class 3", "nr_class 4", 9, "rho has 3 numbers instead of 6"),
        ("nr_class 3", "nr_class 3\nnr_class 3", 5, "second time"),
        ("total_sv 4", "total_sv 3", 9, "add up"),
        ("total_sv 4", "total_sv -4", 9, "negative"),
        ("rho 0.1 0.2 0.3", "rho 0.1 0.2", 9, "rho has 2"),
        ("label 5 -1 2", "label 5 -1 5", 9, "not different"),
        ("label 5 -1 2\n", "", 8, "label does not have 3"),
        ("label 5 -1 2", "label yes no perhaps", 7, "type int"),
        ("nr_sv 2 1 1", "nr_sv 2 1 2", 9, "add up"),
        ("nr_sv 2 1 1", "nr_sv 3 2 -1", 9, "add up"),
        ("nr_sv 2 1 1", "nr_sv 2 1 1\nprobA 1 2 3", 10, "come together"),
        ("nr_sv 2 1 1", "colour green", 8, "'colour green' is no line of a LIBSVM model"),
        ("SV\n1 0.5 1:0.25", "1 0.5 1:0.25", 9, "'1 0.5 1:0.25 3:1' is no line"),
        ("1 0.5 1:0.25 3:1", "1 1:0.25 3:1", 10, "type float"),
        ("1 0.5 1:0.25 3:1", "1", 10, "2 coefficients"),
        ("1 0.5 1:0.25 3:1", "1 0.5 1:0.25 3", 10, "number:value"),
        ("1 0.5 1:0.25 3:1", "1 0.5 1:0.25 3:1:2", 10, "number:value"),
        ("1 0.5 1:0.25 3:1", "1 0.5 3:0.25 1:1", 10, "ascend from 1"),
        ("1 0.5 1:0.25 3:1", "1 0.5 0:0.25 1:1", 10, "ascend from 1"),
        ("1 0.5 1:0.25 3:1", "1 0.5 1:0.25 99999999999:1", 10, "ascend from 1"),
        ("1 0.5 1:0.25 3:1", "1 0.5 1:0.25 3:inf", 10, "nan or infinite"),
        ("1 0.5 1:0.25 3:1", "1 0.5 1:0.25 x:1", 10, "type int"),
        ("1 0.5 1:0.25 3:1", "1 nan 1:0.25 3:1", 10, "nan or infinite"),
        ("0.5 0.5\n", "", 12, "ends after 3 of 4"),
        ("0.5 0.5\n", "0.5 0.5\n0.5 0.5\n", 14, "more support vectors than total_sv = 4"),
        ("0.5 0.5\n", "0.5 0.5 é:1\n", 12, "type int"),
    ],
)
def test_malformed_files_are_refused_with_the_line(old, new, line, match, path):
    assert old in GOOD
    path.write_text(GOOD.replace(old, new), encoding="utf-8")
    with pytest.raises(ModelFileError, match=match) as caught:
        from_libsvm(path)
    assert f"machine.model', line {line}: " in str(caught.value)


@pytest.mark.parametrize("kernel", ["linear", "rbf\ngamma 0.1"])
def test_a_feature_with_an_enormous_number_costs_nothing(kernel, path):
    vectors = "1 1:0.5 7:1 2147483000:1\n-1 2:3 2147483001:2\n0.5 3:1\n"
    head = f"svm_type epsilon_svr\nkernel_type {kernel}\nnr_class 2\ntotal_sv 3\nrho -3\nSV\n"
    path.write_text(head + vectors)
    for X in (NEW[:, :3], sp.csr_matrix(NEW[:, :3])):
        expected = predicted_by_libsvm(path, NEW[:, :3])[0]
        assert from_libsvm(path).predict(X) == pytest.approx(expected, rel=1e-9)


def test_a_degree_that_no_file_takes_is_not_written(path):
    model = fit(KernelSVC(kernel="poly", gamma=0.01, coef0=0.5, degree=1001, **SETTINGS))
    for write in (to_libsvm, parablock.save):
        with pytest.raises(ModelFileError, match=r"takes degrees up to 1000; this kernel has .*1001"):
            write(model, path)
    assert not path.exists()


def test_truncated_files_are_refused(path):
    """As long as something is missing: half a number at the very end may still be a number."""
    for length in range(len("svm_type "), len(GOOD) - len("1 1 1:1 2:1 3:1\n")):
        path.write_text(GOOD[:length])
        with pytest.raises(ModelFileError, match="line"):
            load_any(path)


@pytest.mark.parametrize("kernel", ["rbf", "polynomial", "sigmoid"])
def test_a_negative_gamma_is_refused_as_libsvm_does(kernel, tmp_path):
    text = f"svm_type epsilon_svr\nkernel_type {kernel}\ndegree 2\ngamma -5\ncoef0 0\nnr_class 2\ntotal_sv 1\nrho 0\n"
    (tmp_path / "m").write_text(text + "SV\n1 1:1\n")
    with pytest.raises(ModelFileError, match=r"gamma is -5\.0, and must not be negative"):
        from_libsvm(tmp_path / "m")
