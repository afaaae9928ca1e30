"""The engine cuDSS: direct solves on NVIDIA GPUs, through the bindings of nvmath-python."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import real_dtype
from ...core.errors import DeviceError
from ...core.formats import Csr
from ...core.operations import vector
from ..auto.facts import is_hermitian
from ..driver.scaling import largest_values
from .cudss_analysis import Analysis, Refused
from .cudss_batch import SystemsByCuDss
from .engine import Engine, EngineFactors, LogDeterminant
from .host_factors import HostFactors

if TYPE_CHECKING:
    from ...core.batch.factors import FactoredSystems
    from ...core.executor import Array, Executor

#: The names of cuDSS's reordering algorithms.
_ORDERINGS = {
    "nested_dissection": "NESTED_DISSECTION",
    "amd": "AMD",
    "colamd": "COLAMD",
    "btf_colamd": "BTF_COLAMD",
    "natural": "NONE",
}

#: Solutions are accurate if their backward error, in unit roundoffs, is at most this value plus the
#: square root of the number of rows.
_ACCURATE = 64.0

#: If pivots were replaced, refuse factors with a solution of larger size, ``|A| |x| / |b|`` in
#: maximum norms: replaced pivots dominate it, and the matrix may be singular. cuDSS replaces a tiny
#: pivot by 1e-5 and 1e-13, relative to the matrix.
_BY_REPLACED = {np.dtype(np.float32): 1e3, np.dtype(np.float64): 1e10}

#: Upper bound of the refinement steps in each solve, if the factors are less accurate.
_STEPS = 3


@cache
def bindings() -> Any:
    """Return the module ``nvmath.bindings.cudss``, or a message on the missing package."""
    if find_spec("nvmath") is None:
        return 'nvmath-python is missing; pip install "wollemi[cudss]" brings it'
    try:
        from nvmath.bindings import cudss

        cudss.get_property(0)  # loads the library itself
    except Exception as error:
        return (
            f'cuDSS could not be loaded ({type(error).__name__}: {error}); pip install "'
            'wollemi[cudss]" brings a version that fits'
        )
    return cudss


class CuDss(Engine):
    """cuDSS: supernodal factors on the device of the matrix, in its own precision.

    Hermitian matrices are factorized as ``L D L^H``, others as ``L U``, with pivoting within
    supernodes. Tiny pivots are replaced. Hence factors of a matrix that is not positive definite
    are tested by the backward error of a system with a random right-hand side. If rounding does not
    explain this error, each solve has refinement steps. If a few steps are not enough, rows are
    matched to columns to maximize the product of the diagonal, and the matrix is factorized again.
    If that also fails, SuperLU factorizes the matrix on the host, and a note says so.

    SuperLU also computes the determinant: cuDSS does not report row exchanges within supernodes.
    Nothing else is copied to the host.

    Transposes of non-Hermitian matrices have separate factors, which are computed on first use:
    cuDSS does not solve with transposed factors.

    References
    ----------
    NVIDIA, cuDSS: a high-performance CUDA library for direct sparse solvers, version 0.8.
    """

    name = "cudss"
    library = "cuDSS of NVIDIA, through nvmath-python"
    licence = "NVIDIA cuDSS licence, proprietary; nvmath-python Apache-2.0"
    orderings = tuple(_ORDERINGS)

    _analysis: Analysis | None = None
    _of_batches: SystemsByCuDss | None = None

    @classmethod
    def objection(cls, executor: Executor) -> str:
        """Return why the engine cannot be used: another device, or the library is missing."""
        if not cls.stays_on(executor):
            return f'it works on GPUs of NVIDIA, not on {executor.name}; use A.to("cuda")'
        found = bindings()
        return found if isinstance(found, str) else ""

    @property
    def executor(self) -> str:
        """None in particular: see :meth:`place`."""
        return ""

    @classmethod
    def stays_on(cls, executor: Executor) -> bool:
        """Return whether the device is one of NVIDIA's."""
        return cls.name in executor.vendor_libraries

    def place(self, executor: Executor) -> Executor:
        """Return the executor of the matrix: no data are copied."""
        return executor

    @property
    def follows_exactly(self) -> bool:
        """Whether the analysis does not depend on values; a matching does."""
        return self._analysis is None or not self._analysis.matched

    def analyse(self, A: Csr) -> None:
        """Compute the ordering and the supernodes."""
        A = A.without_duplicates()
        self._analysis = None
        try:
            self._analysis = self._analysed(A, is_hermitian(A))
        except Refused:
            return  # factorize() tries again, and with a matching

    def factorize(self, A: Csr) -> EngineFactors:
        """Factorize with the analysis, which is repeated for another pattern or symmetry."""
        A = A.without_duplicates()
        analysis, hermitian = self._analysis, is_hermitian(A)
        try:
            if analysis is None or not analysis.suits(A, hermitian):
                analysis = self._analysis = self._analysed(A, hermitian)
            return CuDssFactors(self, analysis, A, hermitian)
        except Refused:
            pass  # a matching for these values is the last attempt
        try:
            self._analysis = self._analysed(A, hermitian=False, matched=True)
            return CuDssFactors(self, self._analysis, A, hermitian)
        except Refused as reason:
            self._analysis = None  # the next values may need no matching
            why = f"cuDSS {reason}"
        return HostFactors(A, why)

    def solve_systems(self, pattern: Csr, systems: FactoredSystems) -> bool:
        """Solve the systems of a batch with one analysis, and judge them together."""
        if self._of_batches is None:
            self._of_batches = SystemsByCuDss(bindings(), self._known_ordering)
        return self._of_batches.solve(pattern, systems)

    @property
    def _known_ordering(self) -> str | None:
        return None if self.ordering is None else _ORDERINGS[self.ordering]

    def _analysed(self, A: Csr, hermitian: bool, *, matched: bool = False) -> Analysis:
        return Analysis(bindings(), A, hermitian, self._known_ordering, matched)


class CuDssFactors(EngineFactors):
    """The factors of one matrix.

    An analysis holds the factors of one matrix. If other values have used it since, this matrix is
    factorized again before it solves.

    Raises
    ------
    Refused
        If solutions with the factors are not accurate.
    """

    def __init__(self, engine: CuDss, analysis: Analysis, A: Csr, hermitian: bool) -> None:
        self.engine, self.analysis, self.hermitian = engine, analysis, hermitian
        # a copy: the owner of A may overwrite its values while these factors are in use
        self.matrix = A._with_data(A.executor.copy(A.data))
        self.key = object()
        self.notes = []
        self._transposed: EngineFactors | None = None
        self._determinant: LogDeterminant | None = None
        self._steps = 0
        self.nnz, replaced, self.counts = analysis.factorize(self.key, self.matrix.data)
        if replaced or self.counts is None or self.counts[1]:
            self._steps = self._steps_needed(A, replaced)
        if replaced:
            self.notes.append(f"direct: cudss replaced {replaced} tiny pivots")
        if self._steps:
            steps = f"{self._steps} step{'s' * (self._steps > 1)} of refinement"
            self.notes.append(f"direct: cudss's factors are not accurate: each solve has {steps}")
        if analysis.matched:
            self.notes.append("direct: cudss matched rows to columns, so that pivots are large")

    def solve(self, b: Array, transposed: str) -> Array:
        """Return the solution of a block of right-hand sides."""
        if not b.size:
            return b
        if self.matrix.dtype.kind != "c":
            transposed = "N" if self.hermitian or transposed == "N" else "T"
        elif self.hermitian:
            transposed = {"N": "N", "H": "N", "T": "conjugate"}[transposed]
        if transposed == "N":
            return self._refined(b)
        if transposed == "T":
            return self._of_transpose().solve(b, "N")
        if transposed == "H":
            return self._of_transpose().solve(b.conj(), "N").conj()
        return self.solve(b.conj(), "N").conj()

    def log_determinant(self) -> LogDeterminant:
        """Return the determinant of the matrix, from factors of SuperLU."""
        if self._determinant is None:
            made = HostFactors(self.matrix, "cuDSS does not tell the sign of a determinant")
            self._determinant = made.log_determinant()
            self.notes.append(
                "direct: SuperLU factorized the matrix on the host for its determinant: cuDSS does "
                "not tell the sign"
            )
        return self._determinant

    def inertia(self) -> tuple[int, int, int]:
        """Return the numbers of positive, negative and zero eigenvalues of a Hermitian matrix."""
        if self.counts is None:
            return super().inertia()
        positive, negative = self.counts
        return positive, negative, self.matrix.shape[0] - positive - negative

    def _of_transpose(self) -> EngineFactors:
        if self._transposed is None:
            engine = type(self.engine)(self.engine.ordering)
            self._transposed = engine.factorize(self.matrix.transpose())
            self.notes += [f"{note}, for the transpose" for note in self._transposed.notes]
        return self._transposed

    def _solved(self, b: Array) -> Array:
        return self.analysis.solve(self.key, self.matrix.data, b)

    def _refined(self, b: Array) -> Array:
        """Return solutions after refinement, with the same number of steps for all blocks."""
        try:
            return self._solved_in_steps(b)
        except Refused as reason:
            where = self.matrix.executor.name
            raise DeviceError(
                f"{where}: Direct: cuDSS {reason}; Direct(A, engine='superlu') works on the host"
            ) from None

    def _solved_in_steps(self, b: Array) -> Array:
        if not self._steps:
            return self._solved(b)
        executor = self.matrix.executor
        b = executor.xp.ascontiguousarray(b)
        x, residual = self._solved(b), executor.allocate(b.shape, b.dtype)
        for _ in range(self._steps):
            _set_residual(self.matrix, x, b, residual)
            executor.run(vector.axpby, self._solved(residual), x, 1.0, 1.0)
        return x

    def _steps_needed(self, A: Csr, replaced: int) -> int:
        """Return the number of refinement steps that make solutions as good as the matrix allows.

        The measure is the normwise backward error: if it is small, the solution is exact for a
        matrix that differs by rounding. This also holds if the matrix is nearly singular and the
        residual is not small. Replaced pivots of a singular matrix cause a large error, or large
        solutions.

        ``A`` is the given matrix: products with it are often already planned.
        """
        executor = A.executor
        given = np.random.default_rng(0).standard_normal((A.shape[0], 1)).astype(A.dtype)
        b = executor.from_host(given)
        x, residual = self._solved(b), executor.allocate(b.shape, b.dtype)
        size = float(largest_values(executor, A.data.reshape(-1, 1))[0])
        of_b = float(np.abs(given).max())
        limit = (_ACCURATE + np.sqrt(A.shape[0])) * float(np.finfo(A.dtype).eps)
        for steps in range(_STEPS + 1):
            if steps:
                executor.run(vector.axpby, self._solved(residual), x, 1.0, 1.0)
            _set_residual(A, x, b, residual)
            left, of_x = (float(largest_values(executor, v)[0]) for v in (residual, x))
            grown = size * of_x / of_b
            error = left / of_b / (grown + 1.0)
            if replaced and not grown <= _BY_REPLACED[real_dtype(A.dtype)]:
                break
            if np.isfinite(left) and error <= limit:
                return steps
        raise Refused(
            f"met {replaced} pivots of about zero"
            if replaced
            else f"left a backward error of {error:.0e}"
        )


def _set_residual(A: Csr, x: Array, b: Array, residual: Array) -> None:
    """Set ``residual = b - A x``."""
    A.executor.run(vector.axpby, b, residual, 1.0, 0.0)
    A._apply(x, residual, -1.0, 1.0)
