"""The picture that ``wollemi bench ... --plot`` draws of its measurements."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .report import Record


def roofline(records: Sequence[Record], path: Path) -> None:
    """Draw flops per second over flops per byte, a mark for each contender of each case.

    Raises
    ------
    InvalidArgument
        If matplotlib is missing, or nothing was timed.
    """
    from .page.roofline import roofline

    roofline(records).savefig(path, dpi=130)
