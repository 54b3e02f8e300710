"""Memory that the ranks of one machine have in common, for a matrix that all of them compute and one of them reads.

A file without a name, which Linux makes in memory: another process finds it among the open files of the one that made
it. Unlike MPI's shared windows it takes no room in /dev/shm, which in a container may be too small; that would only be
noticed when a process that writes to it is killed. It is gone with the last of the ranks, however that ends.
"""

from __future__ import annotations

import mmap
import os
import secrets
from typing import Any

import numpy as np

_TOKEN = 64  # bytes at its beginning that tell it from another process's files


class CommonMemory:
    """The memory of this rank's machine, for an MPI communicator. All of its ranks must make it, and ask for arrays,
    together.

    Attributes
    ----------
    heads : list of int
        The first rank of every rank's machine.
    """

    def __init__(self, comm: Any) -> None:
        from mpi4py import MPI

        self._neighbours = comm.Split_type(MPI.COMM_TYPE_SHARED)
        self.heads = comm.allgather(self._neighbours.bcast(comm.Get_rank()))
        self._memory: mmap.mmap | None = None
        self._possible = True

    def array(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray | None:
        """An array of this memory, always from its beginning on; None where there is none to have in common."""
        count = int(np.prod(shape))
        size = _TOKEN + count * np.dtype(dtype).itemsize
        if self._possible and (self._memory is None or len(self._memory) < size):
            # What is not written to costs nothing.
            self._memory = self._new(2 * size)
            self._possible = self._memory is not None
        if self._memory is None:
            return None
        return np.frombuffer(self._memory, dtype, count, offset=_TOKEN).reshape(shape)

    def _new(self, size: int) -> mmap.mmap | None:
        file, made = -1, None
        if self._neighbours.Get_rank() == 0:
            file, made = _made(size)
        process, number, token = self._neighbours.bcast((os.getpid(), file, None if made is None else made[:_TOKEN]))
        found = made if made is not None else _found(process, number, token, size)
        everywhere = all(self._neighbours.allgather(found is not None))  # who has made it can close it now
        if file >= 0:
            os.close(file)
        return found if everywhere else None


def _made(size: int) -> tuple[int, mmap.mmap | None]:
    """A file in memory and what it holds; -1 and None where there are no such files."""
    try:
        file = os.memfd_create("parablock")
    except (AttributeError, OSError):
        return -1, None
    try:
        os.ftruncate(file, size)
        memory = mmap.mmap(file, size)
    except OSError:
        return file, None
    memory[:_TOKEN] = secrets.token_bytes(_TOKEN)
    return file, memory


def _found(process: int, file: int, token: bytes | None, size: int) -> mmap.mmap | None:
    """What another process has made, where it can be reached."""
    if token is None:
        return None
    try:
        with open(f"/proc/{process}/fd/{file}", "r+b") as opened:
            memory = mmap.mmap(opened.fileno(), size)
    except (OSError, ValueError):
        return None
    return memory if memory[:_TOKEN] == token else None
