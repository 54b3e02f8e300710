"""A first look at kernel values, before any work is spent on them."""

from __future__ import annotations

import numpy as np

from parablock.devices.base import Device, Samples
from parablock.kernels import Kernel


def refuse_nonsense(device: Device, kernel: Kernel, samples: Samples, rng: np.random.Generator) -> None:
    """A kernel matrix must be finite and symmetric with a diagonal that is not negative; look at a sample of it."""
    diagonal = kernel.diagonal(samples.self_overlap)
    few = samples.take(np.sort(rng.choice(len(samples), size=min(len(samples), 64), replace=False)))
    values = device.gram(kernel, few, few)
    name = type(kernel).__name__.lower()
    if not (np.all(np.isfinite(values)) and np.all(np.isfinite(diagonal))):
        raise ValueError(
            f"The {name} kernel gives values that are not finite numbers on this data. Scale the features (for "
            "instance with StandardScaler) or lower gamma, coef0 or degree."
        )
    if not np.allclose(values, values.T, rtol=1e-3, atol=1e-5 * max(1.0, float(np.abs(values).max()))):
        raise ValueError(
            f"The {name} kernel matrix is not symmetric: K(x, z) must equal K(z, x). Largest difference found: "
            f"{np.abs(values - values.T).max():.3g}."
        )
