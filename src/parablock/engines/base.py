"""The engine seam: how machines talk.

An *engine* says which machines take part. Over the rows of a problem it becomes a *crew*, which holds these rows,
wherever they are, and offers the steps of an iteration that need all machines. `training` and `solver.pbm` are written
once against it and run on every machine with the same numbers: coefficients, decisions and all else that has one value
a row is known everywhere; rows of data and kernel values are divided.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, TextIO, TypeVar

import numpy as np

from parablock.devices.base import BlockRule, BlockStep, Device, ReadableRows
from parablock.kernels import Kernel
from parablock.mapped import column_means
from parablock.monitor.checkpoint import Shelf
from parablock.partition import Partition, Partitioner
from parablock.partition.regions import Regions
from parablock.problem import Problem

S = TypeVar("S")
T = TypeVar("T")
Ahead = Callable[[ReadableRows], Regions | None]  # regions of the blocks that come next, among all rows


@dataclass(frozen=True)
class Counts:
    """What all machines together have done so far.

    Attributes
    ----------
    kernel_evaluations : int
        Kernel values computed.
    bytes_sent : int
    seconds_waiting : float
        That a machine spent in operations that need all of them, on average.
    """

    kernel_evaluations: int = 0
    bytes_sent: int = 0
    seconds_waiting: float = 0.0


class Engine(ABC):
    """Which machines take part; what the estimators' parameter `engine` is or names.

    Attributes
    ----------
    shelf : Shelf or None
        Where this machine keeps the newest snapshot of a run in memory, if it does.
    elsewhere : bool
        Whether other machines run the fit.

    Examples
    --------
    >>> from parablock.engines import DaskEngine, Engine, LocalEngine, MPIEngine
    >>> all(issubclass(engine, Engine) for engine in (LocalEngine, MPIEngine, DaskEngine))
    True
    """

    shelf: Shelf | None = None
    elsewhere: bool = False

    @abstractmethod
    def over(self, device: Device, kernel: Kernel, X: Any, centre: np.ndarray | None) -> Crew:
        """The machines with the rows of X, each on the given kind of device."""

    def threads(self, n_jobs: int | None) -> int | None:
        """How many threads this machine should use, where the user asked for so many."""
        return n_jobs

    def neighbours(self) -> int:
        """How many processes of the fit share the memory of this machine; itself is one."""
        return 1

    def stream(self) -> TextIO | None:
        """Where lines of progress go; None for standard error."""
        return None

    def fit_elsewhere(self, estimator: Any, X: Any, y: Any, sample_weight: Any) -> dict[str, Any] | None:
        """The attributes of the fitted estimator, where other machines run the fit; None where this one does."""
        return None

    def predict_elsewhere(self, estimator: Any, method: str, X: Any) -> Any:
        """The result of a method of the fitted estimator, where other machines compute it; None where this one does."""
        return None

    def listening(self) -> AbstractContextManager[None]:
        """While this lasts, what the user asks for by Ctrl-C reaches all machines."""
        return nullcontext()

    def is_first(self) -> bool:
        """Whether this process is the one that writes files and progress."""
        return True

    def place(self) -> int:
        """Which of them this process is, from 0."""
        return 0

    def checked(self, check: Callable[[], T]) -> T:
        """The result of something that this machine does for itself; an error of any machine is raised on all."""
        return check()

    def agree(self, value: T) -> T:
        """The first machine's value."""
        return value

    def everywhere(self, value: bool) -> bool:
        """Whether it is so on every machine."""
        return value

    def means(self, X: Any) -> np.ndarray:
        """Of every feature of what `gather` gave, which is dense."""
        return column_means(X)

    def gather(self, X: Any, *columns: np.ndarray) -> tuple[Any, ...]:
        """The data of all machines: X perhaps a `Shard`, the others (one value or row a row of X) in full."""
        return (X, *columns)


class Crew(ABC):
    """The machines that hold the rows of one problem: where blocks are solved and kernel products computed.

    Attributes
    ----------
    is_first : bool
        Whether this machine is the one that writes files and progress.
    size : int
        How many machines there are.
    device : Device
        What this machine computes with.
    """

    is_first: bool = True
    size: int = 1
    device: Device

    @abstractmethod
    def counts(self) -> Counts:
        """What has been counted so far."""

    def near(self, problem: Problem) -> Problem:
        """The problem with its vectors where this machine works on them: on the host, where they are sent around."""
        return problem

    @abstractmethod
    def kernel_error(self, X: Any, centre: np.ndarray | None) -> float:
        """The largest error of a kernel value that any machine finds (`parablock.devices.digits`) of these rows, which
        the crew was made of."""

    @abstractmethod
    def refuse_nonsense(self, rng: np.random.Generator) -> None:
        """Raise an error where the kernel gives values on these rows that no kernel matrix has."""

    @abstractmethod
    def partition(self, partitioner: Partitioner, n_blocks: int, rng: np.random.Generator) -> Partition:
        """The first blocks of all rows."""

    @abstractmethod
    def ordered(self, order: np.ndarray) -> Crew:
        """This crew with row order[i] called i; it takes the place of this one. An order block after block."""

    @abstractmethod
    def solve(
        self,
        problem: Problem,
        point: tuple[np.ndarray, np.ndarray],
        blocks: Sequence[np.ndarray],
        rule: BlockRule,
        keep: bool,
        ahead: Ahead | None = None,
    ) -> list[BlockStep]:
        """Solve every block at the point (coef, decision): Algorithm 1, line 4.

        With `keep` the same blocks will come again. A machine that has none to solve may look ahead meanwhile, for the
        next `regroup`.
        """

    @abstractmethod
    def product(self, rows: np.ndarray, direction: np.ndarray) -> np.ndarray:
        """``K d`` for a direction that is zero outside the given rows: Algorithm 1, lines 5 and 6."""

    @abstractmethod
    def decision(self, targets: np.ndarray, rows: np.ndarray, coef: np.ndarray) -> np.ndarray:
        """The decisions of the target rows, shape (n_outputs, targets), from the coefficients of the given rows."""

    @abstractmethod
    def regroup(
        self, partitioner: Partitioner, rows: np.ndarray, n_blocks: int, rng: np.random.Generator
    ) -> list[np.ndarray]:
        """Fresh blocks of neighbours among the given rows."""

    @abstractmethod
    def restricted(self, rows: np.ndarray, before: Crew, support: np.ndarray, room: int) -> Crew:
        """A crew over the given rows of this one, numbered anew, which takes over what the crew `before` keeps for the
        rows that are support vectors by now: this one, or one that was restricted to the first of the rows. It should
        have room to be extended to so many rows."""

    def map(self, work: Callable[[S], T], items: Sequence[S]) -> list[T]:
        """The work for every item, on as many threads of this machine as it may use; no work that needs the others."""
        if len(items) < 2 or self.device.n_threads < 2:
            return [work(item) for item in items]
        with ThreadPoolExecutor(min(len(items), self.device.n_threads)) as pool:
            return list(pool.map(work, items))

    def agree(self, value: T) -> T:
        """The same value for everyone: that of the first machine. What decides about the next step must be agreed on,
        because the last digits of sums may differ between machines."""
        return value

    def from_first(self, work: Callable[[], T]) -> T:
        """The result of something that only the first machine does; its error is everyone's."""
        return work()

    def anyone(self, value: bool) -> bool:
        """Whether it is so on any machine."""
        return value
