"""A page for each package in a folder of ``examples/``: the text of its files.

The gallery has a card for each and names the pages in its menu: the theme cannot draw the menu of
a page that no menu names.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from .places import PAGES, ROOT

#: The language of a file, by its ending, in the order in which files are shown.
LANGUAGES = {".toml": "toml", ".py": "python", ".hpp": "cpp"}


def packages() -> list[Path]:
    """Return the folders of ``examples/`` that have a ``pyproject.toml``."""
    return sorted(path.parent for path in (ROOT / "examples").glob("*/pyproject.toml"))


def write_packages() -> None:
    """Write ``examples/NAME.md`` for each package."""
    for folder in packages():
        target = PAGES / "examples" / f"{folder.name}.md"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(page_of(folder))


def project(folder: Path) -> dict[str, Any]:
    """Return the table ``project`` of a package."""
    table: dict[str, Any] = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    return table


def description(folder: Path) -> str:
    """Return the sentence that describes a package.

    Examples
    --------
    >>> description(packages()[0])
    'A format of bands, a solver and a preconditioner in a package of their own.'
    """
    return f"{project(folder)['description'].rstrip('.')}."


def page_of(folder: Path) -> str:
    """Return the page of a package, as Markdown.

    Examples
    --------
    >>> page_of(packages()[0]).splitlines()[0]
    '# A package: wollemi-bands'
    """
    parts = [
        f"# A package: {project(folder)['name']}\n",
        "[A whole package](../docs/extend.md#a-whole-package) describes these files.\n",
    ]
    for path in files_of(folder):
        name = path.relative_to(folder).as_posix()
        language = LANGUAGES[path.suffix]
        parts.append(f"## `{name}`\n\n````{language}\n{path.read_text().rstrip()}\n````\n")
    return "\n".join(parts)


def files_of(folder: Path) -> list[Path]:
    """Return the files of a package, its table first and its tests last."""
    known = [path for path in folder.rglob("*") if path.suffix in LANGUAGES]
    order = list(LANGUAGES)
    return sorted(
        known, key=lambda path: ("tests" in path.parts, order.index(path.suffix), path.name)
    )
