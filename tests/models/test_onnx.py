"""ONNX models, run by onnxruntime and by ONNX's own reference in NumPy."""

import sys

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from onnx.reference import ReferenceEvaluator

from parablock import KernelLogisticRegression, KernelQuantileRegressor, KernelRidge, KernelSVC, KernelSVR
from parablock.kernels import Linear
from parablock.models import ModelFileError, onnx_export, to_onnx
from tests.models.zoo import CLASSES, LOCAL, NEW, SETTINGS, TWO_TARGETS, decision, fit, given_kernel
from tests.small_problems import features, in_format, targets

KERNELS = {
    "linear": {},
    "poly": {"gamma": 0.5, "degree": 3, "coef0": 1.0},
    "rbf": {"gamma": 0.7},
    "sigmoid": {"gamma": 0.01, "coef0": 0.1},
    "laplacian": {"gamma": 0.7},
    "chi2": {"gamma": 0.7},
    "matern32": {"gamma": 0.7},
    "matern52": {"gamma": 0.7},
    "cosine": {},
}
every_kernel = pytest.mark.parametrize("kernel", KERNELS)
CLOSE = {"rel": 1e-4, "abs": 1e-4}


def run(model, X=NEW):
    """The outputs by name, as onnxruntime computes them."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    outputs = session.run(None, {"X": np.asarray(X, dtype=np.float32)})
    return dict(zip([output.name for output in session.get_outputs()], outputs, strict=True))


# ---------------------------------------------------------------------------------------------------------- predictions


@every_kernel
@pytest.mark.parametrize("data_format", ["dense", "csr"])
def test_scores_and_labels_of_two_classes(kernel, data_format):
    X, new = np.abs(features()), np.abs(NEW)
    model = fit(KernelSVC(kernel=kernel, **KERNELS[kernel], **SETTINGS), in_format(X, data_format))
    made = run(to_onnx(model), new)
    assert list(made) == ["label", "scores"]
    assert made["scores"].dtype == np.float32
    assert made["scores"][:, 1] == pytest.approx(decision(model, new), **CLOSE)
    assert np.array_equal(made["scores"][:, 0], -made["scores"][:, 1])
    clear = np.abs(decision(model, new)) > 1e-3
    assert np.array_equal(made["label"][clear], model.predict(new)[clear])


@every_kernel
def test_scores_and_labels_of_three_classes(kernel):
    X, new = np.abs(features()), np.abs(NEW)
    model = fit(KernelSVC(kernel=kernel, **KERNELS[kernel], **SETTINGS), X, CLASSES)
    made = run(to_onnx(model), new)
    assert made["scores"] == pytest.approx(decision(model, new), **CLOSE)
    best = np.sort(decision(model, new), axis=1)
    clear = best[:, -1] - best[:, -2] > 1e-3
    assert np.array_equal(made["label"][clear], model.predict(new)[clear])


@pytest.mark.parametrize("y", [targets("labels"), CLASSES], ids=["two classes", "three classes"])
def test_probabilities_of_logistic_regression(y):
    model = fit(KernelLogisticRegression(C=10, **SETTINGS), y=y)
    made = run(to_onnx(model))
    assert list(made) == ["label", "probabilities"]
    assert made["probabilities"] == pytest.approx(model.predict_proba(NEW), abs=1e-5)
    assert np.array_equal(made["label"], model.predict(NEW))


def test_probabilities_are_right_also_where_no_class_is_likely():
    """Three classes, and none of them: sigmoid(-200) is nothing in float32."""
    model = fit(KernelLogisticRegression(C=10, kernel="linear", **SETTINGS), y=CLASSES)
    model.intercept_[:] = [-200.0, -201.0, -205.0]
    made = run(to_onnx(model), np.zeros((1, 4)))
    expected = np.exp([0.0, -1.0, -5.0])
    assert made["probabilities"][0] == pytest.approx(expected / expected.sum(), rel=1e-4)


@every_kernel
@pytest.mark.parametrize(
    "estimator", [KernelSVR(C=3.0), KernelQuantileRegressor(quantile=0.8)], ids=lambda e: type(e).__name__
)
def test_regression(estimator, kernel):
    X, new = np.abs(features()), np.abs(NEW)
    model = fit(type(estimator)(**{**estimator.get_params(), "kernel": kernel, **KERNELS[kernel], **SETTINGS}), X)
    made = run(to_onnx(model), new)
    assert list(made) == ["variable"]
    assert made["variable"].shape == (len(new), 1)
    size = np.abs(model.dual_coef_).sum() * (100 if kernel == "poly" else 1)  # of what is added up in float32
    assert made["variable"][:, 0] == pytest.approx(model.predict(new), abs=1e-6 * (10 + size))


def test_regression_of_several_targets():
    model = fit(KernelRidge(**SETTINGS), y=TWO_TARGETS)
    assert run(to_onnx(model))["variable"] == pytest.approx(model.predict(NEW), **CLOSE)


def test_a_precomputed_kernel_takes_the_columns_of_its_support_vectors():
    model, new = given_kernel()
    assert run(to_onnx(model), new)["scores"][:, 1] == pytest.approx(decision(model, new), **CLOSE)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "laplacian"])
def test_a_model_without_support_vectors(kernel):
    model = fit(KernelSVR(epsilon=100.0, kernel=kernel, **SETTINGS))
    assert run(to_onnx(model))["variable"][:, 0] == pytest.approx(model.predict(NEW))


@pytest.mark.parametrize(
    "labels",
    [
        np.array([False, True]),
        np.array([-1.0, 1.0]),
        np.array([5, 7], dtype=np.uint8),
        np.array([-(2**40), 2**40]),
        np.array([3, 2**63 + 3], dtype=np.uint64),
        np.array([1, 2**63, 2**64 - 1], dtype=np.uint64),
        np.array(["no", "yes"]),
        np.array(["Käse", "日本"], dtype=object),
        np.array(["a", "b", "ccc"]),
        np.array([3, 5, 9]),
    ],
    ids=lambda labels: f"{labels.dtype} {len(labels)}",
)
def test_labels_of_any_type(labels):
    y = labels[CLASSES if len(labels) == 3 else (targets("labels") > 0).astype(int)]
    model = fit(KernelSVC(**SETTINGS), y=y)
    found = run(to_onnx(model))["label"]
    assert found.tolist() == model.predict(NEW).tolist()
    assert len(set(found.tolist())) == len(labels)


@pytest.mark.parametrize("rows", [1, 2, 1000])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "linear"])
def test_any_number_of_rows(rows, kernel):
    model = fit(KernelSVC(kernel=kernel, **SETTINGS), y=CLASSES)
    new = np.random.default_rng(0).normal(size=(rows, 4))
    made = run(to_onnx(model), new)
    assert made["scores"] == pytest.approx(decision(model, new), **CLOSE)
    assert made["label"].shape == (rows,)


def test_zeros_are_fine_for_kernels_that_divide():
    for kernel in ("cosine", "chi2"):
        X = np.abs(features()).copy()
        X[:3] = 0.0
        model = fit(KernelRidge(kernel=kernel, **KERNELS[kernel], **SETTINGS), X)
        assert run(to_onnx(model), np.zeros((2, 4)))["variable"][:, 0] == pytest.approx(
            model.predict(np.zeros((2, 4))), **CLOSE
        )


@examples(max_examples=25)
@given(
    kernel=st.sampled_from(["rbf", "laplacian", "matern32", "matern52", "cosine", "chi2", "poly"]),
    outputs=st.integers(1, 4),
    rows=st.integers(4, 30),
    width=st.integers(1, 6),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_model_agrees_with_the_reference_of_onnx_too(kernel, outputs, rows, width, seed):
    rng = np.random.default_rng(seed)
    X = rng.random((rows, width)).astype(np.float32)
    model = fit(
        KernelRidge(kernel=kernel, gamma=1.0, degree=2, max_iter=5, **SETTINGS), X, rng.normal(size=(rows, outputs))
    )
    new = rng.random((7, width)).astype(np.float32)
    made, expected = to_onnx(model), model.predict(new)
    scale = {"abs": 1e-4 * (1.0 + np.abs(model.dual_coef_).sum())}
    assert run(made, new)["variable"] == pytest.approx(expected, **scale)
    assert ReferenceEvaluator(made).run(None, {"X": new})[0] == pytest.approx(expected, **scale)


# ------------------------------------------------------------------------------------------------------------ precision


@pytest.mark.parametrize("data_format", ["dense", "csr"])
def test_offsets_and_a_large_gamma_cost_no_more_digits_than_float32_must(data_format):
    """Features around 100 that differ in the third digit: without a centre nothing would be left."""
    X, new = (np.float32(100 + 0.05 * rows) for rows in (features(), NEW))
    model = fit(KernelSVC(gamma=200.0, C=10.0, **SETTINGS), in_format(X.astype(np.float64), data_format))
    expected = decision(model, new.astype(np.float64))
    assert np.ptp(expected) > 1
    assert run(to_onnx(model), new)["scores"][:, 1] == pytest.approx(expected, abs=1e-3)


# ---------------------------------------------------------------------------------------------------------------- files


def test_the_file_is_the_model_and_is_valid(tmp_path):
    path = tmp_path / "model.onnx"
    made = to_onnx(fit(KernelSVC(kernel="laplacian", **SETTINGS), y=CLASSES), path)
    assert onnx.load(path) == made
    onnx.checker.check_model(str(path), full_check=True)
    assert {entry.domain for entry in made.opset_import} == {""}
    assert made.producer_name == "parablock"
    shapes = [[d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim] for value in made.graph.output]
    assert shapes == [["n"], ["n", 3]]
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_graph_is_valid(kernel):
    X = np.abs(features())
    for estimator in (KernelSVC, KernelLogisticRegression):
        for y in (targets("labels"), CLASSES):
            made = to_onnx(fit(estimator(kernel=kernel, **KERNELS[kernel], **SETTINGS), X, y))
            onnx.checker.check_model(made, full_check=True)


def own_kernel(X, Z):
    return X @ Z.T


class OwnKernel(Linear):
    """What it computes nobody knows."""


@pytest.mark.parametrize(
    ("model", "match"),
    [
        (KernelSVC(kernel=own_kernel), "a kernel that is a Python function"),
        (KernelSVC(kernel=OwnKernel()), "OwnKernel is another one"),
        (KernelSVC(**LOCAL), r"set_params\(prediction='global'\)"),
    ],
)
def test_what_onnx_cannot_hold_is_refused(model, match):
    with pytest.raises(ModelFileError, match=match):
        to_onnx(fit(model.set_params(**SETTINGS)))


def test_numbers_beyond_float32_are_refused():
    model = fit(KernelRidge(**SETTINGS))
    model.dual_coef_[0, 0] = 1e300
    with pytest.raises(ModelFileError, match="too large for float32"), np.errstate(over="ignore"):
        to_onnx(model)


def test_labels_of_mixed_types_are_refused():
    model = fit(KernelSVC(**SETTINGS))
    model.classes_ = np.array([1, "one"], dtype=object)
    with pytest.raises(ModelFileError, match="all numbers or all text"):
        to_onnx(model)


def test_a_model_that_no_onnx_file_holds_is_refused(monkeypatch):
    model = fit(KernelRidge(**SETTINGS))
    to_onnx(model)
    monkeypatch.setattr(onnx_export, "_MOST_BYTES", 1000)
    with pytest.raises(ModelFileError, match=r"files end at 2 GB.*parablock\.save"):
        to_onnx(model)
    to_onnx(fit(KernelRidge(kernel="linear", **SETTINGS)))  # one vector of weights


def test_without_onnx_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"pip install 'parablock\[onnx\]'"):
        to_onnx(fit(KernelSVC(**SETTINGS)))
