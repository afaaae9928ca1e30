"""Permutations reorder as indexing does."""

import pickle

import numpy as np
import pytest

import wollemi as wl

INDICES = [2, 0, 1]


def test_it_does_what_indexing_does(rng):
    x = rng.standard_normal((3, 2))
    np.testing.assert_array_equal(wl.Permutation(INDICES) @ x, x[INDICES])


def test_its_transpose_is_its_inverse():
    P = wl.Permutation(INDICES)
    np.testing.assert_array_equal(P.T @ (P @ np.arange(3.0)), np.arange(3.0))
    np.testing.assert_array_equal(P.H @ (P @ np.arange(3.0)), np.arange(3.0))


def test_it_computes_in_the_dtype_of_the_vector():
    P = wl.Permutation(INDICES)
    assert P.dtype == np.float32
    assert (P @ np.ones(3, np.complex128)).dtype == np.complex128
    assert P.astype(np.float32) is P
    assert P.index_dtype == np.int64 or P.index_dtype == np.int32


def test_it_moves_and_pickles():
    P = wl.Permutation(INDICES, executor="omp")
    moved = P.to("reference")
    assert moved.executor.name == "reference" and P.to("omp") is P
    np.testing.assert_array_equal(moved @ np.arange(3.0), [2, 0, 1])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(moved)) @ np.arange(3.0), [2, 0, 1])


@pytest.mark.parametrize("wrong", [[0, 0, 1], [0, 1, 3], [0, -1, 1], [0.5, 1, 2]])
def test_what_is_no_permutation_is_refused(wrong):
    with pytest.raises(wl.errors.InvalidMatrix):
        wl.Permutation(wrong)


def test_the_empty_permutation_is_one():
    assert (wl.Permutation([]) @ np.zeros(0)).shape == (0,)
