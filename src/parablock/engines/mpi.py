"""Many processes that talk by MPI: the paper's machines."""

from __future__ import annotations

import time
from typing import Any, TypeVar

import numpy as np

from parablock.engines.ranks import RankEngine
from parablock.engines.talk import Talk

T = TypeVar("T")


class MPIEngine(RankEngine):
    """Processes started by mpiexec.

    Parameters
    ----------
    comm : mpi4py communicator, default=MPI.COMM_WORLD
    data : {"auto", "replicated", "sharded"}
        Whether every rank passes all rows to `fit`, or rows of its own. "auto" compares what they pass.
    exchange : {"auto", "gather", "reduce"}
        How everyone gets to know `K d`; see `parablock.engines.ranks`.

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


class MPITalk(Talk):
    """Collective operations of one communicator."""

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

    def agree(self, value: T) -> T:
        if self.size == 1:
            return value
        started = time.perf_counter()
        agreed = self.comm.bcast(value, root=0)
        self._count(0, started)
        return agreed
