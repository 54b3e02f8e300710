"""Ranks: processes that run the same program with the same numbers, and divide the work (`engines.crew`).

How ranks talk is the matter of a `Talk`: by MPI, or as tasks on the workers of a Dask cluster.

Data is *replicated*, when every rank was given all rows, or *sharded*, when each rank brought rows of its own. Then a
row travels once, to all ranks, when its coefficient changes or when it comes into a block that another rank solves.
"""

from __future__ import annotations

import platform
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from joblib import cpu_count

from parablock.devices.base import Device
from parablock.engines.base import Engine
from parablock.engines.crew import RankCrew
from parablock.engines.sharing import Shard, ShardedRows, even_parts
from parablock.engines.talk import Talk
from parablock.hashing import digest_of
from parablock.kernels import Kernel
from parablock.mapped import column_means, column_totals, is_mapped
from parablock.tensors import TensorRows

T = TypeVar("T")
DATA, EXCHANGES = ("auto", "replicated", "sharded"), ("auto", "gather", "reduce")


class RankEngine(Engine):
    """Ranks that know how to talk.

    Parameters
    ----------
    data : {"auto", "replicated", "sharded"}
        Whether every rank passes all rows to `fit`, or rows of its own. "auto" compares what they pass.
    exchange : {"auto", "gather", "reduce"}
    """

    def __init__(self, data: str = "auto", exchange: str = "auto") -> None:
        if data not in DATA:
            raise ValueError(f"data must be one of {DATA}, got {data!r}.")
        if exchange not in EXCHANGES:
            raise ValueError(f"exchange must be one of {EXCHANGES}, got {exchange!r}.")
        self.data, self.exchange = data, exchange

    def __repr__(self) -> str:
        return f"{type(self).__name__}(data={self.data!r}, exchange={self.exchange!r})"

    @abstractmethod
    def talk(self) -> Talk:
        """How this rank reaches the others."""

    def threads(self, n_jobs: int | None) -> int | None:
        """All cores of a machine, divided among the ranks on it as `gather` found them."""
        return max(1, cpu_count() // self.neighbours()) if n_jobs is None else n_jobs

    def neighbours(self) -> int:
        return _Neighbours.count

    def is_first(self) -> bool:
        return self.talk().rank == 0

    def place(self) -> int:
        return _Neighbours.place

    def agree(self, value: T) -> T:
        return self.talk().agree(value)

    def everywhere(self, value: bool) -> bool:
        return all(self.talk().share(value))

    def checked(self, check: Callable[[], T]) -> T:
        return self.talk().each(check)

    def means(self, X: Any) -> np.ndarray:
        talk = self.talk()
        if isinstance(X, Shard):
            totals = talk.together(lambda: column_means(X.own) * X.own.shape[0])
        elif isinstance(X, TensorRows):
            return super().means(X)
        else:  # all of them have it; each reads a part
            first, last = even_parts(X.shape[0], talk.size)[talk.rank :][:2]
            totals = talk.together(lambda: column_totals(X, first, last))
        return np.sum(totals, axis=0) / X.shape[0]

    def gather(self, X: Any, *columns: np.ndarray) -> tuple[Any, ...]:
        talk = self.talk()
        _Neighbours.find(talk)
        shapes = talk.share((X.shape, str(X.dtype), sp.issparse(X)))
        if len({(shape[1], sparse) for shape, _, sparse in shapes}) > 1:
            told = ", ".join(
                f"rank {rank} has {shape[1]} features, {'CSR' if sparse else 'dense'}"
                for rank, (shape, _, sparse) in enumerate(shapes)
            )
            raise ValueError(f"All ranks must bring rows with the same features, all dense or all CSR: {told}.")
        same = self.data != "sharded" and len(set(talk.share(digest_of(X, columns)))) == 1
        if self.data == "replicated" and not same:
            raise ValueError(
                "data='replicated', but the ranks were given different rows. Pass the same X and y on every rank, or "
                "set data='sharded'."
            )
        if same:
            return (X, *columns)
        starts = np.concatenate(([0], np.cumsum([shape[0] for shape, _, _ in shapes])))
        common = np.result_type(*(dtype for _, dtype, _ in shapes))
        own = talk.each(lambda: _converted(X, common))
        return (Shard(own, starts, talk), *(np.concatenate(talk.share(column)) for column in columns))

    def over(self, device: Device, kernel: Kernel, X: Any, centre: np.ndarray | None) -> RankCrew:
        if not isinstance(X, Shard):
            return RankCrew(device, kernel, self.talk(), device.samples(X, kernel, centre), self.exchange)
        if kernel.overlap == "given":
            raise ValueError("kernel='precomputed' needs replicated data: pass the whole matrix on every rank.")
        if self.exchange == "reduce":
            raise ValueError("exchange='reduce' needs replicated data: every rank computes with all rows.")
        samples = device.samples(X.own, kernel, centre)
        return RankCrew(device, kernel, X.talk, ShardedRows(device, kernel, samples, X.starts, X.talk), "gather")


class _Neighbours:
    """How many ranks share this machine, and which of them this one is. Prediction needs to know but must not ask: it
    is no collective operation."""

    count, place = 1, 0

    @classmethod
    def find(cls, talk: Talk) -> None:
        hosts = talk.share(platform.node())
        cls.count, cls.place = hosts.count(hosts[talk.rank]), hosts[: talk.rank].count(hosts[talk.rank])


def _converted(X: Any, dtype: np.dtype) -> Any:
    if X.dtype != dtype and is_mapped(X):
        raise ValueError(
            f"The data on disk is {X.dtype} here and {dtype} elsewhere: store the files of all ranks in one precision."
        )
    return X if X.dtype == dtype else X.astype(dtype)
