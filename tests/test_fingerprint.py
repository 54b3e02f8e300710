"""Hashes of data: equal for equal data, however it is stored and divided, and different wherever one value differs."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given
from hypothesis import strategies as st

from parablock.fingerprint import fingerprint_of, fingerprint_of_rows
from parablock.hashing import digest_of, hash_of_rows
from parablock.kernels import RBF, Called, Laplacian
from parablock.losses import EpsilonInsensitive, SquaredError
from parablock.mapped import MappedRows
from parablock.problem import Problem
from parablock.tensors import TensorRows

ROWS, FEATURES = 700, 500  # many lines of words, and a rest
X = np.random.default_rng(0).normal(size=(ROWS, FEATURES))
NAMES = np.array(["a", "b"] * (ROWS // 2), dtype=object)
places = st.tuples(st.integers(0, ROWS - 1), st.integers(0, FEATURES - 1))


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int8])
def test_copies_have_the_digest_of_the_original(dtype):
    data = (10 * X).astype(dtype)
    digest = digest_of(data, [NAMES])
    assert digest_of(data.copy(), [NAMES.copy()]) == digest
    assert digest_of(np.asfortranarray(data), [NAMES]) == digest  # the same values, in another order in memory
    unaligned = np.frombuffer(b"?" + data.tobytes(), dtype=np.uint8)[1:].view(dtype).reshape(data.shape)
    assert digest_of(unaligned, [NAMES]) == digest


@given(places, st.sampled_from([1e-12, -1.0, 1e9]))
def test_one_other_value_makes_another_digest(place, change):
    other = X.copy()
    other[place] += change if other[place] + change != other[place] else 1.0
    assert digest_of(other, []) != digest_of(X, [])


@given(places, places)
def test_exchanged_values_make_another_digest(first, second):
    other = X.copy()
    other[first], other[second] = X[second], X[first]
    assert (digest_of(other, []) == digest_of(X, [])) == (first == second)


@given(st.integers(0, ROWS - 1), st.integers(0, ROWS - 1))
def test_exchanged_rows_make_another_digest(first, second):
    order = np.arange(ROWS)
    order[[first, second]] = second, first
    assert (digest_of(X[order], []) == digest_of(X, [])) == (first == second)


def test_shape_type_and_columns_belong_to_it():
    digest = digest_of(X, [NAMES])
    assert digest_of(X.reshape(FEATURES, ROWS), [NAMES]) != digest
    assert digest_of(X.view(np.int64), [NAMES]) != digest
    assert digest_of(X, []) != digest
    assert digest_of(X, [NAMES[::-1]]) != digest
    assert digest_of(X[:0], []) != digest_of(X[:1], [])


def test_every_part_of_csr_rows_belongs_to_it():
    matrix = sp.random(300, 200, density=0.3, format="csr", random_state=0)
    digest = digest_of(matrix, [])
    assert digest_of(matrix.copy(), []) == digest
    for part in ("data", "indices", "indptr"):
        other = matrix.copy()
        getattr(other, part)[5] += 1
        assert digest_of(other, []) != digest


# ----------------------------------------------------------------------------------------- rows, wherever they are


def added(hashes):
    return np.sum(hashes, axis=0, dtype=np.uint64)


@given(st.lists(st.integers(0, ROWS), max_size=4).map(sorted))
def test_it_does_not_matter_how_rows_are_divided(cuts):
    y = X[:, 0]
    ends = [0, *cuts, ROWS]
    parts = [hash_of_rows(X[a:b], [y[a:b]], a) for a, b in pairwise(ends) if a < b]
    np.testing.assert_array_equal(added(parts), hash_of_rows(X, [y]))


def test_it_does_not_matter_how_values_are_stored(tmp_path):
    dense = X.astype(np.float32)
    dense[dense < 1] = 0
    expected = hash_of_rows(dense)
    assert expected[0] != expected[1]
    csr = sp.csr_matrix(dense)
    tensor = TensorRows(torch.tensor(dense))
    with_zeros = sp.csr_matrix(X.astype(np.float32))
    with_zeros.data[with_zeros.data < 1] = 0
    backwards = csr.copy()
    for start, stop in pairwise(csr.indptr):
        backwards.indices[start:stop], backwards.data[start:stop] = (
            csr.indices[start:stop][::-1],
            csr.data[start:stop][::-1],
        )
    np.save(tmp_path / "rows.npy", dense)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    for same in (
        dense.astype(np.float64), np.asfortranarray(dense), -0.0 + dense, csr, csr.astype(np.float64), with_zeros,
        backwards, mapped, MappedRows(mapped), MappedRows(mapped, np.arange(ROWS)), tensor,
    ):  # fmt: skip
        np.testing.assert_array_equal(hash_of_rows(same), expected)


def test_very_many_features_have_keys_of_their_own():
    wide = sp.csr_matrix((X[:30].ravel(), np.tile(np.arange(FEATURES) * 10**6, 30), np.arange(31) * FEATURES),
                         shape=(30, FEATURES * 10**6))  # fmt: skip
    narrow = sp.csr_matrix(X[:30])
    few = sp.csr_matrix((narrow.data, narrow.indices, narrow.indptr), shape=(30, 10**9))
    np.testing.assert_array_equal(hash_of_rows(few), hash_of_rows(narrow))  # computed, and from a table
    assert not np.array_equal(hash_of_rows(wide), hash_of_rows(few))


@given(places, st.booleans(), st.sampled_from([np.float32, np.float64]))
def test_the_last_bit_of_one_value_counts(place, sparse, dtype):
    rows = X.astype(dtype)
    other = rows.copy()
    other[place] = np.nextafter(rows[place], dtype(9))
    as_given = sp.csr_matrix if sparse else np.asarray
    assert np.all(hash_of_rows(as_given(other)) != hash_of_rows(as_given(rows)))


@given(places, places)
def test_exchanged_values_rows_and_columns_make_another_hash(first, second):
    other = X.copy()
    other[first], other[second] = X[second], X[first]
    assert np.array_equal(hash_of_rows(other), hash_of_rows(X)) == (first == second)
    rows, features = np.arange(ROWS), np.arange(FEATURES)
    rows[[first[0], second[0]]] = second[0], first[0]
    features[[first[1], second[1]]] = second[1], first[1]
    assert np.array_equal(hash_of_rows(X[rows]), hash_of_rows(X)) == (first[0] == second[0])
    assert np.array_equal(hash_of_rows(X[:, features]), hash_of_rows(X)) == (first[1] == second[1])
    assert np.array_equal(hash_of_rows(X, [rows]), hash_of_rows(X, [np.arange(ROWS)])) == (first[0] == second[0])


def test_many_alike_rows_have_many_hashes():
    """Rows of zeros and ones, which are the likeliest to collide: all of 2^12, each in 16 places."""
    bits = (np.arange(2**12)[:, None] >> np.arange(12)) % 2
    hashes = [tuple(hash_of_rows(row[None].astype(dtype), first=place))
              for dtype in (np.float64,) for row in bits for place in range(16)]  # fmt: skip
    for lane in range(2):
        assert len({pair[lane] for pair in hashes}) == len(hashes)


def problem_of(target, weight=1.0, loss=None):
    return Problem.build(loss or SquaredError(), target, weight, True)


def test_a_problem_is_its_rows_targets_weights_loss_and_kernel():
    y = X[:, 0]
    known = fingerprint_of(RBF(0.5), problem_of(y), X)
    assert known == fingerprint_of(RBF(0.5 + 1e-15), problem_of(y.copy()), X.copy())  # rounding of gamma="scale"
    other_y, other_X = y.copy(), X.copy()
    other_y[3] += 1e-12
    other_X[699, 499] += 1e-12
    others = [
        (RBF(0.5001), problem_of(y), X),
        (Laplacian(0.5), problem_of(y), X),
        (RBF(0.5), problem_of(other_y), X),
        (RBF(0.5), problem_of(y, 2.0), X),
        (RBF(0.5), problem_of(y, loss=EpsilonInsensitive(0.1)), X),
        (RBF(0.5), problem_of(y, loss=EpsilonInsensitive(0.2)), X),
        (RBF(0.5), problem_of(y), other_X),
        (RBF(0.5), problem_of(y), X.astype(np.float32)),
        (Called(lambda a, b: a @ b.T), problem_of(y), X),
        (Called(lambda a, b: 2 * a @ b.T), problem_of(y), X),
    ]
    assert len({known, *(fingerprint_of(*other) for other in others)}) == len(others) + 1


def test_what_a_user_gave_is_rows_targets_weights_and_labels():
    target, weight = np.sign(X[:, :1].T), np.ones(ROWS)
    known = fingerprint_of_rows(X, target, weight, [0, 1])
    lighter = weight.copy()
    lighter[17] = 0.5
    others = [
        (X[:, ::-1], target, weight, [0, 1]),
        (X, -target, weight, [0, 1]),
        (X, target, lighter, [0, 1]),
        (X, target, weight, ["a", "b"]),
    ]
    assert known == fingerprint_of_rows(X.copy(), target.copy(), weight.copy(), [0, 1])
    assert known not in [fingerprint_of_rows(*other) for other in others]
