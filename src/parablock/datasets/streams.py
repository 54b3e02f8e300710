"""Files as streams of bytes: standard input, and compressed files."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from parablock.datasets.errors import DataError
from parablock.replacing import replacing

STANDARD_INPUT = "-"
_CHUNK = 16 << 20  # bytes: much larger than a line, small beside the data of a file that takes long to read
_MARKS: dict[bytes, Any] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ": lzma.open}
_ENDINGS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_DAMAGED = (EOFError, OSError, lzma.LZMAError, zlib.error)


def name_of(source: Any) -> str:
    """What a source is called in messages."""
    if isinstance(source, (str, os.PathLike)) and os.fspath(source) != STANDARD_INPUT:
        return os.fspath(source)
    return "standard input"


@contextmanager
def reading(source: Any) -> Iterator[BinaryIO]:
    """A path, "-" for standard input, or an open file of bytes, decompressed where its first bytes say so."""
    if not isinstance(source, (str, os.PathLike)):
        yield _decompressed(source)
    elif os.fspath(source) == STANDARD_INPUT:
        yield _decompressed(sys.stdin.buffer)
    else:
        with open(source, "rb") as file:
            yield _decompressed(file)


def _decompressed(file: Any) -> BinaryIO:
    buffered = file if hasattr(file, "peek") else io.BufferedReader(file)
    first = buffered.peek(8)
    return next((opener(buffered) for mark, opener in _MARKS.items() if first.startswith(mark)), buffered)


def whole_lines(file: BinaryIO, name: str, chunk: int = _CHUNK) -> Iterator[bytes]:
    """The content in large pieces that end where lines end."""
    rest = b""
    while True:
        try:
            piece = file.read(chunk)
        except _DAMAGED as error:
            if getattr(error, "errno", None) is not None:  # the system's, and about no content
                raise
            raise DataError(f"{name}: the compressed file is damaged or incomplete ({error})") from error
        if not piece:
            break
        end = piece.rfind(b"\n") + 1
        if end:
            yield rest + piece[:end]
            rest = piece[end:]
        else:
            rest += piece
    if rest:
        yield rest


def whole_content(source: Any) -> bytes:
    """All that there is to read."""
    with reading(source) as file:
        return b"".join(whole_lines(file, name_of(source)))


def without_compression(name: str) -> str:
    """A file's name without the ending that says how it is compressed."""
    return name.removesuffix(Path(name).suffix) if Path(name).suffix in _ENDINGS else name


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file that replaces what was there when it is whole; compressed where its name ends in .gz, .bz2 or .xz."""
    opener = _ENDINGS.get(Path(os.path.realpath(path)).suffix)
    with replacing(path) as file:
        if opener is None:
            yield file
        else:
            with opener(file, "wb") as packed:
                yield packed
