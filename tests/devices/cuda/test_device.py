"""The GPU behind the device seam: the same results as the CPU, and clear words about what it does not have.

Without a card Triton's interpreter runs the kernels, slowly, so everything here is small.
"""

import os
import subprocess
import sys
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_moons

from parablock import (
    Checkpoint,
    KernelLogisticRegression,
    KernelQuantileRegressor,
    KernelRidge,
    KernelSVC,
    KernelSVR,
    solve,
)
from parablock.devices import DEVICES, BlockRule
from parablock.kernels import make_kernel
from parablock.losses import Hinge
from parablock.mapped import MappedRows
from parablock.partition import make_partitioner
from parablock.problem import Problem
from tests.oracle import LOSSES, dual_sum, random_coef, random_targets

pytestmark = pytest.mark.slow  # runs interpreted kernels

torch = pytest.importorskip("torch", reason="the GPU's kernels work on torch tensors")
pytest.importorskip("triton", reason="the GPU's kernels are Triton's")

KERNELS = ["rbf", "laplacian", "chi2", "matern32", "matern52", "linear", "polynomial", "sigmoid", "cosine"]
GREEDY = BlockRule(outputs=[0], choice="greedy", pairs=False, fraction=0.0, floor=1e-5, max_updates=None, seed=0)


@pytest.fixture(scope="module")
def gpu():
    return DEVICES["cuda"](1, "100MB")


@pytest.fixture(scope="module")
def cpu():
    device = DEVICES["cpu"](1, "100MB")
    with device.session():
        yield device


def rows_of(n, seed=0, d=5):
    return np.random.default_rng(seed).uniform(size=(n, d))


# ---------------------------------------------------------------------------------------------------- products


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("format", [np.asarray, sp.csr_matrix])
def test_products_are_those_of_the_cpu(gpu, cpu, name, format):
    kernel, coef = make_kernel(name, 0.8, 0.5, 3), np.random.default_rng(2).normal(size=(3, 21))
    results = []
    for device in (cpu, gpu):
        rows, columns = device.samples(format(rows_of(40)), kernel), device.samples(format(rows_of(21, 1)), kernel)
        results.append((device.kernel_dot(kernel, rows, columns, coef), device.gram(kernel, rows, columns)))
        np.testing.assert_allclose(
            kernel.diagonal(rows.self_overlap), kernel.diagonal(rows.take(slice(None)).self_overlap)
        )
    for here, there in zip(*results):
        np.testing.assert_allclose(there, here, atol=2e-6 * np.abs(here).max())


def test_columns_by_number(gpu):
    kernel = make_kernel("rbf", 2.0)
    samples = gpu.samples(rows_of(50), kernel)
    rows, coef = np.array([3, 41, 7]), np.array([[1.0, -2.0, 0.5]])
    expected = coef @ gpu.gram(kernel, samples.take(rows), samples)
    np.testing.assert_allclose(gpu.column_dot(kernel, samples, samples, rows, coef), expected, atol=1e-5)
    assert gpu.column_dot(kernel, samples, samples, rows[:0], coef[:, :0]).shape == (1, 50)


def test_whole_numbers_stay_whole(gpu):
    X = np.random.default_rng(0).integers(0, 256, size=(30, 20)).astype(np.float32)
    assert gpu.wants_whole_numbers(X)
    assert gpu.samples(X, make_kernel("rbf", 1e-5), np.rint(X.mean(axis=0))).operand.kind == "exact"
    assert not gpu.wants_whole_numbers(X / 7)


def test_one_giant_row_costs_the_others_no_digits(gpu, cpu):
    kernel, coef = make_kernel("rbf", 0.5), np.random.default_rng(2).normal(size=(1, 20))
    X = rows_of(40)
    X[3] *= 1e4
    columns = rows_of(20, 1)  # made ready apart, on a grid of their own
    here, there = (
        device.kernel_dot(kernel, device.samples(X, kernel), device.samples(columns, kernel), coef)
        for device in (cpu, gpu)
    )
    np.testing.assert_allclose(there, here, atol=5e-6 * np.abs(here).max())


def test_rows_on_disk_that_were_chosen(gpu, tmp_path):
    np.save(tmp_path / "X.npy", rows_of(30).astype(np.float32))
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    kernel = make_kernel("rbf", 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        some = gpu.samples(MappedRows(mapped, np.array([5, 2, 7])), kernel)
        everyone = gpu.samples(mapped, kernel)
    np.testing.assert_array_equal(some.features(), everyone.features(np.array([5, 2, 7])))


def test_values_are_counted(cpu):
    gpu = DEVICES["cuda"](1, "100MB")
    kernel = make_kernel("rbf", 1.0)
    samples = gpu.samples(rows_of(20), kernel)
    gpu.kernel_dot(kernel, samples, samples.take(np.arange(7)), np.ones((4, 7)))
    assert gpu.kernel_evaluations == 20 * 7


# ------------------------------------------------------------------------------------------------------ blocks


def block_case(name, zero_sum, n=33):
    rng = np.random.default_rng(0)
    problem = Problem.build(LOSSES[name], random_targets(name, rng, (2, n)), rng.uniform(0.5, 2.0, (2, n)), zero_sum)
    coef = problem.feasible(random_coef(rng, problem.lower, problem.upper))
    X = rng.normal(size=(n, 3))
    blocks = [np.sort(part) for part in np.array_split(rng.permutation(n), 3)]
    return X, problem, coef, blocks


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("pairs", [False, True])
def test_blocks_reach_the_cpus_optimum(gpu, cpu, name, pairs):
    X, problem, coef, blocks = block_case(name, pairs)
    kernel = make_kernel("rbf", 0.5)
    K = cpu.gram(kernel, cpu.samples(X, kernel), cpu.samples(X, kernel))
    point = coef, coef @ K
    rule = BlockRule([0, 1], "greedy", pairs, 0.0, 1e-5, None, 0)
    values = []
    for device in (cpu, gpu):
        steps = device.solve_blocks(kernel, device.samples(X, kernel), problem, point, blocks, rule)
        values.append([])
        for step, rows in zip(steps, blocks):
            np.testing.assert_array_equal(step.rows, rows)
            for output in range(2):
                d, at = step.step[output], coef[output, rows] + step.step[output]
                assert np.all(at >= problem.lower[output, rows] - 1e-12)
                assert np.all(at <= problem.upper[output, rows] + 1e-12)
                if pairs:
                    assert d.sum() == pytest.approx(0.0, abs=1e-9)
                terms = dual_sum(LOSSES[name], at, problem.target[output, rows], problem.weight[output, rows])
                model = 0.5 * d @ K[np.ix_(rows, rows)] @ d + point[1][output, rows] @ d + terms
                values[-1].append(model)
                assert step.wish[output].max() < 1e-3
    np.testing.assert_allclose(values[1], values[0], atol=1e-5)


def test_outputs_that_were_not_asked_for_stay(gpu):
    X, problem, coef, blocks = block_case("hinge", False)
    kernel = make_kernel("rbf", 0.5)
    rule = BlockRule([0, 1], "greedy", False, 0.0, 1e-4, None, 0, of_block=[(0,), (1,), (0, 1)])
    steps = gpu.solve_blocks(kernel, gpu.samples(X, kernel), problem, (coef, 0 * coef), blocks, rule)
    assert not steps[0].step[1].any()
    assert not steps[1].step[0].any()
    assert np.isnan(steps[0].wish[1]).all()
    assert np.isnan(steps[1].bias[0])
    assert np.isfinite(steps[2].bias).all()


def test_blocks_come_in_waves_and_in_parts(monkeypatch):
    from parablock.devices.cuda import device as module

    X, problem, coef, blocks = block_case("hinge", False, n=80)
    kernel = make_kernel("rbf", 0.5)
    gpu = DEVICES["cuda"](1, 12_000)
    whole = gpu.solve_blocks(kernel, gpu.samples(X, kernel), problem, (coef, 0 * coef), blocks, GREEDY)
    assert len(gpu._waves(blocks)) == len(blocks)  # no two matrices have room at once
    monkeypatch.setattr(module, "LARGEST_BLOCK", 16)
    parts = gpu.solve_blocks(kernel, gpu.samples(X, kernel), problem, (coef, 0 * coef), blocks, GREEDY)
    for step, other, rows in zip(whole, parts, blocks):
        np.testing.assert_array_equal(other.rows, rows)
        assert other.step.shape == step.step.shape
        assert np.corrcoef(step.step[0], other.step[0])[0, 1] > 0.5  # neighbours of another part are not heard


# --------------------------------------------------------------------------------------------------- partition


@pytest.mark.parametrize(("n", "n_blocks"), [(100, 7), (64, 8), (3, 5), (1, 1)])
def test_the_tree_cuts_into_equal_blocks(gpu, n, n_blocks):
    kernel = make_kernel("rbf", 1.0)
    blocks, _ = make_partitioner("tree", n).blocks(
        gpu, kernel, gpu.samples(rows_of(n), kernel), n_blocks, np.random.default_rng(0)
    )
    np.testing.assert_array_equal(np.sort(np.concatenate(blocks)), np.arange(n))
    sizes = [len(block) for block in blocks]
    assert max(sizes) - min(sizes) <= 1
    for block in blocks:
        np.testing.assert_array_equal(block, np.sort(block))


def test_the_tree_is_as_good_as_the_cpus(gpu, cpu):
    kernel, X = make_kernel("rbf", 20.0), rows_of(600, d=2)
    inside = [
        make_partitioner("tree", 600).partition(device, kernel, device.samples(X, kernel), 8, np.random.default_rng(0))
        for device in (cpu, gpu)
    ]
    assert inside[1].kernel_mass_inside > 0.9 * inside[0].kernel_mass_inside
    np.testing.assert_allclose(inside[1].centres.points[3], X[inside[1].blocks[3]].mean(axis=0), rtol=1e-5)


def test_rows_that_are_all_alike_are_cut_too(gpu):
    blocks, _ = make_partitioner("tree", 10).blocks(
        gpu,
        make_kernel("rbf", 1.0),
        gpu.samples(np.zeros((10, 2)), make_kernel("rbf", 1.0)),
        4,
        np.random.default_rng(0),
    )
    assert sorted(len(block) for block in blocks) == [2, 2, 3, 3]


# -------------------------------------------------------------------------------------------------------- fits

MOONS = make_moons(90, noise=0.2, random_state=0)
NUMBERS = rows_of(90), np.sin(6 * rows_of(90)[:, 0]) + rows_of(90)[:, 1]
SETTINGS = {"gamma": 2.0, "tol": 1e-3, "n_blocks": 3, "random_state": 0}
ESTIMATORS = {
    "hinge": (KernelSVC(C=2.0, **SETTINGS), MOONS),
    "hinge, no intercept": (KernelSVC(C=2.0, fit_intercept=False, **SETTINGS), MOONS),
    "squared hinge": (KernelSVC(C=2.0, loss="squared_hinge", **SETTINGS), MOONS),
    "logistic": (KernelLogisticRegression(C=2.0, **{**SETTINGS, "tol": 1e-2}), MOONS),
    "epsilon-insensitive": (KernelSVR(C=2.0, **SETTINGS), NUMBERS),
    "squared error": (KernelRidge(C=2.0, **SETTINGS), NUMBERS),
    "quantile": (KernelQuantileRegressor(C=2.0, quantile=0.7, **SETTINGS), NUMBERS),
    "fixed partition": (KernelSVC(C=2.0, regroup=False, **{**SETTINGS, "tol": 1e-2}), MOONS),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_fits_end_at_the_cpus_optimum(name):
    estimator, (X, y) = ESTIMATORS[name]
    here = estimator.set_params(device="cpu").fit(X, y)
    expected, predicted = here.dual_objective_, here.predict(X)
    there = estimator.set_params(device="cuda").fit(X, y)
    assert there.dual_objective_ == pytest.approx(expected, rel=1e-5 if there.tol < 1e-2 else 1e-3)
    # The model that a GPU has trained predicts without one.
    alone = there.set_params(device="cpu").predict(X)
    if hasattr(there, "classes_"):
        assert np.mean(alone == predicted) > 0.97
    else:
        np.testing.assert_allclose(alone, predicted, atol=0.05 * np.ptp(predicted))
    np.testing.assert_allclose(there.set_params(device="cuda").predict(X), alone, atol=1e-4)


def test_csr_rows():
    X = sp.random(80, 30, density=0.2, format="csr", random_state=0)
    y = (X @ np.random.default_rng(0).normal(size=30) > 0).astype(int)
    settings = {"C": 5.0, "gamma": 1.0, "tol": 1e-3, "random_state": 0, "n_blocks": 2}
    here, there = (KernelSVC(device=device, **settings).fit(X, y) for device in ("cpu", "cuda"))
    assert there.dual_objective_ == pytest.approx(here.dual_objective_, rel=1e-5)
    np.testing.assert_array_equal(there.predict(X), here.predict(X))


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_torch_tensors(device):
    X, y = MOONS
    settings = {"C": 2.0, **SETTINGS, "device": device}
    model = KernelSVC(**settings).fit(torch.tensor(X, requires_grad=True), torch.tensor(y))
    arrays = KernelSVC(**settings).fit(X, y)
    assert model.dual_objective_ == arrays.dual_objective_
    np.testing.assert_array_equal(model.predict(torch.tensor(X)), arrays.predict(X))


@pytest.mark.parametrize("devices", [("cpu", "cuda"), ("cuda", "cpu")])
def test_a_checkpoint_goes_from_device_to_device(tmp_path, devices):
    path = Checkpoint(tmp_path / "run", seconds=0)
    model = KernelSVC(C=2.0, checkpoint=path, resume="auto", **SETTINGS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.set_params(max_iter=1, device=devices[0]).fit(*MOONS)
    model.set_params(max_iter=1000, device=devices[1]).fit(*MOONS)
    whole = KernelSVC(C=2.0, **SETTINGS).fit(*MOONS)
    assert model.n_iter_ > 1
    assert model.dual_objective_ == pytest.approx(whole.dual_objective_, rel=1e-5)


# ---------------------------------------------------------------------------------------- what a GPU does not have


class OwnLoss(Hinge):
    pass


@pytest.mark.parametrize(
    ("fit", "words"),
    [
        (lambda X, y: KernelSVC(device="cuda", kernel="precomputed").fit(X @ X.T, y), "Precomputed"),
        (lambda X, y: KernelSVC(device="cuda", kernel=lambda a, b: a @ b.T).fit(X, y), "kernel"),
        (lambda X, y: KernelSVC(device="cuda", block_solver="random").fit(X, y), "block_solver"),
        (lambda X, y: solve(X, 2.0 * y - 1, OwnLoss(), make_kernel("rbf", 1.0), device="cuda"), "OwnLoss"),
    ],
    ids=["precomputed", "callable", "random", "own loss"],
)
def test_what_is_missing_is_named_with_the_alternative(fit, words):
    with pytest.raises(ValueError, match=words) as caught:
        fit(*MOONS)
    assert "device='cpu'" in str(caught.value)


def test_data_that_does_not_fit_is_refused(gpu, monkeypatch):
    monkeypatch.setattr(type(gpu), "_free", lambda self: 1000)
    with pytest.raises(MemoryError, match=r"50 rows of 5 features need 1,024 bytes even for 16 of them on the GPU"):
        gpu.samples(rows_of(50), make_kernel("rbf", 1.0))


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
class TestWithoutACard:
    def python(self, program):
        environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
        return subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)

    def test_cuda_says_so(self):
        done = self.python(
            "import numpy as np, parablock\nparablock.KernelSVC(device='cuda').fit(np.eye(4), [0, 1, 0, 1])"
        )
        assert "needs an NVIDIA GPU" in done.stderr

    def test_auto_takes_the_cpu(self):
        done = self.python(
            "import numpy as np, parablock\n"
            "print(parablock.KernelSVC(device='auto').fit(np.eye(4), [0, 1, 0, 1]).n_iter_ > 0)"
        )
        assert done.stdout.strip() == "True", done.stderr


# --------------------------------------------------------------------------------------------------------- digits


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_data_that_needs_float64_is_refused(dtype):
    X = rows_of(40)
    X[:, 0] *= 1e5
    y = X[:, 1] > np.median(X[:, 1])
    with pytest.raises(ValueError, match=r"rbf kernel with gamma=2 .*device='cuda' computes.*Scale.*device='cpu'"):
        KernelSVC(gamma=2.0, device="cuda").fit(X.astype(dtype), y)
    manhattan = KernelSVC(gamma=2.0, kernel="laplacian", tol=0.1, device="cuda")  # is computed of differences
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        manhattan.fit(X.astype(np.float32), y)
