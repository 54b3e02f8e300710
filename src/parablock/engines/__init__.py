"""Engines: how machines talk. One machine, or processes that talk by MPI."""

from parablock.engines.base import Crew, Engine
from parablock.engines.local import LocalEngine
from parablock.engines.mpi import MPIEngine
from parablock.engines.sharing import Shard, moments

ENGINES: dict[str, type[Engine]] = {"local": LocalEngine, "mpi": MPIEngine}


def make_engine(engine: str | Engine) -> Engine:
    """The engine of the given name, or the given one itself."""
    return ENGINES[engine]() if isinstance(engine, str) else engine


__all__ = ["ENGINES", "Crew", "Engine", "LocalEngine", "MPIEngine", "Shard", "make_engine", "moments"]
