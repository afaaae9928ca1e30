"""When the rule takes tensor cores: pure functions, with no GPU in sight."""

from __future__ import annotations

import numpy as np
import pytest

from wollemi.backends.cuda.products import tensor_kernels as kernels
from wollemi.backends.cuda.products.tensor import tiling
from wollemi.backends.cuda.products.tensor_choice import reason, shares
from wollemi.backends.cuda.products.tensor_pattern import TilePattern
from wollemi.core.algorithm import Facts
from wollemi.core.statistics import RowStatistics


def facts(m: int, n: int, density: float, columns: int, dtype: str = "float32") -> Facts:
    nnz = int(m * n * density)
    rows = RowStatistics(m, n, nnz, n * density, 0.0, int(n * density), 0.0)
    return Facts(rows, columns, dtype, np.dtype(np.int32))


# The choices that were measured faster on an H200.
@pytest.mark.parametrize(
    ("density", "columns", "chosen"),
    [
        (0.02, 32, False),
        (0.05, 32, False),
        (0.2, 32, True),
        (0.3, 32, True),
        (0.02, 128, False),
        (0.1, 128, True),
        (0.3, 128, True),
        (0.1, 256, True),
        (0.1, 1, False),
    ],
)
def test_weights_are_multiplied_by_what_was_faster(density, columns, chosen) -> None:
    assert bool(reason(facts(8192, 8192, density, columns), 8448)) == chosen


def test_small_matrices_are_left_to_one_launch() -> None:
    assert reason(facts(2048, 1024, 0.1, 32), 8448) is None
    assert reason(facts(512, 512, 0.3, 128), 8448) is None


def test_graphs_are_left_to_kernels_that_know_zeros() -> None:
    assert reason(facts(2**20, 2**20, 2e-5, 128), 8448) is None


@pytest.mark.parametrize("tiles", [1, 7, 43, 64, 100, 131, 132, 133, 1000])
@pytest.mark.parametrize("steps", [1, 5, 128])
def test_shares_are_no_more_than_there_are_steps_or_multiprocessors(tiles, steps) -> None:
    assert 1 <= shares(tiles, steps, 132) <= min(132, tiles * steps)


@pytest.mark.parametrize("dtype", kernels.SHAPES)
@pytest.mark.parametrize("columns", [1, 32, 33, 100, 128, 300])
def test_a_full_matrix_leaves_room_for_two_stages(dtype: str, columns: int) -> None:
    nothing = np.empty(0)
    pattern = TilePattern(128, 128, nothing, nothing, nothing, 512)
    cut = tiling(pattern, columns, dtype, 132, 227 * 1024)
    assert cut.stages >= 2
    assert cut.shared <= 227 * 1024
    assert cut.panels * cut.shape.columns >= columns
