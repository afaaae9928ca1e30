"""The imports of ``import wollemi``; later imports are found when they are needed."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import wollemi as wl

ROOT = Path(__file__).parents[2]

#: Modules that the import of the package does not need.
LATER = (
    "numpy scipy torch jax cupy dpctl mpi4py matplotlib typer rich ml_dtypes pyamg",
    "importlib.metadata wollemi_bench wollemi.backends wollemi.cli wollemi.interop wollemi.solvers",
    "wollemi.core.formats wollemi.core.step wollemi.core.operations wollemi.core.distributed",
)


def run(program: str) -> str:
    """Run a program in a process of its own and return its output."""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_import_loads_nothing_that_can_wait():
    loaded = run("import sys, wollemi; print(*sys.modules)").split()
    assert set(" ".join(LATER).split()).isdisjoint(loaded)


def test_matrices_load_no_solvers_and_a_first_solve_no_scipy():
    matrix = "import sys, numpy as np, wollemi as wl; A = wl.Csr(np.eye(3), executor='omp'); "
    loaded = run(matrix + "A @ np.ones(3); print(*sys.modules)").split()
    others = ("wollemi.solvers", "wollemi.core.distributed", "scipy", "torch", "jax")
    assert set(others).isdisjoint(loaded)
    loaded = run(matrix + "wl.solve(A, np.ones(3)); print(*sys.modules)").split()
    assert "wollemi.solvers.auto.dense" in loaded and "scipy" not in loaded
    loaded = run(matrix + "wl.solve(A, np.ones(3), maxiter=9); print(*sys.modules)").split()
    assert "wollemi.solvers.krylov.cg" in loaded
    assert {"scipy", "torch", "jax", "wollemi.solvers.krylov.idr"}.isdisjoint(loaded)


def test_a_solver_by_name_loads_no_others():
    loaded = run("import sys, wollemi as wl; wl.solvers.Tfqmr; print(*sys.modules)").split()
    assert "wollemi.solvers.krylov.tfqmr" in loaded
    assert {"wollemi.solvers.krylov.idr", "wollemi.solvers.eigen.lobpcg"}.isdisjoint(loaded)


@pytest.mark.parametrize(
    "program",
    [
        "print(wl.solvers.from_settings({'solver': 'pipecg'}).on(A).solve(b).converged)",
        "print(wl.solve(A, b, method='lsqr').converged)",
        "print(pickle.loads(bytes.fromhex(GIVEN)).solve(b).converged)",
        "print('blockcg' in wl.solvers.registry.SOLVERS and len(wl.solvers.registry.SOLVERS) > 15)",
        "print({'Idr', 'Lobpcg', 'from_settings'} <= set(dir(wl.solvers)))",
        "from wollemi.solvers import *; print(issubclass(Qmr, KrylovSolver))",
        "print({'Csr', 'solve', 'linalg'} <= set(dir(wl)) and wl.io.read is wl.read)",
        "print(A.asformat('ell').format == 'ell')",
        "print(wl.distribute(A, ['omp:1', 'omp:1']).shape == (3, 3))",
    ],
)
def test_what_was_never_imported_is_found(program):
    given = __import__("pickle").dumps(wl.solvers.Minres(wl.Csr([[2.0, 1.0], [1.0, 2.0]])))
    size = 2 if "GIVEN" in program else 3
    assert (
        run(
            f"import pickle, numpy as np, wollemi as wl; GIVEN = {given.hex()!r}; "
            f"A, b = wl.Csr(2 * np.eye({size}), executor='omp'), np.ones({size}); {program}"
        )
        == "True\n"
    )


def test_steps_of_solvers_that_are_loaded_late_have_their_kernels():
    said = run(
        "import numpy as np, wollemi as wl; A = wl.Csr(np.eye(3), executor='omp'); A @ np.ones(3); "
        "from wollemi.solvers.krylov import cg; "
        "kernel = A.executor.kernels.find(cg.update.operation); "
        "print(type(kernel).__name__)"
    )
    assert said == "builtin_function_or_method\n", "compiled, not computed in blocks by NumPy"


def declared_for_type_checkers(path: Path) -> set[str]:
    """Return the names that a package imports under ``if TYPE_CHECKING``."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            imports = [one for one in node.body if isinstance(one, ast.ImportFrom)]
            return {name.asname or name.name for one in imports for name in one.names}
    return set()


def test_type_checkers_see_the_names_that_are_imported_late():
    declared = declared_for_type_checkers(ROOT / "src/wollemi/__init__.py")
    assert declared == set(wl.__all__) == set(" ".join(wl._SOURCES.values()).split())
    assert declared_for_type_checkers(ROOT / "solvers/__init__.py") <= set(wl.solvers.__all__)


def test_a_name_that_is_none_says_so():
    with pytest.raises(AttributeError, match="no solver is called 'Gmress'"):
        _ = wl.solvers.Gmress
    with pytest.raises(AttributeError, match="solvers are classes"):
        _ = wl.solvers.gmress
    with pytest.raises(AttributeError, match="module 'wollemi' has no attribute 'Crs'"):
        _ = wl.Crs  # type: ignore[attr-defined]
