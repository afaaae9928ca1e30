"""Factors on the host that replace inaccurate factors of a device."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...core.registry import executor as executor_by_name
from .engine import EngineFactors, LogDeterminant
from .superlu import SuperLU

if TYPE_CHECKING:
    from ...core.executor import Array
    from ...core.formats import Csr


class HostFactors(EngineFactors):
    """Factors by SuperLU of a matrix on a device; vectors are copied to the host and back.

    Parameters
    ----------
    A : Csr
        The matrix, sorted and without duplicates.
    why : str
        The reason: the beginning of a sentence in the notes.

    Raises
    ------
    InvalidMatrix
        If the matrix is singular to working precision.
    """

    def __init__(self, A: Csr, why: str) -> None:
        self.executor = A.executor
        engine, matrix = SuperLU(), A.to(executor_by_name("reference"))
        engine.analyse(matrix)
        self._factors = engine.factorize(matrix)
        self.nnz = self._factors.nnz
        self.notes = [
            f"direct: {why}: SuperLU made the factors, on the host, and vectors travel from "
            f"{A.executor.name} and back"
        ]

    def solve(self, b: Array, transposed: str) -> Array:
        """Return the solution of a block of right-hand sides, on the device of the matrix."""
        solved = self._factors.solve(self.executor.to_host(b), transposed)
        return self.executor.from_host(np.ascontiguousarray(solved))

    def log_determinant(self) -> LogDeterminant:
        """Return the determinant of the matrix."""
        return self._factors.log_determinant()
