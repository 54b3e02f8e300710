"""Tables as people have them, as one matrix of numbers.

A category becomes the number of its level: levels are text, in alphabetical order, with missing values as the last one
where there were any in training; a level that was not there is -1. Numbers stay numbers, missing ones nan.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

_MANY_LEVELS = 20  # of text; with more than these, and than half of the rows, it is no category
_ORDINARY = 300  # powers of two: columns whose values go beyond are scaled by one


@dataclass(frozen=True)
class Source:
    """A column of the table: a number (levels is None) or a category."""

    name: str
    levels: tuple[str | None, ...] | None = None
    exponent: int = 0

    def read(self, column: Any) -> np.ndarray:
        if self.levels is None:
            if _is_text(column):
                raise ValueError(
                    f"Column {self.name} held numbers in training, and holds {_what(column)} now. Pass numbers, or fit "
                    "again."
                )
            return np.ldexp(column, -self.exponent) if self.exponent else column
        if not _is_text(column):
            raise ValueError(
                f"Column {self.name} held categories in training, and holds numbers now. Pass the categories as text, "
                "in a dataframe or an array of objects."
            )
        number = {level: float(i) for i, level in enumerate(self.levels)}
        return np.array([number.get(value, -1.0) for value in column.tolist()])


@dataclass(frozen=True)
class Reader:
    """Reads tables like the one it was learned from."""

    sources: tuple[Source, ...]

    @property
    def n_levels(self) -> list[int]:
        """Of each column; 0 for numbers."""
        return [0 if source.levels is None else len(source.levels) for source in self.sources]

    @classmethod
    def learned(cls, columns: Sequence[np.ndarray], names: Sequence[str], refuse_text: Sequence[bool]) -> Reader:
        return cls(tuple(map(_source, columns, names, refuse_text)))

    def read(self, columns: Sequence[np.ndarray]) -> np.ndarray:
        values = [source.read(column) for source, column in zip(self.sources, columns, strict=True)]
        return np.column_stack(values).astype(np.float64)


def is_frame(X: Any) -> bool:
    """Whether it is a dataframe of pandas, polars, pyarrow or others that narwhals knows."""
    if isinstance(X, (np.ndarray, list, tuple)):
        return False
    import narwhals as nw

    return bool(nw.dependencies.is_into_dataframe(X))


def frame_columns(X: Any, warn: bool) -> tuple[list[np.ndarray], list[str], list[bool]]:
    """Columns of a dataframe: of float64, or of objects (text and None) where they hold categories; their names as they
    are told in messages; and whether they may be free text."""
    import narwhals as nw

    frame = nw.from_native(X, eager_only=True)
    columns, names, free = [], [], []
    for series in frame.iter_columns():
        name = repr(series.name)
        columns.append(_of_series(series, name, warn))
        names.append(name)
        free.append(series.dtype in (nw.String, nw.Object))
    return columns, names, free


def array_columns(X: np.ndarray) -> tuple[list[np.ndarray], list[str], list[bool]]:
    """The same of an array of numbers or objects."""
    names = [str(j) for j in range(X.shape[1])]
    if X.dtype.kind != "O":
        return list(X.astype(np.float64, copy=False).T), names, [False] * X.shape[1]
    return (
        [_of_objects(column.tolist(), name) for column, name in zip(X.T, names, strict=True)],
        names,
        [True] * len(names),
    )


def _of_series(series: Any, name: str, warn: bool) -> np.ndarray:
    import narwhals as nw

    kind = series.dtype
    if kind.is_numeric():
        return _finite(np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64), name)
    if kind == nw.Boolean:
        return _of_objects(series.to_list(), name)
    if kind in (nw.Categorical, nw.Enum, nw.String):
        missing = series.is_null().to_list()
        return _objects([None if gone else str(v) for v, gone in zip(series.to_list(), missing, strict=True)])
    if kind in (nw.Datetime, nw.Date, nw.Duration):
        if warn:
            what = "durations" if kind == nw.Duration else "dates"
            warnings.warn(
                f"Column {name} holds {what}; they are taken as numbers of days. Make columns of the weekday, month or "
                "hour where these matter."
            )
        if kind == nw.Duration:
            ticks, day = series.dt.total_microseconds(), 86_400e6
        else:
            ticks, day = series.dt.timestamp("ms"), 86_400e3
        missing = series.is_null().to_numpy()
        days = np.array([np.nan if gone else float(v) for v, gone in zip(ticks.to_list(), missing, strict=True)])
        return days / day
    if kind == nw.Object:
        return _of_objects(series.to_list(), name)
    raise TypeError(
        f"Column {name} holds {kind}; accepted are numbers, truth values, text, categories and dates. Leave it out, or "
        "make such columns of it."
    )


def _of_objects(values: list[Any], name: str) -> np.ndarray:
    """Numbers, truth values and None as numbers; text, with anything of these, as text."""
    plain = [
        None if _is_missing(value) else value.item() if isinstance(value, np.generic) else value for value in values
    ]
    odd = next((value for value in plain if not isinstance(value, (int, float, str, type(None)))), None)
    if isinstance(odd, complex):
        raise ValueError("Complex data not supported")
    if odd is not None:
        raise TypeError(
            f"Column {name} holds {type(odd).__name__}: every argument must be a string or a number. Leave the column "
            "out, or make such columns of it."
        )
    if any(isinstance(value, str) for value in plain):
        return _objects([None if value is None else str(value) for value in plain])
    return _finite(np.array([np.nan if value is None else float(value) for value in plain]), name)


def _objects(values: list[str | None]) -> np.ndarray:
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def _is_missing(value: Any) -> bool:
    return (
        value is None or (isinstance(value, float) and value != value) or type(value).__name__ in ("NAType", "NaTType")
    )


def _finite(x: np.ndarray, name: str) -> np.ndarray:
    if np.isinf(x).any():
        raise ValueError(
            f"Input X contains infinity in column {name}, row {int(np.argmax(np.isinf(x)))}. Missing values (nan) are "
            "accepted; infinite ones must be replaced by them or by a number."
        )
    return x


def _is_text(column: np.ndarray) -> bool:
    return column.dtype.kind == "O"


def _what(column: np.ndarray) -> str:
    example = next((value for value in column.tolist() if value is not None), None)
    return "missing values only" if example is None else f"text such as {example!r}"


def _source(column: np.ndarray, name: str, free: bool) -> Source:
    if not _is_text(column):
        known = np.abs(column[~np.isnan(column)])
        exponent = int(np.frexp(known.max())[1]) if known.any() else 0
        return Source(name, None, exponent if abs(exponent) > _ORDINARY else 0)
    values = column.tolist()
    levels = sorted({value for value in values if value is not None})
    there = sum(value is not None for value in values)
    if free and len(levels) > max(_MANY_LEVELS, there / 2):
        raise ValueError(
            f"Column {name} holds free text: {len(levels)} different values in {there} rows. Leave it out, or make "
            "numbers of it (counts of words, an embedding); if its values are categories, pass them as such "
            "(pandas: .astype('category'))."
        )
    return Source(name, (*levels, None) if there < len(values) else tuple(levels))
