"""A matrix keeps its shape, dtype and executor; and there are dtypes that no matrix has."""

import numpy as np
import pytest

import wollemi as wl
from wollemi.core.errors import InvalidArgument, UnsupportedDtype

from .strategies import FORMATS

D = np.array([[1.0, 2.0, 0.0], [0.0, 3.0, 4.0], [5.0, 0.0, 0.0]])
OTHERS = {
    "identity": lambda on: wl.Identity(3, dtype="float64", executor=on),
    "permutation": lambda on: wl.Permutation([2, 0, 1], dtype="float64", executor=on),
    "diagonal": lambda on: wl.Diagonal([1.0, 2.0, 3.0], executor=on),
    "scaled": lambda on: 2 * wl.Identity(3, dtype="float64", executor=on),
    "sum": lambda on: wl.Identity(3, executor=on) + callable_on(on),
    "product": lambda on: wl.Csr(D, executor=on) @ callable_on(on),
    "callable": lambda on: callable_on(on),
}


def callable_on(on):
    return wl.LinearOperator((3, 3), matvec=lambda x: x, dtype="float64", executor=on)


def made(kind, on):
    return OTHERS[kind](on) if kind in OTHERS else wl.Csr(D, executor=on).asformat(kind)


EVERY = pytest.mark.parametrize("kind", [*FORMATS, *OTHERS])


FACTS = pytest.mark.parametrize(
    ("name", "value", "remedy"),
    [
        ("shape", (4, 1), "shape"),
        ("dtype", np.dtype("float32"), r"A\.astype\(dtype\)"),
        ("dtype", "int64", r"A\.astype\(dtype\)"),
        ("executor", None, r"A\.to\(executor\)"),
    ],
)


@EVERY
@FACTS
def test_what_an_operator_is_made_with_cannot_be_assigned(kind, name, value, remedy):
    A = made(kind, "reference")
    before = getattr(A, name)
    with pytest.raises(InvalidArgument, match=f"{name}: .* cannot change it; .*{remedy}"):
        setattr(A, name, value)
    assert getattr(A, name) == before


@FACTS
def test_so_kernels_read_no_more_than_there_is(on, name, value, remedy):
    A = made("csr", on)
    with pytest.raises(InvalidArgument, match=remedy):
        setattr(A, name, value)
    np.testing.assert_array_equal(A @ np.ones(3), D.sum(axis=1))


def test_what_it_was_made_with_may_be_said_again():
    A = wl.Csr(D)
    A.shape, A.dtype, A.executor = (3, 3), np.dtype(float), wl.executor("reference")


@pytest.mark.parametrize(
    ("operator", "name"),
    [
        (lambda: wl.Sellp(D), "slice_size"),
        (lambda: wl.Hybrid(D), "ell"),
        (lambda: wl.Hybrid(D), "coo"),
        (lambda: wl.Permutation([1, 0]), "indices"),
    ],
)
def test_nor_can_what_else_kernels_trust(operator, name):
    A = operator()
    with pytest.raises(InvalidArgument, match=f"{name}: "):
        setattr(A, name, 7)


@EVERY
@pytest.mark.parametrize("dtype", [int, bool, "int32", "int64"], ids=str)
def test_matrices_hold_integers_and_booleans(kind, dtype):
    A = made(kind, "reference")
    if kind in OTHERS:
        with pytest.raises(UnsupportedDtype, match=r"no values of dtype .* float32, float64"):
            A.astype(dtype)
        return
    assert A.astype(dtype).dtype == dtype
    np.testing.assert_array_equal(A.astype(dtype).to_dense(), A.to_dense().astype(dtype))


@EVERY
@pytest.mark.parametrize("dtype", [object, str, "foo", "datetime64[s]", np.longdouble], ids=str)
def test_nor_of_what_is_no_number(kind, dtype):
    with pytest.raises(UnsupportedDtype, match="not"):
        made(kind, "reference").astype(dtype)


@EVERY
@pytest.mark.parametrize("dtype", ["float32", "complex64", ">f8", complex], ids=str)
def test_every_other_dtype_is_the_one_that_was_asked_for(kind, dtype):
    A = made(kind, "reference").astype(dtype)
    assert A.dtype == np.dtype(dtype).newbyteorder("=")
    assert (A @ np.ones(3, A.dtype)).dtype == A.dtype


@pytest.mark.parametrize(
    "make",
    [wl.Csr, wl.Csc, wl.Coo, wl.Ell, wl.Sellp, wl.Hybrid, wl.Bsr, wl.Dense],
    ids=lambda cls: cls.__name__,
)
def test_constructors_make_matrices_of_integers(make):
    assert make(D.astype(int), dtype=int).dtype == np.int64


@pytest.mark.parametrize(
    "make",
    [
        lambda: wl.Diagonal([1, 2], dtype=int),
        lambda: wl.Identity(2, dtype=int),
        lambda: wl.Permutation([1, 0], dtype=bool),
    ],
)
def test_nor_do_those_of_operators(make):
    with pytest.raises(UnsupportedDtype, match="no values of dtype"):
        make()


def test_a_complex_multiple_does_not_become_real():
    with pytest.raises(InvalidArgument, match="cannot be computed in a real dtype"):
        (2j * wl.Identity(3)).astype(float)
