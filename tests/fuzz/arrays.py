"""Random calls on random matrices have SciPy's results: their values, kinds and dtypes."""

from __future__ import annotations

import operator
import os
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st

import wollemi as wl
from wollemi.core.formats.sparse_vector import SparseVector

from .batch import Target

#: Where; others by ``WOLLEMI_TEST_EXECUTORS=dpcpp:cpu``.
EXECUTORS = tuple(os.environ.get("WOLLEMI_TEST_EXECUTORS", "reference,omp:1,omp:3").split(","))
FORMATS = ("csr", "csc", "coo", "bsr")
DTYPES = (
    "int8", "uint8", "int16", "uint32", "int32", "int64", "float32", "float64", "complex64",
    "complex128",
)  # fmt: skip
#: Of SciPy's two kinds of results, an array of two dimensions or a sparse one.
SPARSE, DENSE, NUMBER = "sparse", "dense", "number"

Rng = np.random.Generator
#: A call, and matrices of ours and of SciPy's that it takes.
Call = tuple[Callable[..., Any], tuple[Any, ...]]


def values(rng: Rng, count: int, dtype: str) -> Any:
    """Return small integers, so that no result is rounded far."""
    made = rng.integers(0 if dtype.startswith("u") else -3, 4, count)
    return (made + 1j * rng.integers(-3, 4, count) if "complex" in dtype else made).astype(dtype)


def matrix(
    rng: Rng,
    shape: tuple[int, int],
    dtype: str | None = None,
    formats: tuple[str, ...] = FORMATS,
) -> Any:
    """Return an array of SciPy's: duplicates, zeros and rows without an order are among them."""
    dtype = dtype or str(rng.choice(DTYPES))
    m, n = shape
    count = int(rng.integers(0, 2 * m * n + 1)) if rng.random() < 0.85 else 0
    row, column = (rng.integers(0, max(extent, 1), count) for extent in shape)
    made = sp.coo_array((values(rng, count, dtype), (row, column)), shape=shape)
    if rng.random() < 0.5:  # rows in the order of the coordinates, duplicates stay
        order = np.argsort(row, kind="stable")
        indptr = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=m))])
        made = sp.csr_array((made.data[order], column[order], indptr), shape=shape)
    return made.asformat(str(rng.choice(formats)))


def shape(rng: Rng) -> tuple[int, int]:
    return int(rng.integers(1, 8)), int(rng.integers(1, 8))


def part(rng: Rng, extent: int) -> Any:
    """Return a key of rows or of columns."""
    kind = rng.integers(5)
    if kind == 0:
        return int(rng.integers(-extent, extent))
    if kind == 1:
        return rng.random(extent) < 0.5
    if kind == 2:
        return rng.integers(-extent, extent, rng.integers(1, 5))
    begin = int(rng.integers(0, extent))  # SciPy fails on some parts without rows or columns
    end = int(rng.integers(begin + 1, extent + 2))
    return slice(begin, end, [None, 1, 2][rng.integers(3)])


# ---- calls


def pairs(rng: Rng) -> Call:
    """Operators of two matrices of one shape."""
    names = ("add", "sub", "mul", "eq", "ne", "lt", "gt", "le", "ge")
    extents, dtype = shape(rng), str(rng.choice(DTYPES))
    return getattr(operator, str(rng.choice(names))), tuple(
        matrix(rng, extents, dtype) for _ in range(2)
    )


def shared_columns(rng: Rng) -> Call:
    """Comparisons of matrices that were made of one another."""
    compare = getattr(operator, str(rng.choice(("lt", "gt", "ne"))))
    factor = int(rng.integers(-2, 3))
    return (lambda A: compare(A, A * factor)), (matrix(rng, shape(rng), "float64"),)


def numbers(rng: Rng) -> Call:
    """Operators of a matrix and a number."""
    names = ("mul", "truediv", "eq", "ne", "lt", "gt", "le", "ge")
    apply, number = getattr(operator, str(rng.choice(names))), [1, -2, 2.5][rng.integers(3)]
    return (lambda A: apply(A, number)), (matrix(rng, shape(rng), "float64"),)


def typed_numbers(rng: Rng) -> Call:
    """Products with numbers that have a dtype, from both sides."""
    number = values(rng, 1, str(rng.choice(DTYPES)))[0]
    number = np.asarray(number) if rng.random() < 0.5 else number
    left = rng.random() < 0.5
    return (lambda A: number * A if left else A * number), (matrix(rng, shape(rng)),)


def dense_operands(rng: Rng) -> Call:
    """Operators of a matrix and an array of its shape, or of one row or column."""
    (m, n), dtype = shape(rng), str(rng.choice(DTYPES))
    extents = ((m, n), (1, n), (m, 1))[rng.integers(3)]
    given = str(rng.choice(DTYPES))
    array = values(rng, int(np.prod(extents)), given).reshape(extents)
    apply = (operator.add, operator.sub, operator.mul)[rng.integers(3)]
    if apply is not operator.mul:
        array = np.broadcast_to(array, (m, n)).copy()
    return (lambda A: apply(A, array)), (matrix(rng, (m, n), dtype),)


def products(rng: Rng) -> Call:
    """Products of matrices, and with arrays of one and of two dimensions."""
    (m, n), k, dtype = shape(rng), int(rng.integers(1, 5)), str(rng.choice(DTYPES))
    m += 1  # SciPy's product of one row of coordinates with a vector is a number
    A, of_right = matrix(rng, (m, n), dtype), str(rng.choice(DTYPES))
    if rng.random() < 0.5:
        return operator.matmul, (A, matrix(rng, (n, k), of_right))
    block = rng.random() < 0.5
    array = values(rng, n * k, of_right).reshape(n, k) if block else values(rng, n, of_right)
    return (lambda A: A @ array), (A,)


def indices(rng: Rng) -> Call:
    """Parts of a matrix."""
    m, n = shape(rng)
    key = part(rng, m), part(rng, n)
    if all(isinstance(one, np.ndarray) for one in key):
        key = key[0], slice(None)
    if any(isinstance(one, np.ndarray) for one in key):  # SciPy takes steps next to arrays wrongly
        key = tuple(slice(one.start, one.stop) if isinstance(one, slice) else one for one in key)  # type: ignore[assignment]
    return (lambda A: A[key]), (matrix(rng, (m, n), formats=("csr", "csc")),)


def sums(rng: Rng) -> Call:
    """Reductions of all entries, of rows and of columns."""
    name, axis = str(rng.choice(("sum", "max", "min", "argmax"))), [None, 0, 1][rng.integers(3)]
    dtypes = ("int64", "float64")
    return (lambda A: getattr(A, name)(axis=axis)), (
        matrix(rng, shape(rng), str(rng.choice(dtypes))),
    )


def diagonals(rng: Rng) -> Call:
    """Diagonals that are read, and that are set."""
    (m, n), dtype = shape(rng), str(rng.choice(DTYPES))
    k = int(rng.integers(1 - m, n))
    if rng.random() < 0.5:
        return (lambda A: A.diagonal(k)), (matrix(rng, (m, n), dtype),)
    given = values(rng, min(m + min(k, 0), n - max(k, 0)), dtype)

    def changed(A: Any) -> Any:
        A = A.copy()
        A.setdiag(given, k)
        return A

    return changed, (matrix(rng, (m, n), dtype, ("csr", "csc")),)


def stacks(rng: Rng) -> Call:
    """Matrices below and next to one another, triangles and Kronecker products."""
    (m, n), dtype = shape(rng), str(rng.choice(DTYPES))
    name = str(rng.choice(("vstack", "hstack", "kron", "block_diag", "tril", "triu")))
    if name in ("tril", "triu"):
        k = int(rng.integers(-m, n + 1))
        return (lambda A: namespace(A, name)(A, k)), (matrix(rng, (m, n), dtype),)
    others = [(m, n) if name.endswith("stack") else shape(rng) for _ in range(2)]
    given = tuple(matrix(rng, extents, dtype) for extents in others)
    if name == "kron":
        if not all(A.nnz for A in given):  # SciPy's has no entries and another dtype then
            return stacks(rng)
        return (lambda A, B: namespace(A, name)(A, B)), given
    return (lambda *blocks: namespace(blocks[0], name)(blocks)), given


def shapes(rng: Rng) -> Call:
    """Transposes, reshaped matrices, formats and functions of entries."""
    m, n = shape(rng)
    calls: tuple[Callable[[Any], Any], ...] = (
        lambda A: A.T,
        lambda A: A.reshape(n, m),
        lambda A: A.tocsr(),
        lambda A: A.tocoo(),
        abs,
        operator.neg,
        lambda A: A.sign(),
        lambda A: A.conj(),
    )
    return calls[rng.integers(len(calls))], (matrix(rng, (m, n), "float64"),)


CALLS = {
    one.__name__: one
    for one in (
        pairs, shared_columns, numbers, typed_numbers, dense_operands, products, indices, sums,
        diagonals, stacks, shapes,
    )
}  # fmt: skip


def namespace(A: Any, name: str) -> Any:
    """Return a function of the library that a matrix is of."""
    return getattr(sp if sp.issparse(A) else wl.sparse, name)


# ---- results


def kind(made: Any) -> str:
    if sp.issparse(made) or isinstance(made, (wl.Matrix, SparseVector)):
        return SPARSE
    return DENSE if np.ndim(made) else NUMBER


def as_array(made: Any) -> Any:
    return np.asarray(made.toarray() if kind(made) == SPARSE else made)


def check(example: tuple[str, str, int], _: Path) -> None:
    executor, name, seed = example
    call, given = CALLS[name](np.random.default_rng(seed))
    ours = [getattr(wl, A.format.capitalize())(A, executor=executor) for A in given]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        made, expected = call(*ours), call(*given)
    assert kind(made) == kind(expected), f"{kind(made)}, SciPy {kind(expected)}"
    found, wanted = as_array(made), as_array(expected)
    assert found.dtype == wanted.dtype, f"{found.dtype}, SciPy {wanted.dtype}"
    single = found.dtype in (np.float32, np.complex64)
    tolerance = partial(np.testing.assert_allclose, rtol=1e-5 if single else 1e-12, atol=0)
    tolerance(found, wanted)


TARGET = Target(
    "arrays",
    st.tuples(
        st.sampled_from(EXECUTORS), st.sampled_from(sorted(CALLS)), st.integers(0, 2**32 - 1)
    ),
    check,
)
