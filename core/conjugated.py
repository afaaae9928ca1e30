"""The conjugate of an operator, which derives one transpose from the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

from .linop import FACTS, LinOp, conjugated
from .operations import vector

if TYPE_CHECKING:
    from .executor import Array, Executor


class Conjugated(LinOp):
    """``x -> conj(A conj(x))``, the operator with the conjugates of the entries of ``A``.

    Parameters
    ----------
    part : LinOp
        The operator ``A``.
    """

    _fixed_attributes: ClassVar[dict[str, str]] = FACTS

    def __init__(self, part: LinOp) -> None:
        self.part = part
        self.shape, self.dtype, self.executor = part.shape, part.dtype, part.executor
        self._follows = part._follows

    @property
    def resident(self) -> bool:
        """Whether applying consists of executor operations alone: array functions conjugate."""
        return False

    @property
    def varies(self) -> bool:
        """Whether the part is not a fixed linear map."""
        return self.part.varies

    @property
    def partition(self) -> Any:
        """The partition of the rows if a group of executors shares the operator, or None."""
        return self.part.partition

    @property
    def column_partition(self) -> Any:
        """The partition of the rows of the input vectors, or None."""
        return self.part.column_partition

    @property
    def local_rows(self) -> int:
        """The length of this executor's part of the output vectors."""
        return self.part.local_rows

    def _apply(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        product = self.executor.allocate((y.shape[0], x.shape[1]), self.dtype)
        self.part._apply(x.conj(), product, 1.0, 0.0)
        self.executor.run(vector.axpby, product.conj(), y, alpha, beta)

    def _private(self) -> Self:
        return type(self)(self.part._private())

    @property
    def T(self) -> LinOp:
        """The transpose."""
        return conjugated(self.part.T)

    @property
    def H(self) -> LinOp:
        """The conjugate transpose."""
        return self.part.T

    def to(self, executor: Executor | str) -> LinOp:
        """Return this operator on another executor; itself if it is there already."""
        moved = self.part.to(executor)
        return self if moved is self.part else type(self)(moved)

    def astype(self, dtype: Any) -> LinOp:
        """Return this operator computing in ``dtype``; itself if it does already."""
        made = self.part.astype(dtype)
        return self if made is self.part else conjugate_of(made)


def conjugate_of(part: LinOp) -> LinOp:
    """Return the operator with conjugated entries; a real operator is returned itself."""
    if part.dtype.kind != "c":
        return part
    return part.part if isinstance(part, Conjugated) else Conjugated(part)


conjugated.provide(conjugate_of)
