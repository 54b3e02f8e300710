"""What a run's log tells of where and how it was made."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np

_PACKAGES = ("parablock", "numpy", "scipy", "scikit-learn", "numba", "torch", "triton", "mpi4py", "dask")
_LONGEST_TEXT = 200


def machine(device: str) -> dict[str, Any]:
    """Processor, cores, memory and system; the graphics card where that computes."""
    found = {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_bytes": _memory_bytes(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "graphics_card": _card() if device != "cpu" else None,
    }
    return {name: value for name, value in found.items() if value}


def versions() -> dict[str, str]:
    """Of Python, and of the packages that matter as far as they are installed."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def settings(estimator: Any) -> dict[str, Any]:
    """The estimator's parameters, as JSON can hold them."""
    return {name: plain(value) for name, value in estimator.get_params(deep=False).items()}


def plain(value: Any) -> Any:
    """A value as JSON can hold it: numbers that are not finite become None, and what is no number or text is told in
    words."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value) if np.isfinite(float(value)) else None
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if hasattr(value, "shape"):
        return f"{type(value).__name__} of shape {tuple(value.shape)}"
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value] if len(value) <= 20 else f"{type(value).__name__} of {len(value)} values"
    text = value.__qualname__ if callable(value) and hasattr(value, "__qualname__") else repr(value)
    return text if len(text) <= _LONGEST_TEXT else text[: _LONGEST_TEXT - 1] + "…"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:  # not Linux
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _memory_bytes() -> int | None:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):  # not every system tells
        return None


def _card() -> str | None:
    try:
        import torch  # which the fit is about to do too
    except ImportError:
        return None
    return torch.cuda.get_device_name() if torch.cuda.is_available() else None
