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
from contextlib import suppress
from typing import Any
from uuid import uuid4

import numpy as np
from sklearn.base import clone

from parablock.devices.base import Device
from parablock.engines.base import Crew, Engine
from parablock.engines.dask_rows import Rows, cut, is_collection, workers_of
from parablock.engines.dask_worker import (
    fitted_attributes,
    iterations_done,
    itself,
    predict_part,
    run_rank,
    snapshot_of,
)
from parablock.engines.mailbox import Mailbox
from parablock.engines.sharing import even_parts
from parablock.kernels import Kernel, Precomputed, kernel_is

logger = logging.getLogger("parablock")
_LOOK_SECONDS = 0.25  # how often the client looks after the workers
_ATTEMPTS_IN_VAIN = 3  # after so many in a row without progress it is the fit that kills workers
_GOODBYE_SECONDS = 60.0  # for tasks to end that were told that a worker is gone


class DaskEngine(Engine):
    """The workers of a Dask cluster.

    Parameters
    ----------
    client : dask.distributed.Client, optional
        The one that was started last by default.

    Examples
    --------
    With the workers of the client that was started last; ``DaskEngine(client)`` names another one:

    >>> from parablock import KernelSVC
    >>> from parablock.engines import DaskEngine
    >>> KernelSVC(C=32, gamma=32, engine=DaskEngine()).engine
    DaskEngine()
    """

    elsewhere = True

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
        from parablock.callbacks.messenger import Messenger
        from parablock.callbacks.support import watch_of

        if kernel_is(estimator.kernel, Precomputed):
            raise ValueError("kernel='precomputed' needs all rows on one machine: use engine='local'.")
        client, watch = self._client(), watch_of(estimator)
        rows = Rows(client, X, y, sample_weight)
        plain = clone(estimator).set_params(engine="local").set_callbacks(*([] if watch is None else [Messenger()]))
        if estimator.warm_start:
            vars(plain).update(fitted_attributes(estimator))
        start: Any = None
        done = in_vain = 0
        while in_vain < _ATTEMPTS_IN_VAIN:
            try:
                attempt = _Attempt(client, plain, rows, start, watch)
                if attempt.run():
                    return attempt.fitted()
                iteration, newer = attempt.where_it_stopped()
            except _Unreachable:
                iteration, newer = 0, None
            if plain.checkpoint is not None:
                plain.set_params(resume="auto")  # what is there by now is of this fit
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
        pieces = cut(X, even_parts(X.shape[0], max(1, min(X.shape[0], len(workers_of(client))))))
        # Under names of their own: by its content the same thing would have the name that it had in the last
        # prediction, which the workers may be about to forget, and Dask then loses it or waits for ever.
        parts, sent = client.scatter(pieces, hash=False), client.scatter(model, broadcast=True, hash=False)
        found = client.map(predict_part, [sent] * len(parts), [method] * len(parts), parts, pure=False)
        return np.concatenate(client.gather(found))


class _Attempt:
    """One try to get through a fit: a rank on every worker."""

    def __init__(self, client: Any, estimator: Any, rows: Rows, start: Any, watch: Any) -> None:
        self.client, self.watch = client, watch
        workers = workers_of(client)
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
                run_rank, estimator, share, rank, sealed, names[rank], topic, start,
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
                if self.watch is not None:
                    self._hear()
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
                with suppress(RuntimeError, OSError):  # the first worker is gone; the next look will find out
                    self.mailboxes[0].interrupt().result(timeout=_GOODBYE_SECONDS)
        for rank in self.ranks:
            if rank.status == "error":
                rank.result()  # raises it
        return all(rank.status == "finished" for rank in self.ranks) and not told

    def _hear(self) -> None:
        """Tell the callbacks, which are here, of the iterations that the first rank has made."""
        try:
            news = self.mailboxes[0].hear().result(timeout=_GOODBYE_SECONDS)
        except (RuntimeError, OSError):  # the first worker is gone; the next look will find out
            return
        try:
            stop = [self.watch.heard(*one) for one in news]
        except Exception:
            self._tell(set(self.workers), "A callback failed.")
            raise
        if any(stop):
            self.mailboxes[0].stop(self.watch.run.why)

    def _tell(self, there: set[str], reason: str) -> None:
        for mailbox, worker in zip(self.mailboxes, self.workers, strict=True):
            if worker in there:
                with suppress(RuntimeError):  # this one is gone too
                    mailbox.lose(reason)

    def fitted(self) -> dict[str, Any]:
        """The attributes of the fitted model, with the warnings that its fit gave."""
        outcome = self._result(self.client.submit(itself, self.ranks[0], workers=self.workers[:1], pure=False), 0)
        if outcome.interrupted:
            raise KeyboardInterrupt
        for category, text in outcome.warnings:
            warnings.warn(text, category)
        if self.watch is not None:
            self.watch.catch_up(outcome.fitted["history_"])
        return outcome.fitted

    def where_it_stopped(self) -> tuple[int, Any]:
        """Iterations done, and a future of the newest snapshot that a rank has left."""
        best: tuple[int, Any] = 0, None
        for number, rank in enumerate(self.ranks):
            if rank.status == "finished" and self.workers[number] in self.client.nthreads():
                on_it = {"workers": [self.workers[number]], "pure": False}
                iterations = self._result(self.client.submit(iterations_done, rank, **on_it), number)
                if iterations > best[0]:
                    best = iterations, self.client.submit(snapshot_of, rank, **on_it)
        if best[1] is not None:
            self.client.replicate(best[1], n=2)  # or it might be lost with the next worker
        return best


class _Unreachable(Exception):
    """A worker is gone before it could answer."""


def _print_line(event: tuple[Any, str]) -> None:
    sys.stderr.write(event[1])


def _lazily(model: Any, method: str, X: Any) -> Any:
    """A Dask array of predictions, part by part."""
    from dask import delayed
    from dask.array import concatenate, from_delayed

    row = np.zeros((1, model.n_features_in_))
    like = predict_part(model, method, X._meta_nonempty.iloc[:1] if hasattr(X, "_meta_nonempty") else row)
    sent = delayed(model, pure=False)
    lengths = X.chunks[0] if hasattr(X, "chunks") else [np.nan] * X.npartitions
    X = X.rechunk({1: -1}) if hasattr(X, "chunks") and X.numblocks[1] > 1 else X
    parts = [
        from_delayed(delayed(predict_part)(sent, method, part), shape=(length, *like.shape[1:]), dtype=like.dtype)
        for part, length in zip(np.ravel(X.to_delayed()), lengths, strict=True)
    ]
    return concatenate(parts, allow_unknown_chunksizes=True)
