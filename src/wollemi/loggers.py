"""Loggers that observe a solve and its executor."""

from .core.events import Allocation, Application, Copy, watch
from .core.loggers import Counts, History, Logger, Snapshot, Stream
from .core.progress import Progress

__all__ = [
    "Allocation",
    "Application",
    "Copy",
    "Counts",
    "History",
    "Logger",
    "Progress",
    "Snapshot",
    "Stream",
    "watch",
]
