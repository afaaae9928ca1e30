"""The name of the processor of this process, as files of constants match it."""

from __future__ import annotations

import platform
from functools import cache
from pathlib import Path


@cache
def processor() -> str:
    """Return vendor, family, model and name of the processor.

    Names of processors in virtual machines are often short, such as "AMD EPYC"; the family and the
    model tell the generation.

    Examples
    --------
    >>> processor() == processor()
    True
    """
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    known: dict[str, str] = {}
    for line in lines:
        key, _, value = line.partition(":")
        known.setdefault(key.strip(), value.strip())
    name = known.get("model name") or known.get("Model")
    name = name or platform.processor() or platform.machine()
    if "cpu family" not in known:
        return name
    return (
        f"{known.get('vendor_id', '')} family {known['cpu family']} model {known['model']}: {name}"
    )
