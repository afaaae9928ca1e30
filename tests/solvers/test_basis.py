"""GMRES with dtypes of its basis."""

from __future__ import annotations

import json

import numpy as np
import pytest

import wollemi as wl
from wollemi.core.errors import UnsupportedDtype

A = np.diag(np.arange(2.0, 42.0)) + np.diag(np.full(39, 0.5), 1)


def test_the_basis_has_the_bytes_of_its_dtype() -> None:
    matrix = wl.Csr(A, executor="reference")
    sizes = {
        basis: wl.solvers.Gmres(matrix, basis=basis).workspace("float64", 1).basis.nbytes
        for basis in (None, "float32", "float16", "bfloat16")
    }
    assert sizes[None] == 2 * sizes["float32"] == 4 * sizes["float16"] == 4 * sizes["bfloat16"]


@pytest.mark.parametrize("name", ["Gmres", "Fgmres", "Lgmres", "Gcrotmk"])
def test_all_of_the_family_take_it(name: str) -> None:
    solver = getattr(wl.solvers, name)(wl.Csr(A), M="jacobi", basis="float16", rtol=1e-11)
    b = np.ones(40)
    result = solver.solve(b)
    assert result.converged
    assert np.linalg.norm(b - A @ result.x) <= 1e-11 * np.linalg.norm(b)
    assert solver.workspace("float64", 1).basis.dtype == np.float16


def test_settings_and_copies_keep_it() -> None:
    solver = wl.solvers.Gmres(wl.Csr(A, executor="reference"), basis="bfloat16", restart=7)
    again = wl.solvers.from_settings(json.loads(json.dumps(solver.settings.to_dict())))
    assert again == wl.solvers.Gmres(basis="bfloat16", restart=7)
    for made in (solver.to("omp"), solver.astype("float32"), solver.H, again.on(wl.Csr(A))):
        assert made.basis == "bfloat16"


def test_complex_solvers_store_pairs_of_float32_alone() -> None:
    matrix = wl.Csr(A + 1j * np.eye(40))
    solver = wl.solvers.Gmres(matrix, basis="float32")
    assert solver.workspace("complex128", 1).basis.dtype == np.complex64
    with pytest.raises(UnsupportedDtype, match="computed in complex128 are not stored in float16"):
        wl.solvers.Gmres(matrix, basis="float16")


def test_a_real_solver_with_complex_right_hand_sides_says_what_it_cannot_store() -> None:
    solver = wl.solvers.Gmres(wl.Csr(A), basis="float32")
    assert solver.solve(np.ones(40) * 1j).converged
    with pytest.raises(UnsupportedDtype):
        wl.solvers.Gmres(wl.Csr(A), basis="float16").solve(np.ones(40) * 1j)


def test_a_basis_as_wide_as_the_solver_is_not_rounded() -> None:
    matrix, b = wl.Csr(A), np.ones(40)
    plain, same = (wl.solvers.Gmres(matrix, basis=basis).solve(b) for basis in (None, "float64"))
    np.testing.assert_array_equal(plain.x, same.x)
    with pytest.raises(UnsupportedDtype, match="not stored in int8"):
        wl.solvers.Gmres(matrix, basis="int8")
