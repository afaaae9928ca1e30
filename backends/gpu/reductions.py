"""Whether some or all elements are true, computed by a maximum, which CuPy has precompiled.

CuPy's own ``any`` and ``all`` take three seconds to compile at the first use on a machine (H200, 23
November).
"""

from __future__ import annotations

import numpy as np

from ...core.executor import Array


def some(mask: Array) -> bool:
    """Return whether any element of a boolean array is true.

    Examples
    --------
    >>> import numpy as np
    >>> from wollemi.backends.gpu.reductions import some
    >>> some(np.array([False, True])), some(np.zeros(0, bool))
    (True, False)
    """
    return bool(mask.size) and bool(int(mask.view(np.uint8).max()))


def every(mask: Array) -> bool:
    """Return whether all elements of a boolean array are true."""
    return not mask.size or bool(int(mask.view(np.uint8).min()))
