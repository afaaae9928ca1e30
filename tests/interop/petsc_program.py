"""Cases for petsc4py, in a process of their own: ``python petsc_program.py`` prints their outcomes.

Debian's petsc4py needs NumPy 1, which the process of the tests does not have.
``test_petsc.py`` runs this program and reports each case as a test.
"""

from __future__ import annotations

import json
import sys
import traceback
from contextlib import contextmanager

import petsc4py

petsc4py.init(["program", "-no_signal_handler"])

import numpy as np  # noqa: E402
import scipy.sparse as sp  # noqa: E402
from petsc4py import PETSc  # noqa: E402

import wollemi as wl  # noqa: E402
from wollemi.core.errors import InvalidArgument, InvalidMatrix  # noqa: E402
from wollemi.interop import petsc  # noqa: E402

SCALAR, REASON = PETSc.ScalarType, PETSc.KSP.ConvergedReason
COMPLEX = np.dtype(SCALAR).kind == "c"
OWN_PC = {"pc_type": "python", "pc_python_type": "wollemi.interop.petsc.Preconditioner"}
OWN_KSP = {"ksp_type": "python", "ksp_python_type": "wollemi.interop.petsc.Solver"}
EXECUTORS = ("omp", "reference")


def plate(n: int, shift: float = 0.0) -> sp.csr_array:
    """Return the Laplacian of an n x n plate, plus a convection of strength ``shift``."""
    line = sp.diags_array([-1.0 - shift, 2.0, -1.0 + shift], offsets=[-1, 0, 1], shape=(n, n))
    made = sp.kronsum(line, line, format="csr").astype(SCALAR)
    made.sort_indices()
    return made


def aij(S: sp.csr_array) -> PETSc.Mat:
    """Return a sequential matrix of PETSc."""
    csr = (S.indptr.astype(PETSc.IntType), S.indices.astype(PETSc.IntType), S.data.astype(SCALAR))
    mat = PETSc.Mat().createAIJ(S.shape, csr=csr, comm=PETSc.COMM_SELF)
    mat.assemble()
    return mat


@contextmanager
def options(prefix: str = "", **given: object):
    """Set options, and delete them afterwards."""
    database = PETSc.Options(prefix)
    for name, value in given.items():
        database[name] = value
    yield
    for name in given:
        database.delValue(name)


def solver_of(mat: PETSc.Mat, prefix: str = "", **given: object) -> PETSc.KSP:
    """Return a KSP with these options."""
    with options(prefix, ksp_rtol=1e-10, **given):
        ksp = PETSc.KSP().create(PETSc.COMM_SELF)
        ksp.setOptionsPrefix(prefix)
        ksp.setOperators(mat)
        ksp.setFromOptions()
    return ksp


def solved(ksp: PETSc.KSP, guess: np.ndarray | None = None) -> np.ndarray:
    """Return the solution for ones, after a check of the residual."""
    mat = ksp.getOperators()[0]
    b, x, r = mat.createVecLeft(), mat.createVecRight(), mat.createVecLeft()
    b.set(1.0)
    if guess is not None:
        x.setArray(guess)
        ksp.setInitialGuessNonzero(True)
    ksp.solve(b, x)
    assert ksp.getConvergedReason() > 0, ksp.getConvergedReason()
    mat.mult(x, r)
    r.axpy(-1.0, b)
    assert r.norm() <= 1e-6 * b.norm(), r.norm()
    return x.getArray().copy()


# ---- matrices


def case_rows_are_shared():
    S = plate(6)
    mat = aij(S)
    A = wl.from_petsc(mat)
    np.testing.assert_array_equal(A.to_dense(), S.toarray())
    assert A.dtype == SCALAR and A.indices.dtype == PETSc.IntType
    x = np.arange(36).astype(SCALAR)
    np.testing.assert_allclose(A @ x, S @ x)
    mat.scale(3.0)
    A.update_values(A.data)
    np.testing.assert_allclose(A @ x, 3 * (S @ x))
    A.update_values(S.data)
    np.testing.assert_array_equal(mat.getValuesCSR()[2], S.data)


def case_memory_outlives_the_matrix_of_petsc():
    S = plate(40)
    mat = aij(S)
    A = wl.from_petsc(mat)
    mat.destroy()
    others = [aij(S * 7) for _ in range(20)]
    np.testing.assert_array_equal(A.to_dense(), S.toarray())
    del others


def case_rectangular_and_empty():
    S = sp.random_array((5, 9), density=0.4, rng=np.random.default_rng(1), format="csr")
    S = S.astype(SCALAR)
    np.testing.assert_array_equal(wl.from_petsc(aij(S)).to_dense(), S.toarray())
    nothing = sp.csr_array((4, 3), dtype=SCALAR)
    assert wl.from_petsc(aij(nothing)).nnz == 0


def case_executors():
    S = plate(5)
    for name in EXECUTORS:
        A = wl.from_petsc(aij(S), executor=name)
        assert A.executor.name.startswith(name)
        np.testing.assert_array_equal(A.to_dense(), S.toarray())


def case_other_types_are_converted():
    S = plate(4)
    mat = aij(S)
    for kind in ("seqbaij", "seqsell", "dense"):
        A = wl.from_petsc(mat.convert(kind, PETSc.Mat()))
        np.testing.assert_array_equal(A.to_dense(), S.toarray())
        assert isinstance(A, wl.Dense if kind == "dense" else wl.Csr)
    symmetric = aij(S)
    symmetric.setOption(PETSc.Mat.Option.SYMMETRIC, True)
    A = wl.from_petsc(symmetric.convert("seqsbaij", PETSc.Mat()))
    np.testing.assert_array_equal(A.to_dense(), S.toarray())
    nest = PETSc.Mat().createNest([[mat, None], [None, mat]], comm=PETSc.COMM_SELF)
    nest.assemble()
    wanted = sp.block_diag([S, S]).toarray()
    np.testing.assert_array_equal(wl.from_petsc(nest).to_dense(), wanted)


def case_a_matrix_of_products_is_an_operator():
    class Twice:
        def mult(self, mat, x, y):
            y.setArray(2 * x.getArray(readonly=True))

        multTranspose = mult

    shell = PETSc.Mat().createPython((4, 4), Twice(), comm=PETSc.COMM_SELF)
    shell.setUp()
    A = wl.from_petsc(shell)
    assert isinstance(A, wl.LinearOperator)
    np.testing.assert_array_equal(A @ np.ones(4, SCALAR), 2 * np.ones(4))
    np.testing.assert_array_equal(A.H @ np.ones(4, SCALAR), 2 * np.ones(4))


def case_an_unassembled_matrix_is_refused():
    mat = PETSc.Mat().createAIJ((2, 2), nnz=1, comm=PETSc.COMM_SELF)
    mat.setUp()
    mat.setValue(0, 0, 1.0)
    refused(InvalidMatrix, "assemble", wl.from_petsc, mat)


def refused(kind, words, function, *arguments):
    """Check that a call raises an error of ours, directly or through PETSc."""
    try:
        function(*arguments)
    except kind as error:
        assert words in str(error), error
    else:
        raise AssertionError(f"no {kind.__name__} was raised")


# ---- preconditioners


def case_cg_with_our_multigrid():
    mat = aij(plate(48))
    for name in EXECUTORS:
        ksp = solver_of(mat, ksp_type="cg", pc_wollemi_executor=name, **OWN_PC)
        solved(ksp)
        assert ksp.getIterationNumber() <= 16
        M = ksp.getPC().getPythonContext().M
        assert type(M).__name__ == "Amg" and M.executor.name.startswith(name)


def case_preconditioners_by_name():
    mat = aij(plate(20, 0.2))
    without = solver_of(mat, ksp_type="gmres", pc_type="none")
    solved(without)
    for kind in ("ilu:level=1", "jacobi", "blockjacobi:size=4", "direct", "schwarz"):
        ksp = solver_of(mat, ksp_type="gmres", pc_wollemi_type=kind, **OWN_PC)
        solved(ksp)
        most = without.getIterationNumber() if kind != "direct" else 2
        assert ksp.getIterationNumber() <= most + 2, (kind, ksp.getIterationNumber())


def case_a_prefix_of_options():
    ksp = solver_of(aij(plate(9)), "inner_", pc_wollemi_type="ilu", **OWN_PC)
    solved(ksp)
    assert type(ksp.getPC().getPythonContext().M).__name__ == "Ilu"


def case_the_transpose():
    mat = aij(plate(12, 0.3))
    for kind in ("jacobi", "ilu"):
        solved(solver_of(mat, ksp_type="bicg", pc_wollemi_type=kind, **OWN_PC))
        ksp = solver_of(mat, ksp_type="gmres", pc_wollemi_type=kind, **OWN_PC)
        ksp.setUp()
        pc, x, y = ksp.getPC(), *mat.createVecs()
        x.setRandom()
        pc.applyTranspose(x, y)
        M = pc.getPythonContext().M.to_dense()
        np.testing.assert_allclose(y.getArray(), M.T @ x.getArray(), rtol=1e-8, atol=1e-12)


def case_new_values_update_and_new_patterns_make_anew():
    S = plate(16)
    mat = aij(S)
    ksp = solver_of(mat, ksp_type="cg", **OWN_PC)
    first = solved(ksp)
    context = ksp.getPC().getPythonContext()
    M = context.M
    mat.scale(4.0)
    ksp.setOperators(mat)
    np.testing.assert_allclose(solved(ksp), first / 4, rtol=1e-6)
    assert context.M is M
    np.testing.assert_allclose(M._matrix.to_dense(), 4 * S.toarray())
    other = aij(plate(16) + sp.eye_array(256, k=5) * 1e-3 + sp.eye_array(256, k=-5) * 1e-3)
    ksp.setOperators(other)
    solved(ksp)
    assert context.M is not M


def case_converted_matrices_follow_too():
    S = plate(10)
    mat = aij(S).convert("seqbaij", PETSc.Mat())
    ksp = solver_of(mat, ksp_type="gmres", pc_wollemi_type="ilu", **OWN_PC)
    first = solved(ksp)
    mat.scale(2.0)
    ksp.setOperators(mat)
    np.testing.assert_allclose(solved(ksp), first / 2, rtol=1e-6)
    assert ksp.getIterationNumber() < 30


def case_blocks_and_near_null_spaces_reach_multigrid():
    S = sp.kron(plate(10), sp.eye_array(2), format="csr")
    mat = aij(S)
    mat.setBlockSize(2)
    modes = [mat.createVecRight() for _ in range(2)]
    for place, mode in enumerate(modes):
        array = np.zeros(200, SCALAR)
        array[place::2] = 0.1
        mode.setArray(array)
    mat.setNearNullSpace(PETSc.NullSpace().create(vectors=modes, comm=PETSc.COMM_SELF))
    ksp = solver_of(mat, ksp_type="cg", **OWN_PC)
    solved(ksp)
    given = ksp.getPC().getPythonContext().M.settings.options
    assert given["block_size"] == 2 and given["near_null"].shape == (200, 2)


def case_unknown_names_are_refused():
    mat = aij(plate(4))
    ksp = solver_of(mat, pc_wollemi_type="amgg", **OWN_PC)
    refused(InvalidArgument, "did you mean", ksp.setUp)
    ksp = solver_of(mat, ksp_wollemi_type="ccg", pc_type="none", **OWN_KSP)
    refused(InvalidArgument, "known: auto, direct", solved, ksp)


# ---- solvers


def case_every_kind_of_solver():
    mat = aij(plate(20))
    wanted = solved(solver_of(mat, ksp_type="preonly", pc_type="lu"))
    for name in EXECUTORS:
        for kind in ("auto", "direct", "cg", "gmres:restart=40"):
            given = {"ksp_wollemi_type": kind, "ksp_wollemi_executor": name, "pc_type": "none"}
            ksp = solver_of(mat, **OWN_KSP, **given)
            np.testing.assert_allclose(solved(ksp), wanted, rtol=1e-6)
            result = ksp.getPythonContext().result
            assert result.converged and ksp.getIterationNumber() == result.iterations
            assert result.executor.startswith(name)


def case_preconditioners_of_petsc_and_of_ours():
    mat = aij(plate(24))
    counts = {}
    own = {**OWN_PC, "pc_wollemi_type": "amg"}
    for name, pc in {"icc": {"pc_type": "icc"}, "none": {"pc_type": "none"}, "own": own}.items():
        ksp = solver_of(mat, ksp_wollemi_type="cg", **OWN_KSP, **pc)
        solved(ksp)
        counts[name] = ksp.getIterationNumber()
    assert counts["own"] < counts["icc"] < counts["none"]


def case_the_default_sets_the_pc_aside():
    ksp = solver_of(aij(plate(12)), **OWN_KSP)
    solved(ksp)
    assert ksp.getPC().getType() == "none"


def case_new_values_in_a_solver():
    S = plate(14)
    for kind in ("auto", "direct", "cg"):
        mat = aij(S)
        ksp = solver_of(mat, ksp_wollemi_type=kind, **OWN_KSP, **OWN_PC)
        first = solved(ksp)
        np.testing.assert_allclose(solved(ksp), first, rtol=1e-6)
        mat.scale(2.0)
        ksp.setOperators(mat)
        np.testing.assert_allclose(solved(ksp), first / 2, rtol=1e-6)


def case_the_initial_guess():
    mat = aij(plate(20))
    ksp = solver_of(mat, ksp_wollemi_type="cg", pc_type="none", **OWN_KSP)
    x = solved(ksp)
    assert ksp.getIterationNumber() > 10
    solved(ksp, guess=x)
    assert ksp.getIterationNumber() <= 1


def case_norms_and_monitors():
    mat = aij(plate(20))
    ksp = solver_of(mat, ksp_wollemi_type="cg", pc_type="none", **OWN_KSP)
    ksp.setConvergenceHistory()
    seen = []
    ksp.setMonitor(lambda ksp, its, norm: seen.append((its, norm)))
    solved(ksp)
    assert len(ksp.getConvergenceHistory()) == ksp.getIterationNumber() + 1
    assert [its for its, _ in seen] == list(range(ksp.getIterationNumber() + 1))
    assert ksp.getResidualNorm() <= 1e-10 * 20


def case_a_limit_of_iterations():
    mat = aij(plate(30))
    ksp = solver_of(mat, ksp_wollemi_type="cg", ksp_max_it=3, pc_type="none", **OWN_KSP)
    b, x = mat.createVecs()
    b.set(1.0)
    ksp.solve(b, x)
    assert ksp.getConvergedReason() == REASON.DIVERGED_MAX_IT
    assert ksp.getIterationNumber() == 3


def case_a_null_space():
    n = 12
    line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n)).tolil()
    line[0, 0] = line[n - 1, n - 1] = 1.0
    mat = aij(sp.kronsum(line.tocsr(), line.tocsr(), format="csr").astype(SCALAR))
    mat.setNullSpace(PETSc.NullSpace().create(constant=True, comm=PETSc.COMM_SELF))
    ksp = solver_of(mat, ksp_wollemi_type="cg", pc_type="none", **OWN_KSP)
    b, x = mat.createVecs()
    array = np.linspace(-1, 1, n * n).astype(SCALAR)
    b.setArray(array - array.mean())
    ksp.solve(b, x)
    assert ksp.getConvergedReason() > 0
    assert abs(x.getArray().sum()) < 1e-8


def case_operators_without_entries():
    S = plate(10)
    assembled = aij(S)

    class Map:
        def mult(self, mat, x, y):
            assembled.mult(x, y)

    shell = PETSc.Mat().createPython(S.shape, Map(), comm=PETSc.COMM_SELF)
    shell.setUp()
    with options(ksp_rtol=1e-10, ksp_wollemi_type="cg", **OWN_KSP, **OWN_PC):
        ksp = PETSc.KSP().create(PETSc.COMM_SELF)
        ksp.setOperators(shell, assembled)
        ksp.setFromOptions()
    solved(ksp)
    assert ksp.getIterationNumber() < 20


def case_newtons_method_of_petsc():
    S = plate(12)
    mat = aij(S)
    diagonal = S.diagonal()

    def function(snes, x, f):
        u = x.getArray(readonly=True)
        f.setArray(S @ u + 0.1 * u**3 - 1.0)

    def jacobian(snes, x, J, P):
        shifted = S + sp.diags_array(0.3 * x.getArray(readonly=True) ** 2)
        P.setValuesCSR(
            S.indptr.astype(PETSc.IntType), S.indices.astype(PETSc.IntType), shifted.data
        )
        P.assemble()

    assert diagonal.size == mat.getSize()[0]
    x, f = mat.createVecs()
    with options(ksp_type="cg", ksp_rtol=1e-10, **OWN_PC):
        snes = PETSc.SNES().create(PETSc.COMM_SELF)
        snes.setFunction(function, f)
        snes.setJacobian(jacobian, mat)
        snes.setFromOptions()
    snes.solve(None, x)
    assert snes.getConvergedReason() > 0
    u = x.getArray()
    assert np.linalg.norm(S @ u + 0.1 * u**3 - 1.0) < 1e-6


def case_what_is_printed():
    ksp = solver_of(aij(plate(6)), ksp_wollemi_type="cg", **OWN_KSP, **OWN_PC)
    solved(ksp)
    viewer = PETSc.Viewer().createASCII("/dev/null", comm=PETSc.COMM_SELF)
    ksp.view(viewer)
    ksp.reset()
    assert ksp.getPythonContext().result is not None


# ---- several processes


def parallel() -> None:
    """Run on each process of ``mpirun``: our preconditioner within additive Schwarz."""
    rows = 400
    mat = PETSc.Mat().createAIJ((rows, rows), nnz=3)
    mat.setUp()
    for row in range(*mat.getOwnershipRange()):
        for column, value in ((row - 1, -1.0), (row, 2.0), (row + 1, -1.0)):
            if 0 <= column < rows:
                mat.setValue(row, column, value)
    mat.assemble()
    refused(InvalidMatrix, "-sub_pc_type python", wl.from_petsc, mat)
    refused(InvalidMatrix, "processes", petsc.from_petsc, mat)
    own = {f"sub_{name}": value for name, value in OWN_PC.items()}
    with options(ksp_type="cg", ksp_rtol=1e-9, pc_type="bjacobi", sub_pc_wollemi_type="ic", **own):
        ksp = PETSc.KSP().create()
        ksp.setOperators(mat)
        ksp.setFromOptions()
    b, x = mat.createVecs()
    b.set(1.0)
    ksp.solve(b, x)
    assert ksp.getConvergedReason() > 0
    assert ksp.getIterationNumber() < 40


def main() -> None:
    """Run all cases, and print a JSON object of their outcomes."""
    outcomes = {}
    for name, case in list(globals().items()):
        if name.startswith("case_"):
            try:
                case()
                outcomes[name] = ""
            except Exception:
                outcomes[name] = traceback.format_exc()
    print(json.dumps(outcomes))


if __name__ == "__main__":
    parallel() if "parallel" in sys.argv else main()
