"""Solve one system in a program of PETSc, with its preconditioners and with wollemi's.

    python examples/petsc_options.py [n]

The program knows nothing of wollemi: options choose the classes of `wollemi.interop.petsc`, as on
the command line of any program that reads the options of PETSc. The system is Poisson's equation on
a cube of n^3 cells. Needs petsc4py; the preconditioner of hypre where PETSc was built with it.
"""

import sys
from time import perf_counter

import numpy as np
import petsc4py

cells = int(sys.argv[1]) if len(sys.argv) > 1 else 30
petsc4py.init([])

#: Solves of each choice; the fastest is printed.
ROUNDS = 3

from petsc4py import PETSc  # noqa: E402

OWN = "-pc_type python -pc_python_type wollemi.interop.petsc.Preconditioner"
SOLVER = "-ksp_type python -ksp_python_type wollemi.interop.petsc.Solver"
CHOICES = {
    "CG, gamg of PETSc": "-ksp_type cg -pc_type gamg",
    "CG, BoomerAMG of hypre": (
        "-ksp_type cg -pc_type hypre -pc_hypre_boomeramg_strong_threshold 0.5"
    ),
    "CG, Amg of wollemi": f"-ksp_type cg {OWN} -pc_wollemi_type amg",
    "the same on one thread": f"-ksp_type cg {OWN} -pc_wollemi_executor omp:1",
    "Cg and Amg of wollemi": f"{SOLVER} -ksp_wollemi_type cg {OWN}",
    "wollemi chooses": SOLVER,
}


def poisson(n: int) -> PETSc.Mat:
    """Return the matrix of the seven-point stencil."""
    line = np.arange(n)
    x, y, z = (part.ravel() for part in np.meshgrid(line, line, line, indexing="ij"))
    row = (x * n + y) * n + z
    rows, columns = [row], [row]
    for part, stride in ((x, n * n), (y, n), (z, 1)):
        inside = part < n - 1
        rows += [row[inside], row[inside] + stride]
        columns += [row[inside] + stride, row[inside]]
    values = np.concatenate([np.full(row.size, 6.0), np.full(sum(map(len, rows[1:])), -1.0)])
    mat = PETSc.Mat().createAIJ((n**3, n**3), nnz=7, comm=PETSc.COMM_SELF)
    order = np.lexsort((np.concatenate(columns), np.concatenate(rows)))
    count = np.bincount(np.concatenate(rows), minlength=n**3)
    indptr = np.concatenate([[0], np.cumsum(count)]).astype(PETSc.IntType)
    indices = np.concatenate(columns)[order].astype(PETSc.IntType)
    mat.setPreallocationCSR((indptr, indices, values[order].astype(PETSc.ScalarType)))
    mat.assemble()
    return mat


def solved(mat: PETSc.Mat, options: str) -> tuple[int, float, float] | None:
    """Return iterations, seconds of the set-up and of the solve; None if PETSc lacks a package."""
    database = PETSc.Options()
    database.insertString(f"{options} -ksp_rtol 1e-8 -ksp_norm_type unpreconditioned")
    b, x = mat.createVecLeft(), mat.createVecRight()
    b.set(1.0)
    ksp = PETSc.KSP().create(PETSc.COMM_SELF)
    ksp.setOperators(mat)
    try:
        ksp.setFromOptions()
    except PETSc.Error:
        return None
    finally:
        for name in database.getAll():
            database.delValue(name)
    begin = perf_counter()
    ksp.setUp()
    ready = perf_counter()
    ksp.solve(b, x)
    end = perf_counter()
    residual = b.duplicate()
    mat.mult(x, residual)
    residual.axpy(-1.0, b)
    assert residual.norm() <= 1.01e-8 * b.norm(), options
    return ksp.getIterationNumber(), ready - begin, end - ready


def main() -> None:
    mat, small = poisson(cells), poisson(6)
    print(f"{cells**3} unknowns, true residual at most 1e-8 of b")
    print(f"{'':24} iterations  set-up, s  solve, s")
    for name, options in CHOICES.items():
        solved(small, options)  # the first use of a method imports modules
        made = [solved(mat, options) for _ in range(ROUNDS)]
        if made[0] is None:
            print(f"{name:24} not in this PETSc")
        else:
            least = min(made, key=lambda times: times[1] + times[2])
            print(f"{name:24} {least[0]:10} {least[1]:10.3f} {least[2]:9.3f}")


if __name__ == "__main__":
    main()
