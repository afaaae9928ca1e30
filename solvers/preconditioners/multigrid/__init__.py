"""Multigrid: cycles through the levels of a hierarchy, and the set-up of the levels."""

from .amg import Amg
from .multigrid import Multigrid
from .rigid_body_modes import rigid_body_modes

__all__ = ["Amg", "Multigrid", "rigid_body_modes"]
