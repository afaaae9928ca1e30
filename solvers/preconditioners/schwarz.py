"""Schwarz methods over a group: another preconditioner on each member's rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...core.deprecation import OldOptions
from ...core.distributed.overlap import overlapping_block, with_ghosts
from ...core.errors import InvalidArgument, UnsupportedOperation
from ...core.lazy import Temporary
from ...core.links import works_alone
from ...core.linop import LinOp
from ...core.operations import vector
from ...core.settings import Settings
from .base import Transposable
from .names import preconditioner

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from ...core.executor import Array, Executor


class Schwarz(Transposable):
    """Restricted additive Schwarz: another preconditioner for the block of each member.

    Parameters
    ----------
    A : matrix, shape (n, n)
        Usually a matrix that a group shares; any other matrix is a single block.
    inner : str or Settings
        The preconditioner of a block, such as ``"ilu"`` or ``wl.preconditioners.Ilu(level=1)``.
    overlap : {0, 1}
        0: the diagonal block of a member's rows, block Jacobi with large blocks; an application has
        no communication. 1: with the adjacent rows. The ghosts of a residual are exchanged as in a
        product with ``A``, and of the block's solution a member uses its own rows.

    Raises
    ------
    InvalidArgument
        If an option is out of its range.
    Exception
        Errors of the inner preconditioner, with the index of the member.

    Notes
    -----
    Without overlap, it is Hermitian positive definite if the inner preconditioners are: suitable
    for CG. With overlap, it is not Hermitian: use GMRES or BiCGSTAB. The number of iterations grows
    with the number of members, since information crosses only one block in an iteration.

    References
    ----------
    X.-C. Cai and M. Sarkis, A restricted additive Schwarz preconditioner for general sparse linear
    systems, SIAM J. Sci. Comput. 21 (1999).

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.distribute(np.diag([2.0, 4.0, 8.0, 5.0]), ["omp:1", "omp:1"])
    >>> wl.preconditioners.Schwarz(A, inner="ilu") @ np.array([2.0, 4.0, 8.0, 5.0])
    array([1., 1., 1., 1.])
    """

    parts = ("inner",)
    over_groups = "products"

    inner: LinOp

    old_options = OldOptions(
        since="0.3",
        removal="0.5",
        positions=("inner",),
        renamed={"M": "inner"},
    )

    def __init__(
        self,
        A: Any,
        *,
        inner: str | Settings = "ilu",
        overlap: int = 0,
        executor: Executor | str | None = None,
    ) -> None:
        if overlap not in (0, 1):
            raise InvalidArgument(f"overlap: expected 0 or 1, got {overlap!r}")
        if not isinstance(inner, (str, Settings)):
            raise InvalidArgument(
                "inner: expected a name or settings, from which each member makes its own; got "
                f"{inner!r}"
            )
        self._requested_inner, self.overlap = inner, int(overlap)
        super().__init__(A, executor=executor)

    def _setup(self, A: Any) -> None:
        alone = A.partition is None
        inner = preconditioner(self._requested_inner, A if alone else self._block(A))
        if inner is None:
            raise InvalidArgument(f"inner: {self._requested_inner!r} is no preconditioner")
        self.notes += [note for note in getattr(inner, "notes", [])]
        # an operator driven by the host may compute sums within its block: it keeps its own
        # executor
        self.inner = inner if alone or not inner.resident else inner.to(A.executor)
        self._temporaries = Temporary(), Temporary(), Temporary()

    def _block(self, A: Any) -> Any:
        return overlapping_block(A) if self.overlap else A.local

    def _operators(self) -> list[LinOp]:
        return [self.inner, self._matrix]

    def _apply(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        A: Any = self._matrix
        if not self.overlap or A.partition is None or works_alone(self.executor):
            self.inner._apply(x, y, alpha, beta)
            return
        k, rows = int(x.shape[1]), A.local_rows
        whole = rows + A.halo.ghosts
        first, second, third = self._temporaries
        executor, dtype = self.executor, self.dtype
        with (
            first.block(executor, whole, k, dtype) as extended,
            second.block(executor, whole, k, dtype) as solved,
            third.block(executor, A.halo.packed, k, dtype) as packed,
        ):
            with_ghosts(A, x, extended, packed)
            self.inner._apply(extended, solved, 1.0, 0.0)
            executor.run(vector.axpby, solved[:rows], y, alpha, beta)

    def _remade(self, change: Any) -> Schwarz:
        copy = super()._remade(change)
        copy._temporaries = Temporary(), Temporary(), Temporary()
        return copy

    def _turned(self, turn: Callable[[Any], Any]) -> Self:
        if self.overlap and self._matrix.partition is not None:
            raise UnsupportedOperation(
                "Schwarz with overlap has no transpose: its restriction would have to be a "
                "prolongation; use overlap=0"
            )
        return super()._turned(turn)
