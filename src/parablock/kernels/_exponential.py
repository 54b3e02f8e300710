"""A vectorised exponential for arguments that are not positive.

Range reduction to |r| <= ln(2)/2, a polynomial in r, and the power of two added to the exponent's bits: plain
arithmetic, which the compiler turns into vector instructions, unlike a call of the mathematical library.
Relative error below 2.5e-7 in float32 and 1e-15 in float64.

Results below 2^-60 (in float64: 2^-400) are zero. Beside the ones on a kernel matrix's diagonal they are less than
rounding, but many of them times small coefficients are numbers near the smallest ones there are, with which some
processors compute a hundred times slower.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import float32
from numba.extending import overload

_LOG2E = 1.0 / math.log(2.0)
_LN2_HIGH_32, _LN2_LOW_32 = np.float32(0.693359375), np.float32(-2.12194440e-4)
_LN2_HIGH_64, _LN2_LOW_64 = 6.93147180369123816490e-01, 1.90821492927058770002e-10


def exp_of_negative(x: float) -> float:
    """exp(x) for x <= 0. Compiled code gets one of the functions below instead, by its precision."""
    return math.exp(x)


@overload(exp_of_negative)
def _exp_of_negative(x: Any) -> Any:
    return _exp32 if x == float32 else _exp64


def _exp32(x: Any) -> Any:
    nothing = x < np.float32(-60.0 / _LOG2E)
    x = max(x, np.float32(-87.0))
    power = np.floor(x * np.float32(_LOG2E) + np.float32(0.5))
    r = x - power * _LN2_HIGH_32 - power * _LN2_LOW_32
    poly = np.float32(1.0 / 720.0)
    poly = poly * r + np.float32(1.0 / 120.0)
    poly = poly * r + np.float32(1.0 / 24.0)
    poly = poly * r + np.float32(1.0 / 6.0)
    poly = poly * r + np.float32(0.5)
    poly = poly * r + np.float32(1.0)
    poly = poly * r + np.float32(1.0)
    result = poly * np.int32((np.int32(power) + np.int32(127)) << np.int32(23)).view(np.float32)
    return np.float32(0.0) if nothing else result


def _exp64(x: Any) -> Any:
    nothing = x < -400.0 / _LOG2E
    x = max(x, -708.0)
    power = np.floor(x * _LOG2E + 0.5)
    r = x - power * _LN2_HIGH_64 - power * _LN2_LOW_64
    poly = 1.0 / 6227020800.0
    poly = poly * r + 1.0 / 479001600.0
    poly = poly * r + 1.0 / 39916800.0
    poly = poly * r + 1.0 / 3628800.0
    poly = poly * r + 1.0 / 362880.0
    poly = poly * r + 1.0 / 40320.0
    poly = poly * r + 1.0 / 5040.0
    poly = poly * r + 1.0 / 720.0
    poly = poly * r + 1.0 / 120.0
    poly = poly * r + 1.0 / 24.0
    poly = poly * r + 1.0 / 6.0
    poly = poly * r + 0.5
    poly = poly * r + 1.0
    poly = poly * r + 1.0
    result = poly * np.int64((np.int64(power) + np.int64(1023)) << np.int64(52)).view(np.float64)
    return 0.0 if nothing else result
