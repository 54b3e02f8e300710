"""The checkpoint of a fit: the one to resume from, and what writes new ones."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from parablock.engines import Crew, make_engine
from parablock.fingerprint import fingerprint_of
from parablock.kernels import Kernel
from parablock.monitor import Checkpoint, CheckpointError
from parablock.monitor.checkpoint import Keeper, Snapshot, read_for, refuse_unwritable
from parablock.problem import Problem
from parablock.settings import Settings


def refuse_unwritable_checkpoint(settings: Settings) -> None:
    """Refuse a file that could not be written, before there is something to lose."""
    engine, checkpoint = make_engine(settings.engine), settings.checkpoint
    if checkpoint is not None:
        path = checkpoint.path if isinstance(checkpoint, Checkpoint) else checkpoint
        engine.checked(lambda: refuse_unwritable(path) if engine.is_first() else None)


@contextmanager
def checkpointing(
    settings: Settings, crew: Crew, kernel: Kernel, problem: Problem, X: Any, order: np.ndarray
) -> Iterator[tuple[Keeper | None, Snapshot | None]]:
    """What writes checkpoints, and the one to go on from."""
    checkpoint, shelf = checkpoint_of(settings), make_engine(settings.engine).shelf
    if checkpoint is None and shelf is None:
        yield None, None
        return
    fingerprint = "" if checkpoint is None else fingerprint_of(kernel, problem, X)
    keeper = Keeper(checkpoint, fingerprint, order, crew.is_first, shelf)
    snapshot = None if shelf is None else shelf.start
    if snapshot is None:
        snapshot = crew.from_first(lambda: snapshot_to_resume(checkpoint, settings.resume, fingerprint, problem))
    with keeper.listening():
        yield keeper, None if snapshot is None else snapshot.taken(order)


def checkpoint_of(settings: Settings) -> Checkpoint | None:
    checkpoint = settings.checkpoint
    if checkpoint is None and settings.resume is True:
        raise ValueError("resume=True needs the file to resume from: set checkpoint to its path.")
    return checkpoint if checkpoint is None or isinstance(checkpoint, Checkpoint) else Checkpoint(checkpoint)


def snapshot_to_resume(
    checkpoint: Checkpoint | None, resume: bool | str, fingerprint: str, problem: Problem
) -> Snapshot | None:
    if checkpoint is None:
        return None
    there = os.path.exists(checkpoint.path)
    if there and not resume:
        raise CheckpointError(
            f"The checkpoint {os.fspath(checkpoint.path)!r} exists and would be overwritten. Set resume=True to go on "
            "from it, choose another path, or remove it."
        )
    if resume == "auto" and not there:
        return None
    return read_for(checkpoint.path, fingerprint, problem) if resume else None
