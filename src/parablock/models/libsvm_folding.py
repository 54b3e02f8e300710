"""LIBSVM's format has no scaling of features: it is put into support vectors and kernel, where that can be done.

linear               v . (x - a) s  =  (v s) . x - (v s) . a     the last is a part of the intercept
rbf, one factor      |v - (x - a) s|^2  =  s^2 |v / s + a - x|^2    s^2 is a part of gamma
polynomial, sigmoid  v . (x s)  =  (v s) . x                     with a shift there would be a coef0 for every vector
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from parablock.kernels import RBF, Kernel, Linear
from parablock.models.exported import Exported
from parablock.models.files import ModelFileError
from parablock.models.libsvm_file import kernel_name
from parablock.scaling import Scaling


def of_rows_as_they_are(machine: Exported, scaling: Scaling) -> Exported:
    """The same machine of rows that are not scaled."""
    if not folds(machine.kernel, scaling):
        where = "all features have the same factor" if isinstance(machine.kernel, RBF) else "nothing is shifted"
        raise ModelFileError(
            "LIBSVM's format has no scaling of features; with the "
            f"{kernel_name(machine.kernel)} kernel it can be put into the support vectors where {where}, which is not "
            "so in this model. Write a .pbk or ONNX file (parablock.save, parablock.models.to_onnx), which hold it; or "
            "train on rows that are scaled beforehand, and scale rows to predict in the same way."
        )
    if isinstance(machine.kernel, RBF):
        factor = float(scaling.scale[0])
        vectors = machine.vectors / factor
        if scaling.shifts:
            vectors = machine.dense_vectors / factor + scaling.shift
        return replace(machine, kernel=RBF(machine.kernel.gamma * factor**2), vectors=vectors, scaling=None)
    vectors = _times(machine.vectors, scaling.scale)
    intercept = machine.intercept - machine.coef @ (vectors @ scaling.shift)
    return replace(machine, vectors=vectors, intercept=intercept, scaling=None)


def folds(kernel: Kernel, scaling: Scaling) -> bool:
    """Whether LIBSVM's format has a place for the scaling."""
    if isinstance(kernel, RBF):
        return bool(np.all(scaling.scale == scaling.scale[0]))
    return isinstance(kernel, Linear) or not scaling.shifts


def _times(vectors: Any, scale: np.ndarray) -> Any:
    return sp.csr_matrix(vectors.multiply(scale)) if sp.issparse(vectors) else vectors * scale
