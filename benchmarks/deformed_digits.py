"""Deformed handwritten digits: a training set as large as one likes, in the manner of MNIST-8M.

Each row is one MNIST training digit, bent by a smooth random displacement field,
turned, sheared and stretched a little, and shifted by up to one pixel each way.

Run as ``python -m benchmarks.deformed_digits picture.png`` to look at some of them.
"""

import sys
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from benchmarks.data import load

SIDE = 28
# Empty border around a digit, wide enough for every displacement.
MARGIN = 8
PADDED = SIDE + 2 * MARGIN
# Rows made at once: small enough for the working arrays to stay in the cache's reach.
CHUNK = 1_000

# Of the displacement field, in pixels: its typical length and how far its correlation reaches.
FIELD_STRENGTH = 0.7
FIELD_SMOOTHNESS = 4.0
# Typical entry of the random part of the affine map: a turn of 3 degrees, a stretch of 5 %.
AFFINE_STRENGTH = 0.05
# Displacements are whole multiples of 1/16 pixel, interpolation weights thus whole multiples of 1/256.
FRACTION = 16

ROUND_DIGITS = (0, 3, 6, 8, 9)


def deformed_digits(n: int, seed: int = 0) -> tuple[NDArray[np.uint8], NDArray[np.int8]]:
    """Make deformed digits.

    Parameters
    ----------
    n : int
        Number of rows.
    seed : int, default=0
        Equal seeds give equal rows; fewer rows are the first ones of more rows.

    Returns
    -------
    X : ndarray of uint8, shape (n, 784)
        Pixels, 0 to 255.
    y : ndarray of int8, shape (n,)
        The digits, 0 to 9.
    """
    X = np.empty((n, SIDE * SIDE), dtype=np.uint8)
    y = np.empty(n, dtype=np.int8)
    start = 0
    for pixels, digits in deformed_digit_chunks(n, seed):
        stop = start + len(digits)
        X[start:stop], y[start:stop] = pixels, digits
        start = stop
    return X, y


def deformed_digit_chunks(n: int, seed: int = 0) -> Iterator[tuple[NDArray[np.uint8], NDArray[np.int8]]]:
    """Make the rows of `deformed_digits` a thousand at a time, for sets that do not fit in memory."""
    if n < 0:
        raise ValueError(f"n={n} rows were asked for; n must not be negative")
    pixels, digits, _, _ = load("mnist")
    pass_number, order = -1, np.empty(0, dtype=np.int64)
    for start in range(0, n, CHUNK):
        # Each pass over the digits has its own order, so that any number of rows holds all classes evenly.
        if start // len(digits) != pass_number:
            pass_number = start // len(digits)
            order = np.random.default_rng([seed, 0, pass_number]).permutation(len(digits))
        position = start % len(digits)
        rows = order[position : position + CHUNK]
        deformed = _deform(pixels[rows], np.random.default_rng([seed, 1, start]))
        keep = min(CHUNK, n - start)
        yield deformed[:keep], digits[rows[:keep]]


def round_digits(y: NDArray[np.int8]) -> NDArray[np.int8]:
    """Labels of the binary problem: +1 for the round digits 0, 3, 6, 8 and 9, -1 for the others."""
    return np.where(np.isin(y, ROUND_DIGITS), 1, -1).astype(np.int8)


def _deform(pixels: NDArray[np.uint8], random: np.random.Generator) -> NDArray[np.uint8]:
    """Read every image at displaced places, between pixels by bilinear interpolation.

    Places are rounded to a fraction of a pixel and everything after that is computed in whole
    numbers, so that rounding errors, which differ between machines, do not reach the result.
    """
    m = len(pixels)
    padded = np.zeros((m, PADDED, PADDED), dtype=np.uint8)
    padded[:, MARGIN:-MARGIN, MARGIN:-MARGIN] = pixels.reshape(m, SIDE, SIDE)

    grid = np.arange(SIDE)
    own = np.stack(np.meshgrid(grid, grid, indexing="ij"))  # 2 x SIDE x SIDE
    place = np.rint(FRACTION * (own + _displacements(m, random))).astype(np.int32)
    place += FRACTION * MARGIN
    # The last place keeps one more pixel below and to its right.
    np.clip(place, 0, FRACTION * (PADDED - 1) - 1, out=place)
    whole, part = place // FRACTION, place % FRACTION
    row_part, column_part = part[:, 0], part[:, 1]

    first = whole[:, 0] * PADDED + whole[:, 1]
    first += (np.arange(m, dtype=np.int32) * PADDED**2)[:, None, None]
    source = padded.ravel()

    def between_columns(offset: int) -> NDArray[np.int32]:
        left = source[first + offset].astype(np.int32)
        right = source[first + (offset + 1)].astype(np.int32)
        return left * FRACTION + (right - left) * column_part

    above, below = between_columns(0), between_columns(PADDED)
    total = above * FRACTION + (below - above) * row_part
    # Half of the divisor is added to round to the nearest whole number.
    result = (total + FRACTION**2 // 2) // FRACTION**2
    return result.astype(np.uint8).reshape(m, SIDE * SIDE)


def _displacements(m: int, random: np.random.Generator) -> NDArray[np.float64]:
    """Draw m displacement fields in pixels: smooth field + affine map about the centre + shift.

    Returns an array of shape (m, 2, SIDE, SIDE); the second axis is rows, columns.
    """
    spread = _smoothing()
    noise = random.standard_normal((m, 2, spread.shape[1], spread.shape[1]))
    field = FIELD_STRENGTH * (spread @ noise @ spread.T)

    centred = np.arange(SIDE) - (SIDE - 1) / 2
    affine = AFFINE_STRENGTH * random.standard_normal((m, 2, 2))
    field += affine[:, :, 0, None, None] * centred[:, None]
    field += affine[:, :, 1, None, None] * centred[None, :]

    field += random.integers(-1, 2, size=(m, 2, 1, 1))
    return field


def _smoothing() -> NDArray[np.float64]:
    """Matrix that spreads white noise on a coarse line into a smooth curve on the SIDE pixels.

    Applied along both directions it is a Gaussian filter of independent noise. The coarse
    points lie closer than the filter is wide, so that the curve cannot be told from one filtered at
    full resolution, with a tenth of the random numbers.
    """
    coarse = np.arange(-2 * FIELD_SMOOTHNESS, SIDE + 2 * FIELD_SMOOTHNESS, FIELD_SMOOTHNESS)
    distance = np.arange(SIDE)[:, None] - coarse[None, :]
    weights = np.exp(-0.5 * (distance / FIELD_SMOOTHNESS) ** 2)
    # Rows of unit length give each pixel's displacement the same variance, 1.
    return weights / np.linalg.norm(weights, axis=1, keepdims=True)


def save_picture(path: str, n_columns: int = 20, seed: int = 0) -> None:
    """Save a picture of deformed digits, one row for each of the digits 0 to 9."""
    from matplotlib.image import imsave

    X, y = deformed_digits(n_columns * 30, seed)
    lines = [X[y == digit][:n_columns].reshape(-1, SIDE, SIDE) for digit in range(10)]
    picture = np.concatenate([np.concatenate(list(line), axis=1) for line in lines])
    imsave(path, 255 - picture, cmap="gray", vmin=0, vmax=255)


if __name__ == "__main__":
    save_picture(sys.argv[1] if len(sys.argv) > 1 else "deformed_digits.png")
