"""Work besides the iterations of one format: structure, orientations, fixed costs, first calls.

Each piece is written once over a :class:`~.sides.Side` and named in :data:`WORK`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse as sp

from wollemi.core.dtypes import real_dtype
from wollemi.core.executor import Executor

from . import first_call
from .cases import SEED, Case
from .peers import Absent, Peer
from .problem import GPUS, OURS, Offer, OfferFacts, Problem
from .sides import Ours, Side
from .spmv import random_vector
from .task import Task

Call = Callable[[], Any]

#: Columns of a block of vectors.
COLUMNS = 8

#: Points that become one in a prolongator.
AGGREGATE = 8

#: By how many eps of the largest number results may differ.
AGREEMENT = 1000.0


class Given:
    """The inputs of a piece of work: a matrix, a vector, a block, a prolongator, all seeded."""

    def __init__(self, S: sp.csr_array) -> None:
        self.S = S
        self.x = random_vector(S.shape[1], S.dtype)
        self.left = random_vector(S.shape[0], S.dtype)
        #: Without the smooth part, so that a step of CG makes the residual smaller.
        self.b = self.left - self.left.mean()

    @property
    def block(self) -> np.ndarray[Any, Any]:
        """Columns, in C order."""
        rng = np.random.default_rng(SEED)
        return rng.uniform(0.5, 1.5, (self.S.shape[1], COLUMNS)).astype(self.S.dtype)

    @cached_property
    def P(self) -> sp.csr_array:
        """A smoothed prolongator of aggregates of adjacent rows."""
        n = self.S.shape[0]
        where = (np.arange(n, dtype=np.int32), np.arange(n, dtype=np.int32) // AGGREGATE)
        T = sp.csr_array((np.ones(n, self.S.dtype), where))
        scale = sp.diags_array(0.5 / np.where(self.S.diagonal() == 0, 1, self.S.diagonal()))
        made = sp.csr_array(T - (scale @ self.S) @ T, dtype=self.S.dtype)
        made.sort_indices()
        return made


Piece = Callable[[Side, Given], Call]


def _square(on: Side, given: Given) -> Call:
    A = on.csr(given.S)
    return lambda: A @ A


def _prolongated(on: Side, given: Given) -> Call:
    A, P = on.csr(given.S), on.csr(given.P)
    return lambda: A @ P


def _galerkin(on: Side, given: Given) -> Call:
    A, P = on.csr(given.S), on.csr(given.P)
    return lambda: on.galerkin(P, A)


def _sum(on: Side, given: Given) -> Call:
    A = on.csr(given.S)

    def call() -> Any:
        fresh = on.fresh(A)
        return fresh + fresh.T

    return call


def _turned(on: Side, given: Given) -> Call:
    A = on.csr(given.S)
    return lambda: on.by_rows(on.fresh(A).T)


def _assembled(on: Side, given: Given) -> Call:
    coordinates, shape = on.coordinates(given.S), given.S.shape
    return lambda: on.assembled(coordinates, shape)


def _updated(on: Side, given: Given) -> Call:
    A, x, data = on.csr(given.S.copy()), on.dense(given.x), on.dense(given.S.data * 1.5)

    def call() -> Any:
        on.update(A, data)
        return A @ x

    return call


def _read(on: Side, given: Given) -> Call:
    folder = tempfile.TemporaryDirectory(prefix="wollemi-bench-")  # lives as long as the call
    scipy.io.mmwrite(Path(folder.name) / "matrix.mtx", given.S, symmetry="general")
    return lambda: on.read(Path(folder.name) / "matrix.mtx")


def _stacked(on: Side, given: Given) -> Call:
    A = on.csr(given.S)
    return lambda: on.placed("vstack", [A, A], format="csr")


def _kronecker(on: Side, given: Given) -> Call:
    A, K = on.csr(given.S), on.csr(sp.csr_array(np.eye(2, dtype=given.S.dtype) + 1))
    return lambda: on.placed("kron", A, K, format="csr")


def _identity(on: Side, given: Given) -> Call:
    n = given.S.shape[0]
    return lambda: on.placed("eye_array", n, format="csr", dtype=given.S.dtype)


def _diagonals(on: Side, given: Given) -> Call:
    n = min(given.S.shape)
    diagonals = [on.dense(given.x[: n - k]) for k in (0, 1)]
    return lambda: on.placed("diags_array", diagonals, offsets=[0, 1], format="csr")


def _column_slice(on: Side, given: Given) -> Call:
    A, n = on.csr(given.S), given.S.shape[1]
    return lambda: A[:, n // 4 : 3 * n // 4]


def _chosen_columns(on: Side, given: Given) -> Call:
    A = on.csr(given.S)
    mask = on.dense(np.random.default_rng(SEED).random(given.S.shape[1]) < 0.5)
    return lambda: A[:, mask]


def _positive(on: Side, given: Given) -> Call:
    A = on.csr(given.S)
    return lambda: A > 0


def _compared(on: Side, given: Given) -> Call:
    A, B = on.csr(given.S), on.csr(given.S * 1.5)
    return lambda: A < B


def _diagonal_set(on: Side, given: Given) -> Call:
    A, d = on.csr(given.S.copy()), on.dense(given.x[: min(given.S.shape)])

    def call() -> Any:
        A.setdiag(d)
        return A

    return call


def _norm(on: Side, given: Given) -> Call:
    A = on.csr(given.S)
    return lambda: on.norm(A)


def _column_sums(on: Side, given: Given) -> Call:
    A = on.csr(given.S)
    return lambda: A.sum(axis=0)


def _copied(on: Side, given: Given) -> Call:
    return lambda: on.copied(given.S)


def _first_product(on: Side, given: Given) -> Call:
    A, x = on.csr(given.S), on.dense(given.x)
    return lambda: on.fresh(A) @ x


def _right(format: str, on: Side, given: Given) -> Call:
    A, x = on.as_format(on.csr(given.S), format), on.dense(given.x)
    return lambda: A @ x


def _block(order: Any, on: Side, given: Given) -> Call:
    A, X = on.csr(given.S), on.dense(np.array(given.block, order=order))
    return lambda: A @ X


def _transposed_product(on: Side, given: Given) -> Call:
    A, x = on.csr(given.S), on.dense(given.left)
    return lambda: A.T @ x


def _left_product(on: Side, given: Given) -> Call:
    A, x = on.csr(given.S), on.dense(given.left)
    return lambda: x @ A


def _once_transposed(on: Side, given: Given) -> Call:
    A, x = on.csr(given.S), on.dense(given.left)
    return lambda: on.fresh(A).T @ x


def _one_iteration(on: Side, given: Given) -> Call:
    A, b = on.csr(given.S), on.dense(given.b)
    return lambda: on.cg(A, b, 1)


def _solved(on: Side, given: Given) -> Call:
    A, b = on.csr(given.S), on.dense(given.b)
    return lambda: on.solved(A, b)


#: Every piece by the name that records have.
WORK: dict[str, Piece] = {
    "structure/A @ A": _square,
    "structure/A @ P": _prolongated,
    "structure/P.T @ A @ P": _galerkin,
    "structure/A + A.T": _sum,
    "structure/A.T by rows": _turned,
    "structure/coordinates": _assembled,
    "structure/update": _updated,
    "structure/mtx": _read,
    "structure/vstack": _stacked,
    "structure/kron": _kronecker,
    "structure/eye": _identity,
    "structure/diags": _diagonals,
    "structure/A[:, a:b]": _column_slice,
    "structure/A[:, mask]": _chosen_columns,
    "structure/A > 0": _positive,
    "structure/A < B": _compared,
    "structure/setdiag": _diagonal_set,
    "structure/norm": _norm,
    "structure/A.sum(axis=0)": _column_sums,
    "structure/Csr(S)": _copied,
    "structure/first product": _first_product,
    **{
        f"product/{format}": partial(_right, format)
        for format in ("csc", "coo", "bsr", "ell", "sellp", "hybrid")
    },
    "product/block, C order": partial(_block, "C"),
    "product/block, Fortran order": partial(_block, "F"),
    "product/A.T @ x": _transposed_product,
    "product/x @ A": _left_product,
    "product/A.T @ x once": _once_transposed,
    "fixed/cg, 1 iteration": _one_iteration,
    "fixed/solve": _solved,
}

#: Solutions to a residual differ as far as that allows.
TO_A_RESIDUAL = ("fixed/solve",)


class Piecework(Problem):
    """A piece of work on a matrix.

    Parameters
    ----------
    name : str
        Of the piece, in :data:`WORK`.
    S : scipy.sparse.csr_array
        The matrix.
    """

    kind = "side"

    def __init__(self, name: str, S: sp.csr_array) -> None:
        self.name, self.S, self.given = name, S, Given(S)
        self.precision = float(np.finfo(real_dtype(S.dtype)).eps)
        try:
            self._expected = self._numbers(WORK[name](Side(), self.given)())
        except Absent:  # a format that SciPy has none of: the product is that of CSR
            self._expected = self._numbers(S @ self.given.x)

    def ours(self, executor: Executor) -> list[Offer]:
        """Return wollemi's offers."""
        return [self._offer(OURS, Ours(executor), executor.backend in GPUS)]

    def theirs(self, peer: Peer) -> list[Offer]:
        """Return a library's offers; SciPy's product by rows for formats that only wollemi has."""
        side = peer.side()
        format = self.name.removeprefix("product/")
        if format in Ours.formats and format not in side.formats:
            return [self._offer(peer.name, side, peer.host_clock, partial(_right, "csr"))]
        return [self._offer(peer.name, side, peer.host_clock)]

    def _offer(self, name: str, side: Side, host_clock: bool, piece: Piece | None = None) -> Offer:
        """Return a contender; graphs do not know the sizes of results: none is captured."""
        make = partial(piece or WORK[self.name], side, self.given)
        return Offer(name, make, side.synchronize, side.to_host, host_clock=host_clock)

    def wrong(self, result: Any) -> str:
        """Return by how much of its largest number a result is off, if that is too much."""
        found, expected = self._numbers(result), self._expected
        if found.shape != expected.shape:
            return f"shape {found.shape}, expected {expected.shape}"
        allowed = 1e-5 if self.name in TO_A_RESIDUAL else AGREEMENT * self.precision
        off = float(np.max(np.abs(found - expected), initial=0.0))
        largest = float(np.max(np.abs(expected), initial=0.0)) or 1.0
        return "" if off <= allowed * largest else f"off by {off / largest:.2g} of its largest"

    def _numbers(self, result: Any) -> np.ndarray[Any, Any]:
        """Return numbers that tell a result: of a matrix its product with a vector."""
        if not sp.issparse(result):
            return np.asarray(result)
        matrix: Any = sp.csr_array(result)  # type: ignore[call-overload]
        return np.asarray(matrix @ random_vector(matrix.shape[1], self.S.dtype))

    def forget(self) -> None:
        """Let go of the expected numbers."""
        self._expected = np.empty(0)


class FirstCall(Problem):
    """A call in a new process with empty caches: a newcomer's waiting time.

    Parameters
    ----------
    what : {"product", "solve"}
        The first call of the process.
    S : scipy.sparse.csr_array
        The matrix.
    """

    kind = "side"
    notes = ("a new process with empty caches; seconds of imports, matrix and call together",)

    def __init__(self, what: str, S: sp.csr_array) -> None:
        self.what, self.S = what, S

    def ours(self, executor: Executor) -> list[Offer]:
        """Return our first call."""
        return [self._offer(OURS, executor.name)]

    def theirs(self, peer: Peer) -> list[Offer]:
        """Return a library's first call."""
        if peer.name not in first_call.LIBRARIES:
            raise Absent("its first calls are not compared")
        return [self._offer(peer.name, peer.name)]

    def _offer(self, name: str, library: str) -> Offer:
        def make() -> Call:
            folder = tempfile.TemporaryDirectory(prefix="wollemi-bench-")  # lives as the call does
            sp.save_npz(Path(folder.name) / "matrix.npz", self.S, compressed=False)
            matrix = "matrix.npz"
            return lambda: first_call.seconds(self.what, library, Path(folder.name) / matrix)

        return Offer(name, make, facts=OfferFacts, told=True, host_clock=True)

    def wrong(self, result: Any) -> str:
        """Return nothing: a process that fails raises."""
        return ""


def tasks(cases: Sequence[Case], *, pieces: Sequence[str], dtype: str = "float64") -> list[Task]:
    """Return the contest of each case and piece of work.

    Parameters
    ----------
    cases : sequence of Case
        The matrices.
    pieces : sequence of str
        Names of :data:`WORK`, or their first parts (``structure``).
    dtype : str
        Of the matrix.
    """
    names = [name for name in WORK if name in pieces or name.partition("/")[0] in pieces]
    return [
        Task(name, case, partial(Piecework, name), dtype, rehearsed=1.0)
        for case in cases
        for name in names
    ]


def first_calls(cases: Sequence[Case], calls: Sequence[str] = first_call.CALLS) -> list[Task]:
    """Return the contests of first products and first solves; none is rehearsed."""
    return [
        Task(f"first/{what}", case, partial(FirstCall, what), rehearsed=1.0)
        for case in cases
        for what in calls
    ]
