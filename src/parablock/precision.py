"""In which precision a fit computes its kernel: that of the data, unless float32 would change the answer."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from parablock.devices.base import Device
from parablock.devices.digits import LARGEST_ERROR, gamma_fits, is_whole
from parablock.engines import Crew, Engine, Shard
from parablock.kernels import Kernel
from parablock.mapped import in_precision

_SCALE = "Scale the features (for instance with StandardScaler)"


def crew_with_digits(
    engine: Engine, device: Device, kernel: Kernel, X: Any, centre: np.ndarray | None
) -> tuple[Crew, Any, np.ndarray | None]:
    """The crew over rows in a precision in which kernel values keep their digits, with the rows and what is subtracted
    from them.

    Raises
    ------
    ValueError
        Where the device has no such precision.
    """

    def over(X: Any, centre: np.ndarray | None) -> tuple[Crew, float]:
        with np.errstate(over="ignore", invalid="ignore"):  # what leaves the range is found below
            crew = engine.checked(lambda: engine.over(device, kernel, X, centre))
        return crew, crew.kernel_error(X, centre)

    crew, error = over(X, centre)
    if error > LARGEST_ERROR and X.dtype == np.float32 and device.has_float64:
        found = error
        if centre is not None and engine.everywhere(engine.checked(lambda: is_whole(_own(X)))):
            centre = np.rint(centre)
            crew, error = over(X, centre)
        if error > LARGEST_ERROR:
            X = rows_in(X, np.dtype(np.float64))
            crew, error = over(X, centre)
            if error <= LARGEST_ERROR and crew.is_first:
                warnings.warn(
                    f"{_named(kernel, found, np.float32)} in float32, the precision of the data. They are computed in "
                    f"float64 instead, which takes about twice the memory and time. {_SCALE} to train in float32."
                )
    if error > LARGEST_ERROR:
        other = f" or choose another gamma than {kernel.gamma:g}" if hasattr(kernel, "gamma") else ""
        if device.has_float64:
            raise ValueError(f"{_named(kernel, error, np.float64)} even in float64. {_SCALE}{other}.")
        raise ValueError(
            f"{_named(kernel, error, np.float32)} in float32, in which device={device.name!r} computes. "
            f"{_SCALE}{other}, or use device='cpu'."
        )
    return crew, X, centre


def rows_in(X: Any, dtype: np.dtype) -> Any:
    """The rows of all machines in another type."""
    return X.in_precision(dtype) if isinstance(X, Shard) else in_precision(X, dtype)


def _own(X: Any) -> Any:
    return X.own if isinstance(X, Shard) else X


def _named(kernel: Kernel, error: float, dtype: Any) -> str:
    gamma = f" with gamma={kernel.gamma:g}" if hasattr(kernel, "gamma") else ""
    name = f"Values of the {type(kernel).__name__.lower()} kernel{gamma}"
    if not gamma_fits(kernel, dtype):
        return f"{name} lose their digits, because gamma leaves the range of numbers"
    if np.isinf(error):
        return f"{name} on this data are not finite numbers, or too large to add up,"
    return f"{name} lose their digits on this data (of a few values one is wrong by {error:.1g})"
