"""Decimal numbers are read as Python's float reads them, to the last bit."""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from parablock.datasets.numbers import ASK_PYTHON, NO_NUMBER, NUMBER, powers_of_ten, read_number


def read(text):
    content = np.frombuffer(text.encode(), dtype=np.uint8)
    return read_number(content, 0, len(content), powers_of_ten())


def assert_same_bits(one, other):
    assert np.float64(one).tobytes() == np.float64(other).tobytes()


signs = st.sampled_from(["", "+", "-"])
digits = st.text("0123456789", max_size=30)
exponents = st.one_of(st.just(""), st.integers(-330, 330).map(lambda power: f"e{power}"), st.just("E+05"))


@given(st.floats(allow_nan=False, allow_infinity=False))
@example(0.1)
@example(-0.0)
@example(5e-324)
@example(1.7976931348623157e308)
@example(2.0**63)
def test_every_double_is_read_back(value):
    found, read_value, end = read(repr(value))
    assert found in (NUMBER, ASK_PYTHON)
    assert end == len(repr(value))
    if found == NUMBER:
        assert_same_bits(read_value, value)


@settings(max_examples=300)
@given(signs, digits, digits, exponents)
@example("", "9007199254740993", "", "")  # half-way between two doubles
@example("", "9007199254740993", "0000000001", "")  # just above
@example("", "18446744073709551616", "", "")  # 2^64
@example("-", "", "", "e5")
def test_any_text_is_judged_as_python_judges_it(sign, before, after, exponent):
    text = f"{sign}{before}.{after}{exponent}"
    found, value, end = read(text)
    try:
        expected = float(text)
    except ValueError:
        assert found == NO_NUMBER
        return
    assert found in (NUMBER, ASK_PYTHON)
    assert end == len(text)
    if found == NUMBER:
        assert_same_bits(value, expected)


def test_python_is_asked_for_few_of_the_usual_numbers():
    rng = np.random.default_rng(0)
    usual = [repr(value) for value in rng.normal(size=2000)] + [f"{value:.25f}" for value in rng.random(2000)]
    assert sum(read(text)[0] == ASK_PYTHON for text in usual) <= 2


@pytest.mark.parametrize("text", ["", "+", "-", ".", "e5", "1e", "1e+", "x", "nan", "inf", "-inf", "+-1"])
def test_what_is_no_number(text):
    assert read(text)[0] == NO_NUMBER


@pytest.mark.parametrize(("text", "end"), [("1x", 1), ("0x10", 1), ("1_000", 1), ("1.5.2", 3), ("2:3", 1), ("1e5e", 3)])
def test_a_number_ends_where_it_ends(text, end):
    found, _, stop = read(text)
    assert (found, stop) == (NUMBER, end)


def test_powers_of_ten_are_as_exact_as_two_doubles_can_be():
    from fractions import Fraction

    table = powers_of_ten()
    for exponent in (-290, -23, -1, 0, 22, 23, 290):
        leading, rest = (Fraction(part) for part in table[exponent + 290].tolist())
        exact = Fraction(10) ** exponent
        assert abs(leading + rest - exact) <= exact * Fraction(1, 2**104)
        assert math.isclose(leading, exact)
