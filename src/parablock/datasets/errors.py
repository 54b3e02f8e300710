"""What is said of data that cannot be read."""

from __future__ import annotations

_LONGEST = 40  # of a quoted piece of the file, in characters


class DataError(ValueError):
    """Data that cannot be used; the message says where and why.

    Examples
    --------
    >>> import io
    >>> from parablock.datasets import DataError, read_svmlight
    >>> try:
    ...     read_svmlight(io.BytesIO(b"1 3:0.5 2:1"))
    ... except DataError as error:
    ...     print(error)
    standard input, line 1: index 2 comes after index 3, but indices must ascend
    """


def quoted(piece: bytes) -> str:
    """A piece of a file as it is shown in an error: on one line, and not too long."""
    text = piece.decode("utf-8", errors="replace")
    return repr(text if len(text) <= _LONGEST else text[:_LONGEST] + "...")
