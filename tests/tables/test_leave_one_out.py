"""The loss is what refitting without each row gives, and its gradient is that of finite differences."""

import numpy as np
import pytest

from parablock.tables.columns import View
from parablock.tables.kernels import FullKernel, LaplaceKernel, PowerKernel
from parablock.tables.leave_one_out import Problem, Workspace, left_out, loss_and_gradient

N, NUMERIC, D = 60, 3, 5


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def problem(rng, grouped):
    X = rng.normal(size=(N, D))
    X[:, NUMERIC:] = rng.integers(0, 2, (N, D - NUMERIC))
    line = X.copy()
    line[:, NUMERIC:] -= 0.5
    weight = rng.integers(1, 4, N) / 2.0
    group = np.sort(np.append(np.arange(15), rng.integers(0, 15, N - 15))) if grouped else None
    return Problem(View(X, line, NUMERIC), rng.normal(size=(N, 2)), weight / weight.mean(), group)


def kernels(rng):
    """Each with parameters somewhere on the way."""
    log_w = rng.normal(size=D) * 0.3
    full = FullKernel(D, NUMERIC, log_w)
    z = full.start(np.log(0.6))
    yield LaplaceKernel(D, NUMERIC), log_w
    yield PowerKernel(D, NUMERIC), np.append(log_w, np.log(0.5))
    yield full, z + 0.1 * rng.normal(size=len(z))


def values_by_hand(kernel, z, view):
    """Kernel values of all pairs, straight from the formulas."""
    X, d = view.X, D
    difference = X[:, None] - X[None]
    if isinstance(kernel, LaplaceKernel):
        return np.exp(-np.abs(difference) @ np.exp(z))
    if isinstance(kernel, PowerKernel):
        return np.exp(-(((difference**2) @ np.exp(z[:d])) ** np.exp(z[d])))
    E, rest = z[: d * d].reshape(d, d), np.exp(z[d * d :])
    p, b, linear = rest[0], rest[1], rest[2 : 2 + d]
    v, t = rest[2 + d : 2 + d + NUMERIC], rest[2 + d + NUMERIC :]
    moved = (difference * np.exp(kernel.log_w / 2)) @ E
    columns = np.exp(-t * np.abs(difference[:, :, :NUMERIC])) @ v
    return np.exp(-((moved**2).sum(axis=2) ** p)) + b + (view.line * linear) @ view.line.T + columns


@pytest.mark.parametrize("which", range(3))
def test_kernel_values_are_those_of_the_formulas(rng, which):
    view = problem(rng, False).view
    kernel, z = list(kernels(rng))[which]
    expected = values_by_hand(kernel, z, view)
    below, across = np.zeros((N, N)), np.zeros((N, N))
    kernel.value(z, view, None, below, np.zeros((N, N)))
    kernel.value(z, view, view, across, across)
    assert np.allclose(np.tril(below), np.tril(expected), atol=1e-12)
    assert np.allclose(across, expected, atol=1e-12)


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("which", range(3))
def test_left_out_decisions_are_those_of_refitting_without_each_row(rng, which, grouped):
    given = problem(rng, grouped)
    kernel, z = list(kernels(rng))[which]
    K, ridge = values_by_hand(kernel, z, given.view), 0.05
    found = left_out(kernel, given, np.append(z, np.log(ridge)), Workspace(N))
    group = np.arange(N) if given.group is None else given.group
    for g in np.unique(group):
        out, rest = group == g, group != g
        alpha = np.linalg.solve(K[np.ix_(rest, rest)] + np.diag(ridge / given.weight[rest]), given.target[rest])
        assert np.allclose(found.decision[out], K[np.ix_(out, rest)] @ alpha, atol=1e-9)
    alpha = np.linalg.solve(K + np.diag(ridge / given.weight), given.target)
    assert np.allclose(found.alpha, alpha, atol=1e-9)
    squares = ((found.decision - given.target) ** 2).mean(axis=1)
    assert found.loss == pytest.approx(np.average(squares, weights=given.weight), rel=1e-12)


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("which", range(3))
def test_gradient_is_that_of_finite_differences(rng, which, grouped):
    given, space = problem(rng, grouped), Workspace(N)
    kernel, z = list(kernels(rng))[which]
    z = np.append(z, np.log(0.05))
    loss, gradient = loss_and_gradient(kernel, given, z, space)
    assert loss == pytest.approx(left_out(kernel, given, z, space).loss, rel=1e-12)
    step, found = 1e-4, np.empty(len(z))
    for i in range(len(z)):
        at = []
        for move in (-2, -1, 1, 2):
            moved = z.copy()
            moved[i] += move * step
            at.append(left_out(kernel, given, moved, space).loss)
        found[i] = (at[0] - 8 * at[1] + 8 * at[2] - at[3]) / (12 * step)  # of fourth order
    assert np.allclose(gradient, found, rtol=1e-6, atol=1e-6 * np.abs(gradient).max())


def test_equal_rows_give_no_gradient_of_their_own(rng):
    """The slope of D^p has a pole there."""
    given = problem(rng, False)
    X = given.view.X.copy()
    X[1] = X[0]
    kernel, z = list(kernels(rng))[1]
    equal = Problem(View(X, X, NUMERIC), given.target, given.weight)
    _, gradient = loss_and_gradient(kernel, equal, np.append(z, np.log(0.05)), Workspace(N))
    X[1, 0] += 1e-5
    near = Problem(View(X, X, NUMERIC), given.target, given.weight)
    _, other = loss_and_gradient(kernel, near, np.append(z, np.log(0.05)), Workspace(N))
    assert np.allclose(gradient, other, rtol=1e-2, atol=1e-3 * np.abs(other).max())


def test_a_matrix_that_is_not_positive_definite_is_told(rng):
    given, space = problem(rng, False), Workspace(N)
    X = np.zeros((N, D))
    same = Problem(View(X, X, NUMERIC), given.target, given.weight)
    z = np.append(np.zeros(D), np.log(1e-300))
    assert left_out(LaplaceKernel(D, NUMERIC), same, z, space) is None
    assert loss_and_gradient(LaplaceKernel(D, NUMERIC), same, z, space) is None


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("which", range(3))
def test_single_precision_is_near(rng, which, grouped):
    """With a ridge that is large enough to learn in it, and in the same memory."""
    given, space = problem(rng, grouped), Workspace(N)
    kernel, z = list(kernels(rng))[which]
    z = np.append(z, np.log(kernel.least_single_ridge(z)))
    loss, gradient = loss_and_gradient(kernel, given, z, space)
    again, other = loss_and_gradient(kernel, given, z, space.single)
    assert space.single["K"].dtype == np.float32
    assert np.shares_memory(space["K"], space.single["K"])
    assert again != loss
    assert again == pytest.approx(loss, rel=1e-3)
    assert np.linalg.norm(other - gradient) < 1e-2 * np.linalg.norm(gradient)
