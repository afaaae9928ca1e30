"""Users' methods of operators: products, sums, scalings, transposes, and results in place."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
import torch

import wollemi as wl
from wollemi.core.errors import (
    ExecutorMismatch,
    InvalidArgument,
    ShapeMismatch,
    UnsupportedDtype,
)

from .made import X2, D, E, X, Z

# ---- shapes and kinds of operands


def test_a_vector_gives_a_vector(op):
    assert (op(D) @ X).tolist() == [21, 430]


def test_a_block_gives_a_block(op):
    np.testing.assert_array_equal(op(D) @ X2, D @ X2)


def test_a_block_of_one_column_stays_a_block(op):
    assert (op(D) @ X[:, None]).shape == (2, 1)


def test_a_block_of_no_columns_gives_one(op):
    assert (op(D) @ np.zeros((3, 0))).shape == (2, 0)


def test_a_list_is_a_vector(op):
    np.testing.assert_array_equal(op(D) @ [1, 10, 100], [21, 430])


def test_integers_are_computed_in_float64(op):
    result = op(D) @ np.array([1, 10, 100], np.int8)
    assert result.dtype == np.float64
    assert result.tolist() == [21, 430]


@pytest.mark.parametrize(
    "x",
    [
        np.asfortranarray(X2),
        np.repeat(X2, 2, axis=0)[::2],
        np.repeat(X2, 2, axis=1)[:, ::2],
        X2[::-1][::-1],
        np.broadcast_to(X2[:, :1], (3, 4)),
        X2.astype(">f8"),
    ],
    ids=["columns first", "strided rows", "strided columns", "reversed", "broadcast", "big-endian"],
)
def test_blocks_come_in_any_layout(op, x):
    np.testing.assert_array_equal(op(D) @ x, D @ x)


@pytest.mark.parametrize("x", [X[::-1], np.repeat(X, 3)[::3]], ids=["reversed", "strided"])
def test_vectors_come_in_any_layout(op, x):
    np.testing.assert_array_equal(op(D) @ x, D @ x)


def test_a_read_only_vector_is_taken(op):
    x = X.copy()
    x.flags.writeable = False
    assert (op(D) @ x).tolist() == [21, 430]


def test_an_operand_is_not_changed(op):
    x = X2.copy()
    op(D) @ x
    np.testing.assert_array_equal(x, X2)


@pytest.mark.parametrize("x", [np.ones(2), np.ones((2, 3)), np.ones((3, 1, 1))], ids=np.shape)
def test_operands_that_do_not_fit_are_refused(op, x):
    with pytest.raises(ShapeMismatch, match=r"expected shape \(3,\) or \(3, k\), got \("):
        op(D) @ x


def test_a_number_is_no_vector(op):
    with pytest.raises(InvalidArgument, match=r"scale with \*"):
        op(D) @ 2.0


@pytest.mark.parametrize("x", [np.array(["a", "b", "c"]), np.array([None] * 3)], ids=str)
def test_what_holds_no_numbers_is_refused(op, x):
    with pytest.raises(UnsupportedDtype, match="not supported"):
        op(D) @ x


@pytest.mark.parametrize("dtype", [np.float16, np.longdouble])
def test_precisions_without_kernels_are_refused(op, dtype):
    with pytest.raises(UnsupportedDtype, match="convert to one of"):
        op(D) @ X.astype(dtype)


# ---- from the left


def test_a_vector_from_the_left(op):
    np.testing.assert_array_equal(np.array([1.0, 10.0]) @ op(D), [1, 32, 40])


def test_a_block_from_the_left(op):
    Y = np.array([[1.0, 10.0], [2.0, 3.0]])
    np.testing.assert_array_equal(Y @ op(D), Y @ D)


def test_a_list_from_the_left(op):
    np.testing.assert_array_equal([1, 2] @ op(D), np.array([1, 2]) @ D)
    np.testing.assert_array_equal([[1, 2], [3, 4]] @ op(D), np.array([[1, 2], [3, 4]]) @ D)


def test_from_the_left_nothing_is_conjugated(op):
    np.testing.assert_array_equal(np.array([1.0, 1j]) @ op(Z), np.array([1.0, 1j]) @ Z)


# ---- out, alpha, beta


def test_apply_scales(op):
    assert op(D).apply(X, alpha=2.0).tolist() == [42, 860]


def test_out_is_overwritten_and_returned(op):
    out = np.full(2, np.nan)
    assert op(D).apply(X, out=out) is out
    assert out.tolist() == [21, 430]


def test_beta_scales_what_was_there(op):
    out = np.array([1.0, 2.0])
    op(D).apply(X, out=out, alpha=2.0, beta=-1.0)
    assert out.tolist() == [41, 858]


def test_beta_needs_an_out(op):
    with pytest.raises(InvalidArgument, match="beta needs an out"):
        op(D).apply(X, beta=1.0)


@pytest.mark.parametrize(
    "out",
    [np.empty((2, 2), order="F"), np.empty((4, 2))[::2], np.empty((2, 4))[:, ::2]],
    ids=["columns first", "strided rows", "strided columns"],
)
def test_out_has_any_layout(op, out):
    out[...] = 1
    op(D).apply(X2, out=out, beta=1.0)
    np.testing.assert_array_equal(out, D @ X2 + 1)


def test_a_strided_out_leaves_what_is_between(op):
    whole = np.full((2, 4), 7.0)
    op(D).apply(X2, out=whole[:, :2])
    np.testing.assert_array_equal(whole[:, 2:], 7)


@pytest.mark.parametrize("shape", [(3,), (2, 1), (2, 2)], ids=str)
def test_an_out_of_another_shape_is_refused(op, shape):
    with pytest.raises(ShapeMismatch, match=r"out: expected shape \(2,\)"):
        op(D).apply(X, out=np.empty(shape))


def test_an_out_of_another_dtype_is_refused(op):
    with pytest.raises(InvalidArgument, match="out: expected dtype float64"):
        op(D).apply(X, out=np.empty(2, np.float32))


@pytest.mark.parametrize("square", [np.array([[0.0, 2.0], [3.0, 1.0]])])
def test_out_may_be_the_operand(op, square):
    x = np.array([1.0, 10.0])
    op(square).apply(x, out=x)
    assert x.tolist() == [20, 13]


def test_out_may_overlap_the_operand(op):
    whole = np.array([1.0, 10.0, 7.0])
    op(np.array([[0.0, 2.0], [3.0, 1.0]])).apply(whole[:2], out=whole[1:])
    assert whole.tolist() == [1, 20, 13]


def test_out_may_overlap_the_operand_and_be_added_to(op):
    x = np.array([1.0, 10.0])
    op(np.array([[0.0, 2.0], [3.0, 1.0]])).apply(x, out=x, beta=2.0)
    assert x.tolist() == [22, 33]


# ---- dtypes


@pytest.mark.parametrize(
    ("of_operator", "of_vector", "of_result"),
    [
        ("float32", "float32", "float32"),
        ("float32", "float64", "float64"),
        ("float64", "float32", "float64"),
        ("float32", "complex64", "complex64"),
        ("float64", "complex64", "complex128"),
        ("complex64", "float32", "complex64"),
        ("complex64", "float64", "complex128"),
        ("float32", "int32", "float64"),
        ("float32", "bool", "float32"),
        ("float32", "int16", "float32"),
        ("complex64", "uint8", "complex64"),
    ],
)
def test_the_wider_dtype_is_computed_in(op, of_operator, of_vector, of_result):
    result = op(np.eye(2, dtype=of_operator)) @ np.ones(2, of_vector)
    assert result.dtype == of_result
    assert result.tolist() == [1, 1]


def test_a_complex_factor_makes_a_complex_result(op):
    np.testing.assert_array_equal(op(D).apply(X, alpha=1j), 1j * (D @ X))


def test_a_real_factor_does_not_widen(op):
    A = op(np.eye(2, dtype=np.float32))
    assert A.apply(np.ones(2, np.float32), alpha=np.float64(0.5)).dtype == np.float32


# executors


def test_an_array_of_another_device_is_refused(op):
    class Elsewhere:
        """The attributes of CuPy's arrays."""

        shape, ndim, dtype = (3,), 1, np.dtype(float)

        def __dlpack_device__(self):
            return (2, 99)  # a GPU that no machine has

    with pytest.raises(ExecutorMismatch, match="lives on reference and the array on cuda"):
        op(D).apply(Elsewhere())


# the code of SciPy's users


def test_sparse_matrices_of_scipy_meet_operators_on_either_side(op):
    A, S = op(D), sp.csr_array(E)
    for found, expected in (
        (A @ S.T, D @ E.T),
        (S.T @ A, E.T @ D),
        (A + S, D + E),
        (S + A, D + E),
        (A - S, D - E),
        (S - A, E - D),
    ):
        assert isinstance(found, wl.LinOp)
        np.testing.assert_array_equal(found @ np.eye(found.shape[1]), expected)


@pytest.mark.parametrize("format", ["csr", "csc", "coo", "bsr", "dia", "lil", "dok"])
@pytest.mark.parametrize("made", [sp.csr_array, sp.csr_matrix])
def test_a_product_with_any_format_of_scipy_is_a_matrix_on_the_same_executor(format, made):
    A = wl.Csr(D, executor="omp")
    for found in (A @ made(E.T).asformat(format), made(E).asformat(format) @ A.T):
        assert isinstance(found, wl.Csr)
        assert found.executor == A.executor
    np.testing.assert_array_equal(found.toarray(), E @ D.T)


def test_sparse_tensors_meet_matrices_too():
    tensor = torch.from_numpy(E).to_sparse()
    np.testing.assert_array_equal((wl.Csr(D) + tensor).toarray(), D + E)


def test_shapes_must_fit_those_of_scipy_s_matrices(op):
    with pytest.raises(ShapeMismatch):
        op(D) @ sp.csr_array(E)
    with pytest.raises(ShapeMismatch):
        op(D) + sp.csr_array(E.T)


def test_sums_begin_at_zero(op):
    A, B = op(D), op(E)
    np.testing.assert_array_equal(sum([A, B]) @ X, (D + E) @ X)
    assert A + 0 is A and A - 0 is A
    np.testing.assert_array_equal((0 - A) @ X, -D @ X)


@pytest.mark.parametrize("other", [None, "text"])
def test_what_is_no_operator_is_not_added(op, other):
    for call in (lambda A: A + other, lambda A: other + A, lambda A: A - other):
        with pytest.raises(TypeError, match=r"unsupported operand|concatenate"):
            call(op(D))


def test_dot_multiplies_vectors_blocks_operators_and_numbers(op):
    A = op(D)
    np.testing.assert_array_equal(A.dot(X), D @ X)
    np.testing.assert_array_equal(A.dot(X2), D @ X2)
    np.testing.assert_array_equal(A.dot(op(E.T)) @ X[:2], D @ E.T @ X[:2])
    np.testing.assert_array_equal(A.dot(2) @ X, 2 * D @ X)
    assert A.ndim == 2


def test_solvers_have_transposes():
    A = np.array([[4.0, 1.0], [0.0, 3.0]])
    solver = wl.solvers.Gmres(wl.Csr(A), rtol=1e-10)
    np.testing.assert_allclose(A.T @ (solver.T @ X[:2]), X[:2])
    np.testing.assert_allclose(A.T @ (solver.H @ X[:2]), X[:2])


# ---- factors and results that cannot be


@pytest.mark.parametrize("wrong", [None, "2", [1.0], np.ones(2)])
@pytest.mark.parametrize("which", ["alpha", "beta"])
def test_what_is_no_number_is_no_factor(op, which, wrong):
    out = np.ones(2)
    with pytest.raises(InvalidArgument, match=f"{which}: expected a number"):
        op(D).apply(X, out, **{which: wrong})
    assert out.tolist() == [1, 1]


@pytest.mark.parametrize("two", [Fraction(2), Decimal(2), np.float32(2), np.array(2), np.int8(2)])
def test_every_number_is_a_factor(op, two):
    np.testing.assert_array_equal(op(D).apply(X, alpha=two), 2 * D @ X)
    if not isinstance(two, np.ndarray):
        np.testing.assert_array_equal((two * op(D)) @ X, 2 * D @ X)


@pytest.mark.parametrize("out", [[0.0, 0.0], (0.0, 0.0), 0.0, "zz"])
def test_a_result_is_written_to_arrays_alone(op, out):
    with pytest.raises(InvalidArgument, match="out: expected an array to write to"):
        op(D).apply(X, out)


def test_read_only_results_are_refused_before_they_are_touched(op):
    out = np.ones(2)
    view = out[:]
    view.flags.writeable = False
    with pytest.raises(InvalidArgument, match="read-only"):
        op(D).apply(X, view, beta=1.0)
    assert out.tolist() == [1, 1]


def test_operators_have_no_virtual_subclasses():
    class Like:
        pass

    for kind in (wl.LinOp, wl.Csr, wl.solvers.Cg):
        with pytest.raises(TypeError, match=r"derive Like from wl\.LinOp"):
            kind.register(Like)
        assert not isinstance(Like(), kind)
    assert isinstance(wl.Csr(D), wl.LinOp)
    assert issubclass(wl.solvers.Cg, wl.LinOp)
