"""The device seam: what one machine computes with.

A device offers a handful of array operations and hides how it does them. Every device passes the same
conformance tests against a NumPy oracle; adding one touches its own folder only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain
from operator import add
from typing import Any, Protocol, TypeVar

import numpy as np
import scipy.sparse as sp

from parablock import vectors
from parablock.compact import dense_if_full, sum_of_rows
from parablock.kernels import Kernel
from parablock.problem import Problem

T = TypeVar("T")
_AT_ONCE = 1024  # rows whose features are looked at


class Samples(ABC):
    """Rows of data made ready for the device and a kernel.

    Attributes
    ----------
    dtype : dtype
        Precision of kernel values: float32 or float64.
    self_overlap : ndarray of shape (n,)
        See `parablock.kernels.base`.
    at_hand : bool
        Whether the rows are in memory, so that `nearby` has no better place for them.
    """

    dtype: np.dtype
    self_overlap: np.ndarray
    at_hand: bool = True

    def __len__(self) -> int:
        return len(self.self_overlap)

    @abstractmethod
    def take(self, rows: Any) -> Samples:
        """The given rows (indices or a slice)."""

    @abstractmethod
    def features(self, rows: Any = slice(None)) -> Any:
        """The given rows as a dense or CSR array; for partitions."""

    def mean(self, rows: np.ndarray) -> Any:
        """The mean of the given rows' features, which may be too many to be in memory together; of sparse rows a CSR
        matrix of one row, if few of its entries are not zero."""
        parts = (self.features(rows[start : start + _AT_ONCE]) for start in range(0, len(rows), _AT_ONCE))
        total = reduce(add, (sum_of_rows(X) if sp.issparse(X) else X.sum(axis=0, dtype=np.float64) for X in parts))
        return dense_if_full((total / len(rows)).astype(self.dtype))

    def project(self, rows: np.ndarray, direction: np.ndarray) -> np.ndarray:
        """The inner product of each of the given rows' features with the direction."""
        return np.asarray(self.features(rows) @ direction).ravel()

    def nearby(self, rows: np.ndarray) -> Samples | None:
        """The given rows in a place where they are faster to read again and again, if there is one with room."""
        return None


class Rows(Protocol):
    """Where samples are had from by number."""

    def take(self, rows: Any, /) -> Samples: ...

    def __len__(self) -> int: ...


class ReadableRows(Rows, Protocol):
    """Those that can also be looked at where they are, as `Samples` can."""

    @property
    def at_hand(self) -> bool: ...

    def features(self, rows: Any, /) -> Any: ...

    def project(self, rows: np.ndarray, direction: np.ndarray, /) -> np.ndarray: ...

    def nearby(self, rows: np.ndarray, /) -> Samples | None: ...


@dataclass(frozen=True)
class BlockRule:
    """How every block of an iteration is solved.

    Attributes
    ----------
    outputs : sequence of int
        Which outputs are solved; the others stay.
    of_block : sequence of sequences of int, optional
        The same for each block, where they differ.
    choice : {"greedy", "random", "cyclic"}
    pairs : bool
        Whether variables move in pairs that keep the block's sum.
    fraction, floor : float
        Stop at this share of the block's first violation, but no lower than the floor.
    max_updates : int or None
    seed : int
        Of the random choice.
    wishes : bool
        Whether the steps must tell how much the variables would still like to move.
    order : sequence of int, optional
        In which to begin with the blocks, where not all are solved at once: the hardest first, so that nobody begins
        with one of those while the others come to an end.
    """

    outputs: Sequence[int]
    choice: str
    pairs: bool
    fraction: float
    floor: float
    max_updates: int | None
    seed: int
    wishes: bool = True
    of_block: Sequence[Sequence[int]] | None = None
    order: Sequence[int] | None = None

    def outputs_of(self, block: int) -> Sequence[int]:
        return self.outputs if self.of_block is None else self.of_block[block]

    def take(self, numbers: Sequence[int]) -> BlockRule:
        """The rule of the numbered blocks, numbered anew."""
        place = {number: place for place, number in enumerate(numbers)}
        return replace(
            self,
            of_block=None if self.of_block is None else [self.of_block[number] for number in numbers],
            order=None if self.order is None else [place[number] for number in self.order if number in place],
        )


@dataclass(frozen=True)
class BlockStep:
    """What the solver of one block found.

    Attributes
    ----------
    rows : ndarray of shape (size,)
        Of the block; where no wishes were asked for, perhaps only those that moved.
    step : ndarray of shape (n_outputs, size)
        The block's part of the direction.
    wish : ndarray of shape (n_outputs, size)
        How much each variable would still like to move, as far as its block alone can tell; negative for one that is
        content at its bound, nan for an output that was not solved.
    bias : ndarray of shape (n_outputs,)
        The intercept that fits the block's own free variables; nan for an output that was not solved.
    updates : int
        Coordinate updates made.
    """

    rows: np.ndarray
    step: np.ndarray
    wish: np.ndarray
    bias: np.ndarray
    updates: int

    def on_host(self) -> BlockStep:
        names = "rows", "step", "wish", "bias"
        return replace(self, **{name: vectors.to_host(getattr(self, name)) for name in names})


class Device(ABC):
    """A handful of array operations.

    Vectors with one value a row come as NumPy arrays and leave as such; a device with a memory of its own also takes
    those that are there, and leaves its results beside them.

    A device is made of a number of threads (None for all cores), a memory limit as users give it, the number of
    processes that share this machine, and which of them this one is.

    Attributes
    ----------
    name : str
    kernel_evaluations : int
        Kernel values computed so far.
    n_threads : int
        Of the CPU, that this process may use.
    largest_block : int or None
        Rows of a block beyond which the device would cut it into smaller ones.
    keeps_columns : bool
        Whether `column_dot` computes a column again only where there was no room to keep it.
    has_own_tree : bool
        Whether there is the method `tree`.
    solves_in_turn : bool
        Whether blocks wait for each other, so that it matters which come first.
    has_float64 : bool
        Whether kernel values of float64 data are computed in that precision.
    """

    name: str
    kernel_evaluations: int = 0
    n_threads: int = 1
    largest_block: int | None = None
    keeps_columns: bool = True
    has_own_tree: bool = False
    solves_in_turn: bool = True
    has_float64: bool = True

    @abstractmethod
    def session(self) -> AbstractContextManager[Any]:
        """Threads and memory that the operations below use are held while the context lasts."""

    def map(self, work: Callable[[int], T], items: Iterable[int]) -> list[T]:
        """Call a function with every item, on as many threads as the device has for that. Not to be called from within
        such work."""
        return [work(item) for item in items]

    def near(self, problem: Problem) -> Problem:
        """The problem with its vectors in the device's own memory."""
        return problem

    def keeps(self, tensor: Any) -> bool:
        """Whether the device reads the rows of this torch tensor where they are."""
        return False

    def wants_whole_numbers(self, X: Any) -> bool:
        """Whether the device would do better with a centre of whole numbers for these rows."""
        return False

    @abstractmethod
    def samples(self, X: Any, kernel: Kernel, centre: np.ndarray | None = None) -> Samples:
        """Make data ready; `centre` is subtracted where the kernel allows it."""

    @abstractmethod
    def given_columns(self, numbers: np.ndarray, dtype: Any) -> Samples:
        """Columns of a precomputed kernel matrix, to predict with."""

    def tree(self, samples: Samples, n_blocks: int, rng: np.random.Generator) -> list[np.ndarray]:
        """The blocks of the tree partition (`parablock.partition.tree`), where the device has its own way to them."""
        raise NotImplementedError

    @abstractmethod
    def gram(self, kernel: Kernel, rows: Samples, columns: Samples) -> np.ndarray:
        """A small matrix of kernel values."""

    def largest_given(self, dtype: Any) -> int:
        """The largest block whose kernel matrix `solve_blocks` takes from elsewhere."""
        return 0

    @abstractmethod
    def kernel_dot(self, kernel: Kernel, rows: Samples, columns: Samples, coef: np.ndarray) -> np.ndarray:
        """``coef @ K(columns, rows)``, shape (n_outputs, rows), without storing K."""

    @abstractmethod
    def column_dot(
        self,
        kernel: Kernel,
        samples: Samples,
        sources: Rows,
        rows: np.ndarray,
        coef: np.ndarray,
        more: Iterable[Samples] = (),
    ) -> np.ndarray:
        """``coef @ K(sources[rows], samples)``, shape (n_outputs, samples): like `kernel_dot`, but of columns of one
        matrix, most of which will be asked for again. The device may keep them, by the numbers of the rows.

        The first time, more samples may follow: each of `more` is what there was, with some after them.
        """

    def forgetful_dot(
        self, kernel: Kernel, samples: Samples, columns: Samples, coef: np.ndarray, more: Iterable[Samples]
    ) -> np.ndarray:
        """`column_dot` of who keeps no columns."""
        return vectors.concatenate(
            [
                self.kernel_dot(kernel, longer.take(slice(start, None)) if start else longer, columns, coef)
                for start, longer in in_turn(samples, more)
            ],
            axis=1,
        )

    @abstractmethod
    def prefetch(
        self, kernel: Kernel, samples: Samples, sources: Rows, rows: np.ndarray, values: np.ndarray | None = None
    ) -> None:
        """Columns that `column_dot` will probably be asked for soon: a device that keeps columns may get them now. The
        values of all that are missing may be given, from `column_values`."""

    def missing(self, samples: Samples, rows: np.ndarray) -> np.ndarray:
        """The rows of whose columns `prefetch` would get the values for these samples."""
        return rows[:0]

    def column_values(
        self,
        kernel: Kernel,
        samples: Samples,
        ends: Sequence[int],
        columns: Samples,
        turns: Iterator[bool],
        out: np.ndarray,
    ) -> None:
        """Compute for someone else values of columns that he is going to keep, to the last digit as he would: `ends`
        tells how many of the samples he had after each time that some came. Those of the others are left out, by turns.
        """
        raise NotImplementedError

    @abstractmethod
    def extend(
        self,
        kernel: Kernel,
        samples: Samples,
        more: Iterable[Samples],
        sources: Rows,
        useful: np.ndarray,
        room: tuple[int, int],
    ) -> None:
        """Take note that columns will be asked for of the last of `more` from now on, and later perhaps of further
        samples: `room` is the number of columns and of samples to have room for. Each of `more` is the one before it
        with some after them, and all are asked for; where the first one is the given samples with some after them, kept
        columns of the useful rows get longer."""

    def has_room(self, columns: int, samples: int, dtype: Any) -> bool:
        """Whether all values of so many columns can be kept."""
        return False

    @abstractmethod
    def solve_blocks(
        self,
        kernel: Kernel,
        samples: Samples,
        problem: Problem,
        point: tuple[np.ndarray, np.ndarray],
        blocks: Sequence[np.ndarray],
        rule: BlockRule,
        keep: bool = False,
        matrix: np.ndarray | None = None,
    ) -> list[BlockStep]:
        """Solve the subproblem of every block at the point (coef, decision).

        With `keep` the same blocks will come again, and their kernel columns are kept between calls as far
        as memory allows. Of a single block the kernel matrix may be given, if it is not larger than `largest_given`.
        """


def in_turn(samples: Samples, more: Iterable[Samples]) -> Iterator[tuple[int, Samples]]:
    """The samples and whatever longer ones follow, each with how many were there before."""
    start = 0
    for longer in chain((samples,), more):
        yield start, longer
        start = len(longer)
