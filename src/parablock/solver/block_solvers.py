"""The solvers of a block's subproblem (paper, section 4.1) and when they stop."""

from __future__ import annotations

from dataclasses import dataclass

CHOICES = ("greedy", "random", "cyclic")


@dataclass(frozen=True)
class BlockSolver:
    """Coordinate descent inside a block.

    Parameters
    ----------
    choice : {"greedy", "random", "cyclic"}
        How the next variable is chosen.
    fraction : float
        Stop when the block's largest violation has fallen to this share of what it was ...
    floor : float
        ... or to this share of the tolerance of the whole problem, whichever is larger.
    max_updates : int or None
        Stop after this many updates in any case; None means 1,000 for each variable of the block.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from parablock import BlockSolver, KernelSVC
    >>> X, y = make_moons(500, noise=0.1, random_state=0)
    >>> careful = BlockSolver("cyclic", fraction=0.001)
    >>> KernelSVC(C=10, gamma=2, block_solver=careful).fit(X, y).score(X, y)
    1.0
    """

    choice: str = "greedy"
    fraction: float = 0.03
    floor: float = 1.0 / 3.0
    max_updates: int | None = None

    def __post_init__(self) -> None:
        if self.choice not in CHOICES:
            raise ValueError(f"Unknown block solver {self.choice!r}: use one of {CHOICES}.")
        if not 0.0 <= self.fraction < 1.0:
            raise ValueError(f"fraction must be at least 0 and less than 1, got {self.fraction!r}.")
        if not 0.0 <= self.floor <= 1.0:
            raise ValueError(f"floor must be between 0 and 1, got {self.floor!r}.")
        if self.max_updates is not None and self.max_updates < 1:
            raise ValueError(f"max_updates must be at least 1 (the theorem needs one step), got {self.max_updates!r}.")
