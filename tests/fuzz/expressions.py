"""Random matrices and expressions of them equal NumPy's; wrong arrays are refused."""

from __future__ import annotations

import copy
import os
import pickle
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st

import wollemi as wl
from wollemi.core.errors import WollemiError

from ..core.formats.strategies import Entries, entries
from .batch import Target

#: Where; others by ``WOLLEMI_TEST_EXECUTORS=dpcpp:cpu``.
EXECUTORS = tuple(os.environ.get("WOLLEMI_TEST_EXECUTORS", "reference,omp:1,omp:3").split(","))
FORMATS = ("csr", "csc", "coo", "ell", "sellp", "hybrid", "bsr", "dense")
DTYPES = ("float32", "float64", "complex64", "complex128")
CLASSES = {"csr": wl.Csr, "csc": wl.Csc, "coo": wl.Coo, "bsr": wl.Bsr}

#: Rounding errors by the sum of absolute values, in units of the least precise dtype.
ROUNDINGS = 64
DEPTH = 3
EXTENT = 7


class Value(NamedTuple):
    """An operator of ours, the same as an array, and the sum of the absolute values in it."""

    ours: Any
    dense: np.ndarray  # type: ignore[type-arg]
    size: np.ndarray  # type: ignore[type-arg]


# ---- expressions, as trees of tuples that print themselves


def _leaf(draw: st.DrawFn, shape: tuple[int, int]) -> tuple[Any, ...]:
    kinds = ["matrix"] * 6
    if shape[0] == shape[1]:
        kinds += ["identity", "diagonal", "permutation"]
    kind = draw(st.sampled_from(kinds))
    dtype = draw(st.sampled_from(DTYPES))
    if kind == "permutation":
        return kind, tuple(draw(st.permutations(range(shape[0])))), dtype
    if kind == "diagonal":
        numbers = st.lists(st.integers(-9, 9), min_size=shape[0], max_size=shape[0])
        return kind, tuple(draw(numbers)), dtype
    if kind == "identity":
        return kind, shape[0], dtype
    how = draw(st.sampled_from(("coordinates", "coordinates", "arrays", "scipy", "dense")))
    index = draw(st.sampled_from(("int32", "int64", "uint8")))
    return kind, draw(entries(shape=shape)), how, draw(st.sampled_from(FORMATS)), dtype, index


@st.composite
def trees(draw: st.DrawFn, shape: tuple[int, int], depth: int = DEPTH) -> tuple[Any, ...]:
    """Return expressions with a value of a shape."""
    m, n = shape
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        return _leaf(draw, shape)
    kind = draw(st.sampled_from(("add", "sub", "matmul", "scale", "T", "H", "conj", "asformat",
                                 "astype", "copy", "same", "abs", "neg")))  # fmt: skip
    below = depth - 1
    if kind in ("add", "sub"):
        return kind, draw(trees(shape, below)), draw(trees(shape, below))
    if kind == "matmul":
        inner = draw(st.integers(0, EXTENT))
        return kind, draw(trees((m, inner), below)), draw(trees((inner, n), below))
    if kind in ("T", "H"):
        return kind, draw(trees((n, m), below))
    if kind == "scale":
        factor = draw(st.sampled_from((2, -1.5, 0, 1j, np.float32(3), np.complex64(1 - 1j))))
        return kind, factor, draw(trees(shape, below)), draw(st.booleans())
    if kind == "asformat":
        return kind, draw(st.sampled_from(FORMATS)), draw(trees(shape, below))
    if kind == "copy":
        how = draw(st.sampled_from(("copy", "deepcopy", "pickle", "shallow")))
        return kind, how, draw(trees(shape, below))
    if kind == "same":
        how = draw(st.sampled_from(("sort", "sum_duplicates", "tocsr", "scipy", "values")))
        return kind, how, draw(trees(shape, below))
    return kind, draw(trees(shape, below))


@st.composite
def expressions(draw: st.DrawFn) -> tuple[Any, ...]:
    """Return an expression, its executor, and its argument."""
    shape = draw(st.integers(0, EXTENT)), draw(st.integers(0, EXTENT))
    operand = draw(st.sampled_from(("vector", "column", "block", "fortran", "reversed", "strided",
                                    "none")))  # fmt: skip
    dtype = draw(st.sampled_from(DTYPES))
    return "expression", draw(st.sampled_from(EXECUTORS)), draw(trees(shape)), operand, dtype


# ---- their values


def _numbers(found: Entries, dtype: str) -> tuple[Any, Any, Any]:
    data, (row, col) = found.coordinates("float64", "int64")
    data = data * (1 + 2j) if dtype.startswith("complex") else data
    return data.astype(dtype), row, col


def _matrix(found: Entries, how: str, format: str, dtype: str, index: str, where: str) -> Value:
    data, row, col = _numbers(found, dtype)
    dense, size = np.zeros(found.shape, complex), np.zeros(found.shape)
    np.add.at(dense, (row, col), data)
    np.add.at(size, (row, col), np.abs(data))
    row, col = row.astype(index), col.astype(index)
    if how == "coordinates":
        cls: Any = CLASSES.get(format, wl.Coo)
        ours = cls((data, (row, col)), shape=found.shape, executor=where)
    elif how == "arrays":
        order = np.argsort(row, kind="stable")
        indptr = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=found.shape[0]))])
        triple = data[order], col[order], indptr.astype(index)
        ours = wl.Csr(triple, shape=found.shape, executor=where)
    elif how == "scipy":
        ours = wl.Csr(sp.coo_array((data, (row, col)), shape=found.shape), executor=where)
    else:
        values = dense if dtype.startswith("complex") else dense.real
        ours = wl.Dense(values.astype(dtype), executor=where)
    return Value(ours.asformat(format), dense, size)


def _evaluate(tree: tuple[Any, ...], where: str) -> Value:
    kind, *rest = tree
    if kind == "matrix":
        return _matrix(*rest, where)
    if kind == "identity":
        n, dtype = rest
        return Value(wl.Identity(n, dtype=dtype, executor=where), np.eye(n), np.eye(n))
    if kind == "diagonal":
        data = np.array(rest[0], rest[1])
        return Value(wl.Diagonal(data, executor=where), np.diag(data), np.diag(np.abs(data)))
    if kind == "permutation":
        dense = np.eye(len(rest[0]))[list(rest[0])]
        P = wl.Permutation(np.array(rest[0], int), dtype=rest[1], executor=where)
        return Value(P, dense, dense)
    if kind == "scale":
        factor, below, on_the_left = rest
        a = _evaluate(below, where)
        return Value(
            factor * a.ours if on_the_left else a.ours * factor,
            complex(factor) * a.dense,
            abs(complex(factor)) * a.size,
        )
    if kind in ("asformat", "copy", "same"):
        how, below = rest
        return _in_other_form(kind, how, _evaluate(below, where))
    if len(rest) == 2:
        return _pair(kind, *(_evaluate(below, where) for below in rest))
    return _single(kind, _evaluate(rest[0], where))


def _pair(kind: str, a: Value, b: Value) -> Value:
    if kind == "matmul":
        return Value(a.ours @ b.ours, a.dense @ b.dense, a.size @ b.size)
    if kind == "add":
        return Value(a.ours + b.ours, a.dense + b.dense, a.size + b.size)
    return Value(a.ours - b.ours, a.dense - b.dense, a.size + b.size)


def _single(kind: str, a: Value) -> Value:
    if kind == "T":
        return Value(a.ours.T, a.dense.T, a.size.T)
    if kind == "H":
        return Value(a.ours.H, a.dense.conj().T, a.size.T)
    if kind == "neg":
        return Value(-a.ours, -a.dense, a.size)
    if not isinstance(a.ours, wl.Matrix):
        return a
    if kind == "conj":
        return Value(a.ours.conj(), a.dense.conj(), a.size)
    if kind == "abs":
        return Value(abs(a.ours), np.abs(a.dense), a.size)
    wider = np.result_type(a.ours.dtype, np.float64)
    return Value(a.ours.astype(wider), a.dense, a.size)


def _in_other_form(kind: str, how: str, a: Value) -> Value:
    ours = a.ours
    if not isinstance(ours, wl.Matrix) or isinstance(ours, (wl.Identity, wl.Permutation)):
        return a
    if kind == "asformat":
        made = ours.asformat(how)
        assert made.format == how
    elif kind == "copy":
        made = {
            "copy": lambda: ours.copy(),
            "deepcopy": lambda: copy.deepcopy(ours),
            "shallow": lambda: copy.copy(ours),
            "pickle": lambda: pickle.loads(pickle.dumps(ours)),
        }[how]()
    elif how in ("sort", "sum_duplicates"):
        made = getattr(ours.tocsr(), how)()
        made = ours.tocsr() if made is None else made
    elif how == "scipy":
        made = wl.Csr(ours.to_scipy(), executor=ours.executor)
    elif how == "values":
        ours.update_values(ours.data * 1)
        made = ours
    else:
        made = ours.tocsr()
    return a._replace(ours=made)


# properties


def _operand(kind: str, rows: int, dtype: str) -> Any:
    block = (np.arange(6 * rows).reshape(rows, 6) % 7 - 3).astype(dtype)
    return {
        "vector": block[:, 0].copy(),
        "column": block[:, :1].copy(),
        "block": block[:, :3].copy(),
        "fortran": np.asfortranarray(block[:, :3]),
        "reversed": block[::-1],
        "strided": block[:, ::2],
        "none": block[:, :0],
    }[kind]


def _check_expression(where: str, tree: tuple[Any, ...], operand: str, dtype: str) -> None:
    value = _evaluate(tree, where)
    ours = value.ours
    assert ours.shape == value.dense.shape
    assert repr(ours)
    precise = {"f": 4, "F": 8}
    eps = np.finfo(np.float32).eps
    if not any(np.dtype(d).char in precise for d in _dtypes(tree)):
        eps = np.finfo(np.float64).eps
    if isinstance(ours, wl.Matrix) and not isinstance(ours, (wl.Identity, wl.Permutation)):
        _compare(ours.to_dense(), value.dense, value.size, eps)
        by_rows = ours.tocsr()
        wl.Csr(
            tuple(np.asarray(by_rows.executor.to_host(getattr(by_rows, name)))
                  for name in ("data", "indices", "indptr")),
            shape=by_rows.shape,
        )  # fmt: skip
    x = _operand(operand, ours.shape[1], dtype)
    if np.dtype(dtype).char in precise:
        eps = np.finfo(np.float32).eps
    _compare(ours @ x, value.dense @ x, value.size @ np.abs(x), eps)


def _dtypes(tree: tuple[Any, ...]) -> list[str]:
    found = [part for part in tree if isinstance(part, str) and part in DTYPES]
    for part in tree:
        if isinstance(part, tuple):
            found += _dtypes(part)
    return found


def _compare(got: Any, expected: Any, size: Any, eps: float) -> None:
    got = np.asarray(got)
    assert got.shape == expected.shape
    wrong = np.abs(got - expected) > ROUNDINGS * eps * size
    assert not wrong.any(), f"got\n{got}\nexpected\n{expected}"


# ---- constructors with arrays that may describe nothing

_INTEGERS = st.one_of(
    st.lists(st.integers(0, 3), max_size=6), st.lists(st.integers(-2, 9), max_size=6),
    st.lists(st.sampled_from((0, 1, 1 << 31, (1 << 63) - 1, -(1 << 63))), max_size=4),
)  # fmt: skip
_ARRAYS = st.tuples(
    _INTEGERS, st.sampled_from(("int8", "int32", "int64", "uint64", "float32", "bool", "object"))
)
_SHAPES = st.one_of(
    st.none(), st.tuples(st.integers(-1, 6), st.integers(-1, 6)), st.just((3, 3)), st.just((3,)),
    st.just((1 << 62, 3)), st.just((3, 1 << 62)),
)  # fmt: skip


@st.composite
def constructors(draw: st.DrawFn) -> tuple[Any, ...]:
    """Return a format, arrays and a shape, which may fit each other."""
    format = draw(st.sampled_from(tuple(CLASSES)))
    arrays = tuple(draw(_ARRAYS) for _ in range(3))
    how = draw(st.sampled_from(("triple", "coordinates")))
    return "constructor", draw(st.sampled_from(EXECUTORS)), format, how, arrays, draw(_SHAPES)


def _array(numbers: list[int], dtype: str) -> Any:
    with np.errstate(all="ignore"):
        return np.array(numbers, object if dtype == "object" else None).astype(dtype)


def _check_constructor(
    where: str, format: str, how: str, arrays: tuple[Any, ...], shape: Any
) -> None:
    a, b, c = (_array(*given) for given in arrays)
    if format == "bsr":
        a = a.reshape(-1, 1, 1)
    arg = (a, b, c) if how == "triple" else (a, (b, c))
    try:
        A = CLASSES[format](arg, shape=shape, executor=where)  # type: ignore[abstract]
    except WollemiError:
        return
    if max(A.shape) > 1 << 16:
        return
    dense = np.asarray(A.to_scipy().toarray())
    x = np.ones(A.shape[1])
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(A @ x, dense @ x, rtol=1e-5, atol=1e-5 * np.abs(dense).sum())


def check(example: tuple[Any, ...], folder: Path) -> None:
    """Compute an expression in both ways, or make a matrix of arrays."""
    kind, *rest = example
    if kind == "expression":
        _check_expression(*rest)
    else:
        _check_constructor(*rest)


TARGET = Target("expressions", st.one_of(expressions(), expressions(), constructors()), check)
