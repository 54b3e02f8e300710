"""Rows of data wherever they came from, as float32 stretches on the card.

    tensors on the card     are read where they are
    arrays of the host      travel stretch by stretch (see `staging`), each time they are read; `brought` copies them to
                            the card for good, in their own type
    mapped files            the same, from the beginning of the file to its end
    CSR matrices            become dense on the card

Rows keep their own type, one byte for pixels, until a stretch of them is read.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
import torch

from parablock.devices.cuda.staging import STAGING_BYTES, Stretch, staged
from parablock.mapped import MappedRows, is_sparse, reading_order
from parablock.tensors import TensorRows

_VALUES_AT_ONCE = 1 << 25  # of a stretch: a bound on the memory of its copies in float32 and float64

Places: TypeAlias = slice | torch.Tensor  # where the rows of a stretch belong among all rows


@dataclass(frozen=True)
class Source:
    """Dense rows.

    Attributes
    ----------
    rows : tensor of shape (any, d), any real type
        In host memory, in a mapped file, or on a card.
    device : torch.device
        The card.
    numbers : ndarray of int, optional
        Which rows, in which order; all of them by default.
    centre : tensor of shape (d,), float32, optional
        What is subtracted when rows are read.
    on_card : bool
        Whether the rows are there already: on this card, or on another one.
    """

    rows: torch.Tensor
    device: torch.device
    numbers: np.ndarray | None = None
    centre: torch.Tensor | None = None
    on_card: bool = False

    def __len__(self) -> int:
        return len(self.rows) if self.numbers is None else len(self.numbers)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self), self.rows.shape[1]

    @property
    def nbytes(self) -> int:
        """What the rows take in their own type."""
        return len(self) * self._row_bytes

    @property
    def _row_bytes(self) -> int:
        return self.rows.shape[1] * self.rows.element_size()

    def centred(self, centre: np.ndarray | None) -> Source:
        if centre is None:
            return self
        return replace(self, centre=torch.as_tensor(centre, dtype=torch.float32, device=self.device))

    def take(self, rows: Any) -> Source:
        """Some of the rows, which stay where they are."""
        rows = rows.cpu().numpy() if isinstance(rows, torch.Tensor) else rows
        return replace(self, numbers=(np.arange(len(self)) if self.numbers is None else self.numbers)[rows])

    def brought(self) -> Source:
        """The rows on the card, in their own type."""
        if self.on_card and self.numbers is None and self.rows.device == self.device:
            return self
        some = self.rows if self.numbers is None else self.rows[torch.as_tensor(self.numbers, device=self.rows.device)]
        return replace(self, rows=some.to(self.device), numbers=None, on_card=True)

    def is_whole(self) -> bool:
        """Whether all values are whole numbers."""
        if not self.rows.is_floating_point():
            return True
        return all(bool((part == part.round()).all()) for _, part in replace(self, centre=None).parts())

    def parts(self, most: int | None = None) -> Iterator[tuple[Places, torch.Tensor]]:
        """Stretches of at most so many rows, float32, centred, each with the places of its rows.

        Rows that are not on the card come in the order in which they lie in memory or in their file.
        """
        most = min(most or len(self), max(1, _VALUES_AT_ONCE // max(1, self.rows.shape[1])))
        if not self.on_card:
            most = min(most, max(1, STAGING_BYTES // max(1, self._row_bytes)))
        places, stretches = self._stretches(max(1, most))
        read: Iterator[torch.Tensor]
        if self.on_card:
            read = (self.rows[stretch].to(self.device) for stretch in stretches)
        else:
            read = staged(self.rows, stretches, self.device)
        for place, part in zip(places, read, strict=True):
            values = part.to(torch.float32)
            yield place, values if self.centre is None else values - self.centre

    def values(self) -> torch.Tensor:
        """All rows, float32, centred."""
        out = torch.empty(self.shape, dtype=torch.float32, device=self.device)
        for places, part in self.parts():
            out[places] = part
        return out

    @cached_property
    def _in_order(self) -> tuple[np.ndarray | None, np.ndarray]:
        """The order in which numbered rows are read, where it is not their own; and their numbers in that order."""
        assert self.numbers is not None
        order = None if self.on_card else reading_order(self.numbers)
        return order, self.numbers if order is None else self.numbers[order]

    def _stretches(self, most: int) -> tuple[list[Places], list[Stretch]]:
        """Where the rows of each stretch belong, and where they are."""
        starts = range(0, len(self), most)
        whole = [slice(start, min(start + most, len(self))) for start in starts]
        if self.numbers is None:
            return list(whole), list(whole)
        order, numbers = self._in_order
        stretches = [_stretch(numbers[one], self.rows.device) for one in whole]
        if order is None:
            return list(whole), stretches
        return [torch.as_tensor(order[one], device=self.device) for one in whole], stretches


@dataclass(frozen=True)
class SparseSource:
    """CSR rows of host memory."""

    matrix: Any
    device: torch.device

    def __len__(self) -> int:
        return self.matrix.shape[0]

    @property
    def shape(self) -> tuple[int, int]:
        return self.matrix.shape

    def centred(self, centre: np.ndarray | None) -> SparseSource:
        if centre is not None:
            raise ValueError("CSR rows cannot be centred: they would no longer be sparse.")
        return self

    def is_whole(self) -> bool:
        return bool(np.all(self.matrix.data == np.rint(self.matrix.data)))

    def parts(self, most: int | None = None) -> Iterator[tuple[Places, torch.Tensor]]:
        """Stretches of dense rows, as those of `Source`."""
        most = max(1, min(most or len(self), _VALUES_AT_ONCE // max(1, self.shape[1])))
        for start in range(0, len(self), most):
            part = self.matrix[start : start + most]
            entries = np.repeat(np.arange(part.shape[0]), np.diff(part.indptr)), part.indices
            places = tuple(torch.as_tensor(np.asarray(place, dtype=np.int64), device=self.device) for place in entries)
            rows = torch.zeros(part.shape, dtype=torch.float32, device=self.device)
            rows[places] = torch.as_tensor(part.data, dtype=torch.float32, device=self.device)
            yield slice(start, start + part.shape[0]), rows


def source_of(X: Any, device: torch.device) -> Source | SparseSource:
    """The rows of an array, CSR matrix or tensor, mapped or not."""
    if is_sparse(X):
        return SparseSource(_canonical(X[:] if isinstance(X, MappedRows) else X), device)
    if isinstance(X, MappedRows):
        return Source(_view(X.X), device, X.numbers)
    if isinstance(X, TensorRows):
        return Source(X.tensor, device, on_card=True)
    return Source(_view(np.asarray(X)), device)


def _canonical(X: Any) -> sp.csr_matrix:
    """Every entry once."""
    X = sp.csr_matrix(X)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def _view(array: np.ndarray) -> torch.Tensor:
    """A tensor over the array's memory, which will only be read."""
    if any(step < 0 for step in array.strides):
        array = np.ascontiguousarray(array)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*not writable.*")
        return torch.from_numpy(array)


def _stretch(numbers: np.ndarray, where: torch.device) -> Stretch:
    """Rows by number, or as a slice where they are one after the other, in order."""
    first, last = int(numbers[0]), int(numbers[-1]) + 1
    if last - first == len(numbers) and np.all(np.diff(numbers) == 1):
        return slice(first, last)
    return torch.as_tensor(numbers, device=where)
