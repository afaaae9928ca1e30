"""An analysis of cuDSS: its handle and descriptors, and memory for the factors of one matrix."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, TypeVarTuple
from weakref import finalize

import numpy as np

from ...core.errors import InvalidMatrix, OutOfDeviceMemory

if TYPE_CHECKING:
    from ...core.executor import Array
    from ...core.formats import Csr


Ts = TypeVarTuple("Ts")
R = TypeVar("R")

_DTYPES = {
    "float32": "R_32F",
    "float64": "R_64F",
    "complex64": "C_32F",
    "complex128": "C_64F",
    "int32": "R_32I",
    "int64": "R_64I",
}


class MatrixSpan(NamedTuple):
    """Consecutive matrices that are factorized together, with their systems.

    Attributes
    ----------
    matrix : int
        The index of the first matrix; the others follow it.
    first, last : int
        The range of their systems, ``first`` to ``last``; systems of one matrix are adjacent.
    """

    matrix: int
    first: int
    last: int


class Refused(Exception):
    """The factors of these values are unusable; the message continues the library's name."""


class Analysis:
    """A pattern with its ordering by cuDSS, and the factors of the latest values.

    Parameters
    ----------
    cudss : module
        ``nvmath.bindings.cudss``.
    A : Csr
        The matrix, sorted and without duplicates.
    hermitian : bool
        Whether to read the upper triangle only.
    ordering : str, optional
        A member of ``cudss.ReorderingAlg``.
    matched : bool
        Whether rows are matched to columns first, for the values of ``A``.
    together : int
        Number of matrices that are factorized together, as a uniform batch of cuDSS: their values
        and their systems are contiguous. Only :meth:`solve_systems` may be called then.
    """

    def __init__(
        self, cudss: Any, A: Csr, hermitian: bool, ordering: str | None, matched: bool,
        together: int = 1,
    ) -> None:  # fmt: skip
        self.cudss, self.executor = cudss, A.executor
        self.hermitian, self.matched, self.dtype = hermitian, matched, A.dtype
        self.together = together
        self.n, self.indptr, self.indices = A.shape[0], A.indptr, A.indices
        if A.row_statistics.empty:
            raise InvalidMatrix("Direct: the matrix has empty rows: it is singular")
        self._lock = Lock()
        self._holder: object = None  # the key of the owner of the factors
        self._factorized = False
        self._vectors: dict[int, tuple[int, int]] = {}
        self._owned: list[tuple[Any, ...]] = []
        release = finalize(self, _release, A.executor, self._owned)
        release.atexit = False  # process exit frees everything, and the driver may be gone
        self._on_device("cuDSS", self._create, A, ordering)

    def suits(self, A: Csr, hermitian: bool) -> bool:
        """Return whether values of ``A`` can be factorized with this analysis."""
        if (hermitian or self.matched) != (self.hermitian or self.matched):
            return False
        if A.indices is self.indices and A.indptr is self.indptr:
            return True
        if A.nnz != self.indices.size or A.index_dtype != self.indices.dtype:
            return False
        xp = self.executor.xp
        return bool(xp.array_equal(A.indptr, self.indptr)) and bool(
            xp.array_equal(A.indices, self.indices)
        )

    def factorize(self, key: object, values: Array) -> tuple[int, int, tuple[int, int] | None]:
        """Factorize values.

        Returns
        -------
        nnz : int
            Entries of the factors.
        replaced : int
            Number of replaced pivots.
        counts : tuple of int, optional
            Numbers of positive and negative eigenvalues, for a Hermitian matrix.

        Raises
        ------
        Refused
            If the factorization failed.
        """
        with self._lock:
            self._factorize(key, values)
            nnz = int(self._get("LU_NNZ", np.int64)[0])
            # cuDSS counts rows in the dtype of the indices
            replaced = int(self._get("NPIVOTS", self.indices.dtype)[0])
            counts = self._get("INERTIA", self.indices.dtype, 2) if self.hermitian else None
        return nnz, replaced, None if counts is None else (int(counts[0]), int(counts[1]))

    def solve(self, key: object, values: Array, b: Array) -> Array:
        """Return the solution for a block (n, k), with the factors of ``values``."""
        with self._lock:
            if self._holder is not key:
                self._factorize(key, values)
            return self._on_device("cuDSS's solve", self._solve, b)

    def solve_systems(
        self, values: Array, b: Array, x: Array, pieces: Sequence[MatrixSpan]
    ) -> list[MatrixSpan]:
        """Factorize matrices and solve their systems, without reading from the device.

        A failed factorization shows in the solutions.

        Parameters
        ----------
        values : array, shape (v, nnz)
            Values of the matrices, contiguous.
        b, x : arrays, shape (s, n)
            Right-hand sides and memory for the solutions, contiguous.
        pieces : sequence of MatrixSpan
            Spans of ``together`` matrices each.

        Returns
        -------
        list of MatrixSpan
            The spans that cuDSS refuses immediately.
        """
        with self._lock:
            self._holder = None
            return self._on_device("cuDSS's batch", self._solve_systems, values, b, x, pieces)

    # calls with the device current

    def _create(self, A: Csr, ordering: str | None) -> None:
        cudss = self.cudss
        self._handle = self._own(cudss.destroy, cudss.create())
        self._config = self._own(cudss.config_destroy, cudss.config_create())
        data = cudss.data_create(self._handle)
        self._owned.append((cudss.data_destroy, self._handle, data))
        self._data = data
        if ordering is not None:
            self._set("REORDERING_ALG", cudss.ReorderingAlg[ordering])
        if self.matched:
            self._set("MATCHING_ALG", cudss.MatchingAlg.MAX_DIAG_PRODUCT)
        if self.together > 1:
            self._set("UBATCH_SIZE", self.together)
        index, address = self._dtype(A.index_dtype), self.executor.address
        hermitian = "HERMITIAN" if self.dtype.kind == "c" else "SYMMETRIC"
        self._matrix = self._own(
            cudss.matrix_destroy,
            cudss.matrix_create_csr(
                self.n, self.n, A.nnz, address(self.indptr), 0, address(self.indices),
                address(A.data), index, index, self._dtype(self.dtype),
                int(cudss.MatrixType[hermitian if self.hermitian else "GENERAL"]),
                int(cudss.MatrixViewType["UPPER" if self.hermitian else "FULL"]),
                int(cudss.IndexBase.ZERO),
            ),
        )  # fmt: skip
        self._execute("ANALYSIS", *self._descriptors(1))

    def _factorize(self, key: object, values: Array) -> None:
        self._holder = None
        self._on_device("cuDSS's factorization", self._factorize_here, values)
        self._holder = key

    def _factorize_here(self, values: Array) -> None:
        self.cudss.matrix_set_values(self._matrix, self.executor.address(values))
        phase = "REFACTORIZATION" if self._factorized else "FACTORIZATION"
        self._factorized = False
        self._execute(phase, *self._descriptors(1))
        failed = int(self._get("INFO", np.int32)[0])
        if failed:
            raise Refused(f"failed at row {failed}")
        self._factorized = True

    def _solve_systems(
        self, values: Array, b: Array, x: Array, pieces: Sequence[MatrixSpan]
    ) -> list[MatrixSpan]:
        place, refused, address = self.cudss.matrix_set_values, [], self.executor.address
        of_matrix = int(values.shape[1]) * values.dtype.itemsize
        of_system = self.n * b.dtype.itemsize
        begin, rights, solutions = address(values), address(b), address(x)
        for piece in pieces:
            solution, given = self._descriptors((piece.last - piece.first) // self.together)
            place(self._matrix, begin + piece.matrix * of_matrix)
            place(given, rights + piece.first * of_system)
            place(solution, solutions + piece.first * of_system)
            phase = "REFACTORIZATION" if self._factorized else "FACTORIZATION"
            try:
                self._factorized = False
                self._execute(phase, solution, given)
                self._factorized = True
                self._execute("SOLVE", solution, given)
            except Refused:
                refused.append(piece)
        return refused

    def _solve(self, block: Array) -> Array:
        xp = self.executor.xp
        # cuDSS accepts blocks in column-major order; for one column this needs no copy
        b = xp.asfortranarray(block)
        x = xp.empty_like(b)
        solution, given = self._descriptors(b.shape[1])
        self.cudss.matrix_set_values(given, self.executor.address(b))
        self.cudss.matrix_set_values(solution, self.executor.address(x))
        self._execute("SOLVE", solution, given)
        return xp.ascontiguousarray(x)

    def _execute(self, phase: str, solution: int, right_side: int) -> None:
        cudss = self.cudss
        cudss.set_stream(self._handle, self.executor.stream_address())
        arguments = (self._config, self._data, self._matrix, solution, right_side)
        try:
            try:
                cudss.execute(self._handle, int(cudss.Phase[phase]), *arguments)
            except cudss.cuDSSError as error:
                if error.status != cudss.Status.ALLOC_FAILED:
                    raise
                self.executor.release_idle_memory()
                cudss.execute(self._handle, int(cudss.Phase[phase]), *arguments)
        except cudss.cuDSSError as error:
            status = cudss.Status(error.status).name
            if status == "ALLOC_FAILED":
                raise OutOfDeviceMemory(
                    f"Direct: the factors do not fit into the memory of {self.executor.name}; use "
                    "an iterative solver, or engine='superlu' on the host"
                ) from None
            raise Refused(f"ends its {phase.lower()} with {status}") from None

    def _descriptors(self, columns: int) -> tuple[int, int]:
        """Return the descriptors of a solution and of right-hand sides, still without data."""
        if columns not in self._vectors:
            cudss, n = self.cudss, self.n
            rest = (n, 0, self._dtype(self.dtype), int(cudss.Layout.COL_MAJOR))
            made = [
                self._own(cudss.matrix_destroy, cudss.matrix_create_dn(n, columns, *rest))
                for _ in range(2)
            ]
            self._vectors[columns] = (made[0], made[1])
        return self._vectors[columns]

    # ---- how the library is called

    def _on_device(self, work: str, function: Callable[[*Ts], R], *operands: *Ts) -> R:
        return self.executor.call(work, function, *operands)

    def _own(self, destroy: Any, handle: int) -> int:
        self._owned.append((destroy, handle))
        return handle

    def _dtype(self, dtype: Any) -> int:
        return int(self.cudss.DataType[_DTYPES[np.dtype(dtype).name]])

    def _set(self, parameter: str, value: Any) -> None:
        number = np.array([int(value)], np.int32)
        which = int(self.cudss.ConfigParam[parameter])
        self.cudss.config_set(self._config, which, number.ctypes.data, number.nbytes)

    def _get(self, parameter: str, dtype: Any, count: int = 1) -> np.ndarray[Any, Any]:
        """Return values that cuDSS reports, after the work that computes them."""
        found, written = np.zeros(count, dtype), np.zeros(1, np.uint64)
        which = int(self.cudss.DataParam[parameter])
        self.cudss.data_get(
            self._handle, self._data, which, found.ctypes.data, found.nbytes, written.ctypes.data
        )
        return found


def _release(executor: Any, owned: list[tuple[Any, ...]]) -> None:
    """Free the objects, the last one first."""
    executor.give_back("cuDSS's memory", _destroy, owned)


def _destroy(owned: list[tuple[Any, ...]]) -> None:
    while owned:
        destroy, *arguments = owned.pop()
        destroy(*arguments)
