"""Memory that this process can have: what a file asks for is compared with it before it is taken."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

_CGROUP = Path("/sys/fs/cgroup/memory.max")  # of a container


def memory_there_is() -> int:
    """Bytes: the machine's memory, or less where this process or its container is allowed less. It does not depend on
    what happens to be free."""
    amounts = [1 << 62]
    with suppress(ValueError, OSError, AttributeError):  # not every system tells
        amounts.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    with suppress(ValueError, OSError):
        amounts.append(int(_CGROUP.read_text()))  # or the word "max"
    if resource is not None:
        allowed, _ = resource.getrlimit(resource.RLIMIT_AS)
        amounts += [] if allowed == resource.RLIM_INFINITY else [allowed]
    return min(amount for amount in amounts if amount > 0)


def size(n_bytes: float) -> str:
    """For a message."""
    for unit in ("bytes", "kB", "MB", "GB", "TB"):
        if n_bytes < 1024 or unit == "TB":
            break
        n_bytes /= 1024
    return f"{n_bytes:,.0f} {unit}" if n_bytes >= 10 or unit == "bytes" else f"{n_bytes:.1f} {unit}"
