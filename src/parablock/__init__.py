"""parablock: exact kernel machines at scale, by parallel block minimisation."""

from parablock.estimators import (
    KernelClassifier,
    KernelLogisticRegression,
    KernelQuantileRegressor,
    KernelRegressor,
    KernelRidge,
    KernelSVC,
    KernelSVR,
)
from parablock.losses import Loss
from parablock.models import load, save
from parablock.monitor import Checkpoint, CheckpointError, announce_compilation
from parablock.planning import plan
from parablock.selection import KernelLogisticRegressionCV, KernelSVCCV, KernelSVRCV
from parablock.solver import BlockSolver
from parablock.training import solve

__version__ = "0.1.0"

announce_compilation()

__all__ = [
    "BlockSolver",
    "Checkpoint",
    "CheckpointError",
    "KernelClassifier",
    "KernelLogisticRegression",
    "KernelLogisticRegressionCV",
    "KernelQuantileRegressor",
    "KernelRegressor",
    "KernelRidge",
    "KernelSVC",
    "KernelSVCCV",
    "KernelSVR",
    "KernelSVRCV",
    "Loss",
    "__version__",
    "load",
    "plan",
    "save",
    "solve",
]
