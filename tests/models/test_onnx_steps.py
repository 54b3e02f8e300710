"""Our machines as steps of what skl2onnx converts, run by onnxruntime."""

import subprocess
import sys

import numpy as np
import onnxruntime
import pytest
import skl2onnx
from sklearn.compose import ColumnTransformer
from sklearn.datasets import make_moons
from sklearn.decomposition import PCA
from sklearn.ensemble import VotingClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from parablock import (
    KernelLogisticRegression,
    KernelQuantileRegressor,
    KernelRidge,
    KernelSVC,
    KernelSVCCV,
    KernelSVR,
)
from parablock.models import ModelFileError
from tests.small_problems import N, features, targets

CLASSES = np.arange(N) % 3
CLOSE = {"rel": 1e-4, "abs": 1e-4}
KERNELS = ["rbf", "laplacian", "matern32", "linear", "poly", "sigmoid", "cosine"]


def run(made, X):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(made.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {session.get_inputs()[0].name: X}), strict=True))


def vote(estimators):
    return VotingClassifier(estimators, voting="soft", flatten_transform=False)  # others skl2onnx does not know


def expected(model, X):
    """What stands in the second output of a classifier."""
    if hasattr(model, "predict_proba"):
        return model.predict_proba(X)
    decision = model.decision_function(X)
    return np.c_[-decision, decision] if decision.ndim == 1 else decision


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("y", [targets("labels"), CLASSES], ids=["two", "three"])
def test_a_classifier_at_the_end_of_a_pipeline(y, kernel, dtype):
    X = features().astype(dtype)
    for machine in (KernelSVC(kernel=kernel), KernelLogisticRegression(kernel=kernel)):
        model = make_pipeline(StandardScaler(), PCA(3), machine).fit(X, y)
        made = run(skl2onnx.to_onnx(model, X[:1]), X)
        assert list(made) == ["label", "probabilities"]  # as skl2onnx calls those of an SVC
        assert made["probabilities"] == pytest.approx(expected(model, X), **CLOSE)
        ordered = np.sort(expected(model, X), axis=1)
        clear = ordered[:, -1] - ordered[:, -2] > 1e-3
        assert np.array_equal(made["label"][clear], model.predict(X)[clear])


@pytest.mark.parametrize("machine", [KernelSVR(), KernelRidge(), KernelQuantileRegressor()], ids=lambda m: str(m)[:9])
def test_a_regressor_at_the_end_of_a_pipeline(machine):
    X, y = features().astype(np.float32), targets("numbers")
    model = make_pipeline(MinMaxScaler(), machine).fit(X, y)
    made = run(skl2onnx.to_onnx(model, X[:1]), X)
    assert made["variable"][:, 0] == pytest.approx(model.predict(X), **CLOSE)


def test_several_targets():
    X = features().astype(np.float32)
    model = make_pipeline(MinMaxScaler(), KernelRidge()).fit(X, X[:, :2])
    assert run(skl2onnx.to_onnx(model, X[:1]), X)["variable"] == pytest.approx(model.predict(X), **CLOSE)


@pytest.mark.parametrize(
    "labels",
    [["no", "yes"], [False, True], [-1.0, 2.0], [3, 7]],
    ids=["text", "truth", "numbers", "whole numbers"],
)
def test_labels_of_any_type(labels):
    X, y = features().astype(np.float32), np.array(labels)[(targets("labels") > 0).astype(int)]
    model = make_pipeline(StandardScaler(), KernelSVC()).fit(X, y)
    found = run(skl2onnx.to_onnx(model, X[:1]), X)["label"]
    clear = np.abs(model.decision_function(X)) > 1e-3
    assert found[clear].tolist() == model.predict(X)[clear].tolist()


def test_alone_in_searches_and_in_ensembles():
    X, y = make_moons(200, noise=0.1, random_state=0)
    X = X.astype(np.float32)
    machine = KernelLogisticRegression(gamma=1.0)
    for model in (
        machine,
        GridSearchCV(make_pipeline(StandardScaler(), machine), {"kernellogisticregression__C": [0.1, 1.0]}, cv=2),
        KernelSVCCV(Cs=[1.0], gammas=[1.0], cv=2),
        make_pipeline(StandardScaler(), KernelSVCCV(Cs=[1.0], gammas=[1.0], cv=2)),
        VotingClassifier(
            [("one", machine), ("other", DecisionTreeClassifier(max_depth=2))], voting="soft", flatten_transform=False
        ),
    ):
        model.fit(X, y)
        options = {id(model): {"zipmap": False}} if isinstance(model, VotingClassifier) else None
        made = run(skl2onnx.to_onnx(model, X[:1], options=options), X)
        assert made["probabilities"] == pytest.approx(expected(model, X), **CLOSE)


def test_two_machines_in_one_graph_keep_their_numbers_apart():
    X, y = features().astype(np.float32), targets("labels")
    pair = [(name, KernelLogisticRegression(gamma=gamma)) for name, gamma in (("a", 0.1), ("b", 3.0))]
    model = vote(pair).fit(X, y)
    made = run(skl2onnx.to_onnx(model, X[:1], options={id(model): {"zipmap": False}}), X)
    assert made["probabilities"] == pytest.approx(model.predict_proba(X), **CLOSE)


def test_columns_of_several_kinds():
    X = np.column_stack((features()[:, :2], CLASSES)).astype(np.float32)
    columns = ColumnTransformer([("scaled", StandardScaler(), [0, 1]), ("coded", OneHotEncoder(), [2])])
    model = make_pipeline(columns, KernelSVC()).fit(X, targets("labels"))
    made = run(skl2onnx.to_onnx(model, X[:1]), X)
    assert made["probabilities"] == pytest.approx(expected(model, X), **CLOSE)


@pytest.mark.parametrize("again", [1, 2])
def test_the_option_that_everybody_passes_is_known_and_changes_nothing(again):
    X, y = features().astype(np.float32), targets("labels")
    model = make_pipeline(StandardScaler(), KernelSVC()).fit(X, y)
    plain, asked = (
        run(skl2onnx.to_onnx(model, X[:1], options=options), X) for options in (None, {KernelSVC: {"zipmap": False}})
    )
    assert np.array_equal(plain["probabilities"], asked["probabilities"])
    with pytest.raises(ValueError, match="zipmap"):
        skl2onnx.to_onnx(model, X[:1], options={KernelSVC: {"zipmap": True}})


def test_a_class_of_ones_own_is_converted_too():
    class Mine(KernelSVC):
        pass

    X, y = features().astype(np.float32), targets("labels")
    model = Mine().fit(X, y)
    made = run(skl2onnx.to_onnx(model, X[:1], options={"zipmap": False}), X)
    assert made["probabilities"] == pytest.approx(expected(model, X), **CLOSE)


def test_what_cannot_be_said_is_refused():
    X, y = features().astype(np.float32), targets("labels")
    model = KernelSVC().fit(X, y)
    with pytest.raises(ModelFileError, match="need opset 17; target_opset is 15"):
        skl2onnx.to_onnx(model, X[:1], target_opset=15)
    with pytest.raises(ModelFileError, match="Python function"):
        skl2onnx.to_onnx(KernelSVC(kernel=lambda A, B: A @ B.T).fit(X, y), X[:1])
    large = KernelSVC().fit(X, np.array([1, 2**63 + 1], dtype=np.uint64)[(y > 0).astype(int)])
    with pytest.raises(ModelFileError, match="labels above"):
        skl2onnx.to_onnx(large, X[:1])


def test_nothing_of_skl2onnx_is_imported_before_it_asks():
    code = (
        "import sys, parablock; m = parablock.KernelSVC().fit([[0.0], [1.0]], [0, 1]); import parablock.models; "
        "sys.exit('skl2onnx' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
