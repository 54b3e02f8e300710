"""Tables of numbers, of which one column may be the target; Parquet files."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from parablock.datasets.data import Data
from parablock.datasets.errors import DataError
from parablock.datasets.streams import STANDARD_INPUT, name_of, whole_content

# As a number is written that is whole: others, such as 1.0 or +1, may well be the same number.
_WHOLE = re.compile(r"0|-?[1-9]\d*|0\d+")


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
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise ImportError("Parquet files need pyarrow: pip install 'parablock[parquet]'.") from error
    name = name_of(source)
    try:
        if isinstance(source, (str, os.PathLike)) and os.fspath(source) != STANDARD_INPUT:
            table = pq.read_table(source)
        else:
            table = pq.read_table(io.BytesIO(whole_content(source)))
    except pa.ArrowInvalid as error:
        raise DataError(f"{name}: it is no Parquet file that can be read ({str(error).splitlines()[0]})") from error
    if not table.num_rows:
        raise DataError(f"{name}: there is no row in it")
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
    values = np.asarray(column.to_pylist())
    if pa.types.is_integer(kind):
        return values
    if any(is_it(kind) for is_it in (pa.types.is_floating, pa.types.is_boolean, pa.types.is_binary)):
        return as_labels(values, name)
    if pa.types.is_decimal(kind):
        return as_labels(values.astype(str), name)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return values
    raise DataError(f"{name}: the column {title!r} holds {kind}; a target is numbers, truth values or text")


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
    missing = [name for name in features if name not in names]
    if missing:
        raise DataError(f"{source}: there is no column {_listed(missing, 5)}; its columns are {_listed(names)}")
    places = [_place(name, "a feature", names, count, source) for name in features]
    if place in places:
        raise DataError(f"{source}: the target {target!r} is one of the features")
    return place, places


def _place(column: str | int, role: str, names: list[str] | None, count: int, source: str) -> int:
    if names is not None and str(column) in names:
        if names.count(str(column)) > 1:
            raise DataError(f"{source}: several columns are called {str(column)!r}; give the number of {role} instead")
        return names.index(str(column))
    try:
        number = int(column)
    except ValueError:
        known = "it has no header" if names is None else f"its columns are {_listed(names)}"
        raise DataError(f"{source}: no column is called {column!r}; {known}") from None
    if not (1 <= number <= count or -count <= number <= -1):
        raise DataError(f"{source}: column {number} was named as {role}; there are the columns 1 to {count}")
    return number - 1 if number > 0 else number + count


def _listed(names: Sequence[str], most: int = 20) -> str:
    return ", ".join(map(repr, names[:most])) + (f" and {len(names) - most} more" if len(names) > most else "")


def as_labels(values: np.ndarray, name: str) -> np.ndarray:
    """Labels of bytes or text as whole numbers, as numbers, or as text, whichever is first to fit them all and keeps
    those apart that are different."""
    if values.dtype.kind == "S":
        try:
            values = np.char.decode(values, "utf-8")
        except UnicodeDecodeError as error:
            raise DataError(f"{name}: the labels are no UTF-8 text ({error})") from error
    if values.dtype.kind == "U" and np.any(np.char.find(values, "_") >= 0):
        return values  # Python would read 1_0 as ten
    try:
        numbers = values.astype(np.float64)
    except ValueError:
        return values
    if not np.all(np.isfinite(numbers)):
        row = int(np.argmin(np.isfinite(numbers))) + 1
        raise DataError(f"{name}: the target of row {row} is {values[row - 1]}, which is no finite number")
    whole = numbers == np.rint(numbers)
    small = np.abs(numbers).max(initial=0) < 2**53
    if values.dtype.kind == "U":
        spelled = [text for text in np.unique(values[whole]).tolist() if _WHOLE.fullmatch(text)]
        exact = set(map(int, spelled))
        if len(exact) < len(spelled):
            return values  # 007 is not 7
        if not small and np.all(whole) and len(spelled) == len(np.unique(values)) and _fit_int64(exact):
            return np.array([int(text) for text in values.tolist()])
        if len(set(map(float, exact))) < len(spelled):
            return values
    return numbers.astype(np.int64) if np.all(whole) and small else numbers


def _fit_int64(numbers: set[int]) -> bool:
    return all(-(2**63) <= number < 2**63 for number in numbers)
