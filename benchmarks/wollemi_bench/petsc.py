"""Krylov solvers of PETSc on one thread, in a Python of its own that has ``petsc4py``.

Debian has it: ``apt-get install python3-petsc4py``.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .peers import Absent

#: The Python that has petsc4py, where Debian puts it.
PYTHON = "/usr/bin/python3"

_SCRIPT = """
import json, sys, time
import petsc4py
petsc4py.init([])
from petsc4py import PETSc
import numpy as np
held = np.load(sys.argv[1])
n = held["indptr"].size - 1
csr = (held["indptr"], held["indices"], held["data"])
A = PETSc.Mat().createAIJ((n, n), csr=csr, comm=PETSc.COMM_SELF)
A.assemble()
for name, value in json.loads(sys.argv[2]).items():
    PETSc.Options()[name] = value
solver = PETSc.KSP().create(PETSc.COMM_SELF)
solver.setOperators(A)
solver.setTolerances(rtol=float(sys.argv[3]), atol=1e-50, max_it=5000)
solver.setNormType(PETSc.KSP.NormType.UNPRECONDITIONED)
solver.setFromOptions()
b = A.createVecRight()
b.setArray(held["b"])
x = b.duplicate()
times = [time.perf_counter()]
solver.setUp()
times.append(time.perf_counter())
solver.solve(b, x)
times.append(time.perf_counter())
np.save(sys.argv[4], x.getArray())
print(json.dumps([solver.getIterationNumber(), times[1] - times[0], times[2] - times[1]]))
"""

_VERSION = "from petsc4py import PETSc; print('.'.join(map(str, PETSc.Sys.getVersion())))"


class Taken(NamedTuple):
    """Iterations, seconds of the set-up, seconds of the solve, the solution."""

    iterations: int
    setup: float
    solve: float
    x: np.ndarray[Any, Any]


def is_here() -> bool:
    """Return whether there is a Python with petsc4py where Debian puts it."""
    return Path(PYTHON).exists() and _run("-c", "import petsc4py").returncode == 0


def version() -> str:
    """Return PETSc's version; raises Absent if there is no petsc4py."""
    done = _run("-c", _VERSION) if Path(PYTHON).exists() else None
    if done is None or done.returncode:
        raise Absent("not installed: apt-get install python3-petsc4py")
    return done.stdout.strip()


def _run(*words: str) -> subprocess.CompletedProcess[str]:
    """Run that Python; Debian's finds the module by a variable, unless petsc-dev is there too."""
    environment = dict(os.environ)
    folders = sorted(Path("/usr/lib/petscdir").glob("*/*-real"))
    if folders:
        environment.setdefault("PETSC_DIR", str(folders[-1]))
    return subprocess.run(
        [PYTHON, *words], env=environment, capture_output=True, text=True, check=False
    )


def cg(S: Any, b: np.ndarray[Any, Any], options: Mapping[str, str], rtol: float) -> Taken:
    """Return the result of CG, or of the method of ``ksp_type``, to a true residual.

    Parameters
    ----------
    S : scipy.sparse.csr_array
        The matrix, which fits 32-bit indices.
    b : array
        The right-hand side.
    options : mapping
        PETSc's, by name: ``pc_type`` and its options.
    rtol : float
        The residual by the norm of ``b``.

    Raises
    ------
    RuntimeError
        With the last line of the process's output, if it fails.
    """
    indices, indptr = (a.astype(np.int32) for a in (S.indices, S.indptr))
    with tempfile.TemporaryDirectory(prefix="wollemi-bench-") as folder:
        path = Path(folder) / "system.npz"
        np.savez(path, data=S.data, indices=indices, indptr=indptr, b=b)
        given = json.dumps({"ksp_type": "cg", **options})
        done = _run("-c", _SCRIPT, str(path), given, str(rtol), f"{folder}/x.npy")
        if done.returncode:
            raise RuntimeError((done.stderr.strip() or "PETSc failed").splitlines()[-1])
        x = np.load(f"{folder}/x.npy")
    iterations, setup, solve = json.loads(done.stdout)
    return Taken(int(iterations), float(setup), float(solve), x)
