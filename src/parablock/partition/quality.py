"""How good a partition is: the paper's error ||Kbar - K||_F^2, estimated by sampling."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from parablock.devices.base import Device, Samples
from parablock.kernels import Kernel
from parablock.partition.base import Spread, alone

_ROWS = 128
_COLUMNS = 1024


def kernel_mass_inside(
    device: Device,
    kernel: Kernel,
    samples: Samples,
    blocks: Sequence[np.ndarray],
    rng: np.random.Generator,
    spread: Spread = alone,
) -> float:
    """Share of the kernel's squared mass inside the blocks.

    For a few sampled rows the mass with (a sample of) their own block and with a sample of all other rows,
    each scaled to its full number. The diagonal counts as inside, as it does in the paper.
    """
    n = len(samples)
    if len(blocks) == 1:
        return 1.0
    labels = np.empty(n, dtype=np.intp)
    for number, block in enumerate(blocks):
        labels[block] = number
    rows = rng.choice(n, size=min(n, _ROWS), replace=False)
    everyone = rng.choice(n, size=min(n, _COLUMNS), replace=False)
    present = np.unique(labels[rows]).tolist()
    seeds = rng.integers(2**62, size=len(present)).tolist()
    sampled = samples.take(everyone)

    def mass(item: tuple[int, int]) -> tuple[float, float]:
        """Of the sampled rows of one block: inside it and outside."""
        number, seed = item
        chosen, mates, size = samples.take(rows[labels[rows] == number]), blocks[number], len(blocks[number])
        if size > _COLUMNS:
            mates = np.random.default_rng(seed).choice(mates, size=_COLUMNS, replace=False)
        own = device.gram(kernel, chosen, samples.take(mates)) ** 2
        others = labels[everyone] != number
        if not others.any():
            return float(own.mean()) * size * len(own), 0.0
        outside = (device.gram(kernel, chosen, sampled) ** 2)[:, others]
        return float(own.mean()) * size * len(own), float(outside.mean()) * (n - size) * len(own)

    inside, outside = np.sum(spread(mass, list(zip(present, seeds, strict=True))), axis=0).tolist()
    return inside / (inside + outside) if inside + outside > 0 else 1.0
