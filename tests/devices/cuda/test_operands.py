"""Rows split into parts: what they still say, and in which units."""

# ruff: noqa: E402
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the GPU's operands are torch tensors")

from parablock.devices.cuda.operands import DOUBLE, EXACT, FAST, FLOAT32, padded_features, prepare

pytestmark = pytest.mark.slow  # runs interpreted kernels

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def rows(n, d, scale=1.0, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, d)) * scale
    return X.astype(np.float32), torch.tensor(X, dtype=torch.float32, device=DEVICE)


def represented(operand, d):
    """What the parts add up to, in the data's own units."""
    total = operand.high.double()
    if operand.parts == 2:
        total = total + operand.low.double()
    return total.cpu().numpy()[:, :d] * operand.unit


@pytest.mark.parametrize("scale", [1e-6, 0.3, 1.0, 300.0, 1e6])
@pytest.mark.parametrize("d", [1, 54, 200])
def test_parts_add_up_to_the_rows(scale, d):
    X, on_device = rows(40, d, scale)
    operand = prepare(on_device)
    assert operand.kind == DOUBLE
    largest = np.linalg.norm(X.astype(np.float64), axis=1).max()
    assert np.abs(represented(operand, d) - X).max() <= 2.0**-23 * largest


@pytest.mark.parametrize("kind", [EXACT, DOUBLE, FAST])
def test_sums_of_products_of_high_parts_are_whole_numbers_that_float32_holds(kind):
    _, on_device = rows(40, 54)
    high = prepare(on_device.round() if kind == EXACT else on_device, kind).high.double()
    assert bool((2 * high == (2 * high).round()).all())
    assert float((high.abs() @ high.abs().T).max()) <= 1.01 * 2.0**24


@pytest.mark.parametrize("kind", [EXACT, DOUBLE, FLOAT32])
def test_half_norms_are_those_of_the_parts(kind):
    _, on_device = rows(40, 7)
    operand = prepare(on_device.round() if kind == EXACT else on_device, kind)
    expected = 0.5 * (represented(operand, 7) ** 2).sum(axis=1)
    half = operand.half.double() + operand.half_low.double()
    np.testing.assert_allclose(half.cpu().numpy(), expected, rtol=1e-13)


def test_pixels_are_exact_also_after_centring_by_whole_numbers():
    pixels = torch.randint(0, 256, (30, 784), generator=torch.Generator().manual_seed(0)).to(DEVICE)
    for X in (pixels, pixels - 117):
        operand = prepare(X)
        assert operand.kind == EXACT
        np.testing.assert_array_equal(represented(operand, 784), X.cpu().numpy())


def test_new_rows_take_the_scale_of_the_old_ones_where_they_fit():
    _, old = rows(20, 5)
    operand = prepare(old)
    assert prepare(3 * old, like=operand).exponent == operand.exponent
    far = prepare(1e5 * old, like=operand)
    assert far.exponent < operand.exponent
    assert bool(far.high.isfinite().all())


def test_float32_rows_get_float32_partners():
    _, X = rows(20, 5)
    assert prepare(X, like=prepare(X, FLOAT32)).kind == FLOAT32


@pytest.mark.parametrize("kind", [None, FAST, FLOAT32])
@pytest.mark.parametrize("X", [torch.zeros((3, 4)), torch.zeros((0, 4))])
def test_nothing_but_zeros_and_nothing_at_all(kind, X):
    operand = prepare(X.to(DEVICE), kind)
    assert len(operand) == len(X)
    assert not operand.half.any()
    assert not operand.high.any()


def test_rows_can_be_taken():
    _, X = rows(20, 5)
    whole, some = prepare(X), torch.tensor([3, 1, 17], device=DEVICE)
    taken = whole.take(some)
    assert len(taken) == 3
    for name in ("high", "low", "half", "half_low"):
        assert torch.equal(getattr(taken, name), getattr(whole, name)[some])


@pytest.mark.parametrize(("d", "padded"), [(1, 16), (16, 16), (17, 32), (54, 64), (128, 128), (129, 192), (784, 832)])
def test_features_are_padded_to_what_tiles_read(d, padded):
    assert padded_features(d) == padded
