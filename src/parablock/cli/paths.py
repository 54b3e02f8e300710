"""No command writes over what it reads, nor two things into one file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import TypeGuard

from parablock.cli.failures import UsageError
from parablock.datasets.streams import STANDARD_INPUT


def refuse_overwriting(inputs: Mapping[str, str | None], outputs: Mapping[str, str | None]) -> None:
    """Raise an error where a file to write is one that is read, also by another name, or is named twice.

    Parameters
    ----------
    inputs, outputs : mapping of str to str or None
        The files, or folders to read, by what the user calls them; None and "-" are no files.
    """
    written = {name: path for name, path in outputs.items() if _is_file(path)}
    for name, path in written.items():
        for read, source in inputs.items():
            if _is_file(source) and any(_same(path, file) for file in _files_of(source)):
                raise UsageError(f"{name} {path} would overwrite {read} ({source}), which is read; name another file")
    for (name, path), (other, another) in combinations(written.items(), 2):
        if _same(path, another):
            raise UsageError(f"{name} and {other} name the same file ({path}); name two")


def _is_file(path: str | None) -> TypeGuard[str]:
    """Whether something of that name can be overwritten: not standard output, nor a pipe or a device."""
    if path is None or path == STANDARD_INPUT:
        return False
    return not os.path.exists(path) or os.path.isfile(path) or os.path.isdir(path)


def _files_of(path: str) -> Iterator[str]:
    """The file, or all files in a folder."""
    yield path
    if os.path.isdir(path):
        yield from (entry.path for entry in os.scandir(path))


def _same(one: str, other: str) -> bool:
    if os.path.exists(one) and os.path.exists(other):
        return os.path.samefile(one, other)
    return os.path.realpath(one) == os.path.realpath(other)
