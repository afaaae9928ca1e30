"""Solves with triangular matrices: level schedules, and the data stored for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

import numpy as np

from .. import triangle_rules
from ..capture import refuse_making
from ..dtypes import common_dtype, is_narrow
from ..errors import InvalidArgument, InvalidMatrix, ShapeMismatch
from ..operands import as_block, like
from ..operations import triangular, vector
from ..registry import executor as executor_by_name
from ..registry import host_name
from ..small_values import as_dtype, conjugated, for_zero_tests, unflushed
from ..store import Key

if TYPE_CHECKING:
    from ..executor import Array, Executor
    from ..operation import Operation
    from .csr import Csr

#: How to read the triangle: itself, its transpose, its conjugate transpose.
TRANSPOSES = ("N", "T", "H")


#: Host arrays.
Host: TypeAlias = np.ndarray[Any, Any]


class Segment(NamedTuple):
    """Levels that one call computes: one wide level if ``bounds`` is None, otherwise several."""

    rows: Array
    bounds: Array | None


def segments(A: Csr, *, upper: bool) -> tuple[Segment, ...]:
    """Return the rows of a triangle in an order in which each row follows its dependencies.

    The order is computed on the host once per pattern, and stored with it. Executors that launch
    kernels compute each wide level in its own launch, and a run of narrow levels in one launch. A
    run of wide levels below a limit is also one launch
    (:class:`~wollemi.core.triangle_rules.TriangleRules`).

    References
    ----------
    E. Anderson and Y. Saad, Solving sparse triangular linear systems on parallel computers, Int. J.
    High Speed Computing 1 (1989).
    """
    return A._pattern.get(_SEGMENTS.of_size(upper), lambda: _make_segments(A, upper))


_SEGMENTS: Key[tuple[Segment, ...]] = Key("levels of a triangle")


def lanes(A: Csr, *, upper: bool) -> tuple[Array, ...] | None:
    """Return the distribution of a triangle over threads, or None if levels are faster.

    It depends on the pattern and on the number of threads; it is computed once and stored with the
    pattern.
    """

    def make() -> tuple[Array, ...] | None:
        share = triangle_rules.rules_of(A.executor).lanes
        return None if share is None else share(A.executor, A.indptr, A.indices, int(upper))

    return A._pattern.get(_LANES.of_size(upper, A.executor.name), make)


_LANES: Key[tuple[Any, ...] | None] = Key("lanes of a triangle")


def prepare_substitution(A: Csr, *, upper: bool) -> None:
    """Find the lanes or levels of a triangle now: a recorded substitution could not."""
    if lanes(A, upper=upper) is None:
        segments(A, upper=upper)


def host_of(executor: Executor, operation: Operation) -> Executor:
    """Return a host executor that has an operation; ``executor`` itself if possible."""
    if executor.supports(operation):
        return executor
    return executor_by_name(host_name())


def _make_segments(A: Csr, upper: bool) -> tuple[Segment, ...]:
    executor, dtype = A.executor, A.index_dtype
    indptr, indices = (np.asarray(executor.to_host(a)) for a in (A.indptr, A.indices))
    rules = triangle_rules.rules_of(executor)
    found = _levels_of_rows if rules.level_rows is not None else _levels_of_runs
    order, widths = found(host_of(executor, triangular.levels), indptr, indices, upper)
    bounds = np.concatenate([[0], np.cumsum(widths)])
    rows = executor.from_host(order)
    made = []
    for first, last, joined in _runs(widths, rules.level_rows, rules.joined_rows):
        begin, end = int(bounds[first]), int(bounds[last])
        inner = (bounds[first : last + 1] - begin).astype(dtype)
        made.append(Segment(rows[begin:end], executor.from_host(inner) if joined else None))
    return tuple(made)


def _levels_of_rows(
    executor: Executor, indptr: Host, indices: Host, upper: bool
) -> tuple[Host, Host]:
    """Return the rows sorted by level, and the number of rows in each level."""
    level = np.empty(indptr.size - 1, indices.dtype)
    executor.run(triangular.levels, indptr, indices, int(upper), level)
    order = np.argsort(level, kind="stable").astype(indices.dtype)
    return order, np.bincount(level) if level.size else np.zeros(0, np.int64)


def _levels_of_runs(
    executor: Executor, indptr: Host, indices: Host, upper: bool
) -> tuple[Host, Host]:
    """Return the same for runs of consecutive dependent rows, such as the lines of a grid.

    One thread computes a run row by row, with the operands of each row in its cache. The number of
    levels is the longest chain of runs, which is shorter than a chain of rows.
    """
    n, dtype = indptr.size - 1, indices.dtype
    if n == 0:
        return np.zeros(0, dtype), np.zeros(0, np.int64)
    row = np.repeat(np.arange(n, dtype=dtype), np.diff(indptr))
    alone = np.ones(n, bool)  # rows that do not depend on the adjacent row
    alone[row[indices == row + (1 if upper else -1)]] = False
    first = np.flatnonzero(np.concatenate([[True], alone[:-1] if upper else alone[1:]]))
    length = np.diff(np.append(first, n))
    run = np.repeat(np.arange(first.size, dtype=dtype), length)
    level = np.empty(first.size, dtype)
    bounds = indptr[np.append(first, n)]
    executor.run(triangular.levels, bounds, run[indices], int(upper), level)
    order = np.argsort(level, kind="stable")
    if upper:
        order = first.size - 1 - np.argsort(level[::-1], kind="stable")
    lengths = length[order]
    within = np.arange(n) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    start = (first + length - 1 if upper else first)[order]
    rows = np.repeat(start, lengths) + (-within if upper else within)
    return rows.astype(dtype), np.bincount(level, weights=length).astype(np.int64)


def _runs(
    widths: np.ndarray[Any, Any], least: int | None, most: int
) -> Iterator[tuple[int, int, bool]]:
    """Yield each run of levels: its first level, the end, and whether one call computes it.

    Consecutive narrow levels (fewer than ``least`` rows) form a run, and so do levels with
    ``least`` to ``most`` rows. A wider level is a run of its own. The flag is False for a single
    wide level.
    """
    if least is None:
        kinds = np.zeros(widths.size, int)
    else:
        kinds = (widths >= least).astype(int) + (widths >= max(least, most))
    cuts = np.flatnonzero((np.diff(kinds) != 0) | (kinds[1:] == 2)) + 1
    ends = [*cuts.tolist(), widths.size] if widths.size else []
    for first, last in zip([0, *ends], ends, strict=False):
        yield first, last, kinds[first] == 0 or (kinds[first] == 1 and last - first > 1)


def substitute(A: Csr, inverse: Array, x: Array, *, upper: bool, factor: complex = -1.0) -> None:
    """Set ``x_i = inverse_i (x_i + factor sum_(j < i) a_ij x_j)``, in place; ``j > i`` if upper.

    Parameters
    ----------
    A : Csr, shape (n, n)
        The matrix; entries on the diagonal and in the other triangle are not read.
    inverse : array, shape (n,)
        The inverse of the diagonal; ones for a unit diagonal.
    x : array, shape (n, k)
        The right-hand sides, which are overwritten with the solutions.
    """
    run, arrays = A.executor.run, (A.indptr, A.indices, A.data)
    shared = lanes(A, upper=upper)
    if shared is not None:
        run(triangular.lanes, *shared, *arrays, inverse, factor, int(upper), x)
        return
    for rows, bounds in segments(A, upper=upper):
        if bounds is None:
            run(triangular.level, rows, *arrays, inverse, factor, int(upper), x)
        else:
            run(triangular.substitute, rows, bounds, *arrays, inverse, factor, int(upper), x)


class Triangle:
    """A triangle of a matrix with the inverse of its diagonal; it is updated with the values.

    Parameters
    ----------
    A : Csr, shape (n, n)
        The matrix.
    upper, unit : bool
        Which triangle it is, and whether its diagonal counts as ones.
    transpose : {"N", "T", "H"}
        Whether the triangle is then transposed.
    """

    def __init__(self, A: Csr, upper: bool, unit: bool, transpose: str) -> None:
        self.unit, self.transpose = unit, transpose
        self.upper = upper == (transpose == "N")
        self.matrix, self.inverse = self._matrix_and_inverse(A)

    def _matrix_and_inverse(self, A: Csr) -> tuple[Csr, Array]:
        matrix = A._with_data(A.data)  # a reference to A would form a cycle
        if self.transpose != "N":
            pattern, order = A.transposed_pattern()
            data = A.data[order]
            matrix = pattern._with_data(
                conjugated(A.executor, data) if self.transpose == "H" else data
            )
        if self.unit:
            return matrix, A.executor.xp.ones(A.shape[0], dtype=A.dtype)
        return matrix, _inverse_diagonal(matrix)

    def update_values(self, A: Csr) -> None:
        """Store the new values; :meth:`prepare` reads them."""
        self._outdated = A._with_data(A.data)

    _outdated: Csr | None = None

    def prepare(self) -> None:
        """Find the row order and read new values; only this call refuses invalid values."""
        if self._outdated is not None:
            refuse_making("the triangle of new values")
            self.matrix, self.inverse = self._matrix_and_inverse(self._outdated)
            self._outdated = None
        prepare_substitution(self.matrix, upper=self.upper)

    def solve(self, x: Array) -> None:
        """Solve with the triangle, in place, after :meth:`prepare`."""
        substitute(self.matrix, self.inverse, x, upper=self.upper)


_TRIANGLE: Key[Triangle] = Key("triangle")


def _inverse_diagonal(A: Csr) -> Array:
    xp = A.executor.xp
    d = A.diagonal()
    missing = for_zero_tests(A.executor, d) == 0
    if bool(xp.any(missing)):
        values = np.asarray(A.executor.to_host(d))
        row = int(np.flatnonzero(values == 0)[0])
        raise InvalidMatrix(
            f"solve_triangular: the diagonal is 0 in row {row}: the triangle is singular; "
            "unit=True takes ones for the diagonal"
        )
    return unflushed(A.executor, lambda array: 1 / array, d)


class SolvesTriangles:
    """The methods of a Csr that solve with its triangles."""

    def solve_triangular(
        self, b: Any, *, lower: bool = True, unit: bool = False, trans: str = "N"
    ) -> Any:
        """Solve with a triangle of this matrix by substitution.

        Parameters
        ----------
        b : array, shape (n,) or (n, k)
            Right-hand sides.
        lower : bool
            Whether to use the lower triangle; the entries of the other triangle are not read.
        unit : bool
            Whether the diagonal counts as ones; its entries are then not read.
        trans : {"N", "T", "H"}
            Whether to solve with the triangle, its transpose, or its conjugate transpose.

        Returns
        -------
        array, of the shape and kind of b
            The solution.

        Raises
        ------
        InvalidMatrix
            If the diagonal contains a zero.
        ShapeMismatch, InvalidArgument
            If the matrix is not square, if ``b`` has a wrong shape, or if ``trans`` is invalid.

        Notes
        -----
        Rows of the same level are independent and computed in parallel. On ``omp`` threads process
        blocks of rows in a pipeline if that is estimated to be faster. Levels and blocks are
        computed on the host at first use, and stored with the pattern.

        Examples
        --------
        >>> import numpy as np, wollemi as wl
        >>> A = wl.Csr(np.array([[2.0, 9.0], [1.0, 4.0]]))
        >>> A.solve_triangular(np.array([2.0, 5.0]))
        array([1., 1.])
        >>> A.solve_triangular(np.array([11.0, 4.0]), lower=False)
        array([1., 1.])
        """
        A = cast("Csr", self)
        n, columns = A.shape
        if n != columns:
            raise ShapeMismatch(f"solve_triangular needs a square matrix, got {n}x{columns}")
        if trans not in TRANSPOSES:
            raise InvalidArgument(f"trans: expected one of N, T, H, got {trans!r}")
        operands = (A, b, lower, unit, trans)
        return A.executor.submit("A.solve_triangular", A, _solve_triangular, *operands)


def _solve_triangular(A: Csr, b: Any, lower: bool, unit: bool, trans: str) -> Any:
    executor, n = A.executor, A.shape[0]
    block = as_block(executor, b, n, "b")
    if is_narrow(A.dtype):
        A = A.astype(np.float32)
    dtype = common_dtype(A.dtype, block.dtype)
    A = A.astype(dtype)
    key = _TRIANGLE.of_size(bool(lower), bool(unit), trans)
    triangle = A._copies.get(key, lambda: Triangle(A, not lower, bool(unit), trans))
    triangle.prepare()
    x = executor.allocate(tuple(block.shape), dtype)
    executor.run(vector.axpby, as_dtype(executor, block, dtype), x, 1.0, 0.0)
    triangle.solve(x)
    return like(executor, x, b)
