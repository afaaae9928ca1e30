"""The Python files of this checkout as syntax trees, for tests of their structure."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]


@cache
def parsed(file: Path) -> ast.Module:
    """Return the syntax tree of a file with a path from the root."""
    return ast.parse((ROOT / file).read_text(encoding="utf-8"))
