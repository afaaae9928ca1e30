"""The properties of a square matrix that determine its candidates, each computed on first use."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import log2
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.errors import InvalidArgument, ShapeMismatch
from ...core.formats import Matrix
from ...core.formats.triangular import host_of
from ...core.operations import ordering
from ...core.reorder import amd
from ...core.reorder.pattern import pattern
from ..spectrum import row_bound
from .costs import Fill, factor_constants, fill_of
from .sample import Sample, sampled_rows
from .structure import UNRELIABLE, Structure, find_structure, is_triangular

if TYPE_CHECKING:
    from .facts import SystemFacts

    Numbers = np.ndarray[Any, Any]

#: A balanced matrix counts as diffusion if the ratio of off-diagonal row sum to diagonal entry is
#: below this value in every row. The ratio is larger if many off-diagonal entries are positive.
MOST_OF_DIFFUSION = 1.3

#: The rows of a non-Hermitian matrix count as out of order if more than this fraction of the
#: diagonal has no inverse.
OUT_OF_ORDER = 0.1

#: SuperLU's minimum degree ordering, for which the entries of the factors are counted.
MINIMUM_DEGREE = "MMD_AT_PLUS_A"

#: Factor of the counted entries if rows are exchanged: 1.9 to 2.3 for saddle point problems and KKT
#: systems of 750 to 4025 rows.
PIVOTED = 2.2

#: Seconds of the minimum degree ordering: COUNTED per entry, and COUNTED_ROW per row, or SPREAD_ROW
#: per row of a pattern that spreads and so has more fill-in. A pattern spreads if its breadth-first
#: search has fewer levels than SPREADS times log2 of the rows. This ratio is 0.8 for saddle point
#: problems, 1.1 to 1.4 for KKT systems, 1.6 to 2.2 for circuits, power flows and power grids.
COUNTED, COUNTED_ROW, SPREAD_ROW, SPREADS = 1.5e-7, 8e-7, 6e-6, 1.4

#: For a pattern with fewer levels than SPREADS_FAST times log2 of the rows, the ordering takes
#: SPREADING seconds times entries times rows. The ratio is 0.4 for Markov chains, 0.7 for graphs.
SPREADING, SPREADS_FAST = 3.5e-9, 0.75

#: With fewer levels, the dimension of a pattern does not predict its fill-in.
FEW_LEVELS = 16

#: Stop counting the entries of the factors at this number.
MOST_COUNTED = 2**28


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

    @cached_property
    def any_stated(self) -> bool:
        """Whether any property is stated."""
        return any(value is not None for value in vars(self).values())

    def check(self, n: int) -> None:
        """Raise InvalidArgument or ShapeMismatch unless the hints suit a square matrix of n rows.

        Hints that no candidate reads are checked as well: a wrong one is an error of the caller.
        """
        for name in ("symmetric", "positive_definite"):
            stated = getattr(self, name)
            if stated is not None and not isinstance(stated, (bool, np.bool_)):
                raise InvalidArgument(f"{name}: expected True, False or None, got {stated!r}")
        size = self.block_size
        if size is not None and not (
            isinstance(size, (int, np.integer)) and size >= 1 and n % size == 0
        ):
            raise InvalidArgument(f"block_size: expected a divisor of {n} rows, got {size!r}")
        modes = None if self.near_null is None else np.shape(self.near_null)
        if modes is not None and (len(modes) not in (1, 2) or modes[0] != n):
            raise ShapeMismatch(f"near_null: expected shape ({n},) or ({n}, m), got {modes}")
        if isinstance(self.near_null, (np.ndarray, list)) and not np.isfinite(self.near_null).all():
            raise InvalidArgument("near_null: expected finite vectors, got NaN or Inf")
        nodes = None if self.coordinates is None else np.shape(self.coordinates)
        if nodes is not None and (len(nodes) != 2 or nodes[0] == 0 or n % nodes[0]):
            raise ShapeMismatch(
                f"coordinates: expected shape (nodes, d), with an equal share of the {n} unknowns "
                f"for each node, got {nodes}"
            )


#: No hints, as in most calls.
NO_HINTS = Hints()


def hints_of(
    near_null: Any,
    coordinates: Any,
    block_size: int | None,
    symmetric: bool | None,
    positive_definite: bool | None,
) -> Hints:
    """Return the hints of a call; without any, always the same object."""
    nothing = near_null is None and coordinates is None and block_size is None
    if nothing and symmetric is None and positive_definite is None:
        return NO_HINTS
    return Hints(near_null, coordinates, block_size, symmetric, positive_definite)


class Properties:
    """The properties of a square matrix.

    Parameters
    ----------
    A : matrix
        The matrix.
    facts : SystemFacts
        The facts about the matrix.
    structure : dict
        Stores data that depend on the pattern alone, for later values.
    hints : Hints
        The user's statements.
    """

    def __init__(
        self, A: Matrix, facts: SystemFacts, structure: dict[str, Any], hints: Hints | None = None
    ) -> None:
        self.A, self.facts, self._known = A, facts, structure
        self.hints = Hints() if hints is None else hints

    @property
    def has_structure(self) -> bool:
        """Whether the structure of the pattern is already known."""
        return "structure" in self._known

    @property
    def structure(self) -> Structure:
        """The structure of the pattern."""
        if "structure" not in self._known:
            self._known["structure"] = find_structure(self.A, hermitian=self.facts.hermitian)
        found: Structure = self._known["structure"]
        return found

    @property
    def is_triangular(self) -> bool:
        """Whether a permutation of rows and columns makes the matrix triangular."""
        if self.has_structure:
            return self.structure.is_triangular
        if "triangular" not in self._known:
            found = is_triangular(self.A, hermitian=self.facts.hermitian)
            self._known["triangular"] = found
        return bool(self._known["triangular"])

    @property
    def block_size(self) -> int:
        """Unknowns per node: as stated, or as found in the pattern."""
        if self.hints.block_size is not None:
            return int(self.hints.block_size)
        return self.structure.block_size if self.has_structure else 1

    @cached_property
    def dominance(self) -> float:
        """The largest ratio of off-diagonal row sum to diagonal entry: below 1, it is dominant."""
        if not self.facts.rows or self.facts.not_invertible:
            return np.inf
        bound = self.facts.bound
        return (row_bound(self.A.asformat("csr")) if bound is None else bound) - 1.0

    @cached_property
    def range_of_diagonal(self) -> float:
        """The ratio of the largest to the smallest nonzero absolute diagonal value."""
        diagonal = self.A.asformat("csr").diagonal()
        sizes = np.abs(np.asarray(self.A.executor.to_host(diagonal)))
        sizes = sizes[sizes > 0]
        return float(sizes.max() / sizes.min()) if sizes.size else 1.0

    @cached_property
    def sample(self) -> Sample:
        """The absolute values of entries in a sample of rows."""
        return Sample(sampled_rows(self.A.asformat("csr")), hermitian=self.facts.hermitian)

    @property
    def looks_diffusive(self) -> bool:
        """Whether the matrix resembles a diffusion problem with one unknown per node."""
        return self.facts.looks_diffusive and self.dominance < MOST_OF_DIFFUSION

    @property
    def is_out_of_order(self) -> bool:
        """Whether the row order does not match the column order: the diagonal has many zeros."""
        facts = self.facts
        return not facts.hermitian and facts.not_invertible > OUT_OF_ORDER * facts.rows

    @property
    def fill(self) -> Fill:
        """The estimated factors of a direct solver."""
        if "counted" in self._known:
            counted: Fill = self._known["counted"]
            return min(counted, fill_of(self.structure), key=lambda fill: fill.seconds)
        return fill_of(self.structure)

    @property
    def counting_seconds(self) -> float:
        """Seconds to count the factors' entries, 0 if the estimate does not need the count."""
        found = self.structure
        reliable = found.dimension < UNRELIABLE and found.levels >= FEW_LEVELS
        if "counted" in self._known or found.is_triangular or reliable:
            return 0.0
        levels = found.levels / log2(max(found.rows, 2))
        if levels < SPREADS_FAST:
            return 5e-4 + SPREADING * found.entries * found.rows
        row = SPREAD_ROW if levels < SPREADS else COUNTED_ROW
        return 5e-4 + COUNTED * found.entries + row * found.rows

    def count_fill(self, most: float) -> None:
        """Order the rows by minimum degree and count the factors' entries, up to ``most``."""
        began = perf_counter()
        both = pattern(self.A)
        order = np.asarray(self.A.executor.to_host(amd(self.A).indices), both.indices.dtype)
        entries, operations = np.zeros(1, np.int64), np.zeros(1, np.int64)
        limit = int(min(most, MOST_COUNTED))
        host_of(self.A.executor, ordering.fill).run(
            ordering.fill, both.indptr, both.indices, order, limit, entries, operations
        )
        # row exchanges add fill-in if diagonal values cannot be pivots
        more = PIVOTED if self.facts.not_invertible else 1.0
        found = 2.0 * more * float(entries[0])
        times = 2.0 * more**2 * float(operations[0])
        if entries[0] > limit:
            found, times = np.inf, np.inf
        rules = factor_constants()
        seconds = perf_counter() - began
        seconds += rules.filled * found + rules.operation * times + 1e-3
        self._known["counted"] = Fill(found, times, seconds, ordering=MINIMUM_DEGREE)
