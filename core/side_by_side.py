"""Executors that solve the systems of a batch in parallel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .batch.factors import BatchFactors, Determinants, FactoredSystems, Layout
    from .batch.systems import MemberPrograms, Systems
    from .executor import Array, Executor


class SolvesSystems:
    """The part of an executor that solves many systems with the programs of one system.

    Attributes
    ----------
    systems_by_plans : bool
        Whether the programs of a system use the plan of its matrix, which must then not contain
        copies of values. If not, a special kernel reads the arrays of the matrix, and steps may
        multiply rows by factors that differ between systems.
    overwrites_solutions : bool
        Whether :meth:`solve_systems` and :meth:`solve_directly` read solutions only if they are
        initial guesses, so that their memory may be uninitialized otherwise.
    """

    systems_by_plans = True
    overwrites_solutions = False

    def system_places(self) -> Sequence[Executor]:
        """Return executors that solve the systems of a batch in parallel; none by default.

        The solver records the programs of one system on each of them. Without any, it solves the
        systems of a batch sequentially.
        """
        return ()

    def solve_systems(self, members: Sequence[MemberPrograms], systems: Systems) -> bool:
        """Solve many systems with the programs of one; return whether the executor did.

        ``members`` are the programs on the executors of :meth:`system_places`, in the same order.
        """
        return False

    def factorize_systems(self, layout: Layout, values: Array) -> BatchFactors | None:
        """Factorize matrices in parallel; return None if the executor has no kernel for it.

        Parameters
        ----------
        layout : Layout
            The positions of the entries in the factors.
        values : array, shape (b, nnz)
            Values of each matrix in a row.
        """
        return None

    def solve_factored(self, factors: BatchFactors, systems: FactoredSystems) -> None:
        """Solve systems with the factors of :meth:`factorize_systems`; write their verdicts.

        Parameters
        ----------
        factors : BatchFactors
            The factors of all matrices.
        systems : FactoredSystems
            Right-hand sides, solutions and arrays for the verdicts.
        """
        raise NotImplementedError

    def solve_directly(self, layout: Layout, systems: FactoredSystems) -> bool:
        """Factorize matrices and solve their systems in one pass without storing factors.

        Parameters
        ----------
        layout : Layout
            The positions of the entries in the factors.
        systems : FactoredSystems
            Right-hand sides in the order of their matrices, solutions and arrays for the verdicts.

        Returns
        -------
        bool
            False if the executor has no kernel for it.
        """
        return False

    def determinants_of(self, layout: Layout, values: Array) -> Determinants | None:
        """Return the determinants of matrices, or None if factors are to compute them.

        Parameters
        ----------
        layout : Layout
            The positions of the entries in the factors.
        values : array, shape (b, nnz)
            Values of each matrix in a row.
        """
        return None
