"""Distinct numbers."""

from __future__ import annotations

import numpy as np
import pytest

from wollemi.core.distinct import distinct


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint64])
@pytest.mark.parametrize("size", [0, 1, 2, 1000])
def test_distinct_numbers_rise(size: int, dtype: type) -> None:
    numbers = np.random.default_rng(size).integers(0, 300, size).astype(dtype)
    found = distinct(numbers)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, sorted(set(numbers.tolist())))
