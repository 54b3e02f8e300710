"""The GPU's losses, in Triton and over torch vectors, against the functions of `parablock.losses`."""

# ruff: noqa: E402
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch", reason="the GPU's losses work on torch tensors")
triton = pytest.importorskip("triton", reason="the GPU's losses are written in Triton")

import triton.language as tl

from parablock.devices.cuda import torch_losses
from parablock.devices.cuda.losses import bounds, slopes, spec_of_loss
from parablock.devices.cuda.problem import CardProblem
from parablock.losses import Hinge
from parablock.problem import Problem, fitting_bias
from tests.oracle import LOSSES, random_coef, random_targets

pytestmark = pytest.mark.slow  # runs interpreted kernels

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
N = 64
every_loss = pytest.mark.parametrize("name", LOSSES)
seeds = st.integers(0, 2**32 - 1)


def tensor(array):
    return torch.tensor(array, device=DEVICE)


def points(name, seed, n=N):
    """Coefficients in the box, many of them on bounds and kinks and some a hair away; targets, weights, some zero."""
    rng = np.random.default_rng(seed)
    target, weight = random_targets(name, rng, n), 10.0 ** rng.uniform(-2, 2, n)
    weight[rng.random(n) < 0.1] = 0.0
    lower, upper = np.array([LOSSES[name].bounds(y, w, LOSSES[name].parameter) for y, w in zip(target, weight)]).T
    coef = random_coef(rng, lower, upper)
    beside = np.clip(coef + 1e-13 * weight * rng.choice([-1.0, 1.0], n), lower, upper)
    return np.where(rng.random(n) < 0.2, beside, coef), target, weight, (lower, upper)


def each(function, *arrays, parameter):
    return np.array([function(*numbers, parameter) for numbers in zip(*arrays)])


@triton.jit
def _evaluate(coef, target, weight, parameter, out, N: tl.constexpr, LOSS: tl.constexpr):
    place = tl.arange(0, N)
    c, y, w = tl.load(coef + place), tl.load(target + place), tl.load(weight + place)
    number = tl.load(parameter)
    lower, upper = bounds(y, w, number, LOSS)
    left, right, curvature = slopes(c, y, w, number, LOSS)
    tl.store(out + place, lower)
    tl.store(out + N + place, upper)
    tl.store(out + 2 * N + place, left)
    tl.store(out + 3 * N + place, right)
    tl.store(out + 4 * N + place, curvature)


@every_loss
@given(seeds)
def test_triton_slopes_and_bounds(name, seed):
    loss = LOSSES[name]
    coef, target, weight, box = points(name, seed)
    out = torch.full((5, N), torch.nan, dtype=torch.float64, device=DEVICE)
    spec = spec_of_loss(loss)
    parameter = tensor(np.array([spec.parameter]))
    _evaluate[(1,)](tensor(coef), tensor(target), tensor(weight), parameter, out, N=N, LOSS=spec.number)
    found = out.cpu().numpy()
    np.testing.assert_array_equal(found[:2], box)
    expected = each(loss.slopes, coef, target, weight, parameter=loss.parameter).T
    np.testing.assert_allclose(found[2:], expected, rtol=1e-13, atol=1e-13)


@every_loss
@given(seeds)
def test_torch_functions(name, seed):
    loss, spec = LOSSES[name], spec_of_loss(LOSSES[name])
    coef, target, weight, box = points(name, seed)
    prediction = np.random.default_rng(seed).normal(size=N) * 5
    on_device = tensor(coef), tensor(target), tensor(weight)
    np.testing.assert_array_equal(torch.stack(torch_losses.bounds(spec, *on_device[1:])).cpu(), box)
    found = torch.stack(torch_losses.slopes(spec, *on_device)).cpu()
    expected = each(loss.slopes, coef, target, weight, parameter=loss.parameter).T
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-13)
    found = torch_losses.dual(spec, *on_device).cpu()
    expected = each(loss.dual, coef, target, weight, parameter=loss.parameter)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    found = torch_losses.primal(spec, tensor(prediction), *on_device[1:]).cpu()
    expected = each(loss.primal, prediction, target, weight, parameter=loss.parameter)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@every_loss
@pytest.mark.parametrize("intercept", [False, True])
def test_gap_and_bias_are_those_of_the_problem(name, intercept):
    loss, rng = LOSSES[name], np.random.default_rng(0)
    coef, target, weight, _ = points(name, 1)
    problem = Problem.build(loss, target, weight, intercept)
    decision = rng.normal(size=N)
    expected = problem.measure(0, coef, decision)
    measure = CardProblem.of(problem, torch.device(DEVICE)).measure(0, tensor(coef), tensor(decision))
    for number in ("objective", "duality_gap", "violation", "bias"):
        assert getattr(measure, number) == pytest.approx(getattr(expected, number), rel=1e-12), number
    left, right, _ = torch_losses.slopes(spec_of_loss(loss), tensor(coef), tensor(target), tensor(weight))
    bias = torch_losses.fitting_bias(-(tensor(decision) + right), tensor(decision) + left)
    if intercept:
        assert float(bias) == pytest.approx(expected.bias, rel=1e-13)


@given(seeds)
def test_bias_of_many_blocks_at_once(seed):
    rng = np.random.default_rng(seed)
    upward, downward = rng.normal(size=(2, 6, 9)).round(1)
    downward = np.where(
        rng.random((6, 1)) * rng.random((6, 9)) > 0.3, -upward, downward
    )  # some blocks without free ones
    upward[rng.random((6, 9)) < 0.2] = -np.inf
    downward[rng.random((6, 9)) < 0.2] = -np.inf
    upward[0], downward[1] = -np.inf, -np.inf
    expected = [fitting_bias(up, down) for up, down in zip(upward, downward)]
    found = torch_losses.fitting_bias(tensor(upward), tensor(downward))
    np.testing.assert_allclose(found.cpu(), expected, rtol=1e-15)


def test_losses_of_the_user_need_the_cpu():
    class Own(Hinge):
        pass

    with pytest.raises(ValueError, match=r"Own.*device='cpu'"):
        spec_of_loss(Own())
