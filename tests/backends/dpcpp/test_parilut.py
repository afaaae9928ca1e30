"""The search for the pattern of incomplete factors keeps to the device."""

from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.preconditioners import Ict, Ilut

from ...solvers.conftest import convection, poisson
from .needs_dpcpp import needs_dpcpp

pytestmark = needs_dpcpp


@pytest.mark.parametrize("kind", [Ilut, Ict])
def test_nothing_as_long_as_the_matrix_goes_to_the_host(
    monkeypatch: pytest.MonkeyPatch, kind: type
) -> None:
    from wollemi.backends.dpcpp.array import UsmArray

    on, sizes = wl.executor("dpcpp:cpu"), [0]
    S = (poisson if kind is Ict else convection)(16)
    A, asnumpy = wl.Csr(S, executor=on), UsmArray.asnumpy
    kind(A)

    def seen(self: Any) -> np.ndarray[Any, Any]:
        sizes.append(self.size)
        return asnumpy(self)

    monkeypatch.setattr(UsmArray, "asnumpy", seen)
    M = kind(A)
    assert "5 rounds of sweeps" in M.notes[0]
    # the plans of both factors read their row pointers when M is applied for the first time
    assert len(sizes) > 1 and [size for size in sizes if size > 16] == [257, 257]
