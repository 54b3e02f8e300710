"""Partitions hold every row exactly once, in blocks of the promised sizes, whatever the data look like."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_blobs

from parablock.kernels import RBF, Linear, Precomputed
from parablock.partition import PARTITIONERS, make_partitioner
from parablock.partition.base import alone

every_method = pytest.mark.parametrize("method", sorted(PARTITIONERS))


@st.composite
def row_sets(draw):
    """Few rows of small whole numbers, many of them equal; dense or CSR."""
    n, d = draw(st.integers(1, 40)), draw(st.integers(1, 4))
    values = draw(st.integers(1, 4))  # 1: all rows are equal
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    X = rng.integers(0, values, size=(n, d)).astype(draw(st.sampled_from((np.float32, np.float64))))
    return sp.csr_matrix(X) if draw(st.booleans()) else X


HALF = RBF(0.5)


def blocks_of(device, method, X, n_blocks, seed=0, kernel=HALF):
    partitioner = make_partitioner(method, X.shape[0])
    blocks, _ = partitioner.blocks(device, kernel, device.samples(X, kernel), n_blocks, np.random.default_rng(seed))
    return blocks


def assert_disjoint_and_complete(blocks, n):
    assert all(len(block) for block in blocks)
    assert np.array_equal(np.sort(np.concatenate(blocks)), np.arange(n))


@every_method
@given(X=row_sets(), n_blocks=st.integers(1, 45), seed=st.integers(0, 100))
@settings(max_examples=40)
@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
def test_blocks_are_disjoint_complete_and_not_empty(device, method, X, n_blocks, seed):
    n = X.shape[0]
    blocks = blocks_of(device, method, X, n_blocks, seed)
    assert_disjoint_and_complete(blocks, n)
    assert len(blocks) <= min(n, n_blocks)


@every_method
@given(X=row_sets(), n_blocks=st.integers(1, 45), seed=st.integers(0, 100))
@settings(max_examples=40)
@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
def test_machines_that_share_the_work_find_the_same_blocks(device, method, X, n_blocks, seed):
    said = []

    def busy(work, items):
        said.append([work(item) for item in items])
        return said[-1]

    def told(work, items):
        results = said.pop(0)
        assert len(results) == len(items)
        return results

    def shared(spread):
        rng = np.random.default_rng(seed)
        partition = make_partitioner(method, X.shape[0]).partition(
            device, HALF, device.samples(X, HALF), n_blocks, rng, spread
        )
        return partition, rng.integers(2**62)

    (one, one_draws_next), (other, other_draws_next) = shared(busy), shared(told)
    assert not said
    assert_disjoint_and_complete(one.blocks, X.shape[0])
    assert len(one.blocks) <= min(X.shape[0], n_blocks)
    if method in ("tree", "random"):
        assert np.ptp(one.sizes) <= 1
    for block, same in zip(one.blocks, other.blocks, strict=True):
        assert np.array_equal(block, same)
    assert one.kernel_mass_inside == other.kernel_mass_inside
    assert one_draws_next == other_draws_next


@pytest.mark.parametrize(("whole", "shared", "alone"), [(0, 3, 2), (6000, 2, 1)])
def test_machines_tell_each_other_four_bytes_a_row_for_the_first_levels_of_a_tree_then_one(
    device, monkeypatch, whole, shared, alone
):
    n, n_blocks, said = 20_000, 32, []
    monkeypatch.setattr("parablock.partition.tree.WHOLE", whole)

    def spread(work, items):
        said.append(len(pickle.dumps([work(item) for item in items])))
        return [work(item) for item in items]

    X = np.random.default_rng(0).normal(size=(n, 3)).astype(np.float32)
    tree, rng = make_partitioner("tree", n), np.random.default_rng(0)
    blocks, _ = tree.shared_blocks(device, HALF, device.samples(X, HALF), n_blocks, rng, spread)
    assert_disjoint_and_complete(blocks, n)
    assert all(np.all(np.diff(block) > 0) for block in blocks)
    assert len(said) == shared + alone  # levels; or one message with all that are left
    assert max(said[:shared]) < 4 * n + 2000
    assert max(said[shared:]) < n + 4000


def some_rows(device, sparse):
    """Data, samples of it, and which of these to regroup."""
    X = np.random.default_rng(0).normal(size=(6000, 4)).astype(np.float32)
    X[np.abs(X) < 0.5] = 0
    return X, device.samples(sp.csr_matrix(X) if sparse else X, HALF), np.flatnonzero(X[:, 0] > -1)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("n_blocks", [2, 7, 20])
def test_a_node_that_machines_share_is_cut_as_by_one(device, monkeypatch, sparse, n_blocks):
    X, samples, rows = some_rows(device, sparse)
    tree, made = make_partitioner("tree", len(X)), []
    monkeypatch.setattr("parablock.partition.tree.WHOLE", 0)
    for few, stretch in ((0, 100), (8, 100), (8, 10_000)):
        monkeypatch.setattr("parablock.partition.tree.FEW_NODES", few)
        monkeypatch.setattr("parablock.partition.tree.STRETCH", stretch)
        made.append(tree.shared_regroup(device, HALF, samples, rows, n_blocks, np.random.default_rng(1), alone))
    assert sum(map(len, made[0])) == len(rows)
    for other in made[1:]:
        for one, two in zip(made[0], other, strict=True):
            np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("n_blocks", [2, 7, 300])
def test_small_nodes_are_cut_whole_into_blocks_that_are_as_even_and_as_good(device, monkeypatch, sparse, n_blocks):
    X, samples, rows = some_rows(device, sparse)
    tree, spreads = make_partitioner("tree", len(X)), []
    for whole in (0, 2000):
        monkeypatch.setattr("parablock.partition.tree.WHOLE", whole)
        blocks = tree.shared_regroup(device, HALF, samples, rows, n_blocks, np.random.default_rng(1), alone)
        assert len(blocks) == n_blocks
        assert np.array_equal(np.sort(np.concatenate(blocks)), rows)
        assert all(np.all(np.diff(block) > 0) for block in blocks)
        sizes = [len(block) for block in blocks]
        assert max(sizes) - min(sizes) <= 1
        spreads.append(sum(X[block].var(axis=0).sum() * len(block) for block in blocks))
    assert spreads[1] == pytest.approx(spreads[0], rel=0.05)


@pytest.mark.parametrize("method", ["tree", "random"])
@given(X=row_sets(), n_blocks=st.integers(1, 45), seed=st.integers(0, 100))
@settings(max_examples=40)
def test_tree_and_random_blocks_are_as_many_as_asked_for_and_of_equal_size_to_one_row(
    device, method, X, n_blocks, seed
):
    sizes = [len(block) for block in blocks_of(device, method, X, n_blocks, seed)]
    assert len(sizes) == min(n_blocks, X.shape[0])
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("method", ["kmeans", "kernel_kmeans"])
@given(X=row_sets(), n_blocks=st.integers(1, 45), seed=st.integers(0, 100))
@settings(max_examples=40)
@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
def test_no_k_means_block_is_larger_than_five_quarters_of_the_mean(device, method, X, n_blocks, seed):
    n = X.shape[0]
    sizes = [len(block) for block in blocks_of(device, method, X, n_blocks, seed)]
    assert max(sizes) <= np.ceil(1.25 * n / min(n, n_blocks))


@every_method
@pytest.mark.parametrize("data_format", ["dense", "csr"])
def test_blocks_of_one_very_crowded_and_some_lonely_places_are_balanced(device, method, data_format):
    rng = np.random.default_rng(0)
    X = np.concatenate((rng.normal(0, 0.01, size=(360, 2)), rng.normal(0, 50, size=(40, 2))))
    X = sp.csr_matrix(X) if data_format == "csr" else X
    sizes = [len(block) for block in blocks_of(device, method, X, 8)]
    assert_disjoint_and_complete(blocks_of(device, method, X, 8), 400)
    assert max(sizes) <= (50 if method in ("tree", "random") else 63)


@every_method
def test_more_rows_than_a_chunk_or_a_sample_are_all_placed(device, method):
    X = np.random.default_rng(0).normal(size=(21_000, 2)).astype(np.float32)
    assert_disjoint_and_complete(blocks_of(device, method, X, 5), 21_000)


@every_method
def test_other_kernels_can_be_partitioned(device, method):
    X = np.random.default_rng(0).normal(size=(60, 3))
    assert_disjoint_and_complete(blocks_of(device, method, X, 4, kernel=Linear()), 60)
    assert_disjoint_and_complete(blocks_of(device, method, X @ X.T, 4, kernel=Precomputed()), 60)


@every_method
def test_fewer_distinct_rows_than_blocks_are_no_reason_to_warn(device, method):
    X = np.repeat([[0.0, 0.0], [1.0, 1.0]], 20, axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_disjoint_and_complete(blocks_of(device, method, X, 8), 40)


@every_method
def test_the_same_seed_gives_the_same_blocks(device, method):
    X = np.random.default_rng(0).normal(size=(200, 3))
    first, second = blocks_of(device, method, X, 7, seed=3), blocks_of(device, method, X, 7, seed=3)
    assert all(np.array_equal(one, other) for one, other in zip(first, second, strict=True))


@pytest.mark.parametrize("method", ["tree", "kmeans", "kernel_kmeans"])
@pytest.mark.parametrize("data_format", ["dense", "csr"])
def test_spatial_blocks_recover_separate_groups(device, method, data_format):
    X, group = make_blobs([50, 50], centers=[[0, 0], [12, 5]], random_state=0)
    X = sp.csr_matrix(X) if data_format == "csr" else X
    blocks = blocks_of(device, method, X, 2, kernel=RBF(0.01))
    assert [len(set(group[block])) for block in blocks] == [1, 1]


def test_tree_recovers_groups_of_groups(device):
    X, group = make_blobs([25] * 4, centers=[[0, 0], [0, 9], [90, 0], [90, 9]], random_state=0)
    assert [len(set(group[block])) for block in blocks_of(device, "tree", X, 4)] == [1, 1, 1, 1]


# ------------------------------------------------------------------------------------------------------ given blocks


@pytest.mark.parametrize("names", [[3, 7, -1], ["a", "b", "c"]], ids=["numbers", "words"])
def test_given_labels_are_kept(device, names):
    labels = np.random.default_rng(0).choice(names, size=50)
    blocks = blocks_of(device, labels, np.zeros((50, 1)), n_blocks=10)
    assert sorted(block.tolist() for block in blocks) == sorted(
        np.flatnonzero(labels == name).tolist() for name in names
    )


def test_regrouping_given_blocks_keeps_their_labels(device):
    labels, rows = np.arange(30) % 3, np.array([2, 3, 5, 9, 12, 29])
    kernel = RBF(1.0)
    samples = device.samples(np.zeros((30, 1)), kernel)
    blocks = make_partitioner(labels, 30).regroup(device, kernel, samples, rows, 2, np.random.default_rng(0))
    assert [block.tolist() for block in blocks] == [[3, 9, 12], [2, 5, 29]]


@every_method
def test_regrouping_splits_just_the_given_rows(device, method):
    kernel, X = RBF(0.5), np.random.default_rng(0).normal(size=(100, 2))
    rows = np.arange(3, 100, 2)
    blocks = make_partitioner(method, 100).regroup(
        device, kernel, device.samples(X, kernel), rows, 4, np.random.default_rng(0)
    )
    assert len(blocks) == 4
    assert np.array_equal(np.sort(np.concatenate(blocks)), rows)


def test_an_unknown_method_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match=r"Unknown partition 'voronoi': use one of \['kernel_kmeans', 'kmeans'"):
        make_partitioner("voronoi", 10)


@pytest.mark.parametrize("labels", [np.zeros(9), np.zeros((10, 1))], ids=["too few", "two dimensions"])
def test_labels_of_another_shape_are_refused(labels):
    with pytest.raises(ValueError, match=r"have shape \(10,\); got shape \((9,|10, 1)\)"):
        make_partitioner(labels, 10)
