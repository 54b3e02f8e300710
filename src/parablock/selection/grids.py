"""The values of C and gamma that are tried."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral
from typing import Any

import numpy as np

from parablock.large_numbers import short_number

_FACTOR = 4.0  # between neighbours of a grid that is made here: finer ones hardly differ in score
_FIRST_C = 0.25
_MOST = 200  # of such values: the last one is 2**398, and more of them are close to what numbers can be


def c_values(Cs: Any) -> np.ndarray:
    """The given values of C; of a number, so many from 1/4 on, each four times the one before.

    Examples
    --------
    >>> from parablock.selection.grids import c_values
    >>> c_values(3).tolist()
    [0.25, 1.0, 4.0]
    """
    if isinstance(Cs, Integral):
        return _FIRST_C * _FACTOR ** np.arange(_count("Cs", Cs))
    return _positive("Cs", Cs)


def gamma_values(gammas: Any, scale: float, auto: float) -> np.ndarray:
    """The given values of gamma, among which may be "scale" and "auto"; of a number, so many around "scale", each four
    times the one before.

    Examples
    --------
    >>> from parablock.selection.grids import gamma_values
    >>> gamma_values(3, scale=2.0, auto=1.0).tolist()
    [0.5, 2.0, 8.0]
    >>> gamma_values(["scale", 5], scale=2.0, auto=1.0).tolist()
    [2.0, 5.0]
    """
    if isinstance(gammas, Integral):
        count = _count("gammas", gammas)
        return scale * _FACTOR ** (np.arange(count) - (count - 1) // 2)
    names = {"scale": scale, "auto": auto}
    if isinstance(gammas, str):
        gammas = [gammas]
    if isinstance(gammas, Iterable):
        gammas = [names.get(gamma, gamma) if isinstance(gamma, str) else gamma for gamma in gammas]
    return _positive("gammas", gammas)


def _count(name: str, count: Integral) -> int:
    if isinstance(count, bool) or not 1 <= int(count) <= _MOST:
        raise ValueError(
            f"{name} must be how many values to try, from 1 to {_MOST}, or a list of positive finite numbers; got "
            f"{short_number(count)}."
        )
    return int(count)


def _positive(name: str, values: Any) -> np.ndarray:
    try:
        found = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        found = np.empty(0)
    if found.ndim != 1 or len(found) == 0 or not np.all((found > 0) & np.isfinite(found)):
        raise ValueError(
            f"{name} must be how many values to try, or a list of positive finite numbers; got {values!r}."
        )
    return found
