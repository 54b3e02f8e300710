"""What is remembered of every outer iteration."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Record:
    """One outer iteration; objective, gap and violation are of the kernel matrix in the precision of the data.

    Attributes
    ----------
    iteration : int
        From 1.
    kind : str
        What the blocks were: "partition", "regrouped" or "bridge"; "check", when no variable moved but the rows that
        had been left to rest were looked at; or "cholesky", when squared error was solved at once as a linear system.
    seconds : float
        Since the start of the fit, without those of compilation.
    objective : float
        The minimised dual objective f after the iteration, summed over outputs; it never rises.
    duality_gap : float
        Certificate: primal minus dual value, summed over outputs, of the problem of the watched rows.
    violation : float
        Largest violation of the optimality conditions among the watched rows; training ends when it is at most ``tol``
        among all rows. For squared error and the quantile loss it counts, as ``tol`` does, in the spread of the
        targets.
    step : float
        Step size of the line search; the smallest of all outputs.
    blocks : int
        Number of blocks.
    active : int
        Variables in the blocks.
    changed : int
        Variables that moved.
    updates : int
        Coordinate updates inside the blocks.
    watched : int
        Rows whose decisions are kept up to date; the others rest, and their coefficients are zero.
    kernel_evaluations : int
        Kernel values computed since the start of the fit.
    bytes_sent : int
        By all machines in this iteration.
    seconds_waiting : float
        That a machine waited for others in this iteration, on average; sending takes part of it.
    seconds_compiling : float
        That went, beside `seconds`, to compiling functions that this process needed for the first time and that were
        not in Numba's cache; with the first iteration also those of what came before it.

    Examples
    --------
    >>> from parablock import KernelSVC
    >>> model = KernelSVC(gamma=1.0).fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> last = model.history_[-1]
    >>> last.iteration, last.kind, round(last.objective, 3), last.relative_gap < 1e-6
    (1, 'partition', -1.791, True)
    """

    iteration: int
    kind: str
    seconds: float
    objective: float
    duality_gap: float
    violation: float
    step: float
    blocks: int
    active: int
    changed: int
    updates: int
    watched: int
    kernel_evaluations: int
    bytes_sent: int = 0
    seconds_waiting: float = 0.0
    seconds_compiling: float = 0.0

    @property
    def relative_gap(self) -> float:
        """The duality gap as a share of the primal or dual value, whichever is larger: at most about 1."""
        return relative_gap(self.objective, self.duality_gap)


def relative_gap(objective: float, duality_gap: float) -> float:
    """The duality gap as a share of the primal or dual value, whichever is larger.

    Parameters
    ----------
    objective : float
        The minimised dual objective, which is the negative of the dual value.
    duality_gap : float

    Examples
    --------
    >>> from parablock.monitor import relative_gap
    >>> relative_gap(objective=-99.0, duality_gap=1.0)
    0.01
    """
    scale = max(abs(objective), abs(duality_gap - objective))
    return duality_gap / scale if scale > 0 else 0.0
