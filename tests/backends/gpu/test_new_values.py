"""New values of a matrix on a device are copied once, and twice only where they are its own."""

from __future__ import annotations

import numpy as np
import pytest

import wollemi as wl

from ..lockstep.executor import LockstepExecutor, native

WAVE = LockstepExecutor(32)


def of(data: np.ndarray) -> wl.Csr:
    pattern = (native(np.array(part, np.int32)) for part in ([0, 1, 0], [0, 2, 3]))
    return wl.Csr._from_arrays(WAVE, (2, 2), data, *pattern)


@pytest.fixture
def A() -> wl.Csr:
    return of(native(np.array([1.0, 2.0, 3.0])))


def test_other_values_are_copied_from_where_they_are(A: wl.Csr) -> None:
    values = native(np.array([4.0, 5.0, 6.0]))
    assert A._as_stored(values) is values


def test_values_of_the_matrix_itself_are_copied_first(A: wl.Csr) -> None:
    for values in (A.data, A.data[::-1]):
        assert not np.may_share_memory(A._as_stored(values), A.data)
    A.update_values(A.data[::-1])
    np.testing.assert_array_equal(WAVE.to_host(A.data), [3.0, 2.0, 1.0])


def test_neighbours_in_memory_are_not_the_same() -> None:
    both = native(np.arange(6.0))
    A = of(both[:3])
    assert np.may_share_memory(A._as_stored(both[3:]), both)
    assert not np.may_share_memory(A._as_stored(both[2:5]), both)


def test_values_of_another_dtype_are_converted(A: wl.Csr) -> None:
    A.update_values(native(np.array([4, 5, 6], np.float32)))
    np.testing.assert_array_equal(WAVE.to_host(A.data), [4.0, 5.0, 6.0])
