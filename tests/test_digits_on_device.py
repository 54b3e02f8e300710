"""Digits that torch deforms, against those that NumPy deforms."""

# ruff: noqa: E402
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="these digits are torch tensors")

from benchmarks import deformed_digits
from benchmarks.deformed_digits import SIDE, _deform, _displacements, round_digits
from benchmarks.digits_on_device import deform, deformed, displacements, round_labels

RNG = np.random.default_rng(0)
PIXELS = RNG.integers(0, 256, (60, SIDE * SIDE)).astype(np.uint8)
DIGITS = np.arange(60).astype(np.int8) % 10


def make(n, seed=0):
    return deformed(torch.tensor(PIXELS), torch.tensor(DIGITS), n, seed)


def test_the_same_displacements_give_the_same_pixels(monkeypatch):
    fields = _displacements(60, np.random.default_rng(7))
    fields[:3] *= 20  # far outside of the image
    monkeypatch.setattr(deformed_digits, "_displacements", lambda m, random: fields)
    expected = _deform(PIXELS, np.random.default_rng(0))
    np.testing.assert_array_equal(deform(torch.tensor(PIXELS), torch.tensor(fields)).numpy(), expected)
    rounded = deform(torch.tensor(PIXELS), torch.tensor(fields, dtype=torch.float32)).numpy()
    assert np.mean(rounded != expected) < 1e-4  # places in the middle between two sixteenths of a pixel


def test_displacements_are_as_large_and_as_smooth_as_those_of_numpy():
    ours = displacements(3000, torch.Generator().manual_seed(0)).numpy()
    theirs = _displacements(3000, np.random.default_rng(0))
    assert ours.shape == theirs.shape
    for moment in (
        lambda field: field.std(),
        lambda field: np.diff(field, axis=2).std(),
        lambda field: np.diff(field, axis=3).std(),
        lambda field: field[:, :, 0, 0].std(),
        lambda field: np.corrcoef(field[:, 0, 3, 3], field[:, 0, 9, 9])[0, 1],
    ):
        assert moment(ours) == pytest.approx(moment(theirs), rel=0.1)
    assert abs(ours.mean()) < 0.05


def test_fewer_rows_are_the_first_of_more_and_seeds_differ():
    X, y = make(150)
    assert X.dtype == torch.uint8
    assert X.shape == (150, 784)
    assert y.dtype == torch.int8
    again, labels = make(70)
    assert torch.equal(again, X[:70])
    assert torch.equal(labels, y[:70])
    assert not torch.equal(make(70, seed=1)[0], again)
    assert not torch.equal(X[:60].sum(dim=1).sort().values, X[60:120].sum(dim=1).sort().values)  # another deformation
    assert torch.bincount(y[:120].int()).tolist() == [12] * 10


def test_labels_are_those_of_their_digits():
    squares = torch.zeros((60, SIDE, SIDE), dtype=torch.uint8)
    squares[:, 7:21, 7:21] = 20 * (1 + torch.tensor(DIGITS))[:, None, None]  # as bright as the digit is large
    X, y = deformed(squares.reshape(60, -1), torch.tensor(DIGITS), 150, 0)
    assert torch.equal(X.amax(dim=1), 20 * (1 + y).to(torch.uint8))
    np.testing.assert_array_equal(round_labels(torch.tensor(DIGITS)).numpy(), round_digits(DIGITS))


def test_no_displacement_changes_nothing():
    assert torch.equal(deform(torch.tensor(PIXELS), torch.zeros((60, 2, SIDE, SIDE))), torch.tensor(PIXELS))


def test_a_negative_number_of_rows():
    with pytest.raises(ValueError, match="n=-1"):
        make(-1)


@pytest.mark.data
def test_real_digits_still_look_like_digits():
    from benchmarks.data import load

    try:
        pixels, digits, _, _ = load("mnist")
    except FileNotFoundError:
        pytest.skip("MNIST is not here")
    X, y = deformed(torch.tensor(pixels[:500]), torch.tensor(digits[:500]), 500, 0)
    distance = ((X.float()[:, None] - torch.tensor(pixels[500:1500]).float()[None]) ** 2).sum(dim=2)
    found = digits[500:1500][distance.argmin(dim=1).numpy()]
    assert np.mean(found == y.numpy()) > 0.7
