"""The rows of the training data that a model keeps, as tensors, and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from parablock.models.checked import Fields, Tensors, csr_parts

_SPARSE: dict[str, type] = {"csr_matrix": sp.csr_matrix, "csr_array": sp.csr_array}
_DTYPES: dict[str, np.dtype] = {"float32": np.dtype(np.float32), "float64": np.dtype(np.float64)}


@dataclass(frozen=True)
class Layout:
    """What the rows of the training data look like.

    Attributes
    ----------
    n_rows : int
        That took part in training.
    n_features : int
    dtype : dtype
    sparse : type or None
        Of a sparse matrix.
    given : bool
        Whether the kernel is precomputed, so that rows are known by their numbers only.
    """

    n_rows: int
    n_features: int
    dtype: np.dtype
    sparse: type | None
    given: bool

    @classmethod
    def of(cls, estimator: Any) -> Layout:
        """That of a fitted estimator."""
        vectors = estimator.support_vectors_
        return cls(
            len(estimator._rows),
            estimator.n_features_in_,
            np.dtype(estimator._dtype),
            type(vectors) if estimator._sparse else None,
            estimator._make_kernel().overlap == "given",
        )

    def to_json(self) -> dict[str, Any]:
        kind = "numbers" if self.given else "dense" if self.sparse is None else self.sparse.__name__
        return {"rows": self.n_rows, "features": self.n_features, "dtype": self.dtype.name, "kind": kind}

    @classmethod
    def from_json(cls, told: Fields) -> Layout:
        n_rows, n_features = told.integer("rows", 1), told.integer("features", 1)
        dtype = _DTYPES[told.text("dtype", list(_DTYPES), "precision")]
        kind = told.text("kind", ["numbers", "dense", *_SPARSE], "kind of data")
        told.done()
        return cls(n_rows, n_features, dtype, _SPARSE.get(kind), kind == "numbers")

    def vectors_to(self, name: str, vectors: Any, tensors: dict[str, np.ndarray]) -> None:
        if self.sparse is not None:
            tensors.update(csr_parts(name, vectors))
        elif not self.given:
            tensors[name] = np.asarray(vectors)

    def vectors_from(self, name: str, count: int, tensors: Tensors) -> Any:
        if self.given:
            return np.empty((0, 0))
        if self.sparse is not None:
            return tensors.csr(name, (self.dtype,), (count, self.n_features), self.sparse)
        return tensors.take(name, (self.dtype,), (count, self.n_features))
