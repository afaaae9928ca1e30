"""A member of a group on emulated waves: totals between the halves of kernels, in batches too."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

import wollemi as wl
from wollemi.core.operations import vector

from ..lockstep.build import compiler
from ..lockstep.executor import LockstepExecutor
from ..needs import tool
from ..test_links import Alone, Twins

pytestmark = tool(compiler() is not None, "no C++ compiler: install g++, or set CXX")


def test_a_member_solves_its_part_of_the_system_of_all(rng):
    line = sp.diags([-1.0, 2.5, -1.0], [-1, 0, 1], shape=(40, 40)).tocsr()
    b = rng.standard_normal((40, 2))
    member = LockstepExecutor(32)
    member.links = links = Twins(member)
    found = wl.solvers.Cg(wl.Csr(line, executor=member), rtol=1e-10).solve(member.from_host(b))
    whole = sp.block_diag([line, line]).tocsr()
    A = wl.Csr(whole, executor="reference")
    expected = wl.solvers.Cg(A, rtol=1e-10).solve(np.vstack([b, b]))
    assert found.converged and links.asked
    assert abs(found.iterations - expected.iterations) <= 1
    x = member.to_host(found.x)
    np.testing.assert_allclose(np.vstack([x, x]), expected.x, atol=1e-7)


def test_two_halves_are_the_whole_in_many_columns(rng):
    executor = LockstepExecutor(64)
    x = executor.from_host(rng.standard_normal((300, 5)))
    whole, halves = executor.zeros((5,), "float64"), executor.zeros((5,), "float64")
    executor.run(vector.norm, x, whole)
    executor.links = Alone(executor)
    executor.run(vector.norm, x, halves)
    np.testing.assert_array_equal(executor.to_host(halves), executor.to_host(whole))
