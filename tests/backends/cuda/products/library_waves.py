"""Emulated waves that have kernels of one module alone, and NumPy for the vendor's library."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from wollemi.backends.cuda.products import dense_library

from ...lockstep.build import Library
from ...lockstep.executor import LockstepExecutor
from ...test_products import wide


def waves(monkeypatch: pytest.MonkeyPatch, *modules: Any) -> LockstepExecutor:
    """Return waves of 32 lanes; ``modules`` are the ones that import ``multiply``."""
    executor = LockstepExecutor(32)

    def function(symbol: str, text: Any) -> Any:
        source = text().replace("#define WL_CUDA 1", "#define WL_LOCKSTEP 1")
        return executor.device._launcher(Library(source, symbol), symbol)

    def multiply(
        executor: Any, A: Any, B: Any, C: Any, alpha: float, *, transposed: bool = False
    ) -> None:
        assert all(dense_library.is_taken(x) for x in (A, B, C))
        with np.errstate(invalid="ignore", over="ignore"):
            C[...] = (alpha * (wide(A) @ wide(B.T if transposed else B))).astype(C.dtype)

    monkeypatch.setattr(executor.device, "function", function, raising=False)
    monkeypatch.setattr(dense_library, "is_captured", lambda: False)
    for module in modules:
        monkeypatch.setattr(module, "multiply", multiply)
        if hasattr(module, "is_captured"):
            monkeypatch.setattr(module, "is_captured", lambda: False)
    return executor
