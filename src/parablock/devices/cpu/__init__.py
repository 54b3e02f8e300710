"""The CPU: Numba-compiled loops and BLAS tiles that stay in a core's cache."""

from parablock.devices.cpu.device import CpuDevice
from parablock.monitor.compilation import announce_compilation

announce_compilation()

__all__ = ["CpuDevice"]
