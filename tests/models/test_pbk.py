"""parablock's own model files: what was saved comes back, to the last bit."""

import copy
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from safetensors import safe_open
from sklearn.base import clone

import parablock
from parablock import (
    BlockSolver,
    KernelClassifier,
    KernelLogisticRegression,
    KernelQuantileRegressor,
    KernelRidge,
    KernelSVC,
    KernelSVR,
)
from parablock.datasets import open_csr, save_csr
from parablock.engines import MPIEngine
from parablock.kernels import RBF, Linear
from parablock.models import ModelFileError, container, describe, to_libsvm, to_onnx
from parablock.partition.base import Centres
from parablock.partition.simple import RandomPartitioner
from tests.engines.ranks import needs_mpi, run
from tests.models.zoo import (
    CLASSES,
    LOCAL,
    MODELS,
    NEW,
    SETTINGS,
    decision,
    fit,
    given_kernel,
    in_format,
    make,
    same,
)
from tests.small_problems import features, rbf, targets

every_model = pytest.mark.parametrize("name", MODELS)
HERE = __file__.rsplit("/", 1)[0]
KERNELS = ["rbf", "laplacian", "chi2", "matern32", "matern52", "linear", "poly", "sigmoid", "cosine"]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.pbk"


def again(model, path):
    """The model after a round trip."""
    parablock.save(model, path)
    return parablock.load(path)


# ---------------------------------------------------------------------------------------------------------- round trips


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("data_format", ["dense", "csr"])
@every_model
def test_predictions_are_the_same_to_the_last_bit(name, data_format, dtype, path):
    model = make(name, data_format, dtype)
    loaded = again(model, path)
    assert type(loaded) is type(model)
    assert np.array_equal(decision(loaded), decision(model))
    assert np.array_equal(loaded.predict(sp.csr_matrix(NEW)), model.predict(sp.csr_matrix(NEW)))
    if hasattr(model, "predict_proba"):
        assert np.array_equal(loaded.predict_proba(NEW), model.predict_proba(NEW))


@every_model
def test_every_attribute_comes_back(name, path):
    model = make(name)
    loaded = again(model, path)
    before, after = vars(model), vars(loaded)
    assert before.keys() == after.keys()
    if name == "local, kernel_kmeans":  # its centres are kept for any device, and predict the same (see above)
        before, after = (
            {key: value for key, value in each.items() if key not in ("partition_", "_models")}
            for each in (before, after)
        )
    different = [key for key in before if not same(before[key], after[key])]
    assert different == []
    assert loaded.partition_.report() == model.partition_.report()


@every_model
def test_a_loaded_model_can_be_saved_again(name, path):
    once = again(make(name), path)
    content = path.read_bytes()
    twice = again(once, path)
    assert path.read_bytes() == content
    assert np.array_equal(decision(twice), decision(once))


def test_both_predictions_of_a_local_fit_come_back(path):
    model = make("local, kmeans")
    loaded = again(model, path)
    for prediction in ("global", "local"):
        model.set_params(prediction=prediction)
        assert np.array_equal(decision(loaded.set_params(prediction=prediction)), decision(model))
    assert not np.array_equal(decision(loaded), decision(loaded.set_params(prediction="global")))


@pytest.mark.parametrize(
    "local", [{}, LOCAL, {**LOCAL, "partition": "kernel_kmeans"}], ids=["global", "tree", "kernel"]
)
def test_a_precomputed_kernel_comes_back(local, path):
    model, new = given_kernel(**local)
    loaded = again(model, path)
    assert np.array_equal(decision(loaded, new), decision(model, new))
    assert loaded.support_vectors_.shape == (0, 0)


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_kernel_comes_back(kernel, path):
    X, new = np.abs(features()), np.abs(NEW)
    model = fit(KernelSVR(kernel=kernel, gamma=0.3, coef0=0.5, degree=2, **SETTINGS), X)
    assert np.array_equal(again(model, path).predict(new), model.predict(new))


def test_csr_arrays_and_wide_indices_come_back(path):
    X = sp.csr_array(features())
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    model = fit(KernelSVC(**SETTINGS), X)
    loaded = again(model, path)
    assert same(loaded.support_vectors_, model.support_vectors_)
    assert np.array_equal(decision(loaded), decision(model))


@pytest.mark.parametrize(
    "labels",
    [
        np.array([False, True]),
        np.array([-7, 250]),
        np.array([0, 255], dtype=np.uint8),
        np.array([0, 2**64 - 1], dtype=np.uint64),
        np.array([-1.0, 1.0]),
        np.array([1.0, 2.0], dtype=np.float32),
        np.array(["no", "yes"]),
        np.array(["Käse", "日本\n\0x"]),
        np.array(["no", "yes"], dtype=object),
        np.array(["a", "b", "ccc"]),
        np.array([3, 5, 9]),
    ],
    ids=lambda labels: f"{labels.dtype} {len(labels)}",
)
def test_labels_of_any_type_come_back(labels, path):
    y = labels[CLASSES if len(labels) == 3 else (targets("labels") > 0).astype(int)]
    model = fit(KernelSVC(**SETTINGS), y=y)
    loaded = again(model, path)
    assert same(loaded.classes_, model.classes_)
    assert [type(label) for label in loaded.classes_] == [type(label) for label in model.classes_]
    assert same(loaded.predict(NEW), model.predict(NEW))
    assert describe(path)["classes"] == model.classes_.tolist()


def test_names_of_features_come_back(path):
    pandas = pytest.importorskip("pandas")
    names = ["depth", "größe", "a b", ""]
    model = fit(KernelSVC(**SETTINGS), pandas.DataFrame(features(), columns=names))
    loaded = again(model, path)
    assert same(loaded.feature_names_in_, model.feature_names_in_)
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(pandas.DataFrame(NEW, columns=names[::-1]))


@examples(max_examples=30)
@given(
    kind=st.sampled_from([KernelSVC, KernelLogisticRegression, KernelSVR, KernelRidge, KernelQuantileRegressor]),
    kernel=st.sampled_from([kernel for kernel in KERNELS if kernel != "sigmoid"]),  # not every loss has a minimum there
    rows=st.integers(4, 40),
    width=st.integers(1, 5),
    outputs=st.integers(1, 4),
    sparse=st.booleans(),
    dtype=st.sampled_from([np.float32, np.float64]),
    local=st.booleans(),
    offset=st.sampled_from([0.0, 1e-8, 10.0]),
    C=st.floats(1e-3, 1e3),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_model_comes_back(
    tmp_path_factory, kind, kernel, rows, width, outputs, sparse, dtype, local, offset, C, seed
):
    rng = np.random.default_rng(seed)
    X = (np.abs(rng.normal(size=(rows, width))) + offset).astype(dtype)
    y = rng.integers(outputs + 1, size=rows) if issubclass(kind, KernelClassifier) else rng.normal(size=(rows, outputs))
    y[:2] = [0, 1] if y.ndim == 1 else y[:2]
    options = {**LOCAL, "n_blocks": 2} if local else {"max_iter": 5}
    X = sp.csr_matrix(X) if sparse else X
    model = fit(kind(C=C, kernel=kernel, gamma=1.0, degree=2, **options, **SETTINGS), X, y)
    loaded = again(model, tmp_path_factory.mktemp("any") / "model.pbk")
    assert np.array_equal(decision(loaded, X), decision(model, X))
    assert same(loaded.history_, model.history_)
    assert loaded.get_params() == model.get_params()


# ----------------------------------------------------------------------------------------------------------- parameters


def test_parameters_come_back_and_clone_works(path):
    blocks = np.arange(72) % 5
    model = KernelSVC(
        C=np.float64(3.5),
        kernel=RBF(0.25),
        class_weight={-1: 1, np.int64(1): 2.5},
        partition=blocks,
        block_solver=BlockSolver("random", fraction=0.1, max_updates=500),
        memory_limit="1MB",
        tol=1e-2,
        verbose=False,
        warm_start=True,
        **SETTINGS,
    )
    loaded = again(fit(model), path)
    before, after = model.get_params(), loaded.get_params()
    assert after.pop("kernel").gamma == before.pop("kernel").gamma == 0.25
    assert same(after, before)
    assert np.array_equal(decision(fit(clone(loaded))), decision(fit(clone(model))))


def test_a_loaded_model_goes_on_from_where_it_was(path):
    model = fit(KernelSVC(C=10, tol=1e-6, warm_start=True, **SETTINGS))
    loaded = again(model, path)
    assert fit(loaded).n_iter_ == 0  # it was there already
    assert decision(loaded) == pytest.approx(decision(model), abs=1e-9)
    more = fit(loaded.set_params(C=20))
    assert more.n_iter_ > 0
    assert more.dual_objective_ == pytest.approx(fit(clone(model).set_params(C=20)).dual_objective_, rel=1e-6)


ON_A_GPU = """
import sys
import numpy as np
import parablock
from tests.models.zoo import LOCAL, NEW, SETTINGS, decision, fit, in_format
from tests.small_problems import features
local = {**LOCAL, "partition": "kernel_kmeans", "n_blocks": 2, "max_iter": 1}
for data_format, options in {"dense": local, "csr": local, "global": {"max_iter": 1}}.items():
    X = in_format(features()[:24], data_format)
    model = fit(parablock.KernelSVC(device="cuda", **options, **SETTINGS), X, np.arange(24) % 2)
    path = f"{sys.argv[1]}/{data_format}"
    np.save(path + ".npy", decision(model, in_format(NEW, data_format)))
    model.save(path + ".pbk")
"""


@pytest.mark.slow
def test_models_of_a_gpu_load_and_predict_on_the_cpu(tmp_path):
    """Without a card Triton's interpreter trains them: the same program, slowly."""
    pytest.importorskip("triton")
    interpret = {} if torch.cuda.is_available() else {"TRITON_INTERPRET": "1"}
    done = subprocess.run(
        [sys.executable, "-c", ON_A_GPU, tmp_path], capture_output=True, text=True, env={**os.environ, **interpret}
    )
    assert done.returncode == 0, done.stderr
    files = sorted(tmp_path.glob("*.pbk"))
    assert len(files) == 3
    for path in files:
        assert describe(path)["parameters"]["device"] == "cuda"
        model = parablock.load(path)
        assert model.device == "auto"
        found = decision(model.set_params(device="cpu"), in_format(NEW, path.stem))
        assert found == pytest.approx(np.load(path.with_suffix(".npy")), abs=1e-3)


@pytest.mark.skipif(torch.cuda.is_available(), reason="is about machines without a GPU")
def test_a_device_that_is_not_there_is_no_obstacle(path):
    model = make("svc")
    parablock.save(copy.deepcopy(model).set_params(device="cuda"), path)
    loaded = parablock.load(path)
    assert loaded.device == "auto"
    assert np.array_equal(decision(loaded), decision(model))


@pytest.mark.slow
@needs_mpi
def test_models_of_several_processes_load_in_one(tmp_path):
    done = run(2, f"{HERE}/save_on_ranks.py", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    files = sorted(tmp_path.glob("*.pbk"))
    assert len(files) == 4
    for path in files:
        model = parablock.load(path)
        assert model.engine == "local"
        assert describe(path)["predictions"] == ["global", "local"]
        found = decision(model, in_format(NEW, path.name.split(".")[1]))
        assert np.array_equal(found, np.load(path.with_suffix(".npy")))


def test_what_belongs_to_the_run_is_not_kept(path, tmp_path):
    checkpoint = tmp_path / "run.checkpoint"
    model = fit(KernelSVC(checkpoint=checkpoint, resume="auto", **SETTINGS)).set_params(engine=MPIEngine())
    loaded = again(model, path)
    assert (loaded.checkpoint, loaded.resume, loaded.engine) == (None, False, "local")
    assert "run.checkpoint" not in path.read_bytes().decode(errors="replace")


@pytest.mark.parametrize(
    ("name", "value", "default"),
    [
        ("random_state", np.random.RandomState(0), None),
        ("partition", RandomPartitioner(), "tree"),
        ("partition", np.array(["a", "b"] * 36), "tree"),
    ],
)
def test_a_parameter_that_a_file_cannot_hold_is_warned_of(name, value, default, path):
    model = fit(KernelSVC(n_jobs=1).set_params(**{name: value}))
    with pytest.warns(UserWarning, match=f"{name}=.* is not kept .* {name}={default!r}"):
        parablock.save(model, path)
    assert getattr(parablock.load(path), name) == default
    assert np.array_equal(decision(parablock.load(path)), decision(model))


# ---------------------------------------------------------------------------------------------------- what is not saved


def euclidean(X, Z):
    return rbf(X, Z)


class OwnKernel(Linear):
    """Not one of the library's, though it looks like one."""


class OwnEstimator(KernelRidge):
    """Not one of the library's."""


class OwnCentres(Centres):
    def distances(self, device, kernel, samples):
        return np.zeros((len(samples), 2))


class OwnPartitioner(RandomPartitioner):
    def blocks(self, device, kernel, samples, n_blocks, rng):
        return super().blocks(device, kernel, samples, n_blocks, rng)[0], OwnCentres()


@pytest.mark.parametrize(
    ("model", "match"),
    [
        (KernelSVC(kernel=euclidean), "'euclidean' is a program of yours.*precomputed"),
        (KernelSVC(kernel=OwnKernel()), "'OwnKernel' is a program of yours"),
        (OwnEstimator(), "OwnEstimator cannot be saved.*to_libsvm and to_onnx"),
        (KernelSVC(partition=OwnPartitioner(), n_blocks=2), "centres of the class OwnCentres"),
    ],
)
@pytest.mark.filterwarnings("ignore:partition")
def test_programs_are_not_saved_and_the_error_says_what_to_do(model, match, path):
    fit(model.set_params(**SETTINGS))
    path.write_bytes(b"before")
    with pytest.raises(ModelFileError, match=match):
        model.save(path)
    assert path.read_bytes() == b"before"


def test_only_estimators_that_are_fitted_are_saved(path):
    with pytest.raises(ValueError, match="not fitted"):
        KernelSVC().save(path)
    with pytest.raises(ModelFileError, match="dict cannot be saved"):
        parablock.save({}, path)
    assert not path.exists()


def test_labels_that_json_does_not_have_are_refused(path):
    model = make("svc")
    model.classes_ = np.array([(1, 2), (3, 4)], dtype="i,i").astype(object)
    with pytest.raises(ModelFileError, match="truth values, numbers or text"):
        model.save(path)


def test_a_model_that_is_not_finite_is_refused(path):
    model = make("svc")
    model._models["global"].intercept[0] = np.nan
    with pytest.raises(ModelFileError, match="nan or infinite"):
        model.save(path)


# ------------------------------------------------------------------------------------------------------------- the file


def test_a_file_is_replaced_at_once_or_left_as_it_was(path, monkeypatch):
    model = make("svc")
    model.save(path)
    content = path.read_bytes()

    def full(number):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        make("ridge").save(path)
    assert path.read_bytes() == content
    assert list(path.parent.iterdir()) == [path]


def test_a_partition_of_swapped_bytes_is_kept(path):
    blocks = np.arange(72) // 20
    fit(KernelSVC(partition=blocks.astype(">i4"), **SETTINGS)).save(path)
    assert parablock.load(path).partition.tolist() == blocks.tolist()


@pytest.mark.parametrize("write", [parablock.save, to_libsvm, to_onnx])
def test_permissions_are_those_of_any_new_file_or_of_the_old_one(path, write):
    before = os.umask(0o027)
    try:
        write(make("svc"), path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        path.chmod(0o604)
        write(make("svc"), path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o604
    finally:
        os.umask(before)


@pytest.mark.parametrize("write", [parablock.save, to_libsvm, to_onnx])
def test_links_are_followed_and_pipes_and_devices_written_to(tmp_path, write):
    model = make("svc")
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    write(model, tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    content = (tmp_path / "real").read_bytes()
    assert len(content) > 100
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen(["cat", tmp_path / "pipe"], stdout=subprocess.PIPE) as reader:
        write(model, tmp_path / "pipe")
        assert reader.stdout.read() == content
    (tmp_path / "nothing").symlink_to(os.devnull)
    write(model, tmp_path / "nothing")
    assert (tmp_path / "nothing").resolve() == Path(os.devnull)
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
    assert sorted(place.name for place in tmp_path.iterdir()) == ["link", "nothing", "pipe", "real"]


def test_a_folder_that_is_not_there_is_an_ordinary_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        make("svc").save(tmp_path / "nowhere" / "model.pbk")
    with pytest.raises(FileNotFoundError):
        parablock.load(tmp_path / "model.pbk")
    with pytest.raises(IsADirectoryError):
        make("svc").save(tmp_path)
    with pytest.raises(IsADirectoryError):
        parablock.load(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_other_programs_can_read_the_file(path):
    """By the format's description alone: safetensors, and JSON in its header."""
    model = make("svc")
    model.save(str(path))
    with safe_open(path, "np") as file:
        metadata = file.metadata()
        rows, coef, intercept, vectors = (
            file.get_tensor(name) for name in ("global.rows", "global.coef", "global.intercept", "vectors")
        )
    record = json.loads(metadata["parablock model"])
    assert record["format_version"] == 1
    assert record["estimator"] == "KernelSVC"
    assert record["kernel"]["name"] == "RBF"
    values = rbf(NEW, vectors, record["kernel"]["gamma"]) @ coef[0] + intercept[0]
    assert values == pytest.approx(decision(model), abs=1e-12)
    assert np.array_equal(rows, model.support_)


def test_data_on_disk_comes_back_as_ordinary_rows(path, tmp_path):
    np.save(tmp_path / "rows.npy", features())
    save_csr(tmp_path / "rows", sp.csr_matrix(features()))
    for X in (np.load(tmp_path / "rows.npy", mmap_mode="r"), open_csr(tmp_path / "rows")):
        model = fit(KernelSVC(**SETTINGS), X)
        loaded = again(model, path)
        assert np.array_equal(decision(loaded), decision(model))
        assert type(loaded.support_vectors_) in (np.ndarray, sp.csr_matrix, sp.csr_array)


def test_a_file_of_a_library_whose_records_were_shorter_is_read(path):
    """Columns of the history that have a default may be missing."""
    model = make("svc")
    model.save(path)
    record, tensors = container.read(path)
    history = record.values["fitted"]["history"]
    table = tensors.arrays["history"]
    keep = [name != "seconds_waiting" for name in history["columns"]]
    history["columns"] = [name for name in history["columns"] if name != "seconds_waiting"]
    container.write(path, record.values, {**tensors.arrays, "history": table[:, keep]})
    assert same(parablock.load(path).history_, model.history_)


def test_describe_tells_what_is_inside(path):
    model = make("three classes", "csr", np.float32)
    model.save(path)
    told = describe(path)
    assert json.loads(json.dumps(told)) == told
    assert told["estimator"] == "KernelSVC"
    assert told["kernel"] == {"name": "RBF", "gamma": model._gamma}
    assert told["parameters"]["C"] == 1.0
    assert told["classes"] == [0, 1, 2]
    assert (told["n_features"], told["n_outputs"], told["n_rows"]) == (4, 3, 72)
    assert told["n_support_vectors"] == len(model.support_)
    assert told["data"] == "csr_matrix float32"
    assert told["certificate"]["duality_gap_"] == model.duality_gap_
    assert told["library_version"] == parablock.__version__
    assert told["bytes"] == path.stat().st_size
