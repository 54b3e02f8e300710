"""CSR rows that stay sparse on the card: products, partition, fits, and the rule which rows do."""

# ruff: noqa: E402
import numpy as np
import pytest
import scipy.sparse as sp

torch = pytest.importorskip("torch", reason="the GPU's kernels work on torch tensors")
pytest.importorskip("triton", reason="the GPU's kernels are Triton's")

from parablock import KernelSVC
from parablock.devices import DEVICES
from parablock.devices.cuda import samples as samples_module
from parablock.devices.cuda import sparse
from parablock.devices.cuda.kernel_values import spec_of
from parablock.devices.cuda.operands import Operand, operand_bytes, prepare
from parablock.devices.cuda.products import block_grams, gram
from parablock.devices.cuda.sparse import SparseOperand, sparse_bytes
from parablock.kernels import make_kernel
from parablock.partition import make_partitioner

pytestmark = pytest.mark.slow  # runs interpreted kernels

KERNELS = ["rbf", "laplacian", "chi2", "matern32", "matern52", "linear", "polynomial", "sigmoid", "cosine"]
FEATURES = 3000


@pytest.fixture(scope="module")
def gpu():
    return DEVICES["cuda"](1, "100MB")


@pytest.fixture(scope="module")
def cpu():
    device = DEVICES["cpu"](1, "100MB")
    with device.session():
        yield device


def make(name):
    return make_kernel(name, 0.05, 0.5, 3)


def wide(n, seed=0, width=FEATURES, entries=12):
    """Few entries a row, half of them among a few features that many rows have."""
    rng = np.random.default_rng(seed)
    rows = np.repeat(np.arange(n), entries)
    columns = np.where(rng.random(len(rows)) < 0.5, rng.integers(0, 20, len(rows)), rng.integers(0, width, len(rows)))
    values = np.where(rows == n // 2, 0.0, rng.uniform(0.1, 1.0, len(rows)))  # one row has nothing
    matrix = sp.csr_matrix((values, (rows, columns)), shape=(n, width))
    matrix.eliminate_zeros()
    return matrix


# ---------------------------------------------------------------------------------------------------- products


@pytest.mark.parametrize("name", KERNELS)
def test_products_are_those_of_the_cpu(gpu, cpu, name):
    kernel, coef = make(name), np.random.default_rng(2).normal(size=(3, 70))
    X, Z = wide(25), wide(70, 1)
    results = []
    for device in (cpu, gpu):
        rows, columns = device.samples(X, kernel), device.samples(Z, kernel)
        results.append(
            (device.kernel_dot(kernel, rows, columns, coef), device.gram(kernel, rows, columns), rows.self_overlap)
        )
    assert isinstance(rows.operand, SparseOperand)
    for here, there in zip(*results):
        np.testing.assert_allclose(there, here, atol=2e-6 * np.abs(here).max())


def test_values_of_both_signs_and_the_manhattan_distance(gpu):
    X, Z = wide(6), wide(7, 1)
    X.data[::2] *= -1
    Z.data[::3] *= -1
    kernel = make("laplacian")
    distance = np.abs(X.toarray()[:, None, :] - Z.toarray()[None, :, :]).sum(axis=2)
    found = gpu.gram(kernel, gpu.samples(X, kernel), gpu.samples(Z, kernel))
    np.testing.assert_allclose(found, np.exp(-kernel.gamma * distance), rtol=1e-5)


def test_more_entries_in_a_tile_than_features(gpu, cpu, monkeypatch):
    # The panel has then a line for every feature.
    monkeypatch.setattr(samples_module, "_DENSE_IS_WORTH", 0)
    X = sp.random(30, 40, density=0.3, format="csr", random_state=0)
    kernel = make_kernel("rbf", 1.0)
    samples = gpu.samples(X, kernel)
    assert isinstance(samples.operand, SparseOperand)
    expected = cpu.gram(kernel, cpu.samples(X, kernel), cpu.samples(X, kernel))
    np.testing.assert_allclose(gpu.gram(kernel, samples, samples), expected, atol=3e-6)  # norms are about 10


def test_tiles_of_rows_add_nothing(gpu, monkeypatch):
    kernel, coef = make("rbf"), np.ones((1, 10))
    rows, columns = gpu.samples(wide(25), kernel), gpu.samples(wide(10, 1), kernel)
    expected = gpu.kernel_dot(kernel, rows, columns, coef)
    monkeypatch.setattr(sparse, "_VALUES_AT_ONCE", 7 * 64)
    np.testing.assert_array_equal(gpu.kernel_dot(kernel, rows, columns, coef), expected)


def test_no_rows_and_no_columns(gpu):
    kernel = make("rbf")
    rows = gpu.samples(wide(5), kernel)
    nothing = rows.take(slice(0, 0))
    assert not gpu.kernel_dot(kernel, rows, nothing, np.zeros((2, 0))).any()
    assert gpu.kernel_dot(kernel, nothing, rows, np.ones((2, 5))).shape == (2, 0)


def test_entries_that_are_there_twice_are_added(gpu):
    twice = sp.csr_matrix((np.array([1.0, 2.0, 4.0]), np.array([7, 7, 9]), np.array([0, 3])), shape=(1, FEATURES))
    assert not twice.has_canonical_format
    kernel = make("linear")
    samples = gpu.samples(twice, kernel)
    assert gpu.gram(kernel, samples, samples) == [[25.0]]
    assert samples.self_overlap == [25.0]
    assert twice.nnz == 3  # the user's matrix is as it was


def test_rows_of_both_forms_can_be_multiplied(gpu, cpu):
    kernel = make("rbf")
    few = wide(40, entries=700)
    X, Z = few[:4], wide(30, 1)
    rows, columns = gpu.samples(X, kernel), gpu.samples(Z, kernel)
    assert isinstance(rows.operand, Operand)
    assert isinstance(columns.operand, SparseOperand)
    expected = cpu.gram(kernel, cpu.samples(X, kernel), cpu.samples(Z, kernel))
    np.testing.assert_allclose(gpu.gram(kernel, rows, columns), expected, atol=1e-6)
    np.testing.assert_allclose(gpu.gram(kernel, columns, rows), expected.T, atol=1e-6)


def test_dense_rows_of_another_kind_are_refused():
    rows = SparseOperand.of(wide(3), "product", torch.device("cpu"))
    with pytest.raises(ValueError, match="make them alike"):
        gram(spec_of(make("rbf")), rows, prepare(torch.zeros((2, FEATURES))))
    with pytest.raises(ValueError, match="features"):
        gram(spec_of(make("rbf")), rows, SparseOperand.of(wide(3, width=40), "product", torch.device("cpu")))


@pytest.mark.parametrize("name", ["rbf", "linear"])
def test_matrices_of_many_blocks(gpu, name):
    kernel = make(name)
    samples = gpu.samples(wide(30), kernel)
    blocks = np.full((2, 16), -1)
    blocks[0], blocks[1, :5] = np.arange(16), [29, 3, 7, 15, 0]
    found = block_grams(spec_of(kernel), samples.operand, samples.index(blocks)).cpu().numpy()
    everyone = gpu.gram(kernel, samples, samples)
    for block, matrix in zip(blocks, found):
        there = block >= 0
        np.testing.assert_allclose(
            matrix[np.ix_(there, there)], everyone[np.ix_(block[there], block[there])], atol=1e-6
        )
        assert not matrix[~there].any()
        assert not matrix[:, ~there].any()
        np.testing.assert_array_equal(matrix, matrix.T)
        if name == "rbf":
            np.testing.assert_array_equal(np.diagonal(matrix), there)


# ------------------------------------------------------------------------------------------- rows and partition


def test_rows_come_back_as_they_were(gpu):
    X = wide(20).astype(np.float32)
    samples = gpu.samples(X, make("rbf"))
    rows = np.array([3, 17, 3, 10])
    assert (samples.features() != X).nnz == 0
    assert (samples.take(rows).features() != X[rows]).nnz == 0
    assert (samples.take(slice(4, 9)).features(np.array([1])) != X[5]).nnz == 0
    mean = samples.mean(rows)
    assert sp.issparse(mean)  # few of its entries are not zero
    np.testing.assert_allclose(mean.toarray()[0], X[rows].toarray().mean(axis=0), atol=1e-6)
    direction = np.random.default_rng(0).normal(size=FEATURES)
    np.testing.assert_allclose(samples.project(rows, direction), X[rows] @ direction, atol=1e-5)


def test_csr_rows_that_are_dense_on_the_card_come_back_as_csr(gpu):
    X = sp.random(20, 30, density=0.3, format="csr", random_state=0)
    samples = gpu.samples(X, make("rbf"))
    assert isinstance(samples.operand, Operand)
    assert sp.issparse(samples.features())
    np.testing.assert_allclose(samples.features().toarray(), X.toarray(), atol=1e-6)


def test_the_tree_finds_groups(gpu):
    rng = np.random.default_rng(0)
    group = rng.permutation(np.repeat([0, 1], 20))
    columns = group[:, None] * 700 + rng.integers(0, 30, (40, 12))  # each group has features of its own
    X = sp.csr_matrix((np.ones(480), columns.ravel(), 12 * np.arange(41)), shape=(40, FEATURES))
    kernel = make("rbf")
    blocks, _ = make_partitioner("tree", 40).blocks(gpu, kernel, gpu.samples(X, kernel), 4, rng)
    np.testing.assert_array_equal(np.sort(np.concatenate(blocks)), np.arange(40))
    for block in blocks:
        assert len(block) == 10
        assert len(np.unique(group[block])) == 1
        np.testing.assert_array_equal(block, np.sort(block))


def test_rows_that_are_all_alike_are_cut_too(gpu):
    kernel = make("rbf")
    X = sp.csr_matrix(np.ones((7, 1)) @ wide(1, entries=5).toarray())
    blocks, _ = make_partitioner("tree", 7).blocks(gpu, kernel, gpu.samples(X, kernel), 3, np.random.default_rng(0))
    assert sorted(len(block) for block in blocks) == [2, 2, 3]


# -------------------------------------------------------------------------------------------------------- the rule


@pytest.mark.parametrize(
    ("entries", "room", "form"),
    [
        (3, "1GB", Operand),  # 1,280 bytes a row, and sparse 40: 32 times as many
        (2, "1GB", SparseOperand),
        (3, "4000B", SparseOperand),  # room for a thousand bytes
    ],
)
def test_rows_are_dense_where_that_has_room_and_is_not_far_larger(entries, room, form):
    device = DEVICES["cuda"](1, room)
    X = sp.csr_matrix((np.ones(20 * entries), np.arange(20 * entries), entries * np.arange(21)), shape=(20, 310))
    assert operand_bytes(20, 310) == 20 * 1280
    assert sparse_bytes(20, X.nnz) == 20 * (16 + 8 * entries)
    assert isinstance(device.samples(X, make("rbf")).operand, form)


def test_csr_rows_without_room_are_refused_with_what_helps():
    device = DEVICES["cuda"](1, 5000)
    with pytest.raises(MemoryError, match=r"100 rows of 3,000 features need .* as CSR.*memory_limit.*engine='mpi'"):
        device.samples(wide(100), make("rbf"))


# ------------------------------------------------------------------------------------------------------------ fits


def test_a_fit_ends_at_the_cpus_optimum_and_predicts_there():
    X = wide(44)
    y = (X @ np.random.default_rng(0).normal(size=FEATURES) > 0).astype(int)
    settings = {"C": 2.0, "gamma": 0.05, "tol": 1e-2, "random_state": 0, "n_blocks": 2}
    here, there = (KernelSVC(device=device, **settings).fit(X, y) for device in ("cpu", "cuda"))
    assert there.dual_objective_ == pytest.approx(here.dual_objective_, rel=1e-3)
    assert sp.issparse(there.support_vectors_)
    decision = there.decision_function(X[:20])
    np.testing.assert_allclose(there.set_params(device="cpu").decision_function(X[:20]), decision, atol=1e-5)
    tensor = torch.tensor(X[:20].toarray())  # a dense tensor for a model of CSR rows
    np.testing.assert_allclose(there.decision_function(tensor), decision, atol=1e-5)
