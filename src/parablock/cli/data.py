"""Data files as commands take them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from parablock.cli.options import columns, size
from parablock.datasets import Data, DataError, read_data
from parablock.datasets.reading import FORMATS, format_of

_DENSE = 0.2  # from this share of features that are not zero on, dense rows are trained on faster than sparse ones


def add_data_options(parser: argparse.ArgumentParser) -> Any:
    """The group of options, to which commands may add."""
    group = parser.add_argument_group("data")
    group.add_argument("--format", choices=FORMATS, help="of the data; by default what the name's ending says")
    group.add_argument("--target", metavar="COLUMN", help="CSV, Parquet: the labels, by name or number (1, -1)")
    group.add_argument("--drop", metavar="COLUMNS", type=columns, default=[], help="CSV, Parquet: to leave out (a,b,c)")
    group.add_argument("--header", choices=["auto", "yes", "no"], default="auto", help="CSV: are there names? (auto)")
    group.add_argument("--labels", metavar="FILE", help="labels in a file of their own: .npy, or text with one a line")
    group.add_argument("--zero-based", action="store_true", help="LIBSVM's text: indices count from 0 instead of 1")
    group.add_argument("--max-line", metavar="SIZE", type=size, help="CSV, LIBSVM's text: longest line (64MB)")
    return group


def read(
    options: argparse.Namespace,
    *,
    n_features: int | None = None,
    names: Sequence[str] | None = None,
    given_kernel: bool = False,
) -> Data:
    """The data of a command.

    `n_features` and `names` are those that a model knows. With `given_kernel` the data is a kernel matrix, of which
    LIBSVM's text has the row's number as feature 0.
    """
    numbered = given_kernel and (options.format or format_of(options.data)) == "svmlight"
    data = read_data(
        options.data,
        format=options.format,
        target=options.target,
        drop=options.drop,
        features=names,
        header={"auto": None, "yes": True, "no": False}[options.header],
        labels=options.labels,
        n_features=n_features + 1 if numbered and n_features is not None else n_features,
        zero_based=options.zero_based or numbered,
        **({} if options.max_line is None else {"max_line_bytes": options.max_line}),
    )
    if not numbered:
        return data
    if n_features is None and not np.array_equal(data.X[:, :1].toarray()[:, 0], np.arange(1, data.X.shape[0] + 1)):
        raise DataError(f"{options.data}: in a kernel matrix the entries 0:1, 0:2, 0:3, ... number the rows, in order")
    if n_features is None and data.X.shape[1] != data.X.shape[0] + 1:
        raise DataError(
            f"{options.data}: a kernel matrix of {data.X.shape[0]} rows has as many columns beside the rows' numbers; "
            f"this one has {data.X.shape[1] - 1}"
        )
    return replace(data, X=data.X[:, 1:].toarray())


def labelled(data: Data, options: argparse.Namespace) -> np.ndarray:
    """The labels, which must be there."""
    if data.y is None:
        raise DataError(
            f"{options.data}: there are no labels; name their column (--target) or a file of their own (--labels)"
        )
    return data.y


def stored(X: Any, storage: str, dtype: str | None) -> Any:
    """Features as they are trained on fastest, or as was asked for; in the given precision, if there is one."""
    if dtype is not None and X.dtype != dtype:
        X = X.astype(dtype)
    if not sp.issparse(X):
        return sp.csr_matrix(X) if storage == "sparse" else X
    dense = X.nnz >= _DENSE * X.shape[0] * X.shape[1] if storage == "auto" else storage == "dense"
    return X.toarray() if dense else X
