"""Files and folders that appear under their name only when they are whole.

Until then they have a temporary name in the same folder: random, so that nobody can prepare a link under it and writers
in threads and processes do not meet, and short, so that it fits wherever the final name does. A writer holds a lock
(flock) on what it writes; what nobody holds any more was left by a process that was killed, and the next writer to this
folder on the same host removes it.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from platform import node
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # Windows, where leftovers stay
    fcntl = None  # type: ignore[assignment]

AnyPath = str | os.PathLike[str]
_NO_LINKS = getattr(os, "O_NOFOLLOW", 0)
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINKS | getattr(os, "O_BINARY", 0)
_TEMPORARY = re.compile(r"\.parablock-([0-9a-f]{8})-[0-9a-f]{16}\.part")


@contextmanager
def replacing(path: AnyPath) -> Iterator[BinaryIO]:
    """A file to write to, which gets its name when it is whole; until then, and after an error, whatever had the name
    before is left as it was.

    Links are followed, and an earlier file's permissions are kept. A name that is no plain file, such as /dev/null or a
    pipe, is written to directly. Errors of the system name `path`.
    """
    with _errors_name(path):
        place = Path(os.path.realpath(path))
        before = place.stat() if place.exists() else None
        if before is not None and not stat.S_ISREG(before.st_mode):
            with open(place, "wb") as direct:
                yield direct
            return
        _remove_leftovers(place.parent)
        # Nobody may read what was private while it is written, either.
        descriptor, beside = _new_file(place.parent, 0o666 if before is None else 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                if before is not None:
                    os.chmod(descriptor if os.chmod in os.supports_fd else beside, stat.S_IMODE(before.st_mode))
                yield file
                file.flush()
                os.fsync(descriptor)
                if fcntl is None:
                    file.close()  # Windows renames no open file
                os.replace(beside, place)  # while it is still locked
        except BaseException:
            with suppress(OSError):
                beside.unlink()
            raise


def check_writable(path: AnyPath) -> None:
    """Raise now what `replacing` would raise, where it can be known: there is no such folder, or it may not be written
    to, or `path` is one itself."""
    with _errors_name(path):
        place = Path(os.path.realpath(path))
        if place.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
        if place.exists() and not place.is_file():
            return
        descriptor, beside = _new_file(place.parent, 0o600)
        os.close(descriptor)
        beside.unlink(missing_ok=True)


@contextmanager
def new_folder(path: AnyPath) -> Iterator[Path]:
    """A folder to fill, which gets its name when it is whole; nothing may have that name."""
    place = Path(path)
    if place.exists():
        raise FileExistsError(f"{os.fspath(path)!r} is there already: remove it, or choose another name.")
    with _errors_name(path):
        place.parent.mkdir(parents=True, exist_ok=True)
        _remove_leftovers(place.parent)
        descriptor, beside = _new_locked_folder(place.parent)
        try:
            yield beside
            beside.rename(place)
        except BaseException:
            shutil.rmtree(beside, ignore_errors=True)
            raise
        finally:
            if descriptor is not None:
                os.close(descriptor)


@contextmanager
def _errors_name(path: AnyPath) -> Iterator[None]:
    """Errors of the system are of this file, and not of one with a temporary name."""
    try:
        yield
    except OSError as error:
        named = Path(os.fsdecode(error.filename or ""))
        if error.errno is not None and (not named.name or any(map(_TEMPORARY.fullmatch, named.parts))):
            error.filename = os.fspath(path)
            del error.filename2
        raise


def _name() -> str:
    return f".parablock-{_host()}-{secrets.token_hex(8)}.part"


def _host() -> str:
    """Locks may not be seen from other hosts that share the folder."""
    return f"{zlib.crc32(node().encode()):08x}"


def _new_file(folder: Path, mode: int) -> tuple[int, Path]:
    while True:
        path = folder / _name()
        descriptor = os.open(path, _NEW, mode)
        if _lock(descriptor, path):
            return descriptor, path
        os.close(descriptor)


def _new_locked_folder(parent: Path) -> tuple[int | None, Path]:
    while True:
        path = parent / _name()
        path.mkdir()
        if fcntl is None:
            return None, path
        try:
            descriptor = os.open(path, os.O_RDONLY | _NO_LINKS)
        except FileNotFoundError:
            continue
        if _lock(descriptor, path):
            return descriptor, path
        os.close(descriptor)


def _lock(descriptor: int, path: Path) -> bool:
    """Whether what was just made is still there: another writer may have taken it for a leftover before it was locked.
    On a file system that has no locks leftovers stay."""
    if fcntl is not None:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except FileNotFoundError:
        return False


def _remove_leftovers(folder: Path) -> None:
    """What this user's killed processes on this host have left in a folder."""
    if fcntl is None:
        return
    with suppress(OSError):
        names = [name for name in os.listdir(folder) if (found := _TEMPORARY.fullmatch(name)) and found[1] == _host()]
        for name in names:
            with suppress(OSError):  # it is in use, or gone by now
                _remove_if_unused(folder / name)


def _remove_if_unused(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | _NO_LINKS)
    try:
        there = os.fstat(descriptor)
        if there.st_uid != os.geteuid():
            return
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if stat.S_ISDIR(there.st_mode):
            shutil.rmtree(path)
        elif stat.S_ISREG(there.st_mode):
            path.unlink()
    finally:
        os.close(descriptor)
