"""Launches and waits of operations that make new matrices: their number, on an emulated GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.core.formats import selection
from wollemi.solvers.preconditioners import Amg  # its steps are in the programs of all tests

from ..lockstep.build import compiler
from ..lockstep.executor import LockstepExecutor, native
from ..needs import tool

pytestmark = tool(compiler() is not None, "no C++ compiler: install g++, or set CXX")

#: One counts, one makes pointers of few counts, one fills rows in.
OF_COUNTED = 3


def counted(call: Callable[[], Any], on: Any, patch: pytest.MonkeyPatch) -> tuple[int, int]:
    """Return how many kernels a call launches, and how often it waits for the device."""
    waits = []
    to_host = on.to_host

    def noted(array: Any) -> Any:
        waits.append(array)
        return to_host(array)

    def read(transfer: Any) -> list[Any]:
        waits.append(transfer)
        return [to_host(array) for array in transfer.arrays]

    call()  # makes the data kept with the operands
    with patch.context() as patched, on.noting() as launches:
        patched.setattr(on, "to_host", noted)
        patched.setattr(on.transfer_type, "read", read)
        call()
    return len(launches), len(waits)


def operations(on: Any) -> dict[str, Callable[[], Any]]:
    S = sp.random_array((40, 30), density=0.2, format="csr", rng=np.random.default_rng(0))
    A = wl.Csr(S, executor=on)
    B, ones = 1.5 * A, wl.Csr(sp.eye_array(3, format="csr"), executor=on)
    mask = np.arange(30) % 2 == 0
    placed = native(mask.copy())
    return {
        "A > 0": lambda: A > 0,
        "A < B": lambda: A < B,
        "A[:, a:b]": lambda: A[:, 3:17],
        "A[:, mask]": lambda: A[:, mask],
        "A[:, mask of the device]": lambda: A[:, placed],
        "kron": lambda: wl.sparse.kron(ones, A),
        "vstack": lambda: wl.sparse.vstack([A, B]),
    }


@pytest.mark.parametrize(
    ("name", "launches", "waits"),
    [
        ("A > 0", OF_COUNTED, 1),
        ("A < B", OF_COUNTED, 1),
        ("A[:, a:b]", OF_COUNTED, 1),
        ("A[:, mask]", OF_COUNTED + 1, 1),  # and one that numbers the columns
        ("A[:, mask of the device]", OF_COUNTED + 1, 1),
        ("kron", 2, 0),
        ("vstack", 2, 0),  # the other arrays are copied
    ],
)
def test_launches_and_waits(
    name: str, launches: int, waits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    on: Any = LockstepExecutor(32)
    assert counted(operations(on)[name], on, monkeypatch) == (launches, waits)


@pytest.mark.parametrize(
    ("name", "launches"),
    [("A[:, a:b]", 0), ("kron", 1), ("vstack", 0)],  # values are gathered, multiplied and copied
)
def test_with_a_kept_pattern_the_values_are_moved_alone(
    name: str, launches: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    on: Any = LockstepExecutor(32)
    call, anew = (operations(on)[name] for _ in range(2))
    assert counted(call, on, monkeypatch)[0] > launches
    assert counted(call, on, monkeypatch) == (launches, 0)
    np.testing.assert_array_equal(call().to_dense(), anew().to_dense())


@pytest.mark.parametrize("packed", [1, 1 << 16], ids=["bits", "bytes"])
def test_a_mask_of_the_device_has_the_columns_of_a_mask_of_the_host(
    packed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selection, "PACKED", packed)
    on: Any = LockstepExecutor(32)
    S = sp.random_array((40, 30), density=0.2, format="csr", rng=np.random.default_rng(1))
    A, mask = wl.Csr(S, executor=on), np.arange(30) % 3 == 0
    for given in (mask, native(mask.copy())):
        np.testing.assert_array_equal(A[:, given].to_dense(), S.toarray()[:, mask])


def test_waits_and_launches_of_a_set_up_of_multigrid(monkeypatch: pytest.MonkeyPatch) -> None:
    """A level waits for strong couplings, coarse rows, short rows, three products and a bound."""
    on: Any = LockstepExecutor(32)
    line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(18, 18))
    A = wl.Csr(sp.kronsum(line, line, format="csr"), executor=on)
    made = []

    def call() -> None:
        fresh = wl.Csr._from_arrays(on, A.shape, A.data, A.indices, A.indptr)
        made.append(Amg(fresh, coarse_rows=40))

    launches, waits = counted(call, on, monkeypatch)
    assert len(made[-1].levels) == 2
    # two for each product, three plans of a level, and ten of the hierarchy as a whole
    assert (launches, waits) == (160, 2 * (4 + 6 + 3) + 10)
