"""Warnings that refer to the line of the user's program that caused them."""

from __future__ import annotations

import sys
import warnings

#: Name of this package; its own lines are never reported.
_PACKAGE = __name__.partition(".")[0]


def warn_caller(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn with the file and line of the nearest caller outside of this package.

    Parameters
    ----------
    text : str
        The message.
    category : type
        The class of the warning.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as seen:
    ...     warnings.simplefilter("always")
    ...     warn_caller("this takes long")
    >>> str(seen[0].message), "wollemi" in seen[0].filename
    ('this takes long', False)
    """
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and _is_inside(frame.f_globals.get("__name__", "")):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level)


def _is_inside(module: str) -> bool:
    return module == _PACKAGE or module.startswith(f"{_PACKAGE}.")
