"""The levels of a hierarchy: matrix, interpolation, restriction, and smoothers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ....core.errors import InvalidArgument, ShapeMismatch
from ....core.formats import Matrix
from ....core.formats.galerkin import adjoint
from ....core.formats.row_sums import rounded_with_row_sums
from ....core.formats.stored import StoredCsr
from ....core.lazy import Temporary
from ....core.linop import LinOp
from ....core.operator_conversions import as_linop

if TYPE_CHECKING:
    from ....core.executor import Executor
    from .smoothers import Smoother


class LevelMatrices(NamedTuple):
    """The matrices of a level; the last level has ``A`` alone."""

    A: Matrix
    P: Matrix | None = None
    R: Matrix | None = None

    def astype(self, dtype: np.dtype[Any]) -> LevelMatrices:
        """Return the matrices with values of ``dtype``."""
        A, P, R = (None if part is None else part.astype(dtype) for part in self)
        assert A is not None
        return LevelMatrices(A, P, R)


@dataclass
class Level:
    """One level, except the coarsest.

    Attributes
    ----------
    A : Matrix, shape (n, n)
        The operator.
    P : Matrix, shape (n, m)
        The interpolation from the next level.
    R : Matrix, shape (m, n)
        The restriction of residuals to the next level.
    before, after : Smoother
        The smoothers before and after the next level is visited.
    """

    A: Matrix
    P: Matrix
    R: Matrix
    before: Smoother
    after: Smoother
    temporaries: tuple[Temporary, ...] = field(default_factory=lambda: _temporaries(), repr=False)

    def remade(self, change: Callable[[LinOp], LinOp]) -> Level:
        """Return the level with changed operators and new temporaries."""
        known: dict[int, LinOp] = {}

        def changed(part: LinOp) -> LinOp:
            """Change each operator once: smoothers also refer to the level's matrix."""
            if id(part) not in known:
                known[id(part)] = change(part)
            return known[id(part)]

        A: Any = changed(self.A)
        before = self.before.remade(A, changed)
        after = before if self.after is self.before else self.after.remade(A, changed)
        P: Any = changed(self.P)
        R: Any = changed(self.R)
        return Level(A, P, R, before, after)

    def stored(self, dtype: Any) -> Level:
        """Return the level with the values of its matrices stored in a lower dtype.

        Row sums are preserved, so that constant vectors are smoothed, restricted and interpolated
        as before. The restriction remains the adjoint of the interpolation if it was.
        """

        def changed(part: LinOp) -> LinOp:
            if isinstance(part, StoredCsr):  # from an earlier set-up
                return part
            if part is self.A:
                A = self.A.asformat("csr").sort()
                return rounded_with_row_sums(A, dtype, on_diagonal=True).stored(dtype)
            if part is self.P:
                P = self.P.asformat("csr").sort()
                return rounded_with_row_sums(P, dtype, on_diagonal=False).stored(dtype)
            if part is self.R:
                P = rounded_with_row_sums(adjoint(self.R), dtype, on_diagonal=False)
                return adjoint(P).stored(dtype)
            return part

        return self.remade(changed)

    def turned(self, turn: Callable[[LinOp], LinOp]) -> Level:
        """Return the level of the transposed or the adjoint hierarchy."""
        A: Any = turn(self.A)
        P: Any = turn(self.R)
        R: Any = turn(self.P)
        after = self.before.turned(A, turn)
        before = after if self.after is self.before else self.after.turned(A, turn)
        return Level(A, P, R, before, after)

    @property
    def resident(self) -> bool:
        """Whether the work of this level consists of executor operations alone."""
        parts = (self.A, self.P, self.R, self.before, self.after)
        return all(part.resident for part in parts)

    @property
    def varies(self) -> bool:
        """Whether the work of this level is not one fixed linear map, as with a solver in it."""
        parts = (self.A, self.P, self.R, self.before.M, self.after.M)
        return any(part.varies for part in parts)

    @property
    def nbytes(self) -> int:
        """The bytes of the matrices of this level."""
        return sum(int(getattr(part, "nbytes", 0)) for part in (self.A, self.P, self.R))


def _temporaries() -> tuple[Temporary, ...]:
    return tuple(Temporary() for _ in range(8))


def checked_levels(listed: Sequence[Any], executor: Executor | str | None) -> list[LevelMatrices]:
    """Return the matrices of all levels on one executor.

    Raises
    ------
    InvalidArgument
        If a level is not a tuple of matrices, or if there is no level.
    ShapeMismatch
        If adjacent levels do not match; the message names the level.
    """
    levels: list[LevelMatrices] = []
    for number, one in enumerate(listed):
        parts = tuple(one) if isinstance(one, (tuple, list)) else (one,)
        if not 1 <= len(parts) <= 3:
            raise InvalidArgument(
                f"level {number}: expected (A, P, R), (A, P) or A, got {len(parts)} operands"
            )
        matrices = [None if part is None else _matrix(part, number, executor) for part in parts]
        A, P, R = (*matrices, None, None)[:3]
        if A is None:
            raise InvalidArgument(f"level {number}: expected a matrix A, got None")
        if executor is None:
            executor = A.executor
        if P is not None and R is None:
            R = adjoint(P)
        levels.append(LevelMatrices(A, P, R))
    if not levels:
        raise InvalidArgument("levels: expected at least one level (A, P, R), got none")
    _check_shapes(levels)
    return levels


def _matrix(part: Any, number: int, executor: Executor | str | None) -> Matrix:
    matrix = as_linop(part, executor)
    if not isinstance(matrix, Matrix):
        raise InvalidArgument(
            f"level {number}: expected matrices, got {type(part).__name__}: an operator without "
            "known entries has no diagonal to smooth with"
        )
    return matrix if executor is None else matrix.to(executor)


def _check_shapes(levels: list[LevelMatrices]) -> None:
    for number, (A, P, R) in enumerate(levels):
        n = A.shape[0]
        if A.shape[1] != n:
            raise ShapeMismatch(f"level {number}: A is {n}x{A.shape[1]}, not square")
        if number == len(levels) - 1:
            if P is not None or R is not None:
                raise ShapeMismatch(
                    f"level {number} is the last one and has a P: give the next level's matrix "
                    "(R @ A @ P) after it"
                )
            return
        below = levels[number + 1].A.shape[0]
        if P is None or R is None:
            raise InvalidArgument(
                f"level {number}: all levels but the last have (A, P, R) or (A, P)"
            )
        if P.shape != (n, below) or R.shape != (below, n):
            raise ShapeMismatch(
                f"level {number}: A is {n}x{n} and the next level's {below}x{below}, so P is "
                f"{n}x{below} and R {below}x{n}; got {P.shape[0]}x{P.shape[1]} and "
                f"{R.shape[0]}x{R.shape[1]}"
            )
