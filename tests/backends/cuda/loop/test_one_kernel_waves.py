"""The one kernel for all iterations, run lane by lane in a block, solves as the host does."""

from __future__ import annotations

import ctypes
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.backends.cuda.loop import persistent, schedule, shared_memory
from wollemi.backends.gpu.spmv import packed
from wollemi.backends.gpu.tape import steps_of
from wollemi.backends.simt.operands import address
from wollemi.core.stopping import Iterations, RelativeResidual

from ...lockstep.build import Library, compiler
from ...lockstep.executor import LockstepExecutor
from ...needs import alternating, swept, tool

pytestmark = tool(compiler() is not None, "no C++ compiler: install g++, or set CXX")

WARP, BLOCK = 32, 64


def emulated(made: persistent.MadeKernel) -> str:
    """Return the program of a kernel for the emulation."""
    text = made.kernel.source.replace("#define WL_CUDA 1", "#define WL_LOCKSTEP 1")
    shared, where = text.partition('#line 1 "wrappers"\n')[::2]
    functors, entry, where = where.partition("WL_ENTRY(")
    head, _, body = (entry + where).partition(") {\n")
    head = head.replace("](", "](WL_GRID ").replace(")(", ")(WL_GRID ")
    body = body.rstrip().removesuffix("}")
    body = body.replace("  const wl::item it{};\n", "")
    memory = f"  WL_SHARED(wl::u64, memory_of_block, {made.shared // 8 + 2});\n"
    memory += "  auto* const shared = reinterpret_cast<wl::u8*>(memory_of_block);\n"
    body = body.replace("  extern __shared__ __align__(16) wl::u8 shared[];\n", memory)
    return f'{shared}#line 1 "wrappers"\n{functors}{head}) {{ WL_RUN(\n{body}) }}\n'


@cache
def library(source: str) -> Library:
    return Library(source, "together")


class OneKernel(LockstepExecutor):
    """Drives iterations by the one kernel, launched on a block."""

    def __init__(self, rematerialize: bool, matrices: bool, basis: int, kept: int) -> None:
        super().__init__(WARP)
        self.rematerialize, self.matrices, self.basis, self.kept = (
            rematerialize,
            matrices,
            basis,
            kept,
        )
        self.launches = 0

    def make_program(self, iteration: Any) -> Any:
        phases = schedule.phases_of(steps_of(self.record(iteration.body)))
        assert phases is not None
        plan = schedule.plan(phases, self.rematerialize)
        vectors = {address(v): v for phase in phases for v in schedule.all_vectors(phase)}
        n = next(iter(vectors.values())).shape[0]
        shape = shared_memory.GridShape(
            BLOCK, 1, -(-n // BLOCK), 0, self.matrices, self.basis, self.kept
        )
        buffers = {w: self.zeros(vectors[w].shape, vectors[w].dtype) for w in plan.double_buffered}
        value = np.dtype(next(iter(vectors.values())).dtype).str[1:]
        made = persistent.persistent_kernel(
            plan, iteration.status, value, shape, buffers, warp=WARP
        )
        return Program(self, library(emulated(made)), made, (phases, buffers))


class Program:
    def __init__(self, executor: OneKernel, built: Library, made: Any, alive: Any) -> None:
        self.executor, self.library, self.made, self.alive = executor, built, made, alive
        self.number, self.counts = ctypes.c_uint32(0), shared_memory.counts_barriers(alive[0])

    def run(self, limit: int) -> None:
        given = [_c_value(v) for v in self.made.kernel.values]
        number = ctypes.cast(ctypes.byref(self.number), ctypes.c_void_p)
        given += [ctypes.c_void_p(0), number if self.counts else self.number]
        given += [ctypes.c_longlong(limit)]
        schedule = self.executor.launches % 4
        self.library.run(self.made.kernel.symbol, 1, *given, schedule=schedule)
        self.executor.launches += 1


def _c_value(value: Any) -> Any:
    if isinstance(value, (np.floating, float)):
        single = isinstance(value, np.float32)
        return (ctypes.c_float if single else ctypes.c_double)(value)
    return ctypes.c_longlong(int(value))


#: Dtypes that a solver is tested in besides the one of all other tests.
IN_OTHER_DTYPES = [("Cg", "complex128"), ("Bicgstab", "complex64"), ("Cgs", "float32")]

SOLVERS = {"Cg": {}, "Bicgstab": {}, "Cgs": {}, "Gmres": {"restart": 7}}

#: Forming, matrices in shared memory, vectors of the basis there, other vectors there.
WAYS = {
    "formed": (True, True, 3, 0),
    "formed, where they are": (True, False, 0, 2),
    "stored": (False, True, 8, 3),
    "stored, where they are": (False, False, 5, 0),
}


def system(n: int, dtype: str, rng: np.random.Generator) -> sp.csr_matrix:
    line = sp.diags([-1.0, 2.6, -1.0], [-1, 0, 1], shape=(n, n)).tocsr()
    if n > 9:
        far = sp.diags([0.2 * np.ones(n - 9)] * 2, [-9, 9], shape=(n, n))
        line = line + far
    if np.dtype(dtype).kind == "c":
        line = line + 0.1j * sp.triu(line, 1) - 0.1j * sp.tril(line, -1)
    return line.astype(dtype).tocsr()


def solve(
    executor: Any, name: str, S: sp.csr_matrix, b: np.ndarray, jacobi: bool, kernel: str = ""
) -> Any:
    A = wl.Csr(S, executor=executor)
    if kernel:
        plan = A._plan = A.plan_for("spmv", kernel=kernel)
        # Sorted rows would not be with the same work-item in every step: they get no such kernel.
        plan.state = packed.pack_rows(executor, A, plan.state.code, in_order=True)
    single = S.dtype.char in "fF"
    stop = RelativeResidual(1e-4 if single else 1e-10) | Iterations(60)
    M = wl.preconditioners.Jacobi(A) if jacobi else None
    solver = getattr(wl.solvers, name)(A, M, stop=stop, **SOLVERS[name])
    return solver.solve(executor.from_host(b))


def assert_the_same(found: Any, expected: Any, single: bool) -> None:
    assert found.stops == expected.stops
    assert abs(found.iterations - expected.iterations) <= 1
    few = min(len(found.residuals), len(expected.residuals), 10)
    np.testing.assert_allclose(
        found.residuals[:few],
        expected.residuals[:few],
        rtol=1e-2 if single else 1e-7,
        atol=1e-5 if single else 1e-12,
    )


# Each of these is a program of its own, which takes seconds to compile.
@pytest.mark.parametrize(("name", "way"), alternating(SOLVERS, WAYS))
def test_a_solve_is_that_of_the_host(name, way, rng):
    S = system(150, "float64", rng)
    b = rng.standard_normal(150)
    found = solve(OneKernel(*WAYS[way]), name, S, b, jacobi=False)
    expected = solve(wl.executor("reference"), name, S, b, jacobi=False)
    assert_the_same(found, expected, single=False)
    np.testing.assert_allclose(found.x, expected.x, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(
    ("name", "dtype"),
    swept(product(SOLVERS, ["float32", "complex64", "complex128"]), IN_OTHER_DTYPES),
)
def test_a_preconditioned_solve_of_every_dtype_is_that_of_the_host(name, dtype, rng):
    S = system(70, dtype, rng)
    b = rng.standard_normal(70).astype(dtype)
    found = solve(OneKernel(*WAYS["formed"]), name, S, b, jacobi=True)
    expected = solve(wl.executor("reference"), name, S, b, jacobi=True)
    assert_the_same(found, expected, single=dtype in ("float32", "complex64"))


@pytest.mark.parametrize(
    ("name", "kernel"), alternating(["Cgs", "Gmres"], ["sell", "sell-near", "sell-pattern"])
)
def test_packed_matrices_are_read_where_they_are(name, kernel, rng):
    S = system(150, "float64", rng)
    b = rng.standard_normal(150)
    one = OneKernel(*WAYS["formed, where they are"])
    found = solve(one, name, S, b, jacobi=False, kernel=kernel)
    expected = solve(wl.executor("reference"), name, S, b, jacobi=False)
    assert one.launches > 0
    assert_the_same(found, expected, single=False)


@pytest.mark.parametrize(("name", "n"), alternating(SOLVERS, [1, 2, 64, 65]))
def test_systems_of_few_rows_and_of_a_whole_block(name, n, rng):
    S = system(n, "float64", rng)
    b = rng.standard_normal(n)
    found = solve(OneKernel(*WAYS["formed"]), name, S, b, jacobi=False)
    expected = solve(wl.executor("reference"), name, S, b, jacobi=False)
    assert_the_same(found, expected, single=False)


def test_a_vector_that_lost_its_digits_is_made_orthogonal_again(rng):
    # Columns near one another: the remainder of a product is small.
    S = sp.csr_matrix(np.ones((40, 40)) + 1e-3 * np.diag(np.arange(1.0, 41.0)))
    b = rng.standard_normal(40)
    found = solve(OneKernel(*WAYS["formed"]), "Gmres", S, b, jacobi=False)
    expected = solve(wl.executor("reference"), "Gmres", S, b, jacobi=False)
    assert_the_same(found, expected, single=False)
