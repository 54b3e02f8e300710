"""How good a partition is: the paper's error ||Kbar - K||_F^2, estimated by sampling."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from parablock.devices.base import Device, Samples
from parablock.kernels import Kernel

_ROWS = 128
_COLUMNS = 1024


def kernel_mass_inside(
    device: Device, kernel: Kernel, samples: Samples, blocks: Sequence[np.ndarray], rng: np.random.Generator
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
    squares = device.gram(kernel, samples.take(rows), samples.take(everyone)) ** 2
    inside = outside = 0.0
    for number in np.unique(labels[rows]):
        block, chosen = blocks[number], labels[rows] == number
        mates = block if len(block) <= _COLUMNS else rng.choice(block, size=_COLUMNS, replace=False)
        own = device.gram(kernel, samples.take(rows[chosen]), samples.take(mates)) ** 2
        inside += float(own.mean()) * len(block) * len(own)
        others = labels[everyone] != number
        if others.any():
            outside += float(squares[chosen][:, others].mean()) * (n - len(block)) * len(own)
    return inside / (inside + outside) if inside + outside > 0 else 1.0
