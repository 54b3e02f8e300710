"""Under mpiexec the first rank speaks for all."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from itertools import pairwise
from typing import TypeVar

from parablock.cli.failures import explained

T = TypeVar("T")


def is_first(engine: str) -> bool:
    """Whether this process is the one that writes files and speaks."""
    if engine != "mpi":
        return True
    from parablock.engines import MPIEngine

    try:
        return MPIEngine().talk().rank == 0
    except ImportError:  # of which everyone may speak
        return True


def asks_for_mpi(arguments: Sequence[str]) -> bool:
    """By options that are not parsed yet."""
    return "--engine=mpi" in arguments or ("--engine", "mpi") in pairwise(arguments)


@contextmanager
def muted_unless_first(arguments: Sequence[str]) -> Iterator[None]:
    """All ranks but the first keep quiet, of wrong options too: so this looks at options before they are parsed."""
    with ExitStack() as stack:
        if asks_for_mpi(arguments) and not is_first("mpi"):
            silence = stack.enter_context(open(os.devnull, "w"))
            stack.enter_context(redirect_stdout(silence))
            stack.enter_context(redirect_stderr(silence))
        yield


def on_every_rank(engine: str, work: Callable[[], T]) -> T:
    """The result of what each rank does for itself, such as reading a file; what fails on one rank fails on all."""
    from parablock.engines import make_engine

    def in_one_line() -> T:
        try:
            return work()
        except Exception as error:
            raise ValueError(explained(error)) from error

    return work() if engine == "local" else make_engine(engine).checked(in_one_line)
