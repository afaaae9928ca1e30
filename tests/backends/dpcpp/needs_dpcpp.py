"""The requirements of the tests of the dpcpp backend: its runtime; without it CI fails."""

from __future__ import annotations

import wollemi as wl

from ..needs import tool


def _reason() -> str:
    try:
        wl.executor("dpcpp:cpu")
    except wl.errors.ExecutorUnavailable as error:
        return str(error)
    return ""


REASON = _reason()
needs_dpcpp = tool(not REASON, REASON)
