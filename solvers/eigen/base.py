"""What LOBPCG and Lanczos share: the operands of a Hermitian pencil, and true residuals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ...core.dtypes import common_dtype, real_dtype
from ...core.errors import InvalidArgument, ShapeMismatch
from ...core.executor import brought_together, same_executor
from ...core.linop import LinOp
from ...core.operands import is_host
from ...core.operations import vector
from ...core.operator import as_linop
from ...core.settings import Settings, settings_of
from ...core.status import Stop
from ..driver.alone import require_one_executor
from . import residual
from .scale import ROUNDING, size_of

if TYPE_CHECKING:
    from ...core.executor import Array, Executor

Numbers = np.ndarray[Any, Any]


class EigenSolver:
    """The base of solvers for ``A x = lambda B x`` with Hermitian ``A`` and ``B > 0``."""

    #: The key of its name in dictionaries of settings.
    ROLE: ClassVar[str] = "eigensolver"

    _options: dict[str, Any]
    A: LinOp
    B: LinOp | None
    executor: Executor
    rtol: float
    atol: float
    #: Sizes of the operators, with the versions of their values.
    _scale: tuple[Any, float, float] | None = None

    def _take(self, A: Any, B: Any, executor: Executor | str | None) -> None:
        self.A = as_linop(A, executor)
        require_one_executor(type(self).__name__, self.A)
        rows, columns = self.A.shape
        if rows != columns:
            raise ShapeMismatch(
                f"{type(self).__name__} needs a square operator, got {rows}x{columns}; singular "
                "values are those of wl.linalg.svds"
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
        """The class and the options that this solver was made with, without the matrix."""
        return settings_of(self)

    def _size(self, k: Any, limit: int) -> int:
        """Return how many pairs are asked for, or raise."""
        if not isinstance(k, (int, np.integer)) or isinstance(k, bool) or k < 1:
            raise InvalidArgument(f"k: expected an integer of at least 1, got {k!r}")
        if k > limit:
            raise InvalidArgument(
                f"k: {k} pairs were asked for, and a matrix of {self.shape[0]} rows has at most "
                f"{limit} that this solver finds; use numpy.linalg.eigh(A.toarray())"
            )
        return int(k)

    def judged(self, X: Array, values: Numbers, seen: float = 0.0) -> tuple[Numbers, Numbers]:
        """Return the norms of the true residuals of pairs, and what they have to reach."""
        executor, k = self.executor, int(X.shape[1])
        real = real_dtype(X.dtype)
        AX = executor.allocate(tuple(X.shape), X.dtype)
        self.A.astype(X.dtype)._multiply(X, AX, 1.0, 0.0)
        BX = X
        if self.B is not None:
            BX = executor.allocate(tuple(X.shape), X.dtype)
            self.B.astype(X.dtype)._multiply(X, BX, 1.0, 0.0)
        norms, sizes = residual.norms(executor, AX, BX, AX, values.astype(real))
        assert norms.size == k
        return norms, self.thresholds(values, sizes, X.dtype, seen)

    def quotients(self, X: Array) -> Numbers:
        """Return the Rayleigh quotients of vectors, ``x^H A x / x^H B x``, NaN where there is none.

        Their errors are the squares of those of the vectors, and they know of no shift.
        """
        executor, parts = self.executor, []
        for operator in (self.A, self.B):
            Y = X
            if operator is not None:
                Y = executor.allocate(tuple(X.shape), X.dtype)
                operator.astype(X.dtype)._multiply(X, Y, 1.0, 0.0)
            found = executor.allocate((int(X.shape[1]),), X.dtype)
            executor.run(vector.dot, X, Y, found)
            parts.append(np.real(executor.to_host(found)).astype(np.float64))
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(parts[0] / parts[1])

    def thresholds(self, values: Numbers, sizes: Numbers, dtype: Any, seen: float = 0.0) -> Numbers:
        """Return what the norms of residuals have to reach; ``sizes`` are those of ``B x``.

        A residual that is rounding, that of a matrix which differs from ``A`` by its rounding, is
        small enough whatever was asked for. Of an operator without entries the norm is not known:
        ``seen`` is what has been seen of it.
        """
        version = tuple(getattr(op, "_values_version", 0) for op in (self.A, self.B))
        if self._scale is None or self._scale[0] != version:
            self._scale = version, size_of(self.A), size_of(self.B)
        _, of_A, of_B = self._scale
        of_A = of_A or seen
        rounding = ROUNDING * float(np.finfo(dtype).eps) * (of_A + np.abs(values) * of_B)
        return np.maximum(np.maximum(self.rtol * np.abs(values) * sizes, self.atol), rounding)

    def _returned(self, X: Array, asked: Any) -> Any:
        """Return vectors as a user gave the start: NumPy's, or native."""
        return X if asked is not None and not is_host(asked) else self.executor.to_host(X)


def verdicts(norms: Numbers, thresholds: Numbers, why: Stop) -> list[Stop]:
    """Return the verdict on each pair; ``why`` is what ended those that did not converge."""
    return [
        Stop.NOT_FINITE if not np.isfinite(norm) else (Stop.CONVERGED if norm <= threshold else why)
        for norm, threshold in zip(norms, thresholds, strict=True)
    ]


def require_tolerances(rtol: Any, atol: Any, maxiter: Any) -> None:
    """Raise InvalidArgument unless tolerances and the limit on iterations are numbers."""
    for name, value in (("rtol", rtol), ("atol", atol), ("maxiter", maxiter)):
        try:
            fits = bool(value >= 0) and np.isfinite(value)
        except TypeError:
            fits = False
        if not fits or (name == "maxiter" and value % 1):
            raise InvalidArgument(f"{name}: expected a number of at least 0, got {value!r}")


def basis_size(ncv: Any, k: int, most: int) -> int:
    """Return how many vectors a basis has from which ``k`` pairs are wanted.

    Raises
    ------
    InvalidArgument
        If ``ncv`` is no integer above ``k`` and up to ``most``; None is a default.
    """
    if ncv is None:
        return min(most, max(2 * k + 1, 20))
    whole = isinstance(ncv, (int, np.integer)) and not isinstance(ncv, bool)
    if not whole or not (k < ncv <= most or ncv == k == most):
        raise InvalidArgument(
            f"ncv: expected an integer above k = {k} and up to {most}, got {ncv!r}"
        )
    return int(ncv)
