"""Operators of extreme sizes are scaled for a solver, after a solve failed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ...core.dtypes import name_of
from .scaling import UNSCALED, Scales, scale_for

if TYPE_CHECKING:
    from ...core.linop import LinOp
    from .workspace import Workspace


class Rescaling:
    """The part of a solver that stores the factors of its operators."""

    #: Whether the iterates are the same for every positive factor of ``A`` and of ``M``. Operators
    #: of extreme sizes are scaled where a solve failed.
    RESCALES: ClassVar[bool] = True

    A: LinOp
    _scales: dict[str, Scales]

    def _scales_in(self, dtype: Any) -> Scales:
        """Return the scales of solves in a dtype."""
        return self._scales.get(name_of(np.dtype(dtype)), UNSCALED)

    def rescale(self, work: Workspace) -> bool:
        """Scale operators of extreme sizes, for further solves in the dtype of a workspace.

        Asked after a solve failed; an operator is measured by a product with one vector.

        Returns
        -------
        bool
            Whether the scales are others now, so that the solve is worth repeating.
        """
        version = int(getattr(self.A, "_values_version", 0))
        if not self.RESCALES or not work.n or work.measured == version:
            return False
        work.measured = version
        M = None if work.M is None or work.M.varies else work.M
        more = Scales(scale_for(work.A), 1.0 if M is None else scale_for(M))
        if more == UNSCALED:
            return False
        made = Scales(more.A * work.scales.A, more.M * work.scales.M)
        self._scales[name_of(work.dtype)] = made
        return True
