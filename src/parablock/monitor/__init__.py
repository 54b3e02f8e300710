"""What is seen and remembered of a run."""

from parablock.monitor.checkpoint import Checkpoint, CheckpointError
from parablock.monitor.compilation import Stopwatch, is_compiling, seconds_compiling
from parablock.monitor.history import Record, relative_gap
from parablock.monitor.progress import Progress, seconds_left, share_done

__all__ = [
    "Checkpoint",
    "CheckpointError",
    "Progress",
    "Record",
    "Stopwatch",
    "is_compiling",
    "relative_gap",
    "seconds_compiling",
    "seconds_left",
    "share_done",
]
