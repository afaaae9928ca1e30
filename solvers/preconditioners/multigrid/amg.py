"""Algebraic multigrid: levels from the entries of a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ....core.deprecation import OldOptions
from ....core.distributed.collected import collected
from ....core.dtypes import is_complex, real_dtype
from ....core.errors import InvalidArgument, ShapeMismatch, UnsupportedOperation
from ....core.factors import whole_number
from ....core.formats import Bsr, Csr, Matrix
from ....core.formats.arithmetic import matmul
from ....core.formats.galerkin import adjoint
from ....core.operands import native
from ....core.operations import vector
from ..jacobi import count_without_inverse
from . import aggregation, classical, groups, shared_rows
from .coarsest import ROWS_WITHOUT_SEARCH, inverse_of_large, is_diagonal
from .levels import LevelMatrices
from .multigrid import Multigrid, with_full_diagonals

if TYPE_CHECKING:
    from ....core.executor import Array, Executor
    from ....core.linop import LinOp

KINDS = ("auto", "classical", "aggregation")

#: A matrix with at most this many rows is not coarsened.
COARSEST = 256

#: A coarser level with more than this fraction of the rows is not worth its work.
SLOWEST = 0.9

MOST_LEVELS = 25

#: Threshold of strong couplings for nodes with several unknowns: a beam of 24,000 unknowns takes 15
#: iterations with it and 19 with 0.
COUPLED = 0.08

#: Upper bound of the entries in a row of an interpolation over two steps.
AGGRESSIVE_WIDTH = 6

#: A column of ``near_null`` is a linear combination of earlier ones if at most this many units of
#: rounding remain of it.
DEPENDENT = 10.0

#: The operations of spectral bounds, smoothers and the coarsest level.
CYCLES_RUN = (
    "facts.mirrored", "coarsen.radius", "coarsen.start", "coarsen.power", "values.largest",
    "vector.largest", "smooth.begin", "smooth.go_on", "smooth.residual", "smooth.resume",
    "dense.spmv", "csr.plan", "csr.spmv",
)  # fmt: skip


class Amg(Multigrid):
    """Algebraic multigrid: the levels are built from the entries of the matrix.

    Parameters
    ----------
    A : matrix, shape (n, n)
        A matrix of any format, from the discretization of an elliptic equation: diffusion with any
        coefficients, convection that does not strongly dominate, elasticity with its near null
        space.
    kind : {"auto", "classical", "aggregation"}
        The kind of coarsening. ``"classical"``: some rows are kept, and the others interpolate from
        them: for scalar equations, with jumps and anisotropy. ``"aggregation"``: groups of nodes
        are merged, and the vectors of ``near_null`` are interpolated exactly: for systems such as
        elasticity. ``"auto"`` selects aggregation if ``near_null`` is given or the matrix is a
        ``Bsr`` with blocks, else classical.
    theta : float, optional
        The threshold of strong couplings, between 0 and 1: for ``"classical"``, relative to the
        largest coupling of the row (0.25); for ``"aggregation"``, relative to the diagonals (0.08
        for nodes with several unknowns, 0 for scalar equations), halved on each level.
    near_null : array, shape (n,) or (n, m), optional
        Vectors that the matrix nearly maps to zero, :func:`wollemi.rigid_body_modes` for
        elasticity; the constant by default (one for each unknown of a block).
    block_size : int, optional
        Unknowns per node, which are adjacent; by default, the block size of a ``Bsr``, else 1, or 2
        or 3 with rigid body modes in two or three dimensions.
    width : int, optional
        Upper bound of the entries in a row of the interpolation, for ``"classical"``; 0 keeps all.
        The default is 4, or 6 if rows of the matrix have 18 entries or more on average.
    aggressive : int
        Number of finest levels that are coarsened by two steps at once, for ``"classical"``: the
        level between is left out, and six entries in a row of the product of both interpolations
        are kept (all if ``width`` is 0). The levels then have at most half the entries, which
        reduces the memory and time of a cycle, but takes more iterations: many more if coefficients
        jump from cell to cell.
    smoother, cycle, sweeps, coarsest, dtype, executor
        As for :class:`Multigrid`.
    coarse_rows : int
        Coarsening ends at a level with at most this many rows.

    Attributes
    ----------
    levels : list
        All levels except the coarsest, each with ``A``, ``P`` and ``R``.
    seconds : dict
        Time of the set-up, or of the last update, by phase. A phase ends when its work is
        submitted: on a device, the remaining work counts for the next phase that waits.

    Raises
    ------
    InvalidArgument
        If an option is out of its range, or if a vector of ``near_null`` is zero, has NaN or Inf,
        is complex and the matrix is real, or is a linear combination of the vectors before it.
    ShapeMismatch
        If ``near_null`` does not have the number of rows of the matrix.
    InvalidMatrix
        If a diagonal has a zero, or values are not finite.

    Notes
    -----
    Every step of the set-up runs on the matrix's executor. In real arithmetic, all executors, with
    any number of threads, build bitwise equal levels.

    ``update`` keeps the coarse rows or aggregates and all patterns of interpolations. It recomputes
    the operators of the levels, the bounds of the smoothers and the coarsest inverse.

    The cycle is Hermitian if the matrix is, as CG requires. ``print(M)`` shows the levels.

    For a matrix that a group shares, ``"classical"`` builds the levels of one executor, bitwise if
    executors sum in the same order: members exchange keys, states and interpolation at their
    borders. For ``"aggregation"``, each member aggregates only its own rows. It treats couplings to
    other members as if they were on the diagonal, so that the near null space is still interpolated
    exactly; iterations grow slightly with the number of members. A level of at most 8,192 rows, or
    of at most four million entries on GPUs, is gathered: every member has all further levels, and
    does their work.

    References
    ----------
    H. De Sterck, U. M. Yang, J. J. Heys, Reducing complexity in parallel algebraic multigrid
    preconditioners, SIAM J. Matrix Anal. Appl. 27 (2006), for the coarse rows; R. Li, B. Sjogreen,
    U. M. Yang, A new class of AMG interpolation methods based on matrix-matrix multiplications,
    SIAM J. Sci. Comput. 43 (2021), for interpolation; P. Vanek, J. Mandel, M. Brezina, Algebraic
    multigrid by smoothed aggregation for second and fourth order elliptic problems, Computing 56
    (1996).

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp, wollemi as wl
    >>> line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(40, 40))
    >>> A = wl.Csr(sp.kronsum(line, line, format="csr"))
    >>> M = wl.preconditioners.Amg(A)
    >>> wl.solvers.Cg(A, M, rtol=1e-8).solve(np.ones(1600)).iterations <= 12
    True
    """

    over_groups = "products"
    _keeps_choices = True

    old_options = OldOptions(
        since="0.3",
        removal="0.5",
        positions=(
            "kind",
            "theta",
            "near_null",
        ),
    )

    def __init__(
        self,
        A: Any,
        *,
        kind: str = "auto",
        theta: float | None = None,
        near_null: Any = None,
        block_size: int | None = None,
        width: int | None = None,
        aggressive: int = 0,
        smoother: Any = "chebyshev",
        cycle: str = "V",
        sweeps: int | Sequence[int] = 1,
        coarsest: Any = "dense",
        coarse_rows: int = COARSEST,
        dtype: Any = None,
        executor: Executor | str | None = None,
    ) -> None:
        if kind not in KINDS:
            raise InvalidArgument(f"kind: expected one of {', '.join(KINDS)}, got {kind!r}")
        number = isinstance(theta, (int, float, np.number))
        if theta is not None and not (number and 0 <= theta <= 1):
            raise InvalidArgument(f"theta: expected a number between 0 and 1, got {theta!r}")
        self.kind, self.theta = kind, theta
        self.block_size = None if block_size is None else whole_number(block_size, "block_size", 1)
        self.width = None if width is None else whole_number(width, "width")
        self.coarse_rows = whole_number(coarse_rows, "coarse_rows", 1)
        self.aggressive = whole_number(aggressive, "aggressive")
        self._near_null = near_null
        super().__init__(
            A,
            smoother=smoother,
            cycle=cycle,
            sweeps=sweeps,
            coarsest=coarsest,
            dtype=dtype,
            executor=executor,
        )

    # ---- set-up

    seconds: dict[str, float]

    #: Upper bound of the entries in a row of the interpolation, on every level.
    _width: int

    #: The options of the levels of a gathered matrix, if a group shares the first levels.
    _gathering: _Further

    def _setup(self, A: Matrix) -> None:
        if A.partition is not None and self.level_storage is not None:
            raise UnsupportedOperation(
                f"dtype={str(self.level_storage)!r}: a matrix that a group shares stores its "
                "values in the dtype that it computes in; use dtype='float32'"
            )
        super()._setup(A)

    def _hierarchy(self, A: Matrix) -> list[LevelMatrices]:
        """Return the matrices of all levels; in double precision if rounding would spoil them."""
        if self._is_uncoupled(A):
            self.notes.append(f"amg: {A.shape[0]} rows without couplings: level 0 is the last one")
            return [LevelMatrices(A)]
        found = self._levels_of(A)
        if A.partition is not None:
            return with_full_diagonals(found)
        if not self._spoiled(found):
            return found
        if real_dtype(A.dtype) != np.float64:
            self.notes.append(
                "amg: rounding spoils coarse levels in float32: they are made in float64"
            )
            wide = self._levels_of(A.astype(np.result_type(A.dtype, np.float64)))
            lowered = [level.astype(A.dtype) for level in wide]
            found = [lowered[0]._replace(A=A), *lowered[1:]]
        spoiled = self._spoiled(found)
        if not spoiled:
            return found
        self.notes.append(
            f"amg: rounding leaves nothing of a diagonal entry of level {spoiled}: level "
            f"{spoiled - 1} is the last one"
        )
        return [*found[: spoiled - 1], LevelMatrices(found[spoiled - 1].A)]

    @staticmethod
    def _spoiled(levels: list[LevelMatrices]) -> int:
        """Return the first coarse level with a singular diagonal value, or 0."""
        executor = levels[0][0].executor
        if len(levels) == 1:
            return 0
        counts = [executor.zeros((1,), np.int64) for _ in levels[1:]]
        for count, level in zip(counts, levels[1:], strict=True):
            count_without_inverse(level.A, count)
        last = levels[-1].A.asformat("csr").data
        largest = executor.allocate((1,), real_dtype(last.dtype))
        executor.run(vector.largest, last.reshape(-1, 1), largest)
        *read, size = executor.transfer(*counts, largest).read()
        found = np.concatenate(read) > 0
        found[-1] |= not np.isfinite(size[0])
        return int(np.argmax(found)) + 1 if found.any() else 0

    def _levels_of(self, A: Matrix) -> list[LevelMatrices]:
        size = self._block_size(A)
        by_aggregates = self.kind == "aggregation" or (
            self.kind == "auto" and (self._near_null is not None or size > 1)
        )
        runs = aggregation.RUNS if by_aggregates else classical.RUNS
        A.executor.compile_ahead((*runs, *CYCLES_RUN), A.dtype)
        near = self._near_null_space(A, size) if by_aggregates else None
        self._width = classical.interpolation_width(A) if self.width is None else self.width
        found: list[LevelMatrices] = []
        first: groups.OfFirst | None = None
        shared = A.partition is not None
        matrix: Any = A if shared else A.asformat("csr").without_duplicates()
        while not self._is_last(matrix) and len(found) < MOST_LEVELS:
            alone = shared and near is None and len(found) >= self.aggressive
            if alone and groups.is_made_by_first(matrix):
                further, first = self._levels_of_first(matrix, len(found))
                found += further
                matrix = first.shared
                break
            P, below = self._interpolation(matrix, near, size, len(found))
            if self._is_stuck(matrix, P, len(found)):
                break
            with self._timed("products"):
                R = adjoint(P)
                coarse = R @ (matrix @ P)
            found.append(LevelMatrices(A if not found else matrix, P, R))
            matrix, near = coarse, below
            size = size if near is None else int(near.shape[1])
        if shared:
            self._gathering = _Further(near, size, len(found), first)
        return [*found, LevelMatrices(matrix if found else A)]

    def _interpolation(self, A: Any, near: Any, size: int, level: int) -> tuple[Any, Any]:
        """Return the interpolation to a level, and the near null space of the next one."""
        if near is None:
            P = self._classical(A)
            return (self._two_steps(A, P) if level < self.aggressive else P), None
        if A.partition is None:
            return self._by_aggregates(A, near, size, level)
        own, below = self._by_aggregates(groups.lumped(A), near, size, level)
        return groups.spread(own, A), below

    def _is_stuck(self, A: Any, P: Any, level: int) -> bool:
        """Return whether an interpolation is useless, and add a note on it."""
        if 0 < P.shape[1] <= SLOWEST * A.shape[0]:
            return False
        self.notes.append(
            f"amg: level {level} has {A.shape[0]} rows and would have {P.shape[1]} coarse ones: it "
            "is the last one"
        )
        return True

    def _levels_of_first(self, A: Any, level: int) -> tuple[list[Any], groups.OfFirst]:
        """Return the next levels of a shared matrix, which the first member builds alone.

        The matrix of the last level is returned separately.
        """
        whole = collected(A, (0,))
        made: list[groups.WholeLevel] = []
        matrix, offsets = whole, A.partition.offsets
        while matrix is not None and not self._is_small(matrix) and level + len(made) < MOST_LEVELS:
            P, number = self._classical_of_whole(matrix)
            if self._is_stuck(matrix, P, level + len(made)):
                break
            executor = matrix.executor
            begins = executor.to_host(number[executor.from_host(offsets)])
            offsets = np.asarray(begins).astype(np.int64)
            with self._timed("products"):
                R = adjoint(P)
                matrix = R @ (matrix @ P)
            made.append(groups.WholeLevel(P, R, matrix, offsets))
        with self._timed("levels of one member"):
            found, shared = groups.handed_out_levels(A, made)
            return found, groups.OfFirst(shared, matrix)

    def _is_small(self, A: Matrix) -> bool:
        """Return whether further levels are gathered on every member."""
        return A.shape[0] <= self.coarse_rows or A.nnz <= groups.ENTRIES_ON_DEVICES

    def _is_uncoupled(self, A: Matrix) -> bool:
        """Return whether a matrix is diagonal, before kernels of levels are loaded."""
        if A.partition is not None or A.nnz > A.shape[0]:
            return False
        rows = A.asformat("csr")
        # one after the other: joint copies take pinned memory of their size
        return is_diagonal(*(rows.executor.to_host(x) for x in (rows.indptr, rows.indices)))

    def _is_last(self, A: Any) -> bool:
        """Return whether a matrix is not coarsened, or not by the members that share it."""
        few: bool = A.shape[0] <= self.coarse_rows
        return few or (A.partition is not None and groups.is_gathered(A))

    def _further_levels(self, A: Any) -> LinOp:
        """Return the levels of a matrix that is gathered."""
        near, size, level = self._gathering.near, self._gathering.size, self._gathering.level
        theta = self.theta
        if near is not None:
            theta = (COUPLED if size > 1 else 0.0) if theta is None else theta
            theta *= 0.5**level
        make = partial(
            Amg,
            kind="classical" if near is None else "aggregation",
            theta=theta,
            near_null=None if near is None else A.gather(near),
            block_size=size if near is not None else None,
            width=self._width,
            aggressive=max(self.aggressive - level, 0),
            smoother=self._settled,
            cycle=self.cycle,
            sweeps=self.sweeps,
            coarsest=self.coarse_solver,
            coarse_rows=self.coarse_rows,
        )
        return groups.gathered(A, self._inner_dtype(A.dtype), make, self._gathering.first)

    def _coarsest(self, A: Matrix) -> LinOp:
        if A.partition is None:
            if self.coarse_solver == "dense" and A.shape[0] > max(
                self.coarse_rows, ROWS_WITHOUT_SEARCH
            ):
                return inverse_of_large(A)  # it cannot be coarsened further
            return super()._coarsest(A)
        with self._timed("gathered levels"):
            return self._further_levels(A)

    def _classical(self, A: Any) -> Any:
        if A.partition is not None:
            theta = 0.25 if self.theta is None else self.theta
            with self._timed("coarsening"):
                S = shared_rows.strong_part(A, theta)
                coarse = shared_rows.coarse_rows(A, S)
            with self._timed("interpolation"):
                return shared_rows.interpolation(A, S, coarse, self._width)
        return self._classical_of_whole(A)[0]

    def _classical_of_whole(self, A: Any) -> tuple[Csr, Array]:
        """Return the interpolation, and the number of coarse rows before each row."""
        theta = 0.25 if self.theta is None else self.theta
        with self._timed("coarsening"):
            S = classical.strong_part(A, theta)
            coarse = classical.coarse_rows(A, S)
        with self._timed("interpolation"):
            return classical.interpolation(A, S, coarse, self._width), coarse.number

    def _two_steps(self, A: Any, P: Any) -> Any:
        """Return the interpolation from the coarse rows of the coarse level."""
        if P.shape[1] <= self.coarse_rows:
            return P
        with self._timed("products"):
            between = adjoint(P) @ (A @ P)
        further = self._classical(between)
        if not 0 < further.shape[1] <= SLOWEST * P.shape[1]:
            return P
        with self._timed("interpolation"):
            width = max(self._width, AGGRESSIVE_WIDTH) if self._width else 0
            if P.partition is not None:
                return shared_rows.product(P, further, width)
            return classical.truncated(matmul(P, further), width)

    def _by_aggregates(self, A: Csr, near: Array, size: int, level: int) -> tuple[Csr, Array]:
        with self._timed("coarsening"):
            C = aggregation.node_matrix(A, size)
            theta = (COUPLED if size > 1 else 0.0) if self.theta is None else self.theta
            S = aggregation.coupled_part(C, theta * 0.5**level)
            label, count = aggregation.aggregates(S)
        with self._timed("interpolation"):
            T, coarse = aggregation.tentative(label, count, near, size, A)
            return aggregation.smoothed(A, T), coarse

    def _new_operators(self, A: Matrix) -> list[LevelMatrices]:
        if A.partition is None:
            return super()._new_operators(A)
        matrices: list[LevelMatrices] = []
        matrix: Any = A
        for level in self.levels:
            matrices.append(LevelMatrices(matrix, level.P, level.R))
            P, R = (part.astype(A.dtype) for part in (level.P, level.R))
            matrix = R @ (matrix @ P)
        return [*matrices, LevelMatrices(matrix)]

    def _block_size(self, A: Matrix) -> int:
        """Return the number of unknowns per node."""
        n, size, given = A.shape[0], self.block_size, self._near_null
        if size is None and isinstance(A, Bsr) and A.blocksize[0] == A.blocksize[1]:
            size = A.blocksize[0]
        if given is not None:
            shape = tuple(getattr(given, "shape", None) or np.shape(given))
            if len(shape) not in (1, 2) or shape[0] != n or 0 in shape[1:]:
                raise ShapeMismatch(
                    f"near_null: expected vectors of length {n}, shape ({n}, m), got shape {shape}"
                )
            if size is None:
                size = {3: 2, 6: 3}.get(shape[1] if len(shape) == 2 else 1, 1)
        size = 1 if size is None else int(size)
        if n % size:
            raise InvalidArgument(f"block_size: {n} rows are not a multiple of {size}")
        if A.partition is not None:
            groups.check_nodes(A, size)
        return size

    def _near_null_space(self, A: Matrix, size: int) -> Array:
        """Return the near null space as a block: the given one, or a constant for each unknown."""
        n, executor, given = A.local_rows, A.executor, self._near_null
        if given is None:
            return executor.from_host(np.tile(np.eye(size, dtype=A.dtype), (n // size, 1)))
        given = np.asarray(given) if isinstance(given, (list, tuple)) else given
        if A.partition is not None:
            given = groups.own_rows(A, given)
        given = native(executor, given, "near_null")
        given = given.reshape(-1, 1) if given.ndim == 1 else given
        if A.partition is None:  # of a shared matrix, a member may have rows of zeros alone
            require_vectors(executor, given, A.dtype)
        return executor.copy(given.astype(A.dtype))


@dataclass(frozen=True)
class _Further:
    """The options of the levels of a matrix that is gathered.

    Attributes
    ----------
    near : Array or None
        The near null space on the matrix's level; this member's rows.
    size : int
        Unknowns per node.
    level : int
        The index of the level.
    first : OfFirst or None
        The level's matrix, if the first member has built it.
    """

    near: Array | None
    size: int
    level: int
    first: groups.OfFirst | None


def require_vectors(executor: Executor, near: Array, dtype: np.dtype[Any]) -> None:
    """Raise InvalidArgument unless the columns of ``near`` can span a near null space."""
    xp = executor.xp
    if is_complex(near.dtype) and not is_complex(dtype):
        raise InvalidArgument(
            f"near_null: complex vectors, but the matrix is {dtype}: pass their real and imaginary "
            "parts as columns"
        )
    if not bool(xp.all(xp.isfinite(near))):
        raise InvalidArgument("near_null: expected finite vectors, got NaN or Inf")
    empty = np.flatnonzero(executor.to_host(xp.all(near == 0, axis=0)))
    if empty.size:
        raise InvalidArgument(
            f"near_null: column {empty[0]} is zero, and a near null space is spanned by vectors "
            "that are not: leave it out; near_null=None takes a constant for each unknown of a node"
        )
    column = dependent_column(executor.to_host(near).astype(dtype))
    if column is not None:
        raise InvalidArgument(
            f"near_null: column {column} is a linear combination of the columns before it, to the "
            f"precision of {dtype}, and adds nothing to their span: leave it out"
        )


def dependent_column(near: np.ndarray[Any, Any]) -> int | None:
    """Return the first column that is a linear combination of earlier ones, to rounding.

    Parameters
    ----------
    near : array, shape (n, m)
        Nonzero finite columns.
    """
    wide = near.astype(np.result_type(near.dtype, np.float64))
    wide /= abs(wide).max(axis=0)  # squares stay in range
    wide /= np.linalg.norm(wide, axis=0)
    for column in range(1, wide.shape[1]):
        basis, vector = wide[:, :column], wide[:, column]
        for _ in range(2):  # the second time removes the rounding errors of the first
            vector -= basis @ (basis.conj().T @ vector)
        left = np.linalg.norm(vector)
        if left <= DEPENDENT * np.finfo(near.dtype).eps:
            return column
        vector /= left
    return None
