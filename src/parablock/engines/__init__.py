"""Engines: how machines talk. Local for now: one machine."""

from collections.abc import Callable

from parablock.devices.base import Device, Samples
from parablock.engines.base import Engine
from parablock.engines.local import LocalEngine
from parablock.kernels import Kernel

ENGINES: dict[str, Callable[[Device, Kernel, Samples], Engine]] = {"local": LocalEngine}

__all__ = ["ENGINES", "Engine", "LocalEngine"]
