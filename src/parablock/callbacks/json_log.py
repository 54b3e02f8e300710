"""A file that tells of a fit, a line an iteration, while it runs."""

from __future__ import annotations

import json
import os
import sys
import uuid
import warnings
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from parablock.callbacks.base import Callback
from parablock.callbacks.log_file import FORMAT, refuse_other_file
from parablock.callbacks.support import run_of
from parablock.callbacks.surroundings import machine, plain, settings, versions
from parablock.callbacks.watching import Run
from parablock.monitor import relative_gap, seconds_compiling

_MOST_BLOCKS = 4096  # whose sizes are listed


class JSONLog(Callback):
    """Writes a line of JSON an iteration, as it goes.

    The first line of a run has the settings, the machine, the versions and the shape of the data; one more tells of the
    first blocks when they are made; then comes a line for every record of ``history_``, with the validation score where
    `ValidationScore` or `EarlyStopping` computes one; the last line has the certificate and why training ended. Every
    line is written out at once, so what a killed run leaves is a readable log. `read_log` reads it,
    `parablock.plots.ConvergenceDisplay` draws it and `parablock.report.write_report` makes a page of it.

    Runs are added to the file, each under an identifier of its own: no log is ever overwritten. Where several processes
    train together, the first one writes.

    Parameters
    ----------
    path : str or path
        A new file, or a log to which the run is added.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from parablock import KernelSVC
    >>> from parablock.callbacks import JSONLog, read_log
    >>> path = Path(tempfile.mkdtemp()) / "run.jsonl"
    >>> model = KernelSVC().set_callbacks(JSONLog(path)).fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> log = read_log(path)
    >>> log.end["reason"], len(log.history)
    ('converged', 1)
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = path

    def __repr__(self) -> str:
        return f"JSONLog({os.fspath(self.path)!r})"

    def started(self, run: Run) -> None:
        path = Path(self.path)
        if not path.absolute().parent.is_dir():
            raise FileNotFoundError(f"The folder of the log {os.fspath(self.path)!r} does not exist: create it first.")
        torn = refuse_other_file(path)
        memory = run.memory(self)
        # Half a letter, as a file's name may have, is written as JSON escapes it.
        memory.file = open(path, "a", encoding="utf-8", errors="backslashreplace")  # noqa: SIM115 - until the fit ended
        memory.identifier, memory.trouble, memory.exception = uuid.uuid4().hex[:12], False, sys.exception()
        memory.compiled = seconds_compiling()
        if torn:
            memory.file.write("\n")
        estimator = run.estimator
        self._write(
            run,
            event="start",
            format=FORMAT,
            time=datetime.now(UTC).isoformat(timespec="seconds"),
            estimator=type(estimator).__name__,
            settings=settings(estimator),
            data={"rows": run.shape[0], "features": run.shape[1]},
            machine=machine(estimator.device),
            versions=versions(),
        )

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        if context.task_name != "iteration" or run_of(estimator).history:
            return
        run = run_of(estimator)
        classes = getattr(estimator, "classes_", None)
        data = {
            "rows": run.shape[0],
            "features": run.shape[1],
            "type": None if run.data is None else str(run.data.dtype),
            "classes": None if classes is None else len(classes),
        }
        partition: dict[str, Any] | None = None
        if run.partition is not None:
            sizes = run.partition.sizes
            partition = {"method": run.partition.method, "blocks": len(sizes), "mass": run.partition.kernel_mass_inside}
            partition["sizes"] = sizes.tolist() if len(sizes) <= _MOST_BLOCKS else None
        gamma = getattr(estimator, "_gamma", None)
        self._write(run, event="ready", data=data, gamma=gamma, processes=run.machines, partition=partition)

    def iterated(self, run: Run) -> None:
        scores = {"score": run.scorers[0].score(run)} if run.scorers else {}
        self._write(run, event="iteration", **asdict(run.record), **scores)

    def ended(self, run: Run) -> None:
        memory = run.memory(self)
        if not hasattr(memory, "file"):
            return
        if run.ended:
            self._write(run, event="end", **_outcome(run))
        else:
            error = sys.exception()
            told = None if error is None or error is memory.exception else f"{type(error).__name__}: {error}"
            self._write(run, event="end", reason="failed", error=told)
        memory.file.close()

    def _write(self, run: Run, event: str, **what: Any) -> None:
        memory = run.memory(self)
        line = {"event": event, "run": memory.identifier, **what}
        line |= {"elapsed": run.seconds, "compiling": seconds_compiling() - memory.compiled}
        try:
            memory.file.write(json.dumps(plain(line), ensure_ascii=False, allow_nan=False) + "\n")
            memory.file.flush()
        except OSError as error:
            # A disk that is full must not end a long run.
            if not memory.trouble:
                memory.trouble = True
                warnings.warn(f"Could not write the log {os.fspath(self.path)!r}: {error.strerror}. Training goes on.")


def _outcome(run: Run) -> dict[str, Any]:
    model = run.estimator
    return {
        "reason": model.stop_reason_,
        "why": run.why or None,
        "certificate": {
            "dual_objective": model.dual_objective_,
            "duality_gap": model.duality_gap_,
            "relative_gap": relative_gap(-model.dual_objective_, model.duality_gap_),
            "violation": model.violation_,
            "tol": model.tol,
        },
        "iterations": model.n_iter_,
        "kept_iteration": run.best.state.iteration if run.best is not None else model.n_iter_,
        "support_vectors": len(model.support_),
        "kernel_evaluations": model.kernel_evaluations_,
        "seconds": model.history_[-1].seconds if model.history_ else run.seconds,
    }
