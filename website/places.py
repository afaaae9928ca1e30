"""Where the site is made."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
WORK = ROOT / "build/site"
PAGES = WORK / "pages"
HTML = WORK / "html"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def version() -> str:
    """Return the version of the checkout."""
    return str(PROJECT["version"])
