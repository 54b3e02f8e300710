"""Parsers and the kinds of values that options take."""

from __future__ import annotations

import argparse
import os
import re
import shutil
from argparse import ArgumentTypeError
from contextlib import suppress
from typing import Any, NoReturn

from parablock.cli.failures import WRONG_USAGE
from parablock.cli.words import printable
from parablock.replacing import check_writable

_MOST = 10**15  # of anything that is counted
_SECONDS = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400}


class _Formatter(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28, width=min(110, shutil.get_terminal_size().columns - 2))


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def __init__(self, command: str, usage: str, **settings: Any) -> None:
        program = f"parablock {command}"
        super().__init__(
            prog=program, usage=f"{program} {usage}", formatter_class=_Formatter, allow_abbrev=False, **settings
        )

    def error(self, message: str) -> NoReturn:
        text = " ".join(message.split())
        self.exit(WRONG_USAGE, printable(f"parablock: error: {text} ('{self.prog} --help' lists the options)\n"))


def add_common(parser: argparse.ArgumentParser) -> None:
    """What every command has."""
    parser.add_argument(
        "--traceback",
        action="store_true",
        help="show where an error came from (or set PARABLOCK_TRACEBACK)",
    )


def positive(text: str) -> float:
    value = _number(text)
    if not 0 < value < float("inf"):
        raise ArgumentTypeError(f"{text!r} is not a positive number")
    return value


def zero_or_more(text: str) -> float:
    value = _number(text)
    if not 0 <= value < float("inf"):
        raise ArgumentTypeError(f"{text!r} is not zero or a positive number")
    return value


def finite(text: str) -> float:
    value = _number(text)
    if not abs(value) < float("inf"):
        raise ArgumentTypeError(f"{text!r} is not a finite number")
    return value


def share(text: str) -> float:
    value = _number(text)
    if not 0 < value < 1:
        raise ArgumentTypeError(f"{text!r} is not a share, a number between 0 and 1")
    return value


def whole(text: str) -> int:
    """From 1 on; also as 1e6 or 1_000_000."""
    value = _number(text)
    if not value >= 1 or (value < float("inf") and value != int(value)):
        raise ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    if value > _MOST:
        raise ArgumentTypeError(f"{text!r} is more than can be counted; the most is {_MOST:.0e}")
    return int(value)


def count(text: str) -> int:
    """From 0 on."""
    return 0 if text == "0" else whole(text)


def seed(text: str) -> int:
    """As NumPy takes it."""
    value = count(text)
    if value >= 2**32:
        raise ArgumentTypeError(f"{text!r} is too large; the most is {2**32 - 1:,}")
    return value


def gamma(text: str) -> float | str:
    return text if text in ("scale", "auto") else positive(text)


def jobs(text: str) -> int:
    """A number of threads; -1 for all cores."""
    from parablock.devices.cpu.threads import MOST_THREADS

    value = -1 if text == "-1" else whole(text)
    if value > MOST_THREADS:
        raise ArgumentTypeError(f"{text!r} is too many threads; the most is {MOST_THREADS:,}, and -1 means all cores")
    return value


def seconds(text: str) -> float:
    """A number of seconds, or with a unit: 90s, 10min, 2h."""
    match = re.fullmatch(r"(\d+(?:\.\d*)?)\s*([a-z]*)", text)
    if match is None or match.group(2) not in _SECONDS or not float(match.group(1)):
        raise ArgumentTypeError(f"{text!r} is no time; give seconds, or a unit as in 90s, 10min or 2h")
    return float(match.group(1)) * _SECONDS[match.group(2)]


def memory(text: str) -> str:
    from parablock.devices.memory import memory_bytes

    try:
        memory_bytes(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is no amount of memory; give one such as 500MB or 2GB") from None
    return text


def size(text: str) -> int:
    """An amount of memory in bytes."""
    from parablock.devices.memory import memory_bytes

    return memory_bytes(memory(text))


def columns(text: str) -> list[str]:
    """Names or numbers, divided by commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def output(text: str) -> str:
    """A file to write, whose folder is there: better said before the work than after it."""
    if text == "-":
        raise ArgumentTypeError("this is not written to standard output; name a file")
    if not text:
        raise ArgumentTypeError("the name is empty; name a file")
    try:
        with suppress(FileNotFoundError):
            os.stat(text)
    except (OSError, ValueError) as error:  # a name that is too long, links in a circle, a file for a folder
        raise ArgumentTypeError(f"{text!r} cannot be a file: {getattr(error, 'strerror', error)}") from error
    if os.path.exists(text) and not os.path.isfile(text) and not os.path.isdir(text):
        return text  # a pipe, or a device such as /dev/null
    folder = os.path.dirname(os.path.realpath(text))
    if not os.path.isdir(folder):
        raise ArgumentTypeError(f"the folder of {text!r} does not exist; create it first")
    if os.path.isdir(text):
        raise ArgumentTypeError(f"{text!r} is a folder, not a file")
    if not os.access(folder, os.W_OK):
        raise ArgumentTypeError(f"the folder of {text!r} may not be written to")
    try:
        check_writable(text)
    except OSError as error:
        raise ArgumentTypeError(f"{text!r} cannot be written: {error.strerror or error}") from None
    return text


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is no number") from None
