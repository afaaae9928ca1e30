"""The tests of everyday operations, on the reference executor."""

import numpy as np
import pytest

import wollemi as wl
from wollemi.core.dtypes import index_dtype

from ..backends.test_everyday import *  # noqa: F403


@pytest.fixture
def executor() -> wl.Executor:
    return wl.executor("reference")


def test_indices_are_widened_where_the_entries_are_too_many_to_count(monkeypatch) -> None:
    def no_more_than_three(largest: int, *dtypes: object) -> np.dtype:
        return index_dtype(largest if largest <= 3 else 2**40, *dtypes)

    monkeypatch.setattr("wollemi.core.formats.rowwise.index_dtype", no_more_than_three)
    D = np.array([[1.0, 2.0], [0.0, 3.0]])
    A = wl.Csr(D, executor="reference")
    assert A[[0]].index_dtype == np.int32
    made = A[[0, 0, 1]]
    assert made.index_dtype == made.indptr.dtype == np.int64
    np.testing.assert_array_equal(made.to_dense(), D[[0, 0, 1]])
