"""Logs of runs, as `JSONLog` writes them: what may be in such a file, and reading it.

A log is text, a JSON object a line. Each has an ``event`` (start, ready, iteration, end) and the identifier of its
``run``; there may be several runs in one file. A run that was killed has no end, and perhaps half a line.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from parablock.monitor import Record

FORMAT = 1
_NUMBERS = {one.name: one.type for one in fields(Record) if one.type in ("int", "float")}
_NEEDED = ("iteration", "seconds", "objective", "duality_gap", "violation")


class LogError(ValueError):
    """A log that cannot be read; the message says why.

    Examples
    --------
    >>> import os, tempfile
    >>> from parablock.callbacks import LogError, read_log
    >>> path = os.path.join(tempfile.mkdtemp(), "run.jsonl")
    >>> _ = open(path, "w").write("no log")
    >>> try:
    ...     read_log(path)
    ... except LogError:
    ...     print("not a log of parablock")
    not a log of parablock
    """


@dataclass
class Log:
    """One run of a log.

    Attributes
    ----------
    path : str
    start : dict
        What was known at the start: estimator, settings, data, machine, versions, time.
    ready : dict or None
        What was known when the first blocks were made: data, gamma, processes, partition.
    history : list of Record
    scores : list of float
        The validation score of every record; nan where there is none.
    elapsed : list of float
        Seconds since this process began to fit, of every record; nan where that is not told.
    compiling : list of float
        Those among them that went to compiling functions.
    end : dict or None
        Why training ended, and its certificate; None for a run that was killed or still goes on.
    number, count : int
        Which of the runs in the file this is, from 1, and how many there are.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from parablock import KernelRidge
    >>> from parablock.callbacks import JSONLog, read_log
    >>> path = Path(tempfile.mkdtemp()) / "run.jsonl"
    >>> model = KernelRidge(C=2).set_callbacks(JSONLog(path)).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0])
    >>> log = read_log(path)
    >>> log.start["settings"]["C"], log.start["data"], log.history == model.history_
    (2, {'rows': 3, 'features': 1}, True)
    """

    path: str
    start: dict[str, Any]
    ready: dict[str, Any] | None = None
    history: list[Record] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    elapsed: list[float] = field(default_factory=list)
    compiling: list[float] = field(default_factory=list)
    end: dict[str, Any] | None = None
    number: int = 1
    count: int = 1

    @property
    def tol(self) -> float | None:
        """What the violation had to come down to."""
        return number_or_none(self.start.get("settings", {}).get("tol"))

    @property
    def has_scores(self) -> bool:
        return any(not math.isnan(score) for score in self.scores)


def read_log(path: str | os.PathLike[str], run: int = -1) -> Log:
    """Read a run of a log that `JSONLog` wrote.

    Parameters
    ----------
    path : str or path
    run : int, default=-1
        Which of the runs in the file: 0 is the first, -1 the last.

    Returns
    -------
    Log
        Where the run was killed, as far as it got.

    Examples
    --------
    >>> from parablock.callbacks import read_log
    >>> read_log("nowhere.jsonl")
    Traceback (most recent call last):
    ...
    parablock.callbacks.log_file.LogError: Cannot read the log 'nowhere.jsonl': No such file or directory.
    """
    name = os.fspath(path)
    try:
        text = Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise LogError(f"Cannot read the log {name!r}: {error.strerror}.") from error
    runs: dict[str, Log] = {}
    lines = _parsed(name, text.split("\n"))
    for number, line in lines:
        try:
            _add(runs, name, line)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            if isinstance(error, LogError):
                raise
            raise LogError(_broken(name, number, f"it lacks or misspells a value ({error})")) from error
    if not runs:
        raise LogError(f"{name!r} has no run in it. A log begins to be written when a fit with JSONLog begins.")
    logs = list(runs.values())
    if not -len(logs) <= run < len(logs):
        raise LogError(f"run={run} was asked for, and {name!r} has {len(logs)} runs: 0 to {len(logs) - 1}.")
    chosen = logs[run]
    chosen.number, chosen.count = run % len(logs) + 1, len(logs)
    return chosen


def refuse_other_file(path: Path) -> bool:
    """Raise an error if the file is something else than a log; returns whether its last line was never finished."""
    if not path.is_file():  # nothing there, or a pipe that cannot be read
        return False
    with open(path, "rb") as file:
        head = file.readline(1 << 20)
        if not head:
            return False
        if not head.startswith(b'{"event": "start"'):
            raise ValueError(f"{os.fspath(path)!r} exists and is no log of parablock. It was left as it is.")
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"


def number_or_none(value: Any) -> float | None:
    """A number; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if abs(value) <= sys.float_info.max else None


def _parsed(name: str, lines: Sequence[str]) -> list[tuple[int, dict[str, Any]]]:
    """The lines with their numbers, without those that were cut off when a run was killed."""
    found: list[tuple[int, dict[str, Any]]] = []
    doubtful: tuple[int, str] | None = None
    for number, text in enumerate(lines, start=1):
        if not text.strip():
            continue
        try:
            line = json.loads(text)
        except (ValueError, RecursionError) as error:
            if doubtful is not None:
                raise LogError(_broken(name, *doubtful)) from error
            doubtful = number, f"it is not JSON ({error})"
            continue
        if not isinstance(line, dict) or "event" not in line:
            raise LogError(_broken(name, number, "it is no event of a run"))
        if doubtful is not None and line["event"] != "start":
            raise LogError(_broken(name, *doubtful))
        doubtful = None
        found.append((number, line))
    if doubtful is not None and not found:
        raise LogError(_broken(name, *doubtful))
    return found


def _add(runs: dict[str, Log], name: str, line: dict[str, Any]) -> None:
    event, run = line["event"], str(line["run"])
    if event == "start":
        if line["format"] != FORMAT:
            raise LogError(
                f"{name!r} has log format {line['format']}; this parablock reads format {FORMAT}. Read it with the "
                "version that wrote it."
            )
        if not isinstance(line.get("settings", {}), dict):
            raise TypeError("settings")
        runs[run] = Log(name, line)
    elif event == "ready":
        runs[run].ready = line
    elif event == "iteration":
        runs[run].history.append(_record(line))
        for name, column in (
            ("score", runs[run].scores),
            ("elapsed", runs[run].elapsed),
            ("compiling", runs[run].compiling),
        ):
            value = number_or_none(line.get(name))
            column.append(math.nan if value is None else value)
    elif event == "end":
        runs[run].end = line


def _record(line: dict[str, Any]) -> Record:
    values: dict[str, Any] = {"kind": str(line.get("kind", ""))}
    for name, kind in _NUMBERS.items():
        value = line[name] if name in _NEEDED else line.get(name, 0)
        if value is None:  # JSON has no infinity
            value = math.nan
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise TypeError(f"{name} is {value!r}")
        values[name] = _count(name, value) if kind == "int" else float(value)
    return Record(**values)


def _count(name: str, value: int | float) -> int:
    count = int(value)
    if not 0 <= count < 2**63:
        raise ValueError(f"{name} is {value:.3g}")
    return count


def _broken(name: str, number: int, why: str) -> str:
    return f"Line {number} of the log {name!r} cannot be read: {why}."
