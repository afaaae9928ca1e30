"""The handler for GPUs repeats launches, here of emulated waves with a driver of Python."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.core.foreign import ArrayShape

from ..backends.lockstep.build import compiler
from ..backends.lockstep.executor import LockstepExecutor
from ..backends.lockstep.executor import native as lockstep_array
from ..backends.needs import package, tool

jax = package("jax")
jnp = package("jax.numpy")
host_kernels = package("wollemi.interop.jax.host_kernels")
device_kernels = package("wollemi.interop.jax.device_kernels")
lowering = package("wollemi.interop.jax.lowering")
patterns = package("wollemi.interop.jax.patterns")

pytestmark = [
    pytest.mark.usefixtures("jax_in_doubles"),
    *[tool(compiler() is not None, "no C++ compiler: install g++, or set CXX")],
]

_LAUNCH = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_void_p,
    *[ctypes.c_uint] * 7,
    ctypes.c_void_p,
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.c_void_p,
)
_C_TYPES = {
    int: ctypes.c_longlong,
    np.int32: ctypes.c_int,
    np.float32: ctypes.c_float,
    np.float64: ctypes.c_double,
}


#: A program that ran before raises the other one.
FAILED = (jax.errors.JaxRuntimeError, ValueError)


class Driver:
    """Launches kernels of emulated waves as the handler asks a driver to."""

    def __init__(self) -> None:
        self.kernels: list[tuple[Any, list[type]]] = []
        self.launches = 0
        self.answer = 0
        self._launch = _LAUNCH(self._called)

    @property
    def address(self) -> int:
        return ctypes.cast(self._launch, ctypes.c_void_p).value or 0

    def handle(self, made: Any) -> int:
        self.kernels.append((made.function, [type(x) for x in made.arguments]))
        return len(self.kernels)

    def _called(self, function: int, grid: int, *rest: Any) -> int:
        self.launches += 1
        *_, block, _, _, shared, _, arguments, _ = rest
        kernel, kinds = self.kernels[function - 1]
        given = [
            kind(_C_TYPES[kind].from_address(arguments[i]).value) for i, kind in enumerate(kinds)
        ]
        kernel((grid,), (block,), given, shared)
        return self.answer


class Emulated(LockstepExecutor):
    """Emulated waves whose kernels a driver of Python launches."""

    def __init__(self) -> None:
        super().__init__(32)
        self.driver = Driver()

    def make_current(self) -> None:
        """Nothing: there is one device."""

    def launch_address(self) -> int:
        return self.driver.address

    def launch_handle(self, made: Any) -> int:
        return self.driver.handle(made)

    def on_stream(self, address: int) -> Any:
        assert address == 0
        return self._here("stream")

    def array_at(self, address: int, described: ArrayShape) -> Any:
        count = int(np.prod(described.shape)) * np.dtype(described.dtype).itemsize
        memory = (ctypes.c_uint8 * count).from_address(address)
        return lockstep_array(np.frombuffer(memory, described.dtype).reshape(described.shape))


KERNELS: dict[str, tuple[str, tuple[str, ...], dict[str, Any]]] = {
    "spmm": ("spmm", ("values", "B"), {"kernel": "auto"}),
    "vector": ("spmm", ("values", "x"), {"kernel": "auto"}),
    "transposed": ("spmm_transposed", ("values", "C"), {"kernel": "auto"}),
    "sddmm": ("sddmm", ("C", "B"), {"kernel": "auto"}),
    "fusedmm": ("fusedmm", ("values", "C", "B", "D"), {"edge": "softmax", "alpha": 0.5}),
    "row_sum": ("segment_sum", ("values",), {}),
    "spread": ("segment_spread", ("rows",), {}),
    "softmax": ("segment_softmax", ("values",), {}),
}


@pytest.fixture(scope="module")
def executor() -> Emulated:
    lowering.register_calls("cpu")
    return Emulated()


def matrix() -> wl.Csr:
    rng = np.random.default_rng(1)
    dense = np.where(rng.random((12, 9)) < 0.4, rng.standard_normal((12, 9)), 0.0)
    dense[5] = 0
    return wl.Csr(dense, executor="omp:1")


def operands(names: tuple[str, ...], blocks: int, dtype: Any, nnz: int) -> list[Any]:
    shapes = {"values": (nnz,), "rows": (12,), "B": (9, 5), "C": (12, 5), "D": (9, 3), "x": (9, 1)}
    rng = np.random.default_rng(blocks)
    lead = {name: blocks if i == len(names) - 1 else 1 for i, name in enumerate(names)}
    return [jnp.asarray(rng.standard_normal((lead[n], *shapes[n])), dtype) for n in names]


def call_of(
    executor: Emulated, name: str, given: list[Any], pattern: Any, columns: int
) -> tuple[Callable[..., Any], Any, Any]:
    """Return a compiled program of one call, the call, and the result of the host's kernel."""
    function, _, options = KERNELS[name]
    options = {"kernel": "auto", **options} if name == "fusedmm" else options
    products = package("wollemi.interop.jax.products")
    short = {"spmm_transposed": "transposed", "segment_sum": "sum", "segment_spread": "spread"}
    primitive = getattr(products, f"{short.get(function, function).replace('segment_', '')}_p")
    params = {"pattern": pattern, "columns": columns, **options}
    arrays = [] if pattern is not None else given[:2]
    want = jax.jit(lambda *x: primitive.bind(*x, **params))(*given)
    kernel = host_kernels.HostKernel(function, None, _kinds(name), _result(name))
    device = getattr(device_kernels, "spmm" if name == "vector" else name)
    work = lowering.DeviceWork(kernel, device, pattern, columns, options)
    shapes = [ArrayShape(x.shape, np.dtype(x.dtype)) for x in (*given, want)]
    bound = executor.foreign_call(shapes, work)
    assert bound is not None
    assert len(arrays) in (0, 2)
    made = jax.ShapeDtypeStruct(want.shape, want.dtype)
    program = jax.jit(
        lambda *x: jax.ffi.ffi_call("wollemi_device", made)(*x, call=np.int64(bound.name))
    )
    return program, bound.owner, want


def _kinds(name: str) -> tuple[str, ...]:
    kind = {"values": host_kernels.ENTRIES, "rows": host_kernels.ROWS}
    return tuple(kind.get(each, host_kernels.DENSE) for each in KERNELS[name][1])


def _result(name: str) -> str:
    entries = name in ("sddmm", "spread", "softmax")
    return host_kernels.ENTRIES if entries else host_kernels.DENSE


@pytest.mark.parametrize("blocks", [1, 3])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", KERNELS)
def test_the_first_call_leaves_launches_that_others_repeat(
    executor: Emulated, name: str, dtype: str, blocks: int
) -> None:
    A = matrix()
    held = patterns.Held(A)
    given = operands(KERNELS[name][1], blocks, dtype, A.nnz)
    program, call, want = call_of(executor, name, given, held, A.shape[1])
    tolerance = 1e-4 if dtype == "float32" else 1e-10
    np.testing.assert_allclose(program(*given), want, rtol=tolerance, atol=tolerance)
    assert call.known == 1
    before = executor.driver.launches
    repeated = program(*[2 * x for x in given])
    repeated.block_until_ready()
    assert executor.driver.launches > before
    again = jax.jit(lambda *x: x)(*[2 * x for x in given])
    _, _, want = call_of(executor, name, list(again), held, A.shape[1])
    np.testing.assert_allclose(repeated, want, rtol=tolerance, atol=tolerance)


def test_work_that_is_more_than_launches_runs_in_python_at_every_call(executor: Emulated) -> None:
    A = matrix()
    arrays = [jnp.asarray(x) for x in (A.indptr, A.indices)]
    given = [*arrays, *operands(("values", "B"), 1, "float32", A.nnz)]
    program, call, want = call_of(executor, "spmm", given, None, A.shape[1])
    before = executor.driver.launches
    for _ in range(3):
        np.testing.assert_allclose(program(*given), want, rtol=1e-4, atol=1e-4)
    assert (call.known, executor.driver.launches) == (0, before)


def test_errors_of_python_and_of_the_driver_end_the_program(executor: Emulated) -> None:
    A = matrix()
    given = operands(("values", "B"), 1, "float32", A.nnz)
    program, _, _ = call_of(executor, "spmm", given, patterns.Held(A), A.shape[1])
    program(*given).block_until_ready()
    executor.driver.answer = 700
    try:
        with pytest.raises(FAILED, match="a launch with error 700"):
            program(*given).block_until_ready()
    finally:
        executor.driver.answer = 0
    shape = ArrayShape((2,), np.dtype(np.float32))

    def refuse(on: Any, arrays: Any) -> Any:
        raise wl.errors.SystemNotSolved("no digits are left")

    bound = executor.foreign_call([shape, shape], refuse)
    assert bound is not None
    call = jax.ffi.ffi_call("wollemi_device", jax.ShapeDtypeStruct((2,), "float32"))
    with pytest.raises(FAILED, match="SystemNotSolved: no digits are left"):
        jax.jit(lambda x: call(x, call=np.int64(bound.name)))(jnp.ones(2, "float32"))
    with pytest.raises(FAILED, match="compile it again"):
        jax.jit(lambda x: call(x, call=np.int64(12345)))(jnp.ones(2, "float32"))
