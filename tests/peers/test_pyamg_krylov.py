"""PyAMG's own tests of its Krylov methods, run with wollemi's methods."""

import importlib.util
from typing import Any

import numpy as np
import pytest

import wollemi as wl

from .loading import test_module, tests_of

if importlib.util.find_spec("pyamg") is None:
    pytest.skip("PyAMG is not installed: pip install 'wollemi[test]'", allow_module_level=True)

#: Ten iterations of BiCGSTAB on PyAMG's system of ten unknowns leave 0.06 or 0.35 of the residual,
#: as rounding has it; the sums of the reference are NumPy's, as PyAMG's are.
WHERE = "reference"

#: PyAMG keeps as many vectors as there are iterations unless it is told to restart.
LONGEST = 40


def _solved(solver: Any, b: Any, x0: Any, callback: Any, residuals: list | None) -> Any:
    b = np.ravel(b)
    result = solver.solve(b, None if x0 is None else np.ravel(x0), callback=callback)
    if residuals is not None:
        residuals[:] = result.residuals
    return result.x, result.info


def _short(kind: type) -> Any:
    """Return a method with PyAMG's signature; its criteria other than 'rr' are PyAMG's own."""

    def method(
        A, b, x0=None, tol=1e-5, criteria="rr", maxiter=None, M=None, callback=None, residuals=None
    ):
        if criteria != "rr":
            raise ValueError(f"wollemi has no criterion {criteria!r}")
        solver = kind(A, M, rtol=tol, maxiter=maxiter, executor=WHERE)
        return _solved(solver, b, x0, callback, residuals)

    method.__name__ = kind.__name__.lower()
    return method


def gmres(
    A, b, x0=None, tol=1e-5, restart=None, maxiter=None, M=None, callback=None, residuals=None,
    **how,
):  # fmt: skip
    """GMRES with PyAMG's signature: without restart, ``maxiter`` counts iterations."""
    inner = min(A.shape[0], LONGEST if maxiter is None else maxiter) if restart is None else restart
    count = inner if restart is None else restart * (maxiter or 10)
    solver = wl.solvers.Gmres(A, M, rtol=tol, restart=inner, maxiter=count, executor=WHERE)
    return _solved(solver, b, x0, callback, residuals)


cg, bicgstab = _short(wl.solvers.Cg), _short(wl.solvers.Bicgstab)

krylov = test_module(
    "pyamg.krylov.tests.test_krylov",
    {
        "pyamg.krylov": {"cg": cg, "bicgstab": bicgstab, "gmres": gmres},
        "pyamg.krylov._gmres_mgs": {"gmres_mgs": gmres},
    },
)
with_scipy = test_module(
    "pyamg.krylov.tests.test_scipy", {"pyamg.krylov._gmres_mgs": {"gmres_mgs": gmres}}
)

globals().update(tests_of(krylov) | tests_of(with_scipy))
