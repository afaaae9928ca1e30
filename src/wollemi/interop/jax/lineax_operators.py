"""Matrices, preconditioners and solvers of wollemi for lineax, a solver library for JAX."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import lineax as lx
import numpy as np
from jax.interpreters import ad

from ...core.errors import InvalidArgument, ShapeMismatch
from ...core.executor import Array
from ...core.foreign import Step
from ...core.formats import Csr
from ...core.linop import LinOp
from ...solvers.preconditioners.names import preconditioner as named
from .device_kernels import apart
from .functions import spmm
from .host_kernels import DENSE, HostKernel
from .known import known_pattern, weights_of
from .patterns import Held, sparse_of
from .primitives import as_blocks, define, given, total
from .solves import solve

if TYPE_CHECKING:
    from lineax import AbstractLinearOperator

    from ...core.settings import Settings


class SparseLinearOperator(lx.AbstractLinearOperator):
    """A sparse matrix as a lineax operator; its values are a leaf, its pattern is constant.

    Parameters
    ----------
    A : wollemi.Csr, Pattern, BCOO or BCSR, shape (m, n)
        The matrix; its pattern must be known at trace time.
    tags : object or set of objects
        lineax tags: ``lineax.symmetric_tag``, ``lineax.positive_semidefinite_tag``.
    values : array of float32 or float64, shape (nse,), optional
        Replaces the values of ``A``, in their order.

    Examples
    --------
    >>> import jax.numpy as jnp, lineax, wollemi as wl
    >>> from wollemi.interop.lineax import Solver, SparseLinearOperator
    >>> A = SparseLinearOperator(wl.Csr(([2.0, 4.0], [0, 1], [0, 1, 2])))
    >>> lineax.linear_solve(A, jnp.array([2.0, 8.0]), Solver(solver="direct")).value
    Array([1., 2.], dtype=float32)
    """

    values: jax.Array
    matrix: Held = eqx.field(static=True)
    tags: frozenset[object] = eqx.field(static=True)

    def __init__(
        self, A: object, tags: object | frozenset[object] = (), values: jax.Array | None = None
    ) -> None:
        sparse = sparse_of(A)
        self.matrix = known_pattern(sparse, "SparseLinearOperator")
        self.values = weights_of(sparse, values, "SparseLinearOperator")
        several: Any = tags if isinstance(tags, (set, frozenset, tuple, list)) else (tags,)
        self.tags = frozenset(several)

    @property
    def pattern(self) -> Csr:
        """The pattern, on an executor of the host."""
        return self.matrix.on_host

    def mv(self, vector: jax.Array) -> jax.Array:
        """Return the product with a vector.

        Parameters
        ----------
        vector : array, shape (n,)
            The vector, a JAX array.
        """
        return spmm(self.pattern, vector, values=self.values)

    def as_matrix(self) -> jax.Array:
        """Return the dense matrix."""
        (m, n), A = self.pattern.shape, self.pattern
        rows = np.repeat(np.arange(m), np.diff(A.indptr))
        zeros = jnp.zeros((m, n), self.values.dtype)
        return zeros.at[rows, np.asarray(A.indices)].add(self.values)

    def transpose(self) -> SparseLinearOperator:
        """Return the transpose; its pattern is made once."""
        if lx.is_symmetric(self):
            return self
        pattern, order = self.pattern.transposed_pattern()
        return SparseLinearOperator(
            pattern, lx.transpose_tags(self.tags), self.values[np.asarray(order)]
        )

    def in_structure(self) -> Any:
        """Return the shape and the dtype of operands."""
        return jax.ShapeDtypeStruct((self.pattern.shape[1],), self.values.dtype)

    def out_structure(self) -> Any:
        """Return the shape and the dtype of products."""
        return jax.ShapeDtypeStruct((self.pattern.shape[0],), self.values.dtype)


class Preconditioner(lx.AbstractLinearOperator):
    """A symmetric preconditioner of wollemi, for lineax's ``options={"preconditioner": ...}``.

    It is made once from the current values of the matrix and is constant in compiled functions.
    ``lineax.CG`` requires a positive definite preconditioner.

    Parameters
    ----------
    A : wollemi.Csr, shape (n, n)
        A symmetric positive definite matrix.
    M : str, Settings or LinOp
        A name such as ``"amg"``, settings, or a preconditioner of ``A``.

    Examples
    --------
    >>> import jax.numpy as jnp, lineax, wollemi as wl
    >>> from wollemi.interop.lineax import Preconditioner, SparseLinearOperator
    >>> A = wl.Csr(([2.0, 4.0], [0, 1], [0, 1, 2]))
    >>> operator = SparseLinearOperator(A, lineax.positive_semidefinite_tag)
    >>> options = {"preconditioner": Preconditioner(A, "jacobi")}
    >>> cg = lineax.CG(rtol=1e-6, atol=1e-6)
    >>> lineax.linear_solve(operator, jnp.array([2.0, 8.0]), cg, options=options).value
    Array([1., 2.], dtype=float32)
    """

    held: Held = eqx.field(static=True)
    made: Made = eqx.field(static=True)

    def __init__(self, A: Csr, M: str | Settings = "jacobi") -> None:
        if not isinstance(A, Csr):
            raise InvalidArgument(f"A: expected a wl.Csr, got {type(A).__name__}")
        if A.shape[0] != A.shape[1]:
            raise ShapeMismatch(f"A: expected a square matrix, got shape {A.shape}")
        self.held = known_pattern(sparse_of(A), "Preconditioner")
        self.made = Made(A, M)

    def mv(self, vector: jax.Array) -> jax.Array:
        """Return the preconditioner times a vector.

        Parameters
        ----------
        vector : array, shape (n,)
            The vector, a JAX array.
        """
        block = jnp.asarray(vector, self.made.dtype)[None, :, None]
        params = {"pattern": self.held, "columns": self.held.matrix.shape[1]}
        return precondition_p.bind(block, made=self.made, **params)[0, :, 0]

    def as_matrix(self) -> jax.Array:
        """Return the dense matrix."""
        return jax.vmap(self.mv)(jnp.eye(self.held.matrix.shape[0], dtype=self.made.dtype)).T

    def transpose(self) -> Preconditioner:
        """Return the preconditioner itself, which is symmetric."""
        return self

    def in_structure(self) -> Any:
        """Return the shape and the dtype of operands."""
        return jax.ShapeDtypeStruct((self.held.matrix.shape[0],), self.made.dtype)

    out_structure = in_structure


class Made:
    """A preconditioner on every executor that has used it; compares by identity."""

    def __init__(self, A: Csr, M: str | Settings) -> None:
        self._matrix, self._settings = A, M
        self.dtype = np.dtype(A.dtype)
        self._on: dict[str, LinOp] = {}
        self.on(A)

    def on(self, pattern: Csr) -> LinOp:
        """Return the preconditioner on the executor of a pattern."""
        executor = pattern.executor
        if executor.name not in self._on:
            A = self._matrix if executor == self._matrix.executor else self._matrix.to(executor)
            made = named(self._settings, A)
            if made is None or not isinstance(made, LinOp):
                raise InvalidArgument(
                    f"M: expected the name, the settings or an instance of a preconditioner, got "
                    f"{self._settings!r}"
                )
            self._on[executor.name] = made
        return self._on[executor.name]


def _apply(A: Csr, blocks: int, r: Array, *, made: Made) -> Any:
    M = made.on(A)
    return np.stack([np.asarray(M @ np.array(block)) for block in r])


def _apply_there(A: Csr, operands: Sequence[Array], out: Array, *, made: Made) -> Sequence[Step]:
    def work() -> None:
        M = made.on(A)
        for r, z in zip(operands[0], out, strict=True):
            z[...] = M @ A.executor.copy(r)

    return [apart(A.executor, work)]


precondition_p = define(
    HostKernel("precondition", _apply, (DENSE,), DENSE),
    lambda m, n, e, r, **_: r.shape[1:],
    device=_apply_there,
)


def _precondition_jvp(
    primals: Sequence[jax.Array], tangents: Sequence[jax.Array], **params: object
) -> tuple[Any, Any]:
    out, t = precondition_p.bind(*primals, **params), given(tangents[0])
    return out, total(out, None if t is None else precondition_p.bind(t, **params))


def _precondition_transpose(g: jax.Array, r: jax.Array, **params: object) -> list[Any]:
    if type(g) is ad.Zero:
        return [ad.Zero(r.aval)]
    return [as_blocks(precondition_p.bind(g, **params), r.aval.shape[0])]


ad.primitive_jvps[precondition_p] = _precondition_jvp
ad.primitive_transposes[precondition_p] = _precondition_transpose


class Solver(lx.AbstractLinearSolver):
    """A solver of wollemi for ``lineax.linear_solve``, for operators that are sparse matrices.

    Parameters
    ----------
    solver : str or Settings
        As in :func:`wollemi.interop.jax.solve`.
    M : str or Settings
        The preconditioner; it is made anew for new values.
    rtol, atol : float
        Stop at ``norm(b - A x) <= max(rtol * norm(b), atol)``.
    maxiter : int, optional

    Raises
    ------
    SystemNotSolved
        If a system is not solved. In compiled functions, JAX raises an error with its message.
    """

    solver: str | Settings = eqx.field(static=True, default="auto")
    M: str | Settings = eqx.field(static=True, default="auto")
    rtol: float | None = eqx.field(static=True, default=None)
    atol: float = eqx.field(static=True, default=0.0)
    maxiter: int | None = eqx.field(static=True, default=None)

    def init(
        self, operator: AbstractLinearOperator, options: dict[str, Any]
    ) -> SparseLinearOperator:
        """Return the operator, which must be a :class:`SparseLinearOperator`.

        Parameters
        ----------
        operator : SparseLinearOperator
            The operator, with or without tags.
        options : dict
            Ignored.
        """
        if isinstance(operator, lx.TaggedLinearOperator):
            operator = operator.operator
        if not isinstance(operator, SparseLinearOperator):
            raise InvalidArgument(
                f"operator: expected a SparseLinearOperator, got {type(operator).__name__}"
            )
        return operator

    def compute(
        self, state: SparseLinearOperator, vector: jax.Array, options: dict[str, Any]
    ) -> tuple[Any, Any, dict[str, Any]]:
        """Solve the system.

        Parameters
        ----------
        state : SparseLinearOperator
            The operator.
        vector : array, shape (n,)
            The right-hand side.
        options : dict
            Ignored.
        """
        solve_options: dict[str, Any] = {
            "solver": self.solver,
            "M": self.M,
            "rtol": self.rtol,
            "atol": self.atol,
        }
        x = solve(state.pattern, vector, values=state.values, maxiter=self.maxiter, **solve_options)
        return x, lx.RESULTS.successful, {}

    def transpose(self, state: SparseLinearOperator, options: dict[str, Any]) -> tuple[Any, Any]:
        """Return the transposed operator."""
        return state.transpose(), options

    def conj(self, state: SparseLinearOperator, options: dict[str, Any]) -> tuple[Any, Any]:
        """Return the operator: its values are real."""
        return state, options

    def assume_full_rank(self) -> bool:
        """Return True: operators are assumed to be nonsingular."""
        return True


# ---- the properties of operators that lineax queries


def _tagged(tag: object) -> Callable[[SparseLinearOperator], bool]:
    return lambda operator: tag in operator.tags


def _never(operator: AbstractLinearOperator) -> bool:
    return False


lx.is_symmetric.register(SparseLinearOperator)(
    lambda operator: bool(
        operator.tags
        & {lx.symmetric_tag, lx.positive_semidefinite_tag, lx.negative_semidefinite_tag,
           lx.diagonal_tag}
    )
)  # fmt: skip
for _question, _tag in (
    (lx.is_positive_semidefinite, lx.positive_semidefinite_tag),
    (lx.is_negative_semidefinite, lx.negative_semidefinite_tag),
    (lx.is_diagonal, lx.diagonal_tag),
    (lx.is_tridiagonal, lx.tridiagonal_tag),
    (lx.is_lower_triangular, lx.lower_triangular_tag),
    (lx.is_upper_triangular, lx.upper_triangular_tag),
    (lx.has_unit_diagonal, lx.unit_diagonal_tag),
):
    _question.register(SparseLinearOperator)(_tagged(_tag))
    _question.register(Preconditioner)(_never)
for _question in (lx.is_symmetric, lx.is_positive_semidefinite):
    _question.register(Preconditioner)(lambda operator: True)
for _kind in (SparseLinearOperator, Preconditioner):
    for _same in (lx.linearise, lx.materialise, lx.conj):
        _same.register(_kind)(lambda operator: operator)
    lx.diagonal.register(_kind)(lambda operator: jnp.diag(operator.as_matrix()))


@lx.diagonal.register(SparseLinearOperator)
def _diagonal(operator: SparseLinearOperator) -> Any:
    A = operator.pattern
    rows = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    inside = np.flatnonzero(rows == np.asarray(A.indices))
    zeros = jnp.zeros(min(A.shape), operator.values.dtype)
    return zeros.at[rows[inside]].add(operator.values[inside])
