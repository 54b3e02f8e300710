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
from parablock.room import memory_there_is, size

STANDARD_INPUT = "-"
MAX_LINE_BYTES = 64 << 20  # of text, by default: lines of wide tables have megabytes
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


def pieces(file: BinaryIO, name: str, chunk: int = _CHUNK) -> Iterator[bytes]:
    """The content in large pieces."""
    while True:
        try:
            piece = file.read(chunk)
        except _DAMAGED as error:
            if getattr(error, "errno", None) is not None:  # the system's, and about no content
                raise
            raise DataError(f"{name}: the compressed file is damaged or incomplete ({error})") from error
        except MemoryError as error:
            raise DataError(f"{name}: to decompress it takes more memory than there is") from error
        if not piece:
            return
        yield piece


def whole_lines(file: BinaryIO, name: str, longest: int = MAX_LINE_BYTES, chunk: int = _CHUNK) -> Iterator[bytes]:
    """The content in large pieces that end where lines end; no line may be longer than so many bytes."""
    begun: list[bytes] = []  # of a line whose end is not found yet
    length, line = 0, 1

    def refuse_if_long(n_bytes: int) -> None:
        if n_bytes > longest:
            raise DataError(
                f"{name}, line {line}: it is longer than {size(longest)} (max_line_bytes, or --max-line, raises the "
                "limit for files that have such lines)"
            )

    for piece in pieces(file, name, min(chunk, max(1, longest))):  # so that no line within a piece is too long
        end = piece.rfind(b"\n") + 1
        if end:
            refuse_if_long(length + piece.index(b"\n"))
            whole = b"".join((*begun, piece[:end]))
            yield whole
            line += whole.count(b"\n")
            begun, length = [], 0
        begun.append(piece[end:])
        length += len(piece) - end
        refuse_if_long(length)
    if length:
        yield b"".join(begun)


def whole_content(source: Any) -> bytes:
    """All that there is to read, if it fits into memory."""
    content, length, most = [], 0, memory_there_is()
    with reading(source) as file:
        for piece in pieces(file, name_of(source)):
            content.append(piece)
            length += len(piece)
            if 2 * length > most:  # the pieces, and what they are put together to
                raise DataError(f"{name_of(source)}: its content is larger than memory ({size(most)})")
    return b"".join(content)


def refuse_too_much(n_bytes: int, name: str, line: int) -> None:
    """Refuse what does not fit into memory."""
    most = memory_there_is()
    if n_bytes > most:
        raise DataError(f"{name}, line {line}: what was read until here is larger than memory ({size(most)})")


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
