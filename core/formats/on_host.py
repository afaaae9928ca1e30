"""Matrices without a home, beside operands of the host."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..registry import host_executor
from ..store import Key

if TYPE_CHECKING:
    from .csr import Csr


class _OnHost:
    """A copy of a matrix on the host, which follows its values."""

    def __init__(self, A: Csr) -> None:
        self.matrix: Csr = A.to(host_executor())

    def update_values(self, A: Csr) -> None:
        """Take over new values."""
        self.matrix.update_values(A.executor.to_host(A.data))


_ON_HOST: Key[_OnHost] = Key("a matrix beside operands of the host")


def on_host(A: Csr) -> Csr | None:
    """Return a matrix without a home on the host, or None if it has one or is there; made once."""
    if not A._follows or A.executor.xp is np:
        return None
    return A._copies.get(_ON_HOST, lambda: _OnHost(A)).matrix
