"""Many processes that talk by MPI: the paper's machines."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, TypeVar

import numpy as np

from parablock.engines.common import CommonMemory
from parablock.engines.dealing import Dealer
from parablock.engines.ranks import RankEngine
from parablock.engines.talk import Talk

T = TypeVar("T")
_keys: dict[Callable[[Any], Any], int] = {}


class MPIEngine(RankEngine):
    """Processes started by mpiexec.

    Parameters
    ----------
    comm : mpi4py communicator, default=MPI.COMM_WORLD
    data : {"auto", "replicated", "sharded"}
        Whether every rank passes all rows to `fit`, or rows of its own. "auto" compares what they pass.
    exchange : {"auto", "gather", "reduce"}
        How everyone gets to know `K d`; see `parablock.engines.crew`.

    Examples
    --------
    In a program that ``mpiexec`` starts, where every rank calls `fit` with rows of its own:

    >>> from parablock import KernelSVC
    >>> from parablock.engines import MPIEngine
    >>> model = KernelSVC(C=32, gamma=32, engine=MPIEngine(data="sharded"))
    >>> model.engine.data
    'sharded'
    """

    def __init__(self, comm: Any = None, data: str = "auto", exchange: str = "auto") -> None:
        super().__init__(data, exchange)
        self.comm = comm

    def __deepcopy__(self, memo: dict[int, Any]) -> MPIEngine:
        return self  # scikit-learn's clone asks for a copy; a communicator has none

    def talk(self) -> MPITalk:
        if self.comm is not None:
            return MPITalk(self.comm)
        try:
            from mpi4py import MPI
        except ImportError as error:
            raise ImportError(
                "engine='mpi' needs mpi4py and an MPI: pip install 'parablock[mpi]' brings both; on a cluster, install "
                "mpi4py for the MPI that is there."
            ) from error
        return MPITalk(MPI.COMM_WORLD)

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Ctrl-C is noted while this lasts and raised on all ranks together: one that left alone would be waited for
        for ever. A second one is raised at once."""
        before = signal.getsignal(signal.SIGINT)
        # Whoever ignores it, or has a handler that Python does not know, means it.
        if threading.current_thread() is not threading.main_thread() or before in (signal.SIG_IGN, None):
            yield
            return

        def note(number: int, frame: Any) -> None:
            signal.signal(signal.SIGINT, before)
            MPITalk.user_wants_to_stop = True

        signal.signal(signal.SIGINT, note)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)
            late, MPITalk.user_wants_to_stop = MPITalk.user_wants_to_stop, False
        if late:
            raise KeyboardInterrupt


class MPITalk(Talk):
    """Collective operations of one communicator."""

    has_common = True
    user_wants_to_stop: ClassVar[bool] = False  # a matter of the process, whatever its communicators

    def __init__(self, comm: Any) -> None:
        super().__init__(comm.Get_rank(), comm.Get_size())
        self.comm = comm

    def _share_array(self, values: np.ndarray) -> list[np.ndarray]:
        counts = np.empty(self.size, dtype=np.int64)  # arrays: for objects an MPI needs twice as many messages
        self.comm.Allgather(np.array([len(values)], dtype=np.int64), counts)
        everyones = np.empty(counts.sum(), dtype=values.dtype)
        self.comm.Allgatherv(np.ascontiguousarray(values), (everyones, counts))
        return np.split(everyones, np.cumsum(counts)[:-1])

    def add_up(self, values: np.ndarray, counts: list[int]) -> np.ndarray:
        started = time.perf_counter()
        own = np.empty(counts[self.rank])
        self.comm.Reduce_scatter(np.ascontiguousarray(values), own, recvcounts=counts)
        self._count(values.nbytes - own.nbytes, started)
        return own

    def deal(self, count: int) -> Iterator[int]:
        dealer = _kept_with(self.comm, Dealer.of)
        return super().deal(count) if dealer is None else dealer.deal(count)

    def common(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray | None:
        return _kept_with(self.comm, CommonMemory).array(shape, dtype)

    def beside(self, rank: int) -> list[int]:
        heads = _kept_with(self.comm, CommonMemory).heads
        return [other for other, head in enumerate(heads) if head == heads[rank]]

    def interrupted(self) -> bool:
        wants, MPITalk.user_wants_to_stop = MPITalk.user_wants_to_stop, False
        return wants

    def agree(self, value: T) -> T:
        if self.size == 1:
            return value
        started = time.perf_counter()
        agreed = self.comm.bcast(value, root=0)
        self._count(0, started)
        return agreed


def _kept_with(comm: Any, make: Callable[[Any], T]) -> T:
    """What `make` makes of an MPI communicator when it is first asked for, by all ranks together. It stays as long
    as the communicator: to free it would be one more thing to do together."""
    if make not in _keys:
        _keys[make] = type(comm).Create_keyval()
    known = comm.Get_attr(_keys[make])
    if known is None:
        known = (make(comm),)
        comm.Set_attr(_keys[make], known)
    return known[0]
