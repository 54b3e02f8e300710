"""What is read from a file written by anyone: each entry is taken by name, checked, and nothing may be left over."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

from parablock.csr import checked_csr
from parablock.models.files import AnyPath, ModelFileError

T = TypeVar("T")
FLOATS = (np.dtype(np.float32), np.dtype(np.float64))
FLOAT64 = (np.dtype(np.float64),)
INT64 = (np.dtype(np.int64),)
MOST_DEGREE = 1000  # of a polynomial kernel: no number has digits for more
_LARGEST = 1e300  # of a number that is finite, also as a float


class _Reader:
    """Complaints that name the file."""

    def __init__(self, path: AnyPath) -> None:
        self.path = path

    def error(self, why: str) -> ModelFileError:
        return ModelFileError(f"The model file {os.fspath(self.path)!r} cannot be used: {why}.")

    def require(self, condition: Any, why: str) -> None:
        if not condition:
            raise self.error(why)


class Fields(_Reader):
    """An object of JSON."""

    def __init__(self, path: AnyPath, name: str, values: Any) -> None:
        super().__init__(path)
        self.name = name
        self.require(isinstance(values, dict), f"its {name} is no JSON object")
        self.values = dict(values)

    def take(self, name: str) -> Any:
        self.require(name in self.values, f"its {self.name} has no {name!r}")
        return self.values.pop(name)

    def text(self, name: str, known: Sequence[str] | None = None, what: str | None = None) -> str:
        value = self.take(name)
        self.require(isinstance(value, str), f"{name!r} of its {self.name} is no text: {short(value)}")
        if known is not None and value not in known:
            raise self.error(
                f"it has the {what or name} {value!r}, and this parablock knows {', '.join(sorted(known))}. A newer "
                "version may know it"
            )
        return value

    def integer(self, name: str, least: int = 0, most: int = 2**63 - 1) -> int:
        value = self.take(name)
        self.require(
            type(value) is int and least <= value <= most,
            f"{name!r} of its {self.name} is no whole number from {least} to {most}: {short(value)}",
        )
        return value

    def number(self, name: str, finite: bool = False) -> float:
        value = self.take(name)
        good = (type(value) in (int, float) and abs(value) < _LARGEST) or (not finite and type(value) is float)
        self.require(good, f"{name!r} of its {self.name} is no {'finite ' if finite else ''}number: {short(value)}")
        return float(value)

    def listed(self, name: str, kind: type[T]) -> list[T]:
        value = self.take(name)
        good = isinstance(value, list) and all(type(item) is kind for item in value)
        self.require(good, f"{name!r} of its {self.name} is no list of {kind.__name__}: {short(value)}")
        return value

    def fields(self, name: str) -> Fields:
        return Fields(self.path, name, self.take(name))

    def done(self) -> None:
        self.require(not self.values, f"its {self.name} has {_names(self.values)}, which this parablock does not know")


class Tensors(_Reader):
    """Arrays by name."""

    def __init__(self, path: AnyPath, arrays: dict[str, np.ndarray]) -> None:
        super().__init__(path)
        self.arrays = dict(arrays)

    def __contains__(self, name: str) -> bool:
        return name in self.arrays

    def take(self, name: str, dtypes: Sequence[Any], shape: Sequence[int | None], finite: bool = True) -> np.ndarray:
        """An array of one of the types; None in the shape is any length."""
        self.require(name in self.arrays, f"it has no tensor {name!r}")
        array = self.arrays.pop(name)
        self.require(
            array.dtype in dtypes, f"its tensor {name!r} is of type {array.dtype} instead of {_names(map(str, dtypes))}"
        )
        fits = array.ndim == len(shape) and all(
            want is None or have == want for have, want in zip(array.shape, shape, strict=True)
        )
        wanted = tuple("any" if length is None else length for length in shape)
        self.require(fits, f"its tensor {name!r} has shape {array.shape} instead of {wanted}")
        if finite and array.dtype.kind == "f":
            self.require(np.isfinite(array).all(), f"its tensor {name!r} has values that are nan or infinite")
        return array

    def numbers(self, name: str, below: int, shape: Sequence[int | None] = (None,)) -> np.ndarray:
        """Whole numbers from 0."""
        array = self.take(name, INT64, shape)
        inside = array.size == 0 or (array.min() >= 0 and array.max() < below)
        self.require(inside, f"its tensor {name!r} has numbers outside of 0 to {below - 1}")
        return array

    def csr(self, name: str, dtypes: Sequence[Any], shape: tuple[int, int], kind: type) -> Any:
        """A sparse matrix of the three tensors of its parts."""
        data = self.take(f"{name}.data", dtypes, (None,))
        indices = self.take(f"{name}.indices", (np.dtype(np.int32), np.dtype(np.int64)), data.shape)
        indptr = self.take(f"{name}.indptr", (indices.dtype,), (shape[0] + 1,))
        try:
            return checked_csr(data, indices, indptr, shape, kind)
        except ValueError as error:
            raise self.error(f"its sparse matrix {name!r} makes no sense ({error})") from error

    def done(self) -> None:
        self.require(not self.arrays, f"it has the tensors {_names(self.arrays)}, which this parablock does not know")


def csr_parts(name: str, matrix: Any) -> dict[str, np.ndarray]:
    """The tensors that `Tensors.csr` makes a matrix of."""
    matrix = matrix if sp.issparse(matrix) else sp.csr_matrix(matrix)
    return {f"{name}.data": matrix.data, f"{name}.indices": matrix.indices, f"{name}.indptr": matrix.indptr}


def _names(names: Any) -> str:
    return ", ".join(sorted(repr(name) for name in names))


def short(value: Any) -> str:
    """For a message."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else text[:57] + "..."
