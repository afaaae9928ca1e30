"""Lower primitives: how compiled JAX programs call a kernel.

On CPUs they call a native handler of XLA's foreign function interface. A pattern that is known at
trace time is bound to the handler with its plan, and the program contains its number. A pattern
that is an argument, or that belongs to an exported program, is passed as arrays, and the handler
finds its plan by their content. Executors without handlers, and solves, are called through Python.

On GPUs they call one handler, which repeats kernel launches on XLA's stream. The first call with a
layout of arrays runs in Python and records its launches. Work that consists of more than launches
runs in Python at every call, on XLA's memory and stream.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import jax
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import mlir

from ...backends.gpu import native_calls
from ...core.errors import ExecutorMismatch, ExecutorUnavailable
from ...core.executor import Array, Executor
from ...core.foreign import WHOLE_ROWS, ArrayShape, ForeignProduct, Handlers, Step
from ...core.registry import executor as executor_by_name
from ...core.registry import host_executor
from .device_kernels import DeviceKernel
from .host_kernels import ENTRIES, HostKernel
from .patterns import Held, matrix_on_device

#: The executor for each GPU platform of JAX.
PLATFORMS = {"cuda": "cuda", "rocm": "hip"}


@dataclass(frozen=True)
class NativeCall:
    """The native handler's parameters for a primitive.

    Attributes
    ----------
    target : str
        The name of the handler.
    product : str
        The product to make a plan for, or :data:`~wollemi.core.foreign.WHOLE_ROWS`.
    columns_of : int
        The operand with the plan's number of columns, counted from the last operand.
    transposed : bool
        Whether to multiply by the transpose of the pattern.
    order : callable, optional
        Returns the positions of the pattern's numbers in the first operand, if their order differs.
    """

    target: str
    product: str = WHOLE_ROWS
    columns_of: int = -1
    transposed: bool = False
    order: Callable[[], Array] | None = None

    def bound(
        self, held: Held, operands: Sequence[jax.core.ShapedArray], kernel: str
    ) -> ForeignProduct | None:
        """Return a held pattern with its plan, made once; None if the executor has no handlers."""
        of_plan = operands[self.columns_of]
        columns = of_plan.shape[2] if self.product != WHOLE_ROWS else 1
        key = self.product, self.transposed, self.order, columns, of_plan.dtype.name, kernel
        if key not in held.bound:
            A = held.on_host
            order = None if self.order is None else self.order()
            if self.transposed:
                A, order = A.transposed_pattern()
            held.bound[key] = A.executor.foreign_product(
                self.product, A, columns, of_plan.dtype, kernel, order
            )
        return held.bound[key]


@cache
def register_handlers() -> bool:
    """Register the native CPU products with XLA; return whether there are any."""
    try:
        handlers = executor_by_name("omp").foreign_handlers()
    except ExecutorUnavailable:
        return False
    if handlers is None:
        return False
    _register("wollemi.products", handlers, "cpu")
    return True


@cache
def register_calls(platform: str) -> None:
    """Register the handler that calls Python and launches kernels, for a JAX platform."""
    # XLA's registry spells GPU platforms in capital letters.
    named = platform.upper() if platform in PLATFORMS else platform
    _register("wollemi.calls", native_calls.handlers(), named)


def _register(state: str, handlers: Handlers, platform: str) -> None:
    # Register the type before the handler, which refers to the type's number.
    jax.ffi.register_ffi_type(state, handlers.state, platform=platform)
    for name, stages in handlers.functions.items():
        jax.ffi.register_ffi_target(name, stages, platform=platform)


class DeviceWork:
    """Makes the steps of a primitive on a GPU for the arrays of a call.

    Parameters
    ----------
    kernel : HostKernel
        The kernel's name and the kinds of its operands.
    device : DeviceKernel
        The function that makes the steps.
    pattern : Held or None
        The pattern, if it is known at trace time.
    columns : int
        Columns of the pattern.
    options : dict
        Options of the primitive.
    """

    def __init__(
        self,
        kernel: HostKernel,
        device: DeviceKernel,
        pattern: Held | None,
        columns: int,
        options: dict[str, Any],
    ) -> None:
        self._kernel, self._device = kernel, device
        self._pattern, self._columns, self._options = pattern, columns, options

    def __call__(self, on: Executor, arrays: Sequence[Array]) -> Sequence[Step]:
        """Return the steps for the operands and the result."""
        *operands, out = arrays
        if self._pattern is not None:
            A = self._pattern.on(on)
            return self._device(A, operands, out, **self._options)
        indptr, indices, *operands = operands
        A = matrix_on_device(on, indptr, indices, self._columns)
        kinds = self._kernel.operands[-len(operands) :]
        own = [
            x[..., : A.nnz] if kind == ENTRIES else x
            for x, kind in zip(operands, kinds, strict=True)
        ]
        entries = self._kernel.result == ENTRIES
        if entries:
            out[..., A.nnz :] = 0
        steps = self._device(A, own, out[..., : A.nnz] if entries else out, **self._options)
        return [*steps, _looks_for_the_pattern]


def _looks_for_the_pattern() -> bool:
    """Return that another call may have another pattern."""
    return False


def register(
    primitive: Primitive, kernel: HostKernel, native: NativeCall | None, device: DeviceKernel | None
) -> None:
    """Register the implementation of a primitive, for eager calls and for compiled programs."""
    compiled = _compiled(primitive)
    primitive.def_impl(compiled if native is not None else _at_once(kernel, compiled))
    # Not cacheable, because each call refers to its own pattern in the compiled program.
    mlir.register_lowering(primitive, _on_cpu(kernel, native), platform="cpu", cacheable=False)
    for platform, backend in PLATFORMS.items():
        rule = _on_gpu(kernel, device, backend)
        mlir.register_lowering(primitive, rule, platform=platform, cacheable=False)
    mlir.register_lowering(primitive, _elsewhere(kernel), cacheable=False)


def _compiled(primitive: Primitive) -> Callable[..., Any]:
    """Return a function that runs a primitive eagerly, as a program compiled for its operands."""
    of_arguments: dict[Any, Any] = {}

    def eager(*operands: jax.Array, **params: Any) -> Any:
        held = params["pattern"]
        compiled = of_arguments if held is None else held.compiled
        key = primitive, *params.items()
        if key not in compiled:
            compiled[key] = jax.jit(lambda *x: primitive.bind(*x, **params))
        return compiled[key](*operands)

    return eager


def _at_once(kernel: HostKernel, compiled: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that computes eagerly on the host, so that errors are wollemi's own."""

    def eager(*operands: jax.Array, **params: Any) -> Any:
        devices = {device for x in operands if isinstance(x, jax.Array) for device in x.devices()}
        if any(device.platform != "cpu" for device in devices):
            return compiled(*operands, **params)
        made = kernel(*operands, **params)
        with jax.default_device(next(iter(devices), None) or jax.devices("cpu")[0]):
            return jax.numpy.asarray(made)

    return eager


def _on_cpu(kernel: HostKernel, native: NativeCall | None) -> Callable[..., Any]:
    def lowered(
        ctx: mlir.LoweringRuleContext,
        *values: mlir.ir.Value,
        pattern: Held,
        columns: int,
        **options: Any,
    ) -> Any:
        on = host_executor() if pattern is None else pattern.on_host.executor
        if native is not None and on.foreign_handlers() and register_handlers():
            return call_native(ctx, values, native, on, pattern, columns, options)
        shapes = [ArrayShape(x.shape, np.dtype(x.dtype)) for x in (*ctx.avals_in, *ctx.avals_out)]

        def compute(ordinal: int, stream: int, addresses: tuple[int, ...]) -> None:
            *arrays, out = map(host_array, addresses, shapes)
            np.copyto(out, kernel(*arrays, pattern=pattern, columns=columns, **options))

        register_calls("cpu")
        call = native_calls.native().DeviceCall(compute, 0, 1)
        bound = ForeignProduct(native_calls.native().name_call(call), call)
        return _call_bound(ctx, values, bound)

    return lowered


def call_native(
    ctx: mlir.LoweringRuleContext,
    values: Sequence[mlir.ir.Value],
    native: NativeCall,
    on: Executor,
    pattern: Held | None,
    columns: int,
    options: dict[str, Any],
) -> Any:
    """Return the results of calling a native handler."""
    avals, name = list(ctx.avals_in), 0
    module = ctx.module_context
    if pattern is not None and module.lowering_parameters.for_export:
        # Another process does not know this process's patterns: the program contains the arrays.
        A = pattern.on_host
        arrays = [np.asarray(A.indptr), np.asarray(A.indices)]
        values = [*(mlir.ir_constant(array) for array in arrays), *values]
        avals = [*(jax.core.ShapedArray(x.shape, x.dtype) for x in arrays), *avals]
        columns = A.shape[1]
    elif pattern is not None:
        bound = native.bound(pattern, avals, options.get("kernel", "auto"))
        assert bound is not None  # the executor has handlers
        module.add_keepalive(bound.owner)
        name = bound.name
    attributes = {
        key: np.float64(value) if isinstance(value, float) else value
        for key, value in options.items()
        if key != "kernel"
    }
    if native.product == "spmm":
        attributes["transposed"] = np.int64(native.transposed)
    call = jax.ffi.ffi_lowering(native.target)
    return call(
        ctx.replace(avals_in=avals),
        *values,
        pattern=np.int64(name),
        columns=np.int64(columns),
        threads=np.int64(on.properties.get("threads", 1)),
        **attributes,
    )


def _on_gpu(kernel: HostKernel, device: DeviceKernel | None, backend: str) -> Callable[..., Any]:
    def lowered(
        ctx: mlir.LoweringRuleContext,
        *values: mlir.ir.Value,
        pattern: Held,
        columns: int,
        **options: Any,
    ) -> Any:
        if device is None or ctx.module_context.lowering_parameters.for_export:
            raise ExecutorMismatch(
                f"{kernel.name}: a program that is exported for {backend} cannot bring its "
                "kernels; export it for CPUs, platforms=['cpu']"
            )
        try:
            on = executor_by_name(backend)
        except ExecutorUnavailable as error:
            raise ExecutorMismatch(
                f"{kernel.name}: compiled for {backend}, where wollemi has no executor: {error}"
            ) from None
        register_calls(next(name for name, its in PLATFORMS.items() if its == backend))
        call = DeviceWork(kernel, device, pattern, columns, options)
        shapes = [ArrayShape(x.shape, np.dtype(x.dtype)) for x in (*ctx.avals_in, *ctx.avals_out)]
        bound = on.foreign_call(shapes, call)
        assert bound is not None  # GPU executors have handlers
        return _call_bound(ctx, values, bound)

    return lowered


def _call_bound(
    ctx: mlir.LoweringRuleContext, values: Sequence[mlir.ir.Value], bound: ForeignProduct
) -> Any:
    ctx.module_context.add_keepalive(bound.owner)
    return jax.ffi.ffi_lowering("wollemi_device")(ctx, *values, call=np.int64(bound.name))


def host_array(address: int, described: ArrayShape) -> Any:
    """Return XLA memory as a contiguous NumPy array that does not keep it alive."""
    shape, dtype = described
    nbytes = math.prod(shape) * dtype.itemsize
    if nbytes == 0:
        return np.empty(shape, dtype)
    return np.ndarray(shape, dtype, (ctypes.c_uint8 * nbytes).from_address(address))


def _elsewhere(kernel: HostKernel) -> Callable[..., Any]:
    def lowered(ctx: mlir.LoweringRuleContext, *values: mlir.ir.Value, **params: Any) -> Any:
        raise ExecutorMismatch(
            f"{kernel.name}: compiled for {', '.join(ctx.module_context.platforms)}, which wollemi "
            "does not know; move the operands with jax.device_put(x, jax.devices('cpu')[0])"
        )

    return lowered
