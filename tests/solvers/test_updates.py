"""Solvers and preconditioners follow new values: all results equal a new solver's."""

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.solvers.registry import OWN_PRECONDITIONERS

from .conftest import poisson

GRID = 10

#: Preconditioners that need an argument here, or keep more than properties of the pattern.
OTHERS = {
    "additive",
    "amg",
    "blockjacobi",
    "blockschwarz",
    "multigrid",
    "multiplicative",
    "schwarz",
}

#: Each keeps only properties of the pattern, so that iterations equal a new solver's.
NAMES = [
    *(name for name in OWN_PRECONDITIONERS if name not in OTHERS),
    "blockjacobi:size=4",
    "blockjacobi:size=4,storage=float32",
    "blockjacobi:size=4,storage=adaptive",
    "sor:colors=True,backward=True",
    "ssor:colors=False,omega=1.3",
    "ssor:colors=True",
    "ilu:level=1",
    "ilu:match=True",
    "ilu:order=rcm",
    "ilu:factor_sweeps=3,apply=jacobi:3",
    "ilu:apply=isai:1",
    "ic:apply=isai:1",
    "ilut:factor_sweeps=5",
    "ilut:match=True",
    "polynomial:kind=neumann",
    "schwarz:inner=ssor",
    "blockschwarz:blocks=3,inner=ssor",
]


def stretched() -> tuple[sp.csr_array, sp.csr_array]:
    """Return a matrix, and one of the same pattern with rows and columns of other scales."""
    S = poisson(GRID)
    S.sort_indices()
    scale = sp.diags_array(10.0 ** np.random.default_rng(1).uniform(-1, 1, GRID**2))
    other = sp.csr_array(scale @ S @ scale)
    other.sort_indices()
    return S, other


def same_as_new(on, solver: str, M: object, update) -> None:
    S, other = stretched()
    b = np.random.default_rng(0).standard_normal(S.shape[0])
    kind = getattr(wl.solvers, solver)
    A = wl.Csr(S, executor=on)
    kept = kind(A, M=M, rtol=1e-8, maxiter=300)
    kept.solve(b)
    A.update_values(other.data)
    update(kept)
    found = kept.solve(b)
    new = kind(wl.Csr(other, executor=on), M=M, rtol=1e-8, maxiter=300).solve(b)
    assert (found.iterations, found.stops) == (new.iterations, new.stops)
    np.testing.assert_allclose(found.x, new.x, rtol=0, atol=1e-9 * np.abs(new.x).max())


@pytest.mark.parametrize("M", NAMES)
def test_a_solver_follows_new_values_as_a_new_one(on, M):
    same_as_new(on, "Gmres", M, lambda kept: kept.update())


@pytest.mark.parametrize("M", ["jacobi", "ssor", "sor", "ilu", "ic:apply=isai:1", "fsai", "isai"])
def test_the_transpose_of_a_preconditioner_follows_too(on, M):
    if on.backend == "dpcpp":
        pytest.skip("takes a minute of compiling; the host decides, as on the other executors")
    same_as_new(on, "Bicg", M, lambda kept: kept.M.update())


@pytest.mark.parametrize("symmetric", [True, False])
def test_steps_that_their_owner_updates_are_followed(on, symmetric):
    if on.backend == "dpcpp":
        pytest.skip("takes a minute of compiling; the host decides, as on the other executors")
    S, other = stretched()
    b = np.random.default_rng(0).standard_normal(S.shape[0])
    found = []
    for first, last in ((S, other), (other, other)):
        A = wl.Csr(first, executor=on)
        step = wl.preconditioners.Sor(A, omega=1.2)
        M = wl.preconditioners.Multiplicative(A, steps=[step, "jacobi"], symmetric=symmetric)
        solver = wl.solvers.Fgmres(A, M=M, rtol=1e-8, maxiter=300)
        solver.solve(b)
        A.update_values(last.data)
        step.update()
        M.steps[1].update()
        found.append(solver.solve(b))
    assert found[0].iterations == found[1].iterations
    np.testing.assert_allclose(found[0].x, found[1].x, atol=1e-9 * np.abs(found[1].x).max())


def test_a_copy_in_another_precision_follows(on):
    S, other = stretched()
    M = wl.preconditioners.Ssor(wl.Csr(S.astype(np.float32), executor=on))
    A = wl.Csr(S, executor=on)
    solver = wl.solvers.Cg(A, M=M, rtol=1e-8, maxiter=300)
    b = np.ones(S.shape[0])
    solver.solve(b)
    A.update_values(other.data)
    M.update(A)
    new = wl.preconditioners.Ssor(wl.Csr(other.astype(np.float32), executor=on))
    expected = wl.solvers.Cg(A, M=new, rtol=1e-8, maxiter=300).solve(b)
    assert solver.solve(b).iterations == expected.iterations


@pytest.mark.parametrize("smoother", ["chebyshev", "ssor", "sor", "l1jacobi", "ilu"])
def test_multigrid_keeps_its_coarse_rows_and_follows(on, smoother):
    S, other = stretched()
    A = wl.Csr(S, executor=on)
    options = {"smoother": smoother, "coarse_rows": 10}
    solver = wl.solvers.Cg(A, M=wl.preconditioners.Amg(**options), rtol=1e-8, maxiter=300)
    b = np.ones(S.shape[0])
    solver.solve(b)
    A.update_values(other.data)
    solver.update()
    new = wl.solvers.Cg(A, M=wl.preconditioners.Amg(**options), rtol=1e-8, maxiter=300).solve(b)
    found = solver.solve(b)
    assert found.converged and found.iterations <= 1.5 * new.iterations


def test_an_update_that_fails_leaves_everything_as_it_was(on):
    S, _ = stretched()
    for name in ("ilu", "ic", "sor", "ssor", "fsai", "blockjacobi:size=4", "polynomial"):
        A = wl.Csr(S, executor=on)
        solver = wl.solvers.Gmres(A, M=name, rtol=1e-8)
        before = solver.M @ np.ones(S.shape[0])
        with pytest.raises(wl.errors.WollemiError):
            solver.M.update(wl.Csr(S * 1e-310, executor=on))
        np.testing.assert_array_equal(solver.M @ np.ones(S.shape[0]), before)


@pytest.mark.parametrize("sizes", [(2, 2), (4, 4), (2, 2, 2), (3, 3, 3), (2, 4, 4), (6, 6)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_polynomials_of_small_grids_are_positive_definite(on, sizes, dtype):
    lines = [sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n)) for n in sizes]
    S = lines[0]
    for line in lines[1:]:
        S = sp.kronsum(S, line)
    A = wl.Csr(sp.csr_array(S).astype(dtype), executor=on)
    M = wl.preconditioners.Polynomial(A).to_dense()
    assert np.linalg.eigvalsh((M + M.T) / 2)[0] > 0
    low, high = wl.solvers.Chebyshev(A).interval
    values = np.linalg.eigvalsh(S.toarray())
    assert low <= values[0] * (1 + 1e-3) and high >= values[-1]


@pytest.mark.parametrize("name", ["ic", "ict", "ic:level=1"])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_inverse_triangles_of_hermitian_factors_are_adjoint(on, name, dtype):
    S = poisson(8, dtype).toarray() + np.diag(np.linspace(0, 3, 64))
    more = "," if ":" in name else ":"
    solver = wl.solvers.Cg(wl.Csr(S, executor=on), M=f"{name}{more}apply=isai:1")
    M = solver.M.to_dense()
    np.testing.assert_allclose(M, M.conj().T, atol=1e-13 * np.abs(M).max())


def test_multigrid_of_matrices_without_strong_couplings(on):
    diagonal = wl.Csr(sp.diags_array(np.arange(1.0, 5001.0)).tocsr(), executor=on)
    M = wl.preconditioners.Amg(diagonal)
    np.testing.assert_allclose(M @ np.arange(1.0, 5001.0), np.ones(5000), rtol=1e-12)
    mass = sp.diags_array([1.0, 4.0, 1.0], offsets=[-1, 0, 1], shape=(5000, 5000))
    A = wl.Csr(sp.csr_array(mass), executor=on)
    assert wl.solvers.Cg(A, M="amg", rtol=1e-8).solve(np.ones(5000)).iterations <= 10
    pairs = wl.Csr(sp.block_diag([np.array([[2.0, 1.0], [1.0, 2.0]])] * 2000, "csr"), executor=on)
    assert wl.solvers.Cg(pairs, M="amg", rtol=1e-8).solve(np.ones(4000)).iterations <= 2


@pytest.mark.parametrize("M", ["amg:theta=abc", "chebyshev:fraction=abc"])
def test_options_that_are_no_numbers_are_refused_by_name(M):
    with pytest.raises(wl.errors.InvalidArgument, match="got 'abc'"):
        wl.solvers.Cg(wl.Csr(poisson(4)), M=M)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("scale", [1e-300, 1e-45, 1e45, 1e300])
def test_levels_of_a_lower_precision_take_matrices_of_every_scale(on, dtype, scale):
    A = wl.Csr(poisson(20) * scale, executor=on)
    M = wl.preconditioners.Amg(A, dtype=dtype, coarse_rows=20)
    same = wl.preconditioners.Amg(wl.Csr(poisson(20), executor=on), dtype=dtype, coarse_rows=20)
    found = [wl.solvers.Cg(B._matrix, B, rtol=1e-8).solve(np.ones(400)) for B in (M, same)]
    assert found[0].converged and found[0].iterations <= found[1].iterations + 1


def diffusion(corner: int, contrast: float = 1e6, n: int = 30) -> sp.csr_array:
    """Return diffusion on n^2 cells, with boxes that conduct more and begin at a corner."""
    cells = np.ones((n, n))
    for row in range(corner, n, 12):
        for column in range(corner, n, 12):
            cells[row : row + 6, column : column + 6] = contrast
    number, total = np.arange(n * n).reshape(n, n), sp.csr_array((n * n, n * n))
    for a, b in ((np.s_[1:], np.s_[:-1]), (np.s_[:, 1:], np.s_[:, :-1])):
        k = (2 * cells[a] * cells[b] / (cells[a] + cells[b])).ravel()
        pairs = number[a].ravel(), number[b].ravel()
        total = total + sp.coo_array((k, pairs), shape=total.shape).tocsr()
    total = total + total.T
    made = sp.csr_array(sp.diags_array(total.sum(axis=1) + 1e-3) - total)
    made.sort_indices()
    return made


@pytest.mark.parametrize(
    "M", ["amg", wl.preconditioners.Additive(steps=["jacobi", "amg"])], ids=["amg", "steps"]
)
def test_a_result_says_that_updates_have_made_a_hierarchy_poor(on, M):
    S, moved = diffusion(0), diffusion(7)
    A, b = wl.Csr(S, executor=on), np.random.default_rng(0).standard_normal(S.shape[0])
    solver = wl.solvers.Cg(A, M, rtol=1e-6)
    first = solver.solve(b)
    A.update_values(1.1 * S.data)
    solver.update()
    assert first.converged and first.notes == solver.solve(b).notes == []
    A.update_values(moved.data)
    solver.update()
    for columns in (b, np.stack([b, -b], axis=1)):
        later = solver.solve(columns)
        assert later.iterations > 2 * first.iterations
        assert later.notes == [
            f"iterations rose from {first.iterations} to {later.iterations} since the set-up: "
            "updates of Amg keep the levels that the first values led to; solver = "
            "solver.settings.on(A) builds solver and preconditioner again from the current values"
        ]
    anew = solver.settings.on(A).solve(b)
    assert anew.iterations < 2 * first.iterations and anew.notes == []


def test_no_note_says_that_an_exact_update_has_made_a_preconditioner_poor(on):
    S, moved = diffusion(0, contrast=1.0), diffusion(7)
    A, b = wl.Csr(S, executor=on), np.ones(S.shape[0])
    solver = wl.solvers.Cg(A, "jacobi", rtol=1e-8)
    first = solver.solve(b)
    A.update_values(moved.data)
    solver.update()
    later = solver.solve(b)
    assert later.iterations > 2 * first.iterations + 10 and later.notes == []


def test_another_right_hand_side_is_no_reason_for_the_note(on):
    A = wl.Csr(diffusion(0), executor=on)
    solver = wl.solvers.Cg(A, "amg", rtol=1e-12)
    b = np.random.default_rng(0).standard_normal(A.shape[0])
    x = solver.solve(b).x
    solver = solver.settings.on(A)
    near = solver.solve(b, x0=x + 1e-10 * b).iterations
    long = solver.solve(b)
    A.update_values(1.1 * A.to_scipy().data)
    solver.update()
    again = solver.solve(b)
    assert long.iterations > near and long.notes == again.notes == []
