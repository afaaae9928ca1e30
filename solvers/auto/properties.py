"""The properties of a square matrix that its candidates depend on; each is found when asked for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import real_dtype
from ...core.formats import Csr, Matrix
from ...core.formats.rowwise import row_bounds
from ...core.formats.triangular import host_of
from ...core.operations import coarsen, ordering, values, vector
from ...core.reorder import amd
from ...core.reorder.pattern import pattern
from ..driver.scaling import largest_values
from ..spectrum import row_bound
from .costs import Fill, factor_constants, fill_of
from .structure import UNRELIABLE, Structure, find_structure

if TYPE_CHECKING:
    from .facts import Facts

#: The sum of a row off the diagonal over the diagonal up to which a balanced matrix counts as that
#: of diffusion: sums are larger where many entries off the diagonal are positive.
MOST_OF_DIFFUSION = 1.3

#: SuperLU's order of least degree, for which factors are counted.
MINIMUM_DEGREE = "MMD_AT_PLUS_A"

#: Entries of factors that are counted at most.
MOST_COUNTED = 2**28

#: Units of rounding, for each entry of a row, that a sum of zero may be away from zero.
SLACK = 4


@dataclass(frozen=True)
class Hints:
    """Properties of a matrix that a user states.

    Parameters
    ----------
    near_null : array, shape (n,) or (n, m), optional
        Vectors that the matrix nearly maps to zero.
    coordinates : array, shape (nodes, d), optional
        The positions of the nodes.
    block_size : int, optional
        Unknowns of a node.
    symmetric, positive_definite : bool, optional
        The properties of the matrix.
    """

    near_null: Any = None
    coordinates: Any = None
    block_size: int | None = None
    symmetric: bool | None = None
    positive_definite: bool | None = None

    @property
    def given(self) -> bool:
        """Whether there is any."""
        return any(value is not None for value in vars(self).values())


class Properties:
    """The properties of a square matrix.

    Parameters
    ----------
    A : matrix
        The matrix.
    facts : Facts
        Its counts.
    structure : dict
        Keeps data that depend on the pattern alone, for other values.
    hints : Hints
        The user's statements.
    """

    def __init__(
        self, A: Matrix, facts: Facts, structure: dict[str, Any], hints: Hints | None = None
    ) -> None:
        self.A, self.facts, self._known = A, facts, structure
        self.hints = Hints() if hints is None else hints

    @property
    def has_structure(self) -> bool:
        """Whether the structure of the pattern is known by now."""
        return "structure" in self._known

    @property
    def structure(self) -> Structure:
        """The structure of the pattern."""
        if "structure" not in self._known:
            self._known["structure"] = find_structure(self.A, hermitian=self.facts.hermitian)
        found: Structure = self._known["structure"]
        return found

    @property
    def block_size(self) -> int:
        """Unknowns of a node: as stated, or as the pattern shows."""
        if self.hints.block_size is not None:
            return int(self.hints.block_size)
        return self.structure.block_size if self.has_structure else 1

    @cached_property
    def dominance(self) -> float:
        """The largest sum of a row off the diagonal over the diagonal: below 1 it dominates."""
        if not self.facts.rows or self.facts.not_invertible:
            return np.inf
        return row_bound(self.A.asformat("csr")) - 1.0

    @property
    def looks_diffusive(self) -> bool:
        """Whether the matrix is like that of a diffusion equation for one unknown."""
        return self.facts.looks_diffusive and self.dominance < MOST_OF_DIFFUSION

    @property
    def fill(self) -> Fill:
        """The estimated factors of a direct solver."""
        if "counted" in self._known:
            counted: Fill = self._known["counted"]
            return min(counted, fill_of(self.structure), key=lambda fill: fill.seconds)
        return fill_of(self.structure)

    @property
    def counting_seconds(self) -> float:
        """The time to count the factors' entries, 0 if the estimate does not need it."""
        if "counted" in self._known or self.structure.dimension < UNRELIABLE:
            return 0.0
        return 5e-4 + 2 * factor_constants().ordered * self.structure.entries

    def count_fill(self, most: float) -> None:
        """Order the rows by least degree and count the entries of the factors, up to ``most``."""
        began = perf_counter()
        both = pattern(self.A)
        order = np.asarray(self.A.executor.to_host(amd(self.A).indices), both.indices.dtype)
        entries, operations = np.zeros(1, np.int64), np.zeros(1, np.int64)
        limit = int(min(most, MOST_COUNTED))
        host_of(self.A.executor, ordering.fill).run(
            ordering.fill, both.indptr, both.indices, order, limit, entries, operations
        )
        found = 2.0 * float(entries[0])
        times = 2.0 * float(operations[0])
        if entries[0] > limit:
            found, times = np.inf, np.inf
        rules = factor_constants()
        seconds = perf_counter() - began
        seconds += rules.filled * found + rules.operation * times + 1e-3
        self._known["counted"] = Fill(found, times, seconds, ordering=MINIMUM_DEGREE)

    @cached_property
    def constant_null_space(self) -> bool:
        """Whether the matrix maps constants to zero, to rounding."""
        rows: Csr = self.A.asformat("csr")
        executor, n, real = rows.executor, rows.shape[0], real_dtype(rows.dtype)
        if n == 0 or self.A.partition is not None:
            return False
        ones, image = executor.allocate((n, 1), rows.dtype), executor.zeros((n, 1), rows.dtype)
        executor.run(vector.fill, ones, 1.0)
        rows._apply(ones, image, 1.0, 0.0)
        sizes, most = executor.allocate((n,), real), executor.allocate((1,), real)
        executor.run(coarsen.absolute_sums, *row_bounds(rows), rows.data, sizes)
        executor.run(values.largest, sizes.reshape(n, 1), most)
        slack = SLACK * float(np.finfo(real).eps) * max(rows.nnz / n, 1.0)
        apart = float(largest_values(executor, image)[0])
        return apart <= slack * float(executor.to_host(most)[0])
