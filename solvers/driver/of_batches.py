"""Solvers that become solvers of batches, and of one system after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ...core.stopping import Criterion


class OfBatches:
    """The part of a solver that batches need."""

    stop: Criterion
    _scales: dict[str, Any]
    _workspaces: dict[tuple[str, int], list[Any]]

    @classmethod
    def of_batch(cls, A: Any, *arguments: Any, **options: Any) -> Any:
        """Return the solver of every matrix of a batch; ``Cg(A)`` of a batch calls it."""
        from ..batch.solver import batch_solver

        return batch_solver(cls, A, *arguments, **options)

    def _stop_at(self, stop: Criterion) -> None:
        """Take another criterion for the next solves, and forget scales of another system."""
        self.stop = stop
        if self._scales:
            self._scales.clear()
            self._workspaces.clear()
        for name in ("_period", "_linear", "_goes_straight"):
            self.__dict__.pop(name, None)
