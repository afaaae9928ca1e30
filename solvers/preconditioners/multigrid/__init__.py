"""Multigrid: cycles through the levels of a hierarchy, and the set-up of the levels."""

from .amg import Amg, rigid_body_modes
from .multigrid import Multigrid

__all__ = ["Amg", "Multigrid", "rigid_body_modes"]
