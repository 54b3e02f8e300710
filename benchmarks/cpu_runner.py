"""What the sections of `benchmarks.cpu` measure with."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from benchmarks.cpu_tables import Results
from benchmarks.running import note, run_apart
from benchmarks.worker import Measurement, Task, measure_apart


@dataclass(frozen=True)
class Report:
    """What a section found: Markdown, and numbers for the JSON file."""

    text: str
    numbers: dict[str, Any]


@dataclass
class Runner:
    """Runs tasks in fresh processes.

    Attributes
    ----------
    share : float
        Of all rows, for a trial; 1: the whole measurement.
    repeat : int
        How often each fit is measured; the fastest counts.
    reference : float or None
        The full covtype's dual objective without intercept, if it is known.
    failures : int
        Processes that failed.
    """

    share: float = 1.0
    repeat: int = 1
    reference: float | None = None
    failures: int = 0
    _seen: dict[str, Measurement | None] = field(default_factory=dict)

    def side_by_side(self, tasks: Sequence[Task], again: bool = True) -> Results:
        """The programs' measurements, one process after the other, `repeat` rounds of all of them.

        Parameters
        ----------
        tasks : sequence of Task
            Of different programs.
        again : bool
            False takes what this run has measured before, where counts matter and not the order of processes.
        """
        tasks = [replace(task, share=self.share) for task in tasks]
        keys = [json.dumps(asdict(task)) for task in tasks]
        if again or any(key not in self._seen for key in keys):
            rounds = [[self._measure(task) for task in tasks] for _ in range(self.repeat)]
            self._seen.update(zip(keys, map(_fastest, zip(*rounds))))
        return {task.program: self._seen[key] for task, key in zip(tasks, keys)}

    def probe(self, *arguments: str, environment: dict[str, str] | None = None) -> dict[str, Any] | None:
        """One of `benchmarks.probes` in a fresh process."""
        try:
            return run_apart("benchmarks.probes", *arguments, environment=environment)
        except subprocess.CalledProcessError as error:
            note(f"{' '.join(arguments)}: failed with exit status {error.returncode}")
            self.failures += 1
            return None

    def _measure(self, task: Task) -> Measurement | None:
        one = measure_apart(task)
        if one is None:
            self.failures += 1
        else:
            note(
                f"{one.data}, {one.rows:,} rows, {one.program}: {one.seconds:.2f} s after a first small fit of "
                f"{one.warm_up_seconds:.2f} s, {one.iterations} iterations, prediction {one.predict_seconds:.2f} s"
            )
        return one


def _fastest(rounds: Sequence[Measurement | None]) -> Measurement | None:
    """The round with the fastest fit, with the fastest prediction of all."""
    done = [one for one in rounds if one is not None]
    if not done:
        return None
    predict_seconds = min(one.predict_seconds for one in done)
    return replace(min(done, key=lambda one: one.seconds), predict_seconds=predict_seconds)


def numbers_of(results: Results) -> list[dict[str, Any]]:
    return [{**asdict(one), "work": one.work} for one in results.values() if one is not None]


def name_and_rows(results: Results) -> tuple[str, str]:
    """The data set's name and its training rows as cells, by whichever program was measured."""
    one = next((one for one in results.values() if one is not None), None)
    return ("-", "-") if one is None else (one.data, f"{one.rows:,}")
