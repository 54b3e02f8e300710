"""Decimal numbers in text, read by a compiled loop and rounded as exactly as Python's `float` does.

A number is a whole mantissa times a power of ten. Small ones are exact in one multiplication or division. Others are
computed with about 106 bits, as a sum of two doubles, and are right whenever the smallest and the largest value that
they can have round to the same double; for the few where these differ, and for the very large and very small, the
caller asks Python.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np

from parablock.compiling import njit

NUMBER, NO_NUMBER, ASK_PYTHON = 0, 1, 2
_FARTHEST = 290  # powers of ten beyond, up or down, are left to Python
_DIGITS = 19  # that fit into 64 bits
_SPLITTER = 134217729.0  # 2^27 + 1: divides a double into two halves whose products are exact


@lru_cache(maxsize=1)
def powers_of_ten() -> np.ndarray:
    """10^-290 to 10^290 as sums of two doubles, of shape (581, 2); `read_number` asks for them."""
    table = np.empty((2 * _FARTHEST + 1, 2))
    for exponent in range(-_FARTHEST, _FARTHEST + 1):
        exact = Fraction(10) ** exponent
        table[exponent + _FARTHEST, 0] = exact
        table[exponent + _FARTHEST, 1] = exact - Fraction(table[exponent + _FARTHEST, 0])
    return table


@njit(cache=True, nogil=True)
def read_number(text: np.ndarray, position: int, stop: int, powers: np.ndarray) -> tuple[int, float, int]:
    """The number that begins at a position of the text: (what was found, its value, where it ends).

    `NO_NUMBER` where none begins there, and `ASK_PYTHON` where one does but its value must be found by `float`. What
    follows the number is for the caller to look at: "1x" is the number 1, ending before the x.
    """
    negative = False
    if position < stop and (text[position] == 45 or text[position] == 43):  # - +
        negative = text[position] == 45
        position += 1
    mantissa, digits, exponent, seen, cut = np.uint64(0), 0, 0, False, False
    fraction = False
    while position < stop:
        character = text[position]
        if 48 <= character <= 57:  # 0 to 9
            seen = True
            if digits < _DIGITS:
                mantissa = mantissa * np.uint64(10) + np.uint64(character - 48)
                digits += int(mantissa > 0)  # leading zeros are none
                exponent -= fraction
            else:
                cut = cut or character != 48
                exponent += not fraction
        elif character == 46 and not fraction:  # .
            fraction = True
        else:
            break
        position += 1
    if not seen:
        return NO_NUMBER, 0.0, position
    if position < stop and (text[position] == 101 or text[position] == 69):  # e E
        power, place, below = 0, position + 1, False
        if place < stop and (text[place] == 45 or text[place] == 43):
            below = text[place] == 45
            place += 1
        if place == stop or not 48 <= text[place] <= 57:
            return NO_NUMBER, 0.0, position
        while place < stop and 48 <= text[place] <= 57:
            power = min(power * 10 + (text[place] - 48), 1_000_000)
            place += 1
        exponent += -power if below else power
        position = place
    if mantissa == 0:
        return NUMBER, -0.0 if negative else 0.0, position
    certain, value = _scaled(mantissa, exponent, cut, powers)
    return (NUMBER if certain else ASK_PYTHON), -value if negative else value, position


@njit(cache=True, nogil=True)
def _scaled(mantissa: np.uint64, exponent: int, cut: bool, powers: np.ndarray) -> tuple[bool, float]:
    """Mantissa times power of ten; whether that is surely the nearest double. `cut` says that the mantissa goes on
    after its last digit."""
    leading = np.float64(mantissa)
    if not cut and mantissa <= np.uint64(1 << 53) and -22 <= exponent <= 22:
        # Both are exact doubles, so that one operation rounds correctly.
        power = powers[abs(exponent) + _FARTHEST, 0]
        return True, leading / power if exponent < 0 else leading * power
    if not -_FARTHEST <= exponent <= _FARTHEST:
        return False, 0.0
    trailing = np.float64(np.int64(mantissa - np.uint64(leading)))
    high, low = powers[exponent + _FARTHEST, 0], powers[exponent + _FARTHEST, 1]
    product = leading * high
    if not 1e-270 < product < 1e290:  # where halves of products would lose digits
        return False, 0.0
    a, b = _halves(leading)
    c, d = _halves(high)
    rest = ((a * c - product) + a * d + b * c) + b * d  # what rounding took from the product, exactly
    rest += leading * low + trailing * high
    doubt = product * 2.0**-98
    smallest, largest = product + (rest - doubt), product + (rest + doubt + (high if cut else 0.0))
    return smallest == largest, smallest


@njit(cache=True, nogil=True)
def _halves(value: float) -> tuple[float, float]:
    scaled = _SPLITTER * value
    leading = scaled - (scaled - value)
    return leading, value - leading


@njit(cache=True, nogil=True)
def noted(doubtful: np.ndarray, doubts: int, what: int, start: int, stop: int) -> tuple[np.ndarray, int]:
    """A list of numbers that Python must read (what they are, and where), with one more; it grows when it is full."""
    if doubts == len(doubtful):
        larger = np.empty((2 * doubts, 3), np.int64)
        larger[:doubts] = doubtful
        doubtful = larger
    doubtful[doubts, 0], doubtful[doubts, 1], doubtful[doubts, 2] = what, start, stop
    return doubtful, doubts + 1
