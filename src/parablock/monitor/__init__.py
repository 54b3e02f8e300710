"""What is seen and remembered of a run."""

from parablock.monitor.history import Record
from parablock.monitor.progress import Progress

__all__ = ["Progress", "Record"]
