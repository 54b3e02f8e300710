"""Fused kernel products and kernel matrices of the GPU, against NumPy in float64."""

# ruff: noqa: E402
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the GPU's kernels work on torch tensors")
pytest.importorskip("triton", reason="the GPU's kernels are written in Triton")

from parablock.datasets import load_covtype_sample
from parablock.devices.cuda import fused
from parablock.devices.cuda.fused import block_grams, gram, kernel_dot
from parablock.devices.cuda.kernel_values import spec_of
from parablock.devices.cuda.operands import DOUBLE, EXACT, FAST, FLOAT32, prepare
from parablock.kernels import Called, Precomputed, make_kernel

pytestmark = pytest.mark.slow  # runs interpreted kernels

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
GAMMA, COEF0, DEGREE = 0.4, 0.7, 3


def squared(X, Z):
    return ((X[:, None, :] - Z[None, :, :]) ** 2).sum(axis=2)


def matern(X, Z, factor, quadratic):
    a = np.sqrt(factor * 2 * GAMMA * squared(X, Z))
    return (1 + a + quadratic * a**2) * np.exp(-a)


def chi_squared(X, Z):
    x, z = X[:, None, :], Z[None, :, :]
    return ((x - z) ** 2 / np.where(x + z > 0, x + z, 1)).sum(axis=2)


ORACLES = {
    "rbf": lambda X, Z: np.exp(-GAMMA * squared(X, Z)),
    "matern32": lambda X, Z: matern(X, Z, 3, 0),
    "matern52": lambda X, Z: matern(X, Z, 5, 1 / 3),
    "linear": lambda X, Z: X @ Z.T,
    "polynomial": lambda X, Z: (GAMMA * X @ Z.T + COEF0) ** DEGREE,
    "sigmoid": lambda X, Z: np.tanh(GAMMA * X @ Z.T + COEF0),
    "cosine": lambda X, Z: X @ Z.T / np.linalg.norm(X, axis=1)[:, None] / np.linalg.norm(Z, axis=1),
    "laplacian": lambda X, Z: np.exp(-GAMMA * np.abs(X[:, None, :] - Z[None, :, :]).sum(axis=2)),
    "chi2": lambda X, Z: np.exp(-GAMMA * chi_squared(X, Z)),
}
BY_FEATURES = ("laplacian", "chi2")
CASES = [
    (name, kind) for name in ORACLES for kind in (EXACT, DOUBLE, FLOAT32) if kind == FLOAT32 or name not in BY_FEATURES
]
RBF = make_kernel("rbf", GAMMA)


def make(name):
    return make_kernel(name, GAMMA, COEF0, DEGREE)


def tensor(array):
    return torch.tensor(array, device=DEVICE)


def data(n, d=5, seed=0, whole=False):
    """Rows that are not negative, as chi2 wants them; whole numbers for the exact kind."""
    X = np.abs(np.random.default_rng(seed).normal(size=(n, d)))
    return (np.round(2 * X) / 2 if whole else X).astype(np.float32)


def pair(n, m, d=5, kind=DOUBLE):
    """Rows and columns, as float64 arrays and as operands."""
    X, Z = data(n, d, 0, kind == EXACT), data(m, d, 1, kind == EXACT)
    columns = prepare(tensor(Z), kind)
    return X.astype(np.float64), Z.astype(np.float64), prepare(tensor(X), kind, like=columns), columns


def coefficients(outputs, m):
    return np.random.default_rng(2).normal(size=(outputs, m)).astype(np.float32)


def error(found, expected):
    """Largest deviation, relative to the largest value."""
    return np.abs(found.cpu().numpy() - expected).max() / np.abs(expected).max()


# --------------------------------------------------------------------------------------------------- kernel_dot


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_every_kernel_and_every_kind_of_operand(name, kind):
    X, Z, rows, columns = pair(17, 70, kind=kind)
    coef = coefficients(1, 70)
    found = kernel_dot(spec_of(make(name)), rows, columns, tensor(coef))
    assert found.dtype == torch.float64
    assert error(found, coef @ ORACLES[name](Z, X)) <= 2e-6


@pytest.mark.parametrize("n", [1, 17, 130])
@pytest.mark.parametrize("m", [1, 17, 130])
def test_ragged_sizes(n, m):
    X, Z, rows, columns = pair(n, m)
    coef = coefficients(2, m)
    assert error(kernel_dot(spec_of(RBF), rows, columns, tensor(coef)), coef @ ORACLES["rbf"](Z, X)) <= 1e-6


@pytest.mark.parametrize("outputs", [1, 2, 3, 4, 5, 17, 33])
def test_several_outputs(outputs):
    X, Z, rows, columns = pair(20, 40)
    coef = coefficients(outputs, 40)
    found = kernel_dot(spec_of(RBF), rows, columns, tensor(coef))
    assert found.shape == (outputs, 20)
    assert error(found, coef @ ORACLES["rbf"](Z, X)) <= 1e-6


@pytest.mark.parametrize("kind", [EXACT, DOUBLE, FLOAT32])
@pytest.mark.parametrize("d", [1, 100, 200])
def test_few_and_many_features(kind, d):
    X, Z, rows, columns = pair(20, 40, d, kind)
    kernel = make_kernel("rbf", 1 / d)
    coef = coefficients(1, 40)
    expected = coef @ np.exp(-squared(Z, X) / d)
    assert error(kernel_dot(spec_of(kernel), rows, columns, tensor(coef)), expected) <= 3e-6


@pytest.mark.parametrize(("kind", "allowed"), [(None, 2e-6), (FAST, 1e-4), (FLOAT32, 1e-4)])
def test_narrow_kernels_keep_their_digits(kind, allowed):
    # Inner products are about 3 and the kernel is exp(-32 distance^2): a relative error of 1e-7 in each would be seen.
    X = load_covtype_sample()[0][:460].astype(np.float64)
    X = (X - X.mean(axis=0)).astype(np.float32)
    columns = prepare(tensor(X[60:]), kind)
    rows = prepare(tensor(X[:60]), kind, like=columns)
    coef = coefficients(1, 400)
    expected = coef @ np.exp(-32.0 * squared(X[60:].astype(np.float64), X[:60].astype(np.float64)))
    assert error(kernel_dot(spec_of(make_kernel("rbf", 32.0)), rows, columns, tensor(coef)), expected) <= allowed


def test_inner_products_of_pixels_are_exact():
    rng = np.random.default_rng(0)
    X, Z = rng.integers(0, 256, (20, 100)), rng.integers(0, 256, (30, 100))
    rows, columns = prepare(tensor(X)), prepare(tensor(Z))
    assert rows.parts == columns.parts == 1
    np.testing.assert_array_equal(gram(spec_of(make("linear")), rows, columns).cpu().numpy(), X @ Z.T)


def test_rows_of_one_part_times_columns_of_two():
    X, Z = data(20, whole=True), data(30, seed=1)
    rows, columns = prepare(tensor(X)), prepare(tensor(Z))
    assert (rows.parts, columns.parts) == (1, 2)
    expected = ORACLES["rbf"](X.astype(np.float64), Z.astype(np.float64))
    assert error(gram(spec_of(RBF), rows, columns), expected) <= 1e-6
    assert error(gram(spec_of(RBF), columns, rows), expected.T) <= 1e-6


def test_rows_far_outside_the_columns_are_far_from_them():
    X, Z = data(20), data(30, seed=1)
    X[7] = 1e7  # makes all rows coarser
    columns = prepare(tensor(Z))
    found = gram(spec_of(RBF), prepare(tensor(X), like=columns), columns).cpu().numpy()
    assert np.all(np.isfinite(found))
    assert not found[7].any()


def test_large_coefficients_may_cancel():
    _, _, rows, columns = pair(10, 400)
    coef = np.tile(np.float32([1e4, -1e4]), 200)[None, :]
    values = gram(spec_of(RBF), rows, columns).cpu().numpy().astype(np.float64)
    assert error(kernel_dot(spec_of(RBF), rows, columns, tensor(coef)), coef @ values.T) <= 1e-6


def test_the_same_digits_in_every_run():
    _, _, rows, columns = pair(30, 300)
    coef = tensor(coefficients(1, 300))
    first, again = (kernel_dot(spec_of(RBF), rows, columns, coef) for _ in range(2))
    assert torch.equal(first, again)


@pytest.mark.parametrize("programs", [1, 1000])
def test_ranges_of_columns_add_up(monkeypatch, programs):
    monkeypatch.setattr(fused, "_PROCESSORS", programs)
    monkeypatch.setattr(fused, "_processors", lambda device: programs)
    X, Z, rows, columns = pair(30, 300)
    coef = coefficients(1, 300)
    assert error(kernel_dot(spec_of(RBF), rows, columns, tensor(coef)), coef @ ORACLES["rbf"](Z, X)) <= 1e-6


def test_no_rows_and_no_columns():
    _, _, rows, columns = pair(5, 6)
    nothing = columns.take(slice(0, 0))
    assert kernel_dot(spec_of(RBF), rows, nothing, torch.zeros((2, 0), device=DEVICE)).tolist() == [[0.0] * 5] * 2
    assert kernel_dot(spec_of(RBF), nothing, columns, torch.zeros((2, 6), device=DEVICE)).shape == (2, 0)


# ------------------------------------------------------------------------------------------------------ matrices


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_matrices_of_every_kernel(name, kind):
    X, Z, rows, columns = pair(17, 70, kind=kind)
    found = gram(spec_of(make(name)), rows, columns)
    assert found.dtype == torch.float32
    assert error(found, ORACLES[name](X, Z)) <= 1e-6


@pytest.mark.parametrize(("dtype", "allowed"), [(torch.float32, 1e-6), (torch.float16, 5e-4)])
@pytest.mark.parametrize(("name", "kind"), [("rbf", DOUBLE), ("polynomial", DOUBLE), ("laplacian", FLOAT32)])
def test_matrices_of_many_blocks(name, kind, dtype, allowed):
    X = data(200)
    samples = prepare(tensor(X), kind)
    rng = np.random.default_rng(3)
    size = 70 if kind == FLOAT32 else 140  # more than one tile
    blocks = np.stack([rng.permutation(200)[:size] for _ in range(2)])
    blocks[1, 17:] = -1
    found = block_grams(spec_of(make(name)), samples, tensor(blocks), dtype).cpu().numpy().astype(np.float64)
    assert found.shape == (2, size, size)
    for block, matrix in zip(blocks, found):
        expected = ORACLES[name](*2 * (X[block].astype(np.float64),))
        expected[block < 0], expected[:, block < 0] = 0.0, 0.0
        assert np.abs(matrix - expected).max() <= allowed * expected.max()
        np.testing.assert_allclose(matrix, matrix.T, atol=allowed * expected.max())
        if name != "polynomial":
            np.testing.assert_array_equal(np.diagonal(matrix), block >= 0)


# --------------------------------------------------------------------------------------------------- what is not


@pytest.mark.parametrize("kernel", [Precomputed(), Called(np.dot)])
def test_kernels_of_the_user_need_the_cpu(kernel):
    with pytest.raises(ValueError, match="device='cpu'"):
        spec_of(kernel)


def test_a_kernel_derived_from_a_known_one_is_unknown():
    class Own(type(RBF)):
        pass

    with pytest.raises(ValueError, match="Own"):
        spec_of(Own(1.0))


def test_operands_must_fit():
    X = tensor(data(5))
    with pytest.raises(ValueError, match="features"):
        gram(spec_of(RBF), prepare(X), prepare(tensor(data(5, 40))))
    with pytest.raises(ValueError, match="prepare them alike"):
        gram(spec_of(RBF), prepare(X), prepare(X, FLOAT32))
    with pytest.raises(ValueError, match="float32 operands"):
        gram(spec_of(make("laplacian")), prepare(X), prepare(X))
