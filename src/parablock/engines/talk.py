"""What ranks say to each other, with an eye on errors: nobody is left waiting for one that has failed."""

from __future__ import annotations

import builtins
import pickle
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np

from parablock.monitor import CheckpointError

T = TypeVar("T")


class RankLost(RuntimeError):
    """Another rank is gone, and with it whatever the ranks were doing together."""


class BadMessage(RuntimeError):
    """A message that no rank of this fit has sent."""


class Talk(ABC):
    """Collective operations of some ranks. All of them must call the same ones in the same order.

    Attributes
    ----------
    rank, size : int
    bytes_sent : int
        By this rank so far: what it contributed, however it is routed.
    seconds_waiting : float
        That this rank has spent in collective operations so far.
    has_common : bool
        Whether ranks of one machine may have memory in common.
    """

    has_common: bool = False

    def __init__(self, rank: int, size: int) -> None:
        self.rank, self.size = rank, size
        self.bytes_sent = 0
        self.seconds_waiting = 0.0

    @abstractmethod
    def _share_array(self, values: np.ndarray) -> list[np.ndarray]:
        """As `share_array`, for more than one rank."""

    @abstractmethod
    def add_up(self, values: np.ndarray, counts: list[int]) -> np.ndarray:
        """This rank's stretch, of the given lengths by rank, of the sum of all ranks' arrays."""

    def agree(self, value: T) -> T:
        """The first rank's value."""
        return self.share(value if self.rank == 0 else None)[0]  # type: ignore[return-value]

    def share_array(self, values: np.ndarray) -> list[np.ndarray]:
        """One-dimensional arrays of all ranks, which may differ in length, by rank."""
        if self.size == 1:
            return [values]
        started = time.perf_counter()
        everyones = self._share_array(values)
        self._count(values.nbytes, started)
        return everyones

    def share(self, value: T) -> list[T]:
        """The values of all ranks, by rank."""
        if self.size == 1:
            return [value]
        data = np.frombuffer(pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL), dtype=np.uint8)
        return [_loaded(rank, part) for rank, part in enumerate(self.share_array(data))]

    def together(self, work: Callable[[], T]) -> list[T]:
        """The results of a piece of work that every rank does for itself, by rank. An error of one rank is raised on
        all, and so is a keyboard interrupt."""
        try:
            if self.interrupted():
                raise KeyboardInterrupt
            outcome: tuple[bool, Any] = True, work()
        except (Exception, KeyboardInterrupt) as error:
            outcome = False, (type(error).__name__, str(error))
        outcomes = self.share(outcome)
        failed = [(rank, value) for rank, (fine, value) in enumerate(outcomes) if not fine]
        if failed:
            raise _error(failed, self.size)
        return [value for _, value in outcomes]

    def deal(self, count: int) -> Iterator[int]:
        """Numbers below the count, each on one rank: on the one that asks for its next number first, where ranks have a
        quick way to find out. All must call this, and meet in another operation before they call it again."""
        return iter(range(self.rank, count, self.size))

    def common(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray | None:
        """An array in memory that the ranks of this machine have in common, and that is overwritten by the next one;
        None where there is none. All must call this."""
        return None

    def beside(self, rank: int) -> list[int]:
        """The ranks of that one's machine, itself among them, where they have memory in common."""
        return [rank]

    def interrupted(self) -> bool:
        """Whether this rank knows that the user wants to stop, other than by an exception of Python's."""
        return False

    def each(self, work: Callable[[], T]) -> T:
        """This rank's result of a piece of work that every rank does for itself, with errors as in `together`."""
        result: list[T] = []
        self.together(lambda: result.append(work()))
        return result[0]

    def _count(self, sent: int, started: float) -> None:
        self.bytes_sent += sent
        self.seconds_waiting += time.perf_counter() - started


def _loaded(rank: int, message: np.ndarray) -> Any:
    """What a rank has sent. Pickle can run any program: ranks trust each other, and whoever can send them messages."""
    try:
        return pickle.loads(message.data)
    except Exception as error:  # pickle has no end of them
        raise BadMessage(
            f"What rank {rank} sent cannot be read ({type(error).__name__}: {error}). All ranks must run the same "
            "version of parablock and of your own modules, and nothing else may send to them."
        ) from error


def _error(failed: list[tuple[int, tuple[str, str]]], size: int) -> BaseException:
    """The error of the first rank that failed, of the same kind where that is one of Python's own."""
    rank, (name, text) = failed[0]
    kind = CheckpointError if name == "CheckpointError" else getattr(builtins, name, None)
    if not (isinstance(kind, type) and issubclass(kind, BaseException)):
        kind, text = RuntimeError, f"{name}: {text}"
    ranks = f"rank {rank}" if len(failed) == 1 else f"ranks {', '.join(str(rank) for rank, _ in failed)}"
    told = text if size == 1 else f"On {ranks} of {size}: {text}"
    try:
        return kind(told)
    except TypeError:  # some want more than a text
        return RuntimeError(f"{name}: {told}")
