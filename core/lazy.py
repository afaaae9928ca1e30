"""Lazy sums, products and scalings of operators, evaluated when they are applied."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import reduce
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from .assembled import Assembled, product_of_matrices, sum_of_matrices
from .dtypes import common_dtype, requested_dtype
from .errors import InvalidArgument, ShapeMismatch, UnsupportedOperation
from .executor import brought_together
from .factors import number
from .linop import FACTS, LinOp, added, product, scaled
from .operations import vector
from .precision import in_double
from .room import with_room_after
from .wording import counted

if TYPE_CHECKING:
    from .executor import Array, Executor
    from .formats.csr import Csr


class Temporary:
    """Temporary blocks that a composed operator reuses, by their number of columns.

    Only one application uses a block at a time, because several threads may apply an operator.
    """

    def __init__(self) -> None:
        self._free: dict[int, list[Array]] = {}

    def __repr__(self) -> str:
        blocks = sum(map(len, self._free.values()))
        return f"<temporary memory: {counted(blocks, 'block')} at hand>"

    @contextmanager
    def block(
        self, executor: Executor, rows: int, columns: int, dtype: np.dtype[Any], room: int = 0
    ) -> Iterator[Array]:
        """Lend a block of shape (rows, columns) in a ``with`` block; its contents are arbitrary.

        ``room`` is the attribute of the operator that is applied to the block, and never changes.
        """
        free = self._free.setdefault(columns, [])
        try:
            block = free.pop()
        except IndexError:
            block = with_room_after(executor, rows, room, columns, dtype)
        try:
            yield block
        finally:
            free.append(block)

    def __reduce__(self) -> tuple[Any, ...]:
        return Temporary, ()


class _Composed(Assembled):
    """The common base of sums, products and scalings; all parts are on one executor."""

    _fixed_attributes: ClassVar[dict[str, str]] = FACTS

    def __init__(self, *parts: LinOp, dtype: np.dtype[Any] | None = None) -> None:
        parts = brought_together(type(self).__name__.lower(), *parts)
        self.executor = parts[0].executor
        self._follows = all(part._follows for part in parts)
        self.dtype = common_dtype(*(p.dtype for p in parts), *([dtype] if dtype else []))
        self.parts = tuple(p.astype(self.dtype) for p in parts)

    @property
    def partition(self) -> Any:
        """The partition of the rows if a group of executors shares the operator, or None."""
        return self.parts[0].partition

    @property
    def column_partition(self) -> Any:
        """The partition of the rows of the input vectors, or None."""
        return self.parts[-1].column_partition

    @property
    def local_rows(self) -> int:
        """The length of this executor's part of the output vectors."""
        return self.parts[0].local_rows

    @property
    def resident(self) -> bool:
        """Whether applying consists of executor operations alone."""
        return all(part.resident for part in self.parts)

    @property
    def varies(self) -> bool:
        """Whether a part is not a fixed linear map."""
        return any(part.varies for part in self.parts)

    @property
    def _has_entries(self) -> bool:  # type: ignore[override]
        return all(part._has_entries for part in self.parts)

    @property
    def _rebuilds(self) -> int:  # type: ignore[override]
        return sum(part._rebuilds for part in self.parts)

    @property
    def _is_light(self) -> bool:  # type: ignore[override]
        return all(part._is_light for part in self.parts)

    def _matrices(self) -> list[Csr]:
        """Return the parts as matrices."""
        unknown = [type(part).__name__ for part in self.parts if not hasattr(part, "tocsr")]
        if unknown:
            raise UnsupportedOperation(
                f"this {type(self).__name__} has no entries to make a matrix of: its part "
                f"{unknown[0]} is known by its products alone; A.to_dense() applies it "
                "to every unit vector"
            )
        return [
            part._entries() if isinstance(part, Assembled) else part.tocsr()  # type: ignore[attr-defined]
            for part in self.parts
        ]

    def _refuse_lost_factors(self) -> None:
        for part in self.parts:
            if isinstance(part, Assembled):
                part._refuse_lost_factors()

    def _with_parts(self, *parts: LinOp) -> Self:
        return type(self)(*parts)

    def _follow_writes(self) -> None:
        for part in self.parts:
            part._follow_writes()

    def _private(self) -> Self:
        return self._with_parts(*(part._private() for part in self.parts))

    def _in_double(self) -> LinOp | None:
        parts = [in_double(part) for part in self.parts]
        known = [part for part in parts if part is not None]
        return self._with_parts(*known) if len(known) == len(parts) else None

    def to(self, executor: Executor | str) -> Self:
        """Return this operator on another executor; itself if it is there already."""
        return self._with_parts(*(p.to(executor) for p in self.parts))

    def astype(self, dtype: Any) -> Self:
        """Return this operator computing in ``dtype``; itself if it does already."""
        dtype = requested_dtype(dtype)
        if dtype == self.dtype:
            return self
        result = self._with_parts(*(p.astype(dtype) for p in self.parts))
        if result.dtype != dtype:  # a complex factor
            raise InvalidArgument("a complex operator cannot be computed in a real dtype")
        return result


class Sum(_Composed):
    """The lazy sum of operators of the same shape."""

    def __init__(self, *parts: LinOp) -> None:
        if len({part.shape for part in parts}) != 1:
            shapes = " + ".join(f"{m}x{n}" for m, n in (p.shape for p in parts))
            raise ShapeMismatch(f"operators of different shapes have no sum: {shapes}")
        super().__init__(*parts)
        self.shape = parts[0].shape

    def _entries(self) -> Csr:
        return reduce(sum_of_matrices, self._matrices())

    def _apply(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        for part in self.parts:
            part._apply(x, y, alpha, beta)
            beta = 1.0

    @property
    def T(self) -> LinOp:
        """The transpose."""
        return Sum(*(part.T for part in self.parts))

    @property
    def H(self) -> LinOp:
        """The conjugate transpose."""
        return Sum(*(part.H for part in self.parts))


class Product(_Composed):
    """The lazy product of two operators; the right one is applied first."""

    def __init__(self, left: LinOp, right: LinOp) -> None:
        if left.shape[1] != right.shape[0]:
            raise ShapeMismatch(
                f"no product of {left.shape[0]}x{left.shape[1]} and "
                f"{right.shape[0]}x{right.shape[1]}: {left.shape[1]} columns meet "
                f"{right.shape[0]} rows"
            )
        super().__init__(left, right)
        self.shape = (left.shape[0], right.shape[1])
        self._between = Temporary()

    def _entries(self) -> Csr:
        return product_of_matrices(*self._matrices())

    def _apply(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        left, right = self.parts
        rows, columns = right.local_rows, x.shape[1]
        with self._between.block(self.executor, rows, columns, self.dtype) as between:
            right._apply(x, between, 1.0, 0.0)
            left._apply(between, y, alpha, beta)

    @property
    def T(self) -> LinOp:
        """The transpose."""
        left, right = self.parts
        return Product(right.T, left.T)

    @property
    def H(self) -> LinOp:
        """The conjugate transpose."""
        left, right = self.parts
        return Product(right.H, left.H)


class Scaled(_Composed):
    """An operator times a number.

    The factor is stored with all its digits: a wider operand is multiplied by the unrounded factor.
    If an extreme factor scales an operator of the opposite magnitude, products can overflow, or
    underflow and lose digits. Therefore a part of the factor is applied to the operand before the
    product.
    """

    def __init__(self, factor: Any, part: LinOp) -> None:
        self.factor = number(factor, "factor")
        if isinstance(part, Scaled):
            self.factor, part = self.factor * part.factor, part.parts[0]
        wide = np.dtype(np.complex64) if isinstance(self.factor, complex) else None
        super().__init__(part, dtype=wide)
        self.shape = part.shape
        self._first = _first_half(max(self._sizes()), self.dtype)
        self._operand = Temporary()

    def _with_parts(self, *parts: LinOp) -> Self:
        return type(self)(self.factor, *parts)

    def _entries(self) -> Csr:
        largest = float(np.finfo(self.dtype).max)
        if np.isfinite(self.factor) and any(part > largest for part in self._sizes()):
            self._refuse()
        return self._matrices()[0] * self.factor

    def _refuse_lost_factors(self) -> None:
        super()._refuse_lost_factors()
        least = float(np.finfo(self.dtype).tiny)
        if any(0 < part < least for part in self._sizes()):
            self._refuse()

    def _sizes(self) -> tuple[float, float]:
        """Return the magnitudes of the real and the imaginary part of the factor."""
        return abs(self.factor.real), abs(self.factor.imag)

    def _refuse(self) -> None:
        raise InvalidArgument(
            f"the factor {self.factor} is outside of the range of {self.dtype}, the dtype of this "
            'operator: take A.astype("float64"), or a float64 matrix in its sum or product'
        )

    def _apply(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        (part,) = self.parts
        if self._first == 1.0:
            part._apply(x, y, alpha * self.factor, beta)
            return
        rows, columns = part.local_columns, x.shape[1]
        with self._operand.block(self.executor, rows, columns, self.dtype, part.room) as operand:
            self.executor.run(vector.axpby, x, operand, self._first, 0.0)
            part._apply(operand, y, alpha * (self.factor / self._first), beta)

    @property
    def T(self) -> LinOp:
        """The transpose."""
        return Scaled(self.factor, self.parts[0].T)

    @property
    def H(self) -> LinOp:
        """The conjugate transpose."""
        return Scaled(np.conj(self.factor), self.parts[0].H)


def _first_half(size: float, dtype: np.dtype[Any]) -> float:
    """Return the power of two by which an operand is multiplied before a product.

    If the factor may exceed half of the exponent range of the dtype, the result is the square root
    of its magnitude, rounded to a power of two; otherwise it is 1.
    """
    if not 0 < size < np.inf:
        return 1.0
    exponent = int(np.floor(np.log2(size)))
    return 2.0 ** int(exponent / 2) if 2 * abs(exponent) > np.finfo(dtype).maxexp else 1.0


added.provide(Sum)
product.provide(Product)
scaled.provide(Scaled)
