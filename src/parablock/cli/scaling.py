"""Scaling of features: how `train` chooses it, and files that keep it for data which a model does not scale itself."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from parablock.cli.options import output
from parablock.cli.ranks import is_first
from parablock.datasets import Data, DataError
from parablock.devices.memory import bytes_for_rows, memory_bytes
from parablock.mapped import data_bytes, is_mapped, stretches
from parablock.replacing import replacing
from parablock.scaling import Scaling

_FORMAT = "parablock scaling 1"
# From here on features are too unlike for kernels: shares of squared distances, and of the variance of all numbers.
_ONE_FEATURE, _OFFSETS = 0.9, 0.95
_ROWS = 10_000  # are looked at for that
Scaler: TypeAlias = Callable[[Any], Scaling | None]  # of the rows that are trained with


def add_scaling_options(data: Any, save: bool = True) -> Any:
    """The group of options, of which one can be given, for commands to add to."""
    group = data.add_mutually_exclusive_group()
    if save:
        group.add_argument(
            "--save-scaling", metavar="FILE", type=output,
            help="scale features (dense: to mean 0 and variance 1; sparse: to at most 1) and save how",
        )  # fmt: skip
    group.add_argument("--use-scaling", metavar="FILE", help="scale features as was saved there")
    return group


def scaler(options: argparse.Namespace, dense: bool) -> Scaler:
    """What scales the rows of a fit: as options ask; by default those of dense files are scaled, and no others."""
    if options.use_scaling is not None:
        scaling = load_scaling(options.use_scaling)[0]
        return lambda X: scaling
    asked = options.scale or options.save_scaling is not None
    if options.no_scaling or options.kernel == "precomputed" or not (asked or dense):
        return lambda X: None

    def of(X: Any) -> Scaling | None:
        if is_mapped(X):
            _refuse_a_large_copy(X, options)
        if not _finite(X):
            return None  # of which the fit will complain
        scaling = Scaling.of(X, shift=options.kernel != "chi2")
        return None if scaling.does_nothing and not asked else scaling

    return of


def _finite(X: Any) -> bool:
    X = X.data if sp.issparse(X) else X
    return all(np.isfinite(X[start:stop]).all() for start, stop in stretches(X))


def _refuse_a_large_copy(X: Any, options: argparse.Namespace) -> None:
    size, limit = data_bytes(X), memory_bytes(options.memory_limit)
    if size > bytes_for_rows(limit):
        raise DataError(
            f"{options.data}: its rows ({size / 2**20:.0f} MB) are used from disk, and scaled ones must be in memory, "
            f"where they may take a quarter of --memory-limit ({limit / 2**20:.0f} MB). Raise that, or train on the "
            "rows as they are: --no-scaling"
        )


def told(scaling: Scaling, options: argparse.Namespace) -> str:
    """What is done to the features, in words."""
    how = "to mean 0 and variance 1" if scaling.shifts else "to at most 1"
    how = how if options.use_scaling is None else f"as {options.use_scaling} says"
    return f"scaled {len(scaling.scale):,} features {how}, as the model does with rows that it predicts"


def names_of_scaling(options: argparse.Namespace) -> list[str] | None:
    """Those of the features that --use-scaling is for, if it knows any."""
    return None if options.use_scaling is None else load_scaling(options.use_scaling)[1]


def scaled(data: Data, options: argparse.Namespace) -> Data:
    """The data itself scaled, as options ask."""
    if getattr(options, "save_scaling", None) is not None:
        scaling = Scaling.of(data.X)
        save_scaling(options.save_scaling, scaling, data.names)
    elif options.use_scaling is not None:
        scaling = load_scaling(options.use_scaling)[0]
    else:
        return data
    data = widened(data, scaling, options.data)
    return replace(data, X=scaling.apply(data.X))


def widened(data: Data, scaling: Scaling, name: str) -> Data:
    """The data with as many features as the scaling has: sparse rows may lack the last ones."""
    X, count = data.X, len(scaling.scale)
    if X.shape[1] > count or (X.shape[1] < count and not sp.issparse(X)):
        raise DataError(f"{name}: there are {X.shape[1]} features, and the scaling is of {count}")
    if X.shape[1] == count:
        return data
    return replace(data, X=sp.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], count)))


def wants_scaling(X: Any) -> bool:
    """Whether nearly all of the distances of dense rows is one feature's, or nearly all that gamma="scale" takes for
    distances are differences between the features' means."""
    if sp.issparse(X) or X.shape[1] < 2:
        return False
    some = X[:: -(-X.shape[0] // _ROWS)]
    spread, mean = some.var(axis=0, dtype=np.float64), some.mean(axis=0, dtype=np.float64)
    one = spread.max() > _ONE_FEATURE * spread.sum()
    return bool(one or mean.var() > _OFFSETS * (mean.var() + spread.mean()))


def save_scaling(path: str, scaling: Scaling, names: list[str] | None, engine: str = "local") -> None:
    """Write a file that `load_scaling` reads; of several processes the first one does. Where the features had names,
    these say which is which."""
    shift = scaling.shift.tolist() if scaling.shifts else None
    told = {"format": _FORMAT, "names": names, "offset": shift, "factor": scaling.scale.tolist()}
    if is_first(engine):
        with replacing(path) as file:
            file.write(json.dumps(told).encode())


def load_scaling(path: str) -> tuple[Scaling, list[str] | None]:
    """The scaling in a file, and the names of the features if it knows them."""
    with open(path, "rb") as file:
        content = file.read()
    try:
        told = json.loads(content)
        if told["format"] != _FORMAT:
            raise ValueError(f"it says {told['format']!r}")
        scale = np.array(told["factor"], dtype=np.float64)
        shift = np.zeros(scale.shape) if told["offset"] is None else np.array(told["offset"], dtype=np.float64)
        if scale.ndim != 1 or shift.shape != scale.shape:
            raise ValueError("there must be one number a feature")
        names = told.get("names")
        if names is not None and [type(name) for name in names] != [str] * len(scale):
            raise ValueError("there must be one name a feature, or none at all")
        return Scaling(shift, scale), names
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise DataError(f"{path}: this is no file of --save-scaling ({error})") from error
