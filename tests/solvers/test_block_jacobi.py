"""Inverses of blocks on the diagonal: the positions of the blocks, and their effect."""

import pickle
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.preconditioners import BlockJacobi

from .conftest import DTYPES, block, convection, poisson, tolerance


def coupled(rng: np.random.Generator, sizes: list[int], dtype: str = "float64") -> sp.csr_array:
    """Return a matrix of nodes with this many unknowns each, coupled to the next node."""
    starts = np.concatenate([[0], np.cumsum(sizes)])
    dense = np.zeros((starts[-1], starts[-1]), dtype)
    for node in range(len(sizes)):
        rows = slice(starts[node], starts[node + 1])
        for other in (node, (node + 1) % len(sizes)):
            columns = slice(starts[other], starts[other + 1])
            dense[rows, columns] = block(rng, dense[rows, columns].shape, dtype)
    return sp.csr_array(dense + 8 * np.eye(len(dense)))


def of_blocks(S: sp.csr_array, starts: list[int]) -> np.ndarray:
    """Return the inverse of the block diagonal as a dense array."""
    dense, made = S.toarray(), np.zeros(S.shape, S.dtype)
    for begin, end in pairwise(starts):
        made[begin:end, begin:end] = np.linalg.inv(dense[begin:end, begin:end])
    return made


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sizes", [[3, 3, 3, 3], [2, 1, 4, 3], [1, 1, 1]], ids=str)
def test_blocks_are_found_in_the_pattern(on, rng, dtype, sizes):
    S = coupled(rng, sizes, dtype)
    M = BlockJacobi(wl.Csr(S, executor=on))
    x = block(rng, (sum(sizes), 2), dtype)
    expected = of_blocks(S, [0, *np.cumsum(sizes).tolist()])
    np.testing.assert_allclose(M @ x, expected @ x, rtol=1e3 * np.finfo(dtype).eps, atol=1e-6)
    assert f"{len(sizes)} blocks of {min(sizes)} to {max(sizes)} rows" in M.notes[0]


@pytest.mark.parametrize(
    ("sizes", "size", "starts"),
    [
        ([1] * 7, 3, [0, 3, 6, 7]),
        ([2, 2, 1, 3], 4, [0, 4, 8]),
        ([2, 2, 1, 3], 3, [0, 2, 5, 8]),
        ([5, 1], 2, [0, 2, 4, 6]),
        ([3, 3], 32, [0, 6]),
        ([2, 1], 1, [0, 1, 2, 3]),
    ],
    ids=str,
)
def test_blocks_are_joined_up_to_a_size(on, rng, sizes, size, starts):
    S = (
        coupled(rng, sizes)
        if len(sizes) > 2
        else coupled(rng, [*sizes, 1])[: sum(sizes), : sum(sizes)]
    )
    M = BlockJacobi(wl.Csr(S, executor=on), size=size)
    x = rng.standard_normal(sum(sizes))
    np.testing.assert_allclose(M @ x, of_blocks(sp.csr_array(S), starts) @ x, rtol=1e-10)


def test_block_matrices_have_their_own_blocks(on, rng):
    S = sp.csr_array(sp.kron(poisson(3), np.array([[2.0, 1.0], [1.0, 2.0]])) + sp.eye_array(18))
    A = wl.Csr(S, executor=on).asformat("bsr", blocksize=(2, 2))
    x = rng.standard_normal(18)
    np.testing.assert_allclose(
        BlockJacobi(A) @ x, of_blocks(S, list(range(0, 19, 2))) @ x, rtol=1e-12
    )


def test_cg_needs_fewer_iterations_the_larger_the_blocks(on, rng):
    A, b = wl.Csr(poisson(16), executor=on), rng.standard_normal((256, 2))
    counts = [
        wl.solvers.Cg(A, M=BlockJacobi(size=size), rtol=1e-10).solve(b).iterations
        for size in (1, 8, 32)
    ]
    assert counts[0] > counts[1] > counts[2]
    assert counts[0] == wl.solvers.Cg(A, M="jacobi", rtol=1e-10).solve(b).iterations


@pytest.mark.parametrize("solver", ["Bicgstab", "Cgs", "Gmres"])
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_other_solvers_take_it(on, rng, solver, dtype):
    A = wl.Csr(convection(8, dtype), executor=on)
    make = getattr(wl.solvers, solver)
    b = block(rng, (64,), dtype)
    assert make(A, "blockjacobi:size=4", rtol=tolerance(dtype)).solve(b).converged


def test_transposes_are_those_of_the_blocks(on, rng):
    S = coupled(rng, [3, 3, 3], "complex128")
    M = BlockJacobi(wl.Csr(S, executor=on))
    dense, x = of_blocks(S, [0, 3, 6, 9]), block(rng, (9,), "complex128")
    np.testing.assert_allclose(M.T @ x, dense.T @ x, rtol=1e-12)
    np.testing.assert_allclose(M.H @ x, dense.conj().T @ x, rtol=1e-12)


def test_it_moves_pickles_and_follows_new_values(on, rng):
    S = coupled(rng, [2, 3, 1])
    A = wl.Csr(S, executor=on)
    M = BlockJacobi(A)
    x = rng.standard_normal(6)
    np.testing.assert_allclose(M.to("reference") @ x, M @ x, rtol=1e-12)
    np.testing.assert_allclose(pickle.loads(pickle.dumps(M)) @ x, M @ x, rtol=1e-12)
    assert M.astype(np.float32).dtype == np.float32
    before, inverse = M @ x, M.inverse
    A.update_values(2.0 * S.data)
    M.update()
    assert M.inverse is inverse
    np.testing.assert_allclose(M @ x, before / 2, rtol=1e-12)


def test_another_pattern_and_another_home_are_followed(on, rng):
    S, T = coupled(rng, [3, 3, 3]), coupled(rng, [3, 1, 2, 3])
    A, B, x = wl.Csr(S, executor=on), wl.Csr(T, executor=on), rng.standard_normal(9)
    M, moved = BlockJacobi(A, size=3), BlockJacobi(A, size=3).to("reference")
    expected = of_blocks(T, [0, 3, 6, 9]) @ x
    M.update(B)
    np.testing.assert_allclose(M @ x, expected, rtol=1e-12)
    moved.update(B.to("reference"))
    np.testing.assert_allclose(moved @ x, expected, rtol=1e-12)


def test_what_has_no_inverse_is_refused(on):
    singular = np.array([[2.0, 0.0, 0.0], [0.0, 1.0, 1.0], [0.0, 1.0, 1.0]])
    with pytest.raises(wl.errors.InvalidMatrix, match="block of 2 rows from row 1"):
        BlockJacobi(wl.Csr(singular, executor=on))
    with pytest.raises(wl.errors.InvalidMatrix, match="NaN or Inf"):
        BlockJacobi(wl.Csr(np.array([[1.0, np.inf], [0.0, 1.0]]), executor=on))


@pytest.mark.parametrize("n", [0, 1])
def test_small_systems(on, n):
    assert (BlockJacobi(wl.Csr(np.eye(n) * 2, executor=on)) @ np.ones(n)).tolist() == [0.5] * n


def test_rows_without_entries_have_no_block(on):
    empty = wl.Csr(sp.csr_array((3, 3)), executor=on)
    with pytest.raises(wl.errors.InvalidMatrix, match="no inverse"):
        BlockJacobi(empty)


@pytest.mark.parametrize("size", [0, 33, 2.5, "natural"])
def test_sizes_are_checked(size):
    with pytest.raises(wl.errors.InvalidArgument, match="1 to 32"):
        BlockJacobi(wl.Csr(np.eye(2)), size=size)


def conditioned(rng: np.random.Generator, conditions: list[float], size: int = 4) -> sp.csr_array:
    """Return blocks of these condition numbers, weakly coupled to the next ones."""
    made = []
    for condition in conditions:
        Q = np.linalg.qr(rng.standard_normal((size, size)))[0]
        made.append(Q @ np.diag(np.geomspace(1 / condition, 1, size)) @ Q.T)
    n = size * len(conditions)
    S = sp.block_diag(made).toarray()
    return sp.csr_array(S + 1e-3 * min(1 / max(conditions), 1) * np.eye(n, k=size))


def test_the_precision_of_a_block_follows_its_condition(on, rng):
    S = conditioned(rng, [2.0, 2.0, 1e3, 1e9])
    A = wl.Csr(S, executor=on)
    M = BlockJacobi(A, size=4, storage="adaptive")
    assert M.notes[1] == (
        "block jacobi: stored in float16 (2 blocks), float32 (1 blocks), float64 (1 blocks)"
    )
    full, low = BlockJacobi(A, size=4).to_dense(), M.to_dense()
    error = [np.linalg.norm((low - full)[i : i + 4]) for i in (0, 4, 8, 12)]
    scale = [np.linalg.norm(full[i : i + 4]) for i in (0, 4, 8, 12)]
    assert error[3] <= 1e-12 * scale[3]
    assert all(e <= 1e-2 * s for e, s in zip(error, scale, strict=True))
    x = rng.standard_normal((16, 2))
    np.testing.assert_allclose(M.H @ x, low.conj().T @ x, atol=1e-8 * max(scale))
    np.testing.assert_allclose(pickle.loads(pickle.dumps(M)) @ x, M @ x)


def test_large_and_small_inverses_are_stored_in_what_holds_them(rng):
    big = BlockJacobi(wl.Csr(conditioned(rng, [1.5] * 4) * 1e-6), size=4, storage="adaptive")
    assert " float16" not in big.notes[1] and np.all(np.isfinite(big.to_dense()))
    small = conditioned(rng, [1.5] * 4) * 1e9
    made = BlockJacobi(wl.Csr(small), size=4, storage="adaptive").to_dense()
    np.testing.assert_allclose(made @ small.toarray(), np.eye(16), atol=2e-2)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_adaptive_storage_takes_as_many_iterations(on, dtype, rng):
    S = poisson(24, dtype) + sp.diags_array(rng.uniform(0, 5, 576)).astype(dtype)
    A, b = wl.Csr(sp.csr_array(S), executor=on), block(rng, (576,), dtype)
    counts = [
        wl.solvers.Cg(A, BlockJacobi(A, size=8, storage=s), rtol=tolerance(dtype)).solve(b)
        for s in (None, "adaptive", "float32")
    ]
    assert all(found.converged for found in counts)
    assert max(found.iterations for found in counts) <= 1.05 * counts[0].iterations + 1


def test_new_values_may_change_the_precision(on, rng):
    A = wl.Csr(conditioned(rng, [2.0, 2.0]), executor=on)
    solver = wl.solvers.Gmres(A, BlockJacobi(A, size=4, storage="adaptive"), rtol=1e-10)
    assert solver.solve(np.ones(8)).converged
    worse = conditioned(rng, [1e6, 1e6])
    assert worse.nnz == A.nnz
    A.update_values(worse.data)
    solver.update()
    assert solver.M.notes[-1] == "block jacobi: stored in float64 (2 blocks)"
    assert solver.solve(np.ones(8)).converged


def test_a_storage_that_cannot_be_is_refused():
    with pytest.raises(wl.errors.UnsupportedDtype, match="float16"):
        BlockJacobi(wl.Csr(np.eye(4, dtype=complex)), storage="float16")
    with pytest.raises(wl.errors.WollemiError):
        BlockJacobi(wl.Csr(np.eye(4)), storage="int8")
