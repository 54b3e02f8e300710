"""How much memory kernel values may take, and rows that are on disk."""

from __future__ import annotations

import os
import re
from numbers import Real
from typing import Any

from parablock.large_numbers import fits_float, short_number

_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def memory_bytes(limit: Any) -> int:
    """A memory limit as bytes: a number, a text such as "2GB", or None for half of what is free, at most 4 GB."""
    if limit is None:
        return min(4 << 30, _free_bytes() // 2)
    size = float("nan")
    if isinstance(limit, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?\s*", limit.lower())
        if match is not None:
            size = float(match.group(1)) * _UNITS[match.group(2)]
    elif isinstance(limit, Real) and not isinstance(limit, bool):
        size = float(limit) if fits_float(limit) else float("inf")
    if not 1 <= size < float("inf"):
        raise ValueError(
            "memory_limit must be a positive number of bytes, a text such as '500MB' or '2GB', or None; got "
            f"{short_number(limit)}."
        )
    return int(size)


def bytes_for_rows(memory_limit: int) -> int:
    """Rows that are on disk are read into memory as long as they take no more than this."""
    return memory_limit // 4


def _free_bytes() -> int:
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):  # not every system tells
        return 4 << 30
