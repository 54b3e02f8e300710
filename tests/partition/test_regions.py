"""Regions hold every row once, in blocks that are nearly even and as near to each other as those of an exact tree."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from parablock.kernels import RBF
from parablock.partition import make_partitioner
from parablock.partition.base import alone
from parablock.partition.regions import LLOYD_STEPS, OF_A_LEAF, SAMPLE, UNEVEN, Regions, between_two_centres

HALF = RBF(0.5)


def samples_of(device, n, features=4, seed=0, dtype=np.float32):
    X = np.random.default_rng(seed).normal(size=(n, features)).astype(dtype)
    return X, device.samples(X, HALF)


@given(
    n=st.integers(20, 3000),
    count=st.integers(2, 40),
    features=st.integers(1, 5),
    seed=st.integers(0, 100),
    dtype=st.sampled_from([np.float32, np.float64]),
)
@settings(max_examples=30, deadline=None)
def test_rows_that_nobody_knew_of_fall_into_one_region_each(device, n, count, features, seed, dtype):
    rng = np.random.default_rng(seed)
    _, samples = samples_of(device, n, features, seed, dtype)
    known, rows = (np.flatnonzero(rng.random(n) < share) for share in (0.8, 0.7))
    regions = Regions.of(samples, known, count, rng)
    if len(known) < 2 * count:
        assert regions is None
        return
    blocks = regions.blocks(samples, rows, count, alone)
    if blocks is None:  # few rows of each
        assert len(rows) < 60 * count
        return
    np.testing.assert_array_equal(np.sort(np.concatenate(blocks)), rows)
    assert all(len(block) and np.all(np.diff(block) > 0) for block in blocks)
    assert len(blocks) <= count
    assert max(map(len, blocks)) <= UNEVEN * len(rows) / count


@pytest.mark.parametrize("count", [2, 3, 7, 24])
def test_regions_of_all_rows_are_of_equal_size(device, count):
    rows = np.arange(count * OF_A_LEAF)  # no more than the sample
    _, samples = samples_of(device, len(rows))
    sizes = [
        len(b) for b in Regions.of(samples, rows, count, np.random.default_rng(0)).blocks(samples, rows, count, alone)
    ]
    assert len(sizes) == count
    assert max(sizes) - min(sizes) <= np.ceil(np.log2(count))  # a row more or less at every level


def test_regions_are_as_good_as_an_exact_tree(device):
    X, samples = samples_of(device, 20_000)
    rows, count = np.flatnonzero(X[:, 0] > -1), 16
    exact = make_partitioner("tree", len(X)).regroup(device, HALF, samples, rows, count, np.random.default_rng(0))
    regions = Regions.of(samples, rows, count, np.random.default_rng(0)).blocks(samples, rows, count, alone)

    def spread(blocks):
        return sum(X[block].var(axis=0).sum() * len(block) for block in blocks)

    assert spread(regions) == pytest.approx(spread(exact), rel=0.1)
    assert spread(exact) < 0.5 * spread([rows])


def test_machines_look_at_some_rows_each_and_find_the_same_blocks(device):
    _, samples = samples_of(device, 9000)
    rows = np.arange(0, 9000, 2)
    regions = Regions.of(samples, rows, 6, np.random.default_rng(0))
    said = []

    def busy(look, stretches):
        said.append([look(stretch) for stretch in stretches])
        return said[-1]

    one = regions.blocks(samples, rows, 6, busy)
    other = regions.blocks(samples, rows, 6, lambda look, stretches: said[0])
    assert len(said) == 1  # message
    assert sum(part.nbytes for part in said[0]) == len(rows)
    for mine, theirs in zip(one, other, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_very_wide_rows_have_no_regions(device):
    samples = device.samples(np.ones((60, 2**18)), HALF)
    assert Regions.of(samples, np.arange(60), 5, np.random.default_rng(0)) is None


def test_equal_rows_are_left_to_an_exact_tree(device):
    samples = device.samples(np.ones((3000, 3)), HALF)
    rows = np.arange(3000)
    assert Regions.of(samples, rows, 8, np.random.default_rng(0)).blocks(samples, rows, 8, alone) is None


@pytest.mark.parametrize(("n_blocks", "will_do"), [(1, False), (5, False), (6, True), (12, True), (13, False)])
def test_other_numbers_of_blocks_are_cut_anew(device, n_blocks, will_do):
    _, samples = samples_of(device, 3000)
    rows = np.arange(3000)
    regions = Regions.of(samples, rows, 8, np.random.default_rng(0))
    assert (regions.blocks(samples, rows, n_blocks, alone) is not None) == will_do


def test_sparse_rows_and_other_methods_have_no_regions(device):
    X, _ = samples_of(device, 3000)
    rows, rng = np.arange(3000), np.random.default_rng(0)
    assert Regions.of(device.samples(sp.csr_matrix(X), HALF), rows, 8, rng) is None
    for method, has_some in (("tree", True), ("kmeans", False), ("random", False)):
        found = make_partitioner(method, 3000).regions(device, device.samples(X, HALF), rows, 8, rng)
        assert (found is not None) == has_some


@given(seed=st.integers(0, 2**32), n=st.integers(2, 3 * SAMPLE))
@settings(deadline=None)
def test_two_centres_are_those_of_lloyds_steps(seed, n):
    rng = np.random.default_rng(seed)
    points, own, draw = rng.normal(size=(2 * n, 3)), rng.permutation(2 * n)[:n], int(rng.integers(2**62))
    some = points[own[:: -(-n // SAMPLE)]]
    centres = [some[draw % len(some)]]
    centres.append(some[np.argmax(((some - centres[0]) ** 2).sum(axis=1))])
    for _ in range(LLOYD_STEPS):
        nearest = np.argmin([((some - centre) ** 2).sum(axis=1) for centre in centres], axis=0)
        if len(np.unique(nearest)) < 2:
            break
        centres = [some[nearest == which].mean(axis=0) for which in range(2)]
    np.testing.assert_allclose(between_two_centres(points, own, draw), centres[0] - centres[1], atol=1e-12)
