"""Memory limits as users write them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parablock.devices.memory import memory_bytes


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (1, 1),
        (1e9, 10**9),
        ("123", 123),
        ("64B", 64),
        ("2KB", 2 << 10),
        ("500MB", 500 << 20),
        ("2 GB", 2 << 30),
        (" 1.5gb ", 3 << 29),
        ("2GiB", 2 << 30),
        ("2g", 2 << 30),
        ("1TB", 1 << 40),
    ],
)
def test_limit_in_bytes(limit, expected):
    assert memory_bytes(limit) == expected


def test_no_limit_given_leaves_room_for_others():
    assert 0 < memory_bytes(None) <= 4 << 30


@given(st.integers(1, 10**15))
def test_whole_numbers_are_taken_as_they_are(limit):
    assert memory_bytes(limit) == limit
    assert memory_bytes(str(limit)) == limit


@pytest.mark.parametrize(
    "limit", [0, -1, -0.5, float("nan"), float("inf"), True, "", "GB", "much", "-2GB", "2 XB", [1], "0MB"]
)
def test_other_limits_are_refused_with_examples_of_good_ones(limit):
    with pytest.raises(ValueError, match=r"memory_limit must be a positive number of bytes.*'500MB'"):
        memory_bytes(limit)


def test_numbers_of_numpy_are_numbers():
    assert memory_bytes(np.int64(1 << 20)) == 1 << 20
    assert memory_bytes(np.float32(1024)) == 1024
