"""A bar that tells how far a fit is."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from typing import Any

from parablock.callbacks.base import Callback
from parablock.callbacks.watching import Run
from parablock.monitor import is_compiling, seconds_left, share_done

_WIDEST_BAR, _NARROWEST_BAR = 40, 8
_ONE_AT_A_TIME = threading.Lock()  # two bars would write over each other


class ProgressBar(Callback):
    """A bar on standard error: violation, gap, objective, iteration, time spent, and the time left by the rate at which
    the violation fell lately.

    Half a bar is half the powers of ten between the first violation and ``tol``. Where standard error is no terminal
    (nor a notebook), and while another bar of the same process is shown, there is none.

    Examples
    --------
    >>> from parablock import KernelSVC
    >>> from parablock.callbacks import ProgressBar
    >>> model = KernelSVC().set_callbacks(ProgressBar()).fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    """

    def __repr__(self) -> str:
        return "ProgressBar()"

    def started(self, run: Run) -> None:
        from rich.console import Console
        from rich.live import Live

        console = Console(file=sys.stderr)
        if not (sys.stderr.isatty() or console.is_jupyter) or not _ONE_AT_A_TIME.acquire(blocking=False):
            return
        memory = run.memory(self)
        memory.live = Live(get_renderable=lambda: _line(run, console.width), console=console, refresh_per_second=8)
        memory.live.start()

    def ended(self, run: Run) -> None:
        live = getattr(run.memory(self), "live", None)
        if live is not None:
            live.stop()
            _ONE_AT_A_TIME.release()


def _line(run: Run, width: int) -> Any:
    """The bar with as much beside it as there is room for."""
    from rich.progress_bar import ProgressBar as Bar
    from rich.table import Table
    from rich.text import Text

    tol = run.estimator.tol
    name = type(run.estimator).__name__
    text, room = Text(no_wrap=True, overflow="ellipsis"), width - len(name) - _NARROWEST_BAR - 3
    for label, value in _facts(run, tol):
        style = "bold" if label == "violation" else ""
        piece = Text.assemble((f"{label} " if label else "", "dim"), (value, style), "  ")
        if len(text) + len(piece) <= room:
            text.append_text(piece)
    line = Table.grid(padding=(0, 1))
    bar_width = min(_WIDEST_BAR, width - len(name) - len(text) - 3)
    done = share_done(run.history, tol)
    waiting = not run.history and not run.ended
    line.add_row(name, Bar(total=1.0, completed=done, pulse=waiting, width=max(_NARROWEST_BAR, bar_width)), text)
    return line


def _facts(run: Run, tol: float) -> Iterator[tuple[str, str]]:
    """What to tell, the most important first."""
    if run.ended:
        yield "", run.estimator.stop_reason_
    if is_compiling() and not run.ended:
        yield "", "compiling"
    elif not run.history:
        yield "", "making blocks" if run.partition is None else "first iteration"
    if not run.history:
        yield "elapsed", _clock(run.seconds)
        return
    record = run.record
    yield "violation", f"{record.violation:.1e}"
    left = None if run.ended else seconds_left(run.history, tol)
    if left is not None:
        yield "left", _clock(left)
    yield "elapsed", _clock(run.seconds)
    yield "iteration", f"{record.iteration}"
    yield "gap", f"{record.relative_gap:.1e}"
    yield "objective", f"{record.objective:.7g}"
    for scorer in run.scorers[:1]:
        scores = run.memory(scorer).scores
        if scores:
            yield "score", f"{scores[-1]:.4f}"


def _clock(seconds: float) -> str:
    """2:05 or 1:02:05."""
    whole = round(seconds)
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours}:{minutes:02d}:{whole % 60:02d}" if hours else f"{minutes}:{whole % 60:02d}"
