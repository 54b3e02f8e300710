"""What a Dask worker does: one rank of a fit, or predictions of some rows."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from parablock.engines.mailbox import MailboxTalk
from parablock.engines.ranks import RankEngine
from parablock.engines.talk import RankLost
from parablock.monitor.checkpoint import Shelf, Snapshot


def fitted_attributes(estimator: Any) -> dict[str, Any]:
    """All that a fit has set; callbacks are the user's, and what they need is there during a fit only."""
    parameters = estimator.get_params(deep=False)
    return {name: value for name, value in vars(estimator).items() if name not in parameters and "callback" not in name}


@dataclass(frozen=True)
class Outcome:
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


def run_rank(
    estimator: Any,
    share: dict[str, list[Any]],
    rank: int,
    mailboxes: bytes,
    name: str,
    topic: str,
    start: Snapshot | None,
) -> Outcome:
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
        return Outcome({}, [], engine.shelf.newest())
    except KeyboardInterrupt:  # before there was anything to keep
        return Outcome({}, [], interrupted=True)
    return Outcome(fitted_attributes(model) if rank == 0 else {}, [(w.category, str(w.message)) for w in given])


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


def itself(outcome: Outcome) -> Outcome:
    return outcome


def iterations_done(outcome: Outcome) -> int:
    return 0 if outcome.snapshot is None else outcome.snapshot.iteration


def snapshot_of(outcome: Outcome) -> Snapshot | None:
    return outcome.snapshot


def predict_part(model: Any, method: str, part: Any) -> np.ndarray:
    if part.shape[0] > 0:
        return getattr(model, method)(part)
    return getattr(model, method)(np.zeros((1, model.n_features_in_), dtype=np.float32))[:0]
