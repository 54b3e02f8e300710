"""What a partition reports of itself, and which block a new row belongs to."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_blobs

from parablock.kernels import RBF
from parablock.partition import PARTITIONERS, make_partitioner
from tests.small_problems import rbf

SPATIAL = ["tree", "kmeans", "kernel_kmeans"]
every_method = pytest.mark.parametrize("method", sorted(PARTITIONERS))
every_format = pytest.mark.parametrize("data_format", ["dense", "csr"])


def partition_of(device, method, X, n_blocks, gamma=0.5, data_format="dense"):
    kernel = RBF(gamma)
    samples = device.samples(sp.csr_matrix(X) if data_format == "csr" else X, kernel)
    return make_partitioner(method, len(X)).partition(device, kernel, samples, n_blocks, np.random.default_rng(0))


def nearest(device, partition, X, gamma=0.5):
    kernel = RBF(gamma)
    return partition.centres.nearest(device, kernel, device.samples(X, kernel))


def exact_mass_inside(K, labels):
    return (K**2)[labels[:, None] == labels].sum() / (K**2).sum()


@every_format
@every_method
def test_estimated_mass_inside_is_exact_where_no_sampling_is_needed(device, method, data_format):
    X = np.random.default_rng(0).normal(size=(100, 2))
    partition = partition_of(device, method, X, 5, data_format=data_format)
    assert partition.kernel_mass_inside == pytest.approx(exact_mass_inside(rbf(X, gamma=0.5), partition.labels))


@every_method
def test_estimated_mass_inside_is_close_to_the_exact_share(device, method):
    X, _ = make_blobs(2400, centers=30, random_state=0)
    partition = partition_of(device, method, X, 2, gamma=0.02)  # blocks that are sampled as well
    exact = exact_mass_inside(rbf(X, gamma=0.02), partition.labels)
    assert partition.kernel_mass_inside == pytest.approx(exact, abs=0.05)


def test_one_block_holds_everything(device):
    assert partition_of(device, "tree", np.random.default_rng(0).normal(size=(50, 2)), 1).kernel_mass_inside == 1.0


@every_format
@pytest.mark.parametrize("method", SPATIAL)
def test_spatial_blocks_hold_more_of_the_kernel_than_random_ones(device, method, data_format):
    X, _ = make_blobs(600, centers=12, random_state=0)
    spatial, random = (
        partition_of(device, name, X, 8, data_format=data_format).kernel_mass_inside for name in (method, "random")
    )
    assert random < 0.3
    assert spatial > 0.6


@every_method
def test_labels_and_sizes_agree_with_the_blocks(device, method):
    partition = partition_of(device, method, np.random.default_rng(0).normal(size=(101, 2)), 6)
    for number, block in enumerate(partition.blocks):
        assert np.array_equal(np.flatnonzero(partition.labels == number), block)
    assert partition.sizes.tolist() == np.bincount(partition.labels).tolist()


def test_report_tells_sizes_and_quality(device):
    labels = np.repeat([0, 1, 2], [10, 20, 30])
    partition = partition_of(device, labels, np.repeat(np.eye(3), [10, 20, 30], axis=0), 3, gamma=100.0)
    assert partition.report() == (
        "given partition: 3 blocks of 10 to 30 rows (mean 20), 100.0% of the kernel's squared mass inside"
    )


# ---------------------------------------------------------------------------------------------------------- centres


@every_format
@pytest.mark.parametrize("method", ["tree", "kmeans", "random"])
def test_a_blocks_centre_is_nearest_to_itself(device, method, data_format):
    X = np.random.default_rng(0).normal(size=(200, 3))
    partition = partition_of(device, method, X, 7, data_format=data_format)
    centres = partition.centres.points
    assert centres.shape == (len(partition.blocks), 3)
    centres = sp.csr_matrix(centres) if data_format == "csr" else centres
    assert nearest(device, partition, centres).tolist() == list(range(len(partition.blocks)))


@pytest.mark.parametrize("method", ["tree", "random"])
def test_centres_are_the_means_of_their_blocks(device, method):
    X = np.random.default_rng(0).normal(size=(200, 3))
    partition = partition_of(device, method, X, 7)
    means = [X[block].mean(axis=0) for block in partition.blocks]
    assert partition.centres.points == pytest.approx(np.stack(means))


@pytest.mark.parametrize("method", SPATIAL)
def test_rows_of_separate_groups_are_nearest_to_their_own_block(device, method):
    X, _ = make_blobs([40] * 3, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)
    partition = partition_of(device, method, X, 3, gamma=0.05)
    assert np.array_equal(nearest(device, partition, X, gamma=0.05), partition.labels)


@every_method
def test_nearest_goes_on_beyond_a_chunk_of_rows(device, method):
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(60, 2)), rng.normal(size=(9000, 2))
    partition = partition_of(device, method, X, 4)
    whole = nearest(device, partition, new)
    assert np.array_equal(whole, np.concatenate([nearest(device, partition, part) for part in np.split(new, 3)]))
    assert set(whole) <= set(range(len(partition.blocks)))


def test_kernel_centres_measure_the_distance_in_the_kernels_space(device):
    X, _ = make_blobs([40] * 3, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)
    new = 4.0 * np.random.default_rng(1).normal(size=(20, 2))
    partition = partition_of(device, "kernel_kmeans", X, 3, gamma=0.05)
    members = [rbf(new, X[block], gamma=0.05).mean(axis=1) for block in partition.blocks]
    squares = [rbf(X[block], gamma=0.05).mean() for block in partition.blocks]
    expected = 1.0 - 2.0 * np.stack(members, axis=1) + squares
    kernel = RBF(0.05)
    assert partition.centres.distances(device, kernel, device.samples(new, kernel)) == pytest.approx(expected)


@pytest.mark.parametrize("method", ["kmeans", "kernel_kmeans"])
def test_rows_find_their_own_block_again_where_crowded_places_had_to_be_divided(device, method):
    X, _ = make_blobs([700, 50, 50], centers=[[0, 0], [7, 0], [0, 7]], random_state=0)
    partition = partition_of(device, method, X, 6, gamma=0.1)
    assert np.mean(nearest(device, partition, X, gamma=0.1) == partition.labels) > 0.9
