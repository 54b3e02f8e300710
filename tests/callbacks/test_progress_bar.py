"""The bar on a terminal, and its silence elsewhere; how far a fit is and how long it will take."""

import codecs
import math
import os
import re
import sys
import threading
from contextlib import contextmanager, suppress

import numpy as np
import pytest

from parablock import KernelRidge
from parablock.callbacks import Callback, ProgressBar, ValidationScore, run_of
from parablock.callbacks.progress_bar import _clock, _facts
from parablock.callbacks.watching import Run
from parablock.monitor import seconds_left, share_done
from tests.callbacks.small_fits import fit_quietly, machine, moons
from tests.monitor.test_history import record

X, y = moons()


@contextmanager
def terminal(columns=120):
    """Standard error is a terminal while this lasts; afterwards the list has all that was written to it.

    No fixture: pytest puts its own standard error in place between a fixture and its test.
    """
    pty = pytest.importorskip("pty", reason="no pseudo-terminals here")
    ours, theirs = pty.openpty()
    seen, decoder = [], codecs.getincrementaldecoder("utf-8")()

    def look():
        with suppress(OSError):  # the other end is closed
            while data := os.read(ours, 4096):
                seen.append(decoder.decode(data))

    reader = threading.Thread(target=look)
    reader.start()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TERM", "xterm")
        patch.setenv("COLUMNS", str(columns))
        with os.fdopen(theirs, "w", encoding="utf-8") as stream:
            patch.setattr(sys, "stderr", stream)
            yield seen
    reader.join(timeout=10)
    os.close(ours)


def shown(seen):
    """The lines that a terminal was told to show, without colours and movements."""
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", "".join(seen))
    return [line for line in re.split(r"[\r\n]+", text) if line.strip()]


def test_a_terminal_shows_where_the_fit_stands():
    validation = ValidationScore(X, y)
    with terminal(columns=160) as seen:
        model = machine().set_callbacks(ProgressBar(), validation).fit(X, y)
    last = shown(seen)[-1]
    assert last.startswith("KernelSVC ━━━")
    assert f"converged  violation {model.history_[-1].violation:.1e}" in last
    assert f"iteration {model.n_iter_}" in last
    assert f"gap {model.history_[-1].relative_gap:.1e}" in last
    assert f"objective {model.history_[-1].objective:.7g}" in last
    assert f"score {validation.scores_[-1]:.4f}" in last


def test_a_running_fit_shows_the_time_that_is_left():
    class Refresh(Callback):
        """The bar is drawn eight times a second; such a short fit would be over by then."""

        def iterated(self, run):
            run.memory(bar).live.refresh()

    bar = ProgressBar()
    with terminal() as seen:
        machine().set_callbacks(bar, Refresh()).fit(X, y)
    lines = shown(seen)
    assert any(re.search(r"violation \S+  left \d+:\d\d  elapsed 0:\d\d  iteration \d+", line) for line in lines)


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_a_narrow_terminal_gets_what_is_most_important_on_one_line(columns):
    with terminal(columns) as seen:
        fit_quietly(machine(max_iter=3).set_callbacks(ProgressBar()), X, y)
    lines = shown(seen)
    assert max(len(line.rstrip()) for line in lines) <= columns
    assert "out of iterations" in lines[-1] if columns >= 60 else "KernelSVC" in lines[-1]


def test_a_fit_that_fails_leaves_the_terminal_in_order():
    class Fails(Callback):
        def iterated(self, run):
            raise OSError("broken")

    with terminal() as seen:
        with pytest.raises(OSError, match="broken"):
            machine().set_callbacks(ProgressBar(), Fails()).fit(X, y)
        machine().set_callbacks(ProgressBar()).fit(X, y)  # the bar is free again
    text = "".join(seen)
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h") == 2  # cursor hidden, and shown again


def test_lines_of_verbose_appear_above_the_bar():
    with terminal() as seen:
        model = machine(verbose=1).set_callbacks(ProgressBar()).fit(X, y)
    lines = shown(seen)
    assert sum(line.startswith("[parablock]") for line in lines) >= len(model.history_)
    assert "converged" in lines[-1]


def test_a_fit_inside_a_fit_has_no_bar_of_its_own():
    class Another(Callback):
        def iterated(self, run):
            if run.record.iteration == 1:
                machine().set_callbacks(ProgressBar()).fit(X, y)

    with terminal() as seen:
        machine().set_callbacks(ProgressBar(), Another()).fit(X, y)
    assert "".join(seen).count("\x1b[?25l") == 1


def test_quiet_where_standard_error_is_no_terminal(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    machine().set_callbacks(ProgressBar()).fit(X, y)
    captured = capsys.readouterr()
    assert captured.err == captured.out == ""


# ----------------------------------------------------------------------------------------------- how far, how long


def falling(violations, seconds=1.0):
    return [
        record(iteration=number, violation=violation, seconds=number * seconds)
        for number, violation in enumerate(violations, start=1)
    ]


def test_the_bar_says_what_the_time_before_the_first_record_goes_into():
    class Look(Callback):
        def on_fit_task_begin(self, estimator, context):
            self.told = next(iter(_facts(run_of(estimator), estimator.tol)))[1]

    look, rng = Look(), np.random.default_rng(0)
    run = Run(KernelRidge(), (300, 3))
    assert next(iter(_facts(run, 1e-3)))[1] == "making blocks"
    KernelRidge().set_callbacks(look).fit(rng.normal(size=(300, 3)), rng.normal(size=300))
    assert look.told == "first iteration"


def test_share_counts_powers_of_ten():
    assert share_done(falling([1.0, 0.1]), tol=0.01) == pytest.approx(0.5)
    assert share_done(falling([1.0, 0.1, 0.01]), tol=0.01) == 1.0
    assert share_done(falling([1.0, 2.0]), tol=0.01) == 0.0
    assert share_done([], tol=0.01) == 0.0
    assert share_done(falling([math.inf]), tol=0.01) == 0.0
    assert share_done(falling([math.inf, 1.0, 0.1]), tol=0.01) == pytest.approx(0.5)


def test_time_left_of_a_steady_fall_is_exact():
    history = falling([10.0**-number for number in range(6)], seconds=2.0)  # a power of ten in two seconds
    assert seconds_left(history, tol=1e-8) == pytest.approx(6.0)
    assert seconds_left(history, tol=1e-5) == 0.0


def test_time_left_follows_the_rate_of_late():
    quick_then_slow = falling([1.0, 1e-1, 1e-2, 1e-3, 9e-4, 8e-4, 7e-4, 6e-4])
    assert seconds_left(quick_then_slow, tol=1e-4) > 5


def test_nobody_can_tell_the_time_left_of_a_fit_that_stands_still_or_has_just_begun():
    assert seconds_left([], tol=0.1) is None
    assert seconds_left(falling([1.0, 0.5, 0.3]), tol=0.1) is None
    assert seconds_left(falling([0.5] * 10), tol=0.1) is None
    assert seconds_left(falling([0.5, 0.6, 0.7, 0.8, 0.9]), tol=0.1) is None
    assert seconds_left(falling([1.0, 0.5, 0.4, 0.3, 0.2], seconds=0.0), tol=0.1) is None


@pytest.mark.parametrize(("seconds", "text"), [(0.4, "0:00"), (65, "1:05"), (3725, "1:02:05")])
def test_clock(seconds, text):
    assert _clock(seconds) == text
