"""Tables as text: cells divided by commas, semicolons or tabs."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from parablock.datasets.csv_lines import CELL, COUNT, FINE, MISSING, NOWHERE, QUOTE, TARGET, cut_out, parse_cells
from parablock.datasets.data import Data
from parablock.datasets.errors import DataError, quoted
from parablock.datasets.labels import as_labels, joined, refuse_uneven
from parablock.datasets.numbers import powers_of_ten
from parablock.datasets.streams import MAX_LINE_BYTES, name_of, reading, refuse_too_much, whole_lines
from parablock.datasets.tables import chosen_columns

_DELIMITERS = ",;\t"
_WHOLE = re.compile(r"-?[0-9]{1,18}")


def read_csv(
    source: Any,
    *,
    target: str | int | None = None,
    drop: Sequence[str | int] = (),
    features: Sequence[str] | None = None,
    header: bool | None = None,
    max_line_bytes: int = MAX_LINE_BYTES,
) -> Data:
    """Read a table of numbers from text with cells divided by commas, semicolons or tabs.

    Parameters
    ----------
    source : path, "-" or file of bytes
        "-" is standard input. Decompressed where its first bytes are those of gzip, bzip2 or xz.
    target : str or int, optional
        The column that is no feature: its name in the header, or its number from 1, or from -1 backwards. It may hold
        text; the features must hold numbers.
    drop : sequence of str or int, default=()
        Columns to leave out, named or numbered likewise; they may hold anything.
    features : sequence of str, optional
        Names of the columns to take as features, in this order, from a file with a header; all that are left by
        default.
    header : bool, optional
        Whether the first line holds the names of the columns. By default it does where it holds all of `features`, or
        the name of the target or of a column to leave out, or where none of its cells in feature columns is a number.
        Where such a name is a number, and the line has nothing but different whole numbers, it must be told.
    max_line_bytes : int, default=64 MB
        A line that is longer is an error: such a file is no table, or was made to fill the memory.

    Returns
    -------
    Data

    Raises
    ------
    DataError
        With line and column of a cell that is empty or no number.

    Examples
    --------
    >>> import io
    >>> from parablock.datasets import read_csv
    >>> table = read_csv(io.BytesIO(b"length,width,kind\\n5.1,3.5,iris\\n6,2.9,rose\\n"), target="kind")
    >>> table.X, table.y, table.names
    (array([[5.1, 3.5],
           [6. , 2.9]]), array(['iris', 'rose'], dtype='<U4'), ['length', 'width'])
    """
    name, line = name_of(source), 1
    layout: _Layout | None = None
    numbers, texts, taken = [], [], 0
    with reading(source) as file:
        for text in whole_lines(file, name, max_line_bytes):
            body = text
            if layout is None:
                body = text.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n")
                if body:
                    layout, body = _first_line(body, name, target, drop, features, header)
                line += text.count(b"\n") - body.count(b"\n")
            if not body or layout is None:
                continue
            part, labels = _parsed(body, name, line, layout)
            line += body.count(b"\n")
            taken += part.nbytes + labels.nbytes
            refuse_too_much(taken, name, line)
            numbers.append(part)
            texts.append(labels)
    if layout is None or not sum(map(len, numbers)):
        raise DataError(f"{name}: there is no row in it")
    y = None if layout.target is None else as_labels(joined(texts, name), name)
    names = None if layout.names is None else [layout.names[i] for i in layout.features]
    return Data(np.concatenate(numbers) if len(numbers) > 1 else numbers[0], y, names)


@dataclass(frozen=True)
class _Layout:
    """What divides cells, how many columns there are, their names, and which of them are target and features."""

    delimiter: str
    n_columns: int
    names: list[str] | None
    target: int | None
    features: list[int]

    def roles(self) -> np.ndarray:
        """For every column where it goes: to a column of X, or `TARGET`, or `NOWHERE`."""
        roles = np.full(self.n_columns, NOWHERE)
        roles[self.features] = np.arange(len(self.features))
        if self.target is not None:
            roles[self.target] = TARGET
        return roles


def _first_line(
    text: bytes,
    name: str,
    target: str | int | None,
    drop: Sequence[str | int],
    features: Sequence[str] | None,
    header: bool | None,
) -> tuple[_Layout, bytes]:
    """What the first line tells, and the text of the rows."""
    first, _, rest = text.partition(b"\n")
    try:
        line = first.decode("utf-8").rstrip("\r")
    except UnicodeDecodeError as error:
        raise DataError(f"{name}: it is no UTF-8 text ({error})") from error
    delimiter = max(_DELIMITERS, key=line.count)
    try:
        cells = [cell.strip() for cell in next(csv.reader(io.StringIO(line), delimiter=delimiter), [])]
    except csv.Error as error:
        why = "its lines end with CR alone; save it with LF or CRLF" if "\r" in line else str(error)
        raise DataError(f"{name}, line 1: {why}") from error
    if header is None:
        header = _is_header(cells, name, [*drop, *([] if target is None else [target])], features)
    names = cells if header else None
    layout = _Layout(delimiter, len(cells), names, *chosen_columns(names, len(cells), name, target, drop, features))
    return layout, rest if header else text


def _is_header(cells: list[str], name: str, no_features: Sequence[str | int], features: Sequence[str] | None) -> bool:
    """Whether the first line holds names, by the columns that are asked for and the cells that would be features."""
    if features and set(features) <= set(cells):
        return True
    found = [column for column in no_features if column in cells]
    if not all(_WHOLE.fullmatch(str(column)) for column in found):
        return True
    numbered = {int(column) for column in no_features if _WHOLE.fullmatch(str(column))}
    apart = {number - 1 if number > 0 else number + len(cells) for number in numbered}
    values = [cell for i, cell in enumerate(cells) if i not in apart]
    kinds = set(map(_kind, values))
    if not found:
        return kinds == {"text"}
    # What was asked for is a number in text, and a cell too: perhaps a name.
    if "fraction" in kinds or len(set(cells)) < len(cells):
        return False
    if "text" in kinds:
        return True
    if features is not None:  # and not all there
        return False
    raise DataError(
        f"{name}: {found[0]} can be a column's number, or its name if the first line is a header. Say whether it is "
        "one: --header yes or no, in Python header=True or False"
    )


def _kind(cell: str) -> str:
    if not cell or _WHOLE.fullmatch(cell):
        return "whole number"  # or a missing one, which the parser will complain about
    try:
        float(cell)
    except ValueError:
        return "text"
    return "fraction"


def _parsed(text: bytes, name: str, line: int, layout: _Layout) -> tuple[np.ndarray, np.ndarray]:
    """Features and target cells (as bytes) of some lines."""
    # A row has at least one character a cell that is used, and one behind every cell: empty lines cost nothing.
    cells = len(layout.features) + (layout.target is not None)
    most = min(text.count(b"\n"), len(text) // (cells + layout.n_columns)) + 1
    values = np.empty((most, len(layout.features)))
    spans = np.empty((most, 2), dtype=np.int64)
    content = np.frombuffer(text, dtype=np.uint8)
    status, position, offset, column, row, doubtful = parse_cells(
        content, ord(layout.delimiter), layout.roles(), powers_of_ten(), values, spans
    )
    if status != FINE:
        raise DataError(f"{name}, line {line + offset}{_complaint(status, text[position:], column, layout)}")
    for place, start, stop in doubtful:
        values.flat[place] = float(text[start:stop])
    if len(doubtful) and not np.all(np.isfinite(values[:row])):
        place, start, stop = next(doubt for doubt in doubtful if not np.isfinite(values.flat[doubt[0]]))
        offset = text.count(b"\n", 0, start)
        raise DataError(f"{name}, line {line + offset}: {quoted(text[start:stop])} is too large for a number")
    # A copy lets go of what was too much.
    values = values[:row] if row > most // 2 else values[:row].copy()
    if layout.target is None:
        return values, np.empty(0, dtype="S1")
    labels = _cut_out(text, content, spans[:row], name, line)
    return values, np.char.replace(labels, b'""', b'"') if b'""' in text else labels


def _cut_out(text: bytes, content: np.ndarray, spans: np.ndarray, name: str, line: int) -> np.ndarray:
    """Labels, which are pieces of the text from the given line on, as an array of bytes strings."""
    lengths = spans[:, 1] - spans[:, 0]
    width = max(1, int(lengths.max(initial=1)))

    def where(row: int) -> str:
        before = text.count(b"\n", 0, int(spans[row, 0]))
        return f"{name}, line {line + before}"

    if len(spans):
        refuse_uneven(len(spans), width, int(lengths.sum()), where(int(lengths.argmax())))
    if b"\0" in text:
        for row, (start, stop) in enumerate(spans.tolist()):
            if b"\0" in text[start:stop]:
                raise DataError(f"{where(row)}: a label with a NUL character, which is no text")
    letters = np.zeros((len(spans), width), dtype=np.uint8)
    cut_out(content, spans, letters)
    return letters.view(f"S{width}")[:, 0]


def _complaint(status: int, rest: bytes, column: int, layout: _Layout) -> str:
    """What is wrong where the rest of the text begins."""
    if status == COUNT:
        found = "more" if column == layout.n_columns else f"{column}"
        return f": there are {found} columns instead of the {layout.n_columns} of the first line"
    where = f", column {column + 1}" + ("" if layout.names is None else f" ({layout.names[column]!r})")
    cell = rest.split(b"\n", 1)[0].split(layout.delimiter.encode(), 1)[0].strip()
    return {
        CELL: f"{where}: {quoted(cell)} is no finite number; text can be the target, or be dropped",
        MISSING: f"{where}: the cell is empty; fill missing values or leave them out",
        QUOTE: f"{where}: {quoted(cell)} is not quoted well; a quoted cell ends on its line",
    }[status]
