"""Says so when Numba has to compile, instead of letting the first fit seem to hang."""

from __future__ import annotations

import logging
from typing import Any

from numba.core import event

logger = logging.getLogger("parablock")


class _Announcer(event.Listener):
    """Logs one warning at the first compilation of one of this library's functions; loading from the cache is none."""

    def __init__(self, package: str) -> None:
        self.package = package
        self.announced = False

    def on_start(self, event: Any) -> None:
        module = getattr(event.data["dispatcher"].py_func, "__module__", "") or ""
        if not self.announced and module.split(".")[0] == self.package:
            self.announced = True
            logger.warning(
                "Compiling the loops of parablock for this machine takes up to a minute. It happens once: later "
                "processes load the result from Numba's cache."
            )

    def on_end(self, event: Any) -> None:
        pass


def announce_compilation() -> None:
    """From now on, for the rest of the process."""
    event.register("numba:compile", _Announcer(__name__.split(".")[0]))
