"""Callbacks: what watches a fit while it runs, and may end it.

``estimator.set_callbacks(...)`` sets them. They follow scikit-learn's protocol, so that its own callbacks work too from
version 1.9 on, and they work with earlier versions of scikit-learn as well.
"""

from parablock.callbacks.base import Callback
from parablock.callbacks.json_log import JSONLog
from parablock.callbacks.log_file import Log, LogError, read_log
from parablock.callbacks.progress_bar import ProgressBar
from parablock.callbacks.support import run_of
from parablock.callbacks.time_limit import TimeLimit
from parablock.callbacks.validation import EarlyStopping, ValidationScore
from parablock.callbacks.watching import Run

__all__ = [
    "Callback",
    "EarlyStopping",
    "JSONLog",
    "Log",
    "LogError",
    "ProgressBar",
    "Run",
    "TimeLimit",
    "ValidationScore",
    "read_log",
    "run_of",
]
