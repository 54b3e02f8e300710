"""Deformed handwritten digits made on a GPU: millions of them in seconds, and they never leave it.

The recipe is that of `benchmarks.deformed_digits`, with random numbers of its own:

    X, y = digits_on_device(8_000_000)
    KernelSVC(device="cuda").fit(X, round_labels(y))
"""

from __future__ import annotations

from typing import Any

import torch

from benchmarks.data import load
from benchmarks.deformed_digits import (
    AFFINE_STRENGTH,
    FIELD_STRENGTH,
    FRACTION,
    MARGIN,
    PADDED,
    ROUND_DIGITS,
    SIDE,
    _smoothing,
)

_MOST_PASSES = 1 << 20  # over the digits, with one seed


def digits_on_device(n: int, seed: int = 0, device: Any = "cuda") -> tuple[torch.Tensor, torch.Tensor]:
    """Make deformed digits.

    Parameters
    ----------
    n : int
        Number of rows.
    seed : int, default=0
        Equal seeds give equal rows on equal devices; fewer rows are the first ones of more rows.
    device : torch.device or str, default="cuda"

    Returns
    -------
    X : tensor of uint8, shape (n, 784)
        Pixels, 0 to 255.
    y : tensor of int8, shape (n,)
        The digits, 0 to 9.
    """
    pixels, digits, _, _ = load("mnist")
    return deformed(torch.as_tensor(pixels, device=device), torch.as_tensor(digits, device=device), n, seed)


def round_labels(y: torch.Tensor) -> torch.Tensor:
    """Labels of the binary problem: +1 for the round digits 0, 3, 6, 8 and 9, -1 for the others."""
    round_ones = torch.tensor(ROUND_DIGITS, dtype=y.dtype, device=y.device)
    return (2 * torch.isin(y, round_ones).to(torch.int8) - 1).to(torch.int8)


def deformed(pixels: torch.Tensor, digits: torch.Tensor, n: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """So many deformations of the given digits, one of each before the second of any."""
    if n < 0:
        raise ValueError(f"n={n} rows were asked for; n must not be negative")
    X = torch.empty((n, SIDE * SIDE), dtype=torch.uint8, device=pixels.device)
    y = torch.empty(n, dtype=torch.int8, device=pixels.device)
    for number, start in enumerate(range(0, n, len(digits))):
        random = torch.Generator(pixels.device).manual_seed(seed * _MOST_PASSES + number)
        order = torch.randperm(len(digits), generator=random, device=pixels.device)
        # Drawn for a whole pass, so that fewer rows get the same numbers.
        rows, fields = order[: n - start], displacements(len(digits), random)[: n - start]
        X[start : start + len(rows)], y[start : start + len(rows)] = deform(pixels[rows], fields), digits[rows]
    return X, y


def deform(pixels: torch.Tensor, fields: torch.Tensor) -> torch.Tensor:
    """Read every image at displaced places, between pixels by bilinear interpolation, in whole numbers.

    Parameters
    ----------
    pixels : tensor of uint8, shape (m, 784)
    fields : tensor of shape (m, 2, 28, 28)
        Displacements in pixels: of rows, of columns.
    """
    m, device = len(pixels), pixels.device
    padded = torch.zeros((m, PADDED, PADDED), dtype=torch.uint8, device=device)
    padded[:, MARGIN:-MARGIN, MARGIN:-MARGIN] = pixels.reshape(m, SIDE, SIDE)
    source = padded.reshape(m, -1)

    grid = torch.arange(SIDE, device=device)
    own = torch.stack(torch.meshgrid(grid, grid, indexing="ij"))
    place = (FRACTION * (own + fields)).round().to(torch.int32) + FRACTION * MARGIN
    # The last place keeps one more pixel below and to its right.
    place = place.clamp(0, FRACTION * (PADDED - 1) - 1).reshape(m, 2, -1)
    whole, part = place // FRACTION, place % FRACTION
    first = (whole[:, 0] * PADDED + whole[:, 1]).long()

    def between_columns(offset: int) -> torch.Tensor:
        left = source.gather(1, first + offset).int()
        right = source.gather(1, first + (offset + 1)).int()
        return left * FRACTION + (right - left) * part[:, 1]

    above, below = between_columns(0), between_columns(PADDED)
    total = above * FRACTION + (below - above) * part[:, 0]
    # Half of the divisor is added to round to the nearest whole number.
    return ((total + FRACTION**2 // 2) // FRACTION**2).to(torch.uint8)


def displacements(m: int, random: torch.Generator) -> torch.Tensor:
    """Draw m displacement fields in pixels, shape (m, 2, 28, 28): smooth field, affine map about the centre, shift."""
    device = random.device
    spread = torch.as_tensor(_smoothing(), dtype=torch.float32, device=device)
    noise = torch.randn((m, 2, spread.shape[1], spread.shape[1]), generator=random, device=device)
    fields = FIELD_STRENGTH * (spread @ noise @ spread.T)
    centred = torch.arange(SIDE, device=device) - (SIDE - 1) / 2
    affine = AFFINE_STRENGTH * torch.randn((m, 2, 2), generator=random, device=device)
    fields += affine[:, :, 0, None, None] * centred[:, None]
    fields += affine[:, :, 1, None, None] * centred[None, :]
    fields += torch.randint(-1, 2, (m, 2, 1, 1), generator=random, device=device)
    return fields
