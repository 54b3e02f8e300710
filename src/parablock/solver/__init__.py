"""Algorithm 1 of the paper: the outer loop, its schedule, block solvers and line search."""

from parablock.solver.block_solvers import CHOICES, BlockSolver
from parablock.solver.iteration import Options
from parablock.solver.pbm import LocalStep, Solution, Watcher, minimise
from parablock.solver.schedule import MANY_MACHINES, FixedSchedule, RegroupedSchedule, Schedule, evenly
from parablock.solver.state import State
from parablock.solver.watching import Part

__all__ = [
    "CHOICES",
    "MANY_MACHINES",
    "BlockSolver",
    "FixedSchedule",
    "LocalStep",
    "Options",
    "Part",
    "RegroupedSchedule",
    "Schedule",
    "Solution",
    "State",
    "Watcher",
    "evenly",
    "minimise",
]
