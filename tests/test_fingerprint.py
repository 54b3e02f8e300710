"""Digests of data: equal for equal data, and different wherever two ranks were given different rows by mistake."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from parablock.fingerprint import digest_of

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
