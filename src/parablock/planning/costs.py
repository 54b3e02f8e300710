"""What a course costs on a machine and a network: memory, kernel values, bytes, seconds.

Letters as in docs/distributed.md: n rows, w of them watched, s support vectors, b rows of a block, p ranks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from parablock.planning.course import UPDATES, UPDATES_IN_BRIDGE, Course
from parablock.planning.forecast import Memory, Seconds
from parablock.planning.machines import Machine, Network

_PROGRAM = 300e6  # bytes of Python and the libraries
# Bytes of numbers a row: of all rows, and of watched ones; each for every row, and for every output of it. Measured as
# the growth of a fit's peak with its rows.
_ROW, _ROW_OUTPUT, _WATCHED_ROW, _WATCHED_ROW_OUTPUT = 40, 100, 20, 165
_GROWTH = 0.4  # room in columns for rows that wake up
_SET_ASIDE = 4  # first blocks a thread that the device keeps memory for
_TRAVELLED = 1.4  # rows that go to all ranks where data is sharded, as a multiple of the support vectors
_CHECKS = 2  # of the rows that rest
_GATHERED = 5  # a nonzero of a sparse row costs as much as so many features of a matrix product
_COPY_NS = 2.0  # to copy a value of a block's matrix from a kept column
_TOUCHES = 3  # times that a kernel value goes through memory when it is kept: written, read, mirrored
# Host code: nanoseconds to divide rows into blocks (a row and level of the tree), to read the data (a byte), and
# seconds of an iteration that has nothing to do.
_TREE_NS, _TREE_FEATURE_NS, _READ_NS, _ITERATION = 45.0, 0.9, 2.0, 2e-3


@dataclass(frozen=True)
class Costs:
    """A course of a fit, and what it runs on.

    Attributes
    ----------
    course : Course
    row_values : float
        Numbers in a row of data: its features or, of sparse data, its nonzeros.
    sparse : bool
    itemsize : int
        Bytes of a number of the data and of a kernel value.
    ranks, threads : int
    sharded : bool
    machine : Machine
        Of one rank.
    network : Network
    memory_limit : float
        Bytes of one rank for kernel values.
    filled : float
        Part of the kept columns that is not zero, from 0 to 1; the rest takes no memory and is not read.
    """

    course: Course
    row_values: float
    sparse: bool
    itemsize: int
    ranks: int
    threads: int
    sharded: bool
    machine: Machine
    network: Network
    memory_limit: float
    filled: float

    # ------------------------------------------------------------------------------------------------------- memory

    @property
    def row_bytes(self) -> float:
        return self.row_values * (self.itemsize + 4) + 4 if self.sparse else self.row_values * self.itemsize

    @property
    def _travelled(self) -> float:
        """Rows of data that every rank gets from others."""
        course = self.course
        return min(course.rows, _TRAVELLED * course.support) if self.sharded and self.ranks > 1 else 0.0

    @property
    def kept(self) -> float:
        """Share of the columns that are kept: those that find room."""
        if not self.machine.keeps:
            return 0.0
        course, matrix = self.course, self.itemsize * self.course.block**2
        room = self.memory_limit - min(self.memory_limit / 2, _SET_ASIDE * self.threads * matrix)
        # Of rows that wake up nobody knows yet how much is zero.
        growth = 0.0 if course.watched == course.rows else _GROWTH
        column = self.itemsize * (self.filled + growth) * course.watched / self.ranks
        return min(1.0, room / (column * course.touched))

    def memory(self) -> Memory:
        course = self.course
        own = course.rows / self.ranks if self.sharded else course.rows
        at_once = min(self.threads, math.ceil(course.blocks / self.ranks)) * course.block**2
        bridges = min(self.threads, math.ceil(course.outputs / self.ranks)) * course.bridge**2
        return Memory(
            program=_PROGRAM,
            data=self.row_bytes * (2 * own + course.watched / self.ranks + self._travelled),
            state=course.rows * (_ROW + _ROW_OUTPUT * course.outputs)
            + course.watched * (_WATCHED_ROW + _WATCHED_ROW_OUTPUT * course.outputs),
            blocks=min(self.memory_limit / 2, self.itemsize * max(at_once, bridges)),
            columns=self.itemsize * self.filled * self.kept * course.touched * course.watched / self.ranks,
        )

    # ------------------------------------------------------------------------------------------------- kernel values

    @property
    def value_ns(self) -> float:
        """Of one core."""
        return self._value_ns_on(self.machine)

    def _value_ns_on(self, machine: Machine) -> float:
        a_number = machine.feature_ns * (_GATHERED if self.sparse else 1)
        # Twice as long a number: half as many fit a vector register.
        return (machine.value_ns + a_number * self.row_values) * self.itemsize / 4

    @property
    def _product_values(self) -> float:
        """1.2 s w of columns once, and those without room again in every iteration; s (n - w) a check."""
        course = self.course
        once = self.kept * course.touched * course.watched
        again = (1.0 - self.kept) * course.all_moved_rows * course.watched
        return once + again + self._check_values

    @property
    def _check_values(self) -> float:
        return _CHECKS * self.course.support * (self.course.rows - self.course.watched)

    def kernel_values(self) -> float:
        """n b / 2 of the first blocks, the products, and later blocks, of which one rank copies what it has kept."""
        course = self.course
        # What is copied and what is computed anew does not depend on how fast this machine is.
        copied = self.kept if self.ranks == 1 and self._value_ns_on(Machine()) > _COPY_NS else 0.0
        first = course.rows * course.block / 2
        regrouped = (course.regrouped - 1) * course.active * min(course.block, course.active) / 2
        bridges = course.bridges * course.outputs * course.bridge**2 / 2
        return first + self._product_values + (1.0 - copied) * (regrouped + bridges)

    # ------------------------------------------------------------------------------------------------- communication

    @property
    def _step_bytes(self) -> int:
        """Of a moved row: its number, and its step for each output."""
        return 8 + 8 * self.course.outputs

    def bytes_per_iteration(self) -> float:
        """`K d` of every watched row, and the steps: 8 w, and 16 for each row that moved."""
        if self.ranks == 1:
            return 0.0
        course = self.course
        moves = course.all_moves / course.iterations
        return 8 * course.outputs * course.watched + self._step_bytes * moves

    def bytes_sent(self) -> float:
        """With the first iteration, which also tells how far every row is from moving, the checks, and rows of data."""
        if self.ranks == 1:
            return 0.0
        course = self.course
        wishes = (self._step_bytes + 4 * course.outputs) * course.rows
        checks = _CHECKS * 8 * course.outputs * (course.rows - course.watched)
        data = self.row_bytes * self._travelled
        return course.iterations * self.bytes_per_iteration() + wishes + checks + data

    @property
    def _collectives(self) -> int:
        """Of an iteration: decisions of the first rank, steps, products and counts."""
        return 9 + 3 * self.course.outputs

    def _communication(self) -> float:
        if self.ranks == 1:
            return 0.0
        course = self.course
        # The first rank's blocks go to everyone too, though they do not count as sent.
        chosen = 8 * (course.regrouped * course.active + course.bridges * course.bridge * course.outputs)
        startup = course.iterations * self._collectives * math.log2(self.ranks) * self.network.latency
        return startup + (self.bytes_sent() + chosen) / self.network.bandwidth

    # -------------------------------------------------------------------------------------------------------- seconds

    @property
    def _rank_bandwidth(self) -> float:
        """Bytes a second of kept columns that a rank reads."""
        shared = self.machine.bandwidth / (self.ranks if self.network.one_machine else 1)
        return min(self.threads * self.machine.core_bandwidth, shared)

    @property
    def _keeping_ns(self) -> float:
        """Of one core, to put a kernel value into memory."""
        return 1e9 * _TOUCHES * self.itemsize / self.machine.core_bandwidth

    def _solving(self, blocks: int, rows: float, updates: float, ranks: int) -> float:
        """Seconds to solve so many blocks with so many rows each, by so many updates each: threads share the matrices,
        but the updates of a block are one thread's."""
        own = math.ceil(blocks / ranks)
        matrices = own * rows**2 * (0.5 * self.value_ns + self._keeping_ns) / self.threads
        rounds = math.ceil(own / self.threads)
        return 1e-9 * (matrices + rounds * updates * (self.machine.update_ns + self.machine.update_row_ns * rows))

    def _blocks(self, ranks: int) -> float:
        course = self.course
        later = math.ceil(course.active / course.block)
        first = self._solving(course.blocks, course.block, course.block, ranks)
        regrouped = self._solving(later, course.active / later, UPDATES * course.moves / later, ranks)
        in_bridge = UPDATES_IN_BRIDGE * course.moves_in_bridge / course.outputs
        bridge = self._solving(course.outputs, course.bridge, in_bridge, ranks)
        return first + (course.regrouped - 1) * regrouped + course.bridges * bridge

    def _products(self) -> float:
        course = self.course
        keeping = self._keeping_ns * self.filled * self.kept * course.touched * course.watched
        computing = 1e-9 * (self.value_ns * self._product_values + keeping) / (self.ranks * self.threads)
        reading = self.filled * self.kept * course.all_moves * course.watched * self.itemsize
        return computing + reading / (self.ranks * self._rank_bandwidth)

    def _serial(self) -> float:
        course = self.course
        tree = _TREE_NS + _TREE_FEATURE_NS * self.row_values
        own = course.rows / self.ranks if self.sharded else course.rows
        levels = math.log2(max(2, course.active / course.block))
        first = own * (_READ_NS * self.row_bytes + tree * math.log2(max(2, course.blocks)))
        measures = self.machine.row_ns * course.outputs * (course.iterations * course.watched + _CHECKS * course.rows)
        regroupings = (course.regrouped - 1) * course.active * levels * tree
        return 1e-9 * (first + measures + regroupings) + course.iterations * _ITERATION

    def seconds(self) -> Seconds:
        return Seconds(self._blocks(self.ranks), self._products(), self._communication(), self._serial())

    def waiting(self) -> float:
        """Of a rank, on average: for messages, and for blocks that others solve."""
        if self.ranks == 1:
            return 0.0
        return self._communication() + max(0.0, self._blocks(self.ranks) - self._blocks(1) / self.ranks)
