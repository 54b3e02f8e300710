"""What goes wrong, as a line on standard error and an exit status."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import traceback
import warnings
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from parablock.cli.words import printable

FAILED, WRONG_USAGE = 1, 2
INTERRUPTED, BROKEN_PIPE, TERMINATED = (128 + number for number in (signal.SIGINT, 13, signal.SIGTERM))
_EXPECTED = (ValueError, OSError, ImportError, MemoryError, RuntimeError)


class UsageError(Exception):
    """Options that make no sense, or not together."""


def explained(error: BaseException) -> str:
    """An error in one line."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        text = f"{os.fsdecode(error.filename)}: {error.strerror}"
    elif isinstance(error, MemoryError):
        text = f"there is not enough memory ({error or 'no more is told'}); --memory-limit bounds kernel values"
    elif isinstance(error, (*_EXPECTED, UsageError, ArgumentTypeError)):
        text = str(error) or type(error).__name__
    else:
        text = f"{type(error).__name__}: {error}; this should not happen, --traceback shows where it did"
    return " ".join(text.split())


def say(text: str) -> None:
    """A line on standard error."""
    print(printable(text), file=sys.stderr, flush=True)


def guarded(work: Callable[[], int], show_traceback: bool, ranks: bool = False) -> int:
    """The exit status of the work, whatever happens in it. With `ranks` MPI looks after SIGTERM."""
    show_traceback = show_traceback or bool(os.environ.get("PARABLOCK_TRACEBACK"))
    try:
        with _messages(), _termination(ranks):
            status = work()
            sys.stdout.flush()
            return status
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0 if end.code is None else FAILED
    except KeyboardInterrupt:
        say("parablock: interrupted; no unfinished file is left")
        return INTERRUPTED
    except BrokenPipeError:
        _forget_output()
        return BROKEN_PIPE
    except Exception as error:
        if show_traceback:
            traceback.print_exc()
        say(f"parablock: error: {explained(error)}")
        return WRONG_USAGE if isinstance(error, (UsageError, ArgumentTypeError)) else FAILED


def _forget_output() -> None:
    """Who read standard output is gone: what is still to be written must not complain at the end of the process."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):  # it is no file
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115


@contextmanager
def _messages() -> Iterator[None]:
    """Warnings and log messages look like those of a command."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("parablock: %(message)s"))
    logger = logging.getLogger("parablock")
    logger.addHandler(handler)

    def show(message: Any, *place: Any, **more: Any) -> None:
        say(f"parablock: warning: {' '.join(str(message).split())}")

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("once")
            for kind in (DeprecationWarning, PendingDeprecationWarning, FutureWarning, ResourceWarning):
                warnings.simplefilter("ignore", kind)
            warnings.showwarning = show
            yield
    finally:
        logger.removeHandler(handler)


@contextmanager
def _termination(ranks: bool) -> Iterator[None]:
    """SIGTERM ends the process as an exception does, so that unfinished files are removed."""
    if ranks or threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(number: int, frame: Any) -> None:
        raise SystemExit(TERMINATED)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
