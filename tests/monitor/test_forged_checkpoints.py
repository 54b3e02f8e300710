"""Checkpoints whose checksum is right and whose content is not: refused, or the fit ends at the optimum."""

import copy
import hashlib
import io
import json
import struct
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from parablock import Checkpoint, CheckpointError, KernelSVC
from tests.small_problems import rbf

MARK, HEADER = b"parablock checkpoint\n", struct.Struct("<IQ32s")
RNG = np.random.default_rng(3)
X = RNG.normal(size=(150, 3))
Y = (X[:, 0] * X[:, 1] > 0.1).astype(int)
SETTINGS = {"C": 10.0, "gamma": 1.0, "tol": 1e-5, "n_blocks": 4, "random_state": 0, "n_jobs": 1}


def unpacked(content):
    """The arrays, and what the record says."""
    with np.load(io.BytesIO(content[len(MARK) + HEADER.size :])) as arrays:
        parts = {name: arrays[name] for name in arrays.files}
    return parts, json.loads(parts.pop("told").item())


def sealed(content, parts, told):
    """A file with other parts and the right checksum for them."""
    version, _, _ = HEADER.unpack_from(content, len(MARK))
    body = io.BytesIO()
    np.savez(body, **parts, told=np.array(told if isinstance(told, str) else json.dumps(told)))
    data = body.getvalue()
    return MARK + HEADER.pack(version, len(data), hashlib.sha256(data).digest()) + data


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The file of a fit that was stopped early."""
    path = tmp_path_factory.mktemp("whole") / "run.checkpoint"
    with pytest.warns(ConvergenceWarning):
        KernelSVC(**SETTINGS, max_iter=3, checkpoint=Checkpoint(path, iterations=1)).fit(X, Y)
    return path.read_bytes()


@pytest.fixture(scope="module")
def optimum():
    return KernelSVC(**SETTINGS).fit(X, Y).dual_objective_


def resume(content, path):
    path.write_bytes(content)
    checkpoint = Checkpoint(path, seconds=1e9)
    return KernelSVC(**SETTINGS, checkpoint=checkpoint, resume=True).fit(X, Y)


def dual(model):
    """The dual objective of what the model holds, in float64."""
    coef = np.zeros(len(X))
    coef[model.support_] = model.dual_coef_[0]
    return np.abs(coef).sum() - 0.5 * coef @ rbf(X, X, 1.0) @ coef


def test_what_is_sealed_again_as_it_was_goes_on(whole, tmp_path, optimum):
    model = resume(sealed(whole, *unpacked(whole)), tmp_path / "run.checkpoint")
    assert model.dual_objective_ == pytest.approx(optimum, rel=1e-6)
    assert model.n_iter_ > 3


def one_up(values):
    values = values.copy()
    values[0, np.flatnonzero(values[0])[0]] += 1.0
    return values


ARRAYS = [
    ("coef", lambda a: a[:, :-1]), ("coef", lambda a: np.concatenate((a, a))), ("coef", lambda a: a[0]),
    ("coef", lambda a: a.astype(np.float32)), ("coef", lambda a: a * np.nan), ("coef", lambda a: a + np.inf),
    ("coef", lambda a: a * 1e3), ("coef", lambda a: -a), ("coef", one_up), ("coef", lambda a: np.abs(a)),
    ("coef", lambda a: a.astype(str)), ("coef", lambda a: a[:0]),
    ("decision", lambda a: a * np.nan), ("decision", lambda a: a.T), ("decision", lambda a: a * 0),
    ("decision", lambda a: a * 2), ("decision", lambda a: a[:, ::-1]), ("decision", lambda a: a.astype(int)),
    ("last_coef", lambda a: a[:, :-1]), ("last_coef", lambda a: a + 1), ("last_decision", lambda a: a * 3),
    ("last_decision", lambda a: a.astype("c16")), ("more", None), ("coef", None), ("decision", None),
    ("last_coef", None), ("last_decision", None),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(ARRAYS)))
def test_arrays_that_no_fit_has_written(whole, tmp_path, number):
    name, change = ARRAYS[number]
    parts, told = unpacked(whole)
    if name == "more":
        parts["more"] = np.zeros(3)
    elif change is None:
        del parts[name]
    else:
        parts[name] = change(parts[name])
    with pytest.raises(CheckpointError, match=r"run\.checkpoint' is damaged: its content makes no sense"):
        resume(sealed(whole, parts, told), tmp_path / "run.checkpoint")


@pytest.mark.parametrize(
    "watched",
    [np.array([0, 0, 1]), np.array([-1, 3]), np.array([150]), np.array([], dtype=int), np.array([0.5, 1.0]), np.eye(2)],
)
def test_watched_rows_that_are_none(whole, tmp_path, watched):
    parts, told = unpacked(whole)
    with pytest.raises(CheckpointError, match="makes no sense"):
        resume(sealed(whole, {**parts, "watched": watched}, told), tmp_path / "run.checkpoint")


TOLD = [
    ("iteration", -1), ("iteration", 10**6), ("iteration", 2.0), ("iteration", "3"), ("iteration", 2**70),
    ("seconds", -1), ("seconds", float("nan")), ("seconds", "1"), ("fingerprint", None), ("history", []),
    ("history", {}), ("history", [{}]), ("history.0.iteration", 7), ("history.0.kind", 3), ("history.0.blocks", -1),
    ("history.0.more", 1), ("history.0.objective", None), ("memory", {}), ("memory", None), ("memory.idle", -1),
    ("memory.idle", None), ("memory.schedule", {}), ("memory.schedule.kind", "another"),
    ("memory.schedule.most_blocks", 0), ("memory.schedule.most_blocks", 1e300),
    ("memory.schedule.iteration", "a"), ("memory.lookout.stage", "another"), ("memory.lookout.stage", []),
    ("memory.lookout.spread", -1.0), ("memory.lookout.spread", float("inf")), ("memory.lookout.looked", None),
    ("memory.lookout.patience", -3), ("memory.random", {}), ("memory.random.bit_generator", "MT19937"),
    ("memory.random.state", 3), ("memory.random.state.state", -1), ("memory.random.state.state", 2**200),
    ("memory.random.uinteger", None), ("more", 1),
]  # fmt: skip


@pytest.mark.parametrize(("place", "value"), TOLD)
def test_records_that_no_fit_has_written(whole, tmp_path, place, value):
    parts, told = unpacked(whole)
    inner, (*names, last) = told, place.split(".")
    for name in names:
        inner = inner[int(name) if name.isdigit() else name]
    inner[last] = value
    with pytest.raises(CheckpointError, match=r"makes no sense|another problem"):
        resume(sealed(whole, parts, told), tmp_path / "run.checkpoint")


@pytest.mark.parametrize("told", ["", "{", "[" * 100_000, "3", "9" * 5000, "null"])
def test_records_that_are_none(whole, tmp_path, told):
    parts, _ = unpacked(whole)
    with pytest.raises(CheckpointError, match="makes no sense"):
        resume(sealed(whole, parts, told), tmp_path / "run.checkpoint")


@pytest.mark.parametrize("size", [1, 200, 579])
def test_a_few_bytes_that_claim_an_array_of_terabytes(whole, tmp_path, size):
    version, _, _ = HEADER.unpack_from(whole, len(MARK))
    body = io.BytesIO()
    np.savez(body, coef=np.zeros(1))
    data = body.getvalue().replace(b"(1,)", b"(1" + b"0" * 11 + b",)").replace(b"}" + b" " * 11, b"}")[:size]
    (tmp_path / "a").write_bytes(MARK + HEADER.pack(version, len(data), hashlib.sha256(data).digest()) + data)
    with pytest.raises(CheckpointError, match="makes no sense"):
        KernelSVC(**SETTINGS, checkpoint=tmp_path / "a", resume=True).fit(X, Y)


def test_small_changes_of_what_can_be_computed_anew_lead_to_the_same_optimum(whole, tmp_path, optimum):
    """Decisions are, so that rounding, and what is no larger than it might be, cannot mislead."""
    rng = np.random.default_rng(0)
    for name in ("decision", "last_decision"):
        parts, told = unpacked(whole)
        place = rng.integers(150)
        parts[name][0, place] += 0.05 * np.abs(parts[name]).max()
        model = resume(sealed(whole, parts, told), tmp_path / "run.checkpoint")
        assert dual(model) == pytest.approx(optimum, rel=1e-6)
        assert model.dual_objective_ == pytest.approx(optimum, rel=1e-6)
    parts, told = unpacked(whole)
    told["memory"]["lookout"]["spread"] = 1e9
    told["memory"]["schedule"]["most_blocks"] = 1
    assert dual(resume(sealed(whole, parts, told), tmp_path / "run.checkpoint")) == pytest.approx(optimum, rel=1e-6)


def test_coefficients_that_another_fit_may_have_lead_to_the_same_optimum(whole, tmp_path, optimum):
    """A point in the box with the right sum is as good a start as any."""
    parts, told = unpacked(whole)
    coef = np.zeros((1, 150))
    coef[0, np.flatnonzero(Y == 1)[:5]], coef[0, np.flatnonzero(Y == 0)[:5]] = 3.0, -3.0
    parts = {"coef": coef, "decision": coef @ rbf(X, X, 1.0)}
    model = resume(sealed(whole, parts, told), tmp_path / "run.checkpoint")
    assert dual(model) == pytest.approx(optimum, rel=1e-6)


def test_several_outputs_have_their_own_bounds(tmp_path):
    path, model = tmp_path / "run.checkpoint", KernelSVC(**SETTINGS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.set_params(max_iter=2, checkpoint=Checkpoint(path, iterations=1)).fit(X, Y + 2 * (X[:, 2] > 0))
    parts, told = unpacked(path.read_bytes())
    assert len(parts["coef"]) == 4
    changed = copy.deepcopy(parts)
    changed["coef"][[0, 1]] = changed["coef"][[1, 0]]
    path.write_bytes(sealed(path.read_bytes(), changed, told))
    with pytest.raises(CheckpointError, match="makes no sense"):
        model.set_params(resume=True).fit(X, Y + 2 * (X[:, 2] > 0))
