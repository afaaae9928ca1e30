"""Writing of plots to files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .errors import InvalidArgument


def save_figure(figure: Any, path: str | Path) -> None:
    """Write a figure of matplotlib; the suffix of the file determines the format.

    Raises
    ------
    InvalidArgument
        If matplotlib has no such format.
    """
    formats = figure.canvas.get_supported_filetypes()
    suffix = Path(path).suffix[1:]
    if suffix and suffix.lower() not in formats:
        raise InvalidArgument(
            f"path: no format of plots is called {suffix!r}, got {str(path)!r}; end the name with "
            f"one of {', '.join(f'.{name}' for name in sorted(formats))}"
        )
    figure.savefig(path, dpi=150)
