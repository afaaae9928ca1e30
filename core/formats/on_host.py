"""Host copies of matrices without a fixed executor, for operands on the host."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..registry import host_executor
from ..store import Key

if TYPE_CHECKING:
    from .csr import Csr


class _OnHost:
    """A copy of a matrix on the host, which is updated with its values."""

    def __init__(self, A: Csr) -> None:
        self.matrix: Csr = A.to(host_executor())

    def update_values(self, A: Csr) -> None:
        """Copy new values to the host."""
        self.matrix.update_values(A.executor.to_host(A.data))


_ON_HOST: Key[_OnHost] = Key("a matrix beside operands of the host")


def on_host(A: Csr) -> Csr | None:
    """Return the host copy of a matrix without a fixed executor; None if it needs none."""
    if not A._follows or A.executor.xp is np:
        return None
    return A._copies.get(_ON_HOST, lambda: _OnHost(A)).matrix
