"""Algebraic multigrid: the levels that are made of a matrix."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.preconditioners import Amg
from wollemi.solvers.preconditioners.multigrid.amg import dependent_column

from .conftest import DTYPES, block, convection, poisson, tolerance


def diffusion(k: np.ndarray) -> sp.csr_array:
    """Return finite volumes on cells of conductivity k, with fixed values at the boundary."""
    n = k.size
    number = np.arange(n).reshape(k.shape)
    diagonal, rows, columns, values = np.zeros(k.shape), [], [], []
    for axis in range(k.ndim):
        K, N, D = (np.moveaxis(a, axis, 0) for a in (k, number, diagonal))
        t = 2 * K[1:] * K[:-1] / (K[1:] + K[:-1])
        D[1:] += t
        D[:-1] += t
        D[0] += 2 * K[0]
        D[-1] += 2 * K[-1]
        rows += [N[1:].ravel(), N[:-1].ravel()]
        columns += [N[:-1].ravel(), N[1:].ravel()]
        values += [-t.ravel()] * 2
    rows, columns = [*rows, number.ravel()], [*columns, number.ravel()]
    values = [*values, diagonal.ravel()]
    joined = (np.concatenate(part) for part in (values, rows, columns))
    data, i, j = joined
    return sp.csr_array((data, (i, j)), shape=(n, n))


def jumps(n: int, contrast: float) -> np.ndarray:
    return contrast ** np.random.default_rng(0).random((n, n))


def beam(nx: int, ny: int) -> tuple[sp.csr_array, np.ndarray]:
    """Return plane elasticity of squares, held at the left end, and the points of its nodes."""
    nu, gauss = 0.3, np.array([-1.0, 1.0]) / np.sqrt(3)
    C = np.array([[1 - nu, nu, 0], [nu, 1 - nu, 0], [0, 0, (1 - 2 * nu) / 2]])
    K = np.zeros((8, 8))
    corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
    for s in gauss:
        for t in gauss:
            dN = corners * (1 + corners[:, ::-1] * [t, s]) / 2
            B = np.zeros((3, 8))
            B[0, ::2], B[1, 1::2] = dN[:, 0], dN[:, 1]
            B[2, ::2], B[2, 1::2] = dN[:, 1], dN[:, 0]
            K += B.T @ C @ B / 4
    grid = np.arange((nx + 1) * (ny + 1)).reshape(nx + 1, ny + 1)
    nodes = np.stack([grid[:-1, :-1], grid[1:, :-1], grid[1:, 1:], grid[:-1, 1:]], -1).reshape(
        -1, 4
    )
    unknowns = (2 * nodes[:, :, None] + np.arange(2)).reshape(-1, 8)
    rows, columns = np.repeat(unknowns, 8, 1).ravel(), np.tile(unknowns, 8).ravel()
    A = sp.coo_array((np.tile(K.ravel(), len(nodes)), (rows, columns))).tocsr()
    free = np.arange(2 * (ny + 1), A.shape[0])
    x, y = np.meshgrid(np.arange(nx + 1.0), np.arange(ny + 1.0), indexing="ij")
    return A[free][:, free].tocsr(), np.stack([x.ravel(), y.ravel()], -1)[ny + 1 :]


SYSTEMS = {
    "poisson": (lambda: poisson(48), 10),
    "jumps": (lambda: diffusion(jumps(40, 1e6)), 13),
    "anisotropic": (lambda: sp.csr_array(sp.kronsum(*[sp.diags_array(
        [-w, 2 * w, -w], offsets=[-1, 0, 1], shape=(40, 40)) for w in (1.0, 1e-3)])), 12),
    "three-dimensional": (lambda: diffusion(np.ones((14, 14, 14))), 10),
}  # fmt: skip


@pytest.mark.parametrize("name", SYSTEMS)
def test_scalar_systems(on, rng, name):
    make, most = SYSTEMS[name]
    A = wl.Csr(make(), executor=on)
    for dtype in (None, "float32"):
        M = Amg(A, dtype=dtype)
        result = wl.solvers.Cg(A, M, rtol=1e-8).solve(rng.standard_normal(A.shape[0]))
        assert result.converged
        assert result.iterations <= most
        assert M.report().operator_complexity < 3.6
        assert M.resident


def recirculation(n: int, peclet: float) -> sp.csr_array:
    """Return diffusion and a wind in closed loops on n x n points, by upwind differences."""
    h = 1 / (n + 1)
    x, y = np.meshgrid(*[np.arange(1, n + 1) * h] * 2, indexing="ij")
    wind = (4 * x * (x - 1) * (1 - 2 * y), -4 * y * (y - 1) * (1 - 2 * x))
    parts = []
    for w, step in zip(wind, (n, 1), strict=True):
        w = (peclet * h * w).ravel()
        back, ahead = -1 - np.maximum(w, 0), -1 - np.maximum(-w, 0)
        here = np.arange(n * n) // step % n
        back_inside, ahead_inside = np.where(here > 0, back, 0), np.where(here < n - 1, ahead, 0)
        diagonals = [back_inside[step:], -back - ahead, ahead_inside[: n * n - step]]
        parts.append(sp.diags_array(diagonals, offsets=[-step, 0, step]))
    return sp.csr_array(parts[0] + parts[1])


@pytest.mark.parametrize("solver", ["Bicgstab", "Fgmres"])
@pytest.mark.parametrize("peclet", [1.0, 1e2, 1e4])
def test_recirculation_takes_few_iterations(on, rng, solver, peclet):
    A = wl.Csr(recirculation(48, peclet), executor=on)
    most = {"Bicgstab": 10, "Fgmres": 18}[solver]
    for dtype in (None, "float32"):
        M = Amg(A, dtype=dtype, coarse_rows=60)
        result = getattr(wl.solvers, solver)(A, M, rtol=1e-8).solve(rng.standard_normal(48**2))
        assert result.converged
        assert result.iterations <= most


def test_new_values_choose_the_interval_again(on):
    pattern = recirculation(24, 1e3)
    even = sp.csr_array((np.where(pattern.data > 0, 4.0, -1.0), pattern.indices, pattern.indptr))
    A = wl.Csr(even, executor=on)
    M = Amg(A, coarse_rows=60)
    assert {level.before.M.lower for level in M.levels} == {0.2}
    A.update_values(wl.Csr(pattern, executor=on).data)
    M.update(A)
    assert {level.before.M.lower for level in M.levels} == {0.4}
    asked = Amg(A, smoother="chebyshev:fraction=0.3", coarse_rows=60)
    assert {level.before.M.lower for level in asked.levels} == {0.3}


def test_two_steps_at_once_leave_out_a_level(on, rng):
    A = wl.Csr(diffusion(np.ones((14, 14, 14))), executor=on)
    b = rng.standard_normal(A.shape[0])
    M, full = (Amg(A, aggressive=steps, coarse_rows=30) for steps in (1, 0))
    assert M.levels[0].P.shape[1] < full.levels[0].P.shape[1] / 2
    assert np.diff(M.levels[0].P.tocsr().indptr).max() <= 6
    assert M.report().operator_complexity < 0.7 * full.report().operator_complexity
    solver = wl.solvers.Cg(A, M, rtol=1e-8)
    before = solver.solve(b)
    assert before.converged
    assert before.iterations <= 15
    A.update_values(2 * A.data)
    M.update(A)
    again = wl.solvers.Cg(A, M, rtol=1e-8).solve(2 * b)
    assert again.converged
    assert again.iterations == before.iterations


def test_two_steps_at_once_are_the_same_bit_for_bit(on):
    A = diffusion(jumps(14, 1e2))
    ours, theirs = (
        Amg(wl.Csr(A, executor=where), aggressive=2, coarse_rows=20).levels[0].P
        for where in (on, "reference")
    )
    np.testing.assert_array_equal(*(P.tocsr().to_scipy().data for P in (ours, theirs)), strict=True)


@pytest.mark.parametrize("kind", ["classical", "aggregation"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype(on, rng, kind, dtype):
    A = wl.Csr(poisson(24, dtype), executor=on)
    near = None
    if A.dtype.kind == "c":  # the matrix is that of real numbers, twisted
        near = np.exp(1j * np.arange(576))
    M = Amg(A, kind, near_null=near if kind == "aggregation" else None, coarse_rows=30)
    assert len(M.levels) >= 1
    result = wl.solvers.Cg(A, M, rtol=tolerance(dtype)).solve(block(rng, (576, 2), dtype))
    assert result.converged
    if A.dtype.kind != "c" or kind == "aggregation":
        assert result.iterations <= 14


@pytest.mark.parametrize("kind", ["classical", "aggregation"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_levels_are_the_same_bit_for_bit(on, kind, dtype):
    A = diffusion(jumps(20, 1e4)).astype(dtype)
    made = [
        Amg(wl.Csr(A, executor=where), kind, coarse_rows=20, theta=0.1)
        for where in (on, "reference")
    ]
    for ours, theirs in zip(*(M.levels for M in made), strict=True):
        for part in "APR":
            a, b = (getattr(level, part).tocsr().to_scipy() for level in (ours, theirs))
            np.testing.assert_array_equal(a.indptr, b.indptr)
            np.testing.assert_array_equal(a.indices, b.indices)
            np.testing.assert_array_equal(a.data, b.data)


def test_levels_do_not_depend_on_threads():
    A = diffusion(np.ones((24, 24, 24)))
    one, two = (Amg(wl.Csr(A, executor=f"omp:{threads}")) for threads in (1, 2))
    for ours, theirs in zip(one.levels, two.levels, strict=True):
        np.testing.assert_array_equal(ours.A.data, theirs.A.data)
        np.testing.assert_array_equal(ours.P.data, theirs.P.data)


def test_elasticity_with_rigid_body_modes(on, rng):
    S, points = beam(60, 12)
    A = wl.Csr(S, executor=on)
    M = Amg(A, near_null=wl.rigid_body_modes(points), coarse_rows=60)
    assert "aggregation" not in M.notes
    assert M.levels[0].P.shape[1] % 3 == 0
    solver = wl.solvers.Cg(A, M, rtol=1e-8)
    result = solver.solve(rng.standard_normal(A.shape[0]))
    plain = wl.solvers.Cg(A, "jacobi", rtol=1e-8).solve(rng.standard_normal(A.shape[0]))
    assert result.converged
    assert result.iterations < plain.iterations / 6
    assert M.report().operator_complexity < 1.5


def test_vectors_that_depend_on_each_other(on, rng):
    A = wl.Csr(poisson(24), executor=on)
    near = np.ones((576, 2))
    near[:288, 1] = 2.0  # the same as the first one within nearly all aggregates
    M = Amg(A, near_null=near, block_size=1, coarse_rows=40)
    solver = wl.solvers.Cg(A, M, rtol=1e-8)
    b = rng.standard_normal(576)
    before = solver.solve(b)
    assert before.converged
    assert before.iterations <= 14
    A.update_values(2.0 * A.data)
    solver.update()
    assert abs(solver.solve(b).iterations - before.iterations) <= 1


def test_interpolation_keeps_the_near_null_space(on):
    S, points = beam(20, 6)
    modes = wl.rigid_body_modes(points)
    from wollemi.solvers.preconditioners.multigrid import aggregation as stages

    A = wl.Csr(S, executor=on)
    near = A.executor.from_host(modes)
    label, count = stages.aggregates(stages.coupled_part(stages.node_matrix(A, 2), 0.0))
    T, coarse = stages.tentative(label, count, near, 2, A)
    T, coarse = T.to_scipy(), A.executor.to_host(coarse)
    np.testing.assert_allclose(T @ coarse, modes, atol=1e-12)
    gram = (T.T @ T).toarray()
    used = gram.diagonal() > 0
    np.testing.assert_allclose(gram[np.ix_(used, used)], np.eye(used.sum()), atol=1e-12)


def test_rows_of_interpolation_add_up_to_one_inside(on):
    A = wl.Csr(poisson(20), executor=on)
    P = Amg(A, coarse_rows=20).levels[0].P.to_scipy()
    inside = np.abs(poisson(20).sum(axis=1)) < 1e-12
    np.testing.assert_allclose(P.sum(axis=1)[inside], 1, rtol=1e-12)
    assert np.diff(P.indptr).max() <= 4


def test_neumann_problems(on, rng):
    n = 20
    line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n)).tolil()
    line[0, 0] = line[-1, -1] = 1
    A = wl.Csr(sp.csr_array(sp.kronsum(line.tocsr(), line.tocsr())), executor=on)
    b = rng.standard_normal(n * n)
    b -= b.mean()
    for kind in ("classical", "aggregation"):
        result = wl.solvers.Cg(A, Amg(A, kind, coarse_rows=40), rtol=1e-8).solve(b)
        assert result.converged
        assert result.iterations <= 16


def test_unsymmetric_systems(on, rng):
    A = wl.Csr(convection(30), executor=on)
    b = rng.standard_normal(900)
    for solver in (wl.solvers.Bicgstab, wl.solvers.Gmres):
        assert solver(A, Amg(A, coarse_rows=60), rtol=1e-8).solve(b).iterations <= 12


def test_new_values_keep_the_coarse_rows(on, rng):
    k = jumps(24, 1e2)
    A = wl.Csr(diffusion(k), executor=on)
    M = Amg(A, coarse_rows=40)
    solver = wl.solvers.Cg(A, M, rtol=1e-8)
    b = rng.standard_normal(576)
    assert solver.solve(b).converged
    rows, patterns = M.report().rows, [level.P.indices for level in M.levels]
    A.update_values(wl.Csr(diffusion(k**1.5), executor=on).data)
    solver.update()
    after = solver.solve(b)
    assert after.converged
    assert after.iterations <= 20
    assert M.report().rows == rows
    assert all(level.P.indices is p for level, p in zip(M.levels, patterns, strict=True))


def test_rows_without_neighbours_are_left_to_the_smoother(on, rng):
    S = poisson(20).tolil()
    for fixed in range(0, 400, 7):
        S[fixed], S[:, [fixed]] = 0, 0
        S[fixed, fixed] = 1
    A = wl.Csr(S.tocsr(), executor=on)
    for kind in ("classical", "aggregation"):
        M = Amg(A, kind, coarse_rows=30)
        result = wl.solvers.Cg(A, M, rtol=1e-8).solve(rng.standard_normal(400))
        assert result.converged
        assert result.iterations <= 14


def test_small_and_diagonal_matrices(on):
    for S in (sp.eye_array(3).tocsr(), sp.csr_array((0, 0)), sp.eye_array(400).tocsr() * 2.0):
        M = Amg(wl.Csr(S, executor=on))
        n = S.shape[0]
        expected = np.ones(n) / (S.diagonal() if n else 1)
        np.testing.assert_allclose(M @ np.ones(n), expected, rtol=0.5)


def test_by_name_and_settings(on, rng):
    A = wl.Csr(poisson(24), executor=on)
    b = rng.standard_normal(576)
    for M in ("amg", "amg:theta=0.5,dtype=float32", Amg(cycle="W")):
        assert wl.solvers.Cg(A, M, rtol=1e-8).solve(b).converged
    made = Amg(A, theta=0.5)
    assert repr(made.settings) == "Amg(theta=0.5)"
    np.testing.assert_allclose(pickle.loads(pickle.dumps(made)) @ b, made @ b, rtol=1e-12)
    np.testing.assert_allclose(made.to("reference") @ b, made @ b, rtol=1e-10)


def test_the_table_has_the_phases(on):
    text = str(Amg(wl.Csr(poisson(24), executor=on)))
    for word in ("Amg: 2 levels", "operator complexity", "grid complexity", "MiB", "coarsening"):
        assert word in text


def test_rigid_body_modes_are_translations_and_rotations():
    points = np.random.default_rng(1).random((5, 3))
    modes = wl.rigid_body_modes(points).reshape(5, 3, 6)
    for axis in range(3):
        np.testing.assert_array_equal(modes[:, axis, axis], 1)
    centred = points - points.mean(axis=0)
    for number, axis in ((3, 2), (4, 0), (5, 1)):
        e = np.eye(3)[axis]
        np.testing.assert_allclose(modes[:, :, number], np.cross(e, centred), atol=1e-14)
    with pytest.raises(wl.errors.InvalidArgument, match="shape"):
        wl.rigid_body_modes(np.ones((4, 4)))
    with pytest.raises(wl.errors.InvalidArgument, match="finite"):
        wl.rigid_body_modes([[np.nan, 0.0]])


@pytest.mark.parametrize(
    ("points", "count"),
    [
        (np.outer(np.arange(20.0), [1, 2, 3]), 5),
        (np.outer(np.arange(20.0), [0, 0, 1]), 5),
        (np.array([[3.0, 1.0, 2.0]]), 3),
        (np.array([[3.0, 1.0]]), 2),
        (np.zeros((0, 3)), 6),
    ],
)
def test_rigid_body_modes_of_points_on_a_line_are_independent(points, count):
    modes = wl.rigid_body_modes(points)
    assert modes.shape == (points.size, count)
    if len(points):
        assert np.linalg.matrix_rank(modes) == count
    if len(points) > 1:
        A = wl.Csr(
            sp.kron(
                sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(20, 20)), np.eye(3)
            )
        )
        assert wl.solvers.Cg(A, Amg(A, near_null=modes)).solve(np.ones(60)).converged


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"kind": "geometric"}, "InvalidArgument", "auto, classical, aggregation"),
        ({"theta": 2}, "InvalidArgument", "theta"),
        ({"block_size": 0}, "InvalidArgument", "block_size"),
        ({"block_size": 3}, "InvalidArgument", "not a multiple of 3"),
        ({"width": -1}, "InvalidArgument", "width"),
        ({"aggressive": -1}, "InvalidArgument", "aggressive"),
        ({"near_null": np.ones(3)}, "ShapeMismatch", "length 4"),
        ({"near_null": 0}, "ShapeMismatch", r"got shape \(\)"),
        ({"near_null": "ones"}, "ShapeMismatch", r"got shape \(\)"),
        ({"near_null": np.full(4, np.nan)}, "InvalidArgument", "finite vectors, got NaN or Inf"),
        ({"near_null": np.array([1, np.inf, 1, 1])}, "InvalidArgument", "finite vectors"),
        ({"near_null": np.zeros(4)}, "InvalidArgument", "column 0 is zero"),
        ({"near_null": np.eye(4)[:, :2] * [1, 0]}, "InvalidArgument", "column 1 is zero"),
        ({"near_null": np.full(4, 1j)}, "InvalidArgument", "real and imaginary parts"),
        ({"near_null": np.ones((4, 2)) * [1, 1e-9]}, "InvalidArgument", "column 1 is a linear"),
        (
            {"near_null": np.eye(4)[:, [0, 1, 1]] + 1e3 * np.eye(4)[:, [2, 1, 1]]},
            "InvalidArgument",
            "column 2 is a linear combination",
        ),
    ],
)
def test_options_are_checked(options, error, message):
    with pytest.raises(getattr(wl.errors, error), match=message):
        Amg(wl.Csr(poisson(2)), **options)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_linear_combinations_in_near_null_are_found(dtype):
    rng = np.random.default_rng(3)
    for n, m in ((3, 2), (50, 6), (20_000, 3)):
        near = rng.standard_normal((n, m)).astype(dtype)
        nearly = near.copy()
        nearly[:, -1] = near[:, 0] + 200 * np.finfo(dtype).eps * near[:, -1]
        assert dependent_column(near) is None
        assert dependent_column(nearly) is None
        near[:, -1] = near[:, :-1] @ rng.standard_normal(m - 1).astype(dtype)
        assert dependent_column((near * 10.0 ** np.arange(m)).astype(dtype)) == m - 1
    assert dependent_column(np.ones((1, 2))) == 1


def with_tiny_links(seed, dtype, links):
    """Return a random graph's matrix; about half of its links are tiny, of either sign."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(30, 90))
    G = sp.random_array((n, n), density=3 / n, rng=rng, format="coo")
    sizes = np.where(rng.random(G.nnz) < 0.5, 10.0 ** rng.choice(links), 1.0)
    signs = np.where(rng.random(G.nnz) < 0.1 * (seed % 2), -1, 1)
    W = sp.coo_array((G.data * sizes * signs, G.coords), shape=G.shape)
    W = sp.csr_array(W + W.T)
    W.setdiag(0)
    W.eliminate_zeros()
    d = np.asarray(abs(W).sum(axis=1)).ravel()
    return sp.csr_array(sp.diags_array(np.where(d == 0, 1, d)) - W).astype(dtype)


@pytest.mark.parametrize("kind", ["classical", "aggregation"])
@pytest.mark.parametrize(
    ("dtype", "links"), [("float64", [-20, -40, -160, -300]), ("float32", [-20, -30, -37])]
)
def test_tiny_links_leave_a_finite_preconditioner(on, kind, dtype, links):
    for seed in range(4):
        A = with_tiny_links(seed, dtype, links)
        M = wl.preconditioners.Amg(wl.Csr(A, executor=on), kind=kind, coarse_rows=4)
        assert np.isfinite(M @ np.ones(A.shape[0], dtype)).all(), seed


def test_a_level_that_rounding_spoils_is_left_out(on):
    A = with_tiny_links(25, "float64", [-300])
    M = wl.preconditioners.Amg(wl.Csr(A, executor=on), kind="aggregation", coarse_rows=4)
    assert any("rounding leaves nothing of a diagonal entry" in note for note in M.notes)
    assert np.isfinite(M @ np.ones(A.shape[0])).all()
