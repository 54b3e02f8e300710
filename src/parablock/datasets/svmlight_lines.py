"""The compiled loop that reads LIBSVM's text, and what it complains about."""

from __future__ import annotations

import re

import numpy as np

from parablock.compiling import njit
from parablock.datasets.errors import quoted
from parablock.datasets.numbers import ASK_PYTHON, NO_NUMBER, noted, read_number

LARGEST = np.iinfo(np.int32).max - 1
FINE, _LABEL, _ENTRY, _VALUE, _ORDER, _ZERO, _BEYOND = range(7)


@njit(cache=True, nogil=True)
def parse_lines(  # type: ignore[no-untyped-def]
    text: np.ndarray,
    first: int,
    last: int,
    powers: np.ndarray,
    labels: np.ndarray,
    counts: np.ndarray,
    columns: np.ndarray,
    values: np.ndarray,
):
    """Read lines into the given arrays: (status, where, in which line, rows, entries, numbers that Python must read).

    The last are rows of (entry, start, stop), where a negative entry is the label of row -entry - 1.
    """
    size, position, line, row, entry = len(text), 0, 0, 0, 0
    doubtful, doubts = np.empty((16, 3), np.int64), 0
    status, in_row, start, before = FINE, False, 0, 0
    # One token a turn, and one way out: Numba would compile every other one anew.
    while status == FINE:
        while position < size and _is_blank(text[position]):
            position += 1
        if position < size and text[position] == 35:  # a comment
            position = _end_of_line(text, position)
        if position == size or text[position] == 10:
            if in_row:
                counts[row] = entry - start
                row, in_row = row + 1, False
            if position == size:
                break
            position, line = position + 1, line + 1
            continue
        if in_row and entry == start and _is_query(text, position):
            while not _ends_token(text, position):
                position += 1
            continue

        token, index = position, 0
        if in_row:
            while position < size and 48 <= text[position] <= 57:
                index = _longer(index, text[position])
                position += 1
            if position == token or not _is_colon(text, position):
                status = _ENTRY
            elif index <= before:
                status = _ORDER if index >= first else _ZERO
            elif index > last:
                status = _BEYOND
            if status != FINE:
                position = token
                break
            position += 1
        found, value, stop = read_number(text, position, size, powers)
        if found == NO_NUMBER or not _ends_token(text, stop):
            status = _VALUE if in_row else _LABEL
            break
        if found == ASK_PYTHON:
            doubtful, doubts = noted(doubtful, doubts, entry if in_row else -row - 1, position, stop)
        if in_row:
            columns[entry], values[entry] = index - first, value
            entry, before = entry + 1, index
        else:
            labels[row] = value
            in_row, start, before = True, entry, first - 1
        position = stop
    return status, position, line, row, entry, doubtful[:doubts]


@njit(cache=True, nogil=True)
def _longer(index: int, digit: int) -> int:
    """An index with one more digit; one that is too large stays so."""
    return index if index > LARGEST else 10 * index + (digit - 48)


@njit(cache=True, nogil=True)
def _is_colon(text: np.ndarray, position: int) -> bool:
    return position < len(text) and text[position] == 58


@njit(cache=True, nogil=True)
def _is_blank(character: int) -> bool:
    return character == 32 or character == 9 or character == 13


@njit(cache=True, nogil=True)
def _ends_token(text: np.ndarray, position: int) -> bool:
    return position == len(text) or _is_blank(text[position]) or text[position] == 10 or text[position] == 35


@njit(cache=True, nogil=True)
def _end_of_line(text: np.ndarray, position: int) -> int:
    while position < len(text) and text[position] != 10:
        position += 1
    return position


@njit(cache=True, nogil=True)
def _is_query(text: np.ndarray, position: int) -> bool:
    return (
        position + 4 <= len(text)
        and text[position] == 113
        and text[position + 1] == 105
        and text[position + 2] == 100
        and text[position + 3] == 58
    )  # qid:


def complaint(status: int, text: bytes, before: int, last: int) -> str:
    """What is wrong where the text begins."""
    token = (re.match(rb"[^\s#]*", text) or [b""])[0]
    index = token.partition(b":")[0].decode("utf-8", errors="replace")
    return {
        _LABEL: f"{quoted(token)} is no label; a line is 'label index:value index:value ...' with a number as label",
        _ENTRY: f"{quoted(token)} is not of the form index:value",
        _VALUE: f"{quoted(token)} is no finite number",
        _ORDER: f"index {index} comes after index {before}, but indices must ascend",
        _ZERO: f"index {index}, but indices count from 1 (zero_based=True or --zero-based for files that count from 0)",
        _BEYOND: f"index {index} is too large: the largest that is expected is {last}",
    }[status]
