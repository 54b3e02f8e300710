"""Checks of what `plan` is asked."""

from __future__ import annotations

from collections.abc import Collection
from numbers import Real
from typing import Any

from parablock.large_numbers import fits_float, short_number

_MOST = 10**15  # of anything that is counted: far more than any machines hold


def positive(name: str, value: Any, zero: bool = False) -> float:
    """A finite number above zero; zero too, where that makes sense."""
    number = _number(value)
    if number is None or not (0 <= number < float("inf")) or (number == 0 and not zero):
        least = "zero or positive" if zero else "positive"
        raise ValueError(f"{name} must be a {least} number; got {short_number(value)}.")
    return number


def whole(name: str, value: Any, most: int = _MOST) -> int:
    """A whole number from 1 on; 1e9 is one too."""
    number = _number(value)
    if number is None or not number >= 1 or (number < float("inf") and number != int(number)):
        raise ValueError(f"{name} must be a whole number of at least 1; got {short_number(value)}.")
    if number > most:
        raise ValueError(f"{name} must be at most {most:,}; got {short_number(value)}.")
    return int(number)


def share(name: str, value: Any) -> float:
    """A part of a whole."""
    number = _number(value)
    if number is None or not 0 < number <= 1:
        raise ValueError(f"{name} must be a number above 0 and up to 1; got {value!r}.")
    return number


def share_or_count(name: str, value: Any, total: int) -> int:
    """So many of a total: a whole number, or a float up to 1.0 for a share."""
    number = _number(value)
    is_share = isinstance(value, float) and number is not None and 0 < number <= 1
    if number is None or not (is_share or (1 <= number <= total and number == int(number))):
        raise ValueError(
            f"{name} must be a share (a float above 0.0 and up to 1.0) or a whole number from 1 to {total:,}; got "
            f"{short_number(value)}."
        )
    return max(1, round(number * total)) if is_share else int(number)


def one_of(name: str, value: Any, accepted: Collection[str]) -> str:
    if value not in accepted:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, accepted))}; got {value!r}.")
    return str(value)


def _number(value: Any) -> float | None:
    if not isinstance(value, Real) or isinstance(value, bool):
        return None
    return float(value) if fits_float(value) else float("inf")  # which is refused, as so large a number is
