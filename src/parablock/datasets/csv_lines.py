"""The compiled loop that reads the cells of CSV text."""

from __future__ import annotations

import numpy as np

from parablock.compiling import njit
from parablock.datasets.numbers import ASK_PYTHON, NO_NUMBER, noted, read_number

FINE, CELL, MISSING, COUNT, QUOTE = range(5)  # what can be wrong
TARGET, NOWHERE = -1, -2  # where a column goes that is none of X


@njit(cache=True, nogil=True)
def parse_cells(  # type: ignore[no-untyped-def]
    text: np.ndarray,
    delimiter: int,
    roles: np.ndarray,
    powers: np.ndarray,
    values: np.ndarray,
    spans: np.ndarray,
):
    """Read lines into the given arrays: (status, where, in which line, column, rows, numbers that Python must read).

    The last are rows of (place in values, start, stop).
    """
    size, position, line, row, column = len(text), 0, 0, 0, 0
    doubtful, doubts = np.empty((16, 3), np.int64), 0
    status = FINE
    while position < size:
        if column == 0 and (text[position] == 10 or text[position] == 13):
            line += text[position] == 10
            position += 1
            continue
        start, stop, after = _cell(text, position, delimiter)
        role = roles[column] if column < len(roles) else NOWHERE
        if column == len(roles):
            status = COUNT
        elif after < 0:
            status = QUOTE
        elif start == stop and role != NOWHERE:
            status = MISSING
        elif role == TARGET:
            spans[row, 0], spans[row, 1] = start, stop
        elif role >= 0:
            found, value, end = read_number(text, start, stop, powers)
            if found == NO_NUMBER or end != stop:
                position, status = start, CELL
            elif found == ASK_PYTHON:
                doubtful, doubts = noted(doubtful, doubts, row * values.shape[1] + role, start, stop)
            values[row, role] = value
        if status != FINE:
            break
        column, position = column + 1, after
        if position == size or text[position] != delimiter:
            if column < len(roles):
                status = COUNT
                break
            row, column = row + 1, 0
        else:
            position += 1
            if position == size:  # an empty cell ends the text
                status = COUNT if column == len(roles) else MISSING
                break
    return status, position, line, column, row, doubtful[:doubts]


@njit(cache=True, nogil=True)
def _cell(text: np.ndarray, position: int, delimiter: int) -> tuple[int, int, int]:
    """Where the content of a cell starts and stops, and where the cell ends: at a delimiter, at the end of the line, or
    of the text; negative where quotes do not match."""
    size = len(text)
    while position < size and text[position] == 32:
        position += 1
    if position < size and text[position] == 34:  # "
        start = position + 1
        stop = start
        while stop < size and text[stop] != 10:
            if text[stop] == 34:
                if stop + 1 == size or text[stop + 1] != 34:
                    break
                stop += 1  # two quotes stand for one
            stop += 1
        if stop == size or text[stop] == 10:
            return start, stop, -1
        after = stop + 1
        while after < size and (text[after] == 32 or text[after] == 13):
            after += 1
        return start, stop, after if after == size or text[after] == delimiter or text[after] == 10 else -1
    start = position
    while position < size and text[position] != delimiter and text[position] != 10:
        position += 1
    stop = position
    while stop > start and (text[stop - 1] == 32 or text[stop - 1] == 13):
        stop -= 1
    return start, stop, position


@njit(cache=True, nogil=True)
def cut_out(text: np.ndarray, spans: np.ndarray, letters: np.ndarray) -> None:
    """Copy pieces of the text, one into each row of an array of zeros."""
    for i in range(len(spans)):
        start, stop = spans[i]
        for place in range(start, stop):
            letters[i, place - start] = text[place]
