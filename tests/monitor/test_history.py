"""Records of iterations."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parablock.monitor import Record, relative_gap


def record(**changes):
    values = {
        "iteration": 1,
        "kind": "bridge",
        "seconds": 0.5,
        "objective": -10.0,
        "duality_gap": 2.5,
        "violation": 0.01,
        "step": 1.0,
        "blocks": 1,
        "active": 20,
        "changed": 10,
        "updates": 100,
        "watched": 100,
        "kernel_evaluations": 400,
    }
    return Record(**{**values, **changes})


def test_relative_gap_is_a_share_of_the_larger_value():
    # dual value 10, primal value 12.5
    assert record().relative_gap == pytest.approx(2.5 / 12.5)


def test_relative_gap_of_nothing_is_zero():
    assert relative_gap(0.0, 0.0) == 0.0


@given(st.floats(-1e6, 1e6), st.floats(0, 1e6))
def test_relative_gap_is_never_negative_and_at_most_two(objective, gap):
    # Primal = gap - objective; where both values have one sign, the share is at most one.
    share = relative_gap(objective, gap)
    assert 0 <= share <= 2
    if objective <= 0:
        assert share <= 1


def test_a_record_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        record().step = 0.5
