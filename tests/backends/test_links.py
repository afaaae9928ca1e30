"""Sums in halves: a total over a group can stand between the visit of elements and the finish."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.core.links import Links
from wollemi.core.operation import OPERATIONS, Operation

from .awkward import Block
from .calls import make

SUMMED = [operation for operation in OPERATIONS if operation.adds_up]


class Alone(Links):
    """The totals of a group of one member; counts its calls."""

    def __init__(self, executor: wl.Executor) -> None:
        self.executor = executor
        self.asked: list[str] = []

    def _replace(self, array: Any, change: Any) -> None:
        host = np.array(self.executor.to_host(array))
        self.executor.copy_into(array, change(host))

    def sum(self, array: Any) -> None:
        self.asked.append("sum")
        self._replace(array, lambda own: own)

    def largest(self, array: Any) -> None:
        self.asked.append("largest")
        self._replace(array, lambda own: own)

    def norm(self, array: Any) -> None:
        self.asked.append("norm")
        self._replace(array, lambda own: own)


class Twins(Alone):
    """The totals of two members that always hold the same."""

    def sum(self, array: Any) -> None:
        self.asked.append("sum")
        self._replace(array, lambda own: own + own)

    def norm(self, array: Any) -> None:
        self.asked.append("norm")
        self._replace(array, lambda own: np.sqrt(own * own + own * own))


@pytest.fixture
def member(executor: wl.Executor) -> Iterator[wl.Executor]:
    """An executor with links that a test may set."""
    yield executor
    executor.links = None


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@pytest.mark.parametrize("operation", SUMMED, ids=lambda o: o.name)
@pytest.mark.parametrize("block", [Block("one", 1), Block("three", 3, stopped=(1,))])
def test_two_halves_are_the_whole(
    member: wl.Executor, operation: Operation, block: Block, dtype: str, rng: Any
) -> None:
    if not member.supports(operation):
        pytest.skip(f"{operation.name} has no kernel on {member.name}")
    call = make(operation, block, 130, None, dtype, "int32", rng)
    whole = call.run(member)
    member.links = links = Alone(member)
    halves = call.run(member)
    assert links.asked
    # Compilers of GPUs contract products and sums of complex numbers as they like in each kernel.
    units = 4 if member.backend in ("cuda", "hip") and np.dtype(dtype).kind == "c" else 0
    for name, want in whole.items():
        have = halves[name]
        if units and want.dtype.kind in "fc":
            eps = units * np.finfo(want.dtype).eps
            np.testing.assert_allclose(have, want, rtol=eps, atol=0, err_msg=name)
        else:
            np.testing.assert_array_equal(have, want, err_msg=name)


@pytest.mark.one_where_compiled
@pytest.mark.parametrize("dtype", ["float64", "complex64"])
def test_the_total_stands_between_the_halves(member: wl.Executor, dtype: str, rng: Any) -> None:
    from wollemi.core.operations import vector

    member.links = Twins(member)
    x = rng.standard_normal((50, 2)).astype(dtype)
    value, real = np.zeros(2, dtype), np.zeros(2, x.real.dtype)
    native = [member.from_host(a) for a in (x, value, real, real.copy())]
    member.run(vector.dot, native[0], native[0], native[1])
    member.run(vector.norm, native[0], native[2])
    member.run(vector.largest, native[0], native[3])
    squares = (np.abs(x) ** 2).sum(axis=0)
    np.testing.assert_allclose(member.to_host(native[1]), 2 * squares, rtol=1e-5)
    np.testing.assert_allclose(member.to_host(native[2]), np.sqrt(2 * squares), rtol=1e-5)
    np.testing.assert_allclose(member.to_host(native[3]), np.abs(x).max(axis=0), rtol=1e-6)


@pytest.mark.one_where_compiled
@pytest.mark.parametrize("name", ["Cg", "Fcg", "Bicgstab", "Cgs", "Gmres"])
def test_a_member_solves_its_part_of_the_system_of_all(
    member: wl.Executor, name: str, rng: Any
) -> None:
    if member.backend in ("cuda", "hip"):
        pytest.skip(
            "these links copy through the host, which a captured loop cannot; reference, omp and "
            "dpcpp run this"
        )
    line = sp.diags([-1.0, 2.5, -1.0], [-1, 0, 1], shape=(40, 40)).tocsr()
    b = rng.standard_normal((40, 2))
    whole = sp.block_diag([line, line]).tocsr()
    make_solver = getattr(wl.solvers, name)
    expected = make_solver(wl.Csr(whole, executor="reference"), rtol=1e-10).solve(np.vstack([b, b]))
    member.links = links = Twins(member)
    A = wl.Csr(line, executor=member)
    solver = make_solver(A, rtol=1e-10)
    assert solver.executor is member
    found = solver.solve(member.from_host(b) if member.backend != "omp" else b)
    assert found.converged and links.asked
    assert abs(found.iterations - expected.iterations) <= 1
    x = np.asarray(member.to_host(found.x) if member.owns(found.x) else found.x)
    np.testing.assert_allclose(np.vstack([x, x]), expected.x, atol=1e-7)
