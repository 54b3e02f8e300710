"""The CPU's storage of kernel columns: what it says it holds is right, and the least recently used goes first."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parablock.devices.cpu.columns import Columns
from parablock.devices.cpu.samples import make_samples
from parablock.kernels import RBF
from tests.oracle import rbf

SIZE, CAPACITY, BATCH = 420, 256, 64
X = np.random.default_rng(0).normal(size=(SIZE, 2))
K = rbf(X, X, 0.5)
NOBODY = np.zeros(SIZE)


def columns(capacity=CAPACITY, size=SIZE):
    return filled(Columns(make_samples(X, RBF(0.5)), np.arange(size), RBF(0.5), capacity, None))


def filled(store):
    store.fill(lambda work, items: [work(item) for item in items])
    return store


def held(store):
    return np.flatnonzero(store.slot >= 0)


def assert_consistent(store):
    assert_consistent_with(store, K)


def assert_consistent_with(store, K):
    there = held(store)
    assert len(np.unique(store.slot[there])) == len(there)
    np.testing.assert_array_equal(store.owner[store.slot[there]], there)
    np.testing.assert_allclose(store.storage[store.slot[there]], K[there], atol=1e-12)


def test_a_block_that_fits_is_computed_at_once():
    store = columns(capacity=300, size=300)
    assert len(held(store)) == 300
    np.testing.assert_allclose(store.storage[store.slot], K[:300, :300], atol=1e-12)
    assert store.count() == 256 * 300 + 44 * 44  # the other half is mirrored
    assert store.count() == 0  # told once


def test_a_matrix_that_is_given_is_taken_as_it_is():
    matrix = K[:300, :300].copy()
    store = filled(Columns(make_samples(X, RBF(0.5)), np.arange(300), RBF(0.5), 10, None, matrix))
    assert store.storage is matrix
    assert len(held(store)) == 300
    assert_consistent_with(store, matrix)
    assert store.count() == 0


def test_a_block_that_does_not_fit_starts_empty_and_within_its_capacity():
    store = columns(capacity=300)
    assert store.storage.shape == (300, SIZE)
    assert len(held(store)) == 0
    assert store.count() == 0


def test_there_is_always_room_for_a_pair_and_its_batch():
    assert columns(capacity=0).storage.shape == (CAPACITY, SIZE)


@settings(max_examples=20)
@given(st.lists(st.integers(0, SIZE - 1), min_size=1, max_size=30), st.integers(0, 2**32 - 1))
def test_fetched_columns_are_the_kernels_whatever_the_order(wanted, seed):
    store, rng = columns(), np.random.default_rng(seed)
    for column in wanted:
        if store.slot[column] < 0:
            store.fetch(column, rng.normal(size=SIZE))
        assert store.slot[column] >= 0
    assert_consistent(store)


def test_a_fetch_into_empty_room_brings_the_most_urgent_of_the_missing_along():
    store, urgency = columns(), np.arange(SIZE, dtype=float)
    store.fetch(3, urgency)
    np.testing.assert_array_equal(held(store), np.concatenate(([3], np.arange(SIZE - BATCH + 1, SIZE))))
    assert store.count() == BATCH * SIZE


def test_a_fetch_into_full_room_brings_the_wanted_column_only():
    store = columns()
    while len(held(store)) < CAPACITY:
        store.fetch(int(np.flatnonzero(store.slot < 0)[0]), NOBODY)
    store.count()
    store.fetch(int(np.flatnonzero(store.slot < 0)[0]), NOBODY)
    assert store.count() == SIZE
    assert len(held(store)) == CAPACITY


def test_the_least_recently_used_columns_go_first():
    store = columns()
    while len(held(store)) < CAPACITY:
        store.fetch(int(np.flatnonzero(store.slot < 0)[0]), NOBODY)
    used = held(store)[::2]  # every second one, in this order, after all others
    for column in used:
        store.clock[0] += 1
        store.stamp[store.slot[column]] = store.clock[0]
    for _ in range(CAPACITY - len(used)):
        store.fetch(int(np.flatnonzero(store.slot < 0)[0]), NOBODY)
        assert np.all(store.slot[used] >= 0)
    store.fetch(int(np.flatnonzero(store.slot < 0)[0]), NOBODY)  # no other is left
    assert store.slot[used[0]] < 0
    assert np.all(store.slot[used[1:]] >= 0)
    assert_consistent(store)


def test_a_fetched_column_survives_the_next_fetch():
    # Updates of pairs need both columns at once.
    store = columns()
    for column in range(0, SIZE - 1, 7):
        if store.slot[column] < 0:
            store.fetch(column, NOBODY)
        if store.slot[column + 1] < 0:
            store.fetch(column + 1, NOBODY)
        assert store.slot[column] >= 0
        assert store.slot[column + 1] >= 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_storage_has_the_precision_of_the_data(dtype):
    store = Columns(make_samples(X.astype(dtype), RBF(0.5)), np.arange(SIZE), RBF(0.5), CAPACITY, None)
    assert store.storage.dtype == dtype
