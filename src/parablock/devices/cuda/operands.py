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
from typing import Any, NamedTuple

import torch

from parablock.devices.cuda.sources import Source, SparseSource

EXACT, DOUBLE, FAST, FLOAT32 = "exact", "double", "fast", "float32"
_LARGEST_NORM = 2.0**12  # its square is the last whole number up to which float32 has no gaps
_ROOM_ABOVE = 2.0**3  # rows may be so much larger than those that the exponent was made for: float16 ends at 2^16
_GIANT = 64.0  # norm of a row beside the median, from which on the others would lose digits that float32 has
_LEAST_FEATURES = 16  # of a product on tensor cores
_WHOLE_FEATURES = 128  # up to which a tile of rows is held at once; beyond that, it is read in chunks ...
_CHUNK_FEATURES = 64  # ... of this many features
_BYTES_A_FEATURE = 4  # of a row: two parts of float16, or float32


class Grid(NamedTuple):
    """How rows are split; rows of one grid have the same parts whether they are split together or apart.

    Attributes
    ----------
    kind : {"exact", "double", "fast", "float32"}
        See above.
    exponent : int
        The parts are those of X 2^exponent.
    """

    kind: str
    exponent: int

    @property
    def unit(self) -> float:
        return 2.0**-self.exponent


@dataclass(frozen=True)
class Operand:
    """Rows of data on the device, as the kernels of `fused` read them. They are all that is kept of the rows: with
    brackets they are had back as numbers.

    Attributes
    ----------
    grid : Grid
    high, low : tensor of shape (n, padded features)
        float16, or float32 for that kind; `low` is empty where there is one part.
    half, half_low : tensor of shape (n,), float32
        Half of the squared norms in the data's own units: `half` on the grid of the products of high parts, so that
        differences of the two are exact, and the rest.
    width : int
        Features without padding.
    """

    grid: Grid
    high: torch.Tensor
    low: torch.Tensor
    half: torch.Tensor
    half_low: torch.Tensor
    width: int

    def __len__(self) -> int:
        return len(self.high)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self), self.width

    @property
    def device(self) -> torch.device:
        return self.high.device

    @property
    def kind(self) -> str:
        return self.grid.kind

    @property
    def exponent(self) -> int:
        return self.grid.exponent

    @property
    def unit(self) -> float:
        return self.grid.unit

    @property
    def features(self) -> int:
        """With padding."""
        return self.high.shape[1]

    @property
    def parts(self) -> int:
        return 2 if self.kind in (DOUBLE, FAST) else 1

    @property
    def squares(self) -> torch.Tensor:
        """Squared norms, float64."""
        return 2.0 * (self.half.double() + self.half_low.double())

    def take(self, rows: Any) -> Operand:
        """The given rows."""
        rows = on_device(rows, self.device)
        low = self.low[rows] if self.parts == 2 else self.low
        return replace(self, high=self.high[rows], low=low, half=self.half[rows], half_low=self.half_low[rows])

    def __getitem__(self, rows: Any) -> torch.Tensor:
        """The given rows as float32 numbers, without padding: those of the data to about 2^-25 of its largest norm."""
        rows = on_device(rows, self.device)
        values = self.high[rows][..., : self.width].float()
        if self.parts == 2:
            values += self.low[rows][..., : self.width]
        return values if self.exponent == 0 else values * self.unit


def on_device(rows: Any, device: torch.device) -> Any:
    """Numbers of rows (an array, a tensor or a slice) as a tensor on the device needs them."""
    return rows if isinstance(rows, slice) else torch.as_tensor(rows, device=device)


def prepare(X: torch.Tensor | Source | SparseSource, kind: str | None = None, like: Operand | None = None) -> Operand:
    """Make rows ready.

    Parameters
    ----------
    X : tensor of shape (n, d), Source or SparseSource
        Centred by the caller where the kernel allows it: the smaller the norms, the finer the grid. A centre of whole
        numbers keeps pixels exact.
    kind : {"exact", "double", "fast", "float32"}, optional
        None decides between exact and double. "exact" is believed and not checked.
    like : Operand, optional
        Rows that these will be multiplied with: their scale is taken where these rows fit into it, and float32 rows
        get float32 partners.
    """
    rows = Source(X, X.device, on_card=True) if isinstance(X, torch.Tensor) else X
    return split(rows, grid_of(rows, kind, like))


def padded_features(d: int) -> int:
    """The number of columns of an operand's parts: what the tiles of `fused` can be read by."""
    if d <= _WHOLE_FEATURES:
        return max(_LEAST_FEATURES, 1 << (d - 1).bit_length())
    return -(-d // _CHUNK_FEATURES) * _CHUNK_FEATURES


def chunk_features(padded: int) -> int:
    """How many of the padded features a tile holds at a time."""
    return padded if padded <= _WHOLE_FEATURES else _CHUNK_FEATURES


def operand_bytes(n: int, d: int) -> int:
    """What so many rows take at most."""
    return n * padded_features(d) * _BYTES_A_FEATURE


def grid_of(rows: Source | SparseSource, kind: str | None = None, like: Operand | None = None) -> Grid:
    """How these rows are to be split, as `prepare` says."""
    if kind == FLOAT32 or (kind is None and like is not None and like.kind == FLOAT32):
        return Grid(FLOAT32, 0)
    if len(rows) == 0:
        return Grid(kind or EXACT, 0)
    squares = torch.cat([_squares(part) for _, part in rows.parts()])
    largest, median = math.sqrt(float(squares.max())), math.sqrt(float(squares.median()))
    if kind is None and like is None and largest > _GIANT * median:
        return Grid(FLOAT32, 0)
    if like is not None and largest <= _ROOM_ABOVE * _LARGEST_NORM * like.unit:
        exponent = like.exponent
    else:
        exponent = math.floor(math.log2(_LARGEST_NORM / largest)) if largest > 0.0 else 0
    return Grid(kind or (EXACT if _is_exact(rows, exponent) else DOUBLE), exponent)


def split(rows: Source | SparseSource, grid: Grid) -> Operand:
    """The rows in parts."""
    n, d = rows.shape
    padded, kind = padded_features(d), grid.kind
    high = torch.zeros((n, padded), dtype=torch.float32 if kind == FLOAT32 else torch.float16, device=rows.device)
    low = torch.zeros((n if kind in (DOUBLE, FAST) else 0, padded), dtype=high.dtype, device=rows.device)
    half = torch.empty(n, dtype=torch.float32, device=rows.device)
    half_low = torch.empty_like(half)
    for places, part in rows.parts():
        high[places, :d], rest, half[places], half_low[places] = _split(part, grid)
        if kind in (DOUBLE, FAST):
            low[places, :d] = rest
    return Operand(grid, high, low, half, half_low, d)


def _split(X: torch.Tensor, grid: Grid) -> tuple[torch.Tensor, ...]:
    """High and low part of some rows, and those of half of their squared norms."""
    if grid.kind == FLOAT32:
        halves = 0.5 * _squares(X)
        half = halves.float()
        return X, X[:0], half, (halves - half.double()).float()
    scaled = X.double() * 2.0**grid.exponent
    if grid.kind == EXACT:
        high = scaled.half()
        low, squares = high[:0], _squares(high)
    else:
        high = scaled.round().half()
        low = (scaled - high.double()).half()
        squares = _squares(high.double() + low.double())
        if grid.kind == FAST:  # so that a row's distance from itself is zero
            squares -= _squares(low)
    on_grid, unit = (0.5 * squares).round(), grid.unit**2
    return high, low, (on_grid * unit).float(), ((0.5 * squares - on_grid) * unit).float()


def _is_exact(rows: Source | SparseSource, exponent: int) -> bool:
    # Half numbers are let in: their sums lose at most two bits of 24, and pixels with large norms need them.
    for _, part in rows.parts():
        scaled = part * 2.0**exponent
        if not bool(((scaled.half() == scaled) & ((2.0 * scaled).round() == 2.0 * scaled)).all()):
            return False
    return True


def _squares(X: torch.Tensor) -> torch.Tensor:
    """Squared norm of each row, in float64."""
    return X.double().square().sum(dim=1)
