"""``wollemi bench compare | report``: what was measured, read back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..core.errors import InvalidArgument
from .console import console

NOT_AS_GOOD = 1


def compare(
    old: Annotated[Path, typer.Argument(help="What bench --json wrote before.")],
    new: Annotated[Path, typer.Argument(help="What it wrote now.")],
    tolerance: Annotated[
        float, typer.Option(help="The share by which a median may move.", min=0.0)
    ] = 0.05,
    other_hardware: Annotated[
        bool, typer.Option("--other-hardware", help="Compare although the hardware differs.")
    ] = False,
) -> None:
    """Print what changed beyond noise; ends with 1 if ours is worse by more than the tolerance."""
    from ..bench.compare import compare, told
    from ..bench.results import read

    comparison = compare(read(old), read(new), tolerance=tolerance)
    if comparison.hardware and not other_hardware:
        raise InvalidArgument(
            f"the files are of different hardware ({'; '.join(comparison.hardware)}); "
            "times of one say nothing of the other. --other-hardware compares them all the same"
        )
    console().print(told(comparison))
    if comparison.regressions:
        raise typer.Exit(NOT_AS_GOOD)
