"""Scaling of features, kept in a file so that test data is scaled as the training data was."""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from parablock.cli.options import output
from parablock.cli.ranks import is_first
from parablock.datasets import Data, DataError
from parablock.replacing import replacing

_FORMAT = "parablock scaling 1"
# From here on features are too unlike for kernels: shares of squared distances, and of the variance of all numbers.
_ONE_FEATURE, _OFFSETS = 0.9, 0.95
_ROWS = 10_000  # are looked at for that


def add_scaling_options(data: Any, save: bool = True) -> None:
    group = data.add_mutually_exclusive_group()
    if save:
        group.add_argument(
            "--save-scaling", metavar="FILE", type=output,
            help="scale features (dense: to mean 0 and variance 1; sparse: to at most 1) and save how",
        )  # fmt: skip
    group.add_argument("--use-scaling", metavar="FILE", help="scale features as was saved there")


def names_of_scaling(options: argparse.Namespace) -> list[str] | None:
    """Those of the features that --use-scaling is for, if it knows any."""
    return None if options.use_scaling is None else Scaling.load(options.use_scaling).names


def scaled(data: Data, options: argparse.Namespace) -> Data:
    """The data, scaled as options ask."""
    if getattr(options, "save_scaling", None) is not None:
        scaling = Scaling.of(data.X, data.names)
        if is_first(getattr(options, "engine", "local")):
            scaling.save(options.save_scaling)
    elif options.use_scaling is not None:
        scaling = Scaling.load(options.use_scaling)
    else:
        return data
    return replace(data, X=scaling.apply(data.X, options.data))


def wants_scaling(X: Any) -> bool:
    """Whether nearly all of the distances of dense rows is one feature's, or nearly all that gamma="scale" takes for
    distances are differences between the features' means."""
    if sp.issparse(X) or X.shape[1] < 2:
        return False
    some = X[:: -(-X.shape[0] // _ROWS)]
    spread, mean = some.var(axis=0, dtype=np.float64), some.mean(axis=0, dtype=np.float64)
    one = spread.max() > _ONE_FEATURE * spread.sum()
    return bool(one or mean.var() > _OFFSETS * (mean.var() + spread.mean()))


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
        dtype = np.float32 if X.dtype == np.float32 else np.float64
        if sp.issparse(X) and self.offset is None:
            return sp.csr_matrix(X.multiply(self.factor)).astype(dtype, copy=False)
        dense = X.toarray() if sp.issparse(X) else X
        return ((dense - (0 if self.offset is None else self.offset)) * self.factor).astype(dtype, copy=False)

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
