"""Engines: how machines talk. One machine, processes that talk by MPI, or the workers of a Dask cluster."""

from typing import Any

from parablock.engines.base import Crew, Engine
from parablock.engines.dask import DaskEngine
from parablock.engines.dask_rows import is_collection
from parablock.engines.dask_worker import fitted_attributes
from parablock.engines.local import LocalEngine
from parablock.engines.mpi import MPIEngine
from parablock.engines.sharing import Shard, moments

ENGINES: dict[str, type[Engine]] = {"local": LocalEngine, "mpi": MPIEngine}


def make_engine(engine: str | Engine) -> Engine:
    """The engine of the given name, or the given one itself."""
    return ENGINES[engine]() if isinstance(engine, str) else engine


def engine_for(engine: str | Engine, X: Any) -> Engine:
    """The engine that fits or predicts X: a Dask collection is the business of its cluster."""
    made = make_engine(engine)
    return DaskEngine() if is_collection(X) and not isinstance(made, DaskEngine) else made


__all__ = [
    "ENGINES",
    "Crew",
    "DaskEngine",
    "Engine",
    "LocalEngine",
    "MPIEngine",
    "Shard",
    "engine_for",
    "fitted_attributes",
    "make_engine",
    "moments",
]
