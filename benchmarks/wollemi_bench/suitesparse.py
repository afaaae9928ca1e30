"""Matrices of the SuiteSparse collection by name, through the package ``ssgetpy``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from wollemi.core.errors import InvalidArgument


def file(name: str) -> Path:
    """Return the Matrix Market file of a matrix, downloaded if it is not here yet.

    Parameters
    ----------
    name : str
        ``Group/Name``, or the name alone where one group has it.

    Raises
    ------
    InvalidArgument
        If there is no package, no network, or no such matrix.
    """
    group, _, short = name.rpartition("/")
    index = _index()
    try:
        found = [
            m
            for m in index.search(name, limit=1000)
            if m.name == short and (not group or m.group == group)
        ]
        if len(found) != 1:
            listed = ", ".join(f"{m.group}/{m.name}" for m in found) or "none"
            raise InvalidArgument(f"ss:{name}: expected one matrix of that name, found {listed}")
        found[0].download(format="MM", extract=True)
        folder = Path(found[0].localpath("MM", extract=True)[0])
    except (OSError, RuntimeError) as error:
        raise InvalidArgument(f"ss:{name}: it cannot be downloaded ({error})") from error
    path = folder / f"{short}.mtx"
    if not path.is_file():
        raise InvalidArgument(f"ss:{name}: the download has no {path.name}")
    return path


def _index() -> Any:
    """Return the package, which fetches the collection's index when it is imported."""
    try:
        import ssgetpy
    except ImportError:
        raise InvalidArgument('ss: needs ssgetpy: pip install "ssgetpy>=1.0rc2"') from None
    # errors of a network are OSErrors, errors of requests too
    except OSError as error:
        raise InvalidArgument(
            "ss: the index of the SuiteSparse collection cannot be had: is there a network? "
            f"({type(error).__name__})"
        ) from error
    return ssgetpy
