"""Patterns of incomplete factors on emulated waves equal the reference's, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.preconditioners import Ict, Ilut

from ...solvers.conftest import DTYPES, convection, poisson
from ...solvers.test_parilut import AWKWARD, assert_alike
from ..needs import tool
from .build import compiler
from .executor import WIDTHS, LockstepExecutor

pytestmark = tool(compiler() is not None, "no C++ compiler: install g++, or set CXX")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("kind", [Ilut, Ict])
def test_waves_find_the_pattern_of_the_reference(kind: Any, width: int, dtype: str) -> None:
    S = (poisson if kind is Ict else convection)(14, dtype)
    M, R = (
        kind(wl.Csr(S, executor=on), drop=1e-4, factor_sweeps=4, apply="jacobi:3")
        for on in (LockstepExecutor(width), wl.executor("reference"))
    )
    assert_alike(M, R)


@pytest.mark.parametrize("name", AWKWARD)
def test_so_they_do_of_awkward_matrices(name: str) -> None:
    S = AWKWARD[name]()
    M, R = (
        Ilut(wl.Csr(S, executor=on), factor_sweeps=3, apply="jacobi:2")
        for on in (LockstepExecutor(32), wl.executor("reference"))
    )
    assert_alike(M, R)


def test_nothing_as_long_as_the_matrix_goes_to_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    on, sizes = LockstepExecutor(32), [0]
    A = wl.Csr(convection(16), executor=on)
    to_host = LockstepExecutor.to_host

    def seen(self: LockstepExecutor, array: Any) -> np.ndarray[Any, Any]:
        sizes.append(array.size)
        return to_host(self, array)

    monkeypatch.setattr(LockstepExecutor, "to_host", seen)
    M = Ilut(A)
    assert "5 rounds of sweeps" in M.notes[0]
    # the plans of both factors read their row pointers when M is applied for the first time
    assert len(sizes) > 1 and [size for size in sizes if size > 16] == [257, 257]
