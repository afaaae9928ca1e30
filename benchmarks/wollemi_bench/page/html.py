"""A report as one page of HTML that needs nothing else, and its pictures as files."""

from __future__ import annotations

import io
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from wollemi.core.errors import InvalidArgument

from .parts import Chapter, Picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Goes through pictures one by one and may tell how far it is.
Follow = Callable[[Sequence[Picture]], Iterable[Picture]]

#: Sharp on paper and on most screens.
DPI = 130

#: Greys and one green, with the steps between them that make edges smooth.
COLOURS = 48


def write(chapters: Sequence[Chapter], folder: Path, follow: Follow = iter) -> list[Path]:
    """Write ``index.html``, and a PNG for each picture.

    Parameters
    ----------
    chapters : sequence of Chapter
        The runs.
    folder : Path
        Where to; made if it is not there.
    follow : callable
        Goes through the pictures while they are drawn, to show how far it is.

    Returns
    -------
    list of Path
        The written files, the page first.

    Raises
    ------
    InvalidArgument
        If matplotlib or Jinja is missing.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = [folder / "index.html"]
    drawn = {
        picture.name: save(picture.draw(), folder / f"{picture.name}.png")
        for picture in follow(pictures(chapters))
    }
    written += drawn.values()
    written[0].write_text(page(chapters, drawn), encoding="utf-8")
    return written


def pictures(chapters: Sequence[Chapter]) -> list[Picture]:
    """Return all pictures of a report."""
    return [
        part
        for chapter in chapters
        for section in chapter.sections
        for part in section.parts
        if isinstance(part, Picture)
    ]


def page(chapters: Sequence[Chapter], drawn: Mapping[str, Path]) -> str:
    """Return the page as text, with the pictures that were drawn, by their names."""
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError:
        raise InvalidArgument("a report needs Jinja: pip install jinja2") from None
    environment = Environment(
        loader=PackageLoader("wollemi_bench.page", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html.jinja").render(
        chapters=chapters,
        picture=lambda part: isinstance(part, Picture) and inline(drawn[part.name]),
    )


def inline(path: Path) -> str:
    """Return a picture as an address that holds all of it."""
    return "data:image/png;base64," + b64encode(path.read_bytes()).decode()


def save(figure: Figure, path: Path, **metadata: str) -> Path:
    """Write a picture with few colours, a third of the bytes of one with all."""
    from PIL import Image, PngImagePlugin

    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=DPI)
    said = PngImagePlugin.PngInfo()
    for name, text in metadata.items():
        said.add_text(name, text)
    image = Image.open(buffer).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    image.save(path, optimize=True, pnginfo=said)
    return path
