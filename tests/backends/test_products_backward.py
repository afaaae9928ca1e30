"""The gradients of fusedmm by one kernel, against derivatives in float64 and by hand."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wollemi as wl
from wollemi.core.operations import products as operations

from .conftest import GPUS, executor_names
from .dense_products import (
    added_up,
    dtype_called,
    eps,
    matrix,
    numbers,
    rows_of,
    weigh,
    wide,
)

EDGES = ("identity", "sigmoid", "softmax")
every_executor = pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.gpu] * (name.partition(":")[0] in GPUS))
        for name in ("reference", *executor_names())
        if wl.executor(name).supports(operations.csr_fusedmm_backward)
    ],
)


def operands(rng: np.random.Generator, A: wl.Csr, k: int, p: int, T: Any, b: int = 1) -> list[Any]:
    """Return C, B, D and the gradient of the result."""
    m, n = A.shape
    return [numbers(rng, (b, *shape), T) for shape in ((m, k), (n, k), (n, p), (m, p))]


def gradients(
    A: wl.Csr,
    given: list[Any],
    edge: str,
    values: Any = None,
    alpha: float = 0.5,
    needs: tuple[bool, ...] = (True,) * 4,
) -> list[Any]:
    """Return the gradients for values, C, B and D, written to uninitialized memory."""
    C, B, D, _ = given
    blocks = C.shape[0]
    shapes = ((blocks, A.nnz), C.shape, B.shape, D.shape)
    out = [
        np.full(shape, np.nan).astype(C.dtype) if want else None
        for shape, want in zip(shapes, needs, strict=True)
    ]
    executor = A.executor
    if isinstance(executor.from_host(C), np.ndarray):
        executor.run(operations.csr_fusedmm_backward, A, values, *given, *out, alpha, edge)
        return out
    there = [None if x is None else executor.from_host(x) for x in (values, *given, *out)]
    executor.run(operations.csr_fusedmm_backward, A, *there, alpha, edge)
    return [None if x is None else np.asarray(executor.to_host(x)) for x in there[5:]]


def in_float64(A: wl.Csr, given: list[Any], edge: str, values: Any, alpha: float) -> Any:
    """Return the gradients of the first block, and the sizes of their terms."""
    H = A.to("reference")
    rows, columns = rows_of(H), H.indices
    C, B, D, G = (wide(x[0]) for x in given)
    factor = 1.0 if values is None else wide(values[0])
    q = alpha * (C[rows] * B[columns]).sum(1)
    f = weigh(H, edge, q * factor)
    d = (G[rows] * D[columns]).sum(1)
    of_q = abs(alpha) * np.abs(C[rows] * B[columns]).sum(1)
    of_d = np.abs(G[rows] * D[columns]).sum(1)
    slope, size = {
        "identity": lambda: (d, of_d),
        "sigmoid": lambda: (f * (1 - f) * d, f * of_d),
        "softmax": lambda: (
            f * (d - added_up(H, f * d)[rows]),
            f * (of_d + added_up(H, f * of_d)[rows]),
        ),
    }[edge]()

    def of_columns(entries: Any) -> Any:
        total = np.zeros((A.shape[1], entries.shape[1]))
        np.add.at(total, columns, entries)
        return total

    def chain(slope: Any, weight: Any, factors: Any) -> list[Any]:
        q, factor, C, B, G = factors
        of_dots = (slope * factor * alpha)[:, None]
        return [
            slope * q,
            added_up(H, of_dots * B[columns]),
            of_columns(of_dots * C[rows]),
            of_columns(weight[:, None] * G[rows]),
        ]

    found = chain(slope, f, (q, factor, C, B, G))
    sizes = chain(size, np.abs(f), (of_q, *(np.abs(x) for x in (factor, C, B, G))))
    return found, sizes


@every_executor
@pytest.mark.parametrize("dtype", operations.csr_fusedmm_backward.dtypes)
@given(
    m=st.integers(0, 40),
    n=st.integers(0, 40),
    k=st.sampled_from([0, 1, 3, 8, 16, 31, 64, 100]),
    p=st.sampled_from([0, 1, 5, 16, 40, 128]),
    mean=st.sampled_from([0.3, 2.0, 9.0]),
    skew=st.booleans(),
    edge=st.sampled_from(EDGES),
    use_values=st.booleans(),
    index=st.sampled_from(["int32", "int64"]),
    seed=st.integers(0, 2**20),
)
def test_gradients_are_those_of_the_formula(
    name, dtype, m, n, k, p, mean, skew, edge, use_values, index, seed
) -> None:
    T, rng = dtype_called(dtype), np.random.default_rng(seed)
    A = matrix(rng, m, n, mean, skew, T, index, name)
    given = operands(rng, A, k, p, T)
    values = numbers(rng, (1, A.nnz), T) if use_values else None
    found = gradients(A, given, edge, values)
    want, sizes = in_float64(A, given, edge, values, 0.5)
    # scores are rounded before an exponential: an error of theirs is a relative one of a weight
    units = 20 + k + p
    added = units * eps(np.dtype(np.float32) if T.itemsize < 4 else T)
    for got, exact, size in zip(found, want, sizes, strict=True):
        assert got.dtype == T
        allowed = (added * (1 + m + n) + 2 * eps(T)) * size + eps(T)
        assert (np.abs(wide(got[0]) - exact) <= allowed).all()


@every_executor
@pytest.mark.parametrize("edge", EDGES)
def test_what_nobody_needs_changes_nothing(name: str, edge: str, rng: np.random.Generator) -> None:
    T = np.dtype(np.float32)
    A = matrix(rng, 30, 20, 4.0, True, T, "int32", name)
    given = operands(rng, A, 16, 8, T, b=2)
    values = numbers(rng, (2, A.nnz), T)
    whole = gradients(A, given, edge, values)
    for asked in range(16):
        needs = tuple(bool(asked >> i & 1) for i in range(4))
        for got, want, need in zip(
            gradients(A, given, edge, values, needs=needs), whole, needs, strict=True
        ):
            if need:
                np.testing.assert_array_equal(got, want)
            else:
                assert got is None


@every_executor
def test_blocks_are_gradients_one_by_one_wherever_they_lie(
    name: str, rng: np.random.Generator
) -> None:
    T = np.dtype(np.float32)
    A = matrix(rng, 25, 17, 3.0, False, T, "int32", name)
    m, n = A.shape
    # heads between the rows, as attention has them
    given = [
        numbers(rng, (rows, 3, columns), T).transpose(1, 0, 2)
        for rows, columns in ((m, 16), (n, 16), (n, 20), (m, 20))
    ]
    given[2] = np.broadcast_to(given[2][:1], given[2].shape)  # one D for all blocks
    whole = gradients(A, given, "softmax")
    for block in range(3):
        part = gradients(A, [np.ascontiguousarray(x[block : block + 1]) for x in given], "softmax")
        for got, want in zip(whole, part, strict=True):
            np.testing.assert_array_equal(got[block], want[0])


@pytest.mark.parametrize("edge", EDGES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_long_rows_and_columns_are_cut_and_repeat_on_any_number_of_threads(
    dtype: str, edge: str, rng: np.random.Generator
) -> None:
    T = np.dtype(dtype)
    lengths = np.array([3, 20_000, 0, 5, 9_000, 1] + [2] * 300)
    indptr = np.concatenate([[0], lengths.cumsum()])
    indices = rng.integers(0, 500, indptr[-1])
    indices[rng.random(indptr[-1]) < 0.6] = 7  # a column that most entries are in
    A = wl.Csr(
        (numbers(rng, indices.shape, T), indices, indptr), shape=(306, 500), executor="omp:1"
    )
    given = [x / 4 for x in operands(rng, A, 24, 9, T)]
    values = numbers(rng, (1, A.nnz), T)
    found = gradients(A, given, edge, values)
    want = gradients(A.to("reference"), given, edge, values)
    _, sizes = in_float64(A, given, edge, values, 0.5)
    for got, reference, size in zip(found, want, sizes, strict=True):
        allowed = 2000 * eps(T) * (size + eps(T))
        assert (np.abs(wide(got[0]) - wide(reference[0])) <= allowed).all()
    for threads in (1, 2, 3):
        for got, one in zip(
            gradients(A.to(f"omp:{threads}"), given, edge, values), found, strict=True
        ):
            np.testing.assert_array_equal(got, one)


@every_executor
def test_numbers_by_hand(name: str) -> None:
    """Two scores of ln 1 and ln 3: weights 1/4 and 3/4."""
    A = wl.Csr(([1.0, 1.0, 1.0], [0, 1, 1], [0, 2, 2, 3]), shape=(3, 2), executor=name)
    C = np.array([[[1.0], [9.0], [2.0]]])
    B = np.array([[[0.0], [np.log(3.0)]]])
    D, G = np.array([[[4.0], [8.0]]]), np.array([[[1.0], [1.0], [5.0]]])
    of_values, of_C, of_B, of_D = gradients(A, [C, B, D, G], "softmax", alpha=1.0)
    # mean 7: the scores' gradients are 1/4 (4 - 7) and 3/4 (8 - 7); the last row has one weight, 1
    np.testing.assert_allclose(of_values, [[0, 0.75 * np.log(3.0), 0]], atol=1e-14)
    np.testing.assert_allclose(of_C, [[[0.75 * np.log(3.0)], [0], [0]]], atol=1e-14)
    np.testing.assert_allclose(of_B, [[[-0.75], [0.75]]], atol=1e-14)
    np.testing.assert_allclose(of_D, [[[0.25], [0.75 + 5]]])


@every_executor
def test_a_score_of_minus_infinity_has_no_gradient_and_takes_none(name: str) -> None:
    inf, n = np.inf, 9000
    rows = {
        "leading": [-inf] * 3 + [0.5, -0.25],
        "leading, more than a register": [-inf] * 70 + [0.5, 0.25],
        "all but the last of a long row": [-inf] * (n - 1) + [0.5],
        "the last parts of a long row": [0.5] + [-inf] * (n - 1),
        "small ones in a long row": [-300.0] * (n - 2) + [-inf, -300.0],
        "none": [],
        "one": [2.0],
    }
    scores = np.concatenate([np.array(row) for row in rows.values()]).astype(np.float32)
    lengths = [len(row) for row in rows.values()]
    indices = np.concatenate([np.arange(length) for length in lengths])
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    m = len(rows)
    A = wl.Csr((scores, indices, indptr), shape=(m, n), executor=name)
    ones = [np.ones((1, rows, 1), np.float32) for rows in (m, n)]
    rng = np.random.default_rng(1)
    D, G = (rng.uniform(1, 2, (1, rows, 3)).astype(np.float32) for rows in (n, m))
    needs = (False, False, False, True)
    values = scores[None]
    *_, of_D = gradients(A, [*ones, D, G], "softmax", values, 1.0, needs)
    weights = np.exp(
        scores.astype(float) - np.repeat([max(r, default=0) for r in rows.values()], lengths)
    )
    weights /= np.repeat([weights[a:b].sum() for a, b in pairwise(indptr)], lengths)
    want = np.zeros((n, 3))
    np.add.at(want, indices, weights[:, None] * wide(G[0])[rows_of(A.to("reference"))])
    np.testing.assert_allclose(of_D[0], want, rtol=1e-4, atol=1e-6)
    # a row of minus infinities alone has no weight, as in the forward direction
    lost = wl.Csr((scores[:2], [0, 1], [0, 2]), shape=(1, n), executor=name)
    of_values, *_ = gradients(
        lost, [np.ones((1, 1, 1), np.float32), ones[1], D, G[:, :1]], "softmax", values[:, :2], 1.0
    )
    assert not of_values.any()
