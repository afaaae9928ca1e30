"""The name and the features of the processor; files of constants match the name."""

from __future__ import annotations

import platform
from functools import cache
from pathlib import Path


@cache
def processor() -> str:
    """Return vendor, family, model and name of the processor.

    In virtual machines the name is often short, such as "AMD EPYC"; the family and the model
    identify the generation.

    Examples
    --------
    >>> processor() == processor()
    True
    """
    known = _first_core()
    name = known.get("model name") or known.get("Model")
    name = name or platform.processor() or platform.machine()
    if "cpu family" not in known:
        return name
    return (
        f"{known.get('vendor_id', '')} family {known['cpu family']} model {known['model']}: {name}"
    )


@cache
def features() -> str:
    """Return the instruction sets that the processor supports; empty if no file lists them.

    Examples
    --------
    >>> isinstance(features(), str)
    True
    """
    known = _first_core()
    return known.get("flags") or known.get("Features") or ""


@cache
def _first_core() -> dict[str, str]:
    """Return the lines of the first core in ``/proc/cpuinfo``."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    known: dict[str, str] = {}
    for line in lines:
        key, _, value = line.partition(":")
        known.setdefault(key.strip(), value.strip())
    return known
