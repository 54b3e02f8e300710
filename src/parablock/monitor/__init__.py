"""What is seen and remembered of a run."""

from parablock.monitor.history import Record, relative_gap
from parablock.monitor.progress import Progress

__all__ = ["Progress", "Record", "relative_gap"]
