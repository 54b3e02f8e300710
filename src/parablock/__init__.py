"""parablock: exact kernel machines at scale, by parallel block minimisation."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from parablock import callbacks as callbacks
    from parablock import datasets as datasets
    from parablock import engines as engines
    from parablock import estimators as estimators
    from parablock import kernels as kernels
    from parablock import losses as losses
    from parablock import models as models
    from parablock import monitor as monitor
    from parablock import partition as partition
    from parablock import planning as planning
    from parablock import plots as plots
    from parablock import report as report
    from parablock import selection as selection
    from parablock import solver as solver
    from parablock.certificate import Certificate, CertificateError
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
    from parablock.monitor import Checkpoint, CheckpointError
    from parablock.planning import plan
    from parablock.selection import KernelLogisticRegressionCV, KernelSVCCV, KernelSVRCV
    from parablock.solver import BlockSolver
    from parablock.tables import AutoKernelClassifier, AutoKernelRegressor
    from parablock.training import solve
    from parablock.warming import warm_up

__version__ = "0.1.0"

__all__ = [
    "AutoKernelClassifier",
    "AutoKernelRegressor",
    "BlockSolver",
    "Certificate",
    "CertificateError",
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
    "warm_up",
]

# Numba and scikit-learn take a second to import: what needs them is imported when it is first named.
_HOMES = {
    "AutoKernelClassifier": "tables",
    "AutoKernelRegressor": "tables",
    "BlockSolver": "solver",
    "Certificate": "certificate",
    "CertificateError": "certificate",
    "Checkpoint": "monitor",
    "CheckpointError": "monitor",
    "KernelLogisticRegressionCV": "selection",
    "KernelSVCCV": "selection",
    "KernelSVRCV": "selection",
    "Loss": "losses",
    "load": "models",
    "plan": "planning",
    "save": "models",
    "solve": "training",
    "warm_up": "warming",
}
_MODULES = (
    "callbacks", "datasets", "engines", "estimators", "kernels", "losses", "models", "monitor", "partition", "planning",
    "plots", "report", "selection", "solver", "tables",
)  # fmt: skip


if not TYPE_CHECKING:  # to a type checker it would have every name

    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            return import_module(f"parablock.{name}")
        if name not in __all__:
            raise AttributeError(f"module 'parablock' has no attribute {name!r}")
        value = getattr(import_module(f"parablock.{_HOMES.get(name, 'estimators')}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
