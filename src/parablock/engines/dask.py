"""A Dask cluster: every worker runs one rank of the fit (`parablock.engines.ranks`), on rows of its own.

The client divides the rows among the workers, starts one task on each, and waits. The tasks talk to each other: rows,
coefficients and kernel products go from worker to worker, and the client gets the fitted model in the end.

When a worker dies, the others notice (the client tells them), and each still has the state after the last whole
iteration: coefficients and decisions are known everywhere. So the fit starts again from there on the workers that are
left. Dask computes the rows that died with the worker again, or the client sends them again.
"""

from __future__ import annotations

import logging
import pickle
import sys
import time
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from uuid import uuid4

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from parablock.devices.base import Device
from parablock.engines.base import Crew, Engine
from parablock.engines.mailbox import Mailbox, MailboxTalk
from parablock.engines.ranks import RankEngine
from parablock.engines.sharing import even_parts
from parablock.engines.talk import RankLost
from parablock.kernels import Kernel
from parablock.monitor.checkpoint import Shelf, Snapshot

logger = logging.getLogger("parablock")
_PARTS_A_WORKER = 4  # of data that the client brings, so that it can be divided among fewer workers too
_LOOK_SECONDS = 0.25  # how often the client looks after the workers
_ATTEMPTS_IN_VAIN = 3  # after so many in a row without progress it is the fit that kills workers
_GOODBYE_SECONDS = 60.0  # for tasks to end that were told that a worker is gone


def is_collection(X: Any) -> bool:
    """Whether X is a Dask array or dataframe; other libraries' objects may be, and have no graph if they are not."""
    return hasattr(X, "__dask_graph__") and X.__dask_graph__() is not None


class DaskEngine(Engine):
    """The workers of a Dask cluster.

    Parameters
    ----------
    client : dask.distributed.Client, optional
        The one that was started last by default.
    """

    def __init__(self, client: Any = None) -> None:
        self.client = client

    def __repr__(self) -> str:
        return "DaskEngine()" if self.client is None else f"DaskEngine({self.client!r})"

    def __deepcopy__(self, memo: dict[int, Any]) -> DaskEngine:
        return self  # scikit-learn's clone asks for a copy; a client has none

    def __reduce__(self) -> tuple[Any, ...]:
        return DaskEngine, ()  # whoever loads the model has another client

    def _client(self) -> Any:
        try:
            from distributed import default_client
        except ImportError as error:
            raise ImportError("Fitting on a Dask cluster needs dask: pip install 'parablock[dask]'.") from error
        if self.client is not None:
            return self.client
        try:
            return default_client()
        except ValueError as error:
            raise ValueError(
                "There is no Dask client to fit with. Start one (from dask.distributed import Client; client = "
                "Client()), or pass DaskEngine(client) as engine."
            ) from error

    def over(self, device: Device, kernel: Kernel, X: Any, centre: np.ndarray | None) -> Crew:
        raise TypeError("DaskEngine fits estimators; `solve` runs on one machine or on MPI ranks.")

    def fit_elsewhere(self, estimator: Any, X: Any, y: Any, sample_weight: Any) -> dict[str, Any]:
        if estimator.kernel == "precomputed":
            raise ValueError("kernel='precomputed' needs all rows on one machine: use engine='local'.")
        client = self._client()
        rows = _Rows(client, X, y, sample_weight)
        plain = clone(estimator).set_params(engine="local")
        if estimator.warm_start:
            vars(plain).update(fitted_attributes(estimator))
        start: Any = None
        done = in_vain = 0
        while in_vain < _ATTEMPTS_IN_VAIN:
            try:
                attempt = _Attempt(client, plain, rows, start)
                if attempt.run():
                    return attempt.fitted()
                iteration, newer = attempt.where_it_stopped()
            except _Unreachable:
                iteration, newer = 0, None
            logger.warning(
                "A Dask worker was lost. %d are left; going on after iteration %d.",
                len(client.nthreads()),
                max(iteration, done),
            )
            if iteration > done:
                done, start, in_vain = iteration, newer, 0
            else:
                in_vain += 1
        raise RuntimeError(
            f"Workers were lost in {_ATTEMPTS_IN_VAIN} attempts in a row without any progress. If they ran out of "
            "memory, set memory_limit, use more workers, or give each of them more memory."
        )

    def predict_elsewhere(self, estimator: Any, method: str, X: Any) -> Any:
        client = self._client()
        model = clone(estimator).set_params(engine="local")
        vars(model).update(fitted_attributes(estimator))
        if is_collection(X):
            return _lazily(model, method, X)
        X = X if hasattr(X, "shape") else np.asarray(X)
        parts = client.scatter(_cut(X, even_parts(X.shape[0], max(1, min(X.shape[0], len(_workers(client)))))))
        sent = client.scatter(model, broadcast=True)
        return np.concatenate(client.gather(client.map(_predict, [sent] * len(parts), [method] * len(parts), parts)))


def fitted_attributes(estimator: Any) -> dict[str, Any]:
    """All that a fit has set."""
    parameters = estimator.get_params(deep=False)
    return {name: value for name, value in vars(estimator).items() if name not in parameters}


def _workers(client: Any) -> list[str]:
    """The addresses of all workers there are; waits for the first."""
    client.wait_for_workers(1, timeout=_GOODBYE_SECONDS)
    return sorted(client.nthreads())


class _Rows:
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
                futures = _futures(client, values, len(_workers(client)))
                wait(futures)
                lengths = np.array(client.gather(client.map(_length, futures)), dtype=np.int64)
                self._agree(lengths, name)
                self._columns[name] = "there", futures
        if self.lengths is None:
            n = X.shape[0] if hasattr(X, "shape") else len(X)
            parts = min(n, _PARTS_A_WORKER * len(_workers(client)))
            self.lengths = np.diff(even_parts(n, max(1, parts)))
        starts = np.concatenate(([0], np.cumsum(self.lengths)))
        for name, values in columns.items():
            if values is not None and name not in self._columns:
                length = values.shape[0] if hasattr(values, "shape") else len(values)
                if length != starts[-1]:
                    raise ValueError(f"X has {starts[-1]} rows, but {name} has {length}: they must have as many.")
                self._columns[name] = "here", _cut(values, starts)

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


class _Attempt:
    """One try to get through a fit: a rank on every worker."""

    def __init__(self, client: Any, estimator: Any, rows: _Rows, start: Any) -> None:
        self.client = client
        workers = _workers(client)
        shares = rows.divided(workers)
        self.workers = rows.at_home(shares, workers)
        name = f"parablock-{uuid4().hex}"
        names = [f"{name}-{rank}" for rank in range(len(shares))]
        # As long as the client holds these futures the mailboxes exist.
        self._mailboxes = [
            client.submit(Mailbox, own, actor=True, workers=[worker], key=f"{own}-mailbox")
            for own, worker in zip(names, self.workers, strict=True)
        ]
        self.mailboxes = [self._result(mailbox, number) for number, mailbox in enumerate(self._mailboxes)]
        topic = f"parablock-{client.id}"  # one for all fits of a client, because neither side forgets a topic
        client.subscribe_topic(topic, _print_line)
        # As bytes: Dask would take a mailbox for something that the task depends on, and end all of them with one.
        sealed = pickle.dumps(self.mailboxes)
        self.ranks = [
            client.submit(
                _rank, estimator, share, rank, sealed, names[rank], topic, start,
                workers=[worker], key=names[rank], pure=False,
            )
            for rank, (share, worker) in enumerate(zip(shares, self.workers, strict=True))
        ]  # fmt: skip

    def _result(self, future: Any, rank: int) -> Any:
        """The result of something that a rank's worker has; no waiting for one that is gone."""
        while not future.done():
            if self.workers[rank] not in self.client.nthreads():
                raise _Unreachable
            time.sleep(_LOOK_SECONDS / 10)
        return future.result()

    def run(self) -> bool:
        """Wait until all ranks have ended; whether none was lost. An error of the fit is raised."""
        told = interrupted = False
        deadline = float("inf")
        while not all(rank.done() for rank in self.ranks) and time.monotonic() < deadline:
            try:
                time.sleep(_LOOK_SECONDS)
                there = set(self.client.nthreads())
                trouble = [worker for worker in self.workers if worker not in there]
                failed = any(rank.status in ("error", "cancelled", "lost") for rank in self.ranks)
                if (trouble or failed) and not told:
                    told, deadline = True, time.monotonic() + _GOODBYE_SECONDS
                    self._tell(there, "A worker was lost.")
                if trouble and all(
                    rank.done() or worker in trouble for rank, worker in zip(self.ranks, self.workers, strict=True)
                ):
                    break
            except KeyboardInterrupt:
                if interrupted:
                    self._tell(set(self.workers), "Interrupted.")
                    raise
                interrupted = True
                self.mailboxes[0].interrupt()
        for rank in self.ranks:
            if rank.status == "error":
                rank.result()  # raises it
        return all(rank.status == "finished" for rank in self.ranks) and not told

    def _tell(self, there: set[str], reason: str) -> None:
        for mailbox, worker in zip(self.mailboxes, self.workers, strict=True):
            if worker in there:
                with suppress(RuntimeError):  # this one is gone too
                    mailbox.lose(reason)

    def fitted(self) -> dict[str, Any]:
        """The attributes of the fitted model, with the warnings that its fit gave."""
        outcome = self._result(self.client.submit(_itself, self.ranks[0], workers=self.workers[:1], pure=False), 0)
        if outcome.interrupted:
            raise KeyboardInterrupt
        for category, text in outcome.warnings:
            warnings.warn(text, category)
        return outcome.fitted

    def where_it_stopped(self) -> tuple[int, Any]:
        """Iterations done, and a future of the newest snapshot that a rank has left."""
        best: tuple[int, Any] = 0, None
        for number, rank in enumerate(self.ranks):
            if rank.status == "finished" and self.workers[number] in self.client.nthreads():
                on_it = {"workers": [self.workers[number]], "pure": False}
                iterations = self._result(self.client.submit(_iterations_done, rank, **on_it), number)
                if iterations > best[0]:
                    best = iterations, self.client.submit(_snapshot, rank, **on_it)
        if best[1] is not None:
            self.client.replicate(best[1], n=2)  # or it might be lost with the next worker
        return best


class _Unreachable(Exception):
    """A worker is gone before it could answer."""


def _print_line(event: tuple[Any, str]) -> None:
    sys.stderr.write(event[1])


# ------------------------------------------------------------------------------------------------------ on the workers


@dataclass(frozen=True)
class _Outcome:
    """What is left of a rank: the fitted model (of the first one), or how far it had come."""

    fitted: dict[str, Any]
    warnings: Sequence[tuple[type[Warning], str]]
    snapshot: Snapshot | None = None
    interrupted: bool = False


class _WorkerEngine(RankEngine):
    """One rank on a worker."""

    shelf: Shelf

    def __init__(self, talk: MailboxTalk, n_threads: int, topic: str, start: Snapshot | None) -> None:
        super().__init__(data="sharded", exchange="gather")
        self._talk, self.n_threads, self.topic = talk, n_threads, topic
        self.shelf = Shelf(start)

    def __deepcopy__(self, memo: dict[int, Any]) -> _WorkerEngine:
        return self

    def talk(self) -> MailboxTalk:
        return self._talk

    def threads(self, n_jobs: int | None) -> int | None:
        return self.n_threads if n_jobs is None else n_jobs

    def stream(self) -> Any:
        return _ToClient(self.topic)


class _ToClient:
    """A stream whose lines appear at the client, which listens to the topic."""

    def __init__(self, topic: str) -> None:
        self.topic = topic

    def write(self, text: str) -> None:
        from distributed import get_worker

        get_worker().log_event(self.topic, text)

    def flush(self) -> None:
        pass


def _rank(
    estimator: Any,
    share: dict[str, list[Any]],
    rank: int,
    mailboxes: bytes,
    name: str,
    topic: str,
    start: Snapshot | None,
) -> _Outcome:
    """What one worker does."""
    from distributed import get_worker

    engine = _WorkerEngine(MailboxTalk(rank, pickle.loads(mailboxes), name), get_worker().state.nthreads, topic, start)
    model = clone(estimator).set_params(engine=engine)
    vars(model).update(fitted_attributes(estimator))
    columns = {name: _joined(parts) for name, parts in share.items()}
    try:
        with warnings.catch_warnings(record=True) as given:
            warnings.simplefilter("always")
            model.fit(**columns)
    except RankLost:
        return _Outcome({}, [], engine.shelf.newest())
    except KeyboardInterrupt:  # before there was anything to keep
        return _Outcome({}, [], interrupted=True)
    return _Outcome(fitted_attributes(model) if rank == 0 else {}, [(w.category, str(w.message)) for w in given])


def _joined(parts: Sequence[Any]) -> Any:
    first = parts[0]
    if len(parts) == 1:
        return first
    if sp.issparse(first):
        return sp.vstack(parts).tocsr()
    if hasattr(first, "iloc"):
        import pandas as pd

        return pd.concat(parts)
    return np.concatenate(parts)


def _length(part: Any) -> int:
    return int(part.shape[0])


def _itself(outcome: _Outcome) -> _Outcome:
    return outcome


def _iterations_done(outcome: _Outcome) -> int:
    return 0 if outcome.snapshot is None else outcome.snapshot.iteration


def _snapshot(outcome: _Outcome) -> Snapshot | None:
    return outcome.snapshot


def _predict(model: Any, method: str, part: Any) -> np.ndarray:
    if part.shape[0] > 0:
        return getattr(model, method)(part)
    return getattr(model, method)(np.zeros((1, model.n_features_in_), dtype=np.float32))[:0]


# --------------------------------------------------------------------------------------------------------- collections


def _futures(client: Any, values: Any, workers: int) -> list[Any]:
    """The parts of a collection, computed where they are."""
    if hasattr(values, "chunks"):
        if values.ndim == 2 and values.numblocks[1] > 1:
            values = values.rechunk({1: -1})
        if values.numblocks[0] < workers and not np.isnan(values.shape[0]):
            values = values.rechunk({0: -(-values.shape[0] // workers)})
    return client.compute(np.ravel(values.to_delayed()).tolist())


def _cut(values: Any, starts: np.ndarray) -> list[Any]:
    """Stretches of an array, a matrix or a dataframe."""
    values = values.tocsr() if sp.issparse(values) else values
    rows = values.iloc if hasattr(values, "iloc") else values if hasattr(values, "shape") else np.asarray(values)
    return [rows[first:last] for first, last in pairwise(starts)]


def _lazily(model: Any, method: str, X: Any) -> Any:
    """A Dask array of predictions, part by part."""
    from dask import delayed
    from dask.array import concatenate, from_delayed

    row = np.zeros((1, model.n_features_in_))
    like = _predict(model, method, X._meta_nonempty.iloc[:1] if hasattr(X, "_meta_nonempty") else row)
    sent = delayed(model, pure=False)
    lengths = X.chunks[0] if hasattr(X, "chunks") else [np.nan] * X.npartitions
    X = X.rechunk({1: -1}) if hasattr(X, "chunks") and X.numblocks[1] > 1 else X
    parts = [
        from_delayed(delayed(_predict)(sent, method, part), shape=(length, *like.shape[1:]), dtype=like.dtype)
        for part, length in zip(np.ravel(X.to_delayed()), lengths, strict=True)
    ]
    return concatenate(parts, allow_unknown_chunksizes=True)
