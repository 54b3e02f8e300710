"""What a fit will cost before it is run: memory, communication and time.

course      how a fit goes: support vectors, iterations, rows that move
machines    what a machine and a network can do
costs       what such a course costs on them
forecast    the answer
planner     `plan`, which puts them together

docs/distributed.md, "What it will cost", has the formulas beside the paper's and beside measured fits.
"""

from parablock.planning.forecast import Forecast, Memory, Seconds
from parablock.planning.machines import Machine, Network
from parablock.planning.planner import plan

__all__ = ["Forecast", "Machine", "Memory", "Network", "Seconds", "plan"]
