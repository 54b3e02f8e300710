"""Tables of numbers, of which one column may be the target; Parquet files."""

from __future__ import annotations

import io
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from parablock.datasets.data import Data
from parablock.datasets.errors import DataError
from parablock.datasets.labels import as_labels, refuse_uneven
from parablock.datasets.streams import STANDARD_INPUT, name_of, whole_content
from parablock.room import memory_there_is, size


def read_parquet(
    source: Any,
    *,
    target: str | int | None = None,
    drop: Sequence[str | int] = (),
    features: Sequence[str] | None = None,
) -> Data:
    """Read a table of numbers from a Parquet file (needs ``parablock[parquet]``).

    Parameters
    ----------
    source : path, "-" or file of bytes
    target : str or int, optional
        The column that is no feature: its name, or its number from 1, or from -1 backwards. It may hold text; the
        features must hold numbers.
    drop : sequence of str or int, default=()
        Columns to leave out, named or numbered likewise.
    features : sequence of str, optional
        Names of the columns to take as features, in this order; all that are left by default.

    Returns
    -------
    Data
        Its X is float32 where all feature columns are exact in that, and float64 otherwise.

    Examples
    --------
    >>> import io
    >>> import pyarrow as pa
    >>> from pyarrow import parquet
    >>> from parablock.datasets import read_parquet
    >>> file = io.BytesIO()
    >>> parquet.write_table(pa.table({"length": [5.1, 6.0], "kind": ["iris", "rose"]}), file)
    >>> _ = file.seek(0)
    >>> data = read_parquet(file, target="kind")
    >>> data.names, data.y.tolist()
    (['length'], ['iris', 'rose'])
    """
    try:
        import pyarrow.parquet as pq
    except ImportError as error:
        raise ImportError("Parquet files need pyarrow: pip install 'parablock[parquet]'.") from error
    name = name_of(source)
    stored = isinstance(source, (str, os.PathLike)) and os.fspath(source) != STANDARD_INPUT
    with _understood(name), pq.ParquetFile(source if stored else io.BytesIO(whole_content(source))) as parquet:
        _refuse_what_is_too_large(parquet.metadata, name)
        table = parquet.read()
    if not table.num_rows:
        raise DataError(f"{name}: there is no row in it")
    with _understood(name):
        return _data(table, name, target, drop, features)


@contextmanager
def _understood(name: str) -> Iterator[None]:
    """Whatever pyarrow complains about is a `DataError`; errors of the system, which have a number, are not."""
    try:
        yield
    except DataError:
        raise
    except Exception as error:  # pyarrow has a dozen kinds, and Python some more for text and dates that are none
        if isinstance(error, OSError) and error.errno is not None:
            raise
        why = (str(error) or type(error).__name__).splitlines()[0]
        raise DataError(f"{name}: it is no Parquet file that can be read ({why})") from error


def _refuse_what_is_too_large(told: Any, name: str) -> None:
    """A file of some bytes can say that it has the same value in very many rows."""
    needed, most = 8 * told.num_rows * told.num_columns, memory_there_is()
    if needed > most:
        raise DataError(
            f"{name}: it has {told.num_rows:,} rows of {told.num_columns:,} columns, which take {size(needed)}; there "
            f"are {size(most)} of memory"
        )


def _data(
    table: Any, name: str, target: str | int | None, drop: Sequence[str | int], features: Sequence[str] | None
) -> Data:
    names = table.column_names
    place, places = chosen_columns(names, len(names), name, target, drop, features)
    columns = [_numbers(table.column(i), names[i], name) for i in places]
    small = all(np.can_cast(column.dtype, np.float32) for column in columns)
    X = np.empty((table.num_rows, len(columns)), dtype=np.float32 if small else np.float64)
    for i, column in enumerate(columns):
        X[:, i] = column
    y = None
    if place is not None:
        _refuse_nulls(table.column(place), names[place], name)
        y = _labels(table.column(place), names[place], name)
    return Data(X, y, [names[i] for i in places])


def _numbers(column: Any, title: str, name: str) -> np.ndarray:
    import pyarrow as pa

    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        raise DataError(
            f"{name}: the column {title!r} holds {kind}, not numbers; text can be the target, or be dropped"
        )
    _refuse_nulls(column, title, name)
    values: np.ndarray = column.to_numpy()
    if not np.all(np.isfinite(values)):
        row = int(np.argmin(np.isfinite(values))) + 1
        raise DataError(f"{name}, row {row}, column {title!r}: {values[row - 1]} is no finite number")
    return values


def _labels(column: Any, title: str, name: str) -> np.ndarray:
    """Whole numbers and text as they are; truth values and numbers that are whole as whole numbers."""
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    labels = column.to_pylist()
    if isinstance(labels[0], (str, bytes)):
        _refuse_odd_text(labels, title, name)
    values = np.asarray(labels)
    if pa.types.is_integer(kind):
        return values
    if any(is_it(kind) for is_it in (pa.types.is_floating, pa.types.is_boolean, pa.types.is_binary)):
        return as_labels(values, name)
    if pa.types.is_decimal(kind):
        return as_labels(values.astype(str), name)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return values
    raise DataError(f"{name}: the column {title!r} holds {kind}; a target is numbers, truth values or text")


def _refuse_odd_text(labels: list[Any], title: str, name: str) -> None:
    lengths = list(map(len, labels))
    longest = max(lengths)
    refuse_uneven(len(labels), longest, sum(lengths), f"{name}, row {lengths.index(longest) + 1}, column {title!r}")
    for row, label in enumerate(labels, start=1):
        if ("\0" if isinstance(label, str) else b"\0") in label:
            raise DataError(f"{name}, row {row}, column {title!r}: a label with a NUL character, which is no text")


def _refuse_nulls(column: Any, title: str, name: str) -> None:
    if column.null_count:
        row = int(np.argmax(column.is_null().to_numpy())) + 1
        raise DataError(
            f"{name}, row {row}, column {title!r}: the cell is empty; fill or leave out missing values first"
        )


def chosen_columns(
    names: list[str] | None,
    count: int,
    source: str,
    target: str | int | None,
    drop: Sequence[str | int],
    features: Sequence[str] | None,
) -> tuple[int | None, list[int]]:
    """The places of the target, if there is one, and of the features, in their order."""
    place = None if target is None else _place(target, "the target", names, count, source)
    left_out = {_place(column, "a column to leave out", names, count, source) for column in drop}
    if place in left_out:
        raise DataError(f"{source}: the target {target!r} is among the columns to leave out")
    if features is None or names is None:
        places = [i for i in range(count) if i != place and i not in left_out]
        if not places:
            raise DataError(f"{source}: no column is left for the features")
        return place, places
    known = Counter(names)
    missing = [name for name in features if name not in known]
    if missing:
        raise DataError(f"{source}: there is no column {_listed(missing, 5)}; its columns are {_listed(names)}")
    twice = next((name for name in features if known[name] > 1), None)
    if twice is not None:
        raise _several(twice, "a feature", source)
    numbers = {name: number for number, name in enumerate(names)}
    places = [numbers[name] for name in features]
    if place in places:
        raise DataError(f"{source}: the target {target!r} is one of the features")
    return place, places


def _place(column: str | int, role: str, names: list[str] | None, count: int, source: str) -> int:
    if names is not None and str(column) in names:
        if names.count(str(column)) > 1:
            raise _several(str(column), role, source)
        return names.index(str(column))
    try:
        number = int(column)
    except ValueError:
        known = "it has no header" if names is None else f"its columns are {_listed(names)}"
        raise DataError(f"{source}: no column is called {column!r}; {known}") from None
    if not (1 <= number <= count or -count <= number <= -1):
        raise DataError(f"{source}: column {number} was named as {role}; there are the columns 1 to {count}")
    return number - 1 if number > 0 else number + count


def _several(column: str, role: str, source: str) -> DataError:
    return DataError(f"{source}: several columns are called {column!r}; give the number of {role} instead")


def _listed(names: Sequence[str], most: int = 20) -> str:
    return ", ".join(map(repr, names[:most])) + (f" and {len(names) - most} more" if len(names) > most else "")
