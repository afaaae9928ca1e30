"""Who may watch a solve."""

from .core.loggers import History, Logger, Progress, Snapshot, Stream

__all__ = ["History", "Logger", "Progress", "Snapshot", "Stream"]
