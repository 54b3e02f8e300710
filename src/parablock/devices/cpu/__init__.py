"""The CPU: Numba-compiled loops and BLAS tiles that stay in a core's cache."""

from parablock.devices.cpu.device import CpuDevice

__all__ = ["CpuDevice"]
