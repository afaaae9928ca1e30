"""Checksums that find different arrays, and take differences of rounding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from wollemi.core.checksums import checksum, compared_parts, pattern_checksum


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("size", [1, 5, 1024, 5000])
def test_other_numbers_are_found_and_rounding_is_taken(dtype: str, size: int, rng: Any) -> None:
    v = (1 + rng.random(size) * (1 + 1j if dtype.startswith("c") else 1)).astype(dtype)
    one = checksum(v)
    assert one.agrees(checksum(v * (1 + 8 * np.finfo(dtype).eps)))
    other = v.copy()
    other[size // 2] *= 1.5
    assert not one.agrees(checksum(other))
    assert not checksum(np.zeros_like(v)).agrees(one)
    if size > 1:
        assert not one.agrees(checksum(np.roll(v, 1)))
        assert not one.agrees(checksum(v[::-1]))


def test_layouts_integers_and_values_that_are_not_finite(rng: Any) -> None:
    block = rng.standard_normal((40, 3))
    assert checksum(block) == checksum(np.asfortranarray(block))
    assert checksum(np.arange(9)) == checksum(np.arange(9.0))
    assert checksum(np.zeros(0)).agrees(checksum(np.zeros(0)))
    hole = block.copy()
    hole[3, 1] = np.nan
    assert checksum(hole).agrees(checksum(hole))
    assert not checksum(hole).agrees(checksum(block))


def test_a_pattern_has_one_number() -> None:
    one, other = np.array([0, 2, 4]), np.array([0, 1, 4])
    assert pattern_checksum(one, other) == pattern_checksum(one.copy(), other)
    assert pattern_checksum(one, other) != pattern_checksum(other, one)


def test_large_arrays_are_compared_by_parts(rng: Any) -> None:
    v = rng.standard_normal((100_000, 2))
    parts = compared_parts(v)
    assert sum(part.shape[0] for part in parts) == 16_384
    assert np.array_equal(parts[0][0], v[0]) and np.array_equal(parts[-1][-1], v[-1])
    assert not checksum(*parts).agrees(checksum(*compared_parts(v * 1.001)))
    assert len(compared_parts(v[:16_384])) == 1
