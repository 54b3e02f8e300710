"""How a fit goes: support vectors, iterations, rows that are watched and that move.

The rules are fitted to `history_` of fits with the Gaussian kernel (covtype of 3,000 to 464,810 rows, ijcnn1, a9a,
cod-rna and the round digits of MNIST), and each can be overruled by what a smaller fit of the user's own data tells.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

# Support vectors of covtype, C = gamma = 32: 6,515 of 10,000 rows, 10,522 of 20,000, 37,963 of 160,000 and 73,535 of
# 464,810.
_SUPPORT, _SUPPORT_POWER = 19.6, 0.63
# One against the rest: seven classes had 1.5 times the support vectors of two, and a row was one for about two classes.
_CLASSES_POWER, _OUTPUTS_A_ROW = 0.2, 2
# So many rows are watched, as a multiple of sqrt(rows x support vectors): from 1.0 (ijcnn1) to 1.3 (covtype).
_WATCHED, _NOBODY_RESTS = 1.25, 0.8
# Iterations to tol=1e-3: some, and for each support vector about two bridges that it goes through. Each power of ten of
# the tolerance is a fifth of them.
_FEWEST, _BRIDGES_EACH, _A_POWER_OF_TEN, _LEAST_SHARE = 6, 2, 0.2, 0.2
# Rows that move in an iteration: of the support vectors, and of a bridge. And how often each is updated then.
_MOVE, _MOVE_IN_BRIDGE = 0.6, 0.5
UPDATES, UPDATES_IN_BRIDGE = 2.2, 1.2
# Of the kernel columns of covtype, in float32, what is not zero and takes memory (`devices.cpu.strips`): 42 % of 10,000
# rows, 27 % of 20,000, 18 % of 50,000 and 13 % of 100,000.
_FILLED, _LEAST_FILLED = 42.0, 0.05
_TOUCHED = 1.2  # rows that ever move, as a multiple of the support vectors
_BRIDGE_BLOCKS = 2  # a bridge is as large as so many blocks


@dataclass(frozen=True)
class Course:
    """The counts of a fit.

    Attributes
    ----------
    rows, outputs : int
    support : int
        Rows whose coefficient is not zero in the end, for any output.
    blocks : int
        Of the first partition.
    watched : int
        Rows whose decisions are kept up to date.
    iterations : int
    """

    rows: int
    outputs: int
    support: int
    blocks: int
    watched: int
    iterations: int

    @property
    def block(self) -> int:
        """Rows of a block."""
        return -(-self.rows // self.blocks)

    @property
    def bridge(self) -> int:
        """Rows of a bridge."""
        return min(_BRIDGE_BLOCKS * self.block, self.support)

    @property
    def bridges(self) -> int:
        """Iterations that are bridges: every second one."""
        return self.iterations // 2

    @property
    def regrouped(self) -> int:
        """Iterations over all active rows."""
        return self.iterations - self.bridges

    @property
    def active(self) -> int:
        """Rows in the blocks of a regrouped iteration, those of each output counted."""
        return self.support * min(self.outputs, _OUTPUTS_A_ROW)

    @property
    def moves(self) -> float:
        """Rows that move in a regrouped iteration, those of each output counted."""
        return _MOVE * self.active

    @property
    def moves_in_bridge(self) -> float:
        """Rows that move in a bridge, those of each output counted."""
        return _MOVE_IN_BRIDGE * self.bridge * self.outputs

    @property
    def all_moves(self) -> float:
        """Of all iterations together."""
        return self.regrouped * self.moves + self.bridges * self.moves_in_bridge

    @property
    def all_moved_rows(self) -> float:
        """Rows that move, of all iterations together: outputs that move the same row need its column once."""
        in_bridge = min(self.moves_in_bridge, self.support)
        return self.regrouped * _MOVE * self.support + self.bridges * in_bridge

    @property
    def touched(self) -> int:
        """Rows that move at some time: whose columns are needed."""
        return min(self.rows, round(_TOUCHED * self.support))


def default_support(rows: int, outputs: int) -> int:
    """Rows whose coefficient is not zero, of data like covtype."""
    return max(1, min(rows, round(_SUPPORT * rows**_SUPPORT_POWER * outputs**_CLASSES_POWER)))


def default_filled(rows: int) -> float:
    """Part of the kernel columns that is not zero, of data like covtype."""
    return min(1.0, max(_LEAST_FILLED, _FILLED / math.sqrt(rows)))


def default_watched(rows: int, support: int) -> int:
    """Rows that do not rest; all, where nearly all would not."""
    watched = max(support, round(_WATCHED * math.sqrt(rows * support)))
    return rows if watched > _NOBODY_RESTS * rows else watched


def default_iterations(support: int, outputs: int, block: int, tol: float) -> int:
    """Outer iterations until the violation is below the tolerance."""
    of_an_output = support / outputs**_CLASSES_POWER
    share = max(_LEAST_SHARE, 1.0 - _A_POWER_OF_TEN * math.log10(tol / 1e-3))
    return max(2, round(share * (_FEWEST + _BRIDGES_EACH * of_an_output / block)))
