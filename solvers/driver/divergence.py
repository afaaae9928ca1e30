"""End diverging iterations of methods that neither minimize a norm nor detect a breakdown."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from ...core.dtypes import real_dtype
from ...core.status import Stop
from ...core.step import INDEFINITE
from .workspace import Workspace

#: Steps halt a diverging column with the code of INDEFINITE, which these methods do not need
#: otherwise.
MEANS: Mapping[Stop, Stop] = MappingProxyType({Stop.INDEFINITE: Stop.DIVERGED})


def allow_growth(work: Workspace) -> None:
    """Set the allowed growth of residuals: 1/eps times the smallest one.

    For larger residuals, the rounding errors of the iterate exceed the smallest residual, so that
    no later iteration returns to it.
    """
    real = real_dtype(work.dtype)
    limit_of_growth = np.full(work.k, 1 / np.finfo(real).eps, real)
    work.executor.copy_into(work.growth, limit_of_growth)


def halt_if_diverged(w: Any, norm: Any) -> None:
    """Halt a column in a step if its residual norm exceeds the allowed growth over ``best``."""
    w.halt(INDEFINITE, when=norm > w.growth * w.best)
