"""Running sums on GPUs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from wollemi.backends.gpu import scans

from ..lockstep.build import compiler
from ..lockstep.executor import LockstepExecutor
from ..needs import cuda, tool

PLACES = [
    pytest.param("lockstep:32", id="32 lanes"),
    pytest.param("lockstep:64", id="64 lanes"),
    pytest.param("cuda", id="cuda", marks=pytest.mark.gpu),
]
pytestmark = tool(compiler() is not None, "no C++ compiler: install g++, or set CXX")


def executor_of(name: str) -> Any:
    kind, _, lanes = name.partition(":")
    return LockstepExecutor(int(lanes)) if kind == "lockstep" else cuda()


@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("numbers", [0, 1, 2047, 4096, 13_001])
@pytest.mark.parametrize("name", PLACES)
def test_sums_of_what_comes_before(name: str, numbers: int, index: str) -> None:
    """One part, parts of one step of a block, and of several."""
    executor = executor_of(name)
    lengths = np.random.default_rng(numbers).integers(0, 1000, numbers).astype(index)
    sums = scans.running_sum(executor, executor.from_host(lengths))
    assert sums.dtype == index
    want = np.concatenate([[0], np.cumsum(lengths)])
    np.testing.assert_array_equal(executor.to_host(sums), want)


def test_parts_of_several_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scans, "PARTS", 2)
    executor, lengths = LockstepExecutor(32), np.arange(9000) % 7
    sums = scans.running_sum(executor, executor.from_host(lengths))
    np.testing.assert_array_equal(executor.to_host(sums)[1:], np.cumsum(lengths))
