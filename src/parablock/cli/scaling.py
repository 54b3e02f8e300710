"""Scaling of features, kept in a file so that test data is scaled as the training data was."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from parablock.datasets import DataError
from parablock.replacing import replacing

_FORMAT = "parablock scaling 1"


@dataclass(frozen=True)
class Scaling:
    """``(x - offset) * factor`` of every feature; without an offset zeros stay zeros, and sparse data sparse. Where the
    features had names, these say which is which."""

    offset: np.ndarray | None
    factor: np.ndarray
    names: list[str] | None = None

    @classmethod
    def of(cls, X: Any, names: list[str] | None) -> Scaling:
        """Of dense data to mean 0 and variance 1, of sparse data to a largest absolute value of 1."""
        if sp.issparse(X):
            return cls(None, _inverse(abs(X).max(axis=0).toarray()[0]), names)
        mean = X.mean(axis=0, dtype=np.float64)
        spread = X.std(axis=0, dtype=np.float64)
        # A constant feature may seem to vary in its last digits.
        return cls(mean, _inverse(np.where(spread > 1e-12 * np.abs(mean), spread, 0.0)), names)

    def apply(self, X: Any, name: str) -> Any:
        if X.shape[1] > len(self.factor) or (X.shape[1] < len(self.factor) and not sp.issparse(X)):
            raise DataError(f"{name}: there are {X.shape[1]} features, and the scaling is of {len(self.factor)}")
        if sp.issparse(X):
            X = sp.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], len(self.factor)))
        if self.offset is None:
            return sp.csr_matrix(X.multiply(self.factor)) if sp.issparse(X) else X * self.factor
        return ((X.toarray() if sp.issparse(X) else X) - self.offset) * self.factor

    def save(self, path: str) -> None:
        offset = None if self.offset is None else self.offset.tolist()
        told = {"format": _FORMAT, "names": self.names, "offset": offset, "factor": self.factor.tolist()}
        with replacing(path) as file:
            file.write(json.dumps(told).encode())

    @classmethod
    def load(cls, path: str) -> Scaling:
        with open(path, "rb") as file:
            content = file.read()
        try:
            told = json.loads(content)
            if told["format"] != _FORMAT:
                raise ValueError(f"it says {told['format']!r}")
            offset = None if told["offset"] is None else np.array(told["offset"], dtype=np.float64)
            factor = np.array(told["factor"], dtype=np.float64)
            if factor.ndim != 1 or (offset is not None and offset.shape != factor.shape):
                raise ValueError("there must be one number a feature")
            names = told.get("names")
            if names is not None and [type(name) for name in names] != [str] * len(factor):
                raise ValueError("there must be one name a feature, or none at all")
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            raise DataError(f"{path}: this is no file of --save-scaling ({error})") from error
        return cls(offset, factor, names)


def _inverse(spread: np.ndarray) -> np.ndarray:
    return np.where(spread > 0, 1.0 / np.where(spread > 0, spread, 1.0), 1.0)
