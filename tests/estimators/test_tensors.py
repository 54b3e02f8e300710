"""Torch tensors as data: those of the device stay there, all others are arrays."""

# ruff: noqa: E402
import os
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_moons

torch = pytest.importorskip("torch", reason="the data is torch tensors")
if not torch.cuda.is_available():  # a tensor of the CPU stands for one of the GPU; Triton must be told first
    os.environ.setdefault("TRITON_INTERPRET", "1")
pytest.importorskip("triton", reason="the GPU's kernels are Triton's")

from parablock import KernelRidge, KernelSVC
from parablock.devices.cuda.device import CudaDevice
from parablock.engines import MPIEngine, moments
from parablock.mapped import column_means, some_rows, stretches
from parablock.tensors import TensorRows, on_host

pytestmark = pytest.mark.slow  # runs interpreted kernels

DEVICE = torch.device("cuda", 0) if torch.cuda.is_available() else torch.device("cpu")
X, y = make_moons(36, noise=0.2, random_state=0)
SETTINGS = {"C": 2.0, "tol": 1e-2, "n_blocks": 2, "random_state": 0, "device": "cuda"}


def tensor(array, dtype=None):
    return torch.tensor(array, dtype=dtype, device=DEVICE)


@pytest.fixture
def asked(monkeypatch):
    """What devices are asked to make ready, and how many rows of tensors come to the host at a time."""
    seen = {"samples": [], "rows": []}
    samples, getitem = CudaDevice.samples, TensorRows.__getitem__

    def watched_samples(self, X, kernel, centre=None):
        seen["samples"].append(X)
        return samples(self, X, kernel, centre)

    def watched_getitem(self, rows):
        result = getitem(self, rows)
        seen["rows"].append(len(result))
        return result

    monkeypatch.setattr(CudaDevice, "samples", watched_samples)
    monkeypatch.setattr(TensorRows, "__getitem__", watched_getitem)
    return seen


# ------------------------------------------------------------------------------------------------------- fits


def test_a_tensor_of_the_device_stays_there(asked):
    there, labels = tensor(X).requires_grad_(), tensor(y)
    model = KernelSVC(gamma="scale", **SETTINGS).fit(there, labels, sample_weight=torch.ones(36))
    few = len(asked["samples"][1])  # rows whose kernel values are compared with exact ones, with one beside each
    assert [type(given) for given in asked["samples"]] == [TensorRows, np.ndarray]
    assert few <= 64
    assert asked["samples"][0].tensor.data_ptr() == there.data_ptr()
    # All rows once, a stretch at a time, for the fingerprint; these; the support vectors; and rows whose decisions are
    # computed again in float64, at most 256.
    assert asked["rows"] == [36, few // 2, len(model.support_), 36]
    arrays = KernelSVC(gamma="scale", **SETTINGS).fit(X, y)
    assert model.dual_objective_ == pytest.approx(arrays.dual_objective_, rel=1e-9)
    assert model.n_features_in_ == 2
    np.testing.assert_array_equal(model.support_vectors_, X[model.support_])
    assert model.support_vectors_.dtype == np.float64

    del asked["samples"][:], asked["rows"][:]
    decision = model.decision_function(there[:20])
    assert isinstance(asked["samples"][0], TensorRows)
    assert asked["rows"] == []
    assert isinstance(decision, np.ndarray)
    np.testing.assert_allclose(decision, arrays.decision_function(X[:20]), atol=1e-6)
    assert model.score(there[:20], labels[:20]) == arrays.score(X[:20], y[:20])


def test_the_model_needs_neither_device_nor_torch():
    model = KernelSVC(gamma=2.0, **SETTINGS).fit(tensor(X), tensor(y))
    dumped = pickle.dumps(model)
    assert b"torch" not in dumped
    alone = pickle.loads(dumped).set_params(device="cpu")
    np.testing.assert_allclose(alone.decision_function(X[:10]), model.decision_function(tensor(X[:10])), atol=1e-5)


def test_pixels_stay_bytes_on_the_device(asked):
    pixels = np.random.default_rng(0).integers(0, 256, size=(40, 6)).astype(np.uint8)
    labels = pixels[:, 0] > 128
    models = [
        KernelSVC(gamma=1e-5, **SETTINGS).fit(data, labels) for data in (tensor(pixels), pixels.astype(np.float32))
    ]
    assert asked["samples"][0].tensor.dtype == torch.uint8
    assert models[0].dual_objective_ == pytest.approx(models[1].dual_objective_, rel=1e-9)
    assert models[0].support_vectors_.dtype == np.float32
    np.testing.assert_array_equal(models[0].support_vectors_, pixels[models[0].support_])


def test_rows_of_weight_zero_take_no_part(asked):
    weight = (np.arange(36) % 4 > 0).astype(float)
    model = KernelSVC(gamma=2.0, **SETTINGS).fit(tensor(X), y, sample_weight=tensor(weight))
    expected = KernelSVC(gamma=2.0, **SETTINGS).fit(X[weight > 0], y[weight > 0])
    assert isinstance(asked["samples"][0], TensorRows)
    assert model.dual_objective_ == pytest.approx(expected.dual_objective_, rel=1e-9)
    np.testing.assert_array_equal(model.support_, np.flatnonzero(weight)[expected.support_])


def test_regression_on_the_device():
    targets = tensor(np.stack((X[:, 0], X.sum(axis=1)), axis=1)[:30])
    model = KernelRidge(**{**SETTINGS, "gamma": 1.0, "tol": 0.1}).fit(tensor(X[:30]), targets)
    assert model.predict(tensor(X[:5])).shape == (5, 2)
    assert model.score(tensor(X[:30]), targets) > 0.8


@pytest.mark.parametrize("settings", [{"device": "cpu"}, {"device": "cuda", "engine": MPIEngine()}])
def test_elsewhere_tensors_are_arrays(asked, settings):
    if "engine" in settings:
        pytest.importorskip("mpi4py")
    model = KernelSVC(gamma=2.0, **{**SETTINGS, **settings}).fit(tensor(X), tensor(y))
    assert all(isinstance(given, np.ndarray) for given in asked["samples"])
    arrays = KernelSVC(gamma=2.0, **{**SETTINGS, **settings}).fit(X, y)
    assert model.dual_objective_ == arrays.dual_objective_
    np.testing.assert_array_equal(model.predict(tensor(X)), arrays.predict(X))


def test_half_precision_and_sparse_tensors_become_arrays():
    exact = np.round(X * 8) / 8
    expected = KernelSVC(**{**SETTINGS, "device": "cpu"}, gamma=2.0).fit(exact.astype(np.float32), y)
    for given in (tensor(exact, torch.bfloat16), tensor(exact, torch.float16)):
        model = KernelSVC(**{**SETTINGS, "device": "cpu"}, gamma=2.0).fit(given, y)
        assert model.dual_objective_ == expected.dual_objective_
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch says that its sparse tensors are new
        csr = tensor(X).to_sparse_csr()
    model = KernelSVC(**{**SETTINGS, "device": "cpu"}, gamma=2.0).fit(csr, y)
    assert sp.issparse(model.support_vectors_)
    assert model.dual_objective_ == pytest.approx(expected.dual_objective_, rel=0.05)


# ------------------------------------------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: t[:, 0], "Expected 2D array, got 1D"),
        (lambda t: t[None], "Expected 2D array, got 3D"),
        (lambda t: t[:0], "0 sample"),
        (lambda t: t[:, :0], "0 feature"),
        (lambda t: t[:-1], "inconsistent numbers of samples"),
        (lambda t: t.index_fill(0, tensor([3]), torch.nan), "Input X contains NaN or infinity"),
        (lambda t: t.index_fill(0, tensor([3]), torch.inf), "Input X contains NaN or infinity"),
        (lambda t: t.to(torch.complex64), "Complex data not supported"),
    ],
    ids=["1-D", "3-D", "no rows", "no features", "fewer rows", "nan", "infinite", "complex"],
)
def test_bad_tensors_are_refused_in_the_words_of_arrays(change, words):
    with pytest.raises(ValueError, match=words):
        KernelSVC(**SETTINGS).fit(change(tensor(X)), tensor(y))


def test_bad_targets_and_weights():
    with pytest.raises(ValueError, match="NaN"):
        KernelRidge(**SETTINGS).fit(tensor(X), tensor(np.where(y, np.nan, 1.0)))
    with pytest.raises(ValueError, match="sample_weight"):
        KernelSVC(**SETTINGS).fit(tensor(X), tensor(y), sample_weight=torch.ones(3))
    with pytest.raises(ValueError, match="Negative values in sample_weight"):
        KernelSVC(**SETTINGS).fit(tensor(X), tensor(y), sample_weight=-torch.ones(36))


def test_features_must_be_those_of_the_fit():
    model = KernelSVC(gamma=2.0, **SETTINGS).fit(tensor(X), y)
    with pytest.raises(ValueError, match="X has 3 features, but KernelSVC is expecting 2"):
        model.predict(tensor(np.ones((4, 3))))
    with pytest.raises(ValueError, match="NaN"):
        model.predict(tensor(np.full((4, 2), np.nan)))


def test_chi2_wants_no_negative_values():
    with pytest.raises(ValueError, match="Negative values in data passed to the chi2 kernel"):
        KernelSVC(kernel="chi2", **SETTINGS).fit(tensor(X), y)


# ----------------------------------------------------------------------------------------------------- TensorRows


@pytest.mark.parametrize(
    ("dtype", "arrays"),
    [("uint8", "float32"), ("bool", "float32"), ("bfloat16", "float32"), ("float32", "float32"), ("float16", "float32")]
    + [("float64", "float64"), ("int32", "float64"), ("int64", "float64")],
)
def test_rows_as_arrays(dtype, arrays):
    values = np.arange(12).reshape(4, 3) % 2
    rows = TensorRows(tensor(values).to(getattr(torch, dtype)))
    assert rows.shape == (4, 3)
    assert rows[np.array([2, 0])].dtype == arrays
    np.testing.assert_array_equal(rows[np.array([2, 0])], values[[2, 0]])
    np.testing.assert_array_equal(rows[1:3], values[1:3])
    np.testing.assert_array_equal(some_rows(rows, np.array([3]))[:], values[[3]])
    assert rows.astype(np.float64)[:1].dtype == np.float64
    assert list(stretches(rows, rows.nbytes // 2)) == [(0, 2), (2, 4)]


def test_sums_over_a_tensor_are_those_over_an_array(monkeypatch):
    from parablock import tensors

    monkeypatch.setattr(tensors, "_VALUES_AT_ONCE", 14)
    rows, share = TensorRows(tensor(X)), np.random.default_rng(0).uniform(size=36)
    np.testing.assert_allclose(column_means(rows), X.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(moments(rows, share), moments(X, share), rtol=1e-12)
    assert rows.smallest() == pytest.approx(X.min())
    assert rows.finite()
    assert not TensorRows(tensor(np.where(X[30, 0] == X, np.inf, X))).finite()


def test_arrays_are_left_alone():
    assert on_host(X) is X
    shared = on_host(torch.from_numpy(X))
    assert np.shares_memory(shared, X)
