"""Products and transposes of sparse matrices by groups of lanes: the reference's, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.backends.gpu import sparse_products
from wollemi.core.formats import Csr
from wollemi.core.operations import structure

from ..lockstep.build import compiler
from ..lockstep.executor import LockstepExecutor
from ..needs import cuda, tool

REFERENCE = wl.executor("reference")

#: An emulated wave with the dtypes that it is tried with, and a GPU.
PLACES = [
    pytest.param("lockstep:32", "float64", "int32", id="32 lanes"),
    pytest.param("lockstep:64", "complex64", "int64", id="64 lanes"),
    pytest.param("cuda", "float64", "int32", id="cuda", marks=pytest.mark.gpu),
    pytest.param("cuda", "complex128", "int64", id="cuda complex", marks=pytest.mark.gpu),
]
pytestmark = tool(compiler() is not None, "no C++ compiler: install g++, or set CXX")


def placed(M: Any, executor: Any, dtype: str, index: str) -> Csr:
    arrays = M.data.astype(dtype), M.indices.astype(index), M.indptr.astype(index)
    return Csr._from_arrays(executor, M.shape, *map(executor.from_host, arrays))


def executor_of(name: str) -> Any:
    kind, _, lanes = name.partition(":")
    return LockstepExecutor(int(lanes)) if kind == "lockstep" else cuda()


def uneven(rows: int, columns: int, density: float, seed: int, longest: int = 0) -> Any:
    """Return a matrix with sorted rows, one of them empty and one with ``longest`` entries."""
    rng = np.random.default_rng(seed)
    dense = rng.standard_normal((rows, columns)) * (rng.random((rows, columns)) < density)
    dense[rows // 2] = 0
    dense[rows // 3, :longest] = 1.5
    return sp.csr_array(dense)


SHAPES = {
    "short right rows": (uneven(60, 90, 0.1, 0), uneven(90, 40, 0.05, 1)),
    "rows of all sizes": (uneven(25, 60, 0.04, 2, longest=60), uneven(60, 500, 0.1, 3)),
    "no entries": (sp.csr_array((3, 4)), sp.csr_array((4, 5))),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("name", "dtype", "index"), PLACES)
def test_products_and_their_new_values(name: str, dtype: str, index: str, shape: str) -> None:
    executor, pair = executor_of(name), SHAPES[shape]
    A, B = (placed(M, executor, dtype, index) for M in pair)
    want = REFERENCE.run(structure.csr_matmul, *(placed(M, REFERENCE, dtype, index) for M in pair))
    made = sparse_products.multiplied(executor, A, B)
    for have, expected in zip(made, want, strict=True):
        np.testing.assert_array_equal(executor.to_host(have), expected)
    empty = executor.zeros((int(made[2].size),), dtype)
    C = Csr._from_arrays(executor, (A.shape[0], B.shape[1]), empty, made[1], made[0])
    values = sparse_products.new_values(executor, A, B, C)
    np.testing.assert_array_equal(executor.to_host(values), want[2])


@pytest.mark.parametrize("longest", [40, 200, 300])
@pytest.mark.parametrize(("name", "dtype", "index"), PLACES)
def test_transposes(name: str, dtype: str, index: str, longest: int) -> None:
    executor, turned = executor_of(name), uneven(30, 320, 0.1, 5, longest=longest).T.tocsr()
    have = executor.run(structure.csr_transpose, placed(turned, executor, dtype, index))
    want = REFERENCE.run(structure.csr_transpose, placed(turned, REFERENCE, dtype, index))
    for one, expected in zip(have, want, strict=True):
        np.testing.assert_array_equal(executor.to_host(one), expected)


def test_enough_lanes_read_a_right_row() -> None:
    assert [sparse_products.spread(8, longest) for longest in (0, 1, 3, 4, 5, 8, 9)] == [
        *(1, 1, 4, 4, 8, 8, 8)
    ]
