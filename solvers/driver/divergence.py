"""The end of iterations that diverge: methods without a minimum or a recurrence that ends them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from ...core.dtypes import real_dtype
from ...core.status import Stop
from ...core.step import INDEFINITE
from .workspace import Workspace

#: The step that halts a column has a code of the device, which these methods need for nothing else.
MEANS: Mapping[Stop, Stop] = MappingProxyType({Stop.INDEFINITE: Stop.DIVERGED})


def allow_growth(work: Workspace) -> None:
    """Write the growth that residuals may have: 1/eps times the smallest one.

    Above it the rounding errors of an iterate exceed the smallest residual, so that no later
    iteration returns to it.
    """
    real = real_dtype(work.dtype)
    given = np.full(work.k, 1 / np.finfo(real).eps, real)
    work.executor.copy_into(work.growth, given)


def halt_if_diverged(w: Any, norm: Any) -> None:
    """Halt a column with a residual of this norm in a step, which has the smallest in ``best``."""
    w.halt(INDEFINITE, when=norm > w.growth * w.best)
