"""Incomplete factors on emulated waves equal the reference's, with new values on the device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.preconditioners import Ic, Ilu

from ...solvers.conftest import DTYPES, block, convection, poisson, tolerance
from ..needs import tool
from .build import compiler
from .executor import WIDTHS, LockstepExecutor

pytestmark = tool(compiler() is not None, "no C++ compiler: install g++, or set CXX")


@pytest.mark.pairs
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("kind", [Ilu, Ic])
@pytest.mark.parametrize("apply", ["exact", "jacobi:3", "isai:1"])
@pytest.mark.parametrize("level", [0, 1])
def test_waves_make_the_factors_of_the_reference(
    rng: Any, kind: Any, width: int, dtype: str, apply: str, level: int
) -> None:
    S = (poisson if kind is Ic else convection)(9, dtype)
    x = block(rng, (81, 2), dtype)
    applied = []
    for on in (LockstepExecutor(width), wl.executor("reference")):
        A = wl.Csr(S, executor=on)
        M = kind(A, level=level, factor_sweeps=3, apply=apply)
        before = M @ x
        A.update_values(4 * S.data)
        M.update()
        np.testing.assert_allclose(4 * (M @ x), before, rtol=1e3 * tolerance(dtype))
        applied.append(before)
    np.testing.assert_allclose(*applied, rtol=1e3 * tolerance(dtype), atol=1e3 * tolerance(dtype))


@pytest.mark.parametrize("kind", [Ilu, Ic])
@pytest.mark.parametrize("apply", ["exact", "jacobi:3"])
def test_new_values_leave_numbers_alone_to_the_host(
    monkeypatch: pytest.MonkeyPatch, kind: Any, apply: str
) -> None:
    on, sizes = LockstepExecutor(32), []
    S = poisson(16)
    A = wl.Csr(S, executor=on)
    M = kind(A, apply=apply)
    to_host = LockstepExecutor.to_host

    def seen(self: LockstepExecutor, array: Any) -> np.ndarray[Any, Any]:
        sizes.append(array.size)
        return to_host(self, array)

    A.update_values(2 * S.data)
    monkeypatch.setattr(LockstepExecutor, "to_host", seen)
    M.update()
    assert 1 < len(sizes) < 8 and max(sizes) == 1
