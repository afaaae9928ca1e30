"""Values of products of sparse matrices in JAX, with derivatives of every order."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import batching, mlir

from ...core.executor import Array
from ...core.formats import Csr
from ...core.store import Key
from ...solvers.differentiable.terms import C_VALUES, OTHERS, Terms, terms_of, terms_of_transpose
from .functions import folded, of_one_dtype
from .host_kernels import blocks_of
from .known import held_of, known_pattern
from .lowering import PLATFORMS, NativeCall, call_native, register_handlers
from .patterns import sparse_of
from .primitives import batching_rule, multilinear
from .products import spmm_p

if TYPE_CHECKING:
    from jax.typing import ArrayLike


class SparseProduct(NamedTuple):
    """A product of sparse matrices.

    Attributes
    ----------
    pattern : Csr
        The positions of the product's entries, with sorted rows; its values are zeros.
    values : jax.Array, shape (nnz,) or (..., nnz)
        The values of the product.
    """

    pattern: Csr
    values: jax.Array


def matmul(
    A: object, B: object, *, A_values: ArrayLike | None = None, B_values: ArrayLike | None = None
) -> SparseProduct:
    """Return the sparse product ``A @ B``, with derivatives for the values of both.

    Parameters
    ----------
    A : wollemi.Csr, Pattern, BCOO or BCSR, shape (m, p)
        The left factor; its pattern must be known at trace time.
    B : the same, shape (p, n)
    A_values, B_values : array, shape (nse,) or (..., nse), optional
        Replace the values of ``A`` and ``B``, in their order.

    Returns
    -------
    SparseProduct
        The product; it has an entry at each position that any product of two entries contributes
        to.

    Raises
    ------
    ShapeMismatch, UnsupportedDtype, InvalidArgument
        If the operands do not fit.

    Notes
    -----
    The terms of the sums are found once per pair of patterns and cached: six integers per term.
    Compiled programs contain them as constants.

    Examples
    --------
    >>> import jax, jax.numpy as jnp, wollemi as wl
    >>> from wollemi.interop.jax import matmul
    >>> A = wl.Csr(([1.0, 2.0], [0, 1], [0, 1, 2]))
    >>> jax.grad(lambda v: matmul(A, A, A_values=v, B_values=v).values.sum())(jnp.ones(2))
    Array([2., 2.], dtype=float32)
    """
    left, right = sparse_of(A), sparse_of(B)
    a = left.values(float) if A_values is None else left.checked(A_values, "A_values")
    b = right.values(float) if B_values is None else right.checked(B_values, "B_values")
    first, second = (
        known_pattern(sparse, "matmul", name).on_host
        for sparse, name in ((left, "A"), (right, "B"))
    )
    return _product(terms_of(first, second), a, b)


def galerkin(
    A: object, P: object, *, A_values: ArrayLike | None = None, P_values: ArrayLike | None = None
) -> SparseProduct:
    """Return the coarse matrix ``P.T @ A @ P``, with derivatives for the values of both.

    Parameters
    ----------
    A : wollemi.Csr, Pattern, BCOO or BCSR, shape (n, n)
        The fine matrix; its pattern must be known at trace time.
    P : the same, shape (n, k)
    A_values, P_values : array, optional
        Replace the values of ``A`` and ``P``, in their order.

    Returns
    -------
    SparseProduct
        The product, of shape (k, k).
    """
    left, right = sparse_of(A), sparse_of(P)
    a = left.values(float) if A_values is None else left.checked(A_values, "A_values")
    p = right.values(float) if P_values is None else right.checked(P_values, "P_values")
    matrix = known_pattern(left, "galerkin").on_host
    prolongation = known_pattern(right, "galerkin", "P").on_host
    half = _product(terms_of(matrix, prolongation), a, p)
    return _product(terms_of_transpose(prolongation, half.pattern), p, half.values)


def _product(terms: Terms, a: jax.Array, b: jax.Array) -> SparseProduct:
    held = HeldTerms.of(terms)
    a, b = of_one_dtype("matmul", a, b)
    (a, b), lead = folded((a, 1), (b, 1))
    values = contract_p.bind(a, b, pattern=held, role=C_VALUES)
    return SparseProduct(held.terms.product, values.reshape(*lead, -1))


class HeldTerms:
    """The terms of a product as a constant of traced functions; compares by identity."""

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self.patterns = [held_of(contraction.pattern) for contraction in terms.of]
        self.native = [
            NativeCall("wollemi_contract", order=partial(_first_of, terms, role))
            for role in range(len(terms.of))
        ]
        self.compiled: dict[int, Any] = {}

    @classmethod
    def of(cls, terms: Terms) -> HeldTerms:
        """Return the held form of a product's terms, made once."""
        return terms.product._pattern.get(_HELD_TERMS, lambda: cls(terms))


def _first_of(terms: Terms, role: int) -> Array:
    """Return the positions of the first factors of a contraction's terms."""
    return terms.of[role].first


_HELD_TERMS: Key[HeldTerms] = Key("terms of a product, held by JAX")


def _contracted(
    x: jax.Array, y: jax.Array, *, pattern: HeldTerms, role: int, kernel: str = "auto"
) -> jax.Array:
    """Return the sums by a matrix-vector product with one matrix value per term."""
    contraction, held = pattern.terms.of[role], pattern.patterns[role]
    A = contraction.pattern
    first = A.executor.to_host(contraction.first)
    values = x.at[:, first].get(mode="promise_in_bounds")
    made = spmm_p.bind(values, y[..., None], pattern=held, columns=A.shape[1], kernel=kernel)
    return made[..., 0]


_by_product = mlir.lower_fun(_contracted, multiple_results=False)
# For one column, the default rule picks a vector kernel, which launches cannot repeat.
_by_segments = mlir.lower_fun(partial(_contracted, kernel="row-segments"), multiple_results=False)


def _on_cpu(
    ctx: mlir.LoweringRuleContext, *values: mlir.ir.Value, pattern: HeldTerms, role: int
) -> Any:
    held = pattern.patterns[role]
    on = held.on_host.executor
    exported = ctx.module_context.lowering_parameters.for_export
    if exported or not (on.foreign_handlers() and register_handlers()):
        return _by_product(ctx, *values, pattern=pattern, role=role)
    columns = pattern.terms.of[role].pattern.shape[1]
    return call_native(ctx, values, pattern.native[role], on, held, columns, {})


def _eager(x: jax.Array, y: jax.Array, *, pattern: HeldTerms, role: int) -> jax.Array:
    if role not in pattern.compiled:
        pattern.compiled[role] = jax.jit(lambda x, y: _contracted(x, y, pattern=pattern, role=role))
    return pattern.compiled[role](x, y)


def _gradient(
    g: jax.Array, role: int, at: int, others: Sequence[Any], pattern: HeldTerms
) -> jax.Array:
    """Return the contraction of the gradient with the other operand: one operand's gradient."""
    wanted, left = OTHERS[role][at], OTHERS[role][1 - at]
    given = {role: g, left: others[1 - at]}
    operands = (given[which] for which in OTHERS[wanted])
    return contract_p.bind(*operands, pattern=pattern, role=wanted)


contract_p = Primitive("wollemi_contract")
contract_p.def_impl(_eager)
contract_p.def_abstract_eval(
    lambda x, y, *, pattern, role: jax.core.ShapedArray(
        (blocks_of((x, y)), pattern.terms.of[role].pattern.shape[0]), jnp.result_type(x, y)
    )
)
mlir.register_lowering(contract_p, _by_product)
for _platform in PLATFORMS:
    mlir.register_lowering(contract_p, _by_segments, platform=_platform)
mlir.register_lowering(contract_p, _on_cpu, platform="cpu", cacheable=False)
batching.primitive_batchers[contract_p] = batching_rule(contract_p)
multilinear(
    contract_p,
    lambda g, _, o, *, pattern, role: _gradient(g, role, 0, o, pattern),
    lambda g, _, o, *, pattern, role: _gradient(g, role, 1, o, pattern),
)
