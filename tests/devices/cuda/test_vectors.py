"""The solver's vectors on the card: `parablock.vectors` and the dual problem, beside their NumPy twins."""

# ruff: noqa: E402
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch", reason="vectors on a GPU are torch tensors")
pytest.importorskip("triton", reason="the GPU's device is written in Triton")

from parablock import vectors
from parablock.devices.cuda.device import CudaDevice
from parablock.losses import Loss
from parablock.problem import Problem
from parablock.solver.line_search import Line, armijo_step, exact_step, plane_step
from tests.oracle import LOSSES, random_coef, random_targets

pytestmark = pytest.mark.slow  # runs interpreted kernels

seeds = st.integers(0, 2**32 - 1)
every_loss = pytest.mark.parametrize("name", LOSSES)
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@given(seeds)
def test_operations(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    host, other = rng.integers(-3, 4, n).astype(float), rng.normal(size=n)
    card, other_card = (torch.tensor(values, device=DEVICE) for values in (host, other))
    rows = rng.permutation(n)[: int(rng.integers(0, n + 1))]
    matrix = rng.normal(size=(2, n))
    matrix_card, rows_card = torch.tensor(matrix, device=DEVICE), vectors.place(card, rows)

    def same(found, expected):
        assert isinstance(found, torch.Tensor)
        assert found.device.type == DEVICE
        np.testing.assert_array_equal(vectors.to_host(found), expected)

    same(vectors.flatnonzero(card), vectors.flatnonzero(host))
    same(vectors.maximum(card, other_card), vectors.maximum(host, other))
    same(vectors.unique(card), vectors.unique(host))
    same(vectors.numbers(card, 2, 7), vectors.numbers(host, 2, 7))
    same(vectors.nobody(card, 5), vectors.nobody(host, 5))
    same(vectors.columns(matrix_card, rows_card), vectors.columns(matrix, rows))
    same(vectors.concatenate((card, other_card)), vectors.concatenate((host, other)))
    same(vectors.stack((card, other_card)), vectors.stack((host, other)))
    same(vectors.zeros_like(card), vectors.zeros_like(host))
    for count in (0, 1, n, n + 3):
        found, expected = vectors.largest(other_card, count), vectors.largest(other, count)
        np.testing.assert_array_equal(np.sort(vectors.to_host(found)), np.sort(expected))
    same(vectors.stack([card]), vectors.stack([host]))
    before = matrix.copy()
    for values, places in ((matrix, rows), (matrix_card, rows_card)):
        part = vectors.columns(values, places)
        vectors.add_columns(values, [places, places], [part, part])  # the second like a block of another output
        same(torch.as_tensor(vectors.to_host(values), device=DEVICE), _tripled(before, rows))


def _tripled(matrix, rows):
    result = matrix.copy()
    result[:, rows] += matrix[:, rows] + matrix[:, rows]
    return result


def test_draws_repeat_with_the_seed_and_are_exponential():
    like = torch.zeros(20_000, device=DEVICE)
    first, again, third = (vectors.exponential(like, np.random.default_rng(seed)) for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, third)
    draws = vectors.to_host(first)
    assert draws.min() >= 0
    assert np.mean(draws) == pytest.approx(1.0, abs=0.05)
    assert np.mean(draws > 1.0) == pytest.approx(np.exp(-1.0), abs=0.02)


def both(name, seed, intercept=True, n=50):
    """A problem on the host and on the card, with coefficients many of which are on bounds, and decisions."""
    rng = np.random.default_rng(seed)
    target = np.stack([random_targets(name, rng, n) for _ in range(2)])
    host = Problem.build(LOSSES[name], target, 10.0 ** rng.uniform(-2, 2, (2, n)), intercept)
    coef = np.stack([random_coef(rng, host.lower[output], host.upper[output]) for output in range(2)])
    decision = rng.normal(size=(2, n))
    return host, CudaDevice(1).near(host), coef, decision, rng


@every_loss
@pytest.mark.parametrize("intercept", [True, False])
@given(seed=seeds)
def test_measures(name, intercept, seed):
    host, card, coef, decision, _ = both(name, seed, intercept)
    for output in range(2):
        expected = host.measure(output, coef[output], decision[output])
        found = card.measure(output, *(vectors.place(card.target, values[output]) for values in (coef, decision)))
        for number in ("objective", "duality_gap", "violation", "bias"):
            assert getattr(found, number) == pytest.approx(getattr(expected, number), rel=1e-10, abs=1e-10)
        for wish in ("upward", "downward"):
            np.testing.assert_allclose(vectors.to_host(getattr(found, wish)), getattr(expected, wish), atol=1e-10)


@every_loss
@given(seed=seeds)
def test_step_sizes(name, seed):
    host, card, coef, decision, rng = both(name, seed)
    aim = random_coef(rng, host.lower[0], host.upper[0])
    direction = np.where(rng.random(len(aim)) < 0.7, aim - coef[0], 0.0)
    root = rng.normal(size=(len(aim), len(aim))) / 10
    kernel = root @ root.T
    step, last = (direction, kernel @ direction), (0.3 * aim, kernel @ (0.3 * aim))
    if not direction.any():
        return
    found = []
    for problem in (host, card):
        point, along, earlier = (
            tuple(vectors.place(problem.target, values) for values in pair)
            for pair in ((coef[0], decision[0]), step, last)
        )
        line = Line.along(problem, 0, point, along)
        beta = exact_step(line) if problem.loss.piecewise_quadratic else armijo_step(line, 3)
        found.append((line.longest(), beta, line.change(beta), *(plane_step(problem, 0, point, along, earlier) or ())))
        found[-1] += tuple(vectors.to_host(line.point(beta)))
    np.testing.assert_allclose(found[1], found[0], rtol=1e-7, atol=1e-9)


def test_rows_are_taken_on_the_card():
    host, card, *_ = both("hinge", 0)
    rows = np.array([3, 1, 7])
    part = card.take(vectors.place(card.target, rows))
    assert type(part) is type(card)
    assert part.n == 3
    assert part.intercept
    for name in ("target", "weight", "lower", "upper"):
        np.testing.assert_array_equal(vectors.to_host(getattr(part, name)), getattr(host.take(rows), name))


def test_a_loss_that_the_card_does_not_know_is_refused():
    class Own(type(LOSSES["hinge"])):
        pass

    assert issubclass(Own, Loss)
    problem = Problem.build(Own(), np.array([1.0, -1.0]), np.ones(2), True)
    with pytest.raises(ValueError, match=r"Own is not available on a GPU.*device='cpu'"):
        CudaDevice(1).near(problem)
