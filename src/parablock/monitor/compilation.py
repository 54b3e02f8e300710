"""What Numba's compilation takes is said, and kept apart from the time that training takes."""

from __future__ import annotations

import logging
import time
from typing import Any

from numba.core import event

logger = logging.getLogger("parablock")


class _Compilation(event.Listener):
    """Hears when Numba compiles; loading from the cache is no compilation.

    Functions are compiled one at a time, under a lock of Numba's, but one that is called by another inside of it.
    """

    def __init__(self) -> None:
        self._depth, self._since, self._seconds = 0, 0.0, 0.0
        self._announced = False

    def on_start(self, event: Any) -> None:
        if self._depth == 0:
            self._since = time.perf_counter()
        self._depth += 1
        module = getattr(event.data["dispatcher"].py_func, "__module__", "") or ""
        if not self._announced and module.split(".")[0] == __name__.split(".")[0]:
            self._announced = True
            logger.warning(
                "Compiling what this needs, which takes up to a minute. Every loss, precision and format of the data "
                "needs something of its own, and large data more than small. Later processes load it from Numba's "
                "cache; 'parablock warm-up' compiles all of it at once."
            )

    def on_end(self, event: Any) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._seconds += time.perf_counter() - self._since

    def is_known(self) -> None:
        """To the user, who need not be told."""
        self._announced = True

    def seconds(self) -> float:
        """That this process has compiled so far."""
        seconds, since, running = self._seconds, self._since, self._depth > 0
        return seconds + (time.perf_counter() - since if running else 0.0)

    def is_running(self) -> bool:
        return self._depth > 0


_COMPILATION = _Compilation()
event.register("numba:compile", _COMPILATION)
seconds_compiling, is_compiling = _COMPILATION.seconds, _COMPILATION.is_running
compilation_is_known = _COMPILATION.is_known


class Stopwatch:
    """Measures training and compilation apart.

    What another fit of this process compiles counts as well: one that runs beside it has to wait for it, mostly.
    """

    def __init__(self) -> None:
        self._started, self._compiled = time.perf_counter(), seconds_compiling()
        self._before, self._told = 0.0, self._compiled

    def go_on_from(self, seconds: float) -> None:
        """So many were spent before."""
        self._before = seconds

    def seconds(self) -> float:
        """Since it was started, without compilation."""
        return self._before + time.perf_counter() - self._started - (seconds_compiling() - self._compiled)

    def seconds_compiling(self) -> float:
        """Of compilation, since this was last asked for."""
        before, self._told = self._told, seconds_compiling()
        return self._told - before
