"""The rows of a problem on a Dask cluster: parts that the cluster has, or that the client brings."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from parablock.engines.sharing import even_parts

_PARTS_A_WORKER = 4  # of data that the client brings, so that it can be divided among fewer workers too
_FIRST_WORKER_SECONDS = 60.0  # to wait for one


def is_collection(X: Any) -> bool:
    """Whether X is a Dask array or dataframe; other libraries' objects may be, and have no graph if they are not."""
    return hasattr(X, "__dask_graph__") and X.__dask_graph__() is not None


def workers_of(client: Any) -> list[str]:
    """The addresses of all workers there are; waits for the first."""
    client.wait_for_workers(1, timeout=_FIRST_WORKER_SECONDS)
    return sorted(client.nthreads())


class Rows:
    """The rows of a problem in parts, which the cluster has or the client brings.

    Attributes
    ----------
    lengths : ndarray of int
        Of the parts, which follow each other.
    """

    def __init__(self, client: Any, X: Any, y: Any, sample_weight: Any) -> None:
        from distributed import wait

        self.client = client
        columns = {"X": X, "y": y, "sample_weight": sample_weight}
        self._columns: dict[str, tuple[str, Any]] = {}  # futures that stay, or arrays that are sent for each attempt
        self.lengths: np.ndarray | None = None
        for name, values in columns.items():
            if is_collection(values):
                futures = _futures(client, values, len(workers_of(client)))
                wait(futures)
                lengths = np.array(client.gather(client.map(_length, futures, pure=False)), dtype=np.int64)
                self._agree(lengths, name)
                self._columns[name] = "there", futures
        if self.lengths is None:
            n = X.shape[0] if hasattr(X, "shape") else len(X)
            parts = min(n, _PARTS_A_WORKER * len(workers_of(client)))
            self.lengths = np.diff(even_parts(n, max(1, parts)))
        starts = np.concatenate(([0], np.cumsum(self.lengths)))
        for name, values in columns.items():
            if values is not None and name not in self._columns:
                length = values.shape[0] if hasattr(values, "shape") else len(values)
                if length != starts[-1]:
                    raise ValueError(f"X has {starts[-1]} rows, but {name} has {length}: they must have as many.")
                self._columns[name] = "here", cut(values, starts)

    def _agree(self, lengths: np.ndarray, name: str) -> None:
        if self.lengths is None:
            self.lengths = lengths
        elif not np.array_equal(self.lengths, lengths):
            raise ValueError(
                f"X and {name} must be divided alike, in parts of the same numbers of rows: X has parts of "
                f"{self.lengths.tolist()[:8]} rows, {name} of {lengths.tolist()[:8]} (the first few). Rechunk one like "
                "the other."
            )

    def divided(self, workers: Sequence[str]) -> list[dict[str, list[Any]]]:
        """For every rank the futures of its parts; stretches that follow each other, of about the same length."""
        from distributed import wait

        assert self.lengths is not None
        # Parts that were lost with a worker are computed again now: once ranks run there may be no thread for it, and
        # the ranks would wait for each other.
        wait([part for where, parts in self._columns.values() if where == "there" for part in parts])
        filled = np.flatnonzero(self.lengths)
        middle = (np.cumsum(self.lengths) - self.lengths / 2)[filled]
        rank = (middle * len(workers) / max(1, self.lengths.sum())).astype(np.intp)
        shares: list[dict[str, list[Any]]] = []
        for number in np.unique(rank):
            mine = filled[rank == number]
            shares.append({})
            for name, (where, parts) in self._columns.items():
                chosen = [parts[part] for part in mine]
                to = [workers[len(shares) - 1]]
                shares[-1][name] = chosen if where == "there" else self.client.scatter(chosen, workers=to, hash=False)
        return shares

    def at_home(self, shares: Sequence[dict[str, list[Any]]], workers: Sequence[str]) -> list[str]:
        """A worker for every share: one that has much of it already, where there is one."""
        free, chosen = list(workers), []
        has = self.client.who_has([part for share in shares for part in share["X"]])
        for share in shares:
            held = {worker: sum(worker in has.get(part.key, ()) for part in share["X"]) for worker in free}
            chosen.append(max(free, key=lambda worker: held[worker]))
            free.remove(chosen[-1])
        return chosen


def _futures(client: Any, values: Any, workers: int) -> list[Any]:
    """The parts of a collection, computed where they are."""
    if hasattr(values, "chunks"):
        if values.ndim == 2 and values.numblocks[1] > 1:
            values = values.rechunk({1: -1})
        if values.numblocks[0] < workers and not np.isnan(values.shape[0]):
            values = values.rechunk({0: -(-values.shape[0] // workers)})
    return client.compute(np.ravel(values.to_delayed()).tolist())


def cut(values: Any, starts: np.ndarray) -> list[Any]:
    """Stretches of an array, a matrix or a dataframe."""
    values = values.tocsr() if sp.issparse(values) else values
    rows = values.iloc if hasattr(values, "iloc") else values if hasattr(values, "shape") else np.asarray(values)
    return [rows[first:last] for first, last in pairwise(starts)]


def _length(part: Any) -> int:
    return int(part.shape[0])
