"""The base of LOBPCG and Lanczos: the operands of a Hermitian pencil, and true residuals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ...core.capture import SOLVES
from ...core.described import Described
from ...core.dtypes import common_dtype
from ...core.errors import InvalidArgument, InvalidMatrix, ShapeMismatch
from ...core.executor import brought_together, same_executor
from ...core.factors import whole_number
from ...core.linop import LinOp
from ...core.notes import Note, Topic
from ...core.operands import is_host
from ...core.operator_conversions import as_linop
from ...core.settings import Settings, settings_of
from ...core.setup_time import setup_seconds
from ...core.status import Stop
from ...core.vector_conversions import GroupVectorConverter, VectorConverter
from ..driver.scaling import largest_values
from ..driver.unrecorded import Unrecorded
from .pencil import Pencil
from .result import EigenResult
from .scale import IDENTITY, Measure, measured

if TYPE_CHECKING:
    from ...core.executor import Array, Executor

Numbers = np.ndarray[Any, Any]

#: Operators with a larger asymmetry are refused; for a smaller one, the residuals decide.
ASYMMETRY = 1e-4

#: Report an asymmetry above this many unit roundoffs if pairs did not converge.
NOTED = 64.0


class EigenSolver(Unrecorded, Described):
    """The base of solvers for ``A x = lambda B x`` with Hermitian ``A`` and ``B > 0``."""

    SHARED = True

    #: The key of a solver in dictionaries of settings.
    ROLE: ClassVar[str] = "eigensolver"

    _options: dict[str, Any]
    A: LinOp
    B: LinOp | None
    executor: Executor
    rtol: float
    atol: float
    #: Measures of the operators, with the versions of their values.
    _measured: tuple[Any, Measure, Measure] | None = None
    #: Whether ``A`` defines the inner product, and ``B`` may be indefinite.
    _inner_is_A = False

    def _take(self, A: Any, B: Any, executor: Executor | str | None) -> None:
        self.A = as_linop(A, executor)
        rows, columns = self.A.shape
        if rows != columns:
            raise ShapeMismatch(
                f"{type(self).__name__} needs a square operator, got {rows}x{columns}; singular "
                "values are computed by wl.linalg.svds"
            )
        if B is None:
            self.B = None
        else:
            B = as_linop(B, executor if executor is not None else None)
            self.A, self.B = brought_together("the solver", self.A, B)
            if self.B.shape != self.A.shape:
                raise ShapeMismatch(f"B is {B.shape[0]}x{B.shape[1]} and A is {rows}x{columns}")
            same_executor("the solver", self.A, self.B)
        self.executor = self.A.executor
        self.shape = self.A.shape
        self.dtype = common_dtype(*(op.dtype for op in (self.A, self.B) if op is not None))

    @property
    def settings(self) -> Settings:
        """The class and the options of this solver, without the matrix."""
        return settings_of(self)

    @property
    def partition(self) -> Any:
        """The distribution of vectors, if a group of executors shares ``A``."""
        return self.A.partition

    def _size(self, k: Any, limit: int) -> int:
        """Return the number of requested pairs, or raise."""
        count = whole_number(k, "k", 1)
        if count > limit:
            raise InvalidArgument(
                f"k: {k} pairs were asked for, and a matrix of {self.shape[0]} rows has at most "
                f"{limit} that this solver finds; use numpy.linalg.eigh(A.toarray())"
            )
        return count

    def _versions(self) -> tuple[int, ...]:
        """Return the versions of the values of ``A`` and ``B``."""
        for operator in (self.A, self.B):
            if operator is not None:
                operator._follow_writes()
        return tuple(getattr(op, "_values_version", 0) for op in (self.A, self.B))

    def measures(self) -> tuple[Measure, Measure]:
        """Return the measures of ``A`` and ``B``, updated if their values have changed.

        Raises
        ------
        InvalidMatrix
            If ``A`` or ``B`` is not Hermitian, or the matrix of the inner product is indefinite.
        """
        version = self._versions()
        if self._measured is None or self._measured[0] != version:
            of_A = measured(self.A)
            of_B = IDENTITY if self.B is None else measured(self.B)
            for name, found in (("A", of_A), ("B", of_B)):
                require_hermitian(f"{type(self).__name__}: {name}", found)
            if not np.isfinite(of_B.size):
                raise InvalidMatrix("B has NaN or Inf: there are no eigenvalues; replace them")
            if not (of_A if self._inner_is_A else of_B).positive:
                raise not_positive("A" if self._inner_is_A else "B")
            self._measured = version, of_A, of_B
        return self._measured[1:]

    def pencil(self, dtype: Any) -> Pencil:
        """Return the pencil of a solve in a dtype, with the tolerances of this solver."""
        self.executor.refuse_host(SOLVES)
        of_A, of_B = self.measures()
        return Pencil(
            self.A, self.B, dtype, of_A, of_B, self.rtol, self.atol, plain=self._inner_is_A
        )

    def _result(
        self,
        pencil: Pencil,
        X: Array,
        values: Numbers,
        norms: Numbers,
        limits: Numbers,
        why: Stop,
        block: Any,
        converter: VectorConverter,
        **report: Any,
    ) -> EigenResult:
        """Return pairs in the user's units, each with a verdict.

        ``X``, ``values``, ``norms`` and ``limits`` are in the units of the pencil, ``why`` is the
        reason of pairs that did not converge, ``block`` the user's initial vectors, ``edge`` their
        array type, and ``report`` has the remaining fields of the result.
        """
        stops = pencil.stops(X, values, norms, limits, why)
        asymmetry = self.measures()[0].asymmetry
        if asymmetry > NOTED * pencil.eps and Stop.STAGNATED in stops:
            said = (
                f"A differs from its conjugate transpose by {asymmetry:.1g} of its norm, below "
                "which residuals do not fall: take 0.5 * (A + A.H)"
            )
            report["notes"].append(Note(said, Topic.ASYMMETRY))
        X = pencil.vectors(X)
        return EigenResult(
            eigenvalues=pencil.values(values),
            eigenvectors=left_at(converter, X, block),
            residual_norms=pencil.lengths(norms),
            thresholds=pencil.lengths(limits),
            stops=stops,
            solver=type(self).__name__,
            executor=self.executor.name,
            setup_seconds=setup_seconds(self),
            **report,
        )


def agreement_of(solver: Any) -> tuple[str, ...]:
    """Return the settings on which all members of a group must agree, since they share sums."""
    given = solver._options.items()
    return (
        type(solver).__name__,
        *[f"{name} {value!r}" for name, value in given if np.isscalar(value)],
    )


def started(converter: VectorConverter, about: tuple[str, ...], v0: Any) -> Array | None:
    """Return the user's first vector as a block, or None.

    Raises
    ------
    ShapeMismatch, InvalidArgument
        If it does not match the operator, is not finite, or is zero.
    """
    (start,) = converter.to_blocks(about, v0=v0)
    if start is not None:
        largest = largest_values(converter.executor, start)
        if start.shape[1] != 1 or not 0 < largest[0] < np.inf:
            raise InvalidArgument("v0: expected one finite vector that is not zero")
    return start


def left_at(converter: VectorConverter, X: Array, block: Any) -> Any:
    """Return vectors in the user's array type; whole ones on the host without a start."""
    if isinstance(converter, GroupVectorConverter) and (block is None or converter.whole):
        converter.whole = True
        return converter.from_block(X, np.empty((0, 0)) if block is None else np.atleast_2d(block))
    at_home = block is not None and not is_host(block)
    return X if at_home else converter.executor.to_host(X)


def require_tolerances(rtol: Any, atol: Any, maxiter: Any) -> None:
    """Raise InvalidArgument unless tolerances and the limit on iterations are numbers."""
    whole_number(maxiter, "maxiter")
    for name, value in (("rtol", rtol), ("atol", atol)):
        try:
            fits = bool(value >= 0) and np.isfinite(value)
        except TypeError:
            fits = False
        if not fits:
            raise InvalidArgument(f"{name}: expected a number of at least 0, got {value!r}")


def basis_size(ncv: Any, k: int, most: int) -> int:
    """Return the size of a basis for ``k`` wanted pairs.

    Raises
    ------
    InvalidArgument
        If ``ncv`` is not an integer above ``k`` and at most ``most``; None selects a default.
    """
    if ncv is None:
        return min(most, max(2 * k + 1, 20))
    whole = isinstance(ncv, (int, np.integer)) and not isinstance(ncv, bool)
    if not whole or not (k < ncv <= most or ncv == k == most):
        raise InvalidArgument(
            f"ncv: expected an integer above k = {k} and up to {most}, got {ncv!r}"
        )
    return int(ncv)


def require_hermitian(name: str, measure: Measure) -> None:
    """Raise InvalidMatrix unless an operator is Hermitian, up to a small difference."""
    if measure.asymmetry > ASYMMETRY:
        raise InvalidMatrix(
            f"{name} is not Hermitian (symmetric, if real): it differs from its conjugate "
            f"transpose by {measure.asymmetry:.1g} of its norm. If the difference is an error of "
            "assembly, take 0.5 * (A + A.H). For a general matrix take "
            "scipy.sparse.linalg.eigs(A.to_scipy()), or singular values by wl.linalg.svds"
        )


def not_positive(name: str) -> InvalidMatrix:
    """Return the error for an indefinite matrix of an inner product."""
    return InvalidMatrix(
        f"{name} is not positive definite: a quadratic form x^H {name} x is negative, so that it "
        "makes no inner product. "
        + (
            "Take mode='normal', for which B has to be positive definite"
            if name == "A"
            else "If A is positive definite, exchange A and B: the eigenvalues of B x = mu A x are "
            "mu = 1 / lambda"
        )
    )
