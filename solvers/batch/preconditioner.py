"""Preconditioners for the matrices of a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...core.batch.shapes import vectors_of
from ...core.errors import ShapeMismatch
from ...core.operands import is_host, native
from ...core.settings import Settings

if TYPE_CHECKING:
    from ...core.batch import BatchMatrix
    from ...core.executor import Executor


class BatchPreconditioner:
    """Preconditioners of the matrices of a batch: ``wl.preconditioners.Jacobi(A)`` of a batch.

    A solver of the batch builds each of them when it solves the system.

    Attributes
    ----------
    A : BatchMatrix
        The matrices.
    settings : Settings
        The class and its options.
    """

    __array_ufunc__ = None

    def __init__(self, A: BatchMatrix, settings: Settings) -> None:
        if A.shape[0] != A.shape[1]:
            raise ShapeMismatch(
                f"{settings.kind.__name__} needs square matrices, got {A.shape[0]}x{A.shape[1]}"
            )
        self.A, self.settings = A, settings
        self.shape, self.batch_shape = A.shape, A.batch_shape
        self.executor, self.dtype = A.executor, A.dtype

    def __repr__(self) -> str:
        return f"<{self.settings} of {self.A!r}>"

    def __getitem__(self, key: Any) -> Any:
        """Return the preconditioner of one matrix, or of each matrix in a part of the batch."""
        part = self.A[key]
        M: Any = self.settings.on(part)
        return M

    def __matmul__(self, X: Any) -> Any:
        """Return the products of all preconditioners with their vectors, in the shape of X."""
        on = self.executor
        blocks, columns = vectors_of(self.A, native(on, X, "X"), "X")
        product = (
            on.xp.stack(
                [self.settings.on(self.A._member(k)) @ blocks[k] for k in range(self.A.count)]
            )
            if self.A.count
            else blocks
        )
        product = product.reshape(*self.batch_shape, self.shape[0], *columns)
        return on.to_host(product) if is_host(X) else product

    def to(self, executor: Executor | str) -> BatchPreconditioner:
        """Return the preconditioners on another executor."""
        return BatchPreconditioner(self.A.to(executor), self.settings)


def batch_preconditioner(kind: type, A: Any, **options: Any) -> BatchPreconditioner:
    """Return the preconditioners of one class for a batch."""
    executor = options.pop("executor", None)
    return BatchPreconditioner(A if executor is None else A.to(executor), Settings(kind, options))
