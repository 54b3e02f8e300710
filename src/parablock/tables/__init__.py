"""Kernel machines for tables that learn their metric."""

from parablock.tables.estimators import AutoKernelClassifier, AutoKernelRegressor

__all__ = ["AutoKernelClassifier", "AutoKernelRegressor"]
