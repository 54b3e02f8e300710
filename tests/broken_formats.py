"""Formats whose readers are broken in every way that `benchmarks.fuzz` must notice."""

import os
import signal
import time

import numpy as np

from benchmarks.fuzz.formats import Format
from parablock.datasets import DataError


class Plain(Format):
    """Refuses every other case."""

    def made(self):
        return [b"content"]

    def changed(self, rng, whole):
        self.turn = getattr(self, "turn", -1) + 1
        return whole + rng.bytes(3)

    def read(self):
        if hasattr(self, "turn"):  # and not when the whole files are tried
            self.broken()
            if self.turn % 2:
                raise DataError("refused")

    def broken(self):
        pass


class Raises(Plain):
    def broken(self):
        if self.turn == 3:
            raise KeyError("of somebody else")


class Crashes(Plain):
    def broken(self):
        if self.turn == 3:
            os.kill(os.getpid(), signal.SIGSEGV)


class Hangs(Plain):
    def broken(self):
        if self.turn == 3:
            time.sleep(100)


class Greedy(Plain):
    def broken(self):
        if self.turn == 3:
            np.ones(1 << 30)
