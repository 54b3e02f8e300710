"""How many threads the libraries of this process may start while its fits run.

Two pools of threads that fight for the same cores cost a factor of ten, and sums of several threads have other last
digits. The number of BLAS threads belongs to the whole process, so what fits of several threads ask of it is counted:
the first one limits it, and the last one to end, whichever that is, gives back what there was. The number of OpenMP
threads belongs to the thread that sets it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from joblib import effective_n_jobs
from threadpoolctl import ThreadpoolController

from parablock.large_numbers import short_number

MOST_THREADS = 4096  # that may be asked for: far more than one machine has cores


def thread_count(n_jobs: int | None) -> int:
    """How many threads the parameter `n_jobs` asks for: None and -1 mean all cores, -2 all but one, and so on."""
    if n_jobs is not None and (n_jobs == 0 or n_jobs > MOST_THREADS):
        raise ValueError(
            f"n_jobs must be a number of threads from 1 to {MOST_THREADS:,}, or None or -1 for all cores; got "
            f"{short_number(n_jobs)}."
        )
    return int(effective_n_jobs(-1 if n_jobs is None else int(n_jobs)))


class _OneBlasThread:
    """The BLAS of the process has one thread as long as anyone is inside."""

    def __init__(self) -> None:
        self._lock, self._inside = threading.Lock(), 0
        self._before: list[tuple[Any, int]] = []

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._before = [(library, library.num_threads) for library in _shared_libraries()]
                for library, _ in self._before:
                    _set_threads(library, 1)
            self._inside += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                for library, threads in self._before:
                    _set_threads(library, threads)


_ONE_BLAS_THREAD = _OneBlasThread()


@contextmanager
def limited_threads(openmp: int) -> Iterator[None]:
    """BLAS has one thread while this lasts, and OpenMP as many as given in loops that this thread starts."""
    with _ONE_BLAS_THREAD, _threadpools().limit(limits={"blas": 1, "openmp": openmp}):
        yield


def _shared_libraries() -> list[Any]:
    """BLAS whose threads all threads of the process share; what uses OpenMP has some for each."""
    libraries = _threadpools().select(user_api="blas").lib_controllers
    return [library for library in libraries if getattr(library, "threading_layer", None) != "openmp"]


def _set_threads(library: Any, threads: int) -> None:
    # From version 3.8 on threadpoolctl ignores all threads but the first that has set a limit, until that one is done.
    free = getattr(library, "clear_controlling_thread", lambda force: None)
    free(force=True)
    library.set_num_threads(threads)
    free(force=True)


@cache
def _threadpools() -> ThreadpoolController:
    return ThreadpoolController()
