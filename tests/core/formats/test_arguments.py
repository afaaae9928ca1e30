"""Arguments of constructors: SciPy's tuples, options, and other objects."""

from fractions import Fraction
from importlib import import_module

import numpy as np
import pytest
import scipy.sparse as sp
import torch

import wollemi as wl
from wollemi.core.errors import (
    InvalidArgument,
    InvalidMatrix,
    OutOfDeviceMemory,
    UnsupportedDtype,
)

DATA, ROW, COL = [1.0, 2.0, 3.0], [0, 1, 1], [1, 0, 1]
ENTRIES = sp.coo_array((DATA, (ROW, COL)), shape=(2, 2)).toarray()


@pytest.mark.parametrize("format", ["Csr", "Csc", "Coo", "Bsr"])
def test_coordinates_are_taken_by_every_constructor_that_takes_tuples(format):
    make = getattr(wl, format)
    np.testing.assert_array_equal(make((DATA, (ROW, COL)), shape=(2, 2)).to_dense(), ENTRIES)
    np.testing.assert_array_equal(make((DATA, (ROW, COL))).to_dense(), ENTRIES)
    with pytest.raises(InvalidMatrix, match=r"row\[1\] = 1 is outside"):
        make((DATA, (ROW, COL)), shape=(1, 2))


@pytest.mark.parametrize("format", ["Coo", "Ell", "Sellp", "Hybrid"])
def test_a_tuple_of_another_format_is_no_dense_matrix(format):
    with pytest.raises(InvalidMatrix, match="a tuple of 3 does not describe this matrix"):
        getattr(wl, format)((DATA, ROW, COL))


@pytest.mark.parametrize("make", [wl.Csr, wl.Coo, wl.Csc])
@pytest.mark.parametrize("arg", [(DATA, 3), (DATA,), (3, 4)])
def test_other_tuples_are_refused_with_the_forms_there_are(make, arg):
    with pytest.raises(InvalidMatrix, match=r"\(data, \(row, col\)\)"):
        make(arg)


def test_sequences_of_different_lengths_are_refused():
    with pytest.raises(InvalidArgument, match="not an array of numbers"):
        wl.Csr(([[1.0], [2.0, 3.0]], [0, 1], [0, 1, 2]))
    with pytest.raises(InvalidArgument, match="not an array of numbers"):
        wl.Dense([[1.0], [2.0, 3.0]])


def test_ell_takes_a_width():
    A = wl.Ell(ENTRIES, width=3)
    assert A.width == 3
    np.testing.assert_array_equal(A.to_dense(), ENTRIES)


@pytest.mark.parametrize("blocksize", [2, (2,), (2, 2, 2)])
def test_a_block_size_is_two_numbers(blocksize):
    with pytest.raises(InvalidArgument, match=r"blocksize is \(rows, columns\)"):
        wl.Bsr(ENTRIES, blocksize=blocksize)


def test_a_block_size_must_be_that_of_the_blocks():
    with pytest.raises(InvalidMatrix, match="was given for blocks of"):
        wl.Bsr((np.ones((1, 2, 2)), [0], [0, 1]), blocksize=(1, 1))


def test_a_slice_is_a_whole_number_of_rows():
    with pytest.raises(InvalidArgument, match=r"are at least 1, got 2\.5"):
        wl.Sellp(ENTRIES, slice_size=2.5)


def test_an_unknown_option_is_named():
    with pytest.raises(InvalidArgument, match="ell has no option 'depth'"):
        wl.Csr(ENTRIES).asformat("ell", depth=3)


def test_fractions_scale_as_numbers():
    half = wl.Csr(ENTRIES) * Fraction(1, 2)
    assert half.dtype == np.float64
    np.testing.assert_array_equal(half.to_dense(), ENTRIES / 2)


def test_a_dtype_without_a_name_is_refused():
    with pytest.raises(UnsupportedDtype, match="not a dtype: 'foo'"):
        wl.Csr(ENTRIES, dtype="foo")


def test_a_tensor_that_requires_gradients_is_refused_with_the_remedy():
    with pytest.raises(InvalidArgument, match="detach"):
        wl.Csr(ENTRIES) @ torch.ones(2, dtype=torch.float64, requires_grad=True)


def test_plans_are_for_operations_that_have_them():
    with pytest.raises(InvalidArgument, match="only for spmv, spmm, sddmm, fusedmm"):
        wl.Csr(ENTRIES).plan_for("spmw", 4)


@pytest.mark.parametrize("width", [-1, 2.5, "a"])
@pytest.mark.parametrize("format", [wl.Ell, wl.Hybrid])
def test_a_width_is_a_whole_number(format, width):
    with pytest.raises(InvalidArgument, match="the width is an integer of at least 0"):
        format(ENTRIES, width=width)


@pytest.mark.filterwarnings("ignore:the matrix subclass")
@pytest.mark.parametrize("format", [wl.Csr, wl.Dense, wl.Coo])
def test_matrices_of_numpy_are_arrays(format):
    A = format(np.matrix(ENTRIES))
    np.testing.assert_array_equal(A.to_dense(), ENTRIES)
    np.testing.assert_array_equal(A @ np.matrix([[1.0], [2.0]]), ENTRIES @ [[1.0], [2.0]])


def test_a_dense_array_of_16_bits_becomes_rows_of_16_bits():
    A = wl.Csr(ENTRIES.astype(np.float16))
    assert A.dtype == np.float16
    np.testing.assert_array_equal(A.to_dense(), ENTRIES)


class Column:
    """A column of pandas as NumPy sees it."""

    def __array__(self, dtype=None, copy=None):
        return np.array([1.0, 2.0])


def test_what_numpy_takes_for_an_array_is_one():
    np.testing.assert_array_equal(wl.Csr(ENTRIES) @ Column(), ENTRIES @ [1.0, 2.0])


def test_sequences_of_different_lengths_are_no_vectors():
    with pytest.raises(InvalidArgument, match="not an array of numbers"):
        wl.Csr(ENTRIES) @ [[1.0], [2.0, 3.0]]


def test_sparse_right_hand_sides_are_told_to_be_dense():
    with pytest.raises(InvalidArgument, match=r"make it dense with .toarray\(\)"):
        wl.linalg.cg(ENTRIES, sp.coo_array([[1.0], [2.0]]))


def test_numbers_that_numpy_lacks_are_named():
    with pytest.raises(UnsupportedDtype, match=r"NumPy has no torch\.bfloat16"):
        wl.Csr(ENTRIES) @ torch.ones(2, dtype=torch.bfloat16)


@pytest.mark.parametrize("M", [3, np.ones(2)])
def test_what_is_no_preconditioner_is_named_as_one(M):
    with pytest.raises((InvalidArgument, InvalidMatrix), match=r"M: .*wl.Diagonal\(d\)"):
        wl.linalg.cg(ENTRIES, np.ones(2), M=M)


@pytest.mark.parametrize("name", ["reference", "omp"])
@pytest.mark.parametrize("format", ["Csr", "Csc", "Bsr"])
def test_a_shape_that_no_memory_holds_is_refused_with_its_size(monkeypatch, format, name):
    for place in (1 << 40, 1 << 62):
        arg = ([1.0], ([place], [place]))
        with pytest.raises(OutOfDeviceMemory, match=f"for its shape alone.*on {name}"):
            getattr(wl, format)(arg, executor=name)
    monkeypatch.setattr(
        import_module("wollemi.core.formats.convert"), "available_memory", lambda: 20 << 30
    )
    arg = ([1.0], ([1], [1 << 31]))  # 16 GiB of pointers, which a conversion has more than once
    with pytest.raises(OutOfDeviceMemory, match="for its shape alone"):
        wl.Csc(arg, executor=name)
    assert wl.Csr(arg, executor=name).nnz == 1
    with pytest.raises(OutOfDeviceMemory, match="for its shape alone"):
        wl.Csr(arg, executor=name).tocsc()
    A = wl.Coo(([1.0], ([1 << 40], [1 << 40])), executor=name)
    assert A.nnz == 1
    with pytest.raises(OutOfDeviceMemory, match="dense format"):
        A.asformat("dense")


@pytest.mark.parametrize("shape", [(1 << 63, 1), (1, 1 << 64), (-1, 1), (1.5, 1)])
def test_a_shape_beyond_64_bits_is_refused(shape):
    with pytest.raises(InvalidMatrix, match="integers"):
        wl.Coo(([1.0], ([0], [0])), shape=shape, executor="reference")
    with pytest.raises(InvalidMatrix, match="64 bits"):
        wl.Coo(([1.0], ([2**64 - 1], [0])), executor="reference")
