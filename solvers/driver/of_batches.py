"""The solver's side of batches: from a solver to a solver of batches, and repeated solves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ...core.stopping import Criterion


class OfBatches:
    """The methods of a solver that batches need."""

    stop: Criterion
    _scales: dict[str, Any]
    _workspaces: dict[tuple[str, int], list[Any]]

    @classmethod
    def of_batch(cls, A: Any, *arguments: Any, **options: Any) -> Any:
        """Return a batch solver for every matrix of a batch; ``Cg(A)`` of a batch calls it."""
        from ..batch.solver import batch_solver

        return batch_solver(cls, A, *arguments, **options)

    def _stop_at(self, stop: Criterion) -> None:
        """Replace the criterion for the next solves, and reset the scales of earlier systems."""
        self.stop = stop
        if self._scales:
            self._scales.clear()
            self._workspaces.clear()
        for name in ("_period", "_linear", "_goes_straight"):
            self.__dict__.pop(name, None)
