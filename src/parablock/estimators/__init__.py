"""The scikit-learn faces of the kernel machines."""

from parablock.estimators.classification import KernelClassifier, KernelLogisticRegression, KernelSVC
from parablock.estimators.regression import (
    KernelQuantileRegressor,
    KernelRegressor,
    KernelRidge,
    KernelSVR,
)

__all__ = [
    "KernelClassifier",
    "KernelLogisticRegression",
    "KernelQuantileRegressor",
    "KernelRegressor",
    "KernelRidge",
    "KernelSVC",
    "KernelSVR",
]
