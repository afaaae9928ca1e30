"""Wrap other libraries' device arrays as CuPy arrays, without a copy."""

from __future__ import annotations

import sys
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.executor import Array

if TYPE_CHECKING:
    from types import ModuleType

    from torch import Tensor
    from torch import dtype as torch_dtype

    from .base import GpuExecutor


def adopted(executor: GpuExecutor, array: object) -> Array | None:
    """Wrap another library's array on the executor's device as a CuPy array; None if impossible.

    Work on CuPy's current stream waits for the work submitted to the other library's stream.
    """
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(array, torch.Tensor):
        result = _at_its_address(executor, torch, array)
        if result is not None:
            return result
    where = getattr(array, "__dlpack_device__", None)
    if where is None:
        return None
    kind, ordinal = where()
    if int(kind) not in executor.dlpack_kinds or ordinal != executor.ordinal:
        return None
    if hasattr(array, "detach"):  # a torch tensor that tracks gradients refuses to be shared
        array = array.detach()
    if hasattr(array, "resolve_conj"):
        array = array.resolve_conj()
    with executor._here("adoption"):
        return executor.xp.from_dlpack(array)


def _at_its_address(executor: GpuExecutor, torch: ModuleType, tensor: Tensor) -> Array | None:
    """Return a dense tensor as an array, or None if more than its address is needed.

    DLPack creates an event per tensor to synchronize the streams: 75 of the 80 microseconds of an
    adoption (H200). A stream that both libraries use does not need the event.
    """
    dtype = _dtypes(torch).get(tensor.dtype)
    if dtype is None or not tensor.is_cuda or tensor.get_device() != executor.ordinal:
        return None
    count = tensor.numel()
    if count == 0 or tensor.layout is not torch.strided or tensor.is_conj() or tensor.is_neg():
        return None
    cuda = executor.xp.cuda
    if torch._C._cuda_getCurrentRawStream(executor.ordinal) != executor.stream_address():
        return None
    item = dtype.itemsize
    memory = cuda.UnownedMemory(tensor.data_ptr(), count * item, tensor, executor.ordinal)
    strides = tuple([distance * item for distance in tensor.stride()])
    pointer = cuda.MemoryPointer(memory, 0)
    result: Array = executor.xp.ndarray(tuple(tensor.shape), dtype, pointer, strides)
    return result


def copied_by_bytes(executor: GpuExecutor, array: Array) -> Array:
    """Return a C-contiguous copy of an unaligned array, which no kernel can read directly.

    Examples are views of bytes and fields of records.
    """
    xp, item = executor.xp, array.itemsize
    shape, strides = (*array.shape, item), (*array.strides, 1)
    elements = xp.ndarray(shape, np.uint8, array.data, strides)
    copy: Array = xp.array(elements, order="C").view(array.dtype)
    return copy.reshape(array.shape)


@cache
def _dtypes(torch: ModuleType) -> dict[torch_dtype, np.dtype[Any]]:
    names = ("float16", "float32", "float64", "complex64", "complex128", "int32", "int64")
    result = {getattr(torch, name): np.dtype(name) for name in names}
    try:
        from ml_dtypes import bfloat16
    except ImportError:
        return result
    return {**result, torch.bfloat16: np.dtype(bfloat16)}
