"""Devices: what one machine computes with. The CPU for now."""

from collections.abc import Callable

from parablock.devices.base import BlockRule, BlockStep, Device, Samples
from parablock.devices.cpu import CpuDevice

DEVICES: dict[str, Callable[[int | None, int], Device]] = {"cpu": CpuDevice}

__all__ = ["DEVICES", "BlockRule", "BlockStep", "CpuDevice", "Device", "Samples"]
