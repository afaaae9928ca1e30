"""Sums over long rows and columns of products with dense matrices, in single precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.core.operations import attention, masks
from wollemi.core.operations import products as operations
from wollemi.masks import Mask

from .dense_products import dtype_called, wide
from .lockstep.executor import LockstepExecutor
from .with_emulated import executor_of, named_and_emulated

REFERENCE = wl.executor("reference")
#: Entries of the long row: one after the other, as many tenths drift by 1e-3 in float32.
N = 100_000
#: With it no score is so large that a gradient of sigmoid loses digits.
ALPHA = 0.05
EDGES = ("identity", "sigmoid", "softmax")


@pytest.fixture(
    params=named_and_emulated(reference=True),
    ids=str,
)
def on(request: Any) -> Any:
    return executor_of(request.param)


def length(on: Any) -> int:
    """Return the entries of the long row; fibers take seconds for as many as on other executors."""
    return 2000 if isinstance(on, LockstepExecutor) else N


def one_long(axis: int, n: int) -> wl.Csr:
    """Return the pattern of a long row and one with three entries, or of two long columns."""
    if axis == 1:
        return wl.Csr(np.ones((n, 2), "f"), executor=REFERENCE)
    columns, indptr = np.concatenate([np.arange(n), [0, n // 2, n - 1]]), np.array([0, n, n + 3])
    return wl.Csr((np.ones(n + 3, "f"), columns, indptr), (2, n), executor=REFERENCE)


def requires(on: Any, operation: Any) -> None:
    if not on.supports(operation):
        pytest.skip(f"{operation.name} has no kernel on {on.name}")


def computed(on: Any, operation: Any, A: Any, given: Any, like: Any, *scalars: Any) -> Any:
    """Return arrays that an operation writes, which are like these."""
    made = [on.from_host(np.full(x.shape, 3).astype(x.dtype)) for x in like]
    there = [None if x is None else on.from_host(x.copy()) for x in given]
    on.run(operation, A if on is REFERENCE else A.to(on), *there, *made, *scalars)
    return [wide(np.array(on.to_host(x))) for x in made]


def assert_equals(
    on: Any, operation: Any, A: Any, given: Any, like: Any, *scalars: Any, eps: float = 2e-6
) -> None:
    """Fail unless results have the errors of a few roundings, compared with double precision."""
    requires(on, operation)
    found = computed(on, operation, A, given, like, *scalars)
    doubled = [[None if x is None else wide(x) for x in arrays] for arrays in (given, like)]
    expected = computed(REFERENCE, operation, A, *doubled, *scalars)
    for number, (have, want) in enumerate(zip(found, expected, strict=True)):
        error = np.abs(have - want).max(initial=0.0) / np.abs(want).max(initial=1e-30)
        assert error <= eps, f"result {number}: {error:.1e}"


def rising(shape: tuple[int, ...], T: Any) -> Any:
    """Return numbers that rise slowly along the axis before the last: roundings have one sign."""
    numbers = np.linspace(0.1, 2.1, shape[-2])[:, None]
    return np.broadcast_to(numbers, shape).astype(T)


def operands(T: Any, shape: tuple[int, int]) -> list[Any]:
    """Return C, B, D and G."""
    m, n = shape
    return [rising((1, *size), T) for size in ((m, 2), (n, 2), (n, 3), (m, 3))]


@pytest.mark.parametrize("edge", EDGES)
@pytest.mark.parametrize(
    ("dtype", "eps"), [("float32", 2e-6), ("float16", 6e-4), ("bfloat16", 4e-3)]
)
def test_fused_products(on: Any, dtype: str, eps: float, edge: str) -> None:
    T, A = dtype_called(dtype), one_long(0, length(on))
    C, B, D, G = operands(T, A.shape)
    D = D if edge == "softmax" else (wide(D) / 16).astype(T)  # float16 ends at 65504
    given = (None, C, B, D)
    assert_equals(on, operations.csr_fusedmm, A, given, (G,), ALPHA, edge, "auto", eps=eps)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("edge", EDGES)
def test_gradients_of_fused_products(on: Any, edge: str, axis: int) -> None:
    A = one_long(axis, length(on))
    C, B, D, G = operands(np.float32, A.shape)
    values = np.ones((1, A.nnz), "f")
    given, like = (values, C, B, D, G), (values, C, B, D)
    assert_equals(on, operations.csr_fusedmm_backward, A, given, like, ALPHA, edge, eps=5e-6)


def test_logarithms_of_totals(on: Any) -> None:
    A = one_long(0, length(on))
    C, B, D, G = operands(np.float32, A.shape)
    logs = np.zeros((1, 2), "f")
    given, like = (None, C, B, D), (G, logs)
    assert_equals(on, operations.csr_fusedmm_softmax, A, given, like, ALPHA, "auto")


def test_softmax_of_entries(on: Any) -> None:
    requires(on, operations.csr_softmax)
    A = one_long(0, length(on))
    scores = rising((1, A.nnz, 1), "f")[..., 0]

    def weights_and_gradients(executor: Any, s: Any) -> tuple[Any, Any]:
        there = A if executor is REFERENCE else A.to(executor)
        S, G = executor.from_host(s.copy()), executor.from_host(s.copy())
        executor.run(operations.csr_softmax, there, S)
        P = executor.from_host(np.array(executor.to_host(S)))
        executor.run(operations.csr_softmax_backward, there, P, G)
        return tuple(wide(np.array(executor.to_host(x))) for x in (S, G))

    found, expected = (
        weights_and_gradients(on, scores),
        weights_and_gradients(REFERENCE, wide(scores)),
    )
    for have, want in zip(found, expected, strict=True):
        long, expected_long = have[0, :-3], want[0, :-3]
        atol = 2e-6 * np.abs(expected_long).max()
        np.testing.assert_allclose(long, expected_long, rtol=0, atol=atol)


def test_gradients_of_largest_rows(on: Any) -> None:
    A = one_long(0, length(on))
    X, Y = np.ones((1, 2, 3), "f"), np.ones((1, A.shape[1], 3), "f")
    G = rising(Y.shape, "f")
    assert_equals(on, operations.csr_spmm_where_equal, A, (X, Y, G), (X,))


@pytest.mark.parametrize("edge", EDGES)
def test_masks(on: Any, edge: str) -> None:
    n = length(on)
    mask = Mask(np.array([0, n // 2]), np.array([n, n]), n, executor=REFERENCE)
    C, B, D, G = operands(np.float32, (2, n))
    assert_equals(on, masks.fusedmm, mask, (C, B, D), (G,), ALPHA, edge, "auto")
    given, like = (C, B, D, G), (C, B, D)
    # of the gradient of a score nine tenths cancel
    assert_equals(on, masks.fusedmm_backward, mask, given, like, ALPHA, edge, "auto", eps=1e-5)


@pytest.mark.parametrize("edge", EDGES)
def test_masks_with_a_long_column(on: Any, edge: str) -> None:
    n = length(on)
    mask, (C, B, D, G) = (
        Mask(np.zeros(n, int), np.full(n, 2), 2, executor=REFERENCE),
        operands(np.float32, (n, 2)),
    )
    given, like = (C, B, D, G), (C, B, D)
    assert_equals(on, masks.fusedmm_backward, mask, given, like, ALPHA, edge, "auto", eps=5e-6)


def test_additive_attention(on: Any) -> None:
    A = one_long(0, length(on))
    target, source, D = (
        rising((1, r, c), "f") for r, c in ((2, 2), (A.shape[1], 2), (A.shape[1], 4))
    )
    E, logs = np.zeros((1, 2, 4), "f"), np.zeros((1, 2, 2), "f")
    given, like = (target, source, D), (E, E, logs, logs)
    assert_equals(on, attention.csr_additive_attention, A, given, like, 0.2)


def test_gradients_of_additive_attention(on: Any) -> None:
    A = one_long(1, length(on))
    m, n = A.shape
    target, source, D, G = (rising((1, r, c), "f") for r, c in ((m, 2), (n, 2), (n, 4), (m, 4)))
    given, like = (target, source, D, G, target, -target), (source, D)
    operation = attention.csr_additive_attention_backward
    assert_equals(on, operation, A, given, like, 0.2, eps=5e-6)


@pytest.mark.parametrize("entries", [1, 9])
def test_samples_of_long_operands(on: Any, entries: int) -> None:
    k = length(on)
    A = wl.Csr(np.ones((2, entries), "f"), executor=REFERENCE)
    C, B = (np.full((1, rows, k), number, "f") for rows, number in ((2, 0.1), (entries, 1)))
    S = np.zeros((1, A.nnz), "f")
    assert_equals(on, operations.csr_sddmm, A, (None, C, B), (S,), 1.0, 0.0, "auto", eps=4e-6)
