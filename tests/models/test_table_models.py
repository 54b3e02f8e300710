"""Machines for tables in model files: what comes back predicts the same, and forged files are refused."""

import contextlib
import copy
import json
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, make_friedman1
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import parablock
from parablock import AutoKernelClassifier, AutoKernelRegressor
from parablock.models import ModelFileError, container, describe, load_any
from tests.models.test_hostile_files import content_of

X, Y = make_friedman1(70, n_features=6, noise=1, random_state=0)
NEW = make_friedman1(20, n_features=6, random_state=1)[0]


def mixed():
    """Categories, many levels, missing values, two values, a one-hot run and a tiny column."""
    rng = np.random.default_rng(0)
    table = X.astype(object)
    table[:, 1] = rng.choice(["red", "green", "blue"], 70)
    table[::5, 1] = None
    table[::7, 2] = np.nan
    table[:, 3] = rng.integers(0, 2, 70)
    levels = np.array([f"level {i}" for i in range(25)], dtype=object)[rng.integers(0, 25, 70)]
    run = np.eye(3)[rng.integers(0, 3, 70)]
    return np.column_stack([table, levels, run, rng.random(70) * 1e-310]).astype(object)


def models():
    yield "regressor", AutoKernelRegressor(random_state=0).fit(X, Y), NEW
    yield "two targets", AutoKernelRegressor(random_state=0).fit(X, np.column_stack([Y, X[:, 0]])), NEW
    yield "one column", AutoKernelRegressor(random_state=0).fit(X, Y[:, None]), NEW
    yield "mixed", AutoKernelRegressor(random_state=0).fit(mixed(), Y), mixed()[::-1]
    yield "groups", AutoKernelRegressor(random_state=0).fit(X, Y, groups=np.arange(70) // 4), NEW
    yield "two classes", AutoKernelClassifier(class_weight={0: 2, 1: 1}, random_state=0).fit(X, Y > 14), NEW
    iris, kind = load_iris(return_X_y=True)
    yield "three names", AutoKernelClassifier(random_state=0).fit(iris, np.array(["a", "b", "c"])[kind]), iris
    yield "few rows", AutoKernelRegressor(random_state=0).fit(X[:10], Y[:10]), NEW
    yield "constant", AutoKernelRegressor(random_state=0).fit(np.zeros((9, 2)), Y[:9]), np.ones((3, 2))


@pytest.fixture(scope="module")
def kept():
    return {name: (model, new) for name, model, new in models()}


NAMES = [
    "regressor",
    "two targets",
    "one column",
    "mixed",
    "groups",
    "two classes",
    "three names",
    "few rows",
    "constant",
]


@pytest.mark.parametrize("name", NAMES)
def test_what_comes_back_predicts_the_same_bits(kept, name, tmp_path):
    model, new = kept[name]
    model.save(tmp_path / "a.pbk")
    same = parablock.load(tmp_path / "a.pbk")
    assert type(same) is type(model)
    assert same.get_params() == model.get_params()
    methods = ("predict", "predict_proba", "decision_function")
    for method in [method for method in methods if hasattr(model, method)]:
        assert np.array_equal(getattr(same, method)(new), getattr(model, method)(new))
    if hasattr(model, "predict_interval"):
        assert np.array_equal(same.predict_interval(new), model.predict_interval(new))
    assert np.array_equal(same.feature_importances_, model.feature_importances_)
    assert same.stop_reason_ == model.stop_reason_
    assert np.array_equal(same.score_estimate_, model.score_estimate_, equal_nan=True)
    parablock.save(same, tmp_path / "b.pbk")
    assert (tmp_path / "b.pbk").read_bytes() == (tmp_path / "a.pbk").read_bytes()


def test_names_of_features_come_back(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abcdef"))
    AutoKernelRegressor(random_state=0).fit(frame[:30], Y[:30]).save(tmp_path / "a.pbk")
    same = load_any(tmp_path / "a.pbk")
    assert same.feature_names_in_.tolist() == list("abcdef")
    with pytest.raises(ValueError, match="feature names"):
        same.predict(frame[list("fedcba")])


def test_a_loaded_model_can_be_fitted_again(kept, tmp_path):
    model, new = kept["regressor"]
    model.save(tmp_path / "a.pbk")
    same = parablock.load(tmp_path / "a.pbk")
    assert np.array_equal(same.fit(X, Y).predict(new), model.predict(new))
    assert clone(same).get_params() == model.get_params()


def test_a_file_is_described(kept, tmp_path):
    kept["three names"][0].save(tmp_path / "a.pbk")
    told = describe(tmp_path / "a.pbk")
    assert told["estimator"] == "AutoKernelClassifier"
    assert told["classes"] == ["a", "b", "c"]
    assert told["machines"] == ["LaplaceKernel", "FullKernel"]
    assert told["score_estimate"] == kept["three names"][0].score_estimate_
    done = subprocess.run(
        [sys.executable, "-m", "parablock", "info", str(tmp_path / "a.pbk"), "--json"], capture_output=True, text=True
    )
    assert json.loads(done.stdout) == told


def test_the_command_predicts_with_it(kept, tmp_path):
    model, new = kept["regressor"]
    model.save(tmp_path / "a.pbk")
    np.savetxt(tmp_path / "new.csv", new, delimiter=",", fmt="%.17g")
    done = subprocess.run(
        [sys.executable, "-m", "parablock", "predict", str(tmp_path / "a.pbk"), str(tmp_path / "new.csv")],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert np.allclose(np.array(done.stdout.split(), dtype=float), model.predict(new), rtol=1e-12)


def test_other_formats_and_pipelines_of_scalers_refuse_it(kept, tmp_path):
    model = kept["regressor"][0]
    for write in (parablock.models.to_libsvm, parablock.models.to_onnx):
        with pytest.raises(ModelFileError, match="AutoKernelRegressor"):
            write(model, tmp_path / "a")
    with pytest.raises(ModelFileError, match="AutoKernelRegressor"):
        parablock.models.to_sklearn(model)
    pipeline = make_pipeline(StandardScaler(), AutoKernelRegressor(random_state=0)).fit(X[:30], Y[:30])
    with pytest.raises(ModelFileError, match="AutoKernelRegressor"):
        parablock.save(pipeline, tmp_path / "a.pbk")


# ----------------------------------------------------------------------------------------------------- forgeries


def forged(path, record, tensors):
    """Written with a checksum that fits; refused in one line, or a model that predicts numbers or complains of X."""
    record = {name: value for name, value in record.items() if name != "format_version"}
    container.write(path, record, tensors)
    try:
        model = parablock.load(path)
    except ModelFileError as caught:
        error = str(caught)
    else:
        with np.errstate(all="ignore"), contextlib.suppress(ValueError):
            model.predict(mixed())
            if hasattr(model, "predict_interval"):
                model.predict_interval(mixed()[:3])
        return False
    assert path.name in error
    assert len(error.splitlines()) == 1
    return True


def changes_of(value):
    """Other values of a kind that a forger may try."""
    yield from (None, -1, 3, 10**30, float("nan"), "x", [], [None], {}, True)
    if isinstance(value, list) and value:
        yield value[:-1]
        yield [*value, value[0]]


@pytest.mark.parametrize("name", ["mixed", "groups", "three names"])
def test_forged_records_do_no_harm(kept, name, tmp_path):
    kept[name][0].save(tmp_path / "good.pbk")
    record, tensors = content_of(tmp_path / "good.pbk")
    refused = 0
    for entry, value in record["fitted"].items():
        for change in changes_of(value):
            other = copy.deepcopy(record)
            other["fitted"][entry] = change
            refused += forged(tmp_path / "forged.pbk", other, tensors)
    for entry in record["fitted"]:
        other = copy.deepcopy(record)
        del other["fitted"][entry]
        assert forged(tmp_path / "forged.pbk", other, tensors)
    other = copy.deepcopy(record)
    other["fitted"]["more"] = 1
    assert forged(tmp_path / "forged.pbk", other, tensors)
    assert refused > 6 * len(record["fitted"])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numbers that make no sense overflow
@pytest.mark.parametrize("name", ["mixed", "groups", "three names"])
def test_forged_tensors_do_no_harm(kept, name, tmp_path):
    kept[name][0].save(tmp_path / "good.pbk")
    record, tensors = content_of(tmp_path / "good.pbk")
    for entry, value in tensors.items():
        others = dict(tensors)
        del others[entry]
        assert forged(tmp_path / "forged.pbk", record, others)
        for change in (value.astype(np.float32), value[:-1], np.concatenate([value, value])):
            if change.dtype != value.dtype or len(change) != len(value):
                forged(tmp_path / "forged.pbk", record, {**tensors, entry: change})
        if value.dtype.kind == "f" and value.size and entry != "rows":
            assert forged(tmp_path / "forged.pbk", record, {**tensors, entry: np.full_like(value, np.nan)})
        for number in (-1, 2**40):
            forged(tmp_path / "forged.pbk", record, {**tensors, entry: np.full_like(value, number)})
    assert forged(tmp_path / "forged.pbk", record, {**tensors, "more": np.zeros(3)})
