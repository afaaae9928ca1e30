"""Where the site is made."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
WORK = ROOT / "build/site"
PAGES = WORK / "pages"
