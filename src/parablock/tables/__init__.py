"""Kernel machines for tables that learn their metric."""

from parablock.tables.classification import AutoKernelClassifier
from parablock.tables.regression import AutoKernelRegressor

__all__ = ["AutoKernelClassifier", "AutoKernelRegressor"]
