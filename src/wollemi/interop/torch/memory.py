"""View the memory of tensors as native arrays, and native arrays as tensors."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...core.errors import ExecutorMismatch, InvalidArgument, UnsupportedDtype
from ...core.executor import Array, Executor
from ...core.operands import aligned
from ...core.registry import executor as executor_by_name
from ...core.registry import host_executor


def executor_of(device: torch.device) -> Executor:
    """Return the executor for the tensors of a device."""
    if device.type == "cpu":
        return host_executor()
    return _executor_of(device.type, device.index or 0)


@cache
def _executor_of(kind: str, index: int) -> Executor:
    # PyTorch calls AMD devices "cuda" too
    backend = "hip" if kind == "cuda" and torch.version.hip else kind
    return executor_by_name(f"{backend}:{index}")


#: PyTorch's device types by the backends of executors.
_DEVICES = {"omp": "cpu", "reference": "cpu", "cuda": "cuda", "hip": "cuda"}


def device_of(where: object) -> torch.device:
    """Return the PyTorch device with the memory of an executor, or the named device.

    Parameters
    ----------
    where : Executor, torch.device, str or int
        ``"omp:4"``, ``"cpu"``, ``"cuda:1"``; a number selects a GPU.

    Raises
    ------
    InvalidArgument
        If PyTorch has no such device.

    Examples
    --------
    >>> import wollemi as wl
    >>> device_of("omp:4"), device_of(wl.executor("reference"))
    (device(type='cpu'), device(type='cpu'))
    """
    if isinstance(where, torch.device):
        return where
    name = where.name if isinstance(where, Executor) else where
    if isinstance(name, str):
        backend, _, number = name.partition(":")
        device = _DEVICES.get(backend)
        if device is not None:
            name = f"{device}:{number}" if number and device != "cpu" else device
    elif isinstance(name, bool) or not isinstance(name, int):
        name = ""  # PyTorch would interpret a dtype or None as no device at all
    try:
        return torch.device(name)
    except (RuntimeError, TypeError) as error:
        raise InvalidArgument(
            "device: expected one of PyTorch, 'cpu' or 'cuda:0', or an executor with the memory of "
            f"one ({', '.join(_DEVICES)}), got {where!r}"
        ) from error


def native_of(executor: Executor, tensor: Tensor) -> Array:
    """Return a tensor's memory as a native array, or a copy if the tensor is not aligned."""
    if tensor.requires_grad:
        tensor = tensor.detach()
    if tensor.is_cpu and executor.xp is np:
        return aligned(executor, numpy_of(tensor))
    adopted = None if tensor.is_cpu else executor.adopt(tensor)
    if adopted is None:
        raise ExecutorMismatch(
            f"the pattern lives on {executor.name} and a tensor on {tensor.device}; "
            "move one of them"
        )
    return aligned(executor, adopted)


def on_its_stream(executor: Executor, tensor: Tensor | None) -> AbstractContextManager[Any]:
    """Return a context in which kernels run on PyTorch's current stream."""
    if tensor is None or not tensor.is_cuda or executor.xp is np:
        return _ANYWHERE
    # Use the raw handle, as PyTorch's compiler does: creating a stream object takes microseconds.
    return executor.on_stream(torch._C._cuda_getCurrentRawStream(tensor.get_device()))


_ANYWHERE = nullcontext()


def numpy_of(tensor: Tensor) -> np.ndarray[Any, Any]:
    """Return the memory of a CPU tensor without gradients as a NumPy array."""
    if tensor.dtype is torch.bfloat16:
        return tensor.view(torch.uint16).numpy().view(_bfloat16())
    return tensor.numpy()


def tensor_of(array: Array) -> Tensor:
    """Return a native array's memory as a tensor."""
    if not isinstance(array, np.ndarray):
        return _tensor_of_device(array)
    if array.dtype.kind == "V":  # bfloat16; reading a dtype's name would take microseconds
        return torch.from_numpy(array.view(np.uint16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def lasting(executor: Executor, tensor: Tensor) -> Tensor:
    """Return a tensor that may outlive a call: itself, or a copy in the executor's memory.

    PyTorch's compiler runs a function in the memory of a CUDA graph and raises an error if a tensor
    in that memory remains without being a result.
    """
    if not tensor.is_cuda or tensor.numel() == 0:
        return tensor
    with on_its_stream(executor, tensor):
        array = executor.copy(native_of(executor, tensor.contiguous().view(torch.uint8)))
    return tensor_of(array).view(tensor.dtype)


def _tensor_of_device(array: Array) -> Tensor:
    try:
        tensor: Tensor = torch.from_dlpack(array)
    except (RuntimeError, BufferError) as error:
        raise ExecutorMismatch(
            "PyTorch cannot use an array of the device of the matrix "
            f"({type(array).__module__.partition('.')[0]}): {error}; copy the matrix to the "
            "tensors' device, A.to('omp') for tensors of the CPU, or install a build of PyTorch "
            "for that device"
        ) from error
    return tensor


def _bfloat16() -> np.dtype[Any]:
    try:
        from ml_dtypes import bfloat16
    except ImportError:
        raise UnsupportedDtype(
            "bfloat16 on a CPU needs the package that gives it to NumPy: pip install ml_dtypes"
        ) from None
    return np.dtype(bfloat16)


class _Memory:
    """The array interfaces that give NumPy and CuPy access to an object's memory."""

    def __init__(self, tensor: Tensor) -> None:
        described = {
            "shape": tuple(tensor.shape),
            "typestr": f"<i{tensor.dtype.itemsize}",
            "data": (tensor.data_ptr(), False),
            "version": 3,
        }
        on_host = tensor.device.type == "cpu"
        setattr(self, "__array_interface__" if on_host else "__cuda_array_interface__", described)


def borrowed(executor: Executor, tensor: Tensor) -> Array:
    """Return contiguous integers of a tensor as a native array that does not keep them alive.

    The array is a copy if the tensor is not aligned.
    """
    if tensor.numel() == 0:
        return native_of(executor, tensor)  # an empty tensor has no memory
    if executor.xp is np:
        return aligned(executor, np.asarray(_Memory(tensor)))
    return aligned(executor, executor.xp.asarray(_Memory(tensor)))


def as_rows(tensor: Tensor) -> Tensor:
    """Return a tensor as a matrix along its last axis, with the strides of a contiguous matrix.

    PyTorch calls a tensor contiguous whatever the strides of axes of length one; some of its
    kernels, such as ``segment_reduce``, then use these strides and access memory out of bounds.
    """
    columns = tensor.shape[-1]
    rows = math.prod(tensor.shape[:-1])
    return tensor.contiguous().as_strided((rows, columns), (columns, 1))


def for_kernels(tensor: Tensor, axes: int) -> Tensor:
    """Return an aligned tensor with a contiguous last axis and increasing strides of short rows."""
    if tensor.data_ptr() % tensor.element_size():
        return tensor.clone(memory_format=torch.contiguous_format)
    if tensor.is_contiguous():
        return tensor
    if tensor.shape[-1] > 1:
        return tensor if tensor.stride(-1) == 1 else tensor.contiguous()
    if axes > 1 and tensor.shape[-2] > 1 and tensor.stride(-2) < 1:
        return tensor.contiguous()
    return tensor
