"""Who may watch a solve, and what an executor does meanwhile."""

from .core.events import Allocation, Application, Copy, watch
from .core.loggers import Counts, History, Logger, Progress, Snapshot, Stream

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
