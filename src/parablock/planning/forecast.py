"""What `plan` answers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Memory:
    """Bytes of one rank, where they are most.

    Attributes
    ----------
    program : float
        Python and the libraries.
    data : float
        The user's rows, the library's copy of them, this rank's share of the watched ones, and those that have
        travelled.
    state : float
        All that has one number a row: coefficients, decisions, targets, weights, bounds, wishes. Every rank has them of
        all rows, however many ranks there are.
    blocks : float
        Kernel matrices of the blocks that are solved at the same time.
    columns : float
        Kept kernel columns, at this rank's share of the watched rows.

    Examples
    --------
    >>> from parablock.planning import plan
    >>> memory = plan(50_000, 54).memory_per_rank
    >>> round(memory.data / 2**20), memory.total > memory.columns
    (28, True)
    """

    program: float
    data: float
    state: float
    blocks: float
    columns: float

    @property
    def total(self) -> float:
        return self.program + self.data + self.state + self.blocks + self.columns


@dataclass(frozen=True)
class Seconds:
    """Where the time of a fit goes.

    Attributes
    ----------
    blocks : float
        Solving blocks. Bridges are one block: what they take does not fall with ranks.
    products : float
        Kernel products: computing columns, reading kept ones, checking the rows that rested.
    communication : float
        Sending and receiving.
    serial : float
        What every rank does by itself: measures, line searches, the choice of blocks.

    Examples
    --------
    >>> from parablock.planning import plan
    >>> seconds = plan(50_000, 54).seconds
    >>> seconds.communication, seconds.total > seconds.products
    (0.0, True)
    """

    blocks: float
    products: float
    communication: float
    serial: float

    @property
    def total(self) -> float:
        return self.blocks + self.products + self.communication + self.serial


@dataclass(frozen=True)
class Forecast:
    """What a fit will cost; `print` it for a table.

    Attributes
    ----------
    rows, features, ranks, threads : int
        What was asked. Threads are those of one rank.
    support_vectors : int
    iterations : int
        Outer ones.
    watched : int
        Rows whose decisions are kept up to date.
    memory_per_rank : Memory
        Bytes.
    kernel_values : float
        Computed by all ranks.
    kept_columns : float
        Share of the columns for which there is room, from 0 to 1; the others are computed again in every iteration.
    bytes_per_iteration : float
        That all ranks together contribute, and each rank receives, on average of the iterations after the first:
        `bytes_sent` of `history_`.
    bytes_sent : float
        Of the whole fit.
    seconds : Seconds
    seconds_waiting : float
        That a rank spends on average in operations that need all ranks: `seconds_waiting` of `history_`, summed up.
    seconds_on_one_rank : float
        The same fit on one rank with as many threads and as much memory as each has here.

    Examples
    --------
    >>> from parablock.planning import plan
    >>> forecast = plan(464_810, 54, ranks=16, threads=1)
    >>> forecast.support_vectors, forecast.iterations
    (72885, 42)
    >>> f"{forecast.efficiency:.0%}"
    '229%'
    """

    rows: int
    features: int
    ranks: int
    threads: int
    support_vectors: int
    iterations: int
    watched: int
    memory_per_rank: Memory
    kernel_values: float
    kept_columns: float
    bytes_per_iteration: float
    bytes_sent: float
    seconds: Seconds
    seconds_waiting: float
    seconds_on_one_rank: float

    @property
    def efficiency(self) -> float:
        """How well ranks are used: 1 where p ranks are p times as fast as one. It can be above 1 where they keep
        columns together that one has no room for."""
        return self.seconds_on_one_rank / (self.ranks * self.seconds.total)

    @property
    def work(self) -> float:
        """Kernel values as a multiple of one a row and support vector, the least that any method of this kind needs."""
        return self.kernel_values / (self.rows * self.support_vectors)

    def __str__(self) -> str:
        memory, seconds = self.memory_per_rank, self.seconds
        lines = [
            ("ranks x threads", f"{self.ranks:,} x {self.threads:,}"),
            ("rows x features", f"{self.rows:,} x {self.features:,}"),
            ("support vectors", f"{self.support_vectors:,}"),
            ("outer iterations", f"{self.iterations:,}"),
            ("watched rows", f"{self.watched:,}"),
            ("memory a rank", size(memory.total)),
            *((f"  {name}", size(getattr(memory, name))) for name in ("program", "data", "state", "blocks", "columns")),
            ("columns kept", f"{self.kept_columns:.0%}"),
            ("kernel values", f"{self.kernel_values:.2g} ({self.work:.1f} a row and support vector)"),
            ("sent an iteration", size(self.bytes_per_iteration)),
            ("sent in all", size(self.bytes_sent)),
            ("time", duration(seconds.total)),
            *((f"  {name}", duration(getattr(seconds, name))) for name in ("blocks", "products")),
            *((f"  {name}", duration(getattr(seconds, name))) for name in ("communication", "serial")),
            ("a rank waits", duration(self.seconds_waiting)),
            ("efficiency", f"{self.efficiency:.0%}"),
        ]
        width = max(len(what) for what, _ in lines)
        return "\n".join(f"{what:<{width}}  {much}" for what, much in lines)


def size(count: float) -> str:
    """Bytes for people."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if count < 999.5:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} PB"


def duration(seconds: float) -> str:
    """Seconds for people."""
    for unit, long in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * long:
            return f"{seconds / long:,.3g} {unit}"
    return f"{seconds:.3g} s"
