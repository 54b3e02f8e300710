"""Devices: what one machine computes with. The CPU, or a GPU."""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from parablock.devices.base import BlockRule, BlockStep, Device, Samples
from parablock.devices.cpu import CpuDevice


def _cuda(n_jobs: int | None, memory_limit: Any = None, sharers: int = 1, place: int = 0) -> Device:
    try:
        from parablock.devices.cuda.device import CudaDevice  # PyTorch takes seconds to import
    except ImportError as error:
        raise ImportError("device='cuda' needs PyTorch and Triton: pip install 'parablock[gpu]'.") from error
    return CudaDevice(n_jobs, memory_limit, sharers, place)


def _auto(n_jobs: int | None, memory_limit: Any = None, sharers: int = 1, place: int = 0) -> Device:
    if find_spec("torch") and find_spec("triton"):
        import torch

        if torch.cuda.is_available():
            return _cuda(n_jobs, memory_limit, sharers, place)
    return CpuDevice(n_jobs, memory_limit, sharers, place)


DEVICES: dict[str, Callable[..., Device]] = {"cpu": CpuDevice, "cuda": _cuda, "auto": _auto}

__all__ = ["DEVICES", "BlockRule", "BlockStep", "CpuDevice", "Device", "Samples"]
