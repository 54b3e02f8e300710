"""Arrays in NumPy's .npy and .npz files, which may come from anyone.

NumPy's reader takes the memory that a header of a few bytes asks for, and its errors are of a dozen kinds. Here sizes
are compared with the bytes that are there first, and whatever is wrong is an `ArrayError`.
"""

from __future__ import annotations

import ast
import math
import os
import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from parablock.room import memory_there_is, size

_MAGIC = b"\x93NUMPY"
_LENGTHS = {(1, 0): 2, (2, 0): 4, (3, 0): 4}  # bytes that tell the length of the header
_MOST_HEADER = 10_000  # as NumPy has it
_KINDS = "biufcmMSU"
_MOST_COMPRESSION = 1032  # of deflate
_PIECE = 16 << 20


class ArrayError(ValueError):
    """An array that cannot be read; the reader of the file says in which."""


@contextmanager
def _understood(what: str) -> Iterator[None]:
    """Whatever a parser complains about is an `ArrayError`; errors of the system are not."""
    try:
        yield
    except ArrayError:
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None and error.filename is not None:
            raise
        why = (str(error) or type(error).__name__).splitlines()[0]
        raise ArrayError(f"{what} ({why[:200]})") from error


class _Header(NamedTuple):
    dtype: np.dtype
    shape: tuple[int, ...]
    order: str
    length: int  # of the header itself

    @property
    def n_bytes(self) -> int:
        return self.dtype.itemsize * math.prod(self.shape)


def is_npy(start: bytes) -> bool:
    return start.startswith(_MAGIC)


def is_npz(start: bytes) -> bool:
    return start.startswith((b"PK\x03\x04", b"PK\x05\x06"))


def map_npy(file: BinaryIO) -> np.ndarray:
    """The array of a .npy file on disk, mapped, not read; compiled code needs numbers that begin where numbers do."""
    there = os.fstat(file.fileno()).st_size
    header = npy_header(file, there)
    if not header.n_bytes or header.length % header.dtype.alignment:
        file.seek(0)
        return read_npy(file, there)
    with _understood("it cannot be mapped"):
        mapped: np.ndarray = np.memmap(
            file, header.dtype, "r", header.length, header.shape, "F" if header.order == "F" else "C"
        )
    return _with_good_text(mapped)


def read_npy(file: BinaryIO, there: int) -> np.ndarray:
    """The array of a .npy file, a stream of so many bytes."""
    header = npy_header(file, there)
    if header.n_bytes > memory_there_is():
        raise ArrayError(f"its {size(header.n_bytes)} are more than the memory of this machine")
    with _understood("its values cannot be read"):
        values = np.empty(header.n_bytes, dtype=np.uint8)
        place = 0
        while place < len(values):
            piece = file.read(min(_PIECE, len(values) - place))
            if not piece:
                raise ArrayError(f"it ends after {size(place)} of {size(len(values))}")
            values[place : place + len(piece)] = np.frombuffer(piece, dtype=np.uint8)
            place += len(piece)
        array: np.ndarray = values.view(header.dtype).reshape(header.shape, order="F" if header.order == "F" else "C")
    return _with_good_text(array)


class Npz:
    """The arrays of a .npz file by name; each is read when it is asked for.

    Parameters
    ----------
    file : file of bytes
    """

    def __init__(self, file: BinaryIO) -> None:
        with _understood("it is no whole archive"):
            self._archive = zipfile.ZipFile(file)
            self._entries = {info.filename.removesuffix(".npy"): info for info in self._archive.infolist()}
            self._there = file.seek(0, os.SEEK_END)

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __getitem__(self, name: str) -> np.ndarray:
        entry = self._entries.get(name)
        if entry is None:
            raise ArrayError(f"it has no array {name!r}")
        with _understood(f"its array {name!r} cannot be read"):
            if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or entry.flag_bits & 1:
                raise ArrayError(f"its array {name!r} is packed in a way that NumPy does not use")
            most = _MOST_COMPRESSION if entry.compress_type == zipfile.ZIP_DEFLATED else 1
            if entry.file_size > most * min(entry.compress_size, self._there):
                raise ArrayError(
                    f"its array {name!r} claims {size(entry.file_size)}, which {size(entry.compress_size)} of an "
                    "archive cannot hold"
                )
            with self._archive.open(entry) as file:
                return read_npy(file, entry.file_size)  # type: ignore[arg-type]

    def get(self, name: str) -> np.ndarray | None:
        return self[name] if name in self._entries else None


def npy_header(file: BinaryIO, there: int) -> _Header:
    """The header of a .npy file of so many bytes."""
    with _understood("its header makes no sense"):
        start = file.read(len(_MAGIC) + 2)
        if not is_npy(start) or len(start) < len(_MAGIC) + 2:
            raise ArrayError("it does not begin as an array file does")
        n_length = _LENGTHS.get((start[-2], start[-1]))
        if n_length is None:
            raise ArrayError(f"it has the format version {start[-2]}.{start[-1]}, and 1.0 to 3.0 are known")
        length = int.from_bytes(file.read(n_length), "little")
        if length > _MOST_HEADER:
            raise ArrayError(f"it claims to have a header of {length:,} bytes; {_MOST_HEADER:,} are the most")
        text = file.read(length)
        if len(text) < length:
            raise ArrayError("it ends in its header")
        # Python 2 wrote whole numbers with an L behind them.
        told = ast.literal_eval(re.sub(r"(?<=\d)L\b", "", text.decode("utf-8" if start[-2] == 3 else "latin1")).strip())
        if not isinstance(told, dict) or set(told) != {"descr", "fortran_order", "shape"}:
            raise ArrayError("its header does not tell type, order and shape")
        return _checked(told["descr"], told["shape"], told["fortran_order"], len(start) + n_length + length, there)


def _checked(descr: Any, shape: Any, fortran: Any, length: int, there: int) -> _Header:
    dtype = np.dtype(descr) if isinstance(descr, str) else None
    if dtype is None or dtype.kind not in _KINDS or dtype.itemsize == 0:
        raise ArrayError(f"its type is {str(descr)[:60]}; an array of numbers or text is needed")
    if not isinstance(shape, tuple) or not all(type(length) is int and length >= 0 for length in shape):
        raise ArrayError(f"its shape makes no sense: {str(shape)[:60]}")
    if len(shape) > 32 or dtype.itemsize * math.prod(max(1, length) for length in shape) >= 1 << 62:
        raise ArrayError(f"its shape is too large: {str(shape)[:60]}")
    header = _Header(dtype, shape, "F" if fortran else "C", length)
    if header.n_bytes > there - length:
        raise ArrayError(
            f"it claims {size(header.n_bytes)} of values (shape {str(shape)[:60]}), and {size(max(0, there - length))} "
            "follow its header"
        )
    return header


def _with_good_text(array: np.ndarray) -> np.ndarray:
    """Text must be made of characters that there are."""
    if array.dtype.kind == "U" and array.size:
        letters = np.ascontiguousarray(array).view(f"{array.dtype.str[0]}u4")
        if letters.max() > 0x10FFFF or np.any((letters >= 0xD800) & (letters < 0xE000)):
            raise ArrayError("it has text of characters that do not exist")
    return array
