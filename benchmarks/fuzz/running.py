"""Cases in a process of their own, with limits on time and memory."""

from __future__ import annotations

import json
import os
import resource
import select
import subprocess
import sys
import tempfile
import traceback
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

SECONDS, BYTES = 10.0, 1 << 30  # for one case; beyond what the process has when it begins
_ROOT = Path(__file__).parents[2]
_START_SECONDS = 300.0  # to write and read whole files; something may have to be compiled


@dataclass
class Outcome:
    """What became of the cases of a format: how many, how many were read, and what went wrong in which."""

    format: str
    cases: int = 0
    accepted: int = 0
    failures: list[tuple[int, str]] = field(default_factory=list)

    @property
    def refused(self) -> int:
        return self.cases - self.accepted - len(self.failures)


def run(
    format: str, cases: int, seed: int = 0, first: int = 0, most_failures: int = 20, seconds: float = SECONDS
) -> Outcome:
    """Run cases; a process that crashes or hangs is a failure of its case, and another goes on behind it."""
    outcome, case = Outcome(format), first
    while case < first + cases and len(outcome.failures) < most_failures:
        for number, what in _told(format, seed, case, first + cases, seconds):
            outcome.cases += 1
            outcome.accepted += what == "accepted"
            if what not in ("accepted", "refused"):
                outcome.failures.append((number, what))
            case = number + 1
            if len(outcome.failures) >= most_failures:
                break
    return outcome


def _told(format: str, seed: int, first: int, stop: int, allowed: float) -> Iterator[tuple[int, str]]:
    """What a worker tells of its cases, and what became of it in the last one."""
    command = [sys.executable, "-m", "benchmarks.fuzz", "--worker", format, str(seed), str(first), str(stop)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
    with (
        tempfile.TemporaryDirectory() as folder,
        tempfile.TemporaryFile() as complaints,
        subprocess.Popen(
            [*command, folder], stdout=subprocess.PIPE, stderr=complaints, env=environment, cwd=_ROOT
        ) as worker,
    ):
        assert worker.stdout is not None
        case, seconds, rest = first, _START_SECONDS, b""
        try:
            while True:
                if not select.select([worker.stdout], [], [], seconds)[0]:
                    yield case, f"it took more than {seconds:g} seconds"
                    return
                piece = os.read(worker.stdout.fileno(), 1 << 16)
                if not piece:
                    break
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    told = json.loads(line)
                    case, seconds = told["case"], allowed
                    if told["what"] != "begins":
                        yield case, told["what"]
                        case += 1
        finally:
            worker.kill()
        status = worker.wait()
        if case < stop:
            complaints.seek(0)
            yield case, f"the process ended with status {status}: {complaints.read()[-500:].decode(errors='replace')}"


def work(format: str, seed: int, first: int, stop: int, folder: Path) -> None:
    """Run cases in this process, and tell of each before and after it."""
    from benchmarks.fuzz.formats import format_of

    subject = format_of(format)(folder)
    limit = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() + BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for case in range(first, stop):
        _tell(case=case, what="begins")
        try:
            what = (
                "accepted"
                if subject.case(np.random.default_rng([seed, zlib.crc32(format.encode()), case]))
                else "refused"
            )
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)
            inside = [frame for frame in place if "parablock" in frame.filename][-1:] or place[-1:]
            what = f"{type(error).__name__}: {str(error)[:200]} ({Path(inside[0].filename).name}:{inside[0].lineno})"
        _tell(case=case, what=what)


def keep(format: str, seed: int, case: int, folder: Path) -> Path:
    """Write the file of a case, to look at it."""
    from benchmarks.fuzz.formats import format_of
    from benchmarks.fuzz.mutations import one_of

    subject, rng = format_of(format)(folder), _random(format, seed, case)
    subject.write(subject.changed(rng, one_of(rng, subject.wholes)))
    return subject.path


def _random(format: str, seed: int, case: int) -> np.random.Generator:
    return np.random.default_rng([seed, zlib.crc32(format.encode()), case])


def _tell(**what: Any) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()
