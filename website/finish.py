"""Repairs of the HTML that Sphinx and the theme write, so that every page passes the checks.

Links from sources back to the reference name the page alone, because Sphinx knows one public module
for each file of source. Buttons of the menu get names, and parameters on lines of their own become
a list, as readers for blind people need it.
"""

from __future__ import annotations

import re
from pathlib import Path

#: The anchor of a link from a page of source back to the reference.
BACK = re.compile(r'(class="viewcode-back" href="[^"#]+)#[^"]*"')

#: The button that opens a part of the menu.
TOGGLE = re.compile(r'<summary(?=><span class="toctree-toggle")')

#: Parameters of a long signature, each on a line.
LINES = re.compile(r'<dl>\s*((?:<dd><em class="sig-param">.*?</dd>\s*)+)</dl>', re.DOTALL)


def repaired(text: str) -> str:
    """Return a page of HTML with the repairs.

    Parameters
    ----------
    text : str
        The page.
    """
    text = BACK.sub(r'\1"', text)
    text = TOGGLE.sub('<summary aria-label="More pages"', text)
    return LINES.sub(lambda found: f'<ul class="sig-lines">{_items(found[1])}</ul>', text)


def _items(text: str) -> str:
    return text.replace("<dd>", "<li>").replace("</dd>", "</li>")


def repair(folder: Path) -> int:
    """Repair every page of a folder; return the number of pages.

    Parameters
    ----------
    folder : Path
        The site.
    """
    files = [file for file in folder.rglob("*.html") if "_static" not in file.parts]
    for file in files:
        text = file.read_text()
        if (new := repaired(text)) != text:
            file.write_text(new)
    return len(files)


def unwritten(pages: Path, folder: Path) -> list[str]:
    """Return the Markdown pages that have no page of HTML.

    An error in a parallel writer of Sphinx ends the other writers too. Sphinx 9.0 hides the error
    and reports success.

    Parameters
    ----------
    pages : Path
        The folder of the Markdown pages.
    folder : Path
        The site.
    """
    names = (page.relative_to(pages) for page in sorted(pages.rglob("*.md")))
    return [str(name) for name in names if not (folder / name).with_suffix(".html").exists()]
