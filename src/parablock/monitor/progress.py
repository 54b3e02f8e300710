"""Lines that tell how a fit goes on."""

from __future__ import annotations

import sys
from typing import TextIO

from parablock.monitor.history import Record

_HEADER = (
    f"{'iteration':>9} {'blocks':>14} {'watched':>9} {'active':>9} {'step':>6} {'objective':>14} {'rel. gap':>9} "
    f"{'violation':>9} {'seconds':>8}"
)


class Progress:
    """Writes one line an iteration.

    Parameters
    ----------
    verbose : int
        0: nothing, 1: every outer iteration.
    stream : text stream, default=standard error
    """

    def __init__(self, verbose: int, stream: TextIO | None = None) -> None:
        self.verbose = verbose
        self.stream = stream
        self._started = False

    def say(self, text: str) -> None:
        if self.verbose:
            stream = self.stream or sys.stderr
            stream.write(f"[parablock] {text}\n")
            stream.flush()

    def iteration(self, record: Record) -> None:
        if not self._started:
            self.say(_HEADER)
            self._started = True
        self.say(
            f"{record.iteration:9d} {f'{record.blocks} {record.kind}':>14} {record.watched:9d} {record.active:9d} "
            f"{record.step:6.3f} {record.objective:14.7g} {record.relative_gap:9.2e} {record.violation:9.2e} "
            f"{record.seconds:8.2f}"
        )
