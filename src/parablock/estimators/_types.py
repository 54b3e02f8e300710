"""The types of the estimators' parameters."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from parablock.engines import Engine
from parablock.kernels import Kernel
from parablock.monitor import Checkpoint
from parablock.partition import Partitioner
from parablock.solver import BlockSolver

KernelName: TypeAlias = Literal[
    "rbf", "laplacian", "chi2", "matern32", "matern52", "linear", "polynomial", "poly", "sigmoid", "cosine",
    "precomputed",
]  # fmt: skip
PartitionName: TypeAlias = Literal["tree", "kmeans", "kernel_kmeans", "random"]
BlockSolverName: TypeAlias = Literal["greedy", "random", "cyclic"]
EngineName: TypeAlias = Literal["local", "mpi"]
GammaName: TypeAlias = Literal["scale", "auto"]
DeviceName: TypeAlias = Literal["cpu", "cuda", "auto"]

KernelLike: TypeAlias = KernelName | Kernel | Callable[[Any, Any], Any]
Gamma: TypeAlias = GammaName | float
ClassWeight: TypeAlias = Mapping[Any, float] | Literal["balanced"] | None
PartitionLike: TypeAlias = PartitionName | Partitioner | Sequence[int] | np.ndarray
BlockSolverLike: TypeAlias = BlockSolverName | BlockSolver
LineSearch: TypeAlias = Literal["auto", "exact", "armijo"]
Prediction: TypeAlias = Literal["global", "local"]
EngineLike: TypeAlias = EngineName | Engine
MemoryLimit: TypeAlias = float | str | None
CheckpointLike: TypeAlias = str | os.PathLike[str] | Checkpoint | None
Resume: TypeAlias = bool | Literal["auto"]
RandomState: TypeAlias = int | np.random.RandomState | None
HingeName: TypeAlias = Literal["hinge", "squared_hinge"]
