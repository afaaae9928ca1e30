"""The programs of a wheel, made once for all tests of a process."""

from __future__ import annotations

from functools import cache

from wollemi.precompile.programs import programs
from wollemi.precompile.target import Target


@cache
def known(dtype: str) -> dict[str, str]:
    """Return the texts of the kernels that a wheel has for an H200, by name."""
    return {symbol: text() for symbol, text in programs(Target("sm_90"), dtype)}
