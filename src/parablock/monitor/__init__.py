"""What is seen and remembered of a run."""

from parablock.monitor.checkpoint import Checkpoint, CheckpointError
from parablock.monitor.compilation import announce_compilation
from parablock.monitor.history import Record, relative_gap
from parablock.monitor.progress import Progress, seconds_left, share_done

__all__ = [
    "Checkpoint",
    "CheckpointError",
    "Progress",
    "Record",
    "announce_compilation",
    "relative_gap",
    "seconds_left",
    "share_done",
]
