"""``wollemi bench compare | report``: measurements, read back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wollemi.cli.console import console
from wollemi.core.errors import InvalidArgument

if TYPE_CHECKING:
    from .page.parts import Picture

NOT_AS_GOOD = 1


def compare(
    old: Annotated[Path, typer.Argument(help="The earlier file of bench --json.")],
    new: Annotated[Path, typer.Argument(help="The later file.")],
    tolerance: Annotated[
        float, typer.Option(help="The share by which a median may move.", min=0.0)
    ] = 0.05,
    other_hardware: Annotated[
        bool, typer.Option("--other-hardware", help="Compare although the hardware differs.")
    ] = False,
) -> None:
    """Print changes beyond noise; ends with 1 if wollemi is worse by more than the tolerance."""
    from .compare import compare, told
    from .results import read

    comparison = compare(read(old), read(new), tolerance=tolerance)
    if comparison.hardware and not other_hardware:
        raise InvalidArgument(
            f"the files are of different hardware ({'; '.join(comparison.hardware)}); "
            "times of one say nothing of the other. --other-hardware compares them all the same"
        )
    console().print(told(comparison))
    if comparison.regressions:
        raise typer.Exit(NOT_AS_GOOD)


def _told(pictures: Sequence[Picture]) -> Iterable[Picture]:
    """Go through pictures with a line on the terminal that says how many are drawn."""
    from rich.console import Console
    from rich.progress import track

    terminal = Console(stderr=True)
    return track(
        pictures,
        f"drawing {len(pictures)} pictures",
        console=terminal,
        transient=True,
        disable=not terminal.is_terminal,
    )


def report(
    files: Annotated[list[Path], typer.Argument(help="Files of bench --json.")],
    out: Annotated[
        Path | None, typer.Option(help="A folder for index.html and the pictures.")
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option(help="A page of Markdown; its pictures go into img next to it.")
    ] = None,
) -> None:
    """Write a report that people can read: a page of HTML that needs nothing else, or Markdown."""
    from .page import html
    from .page import markdown as page
    from .page.chapters import chapters
    from .results import read

    if out is None and markdown is None:
        raise InvalidArgument("nothing to write: give --out FOLDER, --markdown FILE, or both")
    runs = [run for file in files for run in read(file)]
    written = [] if out is None else html.write(chapters(runs), out, _told)[:1]
    if markdown is not None:
        written += page.write(runs, markdown, _told)[:1]
    for path in written:
        console().print(str(path), soft_wrap=True)
