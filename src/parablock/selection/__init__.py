"""Model selection: C and gamma by cross-validation, and models along C."""

from parablock.selection.display import GridDisplay
from parablock.selection.estimators import KernelLogisticRegressionCV, KernelSVCCV, KernelSVRCV

__all__ = ["GridDisplay", "KernelLogisticRegressionCV", "KernelSVCCV", "KernelSVRCV"]
