"""Numbers too large to compute with, which Python has: they are told of by their size, and not in all digits."""

from __future__ import annotations

from numbers import Integral
from typing import Any

_FEW = 10**20  # up to here a number is written out
_DIGITS_A_BIT = 0.30103


def short_number(value: Any) -> str:
    """A number for a message.

    Examples
    --------
    >>> from parablock.large_numbers import short_number
    >>> short_number(-7), short_number(10**400)
    ('-7', 'a whole number of 401 digits')
    """
    if not isinstance(value, Integral) or abs(int(value)) < _FEW:
        return repr(value)
    digits = int(int(value).bit_length() * _DIGITS_A_BIT) + 1
    return f"a {'negative ' if int(value) < 0 else ''}whole number of {digits} digits"


def fits_float(value: Any) -> bool:
    """Whether a number is one of floating-point numbers' size; what is no number is not asked about."""
    try:
        float(value) if isinstance(value, Integral) else None
    except OverflowError:
        return False
    return True
