"""What tests need beside Python: in CI it has to be there, elsewhere its absence skips them."""

from __future__ import annotations

import os

import pytest


def tool(here: bool, why: str) -> pytest.MarkDecorator:
    """Return a mark that skips with the reason where a tool is missing, but not in CI."""
    missing = not here and os.environ.get("CI") != "true"
    return pytest.mark.skipif(missing, reason=why)
