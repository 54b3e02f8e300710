"""How a fit goes on: lines that tell, how far it is, and how long it will take."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import TextIO

from parablock.monitor.history import Record

_HEADER = (
    f"{'iteration':>9} {'blocks':>14} {'watched':>9} {'active':>9} {'step':>6} {'objective':>14} {'rel. gap':>9} "
    f"{'violation':>9} {'seconds':>8}"
)
# The rate is that of the later half of the iterations, and of no fewer than these: blocks and bridge take turns.
_FEWEST_FOR_A_RATE = 4


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
        if record.seconds_compiling > 0.0:
            self.say(f"compiled for {record.seconds_compiling:.1f} s, which are not among those of the next line")
        self.say(
            f"{record.iteration:9d} {f'{record.blocks} {record.kind}':>14} {record.watched:9d} {record.active:9d} "
            f"{record.step:6.3f} {record.objective:14.7g} {record.relative_gap:9.2e} {record.violation:9.2e} "
            f"{record.seconds:8.2f}"
        )


def share_done(history: Sequence[Record], tol: float) -> float:
    """How far the violation has come on its way down to `tol`, from 0 to 1; each power of ten counts as much.

    Examples
    --------
    >>> from parablock.datasets import load_covtype_sample
    >>> from parablock import KernelSVC
    >>> X, y, _, _ = load_covtype_sample()
    >>> history = KernelSVC(C=32, gamma=32).fit(X[:500], y[:500]).history_
    >>> share_done(history, tol=1e-3)
    1.0
    """
    known = [record.violation for record in history if 0 < record.violation < math.inf]
    if not history or history[-1].violation <= tol:
        return 1.0 if history else 0.0
    if not known or known[0] <= tol:
        return 0.0
    return max(0.0, math.log(known[0] / known[-1]) / math.log(known[0] / tol))


def seconds_left(history: Sequence[Record], tol: float) -> float | None:
    """Seconds until the violation will be `tol`, if it goes on falling as it did lately; None where nobody can tell.

    Examples
    --------
    >>> from parablock import KernelSVC
    >>> from parablock.datasets import load_covtype_sample
    >>> X, y, _, _ = load_covtype_sample()
    >>> history = KernelSVC(C=32, gamma=32).fit(X[:500], y[:500]).history_
    >>> seconds_left(history, tol=1e-3)
    0.0
    """
    if history and history[-1].violation <= tol:
        return 0.0
    lately = history[-max(_FEWEST_FOR_A_RATE, len(history) // 2) :]
    points = [(record.seconds, math.log(record.violation)) for record in lately if 0 < record.violation < math.inf]
    if len(points) < _FEWEST_FOR_A_RATE:
        return None
    when, height = (sum(values) / len(points) for values in zip(*points, strict=True))
    spread = sum((seconds - when) ** 2 for seconds, _ in points)
    fall = sum((seconds - when) * (height - value) for seconds, value in points)
    if spread == 0.0 or fall <= 0.0:
        return None
    end = when + (height - math.log(tol)) * spread / fall
    return max(0.0, end - points[-1][0])
