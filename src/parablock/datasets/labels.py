"""Labels as arrays."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from parablock.datasets.errors import DataError
from parablock.room import size

# As a number is written that is whole: others, such as 1.0 or +1, may well be the same number.
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,400}|0[0-9]{1,400}")
# An array of text has room for its longest in every row. Beyond some size that must be in proportion to what is there.
_SMALL, _OUT_OF_PROPORTION = 64 << 20, 16


def refuse_uneven(n_labels: int, longest: int, content: int, where: str) -> None:
    """Refuse labels (of so many bytes together) of which one is so long that an array of them would take far more
    memory than they do themselves."""
    if n_labels * longest > max(_SMALL, _OUT_OF_PROPORTION * content):
        raise DataError(
            f"{where}: a label of {longest:,} bytes, for which each of {n_labels:,} labels would take as much memory "
            f"({size(n_labels * longest)}; {size(max(_SMALL, _OUT_OF_PROPORTION * content))} are the limit here). "
            "Shorten it"
        )


def label_array(labels: Sequence[bytes], name: str, line: int) -> np.ndarray:
    """Labels of a file that has one on each line, from the given line on."""
    lengths = list(map(len, labels))
    longest = max(lengths)
    refuse_uneven(len(labels), longest, sum(lengths), f"{name}, line {line + lengths.index(longest)}")
    for number, label in enumerate(labels):
        if b"\0" in label:
            raise DataError(f"{name}, line {line + number}: a label with a NUL character, which is no text")
    return np.array(labels)


def joined(parts: Sequence[np.ndarray], name: str) -> np.ndarray:
    """Arrays of bytes strings as one."""
    if not parts:
        return np.empty(0, dtype="S1")
    longest, together = max(part.itemsize for part in parts), sum(part.nbytes for part in parts)
    refuse_uneven(sum(map(len, parts)), longest, together, name)
    return np.concatenate(parts)


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
