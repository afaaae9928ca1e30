"""The kernels that solve the systems of a batch directly, run lane by lane."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.backends.gpu.batch_launcher import GpuBlocks
from wollemi.backends.simt import batch_direct
from wollemi.backends.unified.wrappers import SimtKernel
from wollemi.core.batch.factors import layout_of
from wollemi.core.status import Stop

from ..lockstep.build import compiler
from ..lockstep.executor import WIDTHS, LockstepExecutor
from ..needs import swept, tool

pytestmark = tool(compiler() is not None, "no C++ compiler: install g++, or set CXX")

DTYPES = ("float32", "float64", "complex64", "complex128")


def numbers(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Any:
    """Return normal numbers."""
    made = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        made = made + 1j * rng.standard_normal(shape)
    return made.astype(dtype)


def pattern(kind: str, n: int) -> Any:
    """Return where the matrices store entries."""
    apart = np.subtract.outer(np.arange(n), np.arange(n))
    return {
        "dense": np.abs(apart) >= 0,
        "tridiagonal": np.abs(apart) <= 1,
        "band": (apart <= 3) & (apart >= -2),
        "upper": (apart <= 0) & (apart >= -1),
    }[kind]


def batch(a: Any, stored: Any, executor: Any) -> Any:
    """Return dense matrices as a batch of one pattern."""
    indptr = np.concatenate([[0], np.cumsum(stored.sum(axis=1))]).astype(np.int32)
    indices = np.nonzero(stored)[1].astype(np.int32)
    shape = (stored.shape[0],) * 2
    return wl.Csr((a[:, stored], indices, indptr), shape=shape, executor=executor)


def assert_solved(x: Any, a: Any, b: Any, systems: list[int]) -> None:
    """Fail unless solutions of systems are as accurate as their conditions allow."""
    for k in systems:
        matrix = a[k].astype(np.complex128)
        exact, condition = np.linalg.solve(matrix, b[k]), np.linalg.cond(matrix)
        error = np.linalg.norm(x[k] - exact) / np.linalg.norm(exact)
        assert error <= 20 * a.shape[-1] * condition * np.finfo(a.dtype).eps


@pytest.mark.parametrize("warp", WIDTHS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("kind", "n"), [("dense", 7), ("dense", 35), ("band", 30), ("upper", 9)])
def test_factors_of_a_block_solve_each_system_as_the_reference_does(kind, n, dtype, warp, rng):
    count = 4
    stored = pattern(kind, n)
    a = numbers(rng, (count, n, n), dtype) * stored + 2 * np.sqrt(n) * np.eye(n)
    a = a.astype(dtype)
    a[2, 1] = 0  # a singular member
    b = numbers(rng, (count, n), dtype)
    rtol = 1e-3 if np.dtype(dtype).char in "fF" else 1e-9
    found, expected = (
        wl.solvers.Direct(batch(a, stored, on), rtol=rtol)
        for on in (LockstepExecutor(warp), "reference")
    )
    result, told = found.solve(b), expected.solve(b)
    np.testing.assert_array_equal(result.stops, told.stops)
    assert result.converged.tolist() == [True, True, False, True]
    assert_solved(result.x, a, b, [0, 1, 3])
    mine, theirs = found.log_determinant(), expected.log_determinant()
    tolerance = 2e-4 if np.dtype(dtype).char in "fF" else 1e-10
    np.testing.assert_allclose(mine.sign, theirs.sign, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(mine.logarithm, theirs.logarithm, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("n", [40, 70])
def test_matrices_beyond_the_registers_are_factorized_in_memory(n, rng):
    stored = pattern("dense", n)
    dtype = "complex128"  # 40 rows in memory of a block, 70 in the arena
    a, b = numbers(rng, (2, n, n), dtype), numbers(rng, (2, n), dtype)
    result = wl.solvers.Direct(batch(a, stored, LockstepExecutor(32)), rtol=1e-9).solve(b)
    assert result.converged.all()
    np.testing.assert_allclose(result.x, np.linalg.solve(a, b[..., None])[..., 0], rtol=1e-8)


@pytest.mark.parametrize(
    ("warp", "n", "dtype", "rows"),
    [
        (32, 32, "float64", 1),
        (32, 33, "float64", 2),
        (32, 54, "float64", 2),
        (32, 55, "float64", 1),  # beyond the registers of a work-item
        (32, 64, "float32", 2),
        (32, 65, "float32", 1),
        (32, 54, "complex64", 2),
        (32, 30, "complex128", 1),
        (64, 54, "float64", 1),
        (64, 65, "float32", 2),
    ],
)
def test_a_work_item_has_two_rows_where_one_wave_then_has_all(warp, n, dtype, rows):
    indptr, indices = np.arange(n + 1) * n, np.tile(np.arange(n), n)
    layout = layout_of(indptr.astype(np.int64), indices.astype(np.int64))
    assert layout is not None
    target = replace(LockstepExecutor(warp).blocks.target, multiplies_tiles=False)
    once = batch_direct.once_kernel(layout, np.dtype(dtype), target)
    assert once is not None
    assert once.constants == {"N": n, "P": rows}
    assert once.kernel.block == (warp if rows == 2 else -(-n // warp) * warp)


@pytest.mark.parametrize(
    ("warp", "n", "dtype", "tiles"),
    [
        (32, 4, "float64", True),
        (32, 55, "float64", True),
        (32, 56, "float64", False),  # beyond the registers of a wave
        (32, 54, "float32", False),
        (32, 20, "complex128", False),
        (64, 54, "float64", False),
    ],
)
def test_a_wave_has_the_tiles_of_a_matrix_of_double_precision(warp, n, dtype, tiles):
    indptr, indices = np.arange(n + 1) * n, np.tile(np.arange(n), n)
    layout = layout_of(indptr.astype(np.int64), indices.astype(np.int64))
    assert layout is not None
    once = batch_direct.once_kernel(layout, np.dtype(dtype), LockstepExecutor(warp).blocks.target)
    assert once is not None and (once.kernel.name == "batch_tiles") == tiles


@pytest.mark.parametrize("n", swept([3, 8, 15, 22, 33, 48, 54, 55], [3, 22, 55]))
def test_tiles_are_inverted_with_pivots(n, rng):
    stored = pattern("dense", n)
    a, b = numbers(rng, (4, n, n), "float64"), numbers(rng, (4, n), "float64")
    a[:, 0, 0] = 0  # needs another pivot
    a[1, :, n // 2] = 0  # a singular member
    a[2, n - 1, n - 1] = np.nan
    on = LockstepExecutor(32)
    solver = wl.solvers.Direct(batch(a, stored, on), rtol=1e-9)
    result = solver.solve(b)
    assert result.converged.tolist() == [True, False, False, True]
    assert_solved(result.x, a, b, [0, 3])
    alone = wl.solvers.Direct(batch(a[[0, 3]], stored, on), rtol=1e-9).solve(b[[0, 3]])
    np.testing.assert_array_equal(alone.x, result.x[[0, 3]])
    assert (result.iterations[[0, 3]] == 1).all()


@pytest.mark.parametrize(("n", "dtype"), [(64, "float32"), (33, "complex64")])
def test_two_rows_of_a_work_item_are_eliminated_with_pivots(n, dtype, rng):
    stored = pattern("dense", n)
    stored[n - 1, :3] = stored[2, 5] = False
    a, b = numbers(rng, (4, n, n), dtype) * stored, numbers(rng, (4, n), dtype)
    a[1, :, n // 2] = 0  # a singular member
    a[2, n - 1, n - 1] = np.nan
    on = LockstepExecutor(32)
    rtol = 1e-3
    result = wl.solvers.Direct(batch(a, stored, on), rtol=rtol).solve(b)
    good = [0, 3]
    assert result.converged.tolist() == [True, False, False, True]
    assert_solved(result.x, a, b, good)
    alone = wl.solvers.Direct(batch(a[good], stored, on), rtol=rtol).solve(b[good])
    np.testing.assert_array_equal(alone.x, result.x[good])


@pytest.mark.parametrize(
    ("n", "dtype", "warp", "waves", "parts"),
    [
        (35, "float64", 32, 16, 0),
        (35, "float64", 32, 4, 1),
        (46, "float64", 32, 8, 2),
        *swept([(66, "complex64", 64, 16, 0), (33, "complex128", 32, 16, 0)], []),
        *swept([(65, "float64", 32, 12, 2), (66, "float64", 32, 4, 2)], []),
    ],
)
def test_a_block_has_the_inverse_of_a_matrix(n, dtype, warp, waves, parts, rng, monkeypatch):
    monkeypatch.setattr(batch_direct, "ROW_BYTES", 0)
    monkeypatch.setattr(batch_direct, "TILE_WAVES", ((waves, parts),) if parts else ())
    stored, count = pattern("dense", n), 5
    stored[n - 1, :3] = stored[2, 5] = False
    a, b = numbers(rng, (count, n, n), dtype) * stored, numbers(rng, (count, n, 2), dtype)
    a[0, 0, 0] = 0  # needs another pivot
    a[1, :, n // 2] = 0  # a singular member
    a[2, n - 1, n - 1] = np.nan
    a[3] *= 1e9
    good, rtol = [0, 3, 4], 1e-3 if dtype == "complex64" else 1e-10
    on = LockstepExecutor(warp)
    solver = wl.solvers.Direct(batch(a, stored, on), rtol=rtol)
    launched = []
    monkeypatch.setattr(batch_direct, "_launch", counted_launch(launched))
    result = solver.solve(b)
    assert launched == [("batch_grid", parts)]
    assert np.flatnonzero(result.converged).tolist() == good
    assert_solved(result.x, a, b, good)
    alone = wl.solvers.Direct(batch(a[good], stored, on), rtol=rtol).solve(b[good])
    np.testing.assert_array_equal(alone.x, result.x[good])
    mine, theirs = (
        wl.solvers.Direct(batch(a[good], stored, of)).log_determinant() for of in (on, "reference")
    )
    tolerance = 2e-4 if dtype == "complex64" else 1e-10
    np.testing.assert_allclose(mine.sign, theirs.sign, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(mine.logarithm, theirs.logarithm, rtol=tolerance, atol=tolerance)


def counted_launch(launched: list[tuple[str, int]]) -> Any:
    """Return the launch of factors, which tells the names of its kernels and the parts of tiles."""
    launch = batch_direct._launch

    def counted(executor, ready, *given):
        chosen = ready.chosen
        launched.append((chosen.kernel.name, chosen.constants["PARTS"]))
        launch(executor, ready, *given)

    return counted


@pytest.mark.parametrize(
    ("n", "dtype", "waves", "parts"),
    [
        (80, "float64", 4, 2),
        (96, "float64", 8, 2),
        (112, "float64", 4, 2),
        (144, "float64", 12, 2),
        (160, "float64", 8, 2),
        (168, "float64", None, None),  # beyond the memory of a block
        (200, "float32", 12, 0),
        (64, "complex128", 8, 0),
        (100, "complex128", None, None),  # beyond the registers of a block
    ],
)
def test_a_block_has_an_inverse_that_fits_its_registers(n, dtype, waves, parts):
    indptr, indices = np.arange(n + 1) * n, np.tile(np.arange(n), n)
    layout = layout_of(indptr.astype(np.int64), indices.astype(np.int64))
    assert layout is not None
    target = replace(LockstepExecutor(32).blocks.target, given=227 << 10)
    chosen = batch_direct.chosen_kernel(layout, np.dtype(dtype), n * n, target)
    assert (chosen.kernel.name == "batch_grid") == (waves is not None)
    if waves is not None:
        assert chosen.kernel.block == 32 * waves and chosen.constants["OWN"] == 1
        assert chosen.constants["PARTS"] == parts
        assert chosen.shared <= target.given
    without = batch_direct.chosen_kernel(layout, np.dtype(dtype), n * n, replace(target, given=0))
    assert without.kernel.name == "batch_band"


def test_columns_starts_and_masks_share_the_factors_of_a_matrix(rng):
    n, count = 6, 5
    stored = pattern("tridiagonal", n)
    a = numbers(rng, (count, n, n), "float64") * stored + 4 * np.eye(n)
    b, x0 = numbers(rng, (count, n, 3), "float64"), numbers(rng, (count, n, 3), "float64")
    mask = np.array([True, False, True, True, False])
    solver = wl.solvers.Direct(batch(a, stored, LockstepExecutor(32)), rtol=1e-10)
    result = solver.solve(b, x0, mask=mask)
    np.testing.assert_allclose(result.x[mask], np.linalg.solve(a[mask], b[mask]), rtol=1e-9)
    np.testing.assert_array_equal(result.x[~mask], x0[~mask])
    assert (result.stops[~mask] == Stop.SKIPPED).all()


def test_duplicate_entries_are_added_up():
    data = np.array([[1.0, 3.0, 1.0, 1.0, 3.0], [2.0, 2.0, 0.0, 0.0, 5.0]])
    A = wl.Csr((data, [0, 0, 1, 0, 1], [0, 3, 5]), shape=(2, 2), executor=LockstepExecutor(32))
    result = wl.solvers.Direct(A, rtol=1e-12).solve(np.array([[5.0, 4.0], [4.0, 5.0]]))
    assert result.converged.all()
    np.testing.assert_allclose(result.x, [[1.0, 1.0], [1.0, 1.0]], rtol=1e-12)


def test_bad_members_leave_the_bits_of_the_others(rng):
    n, count = 5, 6
    stored = pattern("dense", n)
    a, b = numbers(rng, (count, n, n), "float64"), numbers(rng, (count, n), "float64")
    a[1], a[3, 2, 2], b[4, 0] = 0, np.nan, np.inf
    good = [0, 2, 5]
    whole = wl.solvers.Direct(batch(a, stored, LockstepExecutor(32))).solve(b)
    clean = wl.solvers.Direct(batch(a[good], stored, LockstepExecutor(32))).solve(b[good])
    np.testing.assert_array_equal(whole.x[good], clean.x)
    assert whole.converged.tolist() == [True, False, True, False, False, True]


@pytest.mark.parametrize("warp", WIDTHS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [2, 13, 50])
def test_lanes_that_share_a_tridiagonal_system_solve_it_or_leave_it_to_pivots(n, dtype, warp, rng):
    count = 11
    stored = pattern("tridiagonal", n)
    if n > 3:
        stored[3, 2] = False  # an entry that is not stored
    a = numbers(rng, (count, n, n), dtype) * stored + 4 * np.eye(n, dtype=dtype)
    a[1, 0, 0] = 0  # needs an exchange of rows
    a[4, n - 1] = 0  # singular
    a[7, 0, 1] = np.nan
    b = numbers(rng, (count, n), dtype)
    b[9] = 0
    rtol = 1e-4 if np.dtype(dtype).char in "fF" else 1e-11
    result = wl.solvers.Direct(batch(a, stored, LockstepExecutor(warp)), rtol=rtol).solve(b)
    good = np.setdiff1d(np.arange(count), [4, 7])
    assert result.converged.tolist() == [k not in (4, 7) for k in range(count)]
    residual = b[good] - np.einsum("kij,kj->ki", a[good], result.x[good])
    norms = np.linalg.norm(residual, axis=1)
    assert (norms <= rtol * np.linalg.norm(b[good], axis=1)).all()
    rounding = 20 * np.finfo(dtype).eps * np.linalg.norm(b[good], axis=1).max()
    np.testing.assert_allclose(norms, result.residual_norm[good], rtol=0.1, atol=rounding)
    alone = wl.solvers.Direct(batch(a[good], stored, LockstepExecutor(warp)), rtol=rtol)
    np.testing.assert_array_equal(alone.solve(b[good]).x, result.x[good])


@pytest.mark.parametrize("warp", WIDTHS)
@pytest.mark.parametrize("dtype", ["float64", "complex64"])
def test_a_tridiagonal_system_with_a_small_pivot_is_refined_by_its_lanes(dtype, warp, rng):
    n, count, weak = 20, 9, 4
    stored = pattern("tridiagonal", n)
    a = numbers(rng, (count, n, n), dtype) * stored + 4 * np.eye(n, dtype=dtype)
    a[weak, 0, 0] = np.finfo(dtype).eps ** 0.4  # the factor that eliminates row 1 is large
    b = numbers(rng, (count, n), dtype)
    on = LockstepExecutor(warp)
    solver = wl.solvers.Direct(batch(a, stored, on), rtol=1e-3)
    result = solver.solve(b)
    assert result.converged.all()
    assert np.flatnonzero(result.iterations != 1).tolist() == [weak]
    assert result.iterations[weak] == 2
    others = np.setdiff1d(np.arange(count), [weak])
    alone = wl.solvers.Direct(batch(a[others], stored, on), rtol=1e-3).solve(b[others])
    np.testing.assert_array_equal(alone.x, result.x[others])
    residual = np.linalg.norm(b - np.einsum("kij,kj->ki", a, result.x), axis=1)
    assert (residual <= 100 * np.finfo(dtype).eps * np.linalg.norm(b, axis=1)).all()


def test_systems_that_lanes_leave_alone_are_factorized_without_the_others(rng, monkeypatch):
    n, count = 20, 50
    stored = pattern("tridiagonal", n)
    a = numbers(rng, (count, n, n), "float64") * stored + 4 * np.eye(n)
    exchanged = [3, 17]
    a[exchanged, 0, 0] = 0
    sizes = []
    launch = batch_direct._launch

    def counted(executor, ready, values, index, given):
        sizes.append(values.shape[0])
        launch(executor, ready, values, index, given)

    monkeypatch.setattr(batch_direct, "_launch", counted)
    b = numbers(rng, (count, n, 2), "float64")
    result = wl.solvers.Direct(batch(a, stored, LockstepExecutor(32)), rtol=1e-10).solve(b)
    assert result.converged.all() and sizes == [len(exchanged)]
    np.testing.assert_allclose(result.x, np.linalg.solve(a, b), rtol=1e-8)


def test_entries_of_a_layout_have_rows_and_columns():
    for kind, n in (("tridiagonal", 9), ("band", 12), ("dense", 5), ("upper", 7)):
        rows, columns = np.nonzero(pattern(kind, n))
        indptr = np.searchsorted(rows, np.arange(n + 1))
        found = layout_of(indptr, columns.astype(np.int64))
        assert found is not None
        np.testing.assert_array_equal(found.order[found.rows_and_columns[0]], rows)
        np.testing.assert_array_equal(found.order[found.rows_and_columns[1]], columns)


@pytest.mark.parametrize("count", [0, 1])
@pytest.mark.parametrize("kind", ["dense", "tridiagonal"])
def test_batches_of_one_and_of_none_are_solved(kind, count, rng):
    n = 7
    stored = pattern(kind, n)
    a = numbers(rng, (count, n, n), "float64") * stored + 4 * np.eye(n)
    A = batch(a, stored, LockstepExecutor(32))
    assert A.batch_shape == (count,)
    result = wl.solvers.Direct(A, rtol=1e-10).solve(np.ones((count, n)))
    assert result.converged.shape == (count,) and result.converged.all()
    assert result.reason.shape == (count,)


def test_ill_conditioned_systems_are_left_to_factors_with_refinement(rng):
    n, count = 20, 4
    a = numbers(rng, (count, n, n), "float64")
    for k, power in enumerate((0, 8, 11, 0)):  # rows of very different sizes
        a[k] *= 10.0 ** (-power * np.arange(n)[:, None] / n)
    b = a.sum(axis=2)
    stored, rtol = pattern("dense", n), 1e-13
    result = wl.solvers.Direct(batch(a, stored, LockstepExecutor(32)), rtol=rtol).solve(b)
    assert result.converged.all()
    residual = np.linalg.norm(b - np.einsum("kij,kj->ki", a, result.x), axis=1)
    np.testing.assert_allclose(result.residual_norm, residual, rtol=0.5, atol=1e-13)


@pytest.mark.parametrize(("kind", "n"), [("dense", 6), ("tridiagonal", 9), ("band", 12)])
def test_a_side_of_which_the_squares_are_lost_is_not_taken_for_zero(kind, n, rng):
    stored = pattern(kind, n)
    a = (numbers(rng, (3, n, n), "float64") * stored + 4 * np.eye(n)) * 1e150
    b = numbers(rng, (3, n), "float64") * np.array([1e-170, 1.0, 0.0])[:, None]
    result = wl.solvers.Direct(batch(a, stored, LockstepExecutor(32)), rtol=1e-9).solve(b)
    # the first solution is below the range of normal numbers: it has three digits
    assert result.converged.tolist() == [False, True, True]
    assert not result.x[2].any() and result.residual_norm[2] == 0


class FarBlocks(GpuBlocks):
    """Launches as if the matrices were behind 2^32 others, with addresses to match."""

    FIRST, launches = 1 << 32, 0

    def launch_template(
        self, kernel: SimtKernel, blocks: int, arguments: Sequence[Any], *given: Any
    ) -> None:
        moved = list(arguments)
        count, entries, values = moved[0], moved[4], moved[5]
        assert moved[3] is None and values.shape == (count, entries)
        moved[3] = self.executor.from_host(self.FIRST + np.arange(count))
        moved[5] = values.data.ptr - self.FIRST * entries * values.itemsize
        FarBlocks.launches += 1
        super().launch_template(kernel, blocks, moved, *given)


class Far(LockstepExecutor):
    @property
    def blocks(self) -> FarBlocks:  # type: ignore[override]
        return FarBlocks(self)


@pytest.mark.parametrize(("kind", "n"), [("dense", 7), ("dense", 35), ("tridiagonal", 20)])
def test_addresses_of_matrices_have_64_bits(kind, n, rng, monkeypatch):
    monkeypatch.setattr(FarBlocks, "launches", 0)
    stored = pattern(kind, n)
    a = numbers(rng, (3, n, n), "float64") * stored + 2 * np.sqrt(n) * np.eye(n)
    b = numbers(rng, (3, n), "float64")
    far, near = (
        wl.solvers.Direct(batch(a, stored, on), rtol=1e-10).solve(b)
        for on in (Far(32), LockstepExecutor(32))
    )
    assert FarBlocks.launches == 1 and far.converged.all()
    np.testing.assert_array_equal(far.x, near.x)
