"""Rows that have no room on the card: the same results as if they had."""

# ruff: noqa: E402
import warnings

import numpy as np
import pytest
from sklearn.datasets import make_moons

torch = pytest.importorskip("torch", reason="the GPU's kernels work on torch tensors")
pytest.importorskip("triton", reason="the GPU's kernels are Triton's")

from parablock import KernelSVC
from parablock.devices import DEVICES
from parablock.devices.cuda.kernel_values import spec_of
from parablock.devices.cuda.operands import Operand
from parablock.devices.cuda.products import block_grams, kernel_dot
from parablock.devices.cuda.streamed import StreamedOperand
from parablock.kernels import make_kernel
from parablock.mapped import MappedRows
from parablock.tensors import TensorRows

pytestmark = pytest.mark.slow  # runs interpreted kernels

LIMIT = 6000  # a quarter of it is room for 23 rows
GAMMA = 0.8


def rows_of(n, seed=0, d=5):
    return np.random.default_rng(seed).uniform(size=(n, d)).astype(np.float32)


@pytest.fixture(scope="module")
def large():
    return DEVICES["cuda"](1, "100MB")


@pytest.fixture(scope="module")
def small():
    return DEVICES["cuda"](1, LIMIT)


def both(large, small, X, kernel, centre=None):
    on_card, streamed = large.samples(X, kernel, centre), small.samples(X, kernel, centre)
    assert isinstance(on_card.operand, Operand)
    assert isinstance(streamed.operand, StreamedOperand)
    assert streamed.operand.grid == on_card.operand.grid
    return on_card, streamed


@pytest.mark.parametrize("name", ["rbf", "laplacian", "polynomial"])
def test_products_are_those_of_rows_on_the_card(large, small, name):
    kernel, coef = make_kernel(name, GAMMA, 0.5, 3), np.random.default_rng(2).normal(size=(2, 60))
    rows, columns = both(large, small, rows_of(70), kernel), both(large, small, rows_of(60, 1), kernel)
    expected = large.kernel_dot(kernel, rows[0], columns[0], coef)
    for i, j in ((0, 1), (1, 0), (1, 1)):
        found = large.kernel_dot(kernel, rows[i], columns[j], coef)
        np.testing.assert_allclose(found, expected, atol=1e-6 * np.abs(expected).max())
    values = large.gram(kernel, rows[0], columns[0])
    np.testing.assert_array_equal(large.gram(kernel, rows[1], columns[1]), values)
    np.testing.assert_allclose(rows[1].self_overlap, rows[0].self_overlap, rtol=1e-6)


def test_matrices_of_blocks_are_those_of_rows_on_the_card(large, small):
    kernel = make_kernel("rbf", GAMMA)
    on_card, streamed = both(large, small, rows_of(70), kernel, np.full(5, 0.5))
    blocks = np.full((3, 16), -1)
    blocks[0], blocks[1, :3], blocks[2] = np.arange(16), [69, 1, 30], np.arange(64, 48, -1)
    found, expected = (
        block_grams(spec_of(kernel), samples.operand, samples.index(blocks)).cpu() for samples in (streamed, on_card)
    )
    assert torch.equal(found, expected)


def test_rows_that_are_few_enough_come_to_the_card(large, small):
    kernel = make_kernel("rbf", GAMMA)
    on_card, streamed = both(large, small, rows_of(70), kernel)
    rows = np.array([61, 3, 3, 50])
    for samples in (on_card, streamed):
        assert isinstance(samples.take(rows).operand, Operand)
        np.testing.assert_allclose(samples.take(rows).features(), rows_of(70)[rows], atol=1e-6)
        np.testing.assert_allclose(samples.mean(rows), rows_of(70)[rows].mean(axis=0), atol=1e-6)
        np.testing.assert_allclose(samples.project(rows, np.ones(5)), rows_of(70)[rows].sum(axis=1), atol=1e-5)
        np.testing.assert_allclose(samples.features(), rows_of(70), atol=1e-6)
    most = streamed.take(np.arange(69, -1, -1))
    assert isinstance(most.operand, StreamedOperand)
    np.testing.assert_allclose(most.features(slice(0, 3)), rows_of(70)[[69, 68, 67]], atol=1e-6)
    assert most.X[torch.tensor([[0, 1], [2, 3]])].shape == (2, 2, 5)


def test_the_tree_is_that_of_rows_on_the_card(large, small):
    kernel = make_kernel("rbf", GAMMA)
    blocks = [
        device.tree(samples, 5, np.random.default_rng(0))
        for device, samples in zip((large, small), both(large, small, rows_of(70), kernel))
    ]
    for here, there in zip(*blocks):
        np.testing.assert_array_equal(there, here)


def test_whole_numbers_are_seen_from_afar(small):
    X = np.random.default_rng(0).integers(0, 256, size=(60, 10)).astype(np.float32)
    assert small.wants_whole_numbers(X)
    assert small.samples(X, make_kernel("rbf", 1e-5), np.rint(X.mean(axis=0))).operand.kind == "exact"
    assert not small.wants_whole_numbers(X / 7)


def test_one_giant_row_makes_both_sides_float32(large, small):
    X, kernel, coef = rows_of(70), make_kernel("rbf", 0.5), np.ones((1, 60))
    columns = both(large, small, rows_of(60, 1), kernel)
    X[3] *= 1e4
    rows = both(large, small, X, kernel)
    assert rows[1].operand.kind == "float32"
    expected = large.kernel_dot(kernel, rows[0], columns[0], coef)
    np.testing.assert_allclose(large.kernel_dot(kernel, rows[1], columns[1], coef), expected, rtol=1e-5)


# -------------------------------------------------------------------------------------------------------- fits

MOONS = make_moons(60, noise=0.2, random_state=0)
SETTINGS = {"C": 2.0, "gamma": 2.0, "tol": 1e-2, "n_blocks": 3, "random_state": 0, "device": "cuda"}


@pytest.fixture(scope="module")
def whole():
    return KernelSVC(**SETTINGS).fit(MOONS[0].astype(np.float32), MOONS[1])


@pytest.mark.parametrize("place", ["host", "file", "card"])
def test_fits_are_those_of_rows_on_the_card(whole, place, tmp_path):
    X, y = MOONS[0].astype(np.float32), MOONS[1]
    if place == "file":
        np.save(tmp_path / "X.npy", X)
        rows = np.load(tmp_path / "X.npy", mmap_mode="r")
    else:
        rows = torch.tensor(X, device="cuda" if torch.cuda.is_available() else "cpu") if place == "card" else X
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = KernelSVC(memory_limit=LIMIT, **SETTINGS).fit(rows, y)
    assert model.dual_objective_ == pytest.approx(whole.dual_objective_, rel=1e-6)
    np.testing.assert_array_equal(model.support_, whole.support_)
    np.testing.assert_allclose(model.decision_function(rows[:30]), whole.decision_function(X[:30]), atol=1e-4)


def test_rows_of_weight_zero_in_a_file(tmp_path):
    X, y, weight = MOONS[0][:40].astype(np.float32), MOONS[1][:40], (np.arange(40) % 4 > 0).astype(float)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    model = KernelSVC(memory_limit=LIMIT, **SETTINGS).fit(mapped, y, sample_weight=weight)
    expected = KernelSVC(**SETTINGS).fit(X[weight > 0], y[weight > 0])
    assert model.dual_objective_ == pytest.approx(expected.dual_objective_, rel=1e-5)
    assert set(model.support_) <= set(np.flatnonzero(weight))


# ------------------------------------------------------------------------------------------------------- the rule


@pytest.mark.parametrize(("n", "form"), [(23, Operand), (24, StreamedOperand)])
def test_rows_stay_away_that_would_take_more_than_a_quarter(small, n, form):
    assert isinstance(small.samples(rows_of(n), make_kernel("rbf", 1.0)).operand, form)


def test_what_is_free_bounds_rows_too(monkeypatch):
    device = DEVICES["cuda"](1)
    monkeypatch.setattr(type(device), "_free", lambda self: LIMIT)
    assert isinstance(device.samples(rows_of(24), make_kernel("rbf", 1.0)).operand, StreamedOperand)


def test_rows_on_the_card_can_be_too_large_for_their_own_copy(small):
    kernel = make_kernel("rbf", 1.0)
    tensor = torch.tensor(rows_of(70), device=small.device)
    samples = small.samples(TensorRows(tensor), kernel)
    assert isinstance(samples.operand, StreamedOperand)
    assert samples.operand.source.rows.data_ptr() == tensor.data_ptr()
    coef = torch.ones((1, 70), device=small.device)
    expected = kernel_dot(spec_of(kernel), samples.operand.brought(), samples.operand.brought(), coef)
    torch.testing.assert_close(
        kernel_dot(spec_of(kernel), samples.operand, samples.operand, coef), expected, rtol=1e-6, atol=0
    )


def test_chosen_rows_of_a_file(small, tmp_path):
    np.save(tmp_path / "X.npy", rows_of(70))
    chosen = np.arange(69, 0, -2)
    mapped = MappedRows(np.load(tmp_path / "X.npy", mmap_mode="r"), chosen)
    samples = small.samples(mapped, make_kernel("rbf", 1.0))
    assert isinstance(samples.operand, StreamedOperand)
    np.testing.assert_allclose(samples.features(), rows_of(70)[chosen], atol=1e-6)


def test_there_must_be_room_for_a_few_rows():
    device = DEVICES["cuda"](1, LIMIT)
    with pytest.raises(MemoryError, match=r"50 rows of 200 features need 16,384 bytes even for 16.*memory_limit"):
        device.samples(rows_of(50, d=200), make_kernel("rbf", 1.0))
    assert isinstance(device.samples(rows_of(50, d=16), make_kernel("rbf", 1.0)).operand, StreamedOperand)
