"""Rows of data made ready for tensor cores.

Tensor cores multiply float16 numbers, exactly, but the sum of the products is cut off (not rounded) to float32 after
every few terms. With gamma = 32 a relative error of 1e-7 in an inner product is one of 1e-5 in the kernel value, and
because cutting off always errs to the same side the errors of a sum over columns do not average out. So the rows are
split such that nothing is cut off where it matters:

    X 2^exponent = high + low,    high: whole numbers,    low: the rest, at most about 1/2, to 11 bits

The exponent is the largest with which the norm of every row is at most 2^12. Then every partial sum of high'high is a
whole number below 2^24, which float32 holds exactly, in whatever order the sum is taken. The products with low
(high'low + low'high + low'low) are some thousand times smaller, and with them their errors; they have an accumulator of
their own. The squared norms are those of high + low, in float64: so the only approximation is that every row has moved
by about 2^-25 of the largest norm, which changes a distance of near neighbours by far less than the same relative error
in each term of |x|^2 + |z|^2 - 2 x'z would.

This needs float16: whole numbers of 11 bits, where bfloat16 has 8. Its small range does no harm after scaling.

    kind      parts             products   when
    exact     high only         1          all of X 2^exponent are whole or half numbers that float16 holds: pixels
    double    high, low         4          otherwise
    fast      high, low         3          on request: without low'low; moves a distance^2 by |low_x - low_z|^2
    float32   X itself          1, float32 on request, for distances that are no inner products, and where some rows are
                                           so much larger than the others that the grid for all would be too coarse
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch

EXACT, DOUBLE, FAST, FLOAT32 = "exact", "double", "fast", "float32"
_LARGEST_NORM = 2.0**12  # its square is the last whole number up to which float32 has no gaps
_ROOM_ABOVE = 2.0**3  # rows may be so much larger than those that the exponent was made for: float16 ends at 2^16
_GIANT = 64.0  # norm of a row beside the median, from which on the others would lose digits that float32 has
_LEAST_FEATURES = 16  # of a product on tensor cores
_WHOLE_FEATURES = 128  # up to which a tile of rows is held at once; beyond that, it is read in chunks ...
_CHUNK_FEATURES = 64  # ... of this many features
_ROWS_AT_ONCE = 1 << 17  # made ready at a time: a bound on the memory of the float64 copy


@dataclass(frozen=True)
class Operand:
    """Rows of data on the device, as the kernels of `products` read them.

    Attributes
    ----------
    kind : {"exact", "double", "fast", "float32"}
        See above.
    high, low : tensor of shape (n, padded features)
        float16, or float32 for that kind; `low` is empty where there is one part.
    half, half_low : tensor of shape (n,), float32
        Half of the squared norms in the data's own units: `half` on the grid of the products of high parts, so that
        differences of the two are exact, and the rest.
    exponent : int
        The parts are those of X 2^exponent.
    """

    kind: str
    high: torch.Tensor
    low: torch.Tensor
    half: torch.Tensor
    half_low: torch.Tensor
    exponent: int

    def __len__(self) -> int:
        return len(self.high)

    @property
    def features(self) -> int:
        """With padding."""
        return self.high.shape[1]

    @property
    def parts(self) -> int:
        return 2 if self.low.numel() or self.kind in (DOUBLE, FAST) else 1

    @property
    def unit(self) -> float:
        return 2.0**-self.exponent

    def take(self, rows: torch.Tensor | slice) -> Operand:
        """The given rows."""
        low = self.low[rows] if self.parts == 2 else self.low
        return replace(self, high=self.high[rows], low=low, half=self.half[rows], half_low=self.half_low[rows])


def prepare(X: torch.Tensor, kind: str | None = None, like: Operand | None = None) -> Operand:
    """Make rows ready.

    Parameters
    ----------
    X : tensor of shape (n, d), float32
        Centred by the caller where the kernel allows it: the smaller the norms, the finer the grid. A centre of whole
        numbers keeps pixels exact.
    kind : {"exact", "double", "fast", "float32"}, optional
        None decides between exact and double. "exact" is believed and not checked.
    like : Operand, optional
        Rows that these will be multiplied with: their scale is taken where these rows fit into it, and float32 rows
        get float32 partners.
    """
    X = X.to(torch.float32)
    kind = FLOAT32 if kind is None and like is not None and like.kind == FLOAT32 else kind
    padded = padded_features(X.shape[1])
    if kind == FLOAT32:
        return _float32(X, padded)
    if kind is None and like is None and _has_giants(X):
        return _float32(X, padded)
    exponent = _exponent(X, like)
    kind = kind if kind is not None else EXACT if _is_exact(X, exponent) else DOUBLE
    return _split(X, kind, exponent, padded)


def padded_features(d: int) -> int:
    """The number of columns of an operand's parts: what the tiles of `products` can be read by."""
    if d <= _WHOLE_FEATURES:
        return max(_LEAST_FEATURES, 1 << (d - 1).bit_length())
    return -(-d // _CHUNK_FEATURES) * _CHUNK_FEATURES


def chunk_features(padded: int) -> int:
    """How many of the padded features a tile holds at a time."""
    return padded if padded <= _WHOLE_FEATURES else _CHUNK_FEATURES


def _has_giants(X: torch.Tensor) -> bool:
    """Whether the largest row is far larger than most."""
    squares = torch.cat([_squares(part) for part in _parts(X)]) if len(X) else torch.zeros(1)
    return bool(squares.max() > _GIANT**2 * squares.median())


def _exponent(X: torch.Tensor, like: Operand | None) -> int:
    largest = math.sqrt(max((float(_squares(part).max()) for part in _parts(X)), default=0.0))
    if like is not None and largest <= _ROOM_ABOVE * _LARGEST_NORM * like.unit:
        return like.exponent
    return math.floor(math.log2(_LARGEST_NORM / largest)) if largest > 0.0 else 0


def _is_exact(X: torch.Tensor, exponent: int) -> bool:
    # Half numbers are let in: their sums lose at most two bits of 24, and pixels with large norms need them.
    for part in _parts(X):
        scaled = part * 2.0**exponent
        if not bool(((scaled.half() == scaled) & ((2.0 * scaled).round() == 2.0 * scaled)).all()):
            return False
    return True


def _split(X: torch.Tensor, kind: str, exponent: int, padded: int) -> Operand:
    n, d = X.shape
    high = torch.zeros((n, padded), dtype=torch.float16, device=X.device)
    low = torch.zeros((n, padded) if kind != EXACT else (0, padded), dtype=torch.float16, device=X.device)
    half = torch.empty(n, dtype=torch.float32, device=X.device)
    half_low = torch.empty_like(half)
    grid = 4.0**-exponent
    for start in range(0, n, _ROWS_AT_ONCE):
        rows = slice(start, min(start + _ROWS_AT_ONCE, n))
        scaled = X[rows].double() * 2.0**exponent
        if kind == EXACT:
            high[rows, :d] = scaled.half()
            squares = _squares(high[rows])
        else:
            high[rows, :d] = scaled.round().half()
            low[rows, :d] = (scaled - high[rows, :d].double()).half()
            squares = _squares(high[rows].double() + low[rows].double())
            if kind == FAST:  # so that a row's distance from itself is zero
                squares -= _squares(low[rows])
        on_grid = (0.5 * squares).round()
        half[rows], half_low[rows] = (on_grid * grid).float(), ((0.5 * squares - on_grid) * grid).float()
    return Operand(kind, high, low, half, half_low, exponent)


def _float32(X: torch.Tensor, padded: int) -> Operand:
    n, d = X.shape
    values = torch.zeros((n, padded), dtype=torch.float32, device=X.device)
    values[:, :d] = X
    halves = torch.cat([torch.zeros(0, dtype=torch.float64, device=X.device)] + [0.5 * _squares(p) for p in _parts(X)])
    half = halves.float()
    return Operand(FLOAT32, values, values[:0], half, (halves - half.double()).float(), 0)


def _parts(X: torch.Tensor) -> list[torch.Tensor]:
    return [X[start : start + _ROWS_AT_ONCE] for start in range(0, len(X), _ROWS_AT_ONCE)]


def _squares(X: torch.Tensor) -> torch.Tensor:
    """Squared norm of each row, in float64."""
    return X.double().square().sum(dim=1)
