"""Executors that solve the systems of a batch side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .batch.factors import BatchFactors, Determinants, FactoredSystems, Layout
    from .batch.systems import MemberPrograms, Systems
    from .executor import Array, Executor


class SolvesSystems:
    """The part of an executor that solves many systems by the programs of one.

    Attributes
    ----------
    systems_by_plans : bool
        Whether programs of a system use the plan of its matrix, which must not copy values then.
        Elsewhere a kernel of its own reads the arrays of the matrix.
    overwrites_solutions : bool
        Whether :meth:`solve_systems` and :meth:`solve_directly` read no solution that is not a
        start, so that its memory may hold anything before.
    """

    systems_by_plans = True
    overwrites_solutions = False

    def system_places(self) -> Sequence[Executor]:
        """Return executors that solve the systems of a batch side by side; none by default.

        The solver records the programs of one system on each. Without any it solves the systems of
        a batch one after the other.
        """
        return ()

    def solve_systems(self, members: Sequence[MemberPrograms], systems: Systems) -> bool:
        """Solve many systems by the programs of one; return whether the executor did.

        ``members`` are the programs on :meth:`system_places`, in their order.
        """
        return False

    def factorize_systems(self, layout: Layout, values: Array) -> BatchFactors | None:
        """Factorize matrices side by side; None where the executor has no kernel for it.

        Parameters
        ----------
        layout : Layout
            The positions of the entries in the factors.
        values : array, shape (b, nnz)
            One row for each matrix.
        """
        return None

    def solve_factored(self, factors: BatchFactors, systems: FactoredSystems) -> None:
        """Solve systems by factors that :meth:`factorize_systems` made; write their verdicts.

        Parameters
        ----------
        factors : BatchFactors
            The factors of all matrices.
        systems : FactoredSystems
            Right-hand sides, solutions and the arrays of the verdicts.
        """
        raise NotImplementedError

    def solve_directly(self, layout: Layout, systems: FactoredSystems) -> bool:
        """Factorize matrices and solve their systems in one pass, which keeps no factors.

        Parameters
        ----------
        layout : Layout
            The positions of the entries in the factors.
        systems : FactoredSystems
            Right-hand sides in the order of their matrices, solutions and verdicts.

        Returns
        -------
        bool
            False where the executor has no kernel for it.
        """
        return False

    def determinants_of(self, layout: Layout, values: Array) -> Determinants | None:
        """Return the determinants of matrices, or None where factors have them.

        Parameters
        ----------
        layout : Layout
            The positions of the entries in the factors.
        values : array, shape (b, nnz)
            One row for each matrix.
        """
        return None
