"""Whether some of many, or all: by a maximum, which CuPy has compiled already.

Its own ``any`` and ``all`` are compiled for three seconds when a machine first meets them (H200,
23 November).
"""

from __future__ import annotations

import numpy as np

from ...core.executor import Array


def some(mask: Array) -> bool:
    """Return whether any of an array of booleans is true.

    Examples
    --------
    >>> import numpy as np
    >>> from wollemi.backends.gpu.reductions import some
    >>> some(np.array([False, True])), some(np.zeros(0, bool))
    (True, False)
    """
    return bool(mask.size) and bool(int(mask.view(np.uint8).max()))


def every(mask: Array) -> bool:
    """Return whether all of an array of booleans are true."""
    return not mask.size or bool(int(mask.view(np.uint8).min()))
