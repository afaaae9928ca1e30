"""The kernel that solves a system of a batch in each block, run lane by lane."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.backends.gpu.batch_launcher import GpuBlocks, GpuTarget
from wollemi.backends.simt import batch_shape
from wollemi.backends.simt.batch_shape import Needs, parts_of_lane, shape_for
from wollemi.core.status import Stop

from ..cuda.loop.test_one_kernel_waves import emulated
from ..lockstep.build import Library, compiler
from ..lockstep.executor import LockstepDevice, LockstepExecutor
from ..needs import tool

pytestmark = tool(compiler() is not None, "no C++ compiler: install g++, or set CXX")

MOST_SHARED = 1 << 15


@cache
def library(source: str) -> Library:
    kernel = SimpleNamespace(source=source.replace("#define WL_HIP 1", "#define WL_CUDA 1"))
    return Library(emulated(SimpleNamespace(kernel=kernel, shared=MOST_SHARED)), "systems")


class Device(LockstepDevice):
    """A device that compiles the kernel of a batch."""

    def __init__(self, shared_bytes: int, warp: int) -> None:
        super().__init__(warp, captures=False)
        self.dialect = "CUDA" if warp == 32 else "HIP"
        self.shared_bytes = self.launch_bytes = shared_bytes

    def resident(self, blocks: int) -> dict[str, object]:
        return {"WL_BLOCKS_EACH": blocks}

    def function(self, symbol: str, source: Callable[[], str]) -> Any:
        return self._launcher(library(source()), symbol)

    def allow_shared(self, function: Any, nbytes: int) -> None:
        assert nbytes <= MOST_SHARED


class OneBlock(LockstepExecutor):
    """Solves the systems of a batch by one kernel."""

    def __init__(self, shared_bytes: int, warp: int = 32) -> None:
        super().__init__(warp)
        self._device = Device(shared_bytes, warp)
        self.solved = 0

    def system_places(self) -> list[Any]:
        return [self]

    def solve_systems(self, members: Sequence[Any], given: Any) -> bool:
        found = super().solve_systems(members, given)
        self.solved += found
        return found


def batch(n: int, count: int, dtype: str, rng: np.random.Generator, *, hermitian: bool) -> Any:
    """Return stencils with random diagonals, as one pattern with values of each."""
    line = sp.diags([-1.0, 2.0, -1.0 if hermitian else -0.4], [-1, 0, 1], shape=(n, n))
    S = sp.csr_array(line)
    if n > 9:
        S = sp.csr_array(S + sp.diags([0.2 * np.ones(n - 9)] * 2, [-9, 9], shape=(n, n)))
    S.sort_indices()
    data = np.tile(S.data, (count, 1)).astype(dtype)
    rows = np.repeat(np.arange(n), np.diff(S.indptr))
    data[:, rows == S.indices] += rng.uniform(0.1, 2.0, (count, n))
    if np.dtype(dtype).kind == "c":
        above, below = rows < S.indices, rows > S.indices
        data[:, above] *= 1 + 0.1j
        data[:, below] *= 1 - 0.1j
    return data, S.indices, S.indptr


GPU = GpuTarget(32, 227 << 10)

SOLVERS = [
    ("Cg", {}, "float64", True),
    ("Cg", {"M": "jacobi"}, "complex64", True),
    ("Bicgstab", {"M": "jacobi"}, "float64", False),
    ("Bicgstab", {}, "complex128", False),
    ("Cgs", {"M": "jacobi"}, "float32", False),
    ("Minres", {}, "float64", True),
    ("Tfqmr", {}, "float64", False),
    ("Fcg", {"M": "jacobi"}, "float64", True),
    ("Idr", {}, "float64", False),
    ("Gmres", {"restart": 7}, "float64", False),
    ("Gmres", {"M": "jacobi", "side": "left"}, "complex64", False),
    ("Gmres", {"M": "jacobi", "basis": "float16"}, "float32", False),
    ("Fgmres", {"M": "jacobi"}, "complex128", False),
    ("Bicgstab", {"M": "isai"}, "float64", False),
    ("Gmres", {"M": "blockjacobi:size=4"}, "complex64", False),
]


@pytest.mark.parametrize("shared", [0, MOST_SHARED])
@pytest.mark.parametrize(("name", "options", "dtype", "hermitian"), SOLVERS)
def test_every_system_is_solved_as_it_is_alone(name, options, dtype, hermitian, shared, rng):
    _compare_with_one(name, options, dtype, hermitian, OneBlock(shared), rng)


@pytest.mark.parametrize(
    ("name", "options", "dtype", "hermitian"),
    [SOLVERS[2], *(pytest.param(*s, marks=pytest.mark.rare) for s in (SOLVERS[1], SOLVERS[4]))],
)
def test_waves_of_64_lanes_solve_every_system_too(name, options, dtype, hermitian, rng):
    _compare_with_one(name, options, dtype, hermitian, OneBlock(MOST_SHARED, 64), rng)


@pytest.mark.parametrize("name", ["Bicgstab", "Minres"])
def test_work_items_of_several_waves_have_four_rows_each(name, rng):
    _compare_with_one(name, {}, "float64", name == "Minres", OneBlock(MOST_SHARED), rng, n=150)


def _compare_with_one(name, options, dtype, hermitian, on, rng, n=37):
    count = 5
    data, indices, indptr = batch(n, count, dtype, rng, hermitian=hermitian)
    b = rng.standard_normal((count, n)).astype(dtype)
    tolerance = 1e-4 if np.dtype(dtype).char in "fF" else 1e-10
    A = wl.Csr((data, indices, indptr), shape=(n, n), executor=on)
    solver = getattr(wl.solvers, name)(A, rtol=tolerance, **options)
    result = solver.solve(b)
    assert on.solved == 1 and result.notes == [f"systems solved side by side: {count}"]
    assert result.converged.all()
    for k in range(count):
        S = sp.csr_array((data[k], indices, indptr), shape=(n, n))
        alone = getattr(wl.solvers, name)(
            wl.Csr(S, executor="reference"), rtol=tolerance, **options
        ).solve(b[k])
        assert abs(int(result.iterations[k]) - alone.iterations) <= 1 + 0.1 * alone.iterations
        residual = np.linalg.norm(b[k] - S @ result.x[k])
        assert residual <= 1.5 * tolerance * np.linalg.norm(b[k])


@pytest.mark.parametrize(
    ("kind", "M"),
    [(wl.solvers.Cg, "jacobi"), (wl.solvers.Gmres, "jacobi"), (wl.solvers.Bicgstab, "isai")],
)
def test_members_that_fail_leave_the_bits_of_the_others(kind, M, rng):
    n, count = 20, 6
    data, indices, indptr = batch(n, count, "float64", rng, hermitian=True)
    b = rng.standard_normal((count, n))
    on = OneBlock(MOST_SHARED)
    good = kind(wl.Csr((data, indices, indptr), shape=(n, n), executor=on), M=M)
    expected = good.solve(b)
    data[1, 3] = np.nan
    data[2] = 0
    b[4] = 0
    mixed = kind(wl.Csr((data, indices, indptr), shape=(n, n), executor=on), M=M)
    found = mixed.solve(b)
    assert found.notes == ["systems solved side by side: 4"]
    for k in (0, 3, 5):
        assert (found.x[k] == expected.x[k]).all()
    assert not found.converged[1] and not found.converged[2]
    assert found.converged[4] and not found.x[4].any()


def test_systems_that_run_out_of_iterations_say_so(rng):
    data, indices, indptr = batch(30, 3, "float64", rng, hermitian=True)
    A = wl.Csr((data, indices, indptr), shape=(30, 30), executor=OneBlock(MOST_SHARED))
    result = wl.solvers.Cg(A, rtol=1e-12, maxiter=3).solve(np.ones((3, 30)))
    assert (result.iterations == 3).all()
    assert {Stop(code) for code in result.stops.tolist()} == {Stop.MAX_ITERATIONS}


def test_solvers_whose_programs_do_not_fit_a_block_are_solved_one_by_one(rng):
    data, indices, indptr = batch(12, 2, "float64", rng, hermitian=True)
    on = OneBlock(MOST_SHARED)
    A = wl.Csr((data, indices, indptr), shape=(12, 12), executor=on)
    result = wl.solvers.Lgmres(A, rtol=1e-10).solve(np.ones((2, 12)))
    assert result.converged.all() and on.solved == 0


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("n", [1, 2, 70])
def test_gmres_in_a_block_takes_the_iterations_of_the_reference(n, side, rng):
    data, indices, indptr = batch(n, 3, "float64", rng, hermitian=False)
    b = rng.standard_normal((3, n))
    found = []
    for on in (OneBlock(MOST_SHARED), "reference"):
        A = wl.Csr((data, indices, indptr), shape=(n, n), executor=on)
        solver = wl.solvers.Gmres(A, M="jacobi", side=side, restart=4, rtol=1e-8)
        found.append(solver.solve(b))
    assert found[0].notes == ["systems solved side by side: 3"] and found[0].converged.all()
    np.testing.assert_array_equal(found[0].iterations, found[1].iterations)
    np.testing.assert_allclose(found[0].x, found[1].x, rtol=0, atol=1e-9)


@pytest.mark.parametrize(("basis", "shared"), [(20_000, True), (250_000, False)])
def test_a_small_basis_is_in_shared_memory(basis, shared):
    shape = shape_for(Needs(54, 5000, 20_000, 46.0, 54, basis=basis), GPU)
    assert shape.vectors_shared and shape.basis_shared == shared


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("name", ["Bicgstab", "Idr"])
def test_rows_of_dense_systems_are_in_registers(name, dtype, rng):
    n, count = 19, 4
    inside = (rng.random((n, n)) < 0.7) | np.eye(n, dtype=bool)
    a = rng.standard_normal((count, n, n)) + 1j * rng.standard_normal((count, n, n))
    a = (a if np.dtype(dtype).kind == "c" else a.real) * inside + 3 * n * np.eye(n)
    indptr = np.concatenate([[0], np.cumsum(inside.sum(axis=1))]).astype(np.int32)
    data, indices = a[:, inside].astype(dtype), np.nonzero(inside)[1].astype(np.int32)
    on = OneBlock(MOST_SHARED)
    A = wl.Csr((data, indices, indptr), shape=(n, n), executor=on)
    b = rng.standard_normal((count, n)).astype(dtype)
    tolerance = 1e-4 if np.dtype(dtype).char in "fF" else 1e-10
    result = getattr(wl.solvers, name)(A, M="jacobi", rtol=tolerance).solve(b)
    assert on.solved == 1 and result.converged.all()
    exact = np.linalg.solve(a, b[..., None])[..., 0]
    np.testing.assert_allclose(result.x, exact, rtol=0, atol=3 * tolerance * abs(exact).max())


@pytest.mark.parametrize(
    ("rows", "row_length", "longest", "block", "held", "own", "dense"),
    [
        (1, 1.0, 1, 32, 1, 1, False),
        (54, 46.0, 54, 32, 54, 2, True),
        (64, 60.0, 64, 32, 64, 2, True),
        (992, 8.6, 9, 256, 9, 4, False),
        (992, 8.6, 40, 512, 0, 1, False),  # one row is too long
        (1500, 5.0, 5, 512, 0, 1, False),
        (64, 3.0, 3, 32, 3, 2, False),
        (144, 42.0, 60, 160, 0, 1, False),
    ],
)
def test_the_shape_follows_rows_and_their_length(
    rows, row_length, longest, block, held, own, dense
):
    needs = Needs(rows, 80 * rows, int(8 * rows * row_length), row_length, longest, own=56)
    shape = shape_for(needs, GPU)
    assert (shape.block, shape.held, shape.rows, shape.dense) == (block, held, own, dense)
    assert shape.vectors_shared and shape.lanes == 1
    assert shape.tiled == (dense and block == 32)
    assert not shape.tiled or 0 < shape.kept < parts_of_lane(rows)[1]
    single = shape_for(replace(needs, single=True), GPU)
    assert single.rows == 1 and not single.tiled


def test_a_wave_has_a_dense_matrix_where_a_multiprocessor_has_eight_of_them():
    found = {
        rows: shape_for(Needs(rows, 40 * rows, 4 * rows**2, rows, rows, 4, own=24), GPU)
        for rows in (64, 128)
    }
    assert found[64].tiled and found[64].resident >= 8
    assert not found[128].tiled and found[128].block == 128


# The last has 512 + 17 entries: in the second round of loads some lanes of the wave have none.
@pytest.mark.parametrize(("n", "kept", "density"), [(19, 1, 0.9), (19, 5, 0.9), (23, 6, 1.0)])
def test_columns_of_a_dense_matrix_are_in_registers_or_in_memory(
    n, kept, density, rng, monkeypatch
):
    usual = batch_shape._with_tile
    monkeypatch.setattr(batch_shape, "LEAST_TILES", 1)
    monkeypatch.setattr(
        batch_shape, "_with_tile", lambda *given: replace(usual(*given), kept=kept, resident=2)
    )
    count = 3
    a = rng.standard_normal((count, n, n)) + 2 * n * np.eye(n)
    stored = rng.random((n, n)) < density
    stored |= np.eye(n, dtype=bool)
    a, b = a * stored, rng.standard_normal((count, n))
    indptr = np.concatenate([[0], np.cumsum(stored.sum(axis=1))])
    on = OneBlock(MOST_SHARED)
    A = wl.Csr((a[:, stored], np.nonzero(stored)[1], indptr), shape=(n, n), executor=on)
    result = wl.solvers.Bicgstab(A, M="jacobi", rtol=1e-12).solve(b)
    assert on.solved == 1 and result.converged.all()
    np.testing.assert_allclose(result.x, np.linalg.solve(a, b[..., None])[..., 0], rtol=1e-9)


def test_lanes_share_long_rows_of_few_that_have_an_entry_twice():
    needs = Needs(22, 10 * 8 * 22, 8 * 440, 20.0, 22, repeats=True)
    shape = shape_for(needs, GPU)
    assert (shape.block, shape.lanes, shape.held) == (64, 2, 0)


def test_vectors_that_do_not_fit_are_in_other_memory():
    needs = Needs(50_000, 4_000_000, 0, 5.0, 5)
    assert not shape_for(needs, GPU).vectors_shared


def test_columns_masks_starts_and_tolerances_are_those_of_each_system(rng):
    n, count = 12, 4
    data, indices, indptr = batch(n, count, "float64", rng, hermitian=True)
    b, x0 = rng.standard_normal((count, n, 2)), rng.standard_normal((count, n, 2))
    rtol = np.array([1e-10, 1e-2, 1e-10, 1e-10])
    mask = np.array([True, True, False, True])
    results = []
    for on in (OneBlock(MOST_SHARED), "reference"):
        A = wl.Csr((data, indices, indptr), shape=(n, n), executor=on)
        solver = wl.solvers.Cg(A, M="jacobi", rtol=rtol)
        plain, some = solver.solve(np.asfortranarray(b)), solver.solve(b, x0, mask=mask)
        assert plain.converged.all() and (some.converged == mask).all()
        np.testing.assert_array_equal(some.x[2], x0[2])
        assert plain.iterations[1] < plain.iterations[0]
        shared = solver.solve(np.broadcast_to(b[0, :, 0], (count, n)))
        results.append((plain.x, some.x, shared.x, plain.threshold))
    for mine, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=0.1)
        np.testing.assert_allclose(mine[0], theirs[0], rtol=0, atol=1e-7)


class Far(OneBlock):
    """Launches as if the systems were behind 2^32 others, with addresses to match."""

    entries = rows = 0

    @property
    def blocks(self) -> FarBlocks:  # type: ignore[override]
        return FarBlocks(self)


class FarBlocks(GpuBlocks):
    FIRST = 1 << 32
    executor: Far

    def launch(
        self, function: Any, blocks: int, block: int, arguments: Sequence[Any], shared: int
    ) -> None:
        given = list(arguments)
        begin = len(given) - 20
        entries, rows = self.executor.entries, self.executor.rows
        moved = {1: entries, 4: rows, 5: rows, 14: 1 / 8, 15: 1, 16: 1, 17: 1}
        assert given[begin] == 0
        given[begin] = self.FIRST
        for place, elements in moved.items():
            given[begin + place] -= int(self.FIRST * elements * 8)
        super().launch(function, blocks, block, given, shared)


def test_addresses_of_systems_have_64_bits(rng):
    n, count = 10, 3
    data, indices, indptr = batch(n, count, "float64", rng, hermitian=True)
    on = Far(MOST_SHARED)
    on.entries, on.rows = data.shape[1], n
    b = rng.standard_normal((count, n))
    result = wl.solvers.Cg(
        wl.Csr((data, indices, indptr), shape=(n, n), executor=on), M="jacobi", rtol=1e-10
    ).solve(b)
    assert on.solved == 1 and result.notes == [f"systems solved side by side: {count}"]
    near = wl.solvers.Cg(
        wl.Csr((data, indices, indptr), shape=(n, n), executor=OneBlock(MOST_SHARED)),
        M="jacobi",
        rtol=1e-10,
    )
    np.testing.assert_array_equal(result.x, near.solve(b).x)


def test_a_second_solve_copies_one_number_to_the_host_and_nothing_to_the_device(rng, monkeypatch):
    n, count = 10, 3
    data, indices, indptr = batch(n, count, "float64", rng, hermitian=True)
    on = OneBlock(MOST_SHARED)
    b = on.from_host(rng.standard_normal((count, n)))
    A = wl.Csr((data, indices, indptr), shape=(n, n), executor=on)
    for solver in (wl.solvers.Cg(A, M="jacobi"), wl.solvers.Direct(A)):
        solver.solve(b)
        copied: list[int] = []
        transfer = OneBlock.transfer

        def counted(self: Any, *arrays: Any, kept: Any = transfer) -> Any:
            copied.extend(array.size for array in arrays)  # noqa: B023
            return kept(self, *arrays)

        def refused(self: Any, array: Any) -> Any:
            raise AssertionError(f"copied {array.size} numbers to the device")

        with monkeypatch.context() as patch:
            patch.setattr(OneBlock, "transfer", counted)
            patch.setattr(OneBlock, "from_host", refused)
            result = solver.solve(b)
            assert copied == [1]
            assert result.converged.all() and copied == [1, count]
