"""What all exports share: the kernel expansion of a fitted estimator, as plain numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from parablock.estimators import KernelClassifier, KernelLogisticRegression, KernelRegressor
from parablock.kernels import Called, Kernel
from parablock.models.files import ModelFileError
from parablock.scaling import Scaling


@dataclass(frozen=True)
class Exported:
    """``decision = coef @ K(vectors, X) + intercept``, one row an output; X scaled first, where there is a scaling.

    Attributes
    ----------
    kernel : Kernel
    vectors : array or CSR matrix of shape (n_support, n_features), float64
        For a precomputed kernel of shape (n_support, 0).
    coef : ndarray of shape (n_outputs, n_support)
    intercept : ndarray of shape (n_outputs,)
    classes : ndarray or None
        Of a classifier; with two of them there is one output, positive for the second.
    probabilities : bool
        Whether the model also has those of logistic regression.
    scaling : Scaling or None
        Of rows, before the kernel sees them; the support vectors are scaled by it already.
    """

    kernel: Kernel
    vectors: Any
    coef: np.ndarray
    intercept: np.ndarray
    classes: np.ndarray | None
    probabilities: bool
    scaling: Scaling | None

    @property
    def dense_vectors(self) -> np.ndarray:
        return self.vectors.toarray() if sp.issparse(self.vectors) else self.vectors

    @property
    def sparse_vectors(self) -> sp.csr_matrix:
        vectors = sp.csr_matrix(self.vectors, copy=True)
        vectors.sum_duplicates()
        vectors.eliminate_zeros()
        return vectors


def exported(model: Any, purpose: str) -> Exported:
    """The expansion of a fitted estimator that predicts with it and nothing else."""
    kind = KernelClassifier if is_classifier(model) else KernelRegressor
    if not isinstance(model, kind) or any(getattr(type(model), name) is not way for name, way in _ways(kind)):
        raise ModelFileError(
            f"{purpose} takes the estimators of parablock, and classes made of them that predict like them; got "
            f"{type(model).__name__}."
        )
    check_is_fitted(model)
    if model.prediction != "global":
        raise ModelFileError(
            f"{purpose} writes one expansion for all rows, and prediction={model.prediction!r} has one for each block. "
            "Use model.set_params(prediction='global'), or parablock.save, which keeps both."
        )
    kernel = model._make_kernel()
    if isinstance(kernel, Called):
        raise ModelFileError(
            f"{purpose} cannot hold a kernel that is a Python function. Use a kernel of parablock.kernels, or "
            "kernel='precomputed' with the matrices that yours gives."
        )
    vectors = model.support_vectors_
    if kernel.overlap == "given":
        vectors = np.empty((len(model.support_), 0))
    return Exported(
        kernel,
        vectors.astype(np.float64),
        model.dual_coef_,
        model.intercept_,
        model.classes_ if isinstance(model, KernelClassifier) else None,
        isinstance(model, KernelLogisticRegression),
        model._scaling,
    )


def _ways(kind: type) -> list[tuple[str, Any]]:
    """How a kind of estimator predicts."""
    return [(name, vars(kind)[name]) for name in ("predict", "decision_function") if name in vars(kind)]
