"""The stopping status of a solve."""

from __future__ import annotations

from typing import Any

from ..step import Steps, norm2, sqrt

step = Steps("status", vectors="r")


@step
def start(w: Any) -> None:
    """Set norm_c = |r_c|; a running column halts at its threshold, or if that is not finite."""
    w.begin(sqrt(norm2(w.r)))
