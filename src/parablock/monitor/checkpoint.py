"""Checkpoints: a run that was stopped, or that died, goes on from the last one.

A file holds a `Snapshot`, in the numbering of the rows that training was given, so that it can be resumed by any number
of machines. It begins with a mark, a version, and the length and checksum of what follows, and is written beside its
place and then moved there: there is always one whole file, the new one or the last one.
"""

from __future__ import annotations

import hashlib
import io
import json
import logging
import os
import signal
import struct
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from parablock.monitor.checkpoint_content import WrongContent, content_of, refuse_infeasible
from parablock.monitor.history import Record
from parablock.replacing import check_writable, replacing

logger = logging.getLogger("parablock")
_MARK, _VERSION = b"parablock checkpoint\n", 4
_HEADER = struct.Struct("<IQ32s")  # version, length, SHA-256
TERMINATED = 128 + signal.SIGTERM  # exit status


class CheckpointError(ValueError):
    """A checkpoint that cannot be used; the message says why.

    Examples
    --------
    >>> import os, tempfile
    >>> from parablock import CheckpointError, KernelSVC
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "run.checkpoint")
    ...     with open(path, "w") as file:
    ...         _ = file.write("something else")
    ...     try:
    ...         KernelSVC(checkpoint=path).fit([[0.0], [1.0]], [0, 1])
    ...     except CheckpointError as error:
    ...         print(str(error).split("Set")[1])
     resume=True to go on from it, choose another path, or remove it.
    """


@dataclass(frozen=True)
class Checkpoint:
    """Where and how often to write.

    Parameters
    ----------
    path : str or path
    seconds : float, default=600
        At least so long after the last one, at the end of an outer iteration.
    iterations : int, optional
        Also after so many outer iterations.

    Examples
    --------
    >>> import os, tempfile
    >>> from sklearn.datasets import make_moons
    >>> from parablock import Checkpoint, KernelSVC
    >>> X, y = make_moons(500, noise=0.1, random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     checkpoint = Checkpoint(os.path.join(folder, "moons.checkpoint"), seconds=60, iterations=1)
    ...     model = KernelSVC(n_blocks=4, checkpoint=checkpoint, resume="auto", random_state=0).fit(X, y)
    ...     os.listdir(folder)
    ['moons.checkpoint']
    """

    path: str | os.PathLike[str]
    seconds: float = 600.0
    iterations: int | None = None

    def __post_init__(self) -> None:
        if not self.seconds >= 0:
            raise ValueError(f"seconds must be zero or positive, got {self.seconds!r}.")
        if self.iterations is not None and self.iterations < 1:
            raise ValueError(f"iterations must be at least 1, got {self.iterations!r}.")


@dataclass(frozen=True)
class Snapshot:
    """All that is needed to go on.

    Attributes
    ----------
    coef, decision : ndarray of shape (n_outputs, n)
        The decisions of rows that are not watched mean nothing.
    last_step : pair of ndarray of shape (n_outputs, n), or None
        The last iteration's change of both.
    watched : ndarray of int or None
        The watched rows in their order; None for all of them.
    iteration : int
    history : sequence of Record
    seconds : float
        Training time so far.
    memory : dict
        What schedule, random generator and run remember; numbers and text only.
    path : str or None
        Of the file that it was read from; None for one that this process has kept.
    """

    coef: np.ndarray
    decision: np.ndarray
    last_step: tuple[np.ndarray, np.ndarray] | None
    watched: np.ndarray | None
    iteration: int
    history: Sequence[Record]
    seconds: float
    memory: dict[str, Any]
    path: str | None = None

    def put_back(self, order: np.ndarray) -> Snapshot:
        """The same where row i is called order[i]."""

        def back(values: np.ndarray) -> np.ndarray:
            result = np.empty_like(values)
            result[:, order] = values
            return result

        return self._renamed(back, order)

    def taken(self, order: np.ndarray) -> Snapshot:
        """The same where row order[i] is called i."""
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        return self._renamed(lambda values: values[:, order], place)

    def _renamed(self, moved: Callable[[np.ndarray], np.ndarray], names: np.ndarray) -> Snapshot:
        """The same where row i is called names[i], with every array moved accordingly."""
        return replace(
            self,
            coef=moved(self.coef),
            decision=moved(self.decision),
            last_step=None if self.last_step is None else (moved(self.last_step[0]), moved(self.last_step[1])),
            watched=None if self.watched is None else names[self.watched],
        )


def refuse_unwritable(path: str | os.PathLike[str]) -> None:
    """Raise an error now, instead of a warning after ten minutes of training."""
    try:
        check_writable(path)
    except OSError as error:
        raise CheckpointError(
            f"Cannot write the checkpoint {os.fspath(path)!r}: {error.strerror or error}. Choose a path in a folder "
            "that exists and may be written to."
        ) from error


def write(path: str | os.PathLike[str], snapshot: Snapshot, fingerprint: str) -> None:
    """Replace the file at once, or leave it as it is and raise an error."""
    told = {
        "fingerprint": fingerprint,
        "iteration": snapshot.iteration,
        "seconds": snapshot.seconds,
        "memory": snapshot.memory,
        "history": [asdict(record) for record in snapshot.history],
    }
    arrays: dict[str, Any] = {"coef": snapshot.coef, "decision": snapshot.decision, "told": np.array(json.dumps(told))}
    if snapshot.last_step is not None:
        arrays["last_coef"], arrays["last_decision"] = snapshot.last_step
    if snapshot.watched is not None:
        arrays["watched"] = snapshot.watched
    body = io.BytesIO()
    np.savez(body, **arrays)
    data = body.getbuffer()
    with replacing(path) as file:
        file.write(_MARK)
        file.write(_HEADER.pack(_VERSION, len(data), hashlib.sha256(data).digest()))
        file.write(data)


def read(path: str | os.PathLike[str], fingerprint: str | None = None) -> Snapshot:
    """The snapshot in a file; with a fingerprint, only of the problem that has it."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise CheckpointError(f"Cannot read the checkpoint {os.fspath(path)!r}: {error.strerror}.") from error
    start = len(_MARK) + _HEADER.size
    if not content.startswith(_MARK[: len(content)]) or not content:
        raise CheckpointError(f"{os.fspath(path)!r} is no parablock checkpoint. It was left as it is.")
    if len(content) < start:
        raise CheckpointError(_broken(path, f"it ends after {len(content)} bytes"))
    version, length, checksum = _HEADER.unpack_from(content, len(_MARK))
    if version != _VERSION:
        raise CheckpointError(
            f"The checkpoint {os.fspath(path)!r} has format version {version}; this parablock reads version "
            f"{_VERSION}. Resume with the version that wrote it."
        )
    data = memoryview(content)[start:]
    if len(data) != length:
        raise CheckpointError(_broken(path, f"it has {len(data):,} bytes of content instead of {length:,}"))
    if hashlib.sha256(data).digest() != checksum:
        raise CheckpointError(_broken(path, "its checksum does not fit its content"))
    try:
        parts = content_of(data)
    except WrongContent as error:
        raise makes_no_sense(path, str(error)) from error
    if fingerprint is not None and parts.fingerprint != fingerprint:
        raise CheckpointError(
            f"The checkpoint {os.fspath(path)!r} is of another problem: data, targets, loss, kernel or their "
            "parameters differ. Fit with what it was written with, or choose another path. It was left as it is."
        )
    return Snapshot(
        parts.coef, parts.decision, parts.last_step, parts.watched, parts.iteration, parts.history, parts.seconds,
        parts.memory, os.fspath(path),
    )  # fmt: skip


def read_for(path: str | os.PathLike[str], fingerprint: str, problem: Any) -> Snapshot:
    """The snapshot in a file, of this problem and with coefficients that it can have."""
    snapshot = read(path, fingerprint)
    try:
        refuse_infeasible(snapshot.coef, None if snapshot.last_step is None else snapshot.last_step[0], problem)
    except WrongContent as error:
        raise makes_no_sense(path, str(error)) from error
    return snapshot


def makes_no_sense(path: str | os.PathLike[str], what: str) -> CheckpointError:
    """The error for a file that is whole, and holds what a fit cannot have written."""
    return CheckpointError(_broken(path, f"its content makes no sense ({what})"))


def _broken(path: str | os.PathLike[str], why: str) -> str:
    return (
        f"The checkpoint {os.fspath(path)!r} is damaged: {why}. It was left as it is; start without resume and with "
        "another path, or remove it."
    )


class Shelf:
    """The newest snapshot of a run, in this process's memory: what is left of the run when another machine dies.

    Parameters
    ----------
    start : Snapshot, optional
        The one to go on from.
    """

    def __init__(self, start: Snapshot | None = None) -> None:
        self.start = start
        self._last: tuple[Snapshot, np.ndarray] | None = None

    def put(self, snapshot: Snapshot, order: np.ndarray) -> None:
        """Keep a snapshot in which row order[i] is called i."""
        self._last = snapshot, order

    def newest(self) -> Snapshot | None:
        return self.start if self._last is None else self._last[0].put_back(self._last[1])


class Keeper:
    """Keeps snapshots in memory and writes checkpoints when it is time for one.

    Parameters
    ----------
    checkpoint : Checkpoint or None
    fingerprint : str
        Of the problem.
    order : ndarray of shape (n,)
        What the rows are called in files.
    writes : bool
        Whether this machine is the one that writes.
    shelf : Shelf or None
        Keeps the snapshot of every iteration.
    """

    def __init__(
        self,
        checkpoint: Checkpoint | None,
        fingerprint: str,
        order: np.ndarray,
        writes: bool,
        shelf: Shelf | None = None,
    ) -> None:
        self.checkpoint, self.fingerprint, self.order, self.writes = checkpoint, fingerprint, order, writes
        self.shelf = shelf
        self.terminated = False
        self._written: int | None = None  # the iteration that the checkpoint is of, if there is one
        self._last_time, self._last_iteration = time.monotonic(), 0

    def resumed(self, iteration: int) -> None:
        """The run goes on from there."""
        self._written = iteration
        self._waits_from(iteration)

    def _waits_from(self, iteration: int) -> None:
        self._last_time, self._last_iteration = time.monotonic(), iteration

    def is_due(self, iteration: int) -> bool:
        if self.checkpoint is None:
            return False
        every = self.checkpoint.iterations
        late = time.monotonic() - self._last_time >= self.checkpoint.seconds
        return late or (every is not None and iteration - self._last_iteration >= every)

    def save(self, snapshot: Snapshot) -> None:
        """Write, if this machine does. A disk that is full must not end a long run: the last checkpoint is intact."""
        self._waits_from(snapshot.iteration)
        if not self.writes or self.checkpoint is None:
            return
        try:
            write(self.checkpoint.path, snapshot.put_back(self.order), self.fingerprint)
            self._written = snapshot.iteration
        except OSError as error:
            warnings.warn(
                f"Could not write the checkpoint {os.fspath(self.checkpoint.path)!r} after iteration "
                f"{snapshot.iteration}: {error.strerror or error}. Training goes on; an earlier checkpoint, if there "
                "was one, is intact."
            )

    def what_is_left(self) -> str:
        """The newest checkpoint of the run, in words."""
        if self._written is None or self.checkpoint is None:
            return "no checkpoint was written"
        return f"the checkpoint {os.fspath(self.checkpoint.path)} is of iteration {self._written}"

    @contextmanager
    def listening(self) -> Iterator[None]:
        """SIGTERM, with which batch systems announce the end of a job's time, is noted while this lasts; one that
        nobody has looked for comes after it."""
        foreign = signal.getsignal(signal.SIGTERM) is None  # a handler that Python does not know, and could not restore
        if threading.current_thread() is not threading.main_thread() or foreign:
            yield
            return

        def note(number: int, frame: Any) -> None:
            self.terminated = True

        before = signal.signal(signal.SIGTERM, note)
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, before)
        if self.terminated:
            signal.raise_signal(signal.SIGTERM)
