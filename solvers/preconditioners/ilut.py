"""Incomplete factors with entries that are selected by size."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.deprecation import OldOptions
from ...core.dtypes import real_dtype
from ...core.errors import InvalidArgument, InvalidMatrix
from ...core.formats import Csr, Diagonal, Matrix
from ...core.formats.arithmetic import add
from ...core.formats.triangular import host_of
from ...core.operations import triangular
from .application import checked_application, checked_count, temporaries
from .factors import LARGEST_FACTOR, SHIFTS, SMALLEST_PIVOT, Factors, identity, without_pivots
from .ilu import Ilu
from .parilut import FAR, ROUNDS, Found, by_sweeps
from .reordering import Reordering

if TYPE_CHECKING:
    from ...core.executor import Executor

Host = np.ndarray[Any, Any]

#: Default number of sweeps that apply a triangular factor on devices. Factors with fill-in need
#: more than `Ilu`: for layers of contrast 1e6, GMRES takes 217 iterations with three sweeps, 82
#: with five, 39 with eight, 18 with exact solves.
APPLIED_SWEEPS = 5

#: Add a note if more than this fraction of the entries has not converged.
SHARE = 1e-3


class Ilut(Ilu):
    """Incomplete LU factors that keep large entries: a threshold, and a limit for each row.

    Parameters
    ----------
    A : matrix, shape (n, n)
        Any square matrix.
    drop : float
        Entries smaller than ``drop`` times the norm of the matrix's row are dropped.
    fill : float
        The factors have at most about ``fill`` times the entries of the matrix. A row keeps its
        largest entries, the same number in each factor; with sweeps, the limit holds for each
        factor.
    apply, match, order, executor
        As for :class:`Ilu`; ``"jacobi:5"`` is the default on devices.
    factor_sweeps : int or "exact", optional
        How the factors are computed: row by row on the host (``"exact"``, the default on
        ``reference`` and ``omp``), or on the executor in this number of rounds, in which the
        pattern grows, sweeps over all entries compute values, and the smallest entries are dropped
        (ParILUT; 5 by default on devices).

    Raises
    ------
    InvalidMatrix
        If no pivots can be found, or the matrix has NaN or Inf.
    InvalidArgument
        If an option is out of its range.

    Notes
    -----
    The factors are applied on the executor of the matrix. New values may change their pattern:
    solvers then record their loops again.

    With sweeps, the same matrix always has the same factors, and real factors have the same pattern
    on all executors, bit for bit. Each factor keeps the largest of all its entries, ``fill`` times
    the number in its half of the matrix, including pivots; a hash of positions selects among
    entries of equal size. A round in which rows of thousands of entries would fill in too much adds
    no entries, as ``M.notes`` says.

    References
    ----------
    Y. Saad, ILUT: a dual threshold incomplete LU factorization, Numer. Linear Algebra Appl. 1
    (1994); Iterative Methods for Sparse Linear Systems, 2nd ed., algorithm 10.6; H. Anzt, E. Chow
    and J. Dongarra, ParILUT: a new parallel threshold ILU factorization, SIAM J. Sci. Comput. 40
    (2018), for the sweeps.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Csr(np.array([[4.0, 1.0, 0.0], [1.0, 4.0, 1.0], [1.0, 1.0, 4.0]]))
    >>> M = wl.preconditioners.Ilut(A, drop=0.0, fill=3.0)
    >>> A @ (M @ np.ones(3))
    array([1., 1., 1.])
    """

    old_options = OldOptions(
        since="0.3",
        removal="0.5",
        positions=(
            "drop",
            "fill",
            "apply",
            "match",
            "order",
            "factor_sweeps",
        ),
        renamed={"sweeps": "factor_sweeps"},
    )

    def __init__(
        self,
        A: Any,
        *,
        drop: float = 1e-3,
        fill: float = 2.0,
        apply: str | None = None,
        match: bool = False,
        order: str | None = None,
        factor_sweeps: int | str | None = None,
        executor: Executor | str | None = None,
    ) -> None:
        for name, value, above in (("drop", drop, -1.0), ("fill", fill, 0.0)):
            number = isinstance(value, (int, float, np.number))
            if not number or not max(above, 0.0) <= value < np.inf or value == above:
                least = "0 or more" if above < 0 else "more than 0"
                raise InvalidArgument(f"{name}: expected a finite number, {least}, got {value!r}")
        self.drop, self.fill = float(drop), float(fill)
        super().__init__(
            A, factor_sweeps=factor_sweeps, apply=apply, match=match, order=order, executor=executor
        )

    def _setup(self, A: Matrix) -> None:
        self._choose(*self._requested_options)
        self._search(A, None)

    def _choose(self, sweeps: int | str | None, apply: str | None) -> None:
        by_rows = self.executor.supports(triangular.threshold)
        if sweeps is None:
            sweeps = "exact" if by_rows else ROUNDS
        self.sweeps = None if sweeps == "exact" else checked_count(sweeps, "factor_sweeps")
        if apply is None and not by_rows:
            apply = f"jacobi:{APPLIED_SWEEPS}"
        self.applied = checked_application(apply, by_rows)
        self._temporaries = temporaries()

    def _refresh(self, A: Matrix) -> None:
        """Rebuild the factors; an ordering is kept, a matching is not: it depends on values."""
        self._search(A, None if self.match else self.reordering)

    def _search(self, A: Matrix, reordering: Reordering | None) -> None:
        """Compute factors with a pattern that the size of entries determines."""
        S: Csr = A.asformat("csr").without_duplicates()
        if reordering is None and (self.match or self.order is not None):
            reordering = Reordering(S, self.match, self.order)
        self.reordering = reordering
        if reordering is not None:
            S = reordering.matrix(S)
        caller = type(self).__name__
        if reordering is not None:
            self.notes += reordering.notes
        if self.sweeps is None:
            found = _by_thresholds(S, self.drop, self.fill, self.hermitian, caller)
            made = ["made on the host"]
        else:
            swept = by_sweeps(S, self.drop, self.fill, self.sweeps, self.hermitian, caller)
            found, made = swept.factors, _said(swept, self.sweeps)
        self._take(found)
        self.inverses = self._inverted() if self.applied[0] == "isai" else None
        self.triangles = None
        self._prepare()
        name = caller.lower()
        entries = self.lower.nnz + self.upper.nnz + S.shape[0]
        self.notes.append(
            f"{name}: {entries} entries in the factors, {entries / max(S.nnz, 1):.1f} times "
            f"the entries of the matrix, {made[0]}"
        )
        self.notes += [f"{name}: {more}" for more in made[1:]]
        if found.shift:
            self.notes.append(
                f"{name}: pivots were too small: {found.shift:g} times the diagonal was added"
            )


class Ict(Ilut):
    """Incomplete Cholesky factors that keep large entries, suitable for CG.

    Parameters
    ----------
    A : matrix, shape (n, n)
        Hermitian positive definite.
    drop, fill, apply, order, factor_sweeps, executor
        As for :class:`Ilut`; sweeps read the upper triangle (ParICT).

    Raises
    ------
    InvalidMatrix
        If no positive pivots can be found, or the matrix has NaN or Inf.
    InvalidArgument
        If an option is out of its range.

    Notes
    -----
    The factors are ``U^H D U`` with the upper factor of :class:`Ilut`.

    References
    ----------
    Y. Saad, ILUT: a dual threshold incomplete LU factorization, Numer. Linear Algebra Appl. 1
    (1994).

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Csr(np.array([[4.0, 1.0, 0.0], [1.0, 4.0, 1.0], [0.0, 1.0, 4.0]]))
    >>> wl.solvers.Cg(A, M="ict").solve(np.ones(3)).iterations
    1
    """

    hermitian = True


def _said(sweep: Found, rounds: int) -> list[str]:
    """Return the notes on the factors."""
    said = [
        f"made by {rounds} rounds of sweeps, of which the last dropped {sweep.dropped} of "
        f"{sweep.candidates} entries besides the pivots"
    ]
    if sweep.widest:
        said.append(
            f"the pattern did not grow in rounds of up to {sweep.widest} products of entries, "
            'which are too many: with factor_sweeps="exact" it grows row by row'
        )
    if sweep.moved > SHARE * sweep.candidates:
        said.append(
            f"the last sweep changed {sweep.moved} entries by more than {FAR:g}: they are far from "
            "the factors of elimination"
        )
    return said


def _by_thresholds(S: Csr, drop: float, fill: float, hermitian: bool, caller: str) -> Factors:
    """Return the factors of a matrix, with entries that are selected by size.

    Raises
    ------
    InvalidMatrix
        If no shift gives usable pivots.
    """
    executor, n = S.executor, S.shape[0]
    S = add(S, identity(S), 1.0, 0.0)
    data, indices, indptr = (np.asarray(executor.to_host(a)) for a in (S.data, S.indices, S.indptr))
    if not np.all(np.isfinite(data)):
        raise InvalidMatrix(f"{caller}: the matrix has NaN or Inf")
    row = np.repeat(np.arange(n), np.diff(indptr))
    own = row == indices
    size = np.abs(data[own])
    missing = ~(size > 0)
    scale = (1.0 / np.sqrt(np.where(missing, 1.0, size))).astype(real_dtype(S.dtype))
    phase = np.where(missing, 1.0, data[own] / np.where(missing, 1.0, size)).astype(S.dtype)
    scaled = data * scale[row] * scale[indices]
    width = min(max(1, ceil(fill * data.size / (2 * max(n, 1)))), max(n, 1))
    for shift in SHIFTS:
        a = scaled.copy()
        a[own] += (shift * phase).astype(S.dtype)
        halves, pivots = _eliminated(S, indptr, indices, a, drop, width)
        every = np.concatenate([*(values for _, _, values in halves), pivots])
        if _is_fit(every, pivots, hermitian):
            return _factors(S, halves, pivots, scale, hermitian, shift)
    raise without_pivots(caller, hermitian)


def _is_fit(values: Host, pivots: Host, hermitian: bool) -> bool:
    """Return whether factors are bounded, and their pivots are usable."""
    sizes = np.real(pivots) if hermitian else np.abs(pivots)
    return bool(np.all(np.abs(values) < LARGEST_FACTOR) and np.all(sizes > SMALLEST_PIVOT))


def _eliminated(
    S: Csr, indptr: Host, indices: Host, a: Host, drop: float, width: int
) -> tuple[list[tuple[Host, Host, Host]], Host]:
    """Return both factors in CSR form, without diagonals, and the pivots."""
    n, index = S.shape[0], S.index_dtype
    lengths = [np.zeros(n, index) for _ in range(2)]
    columns = [np.zeros(n * w, index) for w in (width, width + 1)]
    values = [np.zeros(n * w, S.dtype) for w in (width, width + 1)]
    low, up = zip(lengths, columns, values, strict=True)
    at = host_of(S.executor, triangular.threshold)
    with np.errstate(all="ignore"):
        at.run(triangular.threshold, indptr, indices, a, drop, width, *low, *up)
    halves = []
    for length, column, value, w, first in ((*low, width, 0), (*up, width + 1, 1)):
        at_row = np.arange(w)
        inside = (at_row >= first) & (at_row < length[:, None])
        pointers = np.concatenate([[0], np.cumsum(inside.sum(axis=1))]).astype(index)
        halves.append((pointers, column.reshape(n, w)[inside], value.reshape(n, w)[inside]))
    return halves, values[1].reshape(n, width + 1)[:, 0] if n else values[1]


def _factors(
    S: Csr,
    halves: list[tuple[Host, Host, Host]],
    pivots: Host,
    scale: Host,
    hermitian: bool,
    shift: float,
) -> Factors:
    executor, shape = S.executor, S.shape

    def placed(pointers: Host, columns: Host, values: Host) -> Csr:
        arrays = (executor.from_host(np.ascontiguousarray(x)) for x in (values, columns, pointers))
        return Csr._from_arrays(executor, shape, *arrays)

    (low, low_columns, low_values), (up, up_columns, up_values) = halves
    row = np.repeat(np.arange(shape[0]), np.diff(up))
    upper = placed(up, up_columns, -up_values / pivots[row])
    lower = upper.transpose().conj() if hermitian else placed(low, low_columns, -low_values)
    inverse = 1.0 / (np.real(pivots) if hermitian else pivots)
    return Factors(
        lower,
        upper,
        Diagonal._from_arrays(executor, shape, executor.from_host(inverse.astype(S.dtype))),
        Diagonal._from_arrays(executor, shape, executor.from_host(scale.astype(S.dtype))),
        shift,
        0.0,
    )
