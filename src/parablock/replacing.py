"""Files that appear under their name only when they are whole."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write to, which gets its name when it is whole; until then, and after an error, whatever had the name
    before is left as it was.

    Links are followed, and an earlier file's permissions are kept. A name that is no plain file, such as /dev/null or a
    pipe, is written to directly.
    """
    place = Path(os.path.realpath(path))
    before = place.stat() if place.exists() else None
    if before is not None and not stat.S_ISREG(before.st_mode):
        with open(place, "wb") as direct:
            yield direct
        return
    beside = place.with_name(f".{place.name}.{os.getpid()}.part")
    try:
        with open(beside, "wb") as file:
            if before is not None:
                os.chmod(beside, stat.S_IMODE(before.st_mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, place)
    except BaseException:
        with suppress(OSError):
            beside.unlink()
        raise
