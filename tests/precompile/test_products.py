"""The launches of products and solves on a GPU are in the wheel: the same names, the same texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from wollemi import Csr, solve
from wollemi.backends.cuda.products import slab_attention, tile_attention
from wollemi.backends.cuda.products.slab_lists import make_lists
from wollemi.backends.cuda.products.tile_pattern import make_tiles
from wollemi.backends.cuda.products.tile_shapes import WIDTHS
from wollemi.backends.gpu.products.csr import CupyAdapter
from wollemi.core.calls import FusedmmCall, GradientCall
from wollemi.core.operations import products as operations
from wollemi.precompile import products, recording, target
from wollemi.precompile.recording import NativeArray

from ..backends.lockstep import executor as lockstep
from ..backends.lockstep.build import compiler as host_compiler
from ..backends.needs import tool
from .known import known

emulated = tool(host_compiler() is not None, "no C++ compiler: install g++, or set CXX")


class Asked(lockstep.LockstepDevice):
    """Emulated waves that note the programs that an H200 would be asked for."""

    def __init__(self) -> None:
        super().__init__(32, captures=False)
        self.described = products.Noting(target.Target("sm_90"))

    def simt_function(self, kernel: Any, value: str, index: str, **constants: int) -> Any:
        self.described.simt_function(kernel, value, index, **constants)
        return super().simt_function(kernel, value, index, **constants)

    def map_function(self, operation: Any, value: str, index: str) -> Any:
        self.described.map_function(operation, value, index)
        return super().map_function(operation, value, index)

    def texts(self) -> dict[str, str]:
        return {symbol: text() for symbol, text in self.described.noted.items()}


def asking() -> tuple[lockstep.LockstepExecutor, Asked]:
    executor = lockstep.LockstepExecutor(32)
    device = Asked()
    executor._device = device
    return executor, device


def stencil(executor: Any) -> Csr:
    return Csr._from_arrays(executor, *recording.square(executor, "float64"))


@emulated
@pytest.mark.parametrize("columns", [8, 32, 128])
@pytest.mark.parametrize("product", ["spmm", "sddmm", "fusedmm", "gradients"])
def test_products_launch_kernels_of_the_wheel(product: str, columns: int) -> None:
    executor, device = asking()
    A = stencil(executor)
    C, B, D = (executor.from_host(np.ones((1, A.shape[0], columns))) for _ in range(3))
    if product == "spmm":
        executor.run(operations.csr_spmm, A, A.data[None], B, C, 1.0, 0.0, "auto")
    elif product == "sddmm":
        sampled = executor.allocate((1, A.nnz), np.float64)
        executor.run(operations.csr_sddmm, A, None, C, B, sampled, 1.0, 0.0, "auto")
    elif product == "gradients":
        G, E, *made = (executor.allocate(C.shape, np.float64) for _ in range(5))
        logs = executor.allocate(C.shape[:2], np.float64)
        executor.run(
            operations.csr_fusedmm_softmax_backward, A, None, C, B, D, G, E, logs, None, *made, 1.0
        )
    else:
        E = executor.allocate(C.shape, np.float64)
        executor.run(operations.csr_fusedmm, A, None, C, B, D, E, 1.0, "softmax", "auto")
    asked = device.texts()
    assert any(name.startswith(("csr_", "flat_")) for name in asked)
    assert asked.items() <= known("float64").items()


@emulated
@pytest.mark.parametrize(
    "call",
    [lambda A, b: A @ b, lambda A, b: solve(A, b, M="amg", maxiter=3)],
    ids=["product", "solve"],
)
def test_a_first_call_launches_kernels_of_the_wheel(call: Callable[[Csr, Any], Any]) -> None:
    executor, device = asking()
    A = stencil(executor)
    call(A, np.ones(A.shape[0]))
    asked = device.texts()
    assert asked
    assert asked.items() <= known("float64").items()


@pytest.mark.parametrize("columns", WIDTHS)
def test_attention_by_tiles_launches_kernels_of_the_wheel(
    columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = products.Noting(target.Target("sm_90"))
    monkeypatch.setattr(device, "allow_shared", lambda function, nbytes: None, raising=False)
    on = CupyAdapter(products.described(device))
    rows, n = np.nonzero(np.tri(256, dtype=bool))
    made = make_tiles(np, rows, n, (256, 256))
    tiles = type(made)(*(x.view(NativeArray) if isinstance(x, np.ndarray) else x for x in made))
    arrays = [np.zeros((2, 256, columns), np.float16).view(NativeArray) for _ in range(8)]
    C, B, D, E, G, *gradients = arrays
    log_totals = np.zeros((2, 256), np.float32).view(NativeArray)
    call = FusedmmCall(None, None, C, B, D, E, log_totals, 1.0, "softmax")
    tile_attention.attend(on, tiles, call)
    back = GradientCall(
        None, None, C, B, D, G, E, log_totals, None, *gradients, alpha=1.0, edge="softmax"
    )
    tile_attention.gradients_of_attention(on, tiles, lambda: tiles, back)
    asked = {symbol: text() for symbol, text in device.noted.items()}
    assert len(asked) == 3
    assert asked.items() <= known("float64").items()


@pytest.mark.parametrize("columns", slab_attention.WIDTHS)
def test_attention_by_slabs_launches_kernels_of_the_wheel(
    columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = products.Noting(target.Target("sm_90"))
    monkeypatch.setattr(device, "allow_shared", lambda function, nbytes: None, raising=False)
    on = CupyAdapter(products.described(device))
    height = slab_attention.height_of(device.shared_bytes, columns)
    lists = make_lists(np, np.zeros(1, int), np.zeros(1, int), (256, 256), height, columns)
    native = type(lists)(*(x.view(NativeArray) if isinstance(x, np.ndarray) else x for x in lists))
    for name in ("lists_of", "transposed_lists_of"):
        monkeypatch.setattr(slab_attention, name, lambda *_: native)
    arrays = [np.zeros((2, 256, columns), np.float16).view(NativeArray) for _ in range(8)]
    C, B, D, E, G, *gradients = arrays
    log_totals = np.zeros((2, 256), np.float32).view(NativeArray)
    call = FusedmmCall(None, None, C, B, D, E, log_totals, 1.0, "softmax")
    slab_attention.attend(on, call)
    back = GradientCall(
        None, None, C, B, D, G, E, log_totals, None, *gradients, alpha=1.0, edge="softmax"
    )
    slab_attention.gradients_of_attention(on, back)
    asked = {symbol: text() for symbol, text in device.noted.items()}
    assert len(asked) == 3
    assert asked.items() <= known("float64").items()
